//! Records of responses to requests with an idempotency key. Each belongs to one token and expires.

use countersign_domain::platform::idempotency::IdempotencyRecord;

use crate::record::Record;
use crate::row::{Facets, Table};

/// The state of all responses. With the due time it finds expired ones.
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
