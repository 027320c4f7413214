//! The voter roll: the current accounts and delegations by which votes are counted.

use std::collections::BTreeSet;

use countersign_domain::identity::account::Account;
use countersign_domain::identity::delegation::Delegation;
use countersign_domain::keys::Keys;
use countersign_domain::primitives::id::{AccountId, DelegationId};
use countersign_domain::reviews::{Vote, VoterRoll};
use countersign_store::change::Draft;
use countersign_store::record::Stored;

use crate::error::Result;
use crate::reviews::Reviews;

/// A voter roll, with the rows that it was loaded from.
pub(crate) struct LoadedVoterRoll {
    pub(crate) roll: VoterRoll,
    people: Vec<Stored<Account>>,
    delegations: Vec<Stored<Delegation>>,
}

impl LoadedVoterRoll {
    /// Requires at commit time that all accounts and delegations are unchanged, and that no delegation has
    /// ended.
    pub(crate) fn rely(&self, draft: &mut Draft<'_>) {
        for person in &self.people {
            draft.require_unchanged(person);
        }
        for delegation in &self.delegations {
            draft.require_unchanged(delegation);
            if delegation.record.is_active_at(self.roll.now) {
                // A delegation can end by time alone, which changes no row.
                draft.before(delegation.record.ends_at);
            }
        }
    }
}

impl Reviews {
    /// Loads the voters, their delegators, the new voter and the person for whom that voter votes.
    pub(crate) async fn load_voter_roll(
        &self,
        keys: &Keys,
        votes: &[Vote],
        voter: &AccountId,
        by: Option<&DelegationId>,
    ) -> Result<LoadedVoterRoll> {
        // Withdrawn votes do not matter any more, so their voters need not be unchanged.
        let standing = votes.iter().filter(|it| it.stands());
        let absent = standing.clone().filter_map(|it| it.absent.as_ref());
        let by: BTreeSet<String> = absent.clone().map(|it| &it.delegation).chain(by).map(ToString::to_string).collect();
        let delegations = match by.len() {
            // Most reviews have no delegated votes, so the query is skipped.
            0 => Vec::new(),
            _ => self.core.reader(keys).get_many::<Delegation>(&by.into_iter().collect::<Vec<_>>()).await?,
        };
        let ids: BTreeSet<String> = standing
            .map(|it| &it.reviewer)
            .chain(absent.map(|it| &it.person))
            .chain(delegations.iter().map(|it| &it.record.from))
            .chain([voter])
            .map(ToString::to_string)
            .collect();
        let people = self.core.reader(keys).get_many::<Account>(&ids.into_iter().collect::<Vec<_>>()).await?;
        let roll = VoterRoll {
            people: people.iter().map(|it| self.identity.with_effective_status(it.record.clone())).collect(),
            delegations: delegations.iter().map(|it| it.record.clone()).collect(),
            now: self.core.now(),
        };
        Ok(LoadedVoterRoll { roll, people, delegations })
    }

    /// Loads the delegations to a viewer, and the accounts that these votes name.
    pub(crate) async fn voter_roll_for_viewer(
        &self,
        keys: &Keys,
        viewer: &AccountId,
        about: &[Vote],
        also: &[AccountId],
    ) -> Result<VoterRoll> {
        let now = self.core.now();
        let mut delegations = self.identity.received_delegations(keys, viewer, now).await?;
        let absent = about.iter().filter_map(|it| it.absent.as_ref());
        let others: BTreeSet<String> = absent
            .clone()
            .map(|it| &it.delegation)
            .filter(|it| !delegations.iter().any(|own| own.id == **it))
            .map(ToString::to_string)
            .collect();
        if !others.is_empty() {
            let others = self.core.reader(keys).get_many::<Delegation>(&others.into_iter().collect::<Vec<_>>()).await?;
            delegations.extend(others.into_iter().map(|it| it.record));
        }
        let ids: BTreeSet<String> = about
            .iter()
            .map(|it| &it.reviewer)
            .chain(absent.map(|it| &it.person))
            .chain(delegations.iter().map(|it| &it.from))
            .chain(also)
            .map(ToString::to_string)
            .collect();
        let people = match ids.len() {
            0 => Vec::new(),
            _ => self.core.reader(keys).get_many::<Account>(&ids.into_iter().collect::<Vec<_>>()).await?,
        };
        let people = people.into_iter().map(|it| self.identity.with_effective_status(it.record)).collect();
        Ok(VoterRoll { people, delegations, now })
    }
}
