//! Rules: conditions in CEL over a change, the states and the request.
//!
//! A rule can read the whole state, so its result may depend on values that the caller cannot read. The response
//! therefore contains little: that the rule denies or holds, with the sentence of the policy, at a path that the
//! caller knows. The cause of a failed evaluation is never returned.

mod cost_limit;
mod depth_limit;
mod eval;
mod expr;
mod parse;
mod value;

#[cfg(test)]
mod tests;

use std::borrow::Cow;

use serde_json::Value;

use super::bounds;
use super::judgement::{JudgedWarning, ReasonAudience, RejectCode, Violation};
use super::request::RequestContext;
use super::tool_globs::ToolGlobs;
use crate::json::diff::LeafChange;
use crate::json::pointer::Pointer;
use crate::threads::tool_call::Tool;
use cost_limit::{CostMeter, EvaluationError};
use eval::{RuleInputs, holds};
use expr::Expr;

/// Detail of a rule that could not be evaluated. It does not name the cause, which may depend on unreadable values.
const NO_ANSWER: &str = "the rule could not be evaluated for this request, so the request is rejected";

/// Detail of a rule that needs a value which a dry run left out. A real request leaves nothing out.
const UNSUPPOSED: &str =
    "the rule needs the caller or the nodes that have committed: set `principal` and `committed_nodes`";

/// One `[[rules]]` table.
#[derive(Debug)]
pub(super) struct PolicyRule {
    pub(super) name: String,
    pub(super) then: RuleAction,
    pub(super) reason: String,
    when: Expr,
    asked: EvaluationScope,
    /// Tools to which the rule applies. Without them, it applies to all requests.
    tools: Option<ToolGlobs>,
}

/// Result if the condition is true.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum RuleAction {
    Hold,
    Deny,
    /// The request continues. Reviewers and the caller see a warning.
    Warn,
}

/// How often a rule is evaluated.
#[derive(Debug)]
enum EvaluationScope {
    /// Once, because the condition does not use a change.
    Once,
    EachChange,
    /// Only for the change of one path, because the condition is false for every other path.
    ChangeAt(String),
}

/// Input of all rules.
pub(super) struct RuleSubject<'a> {
    pub(super) before: &'a Value,
    pub(super) after: &'a Value,
    pub(super) changes: &'a [Cow<'a, LeafChange>],
    pub(super) node: &'a str,
    pub(super) around: &'a RequestContext<'a>,
}

/// Results of the rules, in the policy's order.
#[derive(Default)]
pub(super) struct RuleFindings<'a> {
    /// Rules that deny, with their paths.
    pub(super) denied: Vec<Violation>,
    pub(super) failed: Vec<Violation>,
    /// Rules that require approval, with their paths.
    pub(super) held: Vec<TriggeredRule<'a>>,
    /// Rules that warn, with their paths.
    pub(super) warned: Vec<TriggeredRule<'a>>,
}

/// A rule that holds or warns.
pub(super) struct TriggeredRule<'a> {
    pub(super) rule: &'a PolicyRule,
    pub(super) places: Vec<Pointer>,
}

impl PolicyRule {
    /// Parses the condition. The error is for the policy's author.
    pub(super) fn new(
        name: String,
        when: &str,
        then: RuleAction,
        reason: String,
        tools: Option<ToolGlobs>,
    ) -> Result<Self, String> {
        let when = parse::read(when)?;
        let asked = match when.only_path() {
            Some(path) => EvaluationScope::ChangeAt(path.to_owned()),
            None if when.is_of_a_change() => EvaluationScope::EachChange,
            None => EvaluationScope::Once,
        };
        Ok(Self { name, then, reason, when, asked, tools })
    }

    pub(super) fn tools(&self) -> Option<&ToolGlobs> {
        self.tools.as_ref()
    }

    /// Returns whether the rule applies to a request with this tool, or without a tool.
    fn is_about(&self, tool: Option<&Tool>) -> bool {
        self.tools().is_none_or(|globs| tool.is_some_and(|it| globs.covers(&it.name)))
    }

