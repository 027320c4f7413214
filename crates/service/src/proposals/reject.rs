//! Rejections: records a rejected proposal without applying any part of it, and returns an instruction to its
//! node.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use countersign_domain::json::canonical::canonical;
use countersign_domain::json::patch::PatchFormat;
use countersign_domain::json::pointer::Pointer;
use countersign_domain::keys::Keys;
use countersign_domain::log::event::EventType;
use countersign_domain::policy::{Instruction, OnViolation, RejectCode, Violation};
use countersign_domain::primitives::id::NodeId;
use countersign_domain::reviews::StageShortage;
use countersign_domain::threads::rejected_request::RejectedRequest;
use countersign_domain::threads::thread::Checkpoint;
use countersign_domain::threads::transition::{Rejection, rejected_patch_digest};
use serde_json::{Value, json};

use super::context::ProposalContext;
use super::request::ProposalKind;
use super::steps::record_step_attempt;
use super::stored_request::{RequestToStore, StoredRequest};
use crate::error::Result;
use crate::platform::event_recorder;
use crate::platform::rejection_body::{RejectionBody, result_error};
use crate::proposals::Proposals;
use crate::proposals::outcome::ProposalOutcome;
use crate::threads::close::close_request;
use crate::threads::redaction_queue::RedactionWork;

/// The longest value that an error repeats. The value helps to recognize the request and is not a copy of it.
const VALUE_BYTES_MAX: usize = 1_024;

impl RejectionBody {
    /// Builds the body that the proposer receives.
    pub(crate) fn of(rejection: Rejection, ask: &ProposalKind, checkpoint: Option<Checkpoint>) -> Self {
        let Rejection { errors, instruction, hidden, .. } = rejection;
        let shown = errors.iter().enumerate().filter(|(index, _)| !hidden.contains(index));
        let values = shown.filter_map(|(index, error)| Some((index, sent_at(ask, &error.pointer)?))).collect();
        Self { errors, values, instruction, checkpoint }
    }
}

pub(crate) enum RejectionCause {
    /// A violation of the policy. It counts against the attempts of the node.
    Violations(Vec<Violation>),
    /// The node has no attempts left on this head.
    NoTries(Violation),
    /// The step has no attempts left.
    StepOver(Violation),
    /// The change has no attempts left on any head.
    EffectOver(Violation),
    /// No reviewer could approve the change. The node is not at fault.
    Nobody(Violation, Vec<StageShortage>),
}

impl RejectionCause {
    /// Returns the cause for the violations of a judgement. A missing approver is not the fault of the node.
    pub(crate) fn of(violations: Vec<Violation>) -> Self {
        match violations.as_slice() {
            // The node did nothing wrong, so the rejection must not use up an attempt.
            [only] if only.code == RejectCode::NobodyCanApprove => Self::Nobody(only.clone(), Vec::new()),
            _ => Self::Violations(violations),
        }
    }

    /// Returns the stages that no reviewers could fill.
    fn unfillable(&self) -> &[StageShortage] {
        match self {
            Self::Nobody(_, unfillable) => unfillable,
            _ => &[],
        }
    }

    const fn is_counted(&self) -> bool {
        matches!(self, Self::Violations(_))
    }

    fn instruction(&self, policy: OnViolation, before: u32) -> Option<Instruction> {
        match self {
            Self::Violations(_) => Some(policy.instruction(before.saturating_add(1))),
            Self::NoTries(_) => Some(Instruction::NoMoreTries),
            Self::StepOver(_) | Self::EffectOver(_) => Some(Instruction::Stop),
            Self::Nobody(..) => None,
        }
    }

    /// Returns all violations. If the last attempt of the node is used up, another violation states that.
    fn told(self, instruction: Option<Instruction>) -> Vec<Violation> {
        match self {
            Self::Violations(mut violations) => {
                if instruction == Some(Instruction::NoMoreTries) {
                    violations.push(attempts_exhausted());
                }
                violations
            }
            Self::NoTries(violation)
            | Self::StepOver(violation)
            | Self::EffectOver(violation)
            | Self::Nobody(violation, _) => vec![violation],
        }
    }
}

/// Returns the violation for a second rejection on one head, if the policy allows one retry.
pub(crate) fn attempts_exhausted() -> Violation {
    let detail = "the node was rejected twice on this head, and the policy allows one retry";
    Violation::new(RejectCode::AttemptsExhausted, Pointer::root(), detail)
}

