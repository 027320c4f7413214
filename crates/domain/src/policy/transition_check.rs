//! Checks `[transitions]`: whether a state may follow the one before, without revealing unreadable values.
//!
//! At a path that the caller can read in full, the result of a rule follows from the caller's own knowledge.
//! Elsewhere a rule would confirm guesses, such as whether a blindly set value equals the old one or exceeds it. A
//! request that sets a value at, above or below such a path therefore always breaks the rule.

use serde_json::Value;

use super::bounds;
use super::effect::PatchEffect;
use super::judgement::{RejectCode, Violation};
use super::patch_footprint::PatchFootprint;
use super::pattern_set::Patterns;
use super::visibility::Visibility;
use crate::json::pointer::Pointer;
use crate::transition_rules::{StateSide, TransitionRule, TransitionRuleKind, TransitionViolation, ViolationSink};

/// Detail if a more precise one would reveal an unreadable value.
const UNTOLD: &str = "a transition rule rejects this: the node may not read all of the path, so every value that it sets there counts as a change";

/// Results of the transition rules for one request.
#[derive(Default)]
pub(super) struct TransitionCheckResult {
    /// Violations at paths that the caller can read in full.
    pub(super) known: Vec<Violation>,
    pub(super) unknown: Vec<Violation>,
}

/// Checks whether the state after a patch may follow the one before.
pub(super) fn follow(
    rules: &[TransitionRule],
    before: &Value,
    outcome: &PatchEffect,
    claims: &PatchFootprint,
    reads: &Patterns,
    sight: &Visibility<'_>,
) -> TransitionCheckResult {
    let mut followed = TransitionCheckResult::default();
    if rules.is_empty() {
        return followed;
    }
    let unseen = UnreadableTouches::of(claims, reads);
    for rule in rules {
        if reads.covers(&rule.at) {
            let mut found = ViolationReporter { code: code(&rule.kind), violations: &mut followed.known };
            rule.judge((before, StateSide::Before), &outcome.after, &mut found);
        } else if let Some(place) = unseen.around(&rule.at) {
            followed.unknown.push(Violation::new(code(&rule.kind), place.clone(), UNTOLD));
        } else {
            // The caller cannot read all of the path, so the number and the kind of the violations are not returned.
            let mut broken = AnyViolation::No;
            rule.judge((before, StateSide::Before), &outcome.after, &mut broken);
            if broken == AnyViolation::Yes {
                followed.unknown.push(Violation::new(code(&rule.kind), sight.tellable(&rule.at), UNTOLD));
            }
        }
    }
    followed
}

/// Checks whether a state may be the first. Every path of a rule must exist, or no state could ever follow it.
pub(super) fn may_be_first(rules: &[TransitionRule], state: &Value) -> Vec<Violation> {
    let mut violations = Vec::new();
    for rule in rules {
        let mut found = ViolationReporter { code: code(&rule.kind), violations: &mut violations };
        // The state is compared with itself, so only its own form can break a rule.
        rule.judge((state, StateSide::After), state, &mut found);
    }
    violations
}

const fn code(kind: &TransitionRuleKind) -> RejectCode {
    match kind {
        TransitionRuleKind::Immutable => RejectCode::Immutable,
        TransitionRuleKind::Monotonic => RejectCode::NotMonotonic,
        TransitionRuleKind::Ordered(_) => RejectCode::OrderRegressed,
        TransitionRuleKind::Keyed(_) => RejectCode::KeyedArray,
    }
}

/// Paths outside the node's reads that a request sets or passes.
struct UnreadableTouches<'a> {
    set: Vec<&'a Pointer>,
    passed: Vec<&'a Pointer>,
}

impl<'a> UnreadableTouches<'a> {
    fn of(claims: &'a PatchFootprint, reads: &'a Patterns) -> Self {
        Self { set: claims.set_unseen(reads).collect(), passed: claims.passed_unseen(reads).collect() }
    }

    /// Returns a path that the request names and whose change may replace the value at the pointer. A merge patch
    /// also replaces values on its way that are no objects.
    fn around(&self, at: &Pointer) -> Option<&'a Pointer> {
        let set = self.set.iter().find(|it| it.touches(at));
        set.or_else(|| self.passed.iter().find(|it| at.covers(it))).copied()
    }
}

/// Collects the violations with their paths.
struct ViolationReporter<'v> {
    code: RejectCode,
    violations: &'v mut Vec<Violation>,
}

impl ViolationSink for ViolationReporter<'_> {
    fn broken(&mut self, _: StateSide, broken: TransitionViolation, pointer: impl FnOnce() -> Pointer) {
        // A rule about a list can be broken once for each item.
        if self.violations.len() < bounds::VIOLATIONS_MAX {
            self.violations.push(Violation::new(self.code, pointer(), broken.detail()));
        }
    }
}

/// Whether anything is broken.
#[derive(PartialEq, Eq)]
enum AnyViolation {
    No,
    Yes,
}

impl ViolationSink for AnyViolation {
    fn broken(&mut self, _: StateSide, _: TransitionViolation, _: impl FnOnce() -> Pointer) {
        *self = Self::Yes;
    }
}
