//! Extensions: a reviewer moves the deadline of a review, with a reason and within limits.

use serde::{Deserialize, Serialize};

use super::{Hold, HoldState, Ineligible, VoteRejected};
use crate::chain::hash::Digest;
use crate::identity::account::Account;
use crate::primitives::id::AccountId;
use crate::primitives::time::Timestamp;

/// A moved deadline.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Extension {
    pub person: AccountId,
    pub name: String,
    /// The reason, without redacted values.
    pub reason: String,
    pub was: Timestamp,
    pub until: Timestamp,
    pub at: Timestamp,
}

/// The limit of extensions per review. A review that needs more needs another policy.
pub const EXTENSIONS_MAX: usize = 5;

pub const EXTENSION_REASON_CHARS_MAX: usize = 500;

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExtensionRequest {
    /// The transition of the review that the reviewer saw.
    pub transition: Digest,
    /// The deadline that the reviewer saw. It makes a repeated form submission a single extension.
    pub deadline: Timestamp,
    /// The requested deadline.
    pub until: Timestamp,
    pub reason: String,
}

#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ExtensionRejected {
    /// The person cannot decide the review, or it has ended.
    #[error("{0}")]
    Vote(#[from] VoteRejected),
    /// Another reviewer was faster, or the form was sent twice.
    #[error("the deadline has been moved since you opened the page; open the review again")]
    Moved,
    #[error("the new deadline must be later than the current deadline")]
    NotLater,
    #[error("the new deadline is too late: at most twice the policy's time is possible")]
    TooLate,
    #[error("the limit is reached: a deadline can be moved at most {EXTENSIONS_MAX} times")]
    TooOften,
}

impl Hold {
    /// Returns the original deadline of the policy.
    pub fn first_deadline(&self) -> Timestamp {
        // The limit counts from the policy's deadline. Otherwise each extension would raise it.
        self.extensions.first().map_or(self.expires_at, |it| it.was)
    }

    /// Returns the latest possible deadline. It is limited because a pending review pauses its thread.
    pub fn latest_deadline(&self) -> Timestamp {
        let first = self.first_deadline();
        first.plus(self.opened_at.until(first))
    }

    /// Checks that a person may move the deadline. Everyone who can decide the review may, before and after their vote.
    pub fn may_extend(&self, person: &Account, now: Timestamp) -> Result<(), Ineligible> {
        self.jury(now).stages_of(person).map(drop)
    }

    /// Returns the review with a later deadline.
    pub fn extended(
        mut self,
        ask: ExtensionRequest,
        person: &Account,
        now: Timestamp,
    ) -> Result<Self, ExtensionRejected> {
        if !matches!(self.state, HoldState::Open {}) {
            return Err(VoteRejected::Ended.into());
        }
        // A review that has expired stays expired, even before a worker has recorded it.
        if now >= self.expires_at {
            return Err(VoteRejected::Expired.into());
        }
        if ask.transition != self.transition {
            return Err(VoteRejected::Digest.into());
        }
        self.may_extend(person, now).map_err(VoteRejected::from)?;
        // The reviewer decided about another deadline.
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
