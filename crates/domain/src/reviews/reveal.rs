//! Reveals: the record of each reading of a redacted value.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::Hold;
use crate::identity::account::Account;
use crate::json::pointer::Pointer;
use crate::primitives::id::{AccountId, GroupName};
use crate::primitives::time::Timestamp;

/// One reveal of one redacted value.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reveal {
    pub person: AccountId,
    /// The reader's name at that time.
    pub name: String,
    /// The reader's groups that may reveal values.
    pub groups: BTreeSet<GroupName>,
    pub pointer: Pointer,
    /// The reason, without matches of the policy's detectors.
    pub reason: String,
    pub at: Timestamp,
}

pub const REVEAL_REASON_CHARS_MAX: usize = 500;

/// The limit of reveals per review. They are stored in the review's row, which every reader of the review loads.
pub const REVEALS_MAX: usize = 100;

/// The reason why a reveal is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RevealRejected {
    #[error("the account is disabled")]
    Disabled,
    #[error("the policy allows none of your groups to reveal redacted values")]
    Group,
    /// The record is full. A reveal that cannot be recorded is refused.
    #[error("the redacted values of this review were revealed {REVEALS_MAX} times; no more reveals can be recorded")]
    TooMany,
}

/// Returns a person's groups that may reveal redacted values, or an error if there is none.
pub fn groups_to_reveal_to(
    reveal_to: &BTreeSet<GroupName>,
    person: &Account,
) -> Result<BTreeSet<GroupName>, RevealRejected> {
    // The account may have been disabled after its session began.
    if person.disabled {
        return Err(RevealRejected::Disabled);
    }
    let groups: BTreeSet<GroupName> = reveal_to.intersection(&person.groups).cloned().collect();
    if groups.is_empty() { Err(RevealRejected::Group) } else { Ok(groups) }
}

impl Hold {
    /// Returns the review with one more reveal. A decided review allows reveals too.
    pub fn revealed(mut self, reveal: Reveal) -> Result<Self, RevealRejected> {
        // Each reveal must be recorded, so a full record refuses further ones.
        if self.reveals.len() >= REVEALS_MAX {
            return Err(RevealRejected::TooMany);
        }
        self.reveals.push(reveal);
        Ok(self)
    }
}
