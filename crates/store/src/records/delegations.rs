//! Records of delegations: owned by the delegate, and numbered for the absent reviewer.

use countersign_domain::identity::delegation::Delegation;
use countersign_domain::primitives::id::AccountId;

use super::OPEN;
use crate::record::Record;
use crate::row::{Facets, Table};

/// Returns the alias of a delegation. The delegations of one person share a prefix and sort in the order in which they
/// were given.
pub fn delegation_alias(from: &AccountId, number: u32) -> String {
    format!("{}{number:010}", delegations_from(from))
}

/// Returns the prefix of the aliases of a person's delegations.
pub fn delegations_from(from: &AccountId) -> String {
    format!("{from}/")
}

impl Record for Delegation {
    const TABLE: Table = Table::Delegations;
    fn id(&self) -> String {
        self.id.to_string()
    }
    fn facets(&self) -> Facets {
        let state = if self.ended.is_none() { OPEN } else { "ended" };
        Facets {
            alias: Some(delegation_alias(&self.from, self.number)),
            owner: self.to.to_string(),
            state: state.to_owned(),
            due: self.ends_at.millis(),
        }
    }
}
