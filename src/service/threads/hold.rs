//! Opens reviews for held proposals, and ends reviews without a decision.

use std::collections::BTreeSet;

use countersign_domain::chain::hash::Digest;
use countersign_domain::identity::account::{Account, Token};
use countersign_domain::json::diff::diff;
use countersign_domain::keys::Keys;
use countersign_domain::log::event::EventType;
use countersign_domain::policy::{CommentRule, ConfirmationRule, JudgedReason, PasskeyRule, Policy, ReasonAudience};
use countersign_domain::primitives::id::ReviewId;
use countersign_domain::primitives::time::Timestamp;
use countersign_domain::reviews::{
    ApprovalStage, ConfirmationMethod, Hold, HoldReason, HoldState, PasskeyRequirement, can_be_approved,
};
use countersign_domain::threads::thread::Thread;
use countersign_domain::threads::transition::{HoldEndReason, Transition, TransitionOutcome};
use serde_json::json;

use super::commit::{ProposalOutcome, with_warnings};
use super::hold_end::HoldEnd;
use super::lease_expiry::record_expired_lease;
use super::statement::StatedTransition;
use crate::random;
use crate::service::Service;
use crate::service::error::{Error, Result};
use crate::service::platform::event_recorder;
use crate::service::platform::retry::retrying;
use crate::service::proposals::context::ProposalContext;
use crate::service::proposals::steps::record_step_attempt;
use crate::service::reviews::escalate::notices_of;
use crate::service::writes::outcome::cut_reason;
use crate::store::change::Draft;
use crate::store::record::Stored;
use crate::store::{Cursor, LIST_ROWS_MAX, RowFilter};

/// Accounts that are examined for a possible approver.
const ACCOUNTS_MAX: usize = 20_000;

/// The terms of a new review.
pub(in crate::service) struct HoldTerms {
    pub(in crate::service) reasons: Vec<JudgedReason>,
    /// The people who cannot approve, by separation of duties.
    pub(in crate::service) excluded: BTreeSet<String>,
    /// The fingerprint of the requested effect.
    pub(in crate::service) effect: Option<Digest>,
    pub(in crate::service) opened_at: Timestamp,
}

impl Service {
    pub(in crate::service) async fn hold(
        &self,
        asking: &ProposalContext<'_>,
        step: StatedTransition,
        reasons: Vec<JudgedReason>,
        excluded: BTreeSet<String>,
        effect: Option<Digest>,
    ) -> Result<ProposalOutcome> {
        let now = self.now();
        let mut draft = asking.draft(now);
        let mut thread = asking.standing.thread.record.clone();
        let changes = diff(&asking.head.state, &step.after.state);
        let terms = HoldTerms { reasons, excluded, effect, opened_at: now };
        let (transition, hold) = add_hold(&mut draft, &mut thread, asking, step, terms)?;
        draft.replace(&asking.standing.thread, &thread)?;
        let policies = self.policies_of(asking.keys, &transition.statement).await?;
        let answer = ProposalOutcome::held(&policies, &transition, &changes, hold);
        self.store_response(&mut draft, asking.keys, &answer)?;
        self.commit(draft.finish()).await?;
        Ok(answer)
    }

    /// Returns whether any reviewer could approve. Without one a review could only expire.
    pub(in crate::service) async fn somebody_can_approve(
        &self,
        keys: &Keys,
        policy: &Policy,
        excluded: &BTreeSet<String>,
    ) -> Result<bool> {
        // All accounts, because any of them may be in the required groups.
        let people = self.accounts_all(keys).await?;
        Ok(can_be_approved(&stages_of(policy), excluded, &people))
    }

    pub(in crate::service) async fn accounts_all(&self, keys: &Keys) -> Result<Vec<Account>> {
        let mut people: Vec<Account> = Vec::new();
        while people.len() < ACCOUNTS_MAX {
            let after = people.last().map(|it| Cursor { due: 0, id: it.id.to_string() });
            let page = self.reader(keys).list::<Account>(RowFilter::All, after.as_ref(), LIST_ROWS_MAX).await?;
            let full = page.len() == LIST_ROWS_MAX as usize;
            people.extend(page.into_iter().map(|it| self.with_effective_status(it.record)));
            if !full {
                break;
            }
        }
        Ok(people)
    }

