//! The list of threads, with filters.

use countersign_domain::primitives::id::{FlowId, ThreadId};
use countersign_domain::primitives::time::Timestamp;
use countersign_domain::reviews::Hold;
use countersign_domain::threads::thread::{Thread, ThreadStatusCode};
use countersign_store::record::{Record as _, Stored};
use countersign_store::records::{OPEN, RESERVED};
use countersign_store::{Cursor, RowFilter};

use crate::error::Result;
use crate::threads::Threads;

/// The criteria of a search. A thread has to match all of them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ThreadFilter {
    pub flow: Option<FlowId>,
    /// A prefix of the name.
    pub name: Option<String>,
    /// A prefix of the title, in any case.
    pub title: Option<String>,
    pub status: Option<ThreadStatusCode>,
}

/// The cursor of a list of threads.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ThreadListCursor(Cursor);

#[derive(Clone, Debug)]
pub struct ThreadSearchResult {
    pub threads: Vec<Thread>,
    /// How many threads were examined.
    pub looked: usize,
    /// The position of the next page, unless all threads were examined.
    pub onward: Option<ThreadListCursor>,
}

/// How many threads one page examines. Opening a row costs some microseconds, and the reader can request the
/// next page.
const LOOKED_MAX: usize = 1_000;

/// Rows that one query reads.
const LOOK_ROWS: u32 = 250;

impl ThreadListCursor {
    /// Returns the cursor as a URL parameter.
    pub fn token(&self) -> String {
        format!("{}.{}", self.0.due, self.0.id)
    }

    pub(crate) const fn at(cursor: Cursor) -> Self {
        Self(cursor)
    }

    pub(crate) const fn cursor(&self) -> &Cursor {
        &self.0
    }

    /// Reads the output of [`Self::token`]. Returns `None` for other text.
    pub fn read(token: &str) -> Option<Self> {
        let (due, id) = token.split_once('.')?;
        Some(Self(Cursor { due: due.parse().ok()?, id: id.to_owned() }))
    }
}

impl ThreadFilter {
    fn fits(&self, thread: &Thread, now: Timestamp) -> bool {
        self.flow.as_ref().is_none_or(|it| *it == thread.flow)
            && self.name.as_ref().is_none_or(|it| thread.id.as_str().starts_with(it.as_str()))
            && self.title.as_ref().is_none_or(|it| is_titled(thread, it))
            && self.status.is_none_or(|it| it == thread.status(now))
    }

    /// Returns whether no thread after this one can match.
    fn is_past(&self, thread: &Thread) -> bool {
        // Held and reserved threads are sorted by due time, so a later name proves nothing about the rest.
        let ordered_by_name = !matches!(self.status, Some(ThreadStatusCode::Held | ThreadStatusCode::Writing));
        let beyond =
            |name: &String| thread.id.as_str() > name.as_str() && !thread.id.as_str().starts_with(name.as_str());
        ordered_by_name && self.name.as_ref().is_some_and(beyond)
    }
}

fn is_titled(thread: &Thread, beginning: &str) -> bool {
    let title = thread.context.title.as_deref().unwrap_or_default();
    let mut letters = title.chars().flat_map(char::to_lowercase);
    beginning.chars().flat_map(char::to_lowercase).all(|wanted| letters.next() == Some(wanted))
}

impl Threads {
    /// Returns a page of matching threads by name. Held and reserved threads are sorted by due time instead.
    /// A page examines a bounded number of threads.
    pub async fn find_threads(
        &self,
        sought: &ThreadFilter,
        after: Option<&ThreadListCursor>,
        limit: usize,
    ) -> Result<ThreadSearchResult> {
        let now = self.core.now();
        let mut found = ThreadSearchResult { threads: Vec::new(), looked: 0, onward: None };
        let mut cursor = after.map(|it| it.0.clone());
        if let (None, Some(name)) = (&cursor, &sought.name)
            && !matches!(sought.status, Some(ThreadStatusCode::Held | ThreadStatusCode::Writing))
        {
            // A thread with exactly this name sorts before the names that only start with it.
            let exactly = match ThreadId::try_from(name.as_str()) {
                Ok(id) => self.core.fetch::<Thread>(&*self.core.keys()?, id.as_str()).await?,
                Err(_) => None,
            };
            found.threads.extend(exactly.map(|it| it.record).filter(|it| sought.fits(it, now)));
            // The list continues after this name, so the exact match above is not found twice.
            cursor = Some(Cursor { due: 0, id: name.clone() });
        }
        while found.looked < LOOKED_MAX {
            let page = self.look(sought, cursor.as_ref()).await?;
            // A short page is the last one.
            let last = page.len() < LOOK_ROWS as usize;
            for (at, thread) in page {
                if sought.is_past(&thread) {
                    return Ok(ThreadSearchResult { onward: None, ..found });
                }
                found.looked += 1;
                cursor = Some(at);
                if sought.fits(&thread, now) {
                    found.threads.push(thread);
                }
                if found.threads.len() == limit {
                    return Ok(ThreadSearchResult { onward: cursor.map(ThreadListCursor), ..found });
                }
            }
            if last {
                return Ok(ThreadSearchResult { onward: None, ..found });
            }
        }
        Ok(ThreadSearchResult { onward: cursor.map(ThreadListCursor), ..found })
    }

    /// Returns the next threads from the shortest list that contains all matches, each with its cursor.
    async fn look(&self, sought: &ThreadFilter, after: Option<&Cursor>) -> Result<Vec<(Cursor, Thread)>> {
        let keys = self.core.keys()?;
        let reader = self.core.reader(&keys);
        let by_name = |it: Stored<Thread>| (Cursor { due: 0, id: it.record.id.to_string() }, it.record);
        match (sought.status, &sought.flow) {
            (Some(ThreadStatusCode::Held), _) => {
                let holds = reader.list::<Hold>(RowFilter::State(OPEN), after, LOOK_ROWS).await?;
                let ids: Vec<String> = holds.iter().map(|it| it.record.thread.to_string()).collect();
                let threads = reader.get_many::<Thread>(&ids).await?;
                let thread = |hold: &Stored<Hold>| {
                    let at = Cursor { due: hold.record.facets().due, id: hold.record.id.to_string() };
                    threads.iter().find(|it| it.record.id == hold.record.thread).map(|it| (at, it.record.clone()))
                };
                Ok(holds.iter().filter_map(thread).collect())
            }
            (Some(ThreadStatusCode::Writing), _) => {
                let threads = reader.list::<Thread>(RowFilter::State(RESERVED), after, LOOK_ROWS).await?;
                let placed = |it: Stored<Thread>| {
                    (Cursor { due: it.record.facets().due, id: it.record.id.to_string() }, it.record)
                };
                Ok(threads.into_iter().map(placed).collect())
            }
            (_, Some(flow)) => {
                let threads = reader.list::<Thread>(RowFilter::Owner(flow.as_str()), after, LOOK_ROWS).await?;
                Ok(threads.into_iter().map(by_name).collect())
            }
            (_, None) => {
                let threads = reader.list::<Thread>(RowFilter::All, after, LOOK_ROWS).await?;
                Ok(threads.into_iter().map(by_name).collect())
            }
        }
    }
}
