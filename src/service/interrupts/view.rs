//! What is told of an interrupt: to people on pages, and by events.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::domain::interrupts::{HostAssertion, Interrupt, InterruptDecision, SignedPostRecord};
use crate::domain::log::event::EventType;
use crate::domain::policy::{Policy, RedactedLeaf, RedactedValues, Redactor, shown_leaves};
use crate::domain::primitives::id::AccountId;
use crate::domain::reviews::Vote;
use crate::service::reviews::vote::with_passkey;
use crate::service::threads::redaction::each;

/// What of an interrupt people may see.
#[derive(Clone, Debug)]
pub struct InterruptView {
    pub interrupt: Interrupt,
    /// The policy by which people are asked, and the one that judges the flow by now if it is another: what either hides
    /// is hidden.
    pub(in crate::service) policies: Vec<Arc<Policy>>,
}

impl InterruptView {
    /// Words as people may read them: without what the policy hides, in the host's words and in anybody's about them.
    pub fn masked<'t>(&self, words: &'t str) -> Cow<'t, str> {
        each(words, &self.policies, |policy, words| masked(policy, &self.interrupt, words))
    }

    /// What a person said of it, as another person is shown it. Whoever wrote it is shown it as written: what the host said of
    /// redacted places would otherwise answer guesses.
    pub fn said<'t>(&self, (viewer, by): (&AccountId, &AccountId), words: &'t str) -> Cow<'t, str> {
        if viewer == by {
            return each(words, &self.policies, |policy, words| RedactedValues::default().masked(policy, words));
        }
        self.masked(words)
    }

    /// For how long an approval is good.
    pub fn good_for(&self) -> Duration {
        self.policies.last().map_or(Duration::ZERO, |it| it.approval().receipt_ttl())
    }

    /// What the host says that it changes, value by value.
    pub fn leaves(&self) -> Vec<RedactedLeaf> {
        let diff = &self.interrupt.asserted.redacted_diff;
        let hidings: Vec<Redactor<'_>> = self.policies.iter().map(|it| Redactor::for_host_text(it, diff)).collect();
        shown_leaves(&hidings, diff)
    }
}

pub(in crate::service) const fn end_event(decision: InterruptDecision) -> EventType {
    match decision {
        InterruptDecision::Approved => EventType::InterruptApproved,
        InterruptDecision::Denied => EventType::InterruptDenied,
        InterruptDecision::Expired => EventType::InterruptExpired,
        InterruptDecision::Superseded => EventType::InterruptSuperseded,
    }
}

/// What every event about an interrupt begins with.
fn about(interrupt: &Interrupt) -> Value {
    json!({
        "interrupt": interrupt.id, "digest": interrupt.digest, "token": interrupt.source.token,
        "interrupt_id": interrupt.asserted.interrupt_id, "transition_digest": interrupt.asserted.transition_digest,
    })
}

fn masked<'t>(policy: &Policy, interrupt: &Interrupt, words: &'t str) -> Cow<'t, str> {
    Redactor::for_host_text(policy, &interrupt.asserted.redacted_diff).masked(words)
}

/// What is told of a new interrupt: not the change itself, which is for the people who decide.
pub(in crate::service) fn received_data(interrupt: &Interrupt, policy: &Policy) -> Value {
    let HostAssertion { kind, changed_keys, attempt, thread_ref, title, reason, .. } = &interrupt.asserted;
    let shown = |it: &str| masked(policy, interrupt, it).into_owned();
    let optional = |it: &Option<String>| it.as_deref().map(shown);
    let mut data = about(interrupt);
    data["kind"] = json!(kind);
    data["attempt"] = json!(attempt);
    data["changed_keys"] = changed_keys.iter().map(|it| json!(shown(it))).collect();
    data["thread_ref"] = json!(optional(thread_ref));
    data["title"] = json!(optional(title));
    data["reason"] = json!(optional(reason));
    data["policy"] = json!(interrupt.policy);
    data["excluded"] = json!(interrupt.excluded);
    data["stages"] = json!(interrupt.asking.stages);
    data["denials_needed"] = json!(interrupt.asking.denials_needed);
    data["expires_at"] = json!(interrupt.expires_at);
    data
}

/// What is told of a post that was signed.
pub(in crate::service) fn posted_data(posted: &SignedPostRecord) -> Value {
    let SignedPostRecord { source, webhook_id, body, interrupt, .. } = posted;
    json!({"interrupt": interrupt, "token": source, "webhook_id": webhook_id, "body": body})
}

/// What is told of a vote on it: all of it but what the voter said.
pub(in crate::service) fn vote_data(interrupt: &Interrupt, vote: &Vote) -> Value {
    let mut data = json!({
        "interrupt": interrupt.id, "digest": vote.transition, "reviewer": vote.reviewer, "stage": vote.stage,
        "verdict": vote.verdict, "browser_check": vote.browser_check,
    });
    if let Some(typed) = &vote.typed {
        data["typed"] = json!(typed);
    }
    with_passkey(data, vote)
}

/// What is told of its end: the answer, as the host is given it.
pub(in crate::service) fn end_data(interrupt: &Interrupt) -> Value {
    let mut data = about(interrupt);
    data["answer"] = json!(interrupt.answered());
    data
}
