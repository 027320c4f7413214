//! Retries after a commit conflict.

use crate::error::Result;

/// How often a decision is made before the caller gets [`Error::Busy`](crate::error::Error::Busy).
pub(crate) const ATTEMPTS_MAX: usize = 3;

/// Gives an `async` block the error of the service, so that `?` converts to it.
pub(crate) fn decision<T, F: Future<Output = Result<T>>>(decision: F) -> F {
    decision
}

/// Repeats a decision after each conflict, up to [`ATTEMPTS_MAX`] attempts: a call, or a block that makes the decision.
/// A function with an `async` closure cannot replace it: Rust does not yet prove that such a future is `Send`.
macro_rules! retrying {
    ($decision:block) => {
        $crate::platform::retry::retrying!($crate::platform::retry::decision(async { $decision }))
    };
    ($attempt:expr) => {{
        let mut tries = 1;
        loop {
            match $attempt.await {
                Err(error) if $crate::error::Error::is_conflict(&error) => {
                    if tries == $crate::platform::retry::ATTEMPTS_MAX {
                        break Err($crate::error::Error::Busy);
                    }
                    tries += 1;
                }
                done => break done,
            }
        }
    }};
}
pub(crate) use retrying;
