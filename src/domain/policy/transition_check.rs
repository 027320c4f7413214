//! `[transitions]`: whether the state after may follow the state before, told as far as the asker may know.
//!
//! What a rule says of a place that the asker reads in full follows from what it reads and sends. Elsewhere a rule
//! would answer guesses: whether a value that is set blindly is the old one, or a greater one. So what a request sets
//! at, above or below such a place breaks the rule, whatever stands there.

use serde_json::Value;

use super::bounds;
use super::effect::PatchEffect;
use super::judgement::{RejectCode, Violation};
use super::patch_footprint::PatchFootprint;
use super::pattern_set::Patterns;
use super::visibility::Visibility;
use crate::domain::json::pointer::Pointer;
use crate::domain::transition_rules::{
    StateSide, TransitionRule, TransitionRuleKind, TransitionViolation, ViolationSink,
};

/// What is said when saying more would tell of something unreadable.
const UNTOLD: &str = "a transition rule refuses this, at a place of which the node may not read all; whatever the node sets there counts as a change";

/// What the rules say of one request.
#[derive(Default)]
pub(super) struct TransitionCheckResult {
    /// About places that the asker reads in full.
    pub(super) known: Vec<Violation>,
    pub(super) unknown: Vec<Violation>,
}

/// Whether what a patch leads to may follow what was.
pub(super) fn follow(
    rules: &[TransitionRule],
    before: &Value,
    outcome: &PatchEffect,
    claims: &PatchFootprint,
    (reads, sight): (&Patterns, &Visibility<'_>),
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
            let mut broken = AnyViolation::No;
            rule.judge((before, StateSide::Before), &outcome.after, &mut broken);
            if broken == AnyViolation::Yes {
                followed.unknown.push(Violation::new(code(&rule.kind), sight.tellable(&rule.at), UNTOLD));
            }
        }
    }
    followed
}

/// Whether a state may be the first: a rule must find what it is about, or no state could ever follow this one.
pub(super) fn may_be_first(rules: &[TransitionRule], state: &Value) -> Vec<Violation> {
    let mut violations = Vec::new();
    for rule in rules {
        let mut found = ViolationReporter { code: code(&rule.kind), violations: &mut violations };
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

/// What a request sets or goes through where its node cannot look.
struct UnreadableTouches<'a> {
    set: Vec<&'a Pointer>,
    passed: Vec<&'a Pointer>,
}

impl<'a> UnreadableTouches<'a> {
    fn of(claims: &'a PatchFootprint, reads: &'a Patterns) -> Self {
        Self { set: claims.set_unseen(reads).collect(), passed: claims.passed_unseen(reads).collect() }
    }

    /// A place that the request names, by which what is at the pointer may become another value. Going through a
    /// place makes an object of what is none.
    fn around(&self, at: &Pointer) -> Option<&'a Pointer> {
        let set = self.set.iter().find(|it| it.touches(at));
        set.or_else(|| self.passed.iter().find(|it| at.covers(it))).copied()
    }
}

/// Tells what is broken and where.
struct ViolationReporter<'v> {
    code: RejectCode,
    violations: &'v mut Vec<Violation>,
}

impl ViolationSink for ViolationReporter<'_> {
    fn broken(&mut self, _: StateSide, broken: TransitionViolation, pointer: impl FnOnce() -> Pointer) {
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