/// Counts a rejection of a node on one head.
pub(crate) fn count(violations: &mut BTreeMap<NodeId, u32>, node: &NodeId) {
    let count = violations.entry(node.clone()).or_insert(0);
    *count = count.saturating_add(1);
}

impl Proposals {
    /// Records a rejection. It replaces the row of the thread. Therefore a concurrent second rejection is
    /// decided again and counts the first one.
    pub(crate) async fn reject(
        &self,
        asking: &ProposalContext<'_>,
        because: RejectionCause,
    ) -> Result<ProposalOutcome> {
        let proposal = asking.proposal;
        let mut thread = asking.standing.thread.record.clone();
        let before = asking.standing.violations(&proposal.node);
        let counted = because.is_counted();
        if counted {
            count(&mut thread.violations, &proposal.node);
        }
        let instruction = because.instruction(asking.policy.on_violation(), before);
        let unfillable = because.unfillable().to_vec();
        let violations = because.told(instruction);
        let hides = |(index, it): (usize, &Violation)| asking.policy.hides(&it.pointer).then_some(index);
        let content = proposal.ask.content();
        let secret = asking.keys.salt().thread_secret(proposal.thread.as_str());
        let stored = self.stored_request(asking, &violations).await?;
        let rejection = Rejection {
            identity: asking.identity,
            thread: proposal.thread.clone(),
            flow: thread.flow.clone(),
            node: proposal.node.clone(),
            principal: asking.by.principal(),
            patch: rejected_patch_digest(&secret, asking.by.author(), &content),
            tool: proposal.tool.as_ref().map(|it| it.name.clone()),
            step: proposal.step.clone(),
            own: (stored.own != stored.others).then_some(stored.own),
            excerpt: stored.others.excerpt,
            cut: stored.others.cut,
            errors: violations.iter().map(result_error).collect(),
            hidden: violations.iter().enumerate().filter_map(hides).collect(),
            parent: Some(proposal.parent),
            counted,
            instruction,
            request: stored.request,
            unfillable,
            // Read last: the redaction above takes long, and a decision must not be old at its commit.
            at: self.core.now(),
        };
        let now = rejection.at;
        let mut draft = asking.draft(now);
        draft.insert(&rejection)?;
        if counted {
            record_step_attempt(&mut draft, asking, None)?;
        }
        let (kind, data) = (EventType::TransitionRejected, event_data(&rejection));
        event_recorder::append_thread_event(&mut draft, &mut thread, now, kind, data)?;
        if let Some(request) = thread.request.as_mut() {
            request.reasoning.clone_from(&proposal.rationale);
        }
        close_request(&mut draft, &mut thread, now)?;
        draft.replace(&asking.standing.thread, &thread)?;
        self.core.commit(draft.finish()).await?;
        let head = &asking.head.entry;
        let checkpoint = Checkpoint { version: head.version, transition: head.transition };
        Ok(ProposalOutcome::Rejected(RejectionBody::of(rejection, &proposal.ask, Some(checkpoint))))
    }

    /// Returns what is stored of a rejected request. A large state or request is redacted on a blocking thread.
    async fn stored_request(&self, asking: &ProposalContext<'_>, violations: &[Violation]) -> Result<StoredRequest> {
        let proposal = asking.proposal;
        let request = RequestToStore {
            policy: Arc::clone(asking.policy),
            head: Arc::clone(asking.head),
            nodes: asking.by.readable_nodes().clone(),
            told: proposal.ask.told(),
            is_join: matches!(proposal.ask, ProposalKind::Join(_)),
            resolve: match &proposal.ask {
                ProposalKind::Join(join) => join.resolve().cloned(),
                _ => None,
            },
            kept: proposal.kept(),
            violations: violations.to_vec(),
        };
        let work = RedactionWork::by(asking.by.principal().as_str(), [&asking.head.state, &request.told]);
        self.threads.redact(work, move || async move { Ok(request.stored()) }).await
    }

    /// Returns the head that a stored rejection was based on, so that a repeated request gets the same
    /// response.
    pub(crate) async fn rejected_head(&self, keys: &Keys, rejection: &Rejection) -> Result<Option<Checkpoint>> {
        let Some(transition) = rejection.parent else { return Ok(None) };
        let place = self.threads.place_of(keys, transition).await?.filter(|it| it.thread == rejection.thread);
        Ok(place.map(|it| Checkpoint { version: it.version, transition }))
    }
}

