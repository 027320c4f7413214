//! Visibility: the part of the new state that a caller knows, because it may read it or set it itself.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use super::bounds;
use super::judgement::{RejectCode, Violation};
use super::model::Policy;
use super::patch_footprint::PatchFootprint;
use super::pattern_set::Patterns;
use super::view::ViewScope;
use crate::json::pointer::Pointer;
use crate::schema::{SchemaViolation, SchemaViolationKind};

/// Filters everything that a response reveals to the caller.
pub(super) struct Visibility<'a> {
    reads: &'a Patterns,
    claims: &'a PatchFootprint,
    /// Paths above those that the request sets.
    above_own: BTreeSet<Pointer>,
}

/// Detail if a more precise one would reveal an unreadable value.
const UNTOLD: &str = "the result does not fit the flow's schema, for a reason that this node may not read";

impl<'a> Visibility<'a> {
    pub(super) fn new(reads: &'a Patterns, claims: &'a PatchFootprint) -> Self {
        let mut above_own = BTreeSet::new();
        for pointer in &claims.set {
            let mut next = pointer.parent();
            while let Some(above) = next {
                next = above.parent();
                // An earlier path has added everything above this one.
                if !above_own.insert(above) {
                    break;
                }
            }
        }
        Self { reads, claims, above_own }
    }

    /// Returns the path to report for an error. It is the path itself if the node may read it, and otherwise the
    /// nearest path above it that the request named.
    pub(super) fn tellable(&self, pointer: &Pointer) -> Pointer {
        if self.reads.covers(pointer) {
            return pointer.clone();
        }
        // The root reveals nothing if the request named no path above this one.
        self.claims.nearest_named_path(pointer).unwrap_or_default()
    }

    /// Returns the schema violations of the new state. Violations of parts that the caller does not know in full
    /// become one violation at the root, which only states that there is one.
    pub(super) fn tell(&self, faults: Vec<SchemaViolation>) -> Vec<Violation> {
        let tell = |fault: SchemaViolation| match fault.kind {
            // Every caller sees this violation. A caller can measure the steps for the rest of the state anyway: it
            // adds valid parts of its own until the request is rejected.
            SchemaViolationKind::TooCostly => told(fault),
            _ if self.covers(&fault.pointer) => told(fault),
            _ => Violation::new(RejectCode::Schema, Pointer::root(), UNTOLD),
        };
        faults.into_iter().map(tell).collect()
    }

    /// Returns only the violations of parts that the caller knows in full.
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

/// Returns a violation of a part that the caller knows in full.
pub(super) fn told(fault: SchemaViolation) -> Violation {
    let code = match fault.kind {
        SchemaViolationKind::TooCostly => RejectCode::SchemaTooCostly,
        _ => RejectCode::Schema,
    };
    Violation::new(code, fault.pointer, fault.kind.detail())
}

/// Compares violations of one check for their fixed order.
pub(super) fn by_place(a: &Violation, b: &Violation) -> Ordering {
    (&a.pointer, a.code, &a.detail).cmp(&(&b.pointer, b.code, &b.detail))
}

/// Sorts the violations of one check, applies redaction, and limits their number and length.
pub(super) fn in_order(policy: &Policy, violations: Vec<Violation>) -> Vec<Violation> {
    let cut = |it: Violation| Violation { pointer: policy.cut(&it.pointer), ..it };
    let mut violations: Vec<_> = violations.into_iter().map(cut).collect();
    // The list is sorted before it is shortened, so that the rest does not depend on the order of the checks.
    violations.sort_by(by_place);
    // Paths that differ only below a redacted prefix become equal.
    violations.dedup();
    violations.truncate(bounds::VIOLATIONS_MAX);
    let mut bytes = 0;
    let mut fits = |it: &Violation| {
        let before = bytes;
        bytes += it.pointer.to_string().len();
        // The first violation is always returned, because a rejection has at least one.
        before == 0 || bytes <= bounds::VIOLATIONS_BYTES_MAX
    };
    let number = violations.iter().position(|it| !fits(it)).unwrap_or(violations.len());
    violations.truncate(number);
    violations
}
