//! The leaves at which a node or a reader could confirm a guess.
//!
//! A node that writes a path without reading it can set a guess there. If the value was the same, a later rollback or
//! join has no difference at that leaf, so every leaf of this kind counts as set by them.

use super::model::Policy;
use super::redaction::Redactor;
use crate::json::pointer::Pointer;

/// Returns the paths that are redacted for people, or that a node may write without reading them.
pub(super) fn guessable<'p>(policy: &Policy, paths: impl IntoIterator<Item = &'p Pointer>) -> Vec<Pointer> {
    let for_people = Redactor::by_name(policy);
    let is_blind = |at: &Pointer| policy.nodes.values().any(|it| it.writes.covers(at) && !it.reads.covers(at));
    paths.into_iter().filter(|at| for_people.hides(at) || is_blind(at)).cloned().collect()
}
