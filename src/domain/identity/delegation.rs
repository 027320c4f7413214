//! Delegations: for a time, a person lets another vote in their place.
//!
//! A delegation hands on one place and no more. Whose groups count is said by the one who is away, so that nothing goes
//! from hand to hand; and both are looked at as they stand when a vote is counted.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::account::{Account, PersonRole};
use crate::domain::primitives::id::{AccountId, DelegationId, PasskeyId, PrincipalId};
use crate::domain::primitives::time::Timestamp;

#[cfg(test)]
mod tests;

/// That one person votes in another's place.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Delegation {
    pub id: DelegationId,
    pub from: AccountId,
    pub from_name: String,
    /// Who votes in their place.
    pub to: AccountId,
    pub to_name: String,
    /// Which of its giver's, from 1. No two have the same, so that of two that are given at once one comes first.
    pub number: u32,
    pub begins_at: Timestamp,
    /// Until when, at the latest.
    pub ends_at: Timestamp,
    /// The giver's passkey that confirmed it; none where they have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirmed_by: Option<PasskeyId>,
    /// Set when somebody ended it before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<DelegationEnd>,
}

/// Who ended a delegation before its time.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DelegationEnd {
    pub at: Timestamp,
    pub by: PrincipalId,
    pub name: String,
}

/// An afternoon is the least that is worth naming somebody for.
pub const LENGTH_MIN: Duration = Duration::from_secs(3600);

/// A long holiday. Whoever is away for longer leaves the group, and somebody else joins it.
pub const LENGTH_MAX: Duration = Duration::from_secs(30 * 24 * 3600);

/// Delegates of one person at a time: the one who is asked first, and those who are away themselves.
pub const GIVEN_MAX: usize = 3;

/// How many one person gives within [`LENGTH_MAX`]. Each stays to be read.
pub const GIVEN_LATELY_MAX: usize = 20;

/// People whom one person stands in for at a time; each page of theirs looks at all of them.
pub const RECEIVED_MAX: usize = 10;

#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum DelegationRejected {
    /// There is nothing to hand on.
    #[error("only reviewers who are in a group and can sign in have a vote to hand on")]
    NoVote,
    #[error("name somebody else than yourself")]
    Oneself,
    /// Auditors and administrators never vote.
    #[error("only a reviewer who can sign in votes in your place")]
    Delegate,
    #[error("between an hour and thirty days")]
    Length,
    #[error("you have named them already; end that first")]
    Same,
    #[error("three people at a time stand in for you at most; end one first")]
    TooManyGiven,
    /// Too many one after another.
    #[error("you have named others twenty times within thirty days; an administrator can help")]
    TooManyLately,
    /// They stand in for too many.
    #[error("they stand in for ten people already; name somebody else")]
    TooManyReceived,
}

#[derive(Clone, Copy, Debug)]
pub struct DelegationRequest<'a> {
    pub from: &'a Account,
    pub to: &'a Account,
    /// For how long, from now on.
    pub length: Duration,
    /// Everything that they have given so far.
    pub given: &'a [Delegation],
    /// What the other has received and still has.
    pub received: &'a [Delegation],
}

impl DelegationRequest<'_> {
    pub fn check(&self, now: Timestamp) -> Result<(), DelegationRejected> {
        let votes = |it: &Account| it.role == PersonRole::Reviewer && !it.disabled;
        let standing = || self.given.iter().filter(|it| it.is_active_at(now));
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
        checks.into_iter().find(|(holds, _)| !holds).map_or(Ok(()), |(_, why)| Err(why))
    }

    /// Which of its giver's it would be.
    pub fn number(&self) -> u32 {
        self.given.iter().map(|it| it.number).max().unwrap_or_default().saturating_add(1)
    }

    /// The delegation, confirmed by that passkey if by one.
    pub fn given(
        &self,
        id: DelegationId,
        confirmed_by: Option<PasskeyId>,
        now: Timestamp,
    ) -> Result<Delegation, DelegationRejected> {
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
    /// Whether it stands now. What was ended stays so, whatever a clock says that went back since.
    pub fn is_active_at(&self, now: Timestamp) -> bool {
        self.lasts_at(now) && self.begins_at <= now
    }

    /// Whether it stands now, or will by a clock that is behind the one it was made by.
    pub fn lasts_at(&self, now: Timestamp) -> bool {
        self.ended.is_none() && now < self.ends_at
    }

    /// Whether this person may end it: whose place it is, who has it, and whoever runs the gateway.
    pub fn may_be_ended_by(&self, person: &Account) -> bool {
        self.from == person.id || self.to == person.id || person.administers()
    }
}
