//! Judges a request for a state that the node did not write itself: a rollback or a reaffirmation.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde_json::Value;

use super::judge::{JudgementInput, warnings};
use super::judgement::{JudgedReason, Judgement, ReasonAudience, ReasonCode};
use super::patch_footprint::PatchFootprint;
use super::visibility::{Visibility, in_order};
use crate::json::diff::{LeafChange, diff};
use crate::json::pointer::Pointer;

impl JudgementInput<'_> {
    /// Judges the state `after`. The leaves in `named` count as set even if their value is the same.
    pub(super) fn of_state(&self, after: &Value, named: &[Pointer], code: ReasonCode) -> Judgement {
        let nothing = PatchFootprint::default();
        let sight = Visibility::new(&self.node.reads, &nothing);
        // The flow's schema may be newer than a restored state.
        let faults = self.policy.schema.as_ref().map(|it| it.faults(after)).unwrap_or_default();
        if !faults.is_empty() {
            return Judgement::Reject { violations: in_order(self.policy, sight.tell(faults)) };
        }
        let changes = diff(self.before, after);
        let says_something = |change: &&LeafChange| !change.is_filling(self.before, after);
        let mut asked: Vec<_> = changes.iter().filter(says_something).map(Cow::Borrowed).collect();
        self.add_named(&mut asked, after, named);
        let rules = self.ask(after, &asked, |it| sight.tellable(it));
        if !rules.denied.is_empty() || !rules.failed.is_empty() {
            return Judgement::Reject { violations: [rules.denied, rules.failed].concat() };
        }
        let mut reasons = vec![JudgedReason::of_kind(code)];
        for pattern in &self.policy.protected {
            let mut touching = asked.iter().filter(|change| pattern.touches(&change.pointer)).peekable();
            if touching.peek().is_some() {
                // The reason must not reveal to the caller that a value outside the node's reads differs.
                let told = touching.any(|change| self.node.reads.covers(&change.pointer));
                let audience = if told { ReasonAudience::Everyone } else { ReasonAudience::Reviewers };
                reasons.push(JudgedReason::protected(pattern, audience));
            }
        }
        // Only reviewers see these reasons, because a rule may depend on values that the caller cannot read.
        reasons.extend(rules.held.iter().map(|it| JudgedReason::of_rule(&it.rule.reason, ReasonAudience::Reviewers)));
        let warnings = warnings(&rules.warned, ReasonAudience::Reviewers);
        drop(asked);
        self.hold(after.clone(), changes, named.to_vec(), reasons, warnings)
    }

    /// Adds the named leaves that have the same value, so that rules and reasons do not depend on whether they differ.
    fn add_named(&self, asked: &mut Vec<Cow<'_, LeafChange>>, after: &Value, named: &[Pointer]) {
        if named.is_empty() {
            return;
        }
        let known: BTreeSet<Pointer> = asked.iter().map(|it| it.pointer.clone()).collect();
        asked.extend(named.iter().filter(|it| !known.contains(*it)).map(|at| {
            let value = |state: &Value| at.resolve(state).cloned();
            Cow::Owned(LeafChange { pointer: at.clone(), before: value(self.before), after: value(after) })
        }));
        // The order must not depend on which of them differ.
        asked.sort_by(|a, b| a.pointer.cmp(&b.pointer));
    }
}
