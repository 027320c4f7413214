//! What an asker knows of the state after its own request: its reads, and what it set itself.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use super::bounds;
use super::judgement::{RejectCode, Violation};
use super::model::Policy;
use super::patch_footprint::PatchFootprint;
use super::pattern_set::Patterns;
use super::view::ViewScope;
use crate::domain::json::pointer::Pointer;
use crate::domain::schema::{SchemaViolation, SchemaViolationKind};

/// Everything that is told to an asker goes through here.
pub(super) struct Visibility<'a> {
    reads: &'a Patterns,
    claims: &'a PatchFootprint,
    /// Everything above what the request sets.
    above_own: BTreeSet<Pointer>,
}

/// What is said when saying more would tell of something unreadable.
const UNTOLD: &str = "the result does not fit the flow's schema, for a reason that this node may not read";

impl<'a> Visibility<'a> {
    pub(super) fn new(reads: &'a Patterns, claims: &'a PatchFootprint) -> Self {
        let mut above_own = BTreeSet::new();
        for pointer in &claims.set {
            let mut next = pointer.parent();
            while let Some(above) = next {
                next = above.parent();
                if !above_own.insert(above) {
                    break;
                }
            }
        }
        Self { reads, claims, above_own }
    }

    /// Where to say that something is wrong: there, if the node may read it, or at the place above it that the
    /// request named itself.
    pub(super) fn tellable(&self, pointer: &Pointer) -> Pointer {
        if self.reads.covers(pointer) {
            return pointer.clone();
        }
        self.claims.nearest_named_path(pointer).unwrap_or_default()
    }

    /// Faults of the state after. What a schema says about parts that the asker does not know in full becomes one
    /// violation at the root that says no more than that there is one.
    pub(super) fn tell(&self, faults: Vec<SchemaViolation>) -> Vec<Violation> {
        let tell = |fault: SchemaViolation| match fault.kind {
            // It is told to every asker. An asker can find the number of steps that the rest of the state takes in any case:
            // it adds valid parts of its own until the request is rejected.
            SchemaViolationKind::TooCostly => told(fault),
            _ if self.covers(&fault.pointer) => told(fault),
            _ => Violation::new(RejectCode::Schema, Pointer::root(), UNTOLD),
        };
        faults.into_iter().map(tell).collect()
    }

    /// Only the faults that the asker knows all about.
    pub(super) fn tell_known(&self, faults: Vec<SchemaViolation>) -> Vec<Violation> {
        faults.into_iter().filter(|fault| self.covers(&fault.pointer)).map(told).collect()
    }
}

impl ViewScope for Visibility<'_> {
    fn covers(&self, pointer: &Pointer) -> bool {
        self.reads.covers(pointer) || self.claims.has_set(pointer)
    }

    fn reaches(&self, pointer: &Pointer) -> bool {
        self.reads.touches(pointer) || self.above_own.contains(pointer) || self.covers(pointer)
    }
}

/// A fault of something that the asker knows all about.
pub(super) fn told(fault: SchemaViolation) -> Violation {
    let code = match fault.kind {
        SchemaViolationKind::TooCostly => RejectCode::SchemaTooCostly,
        _ => RejectCode::Schema,
    };
    Violation::new(code, fault.pointer, fault.kind.detail())
}

/// The order in which one check's violations are told.
pub(super) fn by_place(a: &Violation, b: &Violation) -> Ordering {
    (&a.pointer, a.code, &a.detail).cmp(&(&b.pointer, b.code, &b.detail))
}

/// Puts one check's violations into their fixed order, hides what is hidden, and bounds how many they are and how long.
pub(super) fn in_order(policy: &Policy, violations: Vec<Violation>) -> Vec<Violation> {
    let cut = |it: Violation| Violation { pointer: policy.cut(&it.pointer), ..it };
    let mut violations: Vec<_> = violations.into_iter().map(cut).collect();
    violations.sort_by(by_place);
    violations.dedup();
    violations.truncate(bounds::VIOLATIONS_MAX);
    let mut bytes = 0;
    let mut fits = |it: &Violation| {
        let before = bytes;
        bytes += it.pointer.to_string().len();
        before == 0 || bytes <= bounds::VIOLATIONS_BYTES_MAX
    };
    let number = violations.iter().position(|it| !fits(it)).unwrap_or(violations.len());
    violations.truncate(number);
    violations
}
