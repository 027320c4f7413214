//! Several reviews decided at once: put together where they are alike, and then voted on one by one.
//!
//! Each is counted by the same function as a vote by itself, with its own digest and nonce, in a transaction of its own,
//! and gives a receipt of its own. What becomes of one is nothing to the others.

use super::InboxItem;
use crate::domain::identity::account::Account;
use crate::domain::primitives::id::{AccountId, ReviewId};
use crate::domain::reviews::{
    Ballot, BulkGroupKey, CHANGES_AMONG_SEVERAL_MAX, CannotDecide, Hold, NotBulkDecidable, SEVERAL_MAX,
};
use crate::service::Service;
use crate::service::error::{Error, Result};
use crate::service::reviews::details::ReviewFacts;
use crate::service::reviews::vote::VoteOutcome;
use crate::store::record::Stored;

/// Reviews that somebody wants to decide at once.
pub struct BulkGroups {
    /// Those that they can, put together as they are alike, each in the order in which they were asked for.
    pub alike: Vec<Vec<ReviewFacts>>,
    pub left_out: Vec<(ReviewFacts, BulkExclusion)>,
}

/// Why a review is not among those that are decided at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BulkExclusion {
    /// The person cannot decide it now.
    CannotDecide(CannotDecide),
    Alone(NotBulkDecidable),
    /// The person has no place of their own there: whose they take is said on its own page.
    ForAnother,
    /// An earlier write's outcome is unknown, which has to be said to know by itself.
    OutcomeUnknown,
}

impl Service {
    /// What somebody wants to decide at once, everything that each is about, as their pages would show it. The work for
    /// one is that of its own page, and there are at most [`SEVERAL_MAX`].
    pub async fn sorted(&self, reviews: &[ReviewId], viewer: &Account) -> Result<BulkGroups> {
        check_number(reviews.len())?;
        let mut sorted = BulkGroups { alike: Vec::new(), left_out: Vec::new() };
        let mut shapes: Vec<BulkGroupKey> = Vec::new();
        for review in reviews {
            let facts = self.review(review, viewer).await?;
            if let Some(why) = left_out(&facts) {
                sorted.left_out.push((facts, why));
                continue;
            }
            let shape = BulkGroupKey::of(&facts.hold, &facts.transition, &facts.diff);
            match shapes.iter().position(|it| *it == shape) {
                Some(at) => sorted.alike[at].push(facts),
                None => {
                    shapes.push(shape);
                    sorted.alike.push(vec![facts]);
                }
            }
        }
        Ok(sorted)
    }

    /// Counts one person's votes, one after the other. One that does not count stops none of the others.
    pub async fn vote_on_reviews(
        &self,
        voter: &AccountId,
        ballots: &[(ReviewId, Ballot)],
    ) -> Result<Vec<Result<VoteOutcome>>> {
        check_number(ballots.len())?;
        let mut voted = Vec::with_capacity(ballots.len());
        for (review, ballot) in ballots {
            voted.push(self.vote_in_bulk(voter, review, ballot).await);
        }
        Ok(voted)
    }

    /// How these reviews stand, as lists tell it, in their order.
    pub async fn several(&self, reviews: &[ReviewId], viewer: &Account) -> Result<Vec<InboxItem>> {
        check_number(reviews.len())?;
        let keys = self.keys()?;
        let ids: Vec<String> = reviews.iter().map(ToString::to_string).collect();
        let found: Vec<Stored<Hold>> = self.reader(&keys).get_many(&ids).await?;
        let find = |id: &ReviewId| found.iter().find(|it| it.record.id == *id).map(|it| it.record.clone());
        let holds: Option<Vec<Hold>> = reviews.iter().map(find).collect();
        let roll = self.voter_roll_for_viewer(&keys, &viewer.id, &[], &[]).await?;
        self.inbox_items(&keys, (viewer, &roll), holds.ok_or(Error::NotFound("review"))?).await
    }
}

fn check_number(number: usize) -> Result<()> {
    match number {
        0 => Err(Error::invalid("/review", "tick the reviews first that are to be decided")),
        1..=SEVERAL_MAX => Ok(()),
        _ => Err(Error::invalid("/review", "at most 50 reviews are decided at once")),
    }
}

fn left_out(facts: &ReviewFacts) -> Option<BulkExclusion> {
    match &facts.can_decide {
        Err(why) => return Some(BulkExclusion::CannotDecide(*why)),
        Ok(places) if places.iter().all(|it| it.absent.is_some()) => return Some(BulkExclusion::ForAnother),
        Ok(_) => {}
    }
    if let Some(why) = facts.hold.alone() {
        return Some(BulkExclusion::Alone(why));
    }
    if facts.diff.len() > CHANGES_AMONG_SEVERAL_MAX {
        return Some(BulkExclusion::Alone(NotBulkDecidable::Large));
    }
    facts.outcome_unknown.then_some(BulkExclusion::OutcomeUnknown)
}
