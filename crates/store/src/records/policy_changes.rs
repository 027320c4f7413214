//! Records of policy change requests, owned by their flow.

use countersign_domain::policy_changes::change_request::{PolicyChangeRequest, PolicyChangeState};

use super::OPEN;
use crate::record::Record;
use crate::row::{Facets, Table};

impl Record for PolicyChangeRequest {
    const TABLE: Table = Table::Amendments;
    fn id(&self) -> String {
        self.id.to_string()
    }
    fn facets(&self) -> Facets {
        let state = if matches!(self.state, PolicyChangeState::Open {}) { OPEN } else { "ended" };
        Facets {
            alias: None,
            owner: self.change.flow.to_string(),
            state: state.to_owned(),
            due: self.expires_at.millis(),
        }
    }
}
