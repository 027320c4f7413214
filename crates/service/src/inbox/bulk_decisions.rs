//! Decides several reviews at once: groups similar reviews, and then counts each vote separately.
//!
//! Each vote is counted by the same function as a single vote. It has its own digest, nonce, transaction and receipt. A
//! failed vote does not affect the others.

use countersign_domain::identity::account::Account;
use countersign_domain::json::pointer::Pointer;
use countersign_domain::primitives::id::{AccountId, ReviewId};
use countersign_domain::reviews::{
    Ballot, BulkGroupKey, CHANGES_AMONG_SEVERAL_MAX, CannotDecide, Hold, NotBulkDecidable, SEVERAL_MAX,
};
use countersign_store::record::Stored;

use crate::error::{Error, Result};
use crate::inbox::Inbox;
use crate::inbox::list::InboxItem;
use crate::reviews::details::ReviewFacts;
use crate::reviews::vote::VoteOutcome;
use crate::threads::tool_call_view::RedactedToolCall;

/// Reviews that a person wants to decide at once.
pub struct BulkGroups {
    /// Reviews that the person can decide, grouped by similarity, each group in the requested order.
    pub alike: Vec<Vec<ReviewFacts>>,
    pub left_out: Vec<(ReviewFacts, BulkExclusion)>,
}

/// Reason why a review cannot be decided in bulk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BulkExclusion {
    /// The person cannot decide it now.
    CannotDecide(CannotDecide),
    Alone(NotBulkDecidable),
    /// The person can vote only on behalf of another reviewer. That choice is made on the page of the review.
    ForAnother,
    /// The outcome of an earlier write is unknown. The person has to confirm that separately.
    OutcomeUnknown,
}

impl Inbox {
    /// Returns the selected reviews in groups, with all facts that their own pages show. Each costs as much as its
    /// page, so at most [`SEVERAL_MAX`] are allowed.
    pub async fn sorted(&self, reviews: &[ReviewId], viewer: &Account) -> Result<BulkGroups> {
        check_number(reviews.len())?;
        let mut sorted = BulkGroups { alike: Vec::new(), left_out: Vec::new() };
        let mut shapes: Vec<BulkGroupKey> = Vec::new();
        for review in reviews {
            // Loaded like the page of the review, so that a bulk decision shows no less.
            let facts = self.reviews.review(review, viewer).await?;
            if let Some(why) = left_out(&facts) {
                sorted.left_out.push((facts, why));
                continue;
            }
            let shape = BulkGroupKey::of(&facts.hold, &facts.transition, &facts.diff, argument_places(&facts));
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

    /// Counts the votes of one person one after another. A rejected vote does not stop the others.
    pub async fn vote_on_reviews(
        &self,
        voter: &AccountId,
        ballots: &[(ReviewId, Ballot)],
    ) -> Result<Vec<Result<VoteOutcome>>> {
        check_number(ballots.len())?;
        let mut voted = Vec::with_capacity(ballots.len());
        for (review, ballot) in ballots {
            // One after another, because votes on the same thread would conflict.
            voted.push(self.reviews.vote_in_bulk(voter, review, ballot).await);
        }
        Ok(voted)
    }

    /// Returns these reviews as list items, in the same order.
    pub async fn several(&self, reviews: &[ReviewId], viewer: &Account) -> Result<Vec<InboxItem>> {
        check_number(reviews.len())?;
        let keys = self.core.keys()?;
        let ids: Vec<String> = reviews.iter().map(ToString::to_string).collect();
        let found: Vec<Stored<Hold>> = self.core.reader(&keys).get_many(&ids).await?;
        let find = |id: &ReviewId| found.iter().find(|it| it.record.id == *id).map(|it| it.record.clone());
        let holds: Option<Vec<Hold>> = reviews.iter().map(find).collect();
        let roll = self.reviews.voter_roll_for_viewer(&keys, &viewer.id, &[], &[]).await?;
        self.inbox_items(&keys, viewer, &roll, holds.ok_or(Error::NotFound("review"))?).await
    }
}

fn check_number(number: usize) -> Result<()> {
    match number {
        0 => Err(Error::invalid("/review", "select at least one review")),
        1..=SEVERAL_MAX => Ok(()),
        _ => Err(Error::invalid("/review", "at most 50 reviews can be decided at once: select fewer")),
    }
}

fn argument_places(facts: &ReviewFacts) -> Vec<Pointer> {
    facts.call.as_ref().map(RedactedToolCall::places).unwrap_or_default()
}

fn left_out(facts: &ReviewFacts) -> Option<BulkExclusion> {
    match &facts.can_decide {
        Err(why) => return Some(BulkExclusion::CannotDecide(*why)),
        // A vote on behalf of another reviewer must be a separate decision.
        Ok(places) if places.iter().all(|it| it.absent.is_some()) => return Some(BulkExclusion::ForAnother),
        Ok(_) => {}
    }
    if let Some(why) = facts.hold.alone() {
        return Some(BulkExclusion::Alone(why));
    }
    if facts.diff.len() + argument_places(facts).len() > CHANGES_AMONG_SEVERAL_MAX {
        return Some(BulkExclusion::Alone(NotBulkDecidable::Large));
    }
    facts.outcome_unknown.then_some(BulkExclusion::OutcomeUnknown)
}
