//! Records of interrupts: owned by their flow, and found by source and digest.

use countersign_domain::interrupts::{Interrupt, InterruptState, SignedPostRecord};
use countersign_domain::primitives::id::PrincipalId;

use super::OPEN;
use crate::record::Record;
use crate::row::{Facets, Table};

/// Returns the alias of an interrupt. It makes an interrupt unique per source, digest and attempt.
pub fn interrupt_alias(source: &PrincipalId, attempt: u32, digest: &str) -> String {
    format!("{source}/{attempt}/{digest}")
}

pub fn post_id(source: &PrincipalId, webhook_id: &str) -> String {
    format!("{source}/{webhook_id}")
}

impl Record for SignedPostRecord {
    const TABLE: Table = Table::Posts;
    fn id(&self) -> String {
        post_id(&self.source, &self.webhook_id)
    }
    fn facets(&self) -> Facets {
        Facets::default()
    }
}

impl Record for Interrupt {
    const TABLE: Table = Table::Interrupts;
    fn id(&self) -> String {
        self.id.to_string()
    }
    fn facets(&self) -> Facets {
        let state = if matches!(self.state, InterruptState::Open {}) { OPEN } else { "ended" };
        let asserted = &self.asserted;
        Facets {
            alias: Some(interrupt_alias(&self.source.token, asserted.attempt, &asserted.transition_digest)),
            owner: self.flow.to_string(),
            state: state.to_owned(),
            due: self.expires_at.millis(),
        }
    }
}
