//! Judges a request: commit, hold or reject.
//!
//! The result is deterministic and does not depend on values that the node cannot read: two states that look alike to
//! a node are judged alike. The one exception is a schema that relates such values to others. Only the fact of a
//! mismatch is returned.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::approval_basis::{ApprovalBasis, ProtectedTouchEffect};
use super::bounds;
use super::budget_check;
use super::budget_check::BudgetBreaches;
use super::effect::PatchEffect;
use super::guessable_leaves::guessable;
use super::join_rules;
use super::judgement::{JudgedReason, JudgedWarning, Judgement, ReasonAudience, ReasonCode, RejectCode, Violation};
use super::model::{NodePolicy, Policy};
use super::patch_footprint::PatchFootprint;
use super::request::{CallerContext, PolicyRequest, RequestContext, RequestKind};
use super::rules::{self, RuleFindings, RuleSubject, TriggeredRule};
use super::state_shape;
use super::state_shape::StateVisibility;
use super::transition_check::{TransitionCheckResult, follow};
use super::view::project_by;
use super::visibility::{Visibility, by_place, in_order, told};
use crate::json::diff::LeafChange;
use crate::json::patch::{Patch, PatchError};
use crate::json::pattern::Pattern;
use crate::json::pointer::Pointer;
use crate::json::size::{StateLimits, ValueSize};
use crate::primitives::id::NodeId;
use crate::threads::usage::Totals;

const NO_SUCH_NODE: &str = "the policy has no such node: use a node that the policy names";
const NO_ROLLBACK: &str = "the policy does not allow this node to roll back";
const NO_WRITER: &str = "the policy does not name this node as a writer, so it has no writes to confirm";
const PROTECTED_RESULT: &str =
    "a writer's result may not touch a protected value, because the write has already happened";
const TEST_FAILED: &str = "the test operation found another value";
const MOVED_INTO_ITSELF: &str = "a value cannot be moved below itself";
const DOES_NOT_APPLY: &str = "the operation does not fit the current state: read the state again";
const NOBODY: &str = "the request requires approval, and the policy has no [[approval.stages]]";

/// Judges one request for no particular caller. A rule that needs the caller or the thread's history cannot be
/// evaluated, so the request is rejected.
pub fn judge(policy: &Policy, before: &Value, request: &PolicyRequest<'_>, limits: &StateLimits) -> Judgement {
    judge_in(policy, before, request, &RequestContext::default(), limits)
}

/// Judges one request of one caller in one thread.
pub fn judge_for(
    policy: &Policy,
    before: &Value,
    request: &PolicyRequest<'_>,
    asker: CallerContext<'_>,
    limits: &StateLimits,
) -> Judgement {
    judge_in(policy, before, request, &RequestContext::of(asker), limits)
}

/// Judges one request with its context.
pub fn judge_in(
    policy: &Policy,
    before: &Value,
    request: &PolicyRequest<'_>,
    around: &RequestContext<'_>,
    limits: &StateLimits,
) -> Judgement {
    let Some(node) = policy.node(request.node) else { return refuse(NO_SUCH_NODE) };
    let case = JudgementInput { policy, node, name: request.node, around, before, limits };
    match request.kind {
        RequestKind::Propose { patch } => case.of_patch(patch, &[], ProtectedTouchEffect::Hold),
        RequestKind::Edit { patch } => case.of_patch(patch, &[ReasonCode::Edit], ProtectedTouchEffect::Hold),
        RequestKind::Confirm { .. } if !node.is_writer() => refuse(NO_WRITER),
        RequestKind::Confirm { patch } => case.of_patch(patch, &[], ProtectedTouchEffect::Reject),
        RequestKind::Join { to, changed, used } => case.of_join(to, changed, used),
        RequestKind::Reaffirm => case.of_state(before, &[], ReasonCode::Reaffirm),
        RequestKind::Rollback { .. } if !node.may_roll_back() => refuse(NO_ROLLBACK),
        RequestKind::Rollback { to, reset } => case.of_state(to, &guessable(policy, reset), ReasonCode::Rollback),
    }
}

fn refuse(detail: &'static str) -> Judgement {
    let violation = Violation::new(RejectCode::WriteNotAllowed, Pointer::root(), detail);
    Judgement::Reject { violations: vec![violation] }
}

/// Violations of a request before its rules are evaluated.
#[derive(Default)]
struct RequestViolations {
    lists: Vec<Violation>,
    form: Vec<Violation>,
    schema: Vec<Violation>,
    of_node: Vec<Violation>,
    budget: BudgetBreaches,
}