    /// Returns the only path that a rule is about, if it holds or denies. The rule is false for every other change.
    pub(super) fn only_path(&self) -> Option<Pointer> {
        match &self.asked {
            EvaluationScope::ChangeAt(path) if self.then != RuleAction::Warn => Pointer::try_from(path.as_str()).ok(),
            _ => None,
        }
    }

    /// Returns the path whose change requires approval, if the rule is about only this path and about no tool.
    pub(super) fn held_path(&self) -> Option<&str> {
        match &self.asked {
            EvaluationScope::ChangeAt(path) if self.then == RuleAction::Hold && self.tools.is_none() => Some(path),
            _ => None,
        }
    }

    pub(super) fn denial(&self, pointer: Pointer) -> Violation {
        let detail = Cow::Owned(self.reason.clone());
        Violation { code: RejectCode::RuleDenied, pointer, detail, rule: Some(self.name.clone()) }
    }

    pub(super) fn warning(&self, pointer: Pointer, audience: ReasonAudience) -> JudgedWarning {
        JudgedWarning { rule: self.name.clone(), pointer, detail: self.reason.clone(), audience }
    }

    fn no_answer(&self, pointer: Pointer, detail: &'static str) -> Violation {
        let detail = Cow::Borrowed(detail);
        Violation { code: RejectCode::RuleError, pointer, detail, rule: Some(self.name.clone()) }
    }
}

/// Evaluates every rule. `place` returns the path that the caller may see for a change.
pub(super) fn ask<'a>(
    rules: &'a [PolicyRule],
    matter: &RuleSubject<'_>,
    place: impl Fn(&Pointer) -> Pointer,
) -> RuleFindings<'a> {
    // All rules share one meter, because their number multiplies the cost.
    let mut meter = CostMeter::new();
    let mut findings = RuleFindings::default();
    for rule in rules.iter().filter(|it| it.is_about(matter.around.tool)) {
        let mut places: Vec<Pointer> = Vec::new();
        let about: &mut dyn Iterator<Item = Option<&LeafChange>> = match &rule.asked {
            EvaluationScope::Once => &mut std::iter::once(None),
            EvaluationScope::EachChange => &mut matter.changes.iter().map(|it| Some(&**it)),
            EvaluationScope::ChangeAt(path) => {
                &mut matter.changes.iter().map(|it| Some(&**it)).filter(move |it| is_at(*it, path))
            }
        };
        for change in about {
            // Most rules do not apply, and finding the path takes longer than evaluating the condition.
            let at = || change.map(|it| place(&it.pointer)).unwrap_or_default();
            let RuleSubject { before, after, node, around, .. } = *matter;
            match holds(&rule.when, RuleInputs { before, after, change, node, around }, &mut meter) {
                Ok(false) => {}
                Ok(true) if rule.then == RuleAction::Deny => push(&mut findings.denied, rule.denial(at())),
                Ok(true) => places.push(at()),
                // An error rejects the request, because a skipped rule would not be enforced.
                Err(EvaluationError::Failed) => push(&mut findings.failed, rule.no_answer(at(), NO_ANSWER)),
                Err(EvaluationError::Unsupposed) => push(&mut findings.failed, rule.no_answer(at(), UNSUPPOSED)),
                // The rule would fail for its other changes, too.
                Err(EvaluationError::Spent) => {
                    push(&mut findings.failed, rule.no_answer(Pointer::root(), NO_ANSWER));
                    break;
                }
            }
        }
        if !places.is_empty() {
            // Several changes may be reported at the same path above them.
            places.dedup();
            let heeded = if rule.then == RuleAction::Warn { &mut findings.warned } else { &mut findings.held };
            heeded.push(TriggeredRule { rule, places });
        }
    }
    findings
}

fn is_at(change: Option<&LeafChange>, path: &str) -> bool {
    change.is_some_and(|it| it.pointer.as_str() == path)
}

/// Adds each finding of a rule once for each path, up to the limit of a response.
fn push(found: &mut Vec<Violation>, violation: Violation) {
    if found.last() != Some(&violation) && found.len() < bounds::VIOLATIONS_MAX {
        found.push(violation);
    }
}
