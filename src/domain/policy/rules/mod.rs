//! Rules: conditions in CEL over a change and the states around it.
//!
//! A rule sees the whole state, so what it says may depend on what its asker may not read. It says little: that it
//! denies or holds, in words that stand in the policy, at a place that the asker knows. What an evaluation stumbles
//! over is told to nobody.

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
use crate::domain::json::diff::LeafChange;
use crate::domain::json::pointer::Pointer;
use crate::domain::threads::tool_call::Tool;
use cost_limit::{CostMeter, EvaluationError};
use eval::{RuleInputs, holds};
use expr::Expr;

/// What is said of a rule that has no answer: nothing of why, since that may tell of values.
const NO_ANSWER: &str = "this rule could not be decided for the request, and what cannot be decided is rejected";

/// What is said of a rule that asks for what a supposed request leaves open; a real one leaves nothing open.
const UNSUPPOSED: &str = "this rule asks who asks or what has committed in the thread, and that is not supposed here";

/// One `[[rules]]` table.
#[derive(Debug)]
pub(super) struct PolicyRule {
    pub(super) name: String,
    pub(super) then: RuleAction,
    pub(super) reason: String,
    when: Expr,
    asked: EvaluationScope,
    /// Which calls it is about; all requests, if it does not say.
    tools: Option<ToolGlobs>,
}

/// What follows if the condition holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum RuleAction {
    Hold,
    Deny,
    /// The request goes its way, and people and its asker are told.
    Warn,
}

/// How often a rule is asked.
#[derive(Debug)]
enum EvaluationScope {
    /// Once: it is not about a change.
    Once,
    EachChange,
    /// For the change of one path: for no other could it hold.
    ChangeAt(String),
}

/// What rules are asked about.
pub(super) struct RuleSubject<'a> {
    pub(super) before: &'a Value,
    pub(super) after: &'a Value,
    pub(super) changes: &'a [Cow<'a, LeafChange>],
    pub(super) node: &'a str,
    pub(super) around: &'a RequestContext<'a>,
}

/// What the rules say, in the policy's order.
#[derive(Default)]
pub(super) struct RuleFindings<'a> {
    /// Rules that deny, and where.
    pub(super) denied: Vec<Violation>,
    pub(super) failed: Vec<Violation>,
    /// Rules that hold, and where.
    pub(super) held: Vec<TriggeredRule<'a>>,
    /// Rules that warn, and where.
    pub(super) warned: Vec<TriggeredRule<'a>>,
}

/// A rule that holds or warns.
pub(super) struct TriggeredRule<'a> {
    pub(super) rule: &'a PolicyRule,
    pub(super) places: Vec<Pointer>,
}

impl PolicyRule {
    /// Reads the condition; what is wrong with it is told to who wrote it.
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

    /// Whether it is about a request with such a tool, or none.
    fn is_about(&self, tool: Option<&Tool>) -> bool {
        self.tools.as_ref().is_none_or(|globs| tool.is_some_and(|it| globs.covers(&it.name)))
    }

    /// The path whose change it holds, where it is about no other and about no tool.
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

/// Asks every rule. `place` says where an asker may be told that a change is meant.
pub(super) fn ask<'a>(
    rules: &'a [PolicyRule],
    matter: &RuleSubject<'_>,
    place: impl Fn(&Pointer) -> Pointer,
) -> RuleFindings<'a> {
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
            // Most rules have nothing to say, and saying where takes longer than asking.
            let at = || change.map(|it| place(&it.pointer)).unwrap_or_default();
            let RuleSubject { before, after, node, around, .. } = *matter;
            match holds(&rule.when, RuleInputs { before, after, change, node, around }, &mut meter) {
                Ok(false) => {}
                Ok(true) if rule.then == RuleAction::Deny => push(&mut findings.denied, rule.denial(at())),
                Ok(true) => places.push(at()),
                Err(EvaluationError::Failed) => push(&mut findings.failed, rule.no_answer(at(), NO_ANSWER)),
                Err(EvaluationError::Unsupposed) => push(&mut findings.failed, rule.no_answer(at(), UNSUPPOSED)),
                // The rest of its changes would fare alike.
                Err(EvaluationError::Spent) => {
                    push(&mut findings.failed, rule.no_answer(Pointer::root(), NO_ANSWER));
                    break;
                }
            }
        }
        if !places.is_empty() {
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

/// One rule says one thing of one place once, and no check says more than fits an answer.
fn push(found: &mut Vec<Violation>, violation: Violation) {
    if found.last() != Some(&violation) && found.len() < bounds::VIOLATIONS_MAX {
        found.push(violation);
    }
}
