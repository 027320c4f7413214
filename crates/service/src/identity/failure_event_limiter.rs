//! Limits how many events failed sign-ins write.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use countersign_domain::primitives::time::Timestamp;

/// Limits the events about failed attempts and counts those that were not recorded.
#[derive(Debug)]
pub(crate) struct FailureEventLimiter {
    pub(crate) level: Mutex<(f64, Timestamp, u64)>,
}

impl Default for FailureEventLimiter {
    fn default() -> Self {
        Self { level: Mutex::new((TOLD_BURST, Timestamp::from_millis(0), 0)) }
    }
}

impl FailureEventLimiter {
    /// Returns `None` if the failure must not be recorded now. Otherwise returns how many before it were not recorded.
    pub(crate) fn may(&self, now: Timestamp) -> Option<u64> {
        let mut state = self.level.lock().unwrap_or_else(PoisonError::into_inner);
        let (level, at, untold) = *state;
        let level = (level + at.until(now).as_secs_f64() / TOLD_EVERY.as_secs_f64()).min(TOLD_BURST);
        if level < 1.0 {
            *state = (level, now, untold + 1);
            return None;
        }
        *state = (level - 1.0, now, 0);
        Some(untold)
    }
}

/// Number of failed attempts that are recorded one by one before the rest is recorded as a number.
pub(crate) const TOLD_BURST: f64 = 60.0;

pub(crate) const TOLD_EVERY: Duration = Duration::from_secs(10);
