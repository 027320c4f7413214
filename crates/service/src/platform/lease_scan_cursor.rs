//! Remembers up to which time expired leases are recorded.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use countersign_domain::primitives::time::Timestamp;

/// The time up to which all expired leases are logged. Heads with an expired lease stay reserved until a
/// person resolves the write. The cursor avoids that every scan reads them again.
#[derive(Debug, Default)]
pub(crate) struct LeaseScanCursor(pub(crate) Mutex<Option<LeaseScanTimes>>);

impl LeaseScanCursor {
    /// Returns the scans that are still valid, or `None` if a full scan is due.
    pub(crate) fn done(&self, now: Timestamp) -> Option<LeaseScanTimes> {
        // A poisoned lock is safe here: the value is replaced as a whole.
        let done = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        done.filter(|it| it.last <= now && it.whole.until(now) < WHOLE_EVERY)
    }

    pub(crate) fn put(&self, done: LeaseScanTimes) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(done);
    }
}

/// The time of the last full scan, and of the last scan of recent leases.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LeaseScanTimes {
    pub(crate) whole: Timestamp,
    pub(crate) last: Timestamp,
}

/// How often all expired leases are scanned: the lease of a reopened thread may have expired long ago.
pub(crate) const WHOLE_EVERY: Duration = Duration::from_secs(600);
