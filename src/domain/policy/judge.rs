//! judge(policy, before, request) → commit, hold or reject. Deterministic, and blind where the node is blind: two
//! states that look alike to a node are judged alike (but for what a schema ties to what the node may not read, of
//! which only the fact is told).

use serde_json::Value;

use super::claims::Claims;
use super::model::{NodePolicy, Policy};
use super::request::{Request, RequestKind};
use super::shape::{self, Seen};
use super::sight::{Sight, in_order, told};
use super::verdict::{Audience, Judgement, Reason, ReasonCode, RejectCode, Violation};
use super::view::project_by;
use crate::domain::json::diff::{Change, diff};
use crate::domain::json::patch::{Patch, PatchError};
use crate::domain::json::pattern::Pattern;
use crate::domain::json::pointer::Pointer;
use crate::domain::json::size::StateLimits;

const NO_SUCH_NODE: &str = "the policy has no such node, so it may write nothing";
const NO_ROLLBACK: &str = "the policy does not let this node roll back";
const NO_WRITER: &str = "the policy does not name this node as a writer, so it has no writes to confirm";
const NOT_IN_WRITES: &str = "the node may not write this: its `writes` do not cover it";
const IN_DENY: &str = "the node is denied to write this";
const PROTECTED_RESULT: &str = "a writer's result may not touch a protected value: nobody can be asked any more";
const NOBODY: &str = "people would have to decide, and the policy has no [[approval.stages]]";

/// Judges one request against the state it would change.
pub fn judge(policy: &Policy, before: &Value, request: &Request<'_>, limits: &StateLimits) -> Judgement {
    let Some(node) = policy.node(request.node) else { return refuse(NO_SUCH_NODE) };
    let case = Case { policy, node, before, limits };
    match request.kind {
        RequestKind::Propose { patch } => case.of_patch(patch, &[], Touched::Hold),
        RequestKind::Edit { patch } => case.of_patch(patch, &[ReasonCode::Edit], Touched::Hold),
        RequestKind::Confirm { .. } if !node.is_writer() => refuse(NO_WRITER),
        RequestKind::Confirm { patch } => case.of_patch(patch, &[], Touched::Reject),
        RequestKind::Reaffirm => case.of_state(before, ReasonCode::Reaffirm),
        RequestKind::Rollback { .. } if !node.may_roll_back() => refuse(NO_ROLLBACK),
        RequestKind::Rollback { to } => case.of_state(to, ReasonCode::Rollback),
    }
}

fn refuse(detail: &'static str) -> Judgement {
    let violation = Violation::new(RejectCode::WriteNotAllowed, Pointer::root(), detail);
    Judgement::Reject { violations: vec![violation] }
}

/// What it means that something protected is touched.
#[derive(Clone, Copy)]
enum Touched {
    /// People are asked.
    Hold,
    /// It is too late to ask.
    Reject,
}

struct Case<'a> {
    policy: &'a Policy,
    node: &'a NodePolicy,
    before: &'a Value,
    limits: &'a StateLimits,
}

/// What a patch would do.
struct Outcome<'a> {
    before: &'a Value,
    after: Value,
    changes: Vec<Change>,
}

impl<'a> Case<'a> {
    fn of_patch(&self, patch: &Patch, always: &[ReasonCode], touched: Touched) -> Judgement {
        let claims = Claims::of(patch);
        let sight = Sight::new(&self.node.reads, &claims);
        let mut lists = claims.violations(self.node);
        let (mut form, mut schema) = (Vec::new(), Vec::new());
        // A request that asks what it may not is not even tried: whether it applies would be the answer.
        let tried = (!lists.iter().any(|it| it.code == RejectCode::ReadNotAllowed)).then(|| self.apply(patch, &sight));
        match &tried {
            Some(Ok(outcome)) => {
                lists.extend(self.effect_violations(outcome, &lists, &claims, &sight));
                form = shape::check_keys(&outcome.changes);
                let faults = self.policy.schema.as_ref().map(|it| it.faults(&outcome.after)).unwrap_or_default();
                // Beside a request that is refused anyway, a fault that cannot be told is only a clue.
                schema = if lists.is_empty() { sight.tell(faults) } else { sight.tell_known(faults) };
            }
            Some(Err(failed)) => form.clone_from(failed),
            None => {}
        }
        let after = tried.as_ref().and_then(|it| it.as_ref().ok()).map(|it| &it.after);
        let of_node = self.node_schema_violations(patch, after, &claims, &sight);
        let checks = [lists, form, schema, of_node];
        let violations: Vec<_> = checks.into_iter().flat_map(|it| in_order(self.policy, it)).collect();
        match tried {
            Some(Ok(outcome)) if violations.is_empty() => self.decide(outcome, &claims, &sight, always, touched),
            _ => Judgement::Reject { violations },
        }
    }

