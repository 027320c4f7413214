//! The only module that reads the system clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Instant;

use countersign_domain::primitives::time::Timestamp;

/// Source of the current time for signatures and decisions in memory. Deadlines that decide a review use the database's
/// clock, because several gateways share it.
pub trait Clock: Send + Sync + 'static {
    fn now(&self) -> Timestamp;

    /// Returns a monotonic time, for measuring durations.
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

/// Offset of a store's time from its database's clock. It is zero except in tests: no configuration, variable or flag
/// sets it. Clones share one value, so that a test can move the time of a running gateway.
#[derive(Clone, Debug, Default)]
pub struct ClockOffset(Arc<AtomicI64>);

impl ClockOffset {
    /// Sets the offset: later times are positive, earlier ones negative.
    pub fn set_millis(&self, millis: i64) {
        self.0.store(millis, Ordering::SeqCst);
    }

    /// Returns the time with the offset applied.
    #[must_use]
    pub fn applied_to(&self, moment: Timestamp) -> Timestamp {
        Timestamp::from_millis(moment.millis().saturating_add(self.0.load(Ordering::SeqCst)))
    }
}
