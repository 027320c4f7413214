//! Withdrawing votes before the review ends, by the voter or by the delegator.

use countersign_domain::identity::account::Account;
use countersign_domain::log::event::EventType;
use countersign_domain::primitives::id::{AccountId, ReviewId};
use countersign_domain::reviews::{Hold, Ineligible, Vote, VoteRejected, WithdrawalRequest};
use countersign_store::change::Draft;
use countersign_store::record::Stored;
use serde_json::{Value, json};

use crate::error::{Error, Result};
use crate::platform::event_recorder;
use crate::platform::retry::retrying;
use crate::reviews::Reviews;

impl Reviews {
    /// Withdraws a person's own vote, or one that a delegate cast for that person, unless the review has
    /// ended. It is also allowed in a halted flow and during a write, so that a reviewer can always retract a
    /// doubtful approval.
    pub async fn withdraw_vote(&self, voter: &AccountId, review: &ReviewId, ask: &WithdrawalRequest) -> Result<()> {
        // The database's clock decides about the deadline, so the commit can fail after the check passed.
        retrying!({
            let (keys, now) = (self.core.keys()?, self.core.now());
            let person: Stored<Account> =
                self.core.fetch(&keys, voter.as_str()).await?.ok_or(Error::Unauthenticated)?;
            // The account may have been disabled after the request was authenticated.
            if person.record.disabled {
                return Err(VoteRejected::from(Ineligible::Disabled).into());
            }
            let hold: Stored<Hold> = self.core.need(&keys, review.as_str(), "review").await?;
            let stored = self.core.thread(&keys, &hold.record.thread).await?;
            let left = hold.record.clone().withdrawn(ask.clone(), voter, now)?;
            let mut thread = stored.record.clone();
            let mut draft = Draft::new(keys.row(), now);
            // A person who is disabled at the same time must not change a vote.
            draft.require_unchanged(&person);
            // After the deadline the review has ended, and its votes are final.
            draft.before(hold.record.expires_at);
            if let Some(vote) = left.votes.get(ask.vote) {
                let data = withdrawal_data(&left, ask.vote, vote);
                event_recorder::append_thread_event(&mut draft, &mut thread, now, EventType::ReviewWithdrawn, data)?;
            }
            draft.replace(&hold, &left)?;
            draft.replace(&stored, &thread)?;
            self.core.commit(draft.finish()).await
        })
        .map_err(Error::expired_if_too_late)
    }
}

/// Returns the data of a withdrawal event. It names the vote with the members of the vote's own event.
pub(crate) fn withdrawal_data(hold: &Hold, index: usize, vote: &Vote) -> Value {
    let mut data = json!({
        "review": hold.id, "transition": vote.transition, "reviewer": vote.reviewer, "stage": vote.stage,
        "verdict": vote.verdict, "vote": index,
    });
    if let Some(by) = vote.withdrawn.as_ref().and_then(|it| it.by.as_ref()) {
        data["by"] = json!(by);
    }
    data
}
