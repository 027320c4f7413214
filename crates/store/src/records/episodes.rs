//! Records of agents' events, numbered per run, and of imported runs with their files in pieces.

use countersign_domain::episode::agent_event::AgentEvent;
use countersign_domain::episode::imported::{ImportChunk, RunImport};
use countersign_domain::primitives::id::ThreadId;

use super::event_alias;
use crate::record::Record;
use crate::row::{Facets, Table};

pub fn posted_row_id(thread: &ThreadId, number: u64) -> String {
    event_alias(thread, number)
}

impl Record for AgentEvent {
    const TABLE: Table = Table::EpisodeEvents;
    fn id(&self) -> String {
        posted_row_id(&self.thread, self.number)
    }
    fn facets(&self) -> Facets {
        Facets { alias: Some(self.id.to_string()), ..Facets::default() }
    }
}

/// Returns the id of a piece of an imported run.
pub fn piece_id(import: &ThreadId, number: u64) -> String {
    event_alias(import, number)
}

impl Record for RunImport {
    const TABLE: Table = Table::Imports;
    fn id(&self) -> String {
        self.id.to_string()
    }
    fn facets(&self) -> Facets {
        Facets { due: self.at.millis(), ..Facets::default() }
    }
}

impl Record for ImportChunk {
    const TABLE: Table = Table::ImportPieces;
    fn id(&self) -> String {
        piece_id(&self.import, self.number)
    }
    fn facets(&self) -> Facets {
        Facets::default()
    }
}
