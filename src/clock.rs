//! The one place that asks what time it is.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Instant;

use crate::domain::primitives::time::Timestamp;

/// Tells the time. What is signed, and what is judged in memory, takes it from here; deadlines that a
/// decision hangs on are the store's, by the database's clock.
pub trait Clock: Send + Sync + 'static {
    fn now(&self) -> Timestamp;

    /// A point on a clock that never goes back, for measuring how long something took.
    fn instant(&self) -> Instant;
}

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

/// How far a store's idea of the time is off its database's clock. Zero, and only tests set it: no
/// configuration, variable or flag reaches it. Clones share one value, so that a test moves a running gateway.
#[derive(Clone, Debug, Default)]
pub struct ClockOffset(Arc<AtomicI64>);

impl ClockOffset {
    /// From now on the time is this much later (or earlier) than the clock says.
    pub fn set_millis(&self, millis: i64) {
        self.0.store(millis, Ordering::SeqCst);
    }

    /// The moment as it is taken to be.
    #[must_use]
    pub fn applied_to(&self, moment: Timestamp) -> Timestamp {
        Timestamp::from_millis(moment.millis().saturating_add(self.0.load(Ordering::SeqCst)))
    }
}
