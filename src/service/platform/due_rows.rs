//! Lists of rows whose deadline has passed, for the workers.

use std::time::Duration;

use countersign_domain::keys::Keys;
use countersign_domain::primitives::id::{ReviewId, ThreadId};
use countersign_domain::reviews::Hold;
use countersign_domain::threads::thread::Thread;

use crate::service::error::Result;
use crate::service::platform::core::Core;
use crate::service::platform::lease_scan_cursor::LeaseScanTimes;
use crate::store::record::Record;
use crate::store::records::{OPEN, RESERVED};
use crate::store::{Cursor, LIST_ROWS_MAX, RowFilter};

/// Rows that are in memory at once. An interrupt may have a hundred kilobytes, and all of them can be due
/// together.
const IN_HAND: u32 = 100;

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
        let (mut found, mut after) = (Vec::new(), Cursor { due: from, id: String::new() });
        loop {
            let lapsed = RowFilter::DueBy(RESERVED, now);
            let page = self.reader(&keys).list::<Thread>(lapsed, Some(&after), LIST_ROWS_MAX).await?;
            let Some(last) = page.last().map(|it| &it.record) else { break };
            after = Cursor { due: last.facets().due, id: last.id() };
            let unlogged = |it: &Thread| it.expired_write(now).is_some_and(|write| !it.unresolved.contains(write));
            found.extend(page.into_iter().map(|it| it.record).filter(unlogged).map(|it| it.id));
        }
        // The cursor moves only when every expired lease is logged.
        if found.is_empty() {
            self.swept.put(LeaseScanTimes { whole: done.map_or(now, |it| it.whole), last: now });
        }
        Ok(found)
    }

    /// Returns what `pick` selects from all open rows of a kind.
    pub(in crate::service) async fn select_open<R: Record, T>(
        &self,
        keys: &Keys,
        pick: impl Fn(R) -> Option<T>,
    ) -> Result<Vec<T>> {
        let (mut found, mut after) = (Vec::new(), None);
        loop {
            let page = self.reader(keys).list::<R>(RowFilter::State(OPEN), after.as_ref(), IN_HAND).await?;
            let Some(last) = page.last().map(|it| &it.record) else { return Ok(found) };
            after = Some(Cursor { due: last.facets().due, id: last.id() });
            found.extend(page.into_iter().filter_map(|it| pick(it.record)));
        }
    }

    /// Returns what `pick` selects from all rows in a state whose time has come.
    pub(in crate::service) async fn due<R: Record, T>(
        &self,
        state: &str,
        pick: impl Fn(R) -> Option<T>,
    ) -> Result<Vec<T>> {
        let (keys, now) = (self.keys()?, self.now());
        let (mut found, mut after) = (Vec::new(), None);
        loop {
            let page = self.reader(&keys).list::<R>(RowFilter::DueBy(state, now), after.as_ref(), IN_HAND).await?;
            let Some(last) = page.last().map(|it| &it.record) else { return Ok(found) };
            after = Some(Cursor { due: last.facets().due, id: last.id() });
            found.extend(page.into_iter().filter_map(|it| pick(it.record)));
        }
    }
}
