//! What agents added to runs, numbered within each.

use super::event_alias;
use crate::domain::episode::posted::Posted;
use crate::domain::id::ThreadId;
use crate::store::record::Record;
use crate::store::row::{Facets, Table};

/// The id of a run's event.
pub fn posted_row_id(thread: &ThreadId, number: u64) -> String {
    event_alias(thread, number)
}

impl Record for Posted {
    const TABLE: Table = Table::EpisodeEvents;
    fn id(&self) -> String {
        posted_row_id(&self.thread, self.number)
    }
    fn facets(&self) -> Facets {
        Facets { alias: Some(self.id.to_string()), ..Facets::default() }
    }
}
