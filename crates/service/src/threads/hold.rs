//! Opens reviews for held proposals, and ends reviews without a decision.

use countersign_domain::chain::hash::Digest;
use countersign_domain::identity::account::Token;
use countersign_domain::keys::Keys;
use countersign_domain::log::event::EventType;
use countersign_domain::primitives::id::ReviewId;
use countersign_domain::reviews::{Hold, HoldState};
use countersign_domain::threads::thread::Thread;
use countersign_domain::threads::transition::{HoldEndReason, Transition, TransitionOutcome};
use countersign_store::change::Draft;
use countersign_store::record::Stored;
use serde_json::json;

use super::hold_end::HoldEnd;
use crate::error::{Error, Result};
use crate::platform::event_recorder;
use crate::platform::reason::cut_reason;
use crate::platform::retry::retrying;
use crate::threads::Threads;

impl Threads {
    /// Ends the thread's review if its deadline has passed by the database's clock, which also decides about
    /// the last vote. A gateway whose clock is ahead leaves the review open until then.
    pub(crate) async fn expire_hold_if_due(&self, keys: &Keys, thread: Stored<Thread>) -> Result<Stored<Thread>> {
        let Some(review) = thread.record.hold.clone() else { return Ok(thread) };
        let hold: Stored<Hold> = self.core.need(keys, review.as_str(), "review").await?;
        if hold.record.is_open(self.core.now()) || !matches!(hold.record.state, HoldState::Open {}) {
            return Ok(thread);
        }
        let at = self.core.now();
        let end = HoldEnd { state: HoldState::Expired { at }, reason: HoldEndReason::Expired, at };
        let mut draft = Draft::new(keys.row(), at);
        // The commit fails if the deadline has not passed for the database.
        draft.not_before(hold.record.expires_at);
        match self.end_hold(draft, keys, &thread, &hold, end).await {
            Err(error) if error.is_too_soon() => Ok(thread),
            ended => {
                ended?;
                self.core.thread(keys, &thread.record.id).await
            }
        }
    }

    /// Ends a review whose deadline has passed, if it is still open.
    pub async fn expire_hold(&self, review: &ReviewId) -> Result<()> {
        retrying!(self.expire_once(review)).map(drop)
    }

    async fn expire_once(&self, review: &ReviewId) -> Result<Stored<Thread>> {
        let keys = self.core.keys()?;
        let hold: Stored<Hold> = self.core.need(&keys, review.as_str(), "review").await?;
        let thread = self.core.thread(&keys, &hold.record.thread).await?;
        self.expire_hold_if_due(&keys, thread).await
    }

    /// Cancels a held proposal. Only its own proposer may do so.
    pub async fn cancel(&self, token: &Stored<Token>, transition: Digest, reason: &str) -> Result<()> {
        // The commit refuses a cancellation after the deadline, so the caller learns that the review expired.
        let late = |error: Error| if error.is_too_late() { Error::Expired } else { error };
        retrying!({
            let keys = self.core.keys()?;
            // The flow is checked first. A caller without access must not learn whether the transition exists or
            // is archived.
            if !token.record.of_flow(&self.flow_of_transition(transition).await?) {
                return Err(Error::NotFound("transition"));
            }
            let transition = self.stated(&keys, transition).await?;
            if transition.statement.principal != token.record.principal() {
                return Err(Error::Forbidden("only the token that sent a proposal may cancel it"));
            }
            let (hold, now) = (self.hold_of(&keys, transition.digest).await?, self.core.now());
            let hold =
                hold.ok_or(Error::WrongState("the transition is not held for approval, so it cannot be cancelled"))?;
            match &hold.record.state {
                HoldState::Open {} if hold.record.is_open(now) => {}
                HoldState::Open {} => {
                    let thread = self.expire_once(&hold.record.id).await?;
                    // The review stays open while its deadline has not passed by the database's clock, so it can still be
                    // cancelled.
                    if thread.record.hold.as_ref() != Some(&hold.record.id) {
                        return Err(Error::Expired);
                    }
                }
                // A repeated cancellation succeeds, so that an agent can retry.
                HoldState::Cancelled { .. } => return Ok(()),
                HoldState::Expired { .. } => return Err(Error::Expired),
                HoldState::Approved { .. } | HoldState::Denied { .. } | HoldState::Superseded { .. } => {
                    return Err(Error::WrongState("the review of the proposal has ended, so it cannot be cancelled"));
                }
            }
            let thread = self.core.thread(&keys, &hold.record.thread).await?;
            let mut draft = Draft::new(keys.row(), now);
            // The database's clock decides whether the cancellation came before the deadline.
            draft.before(hold.record.expires_at);
            self.core.store_response(&mut draft, &keys, &())?;
            let state = HoldState::Cancelled { at: now, reason: cut_reason(reason) };
            let end = HoldEnd { state, reason: HoldEndReason::Cancelled, at: now };
            self.end_hold(draft, &keys, &thread, &hold, end).await
        })
        .map_err(late)
    }

    async fn end_hold(
        &self,
        mut draft: Draft<'_>,
        keys: &Keys,
        thread: &Stored<Thread>,
        hold: &Stored<Hold>,
        end: HoldEnd,
    ) -> Result<()> {
        let mut record = thread.record.clone();
        self.add_hold_end(&mut draft, keys, &mut record, hold, end).await?;
        draft.replace(thread, &record)?;
        self.core.commit(draft.finish()).await
    }

    /// Adds the end of a review to a change: the review, its transition, the thread and the event.
    pub(crate) async fn add_hold_end(
        &self,
        draft: &mut Draft<'_>,
        keys: &Keys,
        thread: &mut Thread,
        hold: &Stored<Hold>,
        HoldEnd { state, reason, at }: HoldEnd,
    ) -> Result<()> {
        let stored = self.held(keys, hold.record.transition).await?;
        let review = hold.record.id.clone();
        let ended = hold.record.clone().ended(state)?;
        let outcome = TransitionOutcome::Ended { review: review.clone(), decision: reason };
        draft.replace(&stored, &Transition { outcome, ..stored.record.clone() })?;
        draft.replace(hold, &ended)?;
        if thread.hold.as_ref() == Some(&review) {
            thread.hold = None;
        }
        // An ended review that does not count as an attempt gives the attempt back to its node.
        if !ended.counts()
            && let Some(opened) = thread.holds_opened.get_mut(&ended.node)
        {
            *opened = opened.saturating_sub(1);
            thread.holds_opened.retain(|_, opened| *opened > 0);
        }
        event_recorder::append_thread_event(draft, thread, at, end_event(reason), end_data(&ended))?;
        match reason {
            HoldEndReason::Denied | HoldEndReason::Expired | HoldEndReason::Cancelled => {
                super::close::close_request(draft, thread, at)
            }
            // Another review or a new request may follow.
            HoldEndReason::Superseded => Ok(()),
        }
    }
}

/// Returns the event data of a review's end.
pub(crate) fn end_data(hold: &Hold) -> serde_json::Value {
    let mut data = json!({"transition": hold.transition, "review": hold.id, "node": hold.node});
    if let HoldState::Superseded { by, policy, .. } = &hold.state {
        data["by"] = json!(by);
        data["policy"] = json!(policy);
    }
    data
}

const fn end_event(decision: HoldEndReason) -> EventType {
    match decision {
        HoldEndReason::Denied => EventType::TransitionDenied,
        HoldEndReason::Expired => EventType::TransitionExpired,
        HoldEndReason::Cancelled => EventType::TransitionCancelled,
        HoldEndReason::Superseded => EventType::TransitionSuperseded,
    }
}
