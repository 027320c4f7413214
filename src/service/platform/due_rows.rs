//! What has passed its moment: the lists that workers go through.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::domain::keys::Keys;
use crate::domain::primitives::id::{ReviewId, ThreadId};
use crate::domain::primitives::time::Timestamp;
use crate::domain::reviews::Hold;
use crate::domain::threads::thread::Thread;
use crate::service::Service;
use crate::service::error::Result;
use crate::store::record::Record;
use crate::store::records::{OPEN, RESERVED};
use crate::store::{Cursor, LIST_ROWS_MAX, RowFilter};

/// Rows that are in hand at once: what hosts ask about may be a hundred kilobytes each, and all of it fall due together.
const IN_HAND: u32 = 100;

/// No lease is longer: whatever lapses was reserved within it.
const LEASE_MAX: Duration = Duration::from_secs(3600);

/// How often all that lapsed are looked through: a thread that is reopened may have lapsed long ago.
const WHOLE_EVERY: Duration = Duration::from_secs(600);

/// Since when every lease that lapsed is logged. Their heads stay reserved until people say what became of the writes, however
/// many there are, and are not read again every second.
#[derive(Debug, Default)]
pub(in crate::service) struct LeaseScanCursor(Mutex<Option<LeaseScanTimes>>);

/// When all were looked through, and when those of late.
#[derive(Clone, Copy, Debug)]
struct LeaseScanTimes {
    whole: Timestamp,
    last: Timestamp,
}

impl LeaseScanCursor {
    /// What need not be looked through by now, if anything.
    fn done(&self, now: Timestamp) -> Option<LeaseScanTimes> {
        let done = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        done.filter(|it| it.last <= now && it.whole.until(now) < WHOLE_EVERY)
    }

    fn put(&self, done: LeaseScanTimes) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(done);
    }
}

impl Service {
    /// Open holds whose deadline has passed, the longest passed first.
    pub async fn holds_due(&self) -> Result<Vec<ReviewId>> {
        let now = self.now();
        self.due(OPEN, |it: Hold| (!it.is_open(now)).then_some(it.id)).await
    }

    /// Open holds of which something is to be told that was not told yet.
    pub async fn reminders_due(&self) -> Result<Vec<ReviewId>> {
        let now = self.now();
        self.due(OPEN, |it: Hold| it.is_open(now).then_some(it.id)).await
    }

    /// Threads whose head's lease has passed without a word, and where that is not logged yet.
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
        if found.is_empty() {
            self.swept.put(LeaseScanTimes { whole: done.map_or(now, |it| it.whole), last: now });
        }
        Ok(found)
    }

    /// What is picked out of everything of one kind that is open.
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

    /// What is picked out of what is in a state and due.
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
