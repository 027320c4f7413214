//! Opens reviews for held proposals.

use std::collections::BTreeSet;

use countersign_adapters::random;
use countersign_domain::chain::hash::Digest;
use countersign_domain::json::diff::diff;
use countersign_domain::keys::Keys;
use countersign_domain::log::event::EventType;
use countersign_domain::policy::{ApprovalPolicy, JudgedReason, Policy, ReasonAudience};
use countersign_domain::primitives::id::ReviewId;
use countersign_domain::primitives::time::Timestamp;
use countersign_domain::reviews::{
    Escalation, Hold, HoldReason, HoldReminders, HoldState, Reminder, StageShortage, shortages, stages_of,
};
use countersign_domain::threads::thread::Thread;
use countersign_domain::threads::transition::{Transition, TransitionOutcome};
use countersign_store::change::Draft;
use serde_json::{Value, json};

use crate::error::Result;
use crate::platform::event_recorder;
use crate::proposals::Proposals;
use crate::proposals::context::ProposalContext;
use crate::proposals::outcome::ProposalOutcome;
use crate::proposals::steps::record_step_attempt;
use crate::threads::commit::with_warnings;
use crate::threads::lease_expiry::record_expired_lease;
use crate::threads::statement::StatedTransition;

/// Returns the reminder and the escalation of a review that opens now, as its policy defines them.
pub(crate) fn notices_of(approval: &ApprovalPolicy, opened_at: Timestamp) -> HoldReminders {
    let reminder = approval.remind_after().map(|it| Reminder { from: opened_at.plus(it), told_at: None });
    let escalation = approval.escalation().map(|it| Escalation {
        from: opened_at.plus(it.after()),
        to: it.to().clone(),
        told_at: None,
    });
    HoldReminders { reminder, escalation }
}

impl Proposals {
    pub(crate) async fn hold(
        &self,
        asking: &ProposalContext<'_>,
        step: StatedTransition,
        reasons: Vec<JudgedReason>,
        excluded: BTreeSet<String>,
        effect: Option<Digest>,
    ) -> Result<ProposalOutcome> {
        let now = self.core.now();
        let mut draft = asking.draft(now);
        let mut thread = asking.standing.thread.record.clone();
        let changes = diff(&asking.head.state, &step.after.state);
        let terms = HoldTerms { reasons, excluded, effect, opened_at: now };
        let (transition, hold) = add_hold(&mut draft, &mut thread, asking, step, terms)?;
        draft.replace(&asking.standing.thread, &thread)?;
        let policies = self.threads.policies_of(asking.keys, &transition.statement).await?;
        let answer = ProposalOutcome::held(&policies, &transition, &changes, hold);
        self.core.store_response(&mut draft, asking.keys, &answer)?;
        self.core.commit(draft.finish()).await?;
        Ok(answer)
    }

    /// Returns the stages that reviewers could not fill. If there is one, a review could only expire.
    pub(crate) async fn unfillable_stages(
        &self,
        keys: &Keys,
        policy: &Policy,
        excluded: &BTreeSet<String>,
    ) -> Result<Vec<StageShortage>> {
        // All accounts, because any of them may be in the required groups.
        let people = self.identity.accounts_all(keys).await?;
        Ok(shortages(&stages_of(policy), excluded, &people))
    }
}

/// Adds a new review to a change: the transition, the review, the thread and the event.
pub(crate) fn add_hold(
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
        expires_at: thread
            .request
            .iter()
            .map(|it| it.deadline)
            .fold(now.plus(asking.policy.approval().ttl()), Timestamp::min),
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

pub(crate) fn hold_reason(reason: JudgedReason) -> HoldReason {
    HoldReason {
        code: reason.code.as_str().to_owned(),
        pointer: reason.pattern.map(|it| it.to_string()),
        text: reason.text,
        for_reviewers_only: reason.audience == ReasonAudience::Reviewers,
    }
}

/// Returns the event data of a new review.
fn held_data(hold: &Hold, transition: &Transition) -> Value {
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
    if let Some(tool) = &transition.tool {
        data["tool"] = json!(tool.name);
    }
    with_warnings(data, transition.warnings_shown())
}

/// Returns whether an event opened this review. Events of earlier versions do not name the tool.
pub(crate) fn is_held_data(data: &Value, hold: &Hold, transition: &Transition) -> bool {
    let mut expected = held_data(hold, transition);
    if let (None, Some(members)) = (data.get("tool"), expected.as_object_mut()) {
        members.remove("tool");
    }
    *data == expected
}

/// The terms of a new review.
pub(crate) struct HoldTerms {
    pub(crate) reasons: Vec<JudgedReason>,
    /// The people who cannot approve, by separation of duties.
    pub(crate) excluded: BTreeSet<String>,
    /// The fingerprint of the requested effect.
    pub(crate) effect: Option<Digest>,
    pub(crate) opened_at: Timestamp,
}
