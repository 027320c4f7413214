//! The voter roll: accounts and delegations at one time. Votes are counted by it.

use serde::{Deserialize, Serialize};

use crate::identity::account::Account;
use crate::identity::delegation::Delegation;
use crate::primitives::id::{AccountId, DelegationId};
use crate::primitives::time::Timestamp;

/// Accounts and delegations at one time.
#[derive(Clone, Debug)]
pub struct VoterRoll {
    /// All accounts that the decision concerns.
    pub people: Vec<Account>,
    pub delegations: Vec<Delegation>,
    pub now: Timestamp,
}

/// The absent reviewer on whose behalf a delegate votes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DelegatedFrom {
    pub person: AccountId,
    pub name: String,
    pub delegation: DelegationId,
}

/// One seat in which a person may vote.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VotingSeat {
    /// The stage, from 0.
    pub stage: u32,
    /// The absent reviewer, or `None` for the person's own seat.
    pub absent: Option<DelegatedFrom>,
}

impl VoterRoll {
    /// Returns a roll without delegations.
    pub const fn of(people: Vec<Account>, now: Timestamp) -> Self {
        Self { people, delegations: Vec::new(), now }
    }

    pub fn person(&self, id: &AccountId) -> Option<&Account> {
        self.people.iter().find(|it| it.id == *id)
    }

    /// Returns the absent reviewers with an active delegation to this person.
    pub fn away_for(&self, person: &AccountId) -> impl Iterator<Item = (&Delegation, &Account)> {
        let named = self.delegations.iter().filter(|it| it.to == *person && it.is_active_at(self.now));
        named.filter_map(|it| Some((it, self.person(&it.from)?)))
    }
}

impl VotingSeat {
    /// Returns the delegation, or `None` for the person's own seat.
    pub fn delegation(&self) -> Option<&DelegationId> {
        self.absent.as_ref().map(|it| &it.delegation)
    }
}

impl DelegatedFrom {
    /// Returns the absent reviewer of a delegation.
    pub fn by(delegation: &Delegation, person: &Account) -> Self {
        Self { person: person.id.clone(), name: person.name.clone(), delegation: delegation.id.clone() }
    }
}