/// Results of rules and budgets for a request without violations.
struct RuleResults<'a> {
    held: Vec<TriggeredRule<'a>>,
    over: Vec<JudgedReason>,
    warnings: Vec<JudgedWarning>,
}

pub(super) struct JudgementInput<'a> {
    pub(super) policy: &'a Policy,
    pub(super) node: &'a NodePolicy,
    name: &'a NodeId,
    around: &'a RequestContext<'a>,
    pub(super) before: &'a Value,
    limits: &'a StateLimits,
}

impl<'p> JudgementInput<'p> {
    fn of_patch(&self, patch: &Patch, always: &[ReasonCode], touched: ProtectedTouchEffect) -> Judgement {
        let claims = PatchFootprint::of(patch);
        let sight = Visibility::new(&self.node.reads, &claims);
        let mut lists = claims.violations(self.node);
        let (mut form, mut schema) = (Vec::new(), Vec::new());
        // A request that probes an unreadable value is not applied, because the result would reveal that value.
        let tried =
            (!lists.iter().any(|it| it.code == RejectCode::ReadNotAllowed)).then(|| self.apply(patch, &claims, &sight));
        match &tried {
            Some(Ok(outcome)) => {
                lists.extend(outcome.violations(self.node, &lists, &sight));
                form = state_shape::check_keys(&outcome.changes);
                let faults = self.policy.schema.as_ref().map(|it| it.faults(&outcome.after)).unwrap_or_default();
                // If the request is rejected anyway, a fault that may not be named is left out, because it would only
                // give a clue.
                schema = if lists.is_empty() { sight.tell(faults) } else { sight.tell_known(faults) };
            }
            // The total size would be a clue, too, if the node may not write there.
            Some(Err(failed)) if failed.code == RejectCode::TooLarge && !lists.is_empty() => {}
            Some(Err(failed)) => form.push(failed.clone()),
            None => {}
        }
        let after = tried.as_ref().and_then(|it| it.as_ref().ok()).map(|it| &it.after);
        let of_node = self.node_schema_violations(patch.object(), after, &claims, &sight);
        let budget = match touched {
            ProtectedTouchEffect::Hold => {
                budget_check::breaches(self.policy, self.node, self.name, self.before, self.around)
            }
            // A writer's result calls no tool and uses nothing.
            ProtectedTouchEffect::Reject => BudgetBreaches::default(),
        };
        let found = RequestViolations { lists, form, schema, of_node, budget };
        self.weigh(tried, found, &claims, &sight, ApprovalBasis { always, changed: &[], touched })
    }

    /// Judges the effect of joined branches. Nothing in it can probe the state, because the node can read all of it.
    fn of_join(&self, to: &Value, changed: &[Pointer], used: &Totals) -> Judgement {
        if let Some(unread) = join_rules::unread(self.policy, self.name, changed) {
            return Judgement::Reject { violations: vec![unread] };
        }
        let mut claims = PatchFootprint::default();
        let tried = {
            let sight = Visibility::new(&self.node.reads, &claims);
            match state_shape::check(to, &ValueSize::of(to), self.limits, &StateVisibility::Part(&sight)) {
                Some(violation) => Err(violation),
                None => Ok(PatchEffect::new(self.before, to.clone(), &claims, &self.node.reads)),
            }
        };
        // The node's schema checks the changed top-level keys, which only the effect of the join names.
        if let Ok(outcome) = &tried {
            let top_key = |it: &LeafChange| it.pointer.tokens().next().map(Cow::into_owned);
            claims.top_keys = outcome.changes.iter().filter_map(top_key).collect();
        }
        let sight = Visibility::new(&self.node.reads, &claims);
        let mut found = RequestViolations {
            budget: join_rules::breaches(self.policy, self.node, self.name, self.before, self.around, used),
            ..RequestViolations::default()
        };
        match &tried {
            Ok(outcome) => {
                found.lists = outcome.violations(self.node, &[], &sight);
                found.form = state_shape::check_keys(&outcome.changes);
                let faults = self.policy.schema.as_ref().map(|it| it.faults(to)).unwrap_or_default();
                found.schema = if found.lists.is_empty() { sight.tell(faults) } else { sight.tell_known(faults) };
                found.of_node = self.node_schema_violations(None, Some(to), &claims, &sight);
            }
            Err(failed) => found.form.push(failed.clone()),
        }
        let basis = ApprovalBasis { always: &[], changed, touched: ProtectedTouchEffect::Hold };
        self.weigh(Some(tried), found, &claims, &sight, basis)
    }

