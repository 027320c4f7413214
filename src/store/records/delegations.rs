//! Delegations: kept under whoever votes in another's place, and numbered for the other.

use super::OPEN;
use crate::domain::identity::delegation::Delegation;
use crate::domain::primitives::id::AccountId;
use crate::store::record::Record;
use crate::store::row::{Facets, Table};

/// The alias of a person's delegation. All that one person gave begin alike, in the order in which they were given.
pub fn delegation_alias(from: &AccountId, number: u32) -> String {
    format!("{}{number:010}", delegations_from(from))
}

/// What the aliases of everything that a person gave begin with.
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
