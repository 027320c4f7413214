//! Deciding again.

/// How often a decision is made again when others were faster; after that the asker is told to try again.
pub(in crate::service) const ATTEMPTS_MAX: usize = 3;

/// Decides again while others are faster, but not for ever.
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
