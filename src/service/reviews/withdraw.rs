//! Votes taken back: before the last one, by whoever cast them, or in whose place they were cast.

use serde_json::{Value, json};

use crate::domain::identity::account::Account;
use crate::domain::log::event::EventType;
use crate::domain::primitives::id::{AccountId, ReviewId};
use crate::domain::reviews::{Hold, Ineligible, Vote, VoteRejected, WithdrawalRequest};
use crate::service::Service;
use crate::service::error::{Error, Result};
use crate::service::platform::event_recorder;
use crate::service::platform::retry::retrying;
use crate::store::change::Draft;
use crate::store::record::Stored;

impl Service {
    /// Takes a person's own vote back, or one that was cast in their place, unless the review has ended. A stopped flow and a write under way do not stand in
    /// the way: whoever is no longer sure of an approval can always say so.
    pub async fn withdraw_vote(&self, voter: &AccountId, review: &ReviewId, ask: &WithdrawalRequest) -> Result<()> {
        let late = |error: Error| if error.is_too_late() { VoteRejected::Expired.into() } else { error };
        retrying!(self.withdraw_vote_once(voter, review, ask)).map_err(late)
    }

    async fn withdraw_vote_once(&self, voter: &AccountId, review: &ReviewId, ask: &WithdrawalRequest) -> Result<()> {
        let (keys, now) = (self.keys()?, self.now());
        let person: Stored<Account> = self.fetch(&keys, voter.as_str()).await?.ok_or(Error::Unauthenticated)?;
        if person.record.disabled {
            return Err(VoteRejected::from(Ineligible::Disabled).into());
        }
        let hold: Stored<Hold> = self.need(&keys, review.as_str(), "review").await?;
        let stored = self.thread(&keys, &hold.record.thread).await?;
        let left = hold.record.clone().withdrawn(ask.clone(), voter, now)?;
        let mut thread = stored.record.clone();
        let mut draft = Draft::new(keys.row(), now);
        draft.require_unchanged(&person);
        draft.before(hold.record.expires_at);
        if let Some(vote) = left.votes.get(ask.vote) {
            let data = withdrawal_data(&left, (ask.vote, vote));
            event_recorder::append_thread_event(&mut draft, &mut thread, now, EventType::ReviewWithdrawn, data)?;
        }
        draft.replace(&hold, &left)?;
        draft.replace(&stored, &thread)?;
        self.commit(draft.finish()).await
    }
}

/// What the event of a withdrawal tells: which vote, as its own event told it.
pub(in crate::service) fn withdrawal_data(hold: &Hold, (index, vote): (usize, &Vote)) -> Value {
    let mut data = json!({
        "review": hold.id, "transition": vote.transition, "reviewer": vote.reviewer, "stage": vote.stage,
        "verdict": vote.verdict, "vote": index,
    });
    if let Some(by) = vote.withdrawn.as_ref().and_then(|it| it.by.as_ref()) {
        data["by"] = json!(by);
    }
    data
}
