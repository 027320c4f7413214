//! Warns about a clock that was set back. The gateway keeps working, because a halt, a denial or an expiry
//! must not wait for a clock.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use countersign_service::Service;
use countersign_service::error::Result;

/// Often enough for an operator, without flooding the server log.
const WARNED_EVERY: Duration = Duration::from_secs(60);

/// The time of the last warning.
#[derive(Debug, Default)]
pub struct ClockWatch(Mutex<Option<Instant>>);

impl ClockWatch {
    /// Measures how far the clock is behind the newest event, and warns at most once a minute.
    pub async fn run_once(&self, service: &Service) -> Result<usize> {
        let behind = service.log.clock_behind().await?;
        service.operations.metrics().clock_behind(behind.map_or(Duration::ZERO, |it| it.by()));
        if let Some(behind) = behind
            && self.is_due(service.core.instant())
        {
            tracing::warn!("{behind}; set the clock, because until then deadlines pass too late");
        }
        Ok(0)
    }

    /// Returns whether a warning is due, and starts the next interval if it is.
    fn is_due(&self, now: Instant) -> bool {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let due = last.is_none_or(|it| now.saturating_duration_since(it) >= WARNED_EVERY);
        if due {
            *last = Some(now);
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use countersign_adapters::clock::{Clock as _, SystemClock};

    use super::*;

    #[test]
    fn warning_comes_once_a_minute() {
        let (watch, start) = (ClockWatch::default(), SystemClock.instant());
        let due = |secs: u64| watch.is_due(start + Duration::from_secs(secs));
        assert_eq!([0, 1, 59, 60, 61, 119, 120].map(due), [true, false, false, true, false, false, true]);
    }
}
