//! Views of interrupts for reviewers and data of interrupt events.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use countersign_domain::interrupts::{HostAssertion, Interrupt, InterruptDecision, SignedPostRecord};
use countersign_domain::log::event::EventType;
use countersign_domain::policy::{Policy, RedactedLeaf, RedactedValues, Redactor, shown_leaves};
use countersign_domain::primitives::id::AccountId;
use countersign_domain::reviews::Vote;
use serde_json::{Value, json};

use crate::reviews::vote::with_passkey;
use crate::threads::redaction::each;

/// An interrupt with the policies that redact it for reviewers.
#[derive(Clone, Debug)]
pub struct InterruptView {
    pub interrupt: Interrupt,
    /// The policy of the interrupt, and the active policy of the flow if it is another one. A value is redacted if
    /// either policy redacts it.
    pub(crate) policies: Vec<Arc<Policy>>,
}

impl InterruptView {
    /// Redacts a text for reviewers, whether the host application or a person wrote it.
    pub fn masked<'t>(&self, words: &'t str) -> Cow<'t, str> {
        each(words, &self.policies, |policy, words| masked(policy, &self.interrupt, words))
    }

    /// Redacts a comment of one person for another. Authors see their own comment as they wrote it. The host's values
    /// are not masked in it, because the mask would confirm a guess about a redacted value.
    pub fn said<'t>(&self, viewer: &AccountId, by: &AccountId, words: &'t str) -> Cow<'t, str> {
        // Authors know what they wrote.
        if viewer == by { self.uncompared(words) } else { self.masked(words) }
    }

    /// Masks only matches of the detectors, without a comparison with the values of the host application.
    pub(super) fn uncompared<'t>(&self, words: &'t str) -> Cow<'t, str> {
        each(words, &self.policies, |policy, words| RedactedValues::default().masked(policy, words))
    }

    /// Returns how long an approval is valid.
    pub fn good_for(&self) -> Duration {
        self.policies.last().map_or(Duration::ZERO, |it| it.approval().receipt_ttl())
    }

    /// Returns the changes that the host application declares, value by value.
    pub fn leaves(&self) -> Vec<RedactedLeaf> {
        let diff = &self.interrupt.asserted.redacted_diff;
        let hidings: Vec<Redactor<'_>> = self.policies.iter().map(|it| Redactor::for_host_text(it, diff)).collect();
        shown_leaves(&hidings, diff)
    }
}

pub(crate) const fn end_event(decision: InterruptDecision) -> EventType {
    match decision {
        InterruptDecision::Approved => EventType::InterruptApproved,
        InterruptDecision::Denied => EventType::InterruptDenied,
        InterruptDecision::Expired => EventType::InterruptExpired,
        InterruptDecision::Superseded => EventType::InterruptSuperseded,
    }
}

/// Returns the members that the data of every interrupt event has.
fn about(interrupt: &Interrupt) -> Value {
    json!({
        "interrupt": interrupt.id, "digest": interrupt.digest, "token": interrupt.source.token,
        "interrupt_id": interrupt.asserted.interrupt_id, "transition_digest": interrupt.asserted.transition_digest,
    })
}

fn masked<'t>(policy: &Policy, interrupt: &Interrupt, words: &'t str) -> Cow<'t, str> {
    Redactor::for_host_text(policy, &interrupt.asserted.redacted_diff).masked(words)
}

/// Returns the event data of a new interrupt, without the change itself, which only reviewers may read.
pub(crate) fn received_data(interrupt: &Interrupt, policy: &Policy) -> Value {
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

/// Returns the event data of a signed post.
pub(crate) fn posted_data(posted: &SignedPostRecord) -> Value {
    let SignedPostRecord { source, webhook_id, body, interrupt, .. } = posted;
    json!({"interrupt": interrupt, "token": source, "webhook_id": webhook_id, "body": body})
}

/// Returns the event data of a vote, without the comment of the voter.
pub(crate) fn vote_data(interrupt: &Interrupt, vote: &Vote) -> Value {
    let mut data = json!({
        "interrupt": interrupt.id, "digest": vote.transition, "reviewer": vote.reviewer, "stage": vote.stage,
        "verdict": vote.verdict, "browser_check": vote.browser_check,
    });
    if let Some(typed) = &vote.typed {
        data["typed"] = json!(typed);
    }
    with_passkey(data, vote)
}

/// Returns the event data of the end: the answer for the host application.
pub(crate) fn end_data(interrupt: &Interrupt) -> Value {
    let mut data = about(interrupt);
    data["answer"] = json!(interrupt.answered());
    data
}
