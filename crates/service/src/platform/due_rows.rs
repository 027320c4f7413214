//! Lists of rows whose deadline has passed, for the workers.

use std::time::Duration;

use countersign_domain::keys::Keys;
use countersign_domain::primitives::id::{ReviewId, ThreadId};
use countersign_domain::reviews::Hold;
use countersign_domain::threads::thread::Thread;
use countersign_store::record::{BoundedList, ListBounds, Record, Stored};
use countersign_store::records::{OPEN, RESERVED};
use countersign_store::{Cursor, RowFilter};

use crate::error::Result;
use crate::platform::core::Core;
use crate::platform::lease_scan_cursor::LeaseScanTimes;

/// Rows that are in memory at once. An interrupt may have a hundred kilobytes, and all of them can be due
/// together.
const IN_HAND: ListBounds = ListBounds { page_rows: 100, pages_max: 1_000 };

/// Pages of expired leases in one pass. The next pass finds the rest.
const PAGES_MAX: usize = 100;

/// The longest lease. An expired lease was therefore reserved at most this long before its end.
const LEASE_MAX: Duration = Duration::from_secs(3600);

impl Core {
    /// Returns open reviews whose deadline has passed, the oldest deadline first.
    pub async fn holds_due(&self) -> Result<Vec<ReviewId>> {
        let now = self.now();
        self.due(OPEN, |it: Hold| (!it.is_open(now)).then_some(it.id)).await
    }

    /// Returns open reviews that may have a reminder to send.
    pub async fn reminders_due(&self) -> Result<Vec<ReviewId>> {
        let now = self.now();
        self.due(OPEN, |it: Hold| it.is_open(now).then_some(it.id)).await
    }

    /// Returns threads whose lease has expired without a reported outcome, if the expiry is not logged yet.
    pub async fn expired_leases(&self) -> Result<Vec<ThreadId>> {
        let (keys, now) = (self.keys()?, self.now());
        let done = self.swept.done(now);

        let from = done.map_or(0, |it| it.last.minus(LEASE_MAX).millis());
        let (lapsed, after) = (RowFilter::DueBy(RESERVED, now), Cursor { due: from, id: String::new() });
        let is_unlogged = |it: &Thread| it.expired_write(now).is_some_and(|write| !it.unresolved.contains(write));
        let unlogged = |it: Stored<Thread>| Some(it.record).filter(is_unlogged).map(|it| it.id);
        let found = self.reader(&keys).select(lapsed, Some(after), ListBounds::pages(PAGES_MAX), unlogged).await?;
        // The cursor moves only when every expired lease is logged.
        if found.items.is_empty() && found.is_complete {
            self.swept.put(LeaseScanTimes { whole: done.map_or(now, |it| it.whole), last: now });
        }
        Ok(found.items)
    }

    /// Returns what `pick` selects from all open rows of a kind.
    pub(crate) async fn select_open<R: Record, T>(
        &self,
        keys: &Keys,
        pick: impl Fn(R) -> Option<T>,
    ) -> Result<BoundedList<T>> {
        let pick = |it: Stored<R>| pick(it.record);
        Ok(self.reader(keys).select(RowFilter::State(OPEN), None, IN_HAND, pick).await?)
    }

    /// Returns what `pick` selects from all rows in a state whose time has come.
    pub(crate) async fn due<R: Record, T>(&self, state: &str, pick: impl Fn(R) -> Option<T>) -> Result<Vec<T>> {
        let (keys, now) = (self.keys()?, self.now());
        let pick = |it: Stored<R>| pick(it.record);
        Ok(self.reader(&keys).select(RowFilter::DueBy(state, now), None, IN_HAND, pick).await?.items)
    }
}
