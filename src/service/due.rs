//! What has passed its moment: the lists that workers go through.

use super::Service;
use super::error::Result;
use crate::domain::id::{ReviewId, ThreadId};
use crate::domain::review::Hold;
use crate::domain::thread::Thread;
use crate::store::record::{Record, Stored};
use crate::store::records::{OPEN, RESERVED};
use crate::store::{Cursor, Filter, LIST_ROWS_MAX};

/// How many pages one look goes through; what is left is seen at the next.
const PAGES_MAX: usize = 100;

impl Service {
    /// Open holds whose deadline has passed, the longest passed first.
    pub async fn holds_due(&self) -> Result<Vec<ReviewId>> {
        let (holds, now) = (self.due::<Hold>(OPEN).await?, self.now());
        Ok(holds.into_iter().map(|it| it.record).filter(|it| !it.is_open(now)).map(|it| it.id).collect())
    }

    /// Open holds of which something is to be told that was not told yet.
    pub async fn notices_due(&self) -> Result<Vec<ReviewId>> {
        let (holds, now) = (self.due::<Hold>(OPEN).await?, self.now());
        Ok(holds.into_iter().map(|it| it.record).filter(|it| it.is_open(now)).map(|it| it.id).collect())
    }

    /// Threads whose head's lease has passed without a word, and where that is not logged yet.
    pub async fn lapses_due(&self) -> Result<Vec<ThreadId>> {
        let now = self.now();
        let threads = self.due::<Thread>(RESERVED).await?;
        let unlogged = |thread: &Thread| thread.lapsed_write(now).is_some_and(|it| !thread.unresolved.contains(it));
        Ok(threads.into_iter().map(|it| it.record).filter(unlogged).map(|it| it.id).collect())
    }

    pub(super) async fn due<R: Record>(&self, state: &str) -> Result<Vec<Stored<R>>> {
        let (keys, now) = (self.keys()?, self.now());
        let mut found: Vec<Stored<R>> = Vec::new();
        for _ in 0..PAGES_MAX {
            let after = found.last().map(|it| Cursor { due: it.record.facets().due, id: it.record.id() });
            let page = self.reader(&keys).list::<R>(Filter::DueBy(state, now), after.as_ref(), LIST_ROWS_MAX).await?;
            let full = page.len() == LIST_ROWS_MAX as usize;
            found.extend(page);
            if !full {
                break;
            }
        }
        Ok(found)
    }
}
