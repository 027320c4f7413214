//! Delegations: a reviewer lets another reviewer vote on their behalf for a limited time.
//!
//! A delegation passes on one seat. The absent reviewer's groups decide which stages it covers, so delegations cannot
//! be chained. Both accounts are checked again whenever a vote is counted.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::account::{Account, PersonRole};
use crate::primitives::id::{AccountId, DelegationId, PasskeyId, PrincipalId};
use crate::primitives::time::Timestamp;

#[cfg(test)]
mod tests;

/// The right of one reviewer to vote on behalf of another.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Delegation {
    pub id: DelegationId,
    pub from: AccountId,
    pub from_name: String,
    /// The delegate.
    pub to: AccountId,
    pub to_name: String,
    /// The number among the delegations of one reviewer, from 1. It is unique, so of two concurrent delegations one
    /// comes first.
    pub number: u32,
    pub begins_at: Timestamp,
    pub ends_at: Timestamp,
    /// The passkey of the absent reviewer that confirmed it. `None` if they have no passkey.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirmed_by: Option<PasskeyId>,
    /// Set if it was ended early.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<DelegationEnd>,
}

/// The early end of a delegation.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DelegationEnd {
    pub at: Timestamp,
    pub by: PrincipalId,
    pub name: String,
}

/// The shortest delegation.
pub const LENGTH_MIN: Duration = Duration::from_secs(3600);

/// The longest delegation, for a long holiday. For a longer absence another reviewer should join the group.
pub const LENGTH_MAX: Duration = Duration::from_secs(30 * 24 * 3600);

/// The limit of simultaneous delegates per person. Delegates may be absent too, so one is not enough.
pub const GIVEN_MAX: usize = 3;

/// The limit of delegations per person within [`LENGTH_MAX`]. Each stays visible.
pub const GIVEN_LATELY_MAX: usize = 20;

/// The limit of people whom one delegate represents. Each page of the delegate checks all of them.
pub const RECEIVED_MAX: usize = 10;

#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum DelegationRejected {
    /// The person has no vote to delegate.
    #[error("you have no vote to delegate: only enabled reviewers in a group have one")]
    NoVote,
    #[error("a delegation needs another person: name a reviewer other than yourself")]
    Oneself,
    /// Auditors and administrators never vote.
    #[error("this account cannot vote for you: name an enabled reviewer")]
    Delegate,
    #[error("a delegation lasts between one hour and 30 days")]
    Length,
    #[error("you have an active delegation to this person: end it first")]
    Same,
    #[error("you have three active delegations, which is the limit: end one first")]
    TooManyGiven,
    #[error("you have created 20 delegations within 30 days, which is the limit: ask an administrator")]
    TooManyLately,
    #[error("this person votes for ten people already, which is the limit: name another reviewer")]
    TooManyReceived,
}

#[derive(Clone, Copy, Debug)]
pub struct DelegationRequest<'a> {
    pub from: &'a Account,
    pub to: &'a Account,
    /// The length, from now.
    pub length: Duration,
    /// All delegations that the person has given.
    pub given: &'a [Delegation],
    /// The active delegations that the delegate has received.
    pub received: &'a [Delegation],
}

impl DelegationRequest<'_> {
    pub fn check(&self, now: Timestamp) -> Result<(), DelegationRejected> {
        let votes = |it: &Account| it.role == PersonRole::Reviewer && !it.disabled;
        let standing = || self.given.iter().filter(|it| it.is_active_at(now));
        // Ended delegations count too. Otherwise ending them at once would bypass the limit.
        let lately = self.given.iter().filter(|it| now < it.begins_at.plus(LENGTH_MAX)).count();
        let checks = [
            (votes(self.from) && !self.from.groups.is_empty(), DelegationRejected::NoVote),
            (self.from.id != self.to.id, DelegationRejected::Oneself),
            (votes(self.to), DelegationRejected::Delegate),
            ((LENGTH_MIN..=LENGTH_MAX).contains(&self.length), DelegationRejected::Length),
            (!standing().any(|it| it.to == self.to.id), DelegationRejected::Same),
            (standing().count() < GIVEN_MAX, DelegationRejected::TooManyGiven),
            (lately < GIVEN_LATELY_MAX, DelegationRejected::TooManyLately),
            (
                self.received.iter().filter(|it| it.is_active_at(now)).count() < RECEIVED_MAX,
                DelegationRejected::TooManyReceived,
            ),
        ];
        // The first failed check is reported, so mistakes in the request come before limits.
        checks.into_iter().find(|(holds, _)| !holds).map_or(Ok(()), |(_, why)| Err(why))
    }

    /// Returns the number of the new delegation.
    pub fn number(&self) -> u32 {
        self.given.iter().map(|it| it.number).max().unwrap_or_default().saturating_add(1)
    }

    /// Returns the delegation with the passkey that confirmed it, if any.
    pub fn given(
        &self,
        id: DelegationId,
        confirmed_by: Option<PasskeyId>,
        now: Timestamp,
    ) -> Result<Delegation, DelegationRejected> {
        // The page may be old, so all conditions are checked again.
        self.check(now)?;
        Ok(Delegation {
            id,
            from: self.from.id.clone(),
            from_name: self.from.name.clone(),
            to: self.to.id.clone(),
            to_name: self.to.name.clone(),
            number: self.number(),
            begins_at: now,
            ends_at: now.plus(self.length),
            confirmed_by,
            ended: None,
        })
    }
}

impl Delegation {
    /// Checks that it is active. An ended delegation stays ended, even if a clock was set back.
    pub fn is_active_at(&self, now: Timestamp) -> bool {
        self.lasts_at(now) && self.begins_at <= now
    }

    /// Checks that it has not ended. It counts before its start too, for a replica whose clock is behind.
    pub fn lasts_at(&self, now: Timestamp) -> bool {
        self.ended.is_none() && now < self.ends_at
    }

    /// Checks that a person may end it: the absent reviewer, the delegate or an administrator.
    pub fn may_be_ended_by(&self, person: &Account) -> bool {
        self.from == person.id || self.to == person.id || person.administers()
    }
}