    /// Combines the violations and the effect into a judgement.
    fn weigh(
        &self,
        tried: Option<Result<PatchEffect, Violation>>,
        found: RequestViolations,
        claims: &PatchFootprint,
        sight: &Visibility<'_>,
        basis: ApprovalBasis<'_>,
    ) -> Judgement {
        let RequestViolations { lists, form, schema, of_node, budget } = found;
        let following = self.following(&tried, claims, sight, &lists);
        let rules = match &tried {
            // As above: if the request names a forbidden path, the result of a rule would only give a clue.
            Some(Ok(outcome)) if lists.is_empty() && form.is_empty() && !self.policy.rules.is_empty() => {
                self.ask(&outcome.after, &outcome.asked(self.before, claims, &self.node.reads), |it| sight.tellable(it))
            }
            _ => RuleFindings::default(),
        };
        // Each check is sorted on its own, so that the checks are reported in the order in which they run.
        let [lists, form, schema, mut of_node, following] =
            [lists, form, schema, of_node, following].map(|it| in_order(self.policy, it));
        // The node's schema and the flow's often report the same violation.
        of_node.retain(|it| schema.binary_search_by(|other| by_place(other, it)).is_err());
        // A value that does not match its schema often makes a rule fail, too. The rule's error adds nothing then.
        let failed = if schema.is_empty() && of_node.is_empty() { rules.failed } else { Vec::new() };
        let tool = self.around.tool.and_then(|it| self.policy.tool_violation(self.node, &it.name));
        let changed = self.policy.changed_tool_violation(self.around.tool_has_changed);
        let tool = Vec::from_iter(tool.or(changed));
        let violations = [lists, form, schema, of_node, following, tool, rules.denied, failed, budget.denied].concat();
        match tried {
            Some(Ok(outcome)) if violations.is_empty() => {
                let warnings = warnings(&rules.warned, ReasonAudience::Everyone);
                let said = RuleResults { held: rules.held, over: budget.held, warnings };
                self.decide(outcome, claims, sight, said, basis)
            }
            _ => Judgement::Reject { violations },
        }
    }

    /// Returns the violations of the transition rules. As above, violations about values that the caller cannot read
    /// are left out if the request names a forbidden path.
    fn following(
        &self,
        tried: &Option<Result<PatchEffect, Violation>>,
        claims: &PatchFootprint,
        sight: &Visibility<'_>,
        lists: &[Violation],
    ) -> Vec<Violation> {
        let Some(Ok(outcome)) = tried else { return Vec::new() };
        let (policy, reads) = (self.policy, &self.node.reads);
        let TransitionCheckResult { mut known, unknown } =
            follow(&policy.transitions, self.before, outcome, claims, reads, sight);
        known.extend(if lists.is_empty() { unknown } else { Vec::new() });
        known
    }

    /// Evaluates the rules against the state after the request.
    pub(super) fn ask(
        &self,
        after: &Value,
        changes: &[Cow<'_, LeafChange>],
        place: impl Fn(&Pointer) -> Pointer,
    ) -> RuleFindings<'p> {
        let Self { policy, name, around, before, .. } = *self;
        let matter = RuleSubject { before, after, changes, node: name.as_str(), around };
        rules::ask(&policy.rules, &matter, |it| policy.cut(&place(it)))
    }

    /// Applies the patch. Every probe is within the node's reads, so a failure reveals nothing new.
    fn apply(&self, patch: &Patch, claims: &PatchFootprint, sight: &Visibility<'_>) -> Result<PatchEffect, Violation> {
        let (after, size) = patch.apply_and_measure(self.before, self.limits).map_err(|error| failure(&error))?;
        match state_shape::check(&after, &size, self.limits, &StateVisibility::Part(sight)) {
            Some(violation) => Err(violation),
            None => Ok(PatchEffect::new(self.before, after, claims, &self.node.reads)),
        }
    }

    /// Checks the node's schema against what the node sends. For a merge patch, that is the object itself. For a JSON
    /// Patch or a join, it is the resulting values at the top-level keys that the request names, as far as the node
    /// can read them.
    fn node_schema_violations(
        &self,
        sent: Option<&Map<String, Value>>,
        after: Option<&Value>,
        claims: &PatchFootprint,
        sight: &Visibility<'_>,
    ) -> Vec<Violation> {
        let Some(schema) = &self.node.schema else { return Vec::new() };
        if let Some(object) = sent {
            return schema.faults(&Value::Object(object.clone())).into_iter().map(told).collect();
        }
        let Some(after) = after else { return Vec::new() };
        let Value::Object(mut known) = project_by(sight, after) else { return Vec::new() };
        known.retain(|key, _| claims.top_keys.contains(key));
        schema.faults(&Value::Object(known)).into_iter().map(told).collect()
    }