    /// Applies the patch. Every probe lies in the node's reads, so that failing tells nothing.
    fn apply(&self, patch: &Patch, sight: &Sight<'_>) -> Result<Outcome<'a>, Vec<Violation>> {
        let after = patch.apply(self.before, self.limits).map_err(|error| vec![failure(&error)])?;
        if let Some(violation) = shape::check(&after, self.limits, &Seen::Part(sight)) {
            return Err(vec![violation]);
        }
        let changes = diff(self.before, &after);
        Ok(Outcome { before: self.before, after, changes })
    }

    /// Effects outside the write lists. What differs where the node cannot look is told at the place that the
    /// request named, and only if the request as such was admissible: then it can only mean that something stands
    /// where the policy has an object.
    fn effect_violations(
        &self,
        outcome: &Outcome<'_>,
        asked: &[Violation],
        claims: &Claims,
        sight: &Sight<'_>,
    ) -> Vec<Violation> {
        let node = self.node;
        let refused = |change: &Change| match &change.pointer {
            pointer if node.deny.covers(pointer) => Some((RejectCode::WriteDenied, IN_DENY)),
            // An empty object that a value takes the place of is as good as none: only its members could be told.
            pointer if is_empty_object(change) && claims.set.contains(pointer) && node.writes.covers_every_member(pointer) => None,
            pointer if !node.writes.covers(pointer) => Some((RejectCode::WriteNotAllowed, NOT_IN_WRITES)),
            _ => None,
        };
        outcome
            .effective(claims)
            .filter(|change| asked.is_empty() || node.reads.covers(&change.pointer))
            .filter_map(|change| refused(change).map(|(code, detail)| (change, code, detail)))
            .map(|(change, code, detail)| Violation::new(code, sight.tellable(&change.pointer), detail))
            .collect()
    }

    /// The node's schema is of what it sends: of a merge object itself; of a JSON Patch, which is a list of steps,
    /// the values that result at the top-level keys it names, as far as the node knows them.
    fn node_schema_violations(
        &self,
        patch: &Patch,
        after: Option<&Value>,
        claims: &Claims,
        sight: &Sight<'_>,
    ) -> Vec<Violation> {
        let Some(schema) = &self.node.schema else { return Vec::new() };
        if let Some(object) = patch.object() {
            return schema.faults(&Value::Object(object.clone())).into_iter().map(told).collect();
        }
        let Some(after) = after else { return Vec::new() };
        let Value::Object(mut known) = project_by(sight, after) else { return Vec::new() };
        known.retain(|key, _| claims.top_keys.contains(key));
        schema.faults(&Value::Object(known)).into_iter().map(told).collect()
    }

    fn decide(
        &self,
        outcome: Outcome<'_>,
        claims: &Claims,
        sight: &Sight<'_>,
        always: &[ReasonCode],
        touched: Touched,
    ) -> Judgement {
        let protected = self.touched(&outcome, claims);
        if let (Touched::Reject, false) = (touched, protected.is_empty()) {
            let place = |it: Pointer| Violation::new(RejectCode::WriteDenied, sight.tellable(&it), PROTECTED_RESULT);
            let violations = protected.into_iter().map(|(_, pointer)| place(pointer)).collect();
            return Judgement::Reject { violations: in_order(self.policy, violations) };
        }
        let named = claims.leaves_unseen(&self.node.reads, &outcome.after);
        let mut reasons: Vec<_> = always.iter().map(|code| Reason::of_kind(*code)).collect();
        // Every touch follows from what the request names or from what differs within the node's reads.
        reasons.extend(protected.iter().map(|(pattern, _)| Reason::protected(pattern, Audience::Everyone)));
        let Outcome { after, changes, .. } = outcome;
        if reasons.is_empty() {
            return Judgement::Commit { after, changes, named };
        }
        self.hold(after, changes, named, reasons)
    }

    /// The protected patterns that the request touches, each with one place where it does. What a request sets where
    /// its node cannot look counts as touched, or a guess that changes nothing would tell that it was right.
    fn touched(&self, outcome: &Outcome<'_>, claims: &Claims) -> Vec<(&'a Pattern, Pointer)> {
        let reads = &self.node.reads;
        let unseen = |pointer: &&Pointer| !reads.covers(pointer);
        let place = |pattern: &Pattern| {
            let effect = outcome.effective(claims).map(|change| &change.pointer).find(|it| pattern.touches(it));
            let set = || claims.set_unseen(reads).find(|it| pattern.touches(it));
            let passed = || claims.passed.iter().filter(unseen).find(|it| pattern.covers(it));
            effect.or_else(set).or_else(passed).cloned()
        };
        self.policy.protected.iter().filter_map(|pattern| Some((pattern, place(pattern)?))).collect()
    }

    /// Requests for a state that the node did not write itself.
    fn of_state(&self, after: &Value, code: ReasonCode) -> Judgement {
        let nothing = Claims::default();
        let sight = Sight::new(&self.node.reads, &nothing);
        let faults = self.policy.schema.as_ref().map(|it| it.faults(after)).unwrap_or_default();
        if !faults.is_empty() {
            return Judgement::Reject { violations: in_order(self.policy, sight.tell(faults)) };
        }
        let changes = diff(self.before, after);
        let mut reasons = vec![Reason::of_kind(code)];
        for pattern in &self.policy.protected {
            let says_something = |change: &&Change| !change.is_filling(self.before, after);
            let mut touching =
                changes.iter().filter(says_something).filter(|change| pattern.touches(&change.pointer)).peekable();
            if touching.peek().is_some() {
                let told = touching.any(|change| self.node.reads.covers(&change.pointer));
                let audience = if told { Audience::Everyone } else { Audience::Reviewers };
                reasons.push(Reason::protected(pattern, audience));
            }
        }
        self.hold(after.clone(), changes, Vec::new(), reasons)
    }

    fn hold(&self, after: Value, changes: Vec<Change>, named: Vec<Pointer>, reasons: Vec<Reason>) -> Judgement {
        if self.policy.approval.stages.is_empty() {
            let violation = Violation::new(RejectCode::NobodyCanApprove, Pointer::root(), NOBODY);
            return Judgement::Reject { violations: vec![violation] };
        }
        Judgement::Hold { after, changes, named, reasons }
    }
}

impl Outcome<'_> {
    /// The changes that say something of their own. An object that gains its first member or loses its last is
    /// changed at the member, not at itself; and an object that had to be there for a member to be deleted from it
    /// is no change of the asker's. Both would tell of members that the asker may not read.
    fn effective<'s>(&'s self, claims: &'s Claims) -> impl Iterator<Item = &'s Change> {
        self.changes.iter().filter(|change| !self.is_by_the_way(change, claims))
    }

    fn is_by_the_way(&self, change: &Change, claims: &Claims) -> bool {
        let made_on_the_way = || {
            let empty = matches!(&change.after, Some(Value::Object(members)) if members.is_empty());
            let new = change.pointer.resolve(self.before).is_none();
            empty && new && claims.passed.contains(&change.pointer)
        };
        change.is_filling(self.before, &self.after) || made_on_the_way()
    }
}

fn is_empty_object(change: &Change) -> bool {
    matches!(&change.before, Some(Value::Object(members)) if members.is_empty())
}

/// What does not apply is told by place: the node reads what decides about it.
fn failure(error: &PatchError) -> Violation {
    match error {
        PatchError::TooBig { reason } => shape::too_big(*reason),
        PatchError::StateNotAnObject { .. } => shape::not_an_object(),
        _ => Violation {
            code: RejectCode::PatchFailed,
            pointer: error.pointer(),
            // One of a few fixed sentences.
            detail: error.to_string().into(),
        },
    }
}
