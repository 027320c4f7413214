//! Who can decide a review now, and why the others cannot: worked out here, and told on pages and by the API.

use super::error::Result;
use super::{Service, Standing};
use crate::domain::account::{Account, PersonRole};
use crate::domain::id::ReviewId;
use crate::domain::keys::Keys;
use crate::domain::review::{CannotDecide, Hold};
use crate::domain::time::Timestamp;
use crate::domain::transition::Transition;
use crate::store::record::Stored;

/// Somebody who is asked.
#[derive(Clone, Debug)]
pub struct Elector {
    /// Who.
    pub account: Account,
    /// Which stages they may decide now, or why none.
    pub can_decide: std::result::Result<Vec<u32>, CannotDecide>,
}

/// More people than can be meant by one question; an answer has a bound.
const ELECTORS_MAX: usize = 500;

impl Service {
    /// Who voted, and who made the edit if it is one, as they stand now.
    pub(super) async fn people_about(&self, keys: &Keys, hold: &Hold, of: &Transition) -> Result<Vec<Account>> {
        let people = hold.votes.iter().map(|vote| &vote.reviewer).chain(&of.editor);
        let ids: Vec<String> = people.map(ToString::to_string).collect();
        let found = self.reader(keys).get_many::<Account>(&ids).await?;
        Ok(found.into_iter().map(|it| it.record).collect())
    }

    /// The reviewers of the groups that a review asks, by name, and whether each can decide it now.
    pub async fn electorate(&self, review: &ReviewId) -> Result<Vec<Elector>> {
        let (keys, now) = (self.keys()?, self.now());
        let hold: Stored<Hold> = self.need(&keys, review.as_str(), "review").await?;
        let thread = self.thread(&keys, &hold.record.thread).await?;
        let standing = self.standing(&keys, thread).await?;
        let mut people = self.accounts_all(&keys).await?;
        let asked = |it: &Account| hold.record.stages.iter().any(|stage| !stage.groups.is_disjoint(&it.groups));
        people.retain(|it| it.role == PersonRole::Reviewer && asked(it));
        people.sort_by(|one, other| one.name.cmp(&other.name));
        people.truncate(ELECTORS_MAX);
        let elector = |account: Account| {
            let can_decide = can_decide(&standing, &hold.record, &account, now);
            Elector { account, can_decide }
        };
        Ok(people.into_iter().map(elector).collect())
    }
}

/// Which stages a person may decide now, or why none. The vote itself is judged once more, inside its transaction.
pub(super) fn can_decide(
    standing: &Standing,
    hold: &Hold,
    person: &Account,
    now: Timestamp,
) -> std::result::Result<Vec<u32>, CannotDecide> {
    let thread = &standing.thread.record;
    if !hold.is_open(now) || thread.closed.is_some() {
        return Err(CannotDecide::Ended);
    }
    // Who may not decide at all is told that, whatever else stands in the way for a while.
    let stages = hold.eligible(person)?;
    if standing.proposing_halted() {
        return Err(CannotDecide::Halted);
    }
    if thread.live_write(now).is_some() { Err(CannotDecide::Writing) } else { Ok(stages) }
}
