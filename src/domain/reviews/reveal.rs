//! Revealing: who looked at a hidden value, at which, and why.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::Hold;
use crate::domain::identity::account::Account;
use crate::domain::json::pointer::Pointer;
use crate::domain::primitives::id::{AccountId, GroupName};
use crate::domain::primitives::time::Timestamp;

/// One look at one hidden value.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reveal {
    pub person: AccountId,
    /// Their name when they looked.
    pub name: String,
    /// As whose member: those of their groups that may look.
    pub groups: BTreeSet<GroupName>,
    pub pointer: Pointer,
    /// Why, without what the policy's detectors find.
    pub reason: String,
    pub at: Timestamp,
}

pub const REVEAL_REASON_CHARS_MAX: usize = 500;

/// Looks are kept in the hold's row, which everybody who opens the review reads.
pub const REVEALS_MAX: usize = 100;

/// Why somebody may not look.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RevealRejected {
    /// The account was disabled.
    #[error("the account is disabled")]
    Disabled,
    /// The policy does not name a group of theirs.
    #[error("the policy lets none of your groups look at hidden values")]
    Group,
    /// It was looked so often that no more is written down, and so no more is shown.
    #[error("hidden values of this review were looked at {REVEALS_MAX} times; no more can be recorded")]
    TooMany,
}

/// Those of a person's groups that may look at hidden values; an error if there is none.
pub fn groups_to_reveal_to(
    reveal_to: &BTreeSet<GroupName>,
    person: &Account,
) -> Result<BTreeSet<GroupName>, RevealRejected> {
    if person.disabled {
        return Err(RevealRejected::Disabled);
    }
    let groups: BTreeSet<GroupName> = reveal_to.intersection(&person.groups).cloned().collect();
    if groups.is_empty() { Err(RevealRejected::Group) } else { Ok(groups) }
}

impl Hold {
    /// The hold with one more look. How it stands does not matter: what was decided may be looked into.
    pub fn revealed(mut self, reveal: Reveal) -> Result<Self, RevealRejected> {
        if self.reveals.len() >= REVEALS_MAX {
            return Err(RevealRejected::TooMany);
        }
        self.reveals.push(reveal);
        Ok(self)
    }
}
