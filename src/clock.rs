//! The one place that asks what time it is.

use std::time::Instant;

use crate::domain::time::Timestamp;

/// Tells the time. What is signed, and what is judged in memory, takes it from here; deadlines that a
/// decision hangs on are the store's, by the database's clock.
pub trait Clock: Send + Sync + 'static {
    /// Now.
    fn now(&self) -> Timestamp;

    /// A point on a clock that never goes back, for measuring how long something took.
    fn instant(&self) -> Instant;
}

/// The machine's own clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "the one source of wall time")]
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(chrono::Utc::now().timestamp_millis())
    }

    #[expect(clippy::disallowed_methods, reason = "the one source of monotonic time")]
    fn instant(&self) -> Instant {
        Instant::now()
    }
}
