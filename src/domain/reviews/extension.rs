//! Extending: more time for a decision, given by whoever is asked, with a reason, and not for ever.

use serde::{Deserialize, Serialize};

use super::{Hold, HoldState, Ineligible, VoteRejected};
use crate::domain::chain::hash::Digest;
use crate::domain::identity::account::Account;
use crate::domain::primitives::id::AccountId;
use crate::domain::primitives::time::Timestamp;

/// That a deadline was moved.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Extension {
    pub person: AccountId,
    pub name: String,
    /// Why, without what is hidden.
    pub reason: String,
    pub was: Timestamp,
    pub until: Timestamp,
    pub at: Timestamp,
}

/// Each is shown on the page; who needs more of them needs another policy.
pub const EXTENSIONS_MAX: usize = 5;

pub const EXTENSION_REASON_CHARS_MAX: usize = 500;

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExtensionRequest {
    /// For exactly which transition.
    pub transition: Digest,
    /// The deadline that they saw: a form that is sent twice moves it once.
    pub deadline: Timestamp,
    /// The deadline that they want.
    pub until: Timestamp,
    pub reason: String,
}

#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ExtensionRejected {
    /// The review cannot be decided by this person, or by nobody any more.
    #[error("{0}")]
    Vote(#[from] VoteRejected),
    /// Somebody else was faster, or it is the same form again.
    #[error("the deadline was moved meanwhile; look again")]
    Moved,
    #[error("the new deadline has to be later than the one there is")]
    NotLater,
    #[error("a deadline is moved to at most twice the time that the policy gives")]
    TooLate,
    #[error("a deadline is moved at most {EXTENSIONS_MAX} times")]
    TooOften,
}

impl Hold {
    /// The deadline as the policy set it.
    pub fn first_deadline(&self) -> Timestamp {
        self.extensions.first().map_or(self.expires_at, |it| it.was)
    }

    /// The latest to which it can be moved: a hold pauses its thread all the while.
    pub fn latest_deadline(&self) -> Timestamp {
        let first = self.first_deadline();
        first.plus(self.opened_at.until(first))
    }

    /// Why a person may not move the deadline. Whoever is asked may, having voted or not.
    pub fn may_extend(&self, person: &Account, now: Timestamp) -> Result<(), Ineligible> {
        self.jury(now).stages_of(person).map(drop)
    }

    /// The hold with a later deadline.
    pub fn extended(
        mut self,
        ask: ExtensionRequest,
        person: &Account,
        now: Timestamp,
    ) -> Result<Self, ExtensionRejected> {
        if !matches!(self.state, HoldState::Open {}) {
            return Err(VoteRejected::Ended.into());
        }
        if now >= self.expires_at {
            return Err(VoteRejected::Expired.into());
        }
        if ask.transition != self.transition {
            return Err(VoteRejected::Digest.into());
        }
        self.may_extend(person, now).map_err(VoteRejected::from)?;
        if ask.deadline != self.expires_at {
            return Err(ExtensionRejected::Moved);
        }
        if ask.until <= self.expires_at {
            return Err(ExtensionRejected::NotLater);
        }
        if ask.until > self.latest_deadline() {
            return Err(ExtensionRejected::TooLate);
        }
        if self.extensions.len() >= EXTENSIONS_MAX {
            return Err(ExtensionRejected::TooOften);
        }
        self.extensions.push(Extension {
            person: person.id.clone(),
            name: person.name.clone(),
            reason: ask.reason,
            was: self.expires_at,
            until: ask.until,
            at: now,
        });
        self.expires_at = ask.until;
        Ok(self)
    }
}