/// Returns the data of a rejection event.
pub(crate) fn event_data(rejection: &Rejection) -> Value {
    let codes: BTreeSet<&str> = rejection.errors.iter().map(|it| it.code.as_str()).collect();
    let mut data = json!({
        "node": rejection.node, "patch": rejection.patch, "codes": codes, "identity": rejection.identity,
        "parent": rejection.parent, "counted": rejection.counted,
    });
    if let Some(tool) = &rejection.tool {
        data["tool"] = json!(tool);
    }
    if let Some(step) = &rejection.step {
        data["step"] = json!(step);
    }
    // The data contains only parts of the request that its identity does not cover.
    if let Some(kept) = rejection.request.as_deref() {
        data["kept"] = json!(true);
        let kept = RejectedRequest::read(kept);
        if let Some(usage) = kept.as_ref().and_then(|it| it.usage.as_ref()) {
            data["usage"] = usage.clone();
        }
        if let Some(join) = kept.and_then(|it| it.join) {
            data["join"] = json!(join.joining);
        }
    }
    data
}

/// Returns the value that the request itself sets at a path. It never comes from a state.
fn sent_at(ask: &ProposalKind, pointer: &str) -> Option<Value> {
    let ProposalKind::Patch { format, patch } = ask else { return None };
    // The root is the whole state, which the request does not contain.
    let pointer = Pointer::try_from(pointer).ok().filter(|it| !it.is_root())?;
    let value = match format {
        PatchFormat::Merge | PatchFormat::MergePatch => pointer.resolve(patch)?,
        // The last operation on a path decides its value.
        PatchFormat::JsonPatch => patch.as_array()?.iter().rev().find_map(|step| put_at(step, &pointer))?,
    };
    // A long value is left out instead of cut, because a part could be mistaken for the whole.
    (canonical(value).len() <= VALUE_BYTES_MAX).then(|| value.clone())
}

fn put_at<'v>(step: &'v Value, pointer: &Pointer) -> Option<&'v Value> {
    let puts = matches!(step.get("op")?.as_str()?, "add" | "replace");
    let path = Pointer::try_from(step.get("path")?.as_str()?).ok().filter(|it| puts && it.covers(pointer))?;
    let below = Pointer::try_from(pointer.as_str().strip_prefix(path.as_str())?).ok()?;
    below.resolve(step.get("value")?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(format: PatchFormat, patch: Value, pointer: &str) -> Option<Value> {
        sent_at(&ProposalKind::Patch { format, patch }, pointer)
    }

    #[test]
    fn value_comes_from_the_request_only() {
        for format in [PatchFormat::Merge, PatchFormat::MergePatch] {
            let patch = json!({"a": {"b": 1}, "c": null});
            assert_eq!(sent(format, patch.clone(), "/a/b"), Some(json!(1)));
            assert_eq!(sent(format, patch.clone(), "/c"), Some(json!(null)));
            assert_eq!(sent(format, patch.clone(), "/a/x"), None);
            assert_eq!(sent(format, patch, ""), None, "all of it is not one value");
        }
        let steps = json!([
            {"op": "add", "path": "/a", "value": {"b": 1}}, {"op": "replace", "path": "/a/b", "value": 2},
            {"op": "test", "path": "/t", "value": 3}, {"op": "remove", "path": "/r"},
            {"op": "copy", "from": "/s", "path": "/d"},
        ]);
        assert_eq!(sent(PatchFormat::JsonPatch, steps.clone(), "/a/b"), Some(json!(2)), "the last operation wins");
        for nowhere in ["/t", "/r", "/d", "/ab", ""] {
            assert_eq!(sent(PatchFormat::JsonPatch, steps.clone(), nowhere), None, "{nowhere}");
        }
    }

    #[test]
    fn long_value_is_not_repeated() {
        let fits = "x".repeat(VALUE_BYTES_MAX - 2);
        assert!(sent(PatchFormat::Merge, json!({"a": fits}), "/a").is_some());
        assert!(sent(PatchFormat::Merge, json!({"a": format!("{fits}x")}), "/a").is_none());
    }
}
