//! The people who can decide a review now, and the reasons why others cannot, for pages and the API.

use countersign_domain::identity::account::{Account, PersonRole};
use countersign_domain::primitives::id::ReviewId;
use countersign_domain::reviews::{CannotDecide, Hold, VoterRoll, VotingSeat};
use countersign_store::record::Stored;

use crate::error::Result;
use crate::platform::core::ThreadContext;
use crate::reviews::Reviews;

#[derive(Clone, Debug)]
pub struct EligibleVoter {
    pub account: Account,
    /// The seats in which the person can vote now, or the reason why there is none.
    pub can_decide: std::result::Result<Vec<VotingSeat>, CannotDecide>,
}

/// The maximum length of the list.
const ELECTORS_MAX: usize = 500;

impl Reviews {
    /// Returns the reviewers in the groups of a review and their active delegates by name, with whether each
    /// can decide now.
    pub async fn electorate(&self, review: &ReviewId) -> Result<Vec<EligibleVoter>> {
        let (keys, now) = (self.core.keys()?, self.core.now());
        let hold: Stored<Hold> = self.core.need(&keys, review.as_str(), "review").await?;
        let thread = self.core.thread(&keys, &hold.record.thread).await?;
        let standing = self.core.standing(&keys, thread).await?;
        let delegations = self.identity.active_delegations(&keys).await?;
        let roll = VoterRoll { people: self.identity.accounts_all(&keys).await?, delegations, now };
        // The groups of a passed escalation count too.
        let in_groups = |it: &Account| hold.record.asks(&it.groups, now);
        let asked = |it: &Account| in_groups(it) || roll.away_for(&it.id).any(|(_, away)| in_groups(away));
        let mut people: Vec<Account> =
            roll.people.iter().filter(|it| it.role == PersonRole::Reviewer && asked(it)).cloned().collect();
        // Sorted before the cut, so that the shortened list is stable.
        people.sort_by(|one, other| one.name.cmp(&other.name));
        people.truncate(ELECTORS_MAX);
        let elector = |account: Account| {
            let can_decide = can_decide(&standing, &hold.record, &account, &roll);
            EligibleVoter { account, can_decide }
        };
        Ok(people.into_iter().map(elector).collect())
    }
}

/// Returns the seats in which a person can vote now, or the reason why there is none. The vote itself is
/// judged again inside its transaction.
pub(crate) fn can_decide(
    standing: &ThreadContext,
    hold: &Hold,
    person: &Account,
    roll: &VoterRoll,
) -> std::result::Result<Vec<VotingSeat>, CannotDecide> {
    let (thread, now) = (&standing.thread.record, roll.now);
    if !hold.is_open(now) || thread.closed.is_some() {
        return Err(CannotDecide::Ended);
    }
    // A permanent reason is returned before a temporary one such as a halt.
    let places = hold.places(person, roll)?;
    if standing.proposing_halted() {
        return Err(CannotDecide::Halted);
    }
    if thread.live_write(now).is_some() { Err(CannotDecide::Writing) } else { Ok(places) }
}
