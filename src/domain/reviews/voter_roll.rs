//! The roll: people, and who votes in whose place, as they stand at one moment. Votes are counted by it.

use serde::{Deserialize, Serialize};

use crate::domain::identity::account::Account;
use crate::domain::identity::delegation::Delegation;
use crate::domain::primitives::id::{AccountId, DelegationId};
use crate::domain::primitives::time::Timestamp;

/// People and delegations as they stand at one moment.
#[derive(Clone, Debug)]
pub struct VoterRoll {
    /// Everybody whom it is about.
    pub people: Vec<Account>,
    /// Who votes in whose place.
    pub delegations: Vec<Delegation>,
    pub now: Timestamp,
}

/// In whose place somebody votes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DelegatedFrom {
    pub person: AccountId,
    pub name: String,
    pub delegation: DelegationId,
}

/// One way in which a person may vote.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VotingSeat {
    /// In which stage, from 0.
    pub stage: u32,
    /// In whose place; their own if nobody's.
    pub absent: Option<DelegatedFrom>,
}

impl VoterRoll {
    /// People alone, of whom nobody votes in another's place.
    pub const fn of(people: Vec<Account>, now: Timestamp) -> Self {
        Self { people, delegations: Vec::new(), now }
    }

    pub fn person(&self, id: &AccountId) -> Option<&Account> {
        self.people.iter().find(|it| it.id == *id)
    }

    /// Those who are away and have named this person, by delegations that stand.
    pub fn away_for(&self, person: &AccountId) -> impl Iterator<Item = (&Delegation, &Account)> {
        let named = self.delegations.iter().filter(|it| it.to == *person && it.is_active_at(self.now));
        named.filter_map(|it| Some((it, self.person(&it.from)?)))
    }
}

impl VotingSeat {
    /// By which delegation; none for one's own place.
    pub fn delegation(&self) -> Option<&DelegationId> {
        self.absent.as_ref().map(|it| &it.delegation)
    }
}

impl DelegatedFrom {
    /// Who is away by a delegation.
    pub fn by(delegation: &Delegation, person: &Account) -> Self {
        Self { person: person.id.clone(), name: person.name.clone(), delegation: delegation.id.clone() }
    }
}
