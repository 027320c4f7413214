//! Answers to requests that have a key, kept for a while: of one token each, and forgotten by their moment.

use crate::domain::platform::idempotency::IdempotencyRecord;
use crate::store::record::Record;
use crate::store::row::{Facets, Table};

/// The state word of every answer: by it and their moment those that are over are found.
pub const KEPT: &str = "kept";

impl Record for IdempotencyRecord {
    const TABLE: Table = Table::Answers;
    fn id(&self) -> String {
        self.id.clone()
    }
    fn facets(&self) -> Facets {
        let (owner, state) = (self.token.to_string(), KEPT.to_owned());
        Facets { alias: None, owner, state, due: self.until.millis() }
    }
}
