//! Retries after a commit conflict.

/// How often a decision is made before the caller gets [`Error::Busy`](crate::service::error::Error::Busy).
pub(in crate::service) const ATTEMPTS_MAX: usize = 3;

/// Repeats a decision after each conflict, up to [`ATTEMPTS_MAX`] attempts.
macro_rules! retrying {
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