    /// Ends the thread's review if its deadline has passed by the database's clock, which also decides about
    /// the last vote. A gateway whose clock is ahead leaves the review open until then.
    pub(in crate::service) async fn expire_hold_if_due(
        &self,
        keys: &Keys,
        thread: Stored<Thread>,
    ) -> Result<Stored<Thread>> {
        let Some(review) = thread.record.hold.clone() else { return Ok(thread) };
        let hold: Stored<Hold> = self.need(keys, review.as_str(), "review").await?;
        if hold.record.is_open(self.now()) || !matches!(hold.record.state, HoldState::Open {}) {
            return Ok(thread);
        }
        let at = self.now();
        let end = HoldEnd { state: HoldState::Expired { at }, reason: HoldEndReason::Expired, at };
        let mut draft = Draft::new(keys.row(), at);
        // The commit fails if the deadline has not passed for the database.
        draft.not_before(hold.record.expires_at);
        match self.end_hold(draft, keys, &thread, &hold, end).await {
            Err(error) if error.is_too_soon() => Ok(thread),
            ended => {
                ended?;
                self.thread(keys, &thread.record.id).await
            }
        }
    }

    /// Ends a review whose deadline has passed, if it is still open.
    pub async fn expire_hold(&self, review: &ReviewId) -> Result<()> {
        retrying!(self.expire_once(review)).map(drop)
    }

    async fn expire_once(&self, review: &ReviewId) -> Result<Stored<Thread>> {
        let keys = self.keys()?;
        let hold: Stored<Hold> = self.need(&keys, review.as_str(), "review").await?;
        let thread = self.thread(&keys, &hold.record.thread).await?;
        self.expire_hold_if_due(&keys, thread).await
    }

    /// Cancels a held proposal. Only its own proposer may do so.
    pub async fn cancel(&self, token: &Stored<Token>, transition: Digest, reason: &str) -> Result<()> {
        let late = |error: Error| if error.is_too_late() { Error::Expired } else { error };
        retrying!(self.cancel_once(token, transition, reason)).map_err(late)
    }