    fn decide(
        &self,
        outcome: PatchEffect,
        claims: &PatchFootprint,
        sight: &Visibility<'_>,
        RuleResults { held, over, warnings }: RuleResults<'_>,
        ApprovalBasis { always, changed, touched }: ApprovalBasis<'_>,
    ) -> Judgement {
        let protected = outcome.touched(&self.policy.protected, claims, &self.node.reads);
        if let (ProtectedTouchEffect::Reject, false) = (touched, protected.is_empty() && held.is_empty()) {
            let place = |it: Pointer| Violation::new(RejectCode::WriteDenied, sight.tellable(&it), PROTECTED_RESULT);
            let of_protected = protected.into_iter().map(|(_, pointer)| place(pointer)).collect();
            let of_rules = held.into_iter().flat_map(|it| it.places.into_iter().map(move |at| it.rule.denial(at)));
            let violations = of_rules.chain(in_order(self.policy, of_protected)).collect();
            return Judgement::Reject { violations };
        }
        let mut named = claims.leaves_unseen(&self.node.reads, &outcome.after);
        // A join names no path itself, but a node may have set some of these on a branch without reading them.
        named.extend(guessable(self.policy, changed));
        let mut reasons: Vec<_> = always.iter().map(|code| JudgedReason::of_kind(*code)).collect();
        // Every touch follows from a path that the request names or from a difference within the node's reads, so the
        // caller may see all of these reasons.
        let of_effect = |it: &Pattern| protected.iter().any(|(pattern, _)| *pattern == it);
        let touched = |it: &&Pattern| of_effect(it) || changed.iter().any(|place| it.touches(place));
        reasons.extend(
            self.policy
                .protected
                .iter()
                .filter(touched)
                .map(|it| JudgedReason::protected(it, ReasonAudience::Everyone)),
        );
        reasons.extend(held.iter().map(|it| JudgedReason::of_rule(&it.rule.reason, ReasonAudience::Everyone)));
        reasons.extend(over);
        if self.around.tool_has_changed {
            reasons.push(JudgedReason::of_kind(ReasonCode::ToolChanged));
        }
        let PatchEffect { after, changes, .. } = outcome;
        if reasons.is_empty() {
            return Judgement::Commit { after, changes, named, warnings };
        }
        self.hold(after, changes, named, reasons, warnings)
    }

    pub(super) fn hold(
        &self,
        after: Value,
        changes: Vec<LeafChange>,
        named: Vec<Pointer>,
        reasons: Vec<JudgedReason>,
        warnings: Vec<JudgedWarning>,
    ) -> Judgement {
        // Without a stage no reviewer could decide, and the pending review would block the thread until its deadline.
        if self.policy.approval.stages.is_empty() {
            let violation = Violation::new(RejectCode::NobodyCanApprove, Pointer::root(), NOBODY);
            return Judgement::Reject { violations: vec![violation] };
        }
        Judgement::Hold { after, changes, named, reasons, warnings }
    }
}

/// Returns one warning for each rule and path, in the order of the policy.
pub(super) fn warnings(warned: &[TriggeredRule<'_>], audience: ReasonAudience) -> Vec<JudgedWarning> {
    let of_rule = |it: &TriggeredRule<'_>| {
        let warning = |at: &Pointer| it.rule.warning(at.clone(), audience);
        it.places.iter().map(warning).collect::<Vec<_>>()
    };
    warned.iter().flat_map(of_rule).take(bounds::WARNINGS_MAX).collect()
}

/// Returns the violation of a patch that does not apply. The path reveals nothing new, because the node reads the
/// values that decide it. The sentence does not distinguish a missing array item from a missing member: the node may
/// read the member without its container.
fn failure(error: &PatchError) -> Violation {
    let detail = match error {
        PatchError::TooBig { reason } => return state_shape::too_big(*reason),
        PatchError::StateNotAnObject { .. } => return state_shape::not_an_object(),
        PatchError::TestFailed { .. } => TEST_FAILED,
        PatchError::MovedIntoItself { .. } => MOVED_INTO_ITSELF,
        PatchError::NotFound { .. }
        | PatchError::BadIndex { .. }
        | PatchError::NotAnObject
        | PatchError::NotAnArray
        | PatchError::TooManyOperations
        | PatchError::Malformed { .. } => DOES_NOT_APPLY,
    };
    Violation::new(RejectCode::PatchFailed, error.pointer(), detail)
}
