//! Retries after a commit conflict.

use crate::service::error::Result;

/// How often a decision is made before the caller gets [`Error::Busy`](crate::service::error::Error::Busy).
pub(in crate::service) const ATTEMPTS_MAX: usize = 3;

/// Gives an `async` block the error of the service, so that `?` converts to it.
pub(in crate::service) fn decision<T, F: Future<Output = Result<T>>>(decision: F) -> F {
    decision
}

/// Repeats a decision after each conflict, up to [`ATTEMPTS_MAX`] attempts: a call, or a block that makes the decision.
macro_rules! retrying {
    ($decision:block) => {
        $crate::service::platform::retry::retrying!($crate::service::platform::retry::decision(async { $decision }))
    };
    ($attempt:expr) => {{
        let mut tries = 1;
        loop {
            match $attempt.await {
                Err(error) if $crate::service::error::Error::is_conflict(&error) => {
                    if tries == $crate::service::platform::retry::ATTEMPTS_MAX {
                        break Err($crate::service::error::Error::Busy);
                    }
                    tries += 1;
                }
                done => break done,
            }
        }
    }};
}
pub(in crate::service) use retrying;