    async fn cancel_once(&self, token: &Stored<Token>, transition: Digest, reason: &str) -> Result<()> {
        let keys = self.keys()?;
        // The flow is checked first. A caller without access must not learn whether the transition exists or
        // is archived.
        if !token.record.of_flow(&self.flow_of_transition(transition).await?) {
            return Err(Error::NotFound("transition"));
        }
        let transition = self.stated(&keys, transition).await?;
        if transition.statement.principal != token.record.principal() {
            return Err(Error::Forbidden("only the token that sent a proposal may cancel it"));
        }
        let (hold, now) = (self.hold_of(&keys, transition.digest).await?, self.now());
        let hold =
            hold.ok_or(Error::WrongState("the transition is not held for approval, so it cannot be cancelled"))?;
        match &hold.record.state {
            HoldState::Open {} if hold.record.is_open(now) => {}
            HoldState::Open {} => {
                let thread = self.expire_once(&hold.record.id).await?;
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
        let thread = self.thread(&keys, &hold.record.thread).await?;
        let mut draft = Draft::new(keys.row(), now);
        draft.before(hold.record.expires_at);
        self.store_response(&mut draft, &keys, &())?;
        let state = HoldState::Cancelled { at: now, reason: cut_reason(reason) };
        let end = HoldEnd { state, reason: HoldEndReason::Cancelled, at: now };
        self.end_hold(draft, &keys, &thread, &hold, end).await
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
        self.commit(draft.finish()).await
    }

    /// Adds the end of a review to a change: the review, its transition, the thread and the event.
    pub(in crate::service) async fn add_hold_end(
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
        event_recorder::append_thread_event(draft, thread, at, end_event(reason), end_data(&ended))
    }
}

/// Adds a new review to a change: the transition, the review, the thread and the event.
pub(in crate::service) fn add_hold(
    draft: &mut Draft<'_>,
    thread: &mut Thread,
    asking: &ProposalContext<'_>,
    step: StatedTransition,
    HoldTerms { reasons, excluded, effect, opened_at: now }: HoldTerms,
) -> Result<(Transition, Hold)> {
    let review = ReviewId::try_from(random::uuid_v7(now).to_string()).expect("a UUID is a name");
    let hold = Hold {
        id: review.clone(),
        transition: step.transition.digest,
        thread: thread.id.clone(),
        flow: thread.flow.clone(),
        policy: asking.policy.digest(),
        node: asking.proposal.node.clone(),
        proposer: asking.by.judged_as(),
        context: thread.context.clone(),
        reasons: reasons.into_iter().map(hold_reason).collect(),
        excluded,
        effect,
        stages: stages_of(asking.policy),
        denials_needed: asking.policy.approval().denials(),
        opened_at: now,
        expires_at: now.plus(asking.policy.approval().ttl()),
        notices: notices_of(asking.policy.approval(), now),
        votes: Vec::new(),
        comments: Vec::new(),
        extensions: Vec::new(),
        reveals: Vec::new(),
        state: HoldState::Open {},
    };
    let transition = Transition { outcome: TransitionOutcome::Held { review: review.clone() }, ..step.transition };
    record_expired_lease(draft, thread, now)?;
    draft.insert(&transition)?;
    draft.insert(&hold)?;
    record_step_attempt(draft, asking, Some(transition.digest))?;
    thread.hold = Some(review);
    *thread.holds_opened.entry(hold.node.clone()).or_insert(0) += 1;
    let data = held_data(&hold, &transition);
    event_recorder::append_thread_event(draft, thread, now, EventType::TransitionHeld, data)?;
    Ok((transition, hold))
}

/// Returns the event data of a new review.
pub(in crate::service) fn held_data(hold: &Hold, transition: &Transition) -> serde_json::Value {
    let mut data = json!({
        "transition": hold.transition, "review": hold.id, "node": hold.node, "expires_at": hold.first_deadline(),
        "reasons": hold.reasons.iter().map(|it| &it.text).collect::<Vec<_>>(),
    });
    if let Some(editor) = &transition.editor {
        data["editor"] = json!(editor);
        data["supersedes"] = json!(transition.statement.supersedes);
    }
    if let Some(join) = &transition.statement.join {
        data["join"] = json!(join);
    }
    if let Some(step) = &transition.step {
        data["step"] = json!(step);
    }
    with_warnings(data, transition.warnings_shown())
}

/// Returns the event data of a review's end.
pub(in crate::service) fn end_data(hold: &Hold) -> serde_json::Value {
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

/// Returns the approval stages of a policy.
pub(in crate::service) fn stages_of(policy: &Policy) -> Vec<ApprovalStage> {
    policy.approval().stages().iter().map(stage_of).collect()
}

pub(in crate::service) fn stage_of(stage: &countersign_domain::policy::PolicyStage) -> ApprovalStage {
    ApprovalStage {
        groups: stage.groups().clone(),
        need: stage.need(),
        comment_required: stage.comment() == CommentRule::Required,
        passkey: match stage.passkey() {
            PasskeyRule::Optional => PasskeyRequirement::Nothing {},
            PasskeyRule::Within(time) => PasskeyRequirement::Within { secs: time.as_secs() },
            PasskeyRule::Signs => PasskeyRequirement::Signature {},
        },
        confirm: match stage.confirm() {
            ConfirmationRule::Pressed => ConfirmationMethod::Pressing,
            ConfirmationRule::Typed => ConfirmationMethod::Typing,
        },
    }
}

pub(in crate::service) fn hold_reason(reason: JudgedReason) -> HoldReason {
    HoldReason {
        code: reason.code.as_str().to_owned(),
        pointer: reason.pattern.map(|it| it.to_string()),
        text: reason.text,
        for_reviewers_only: reason.audience == ReasonAudience::Reviewers,
    }
}
