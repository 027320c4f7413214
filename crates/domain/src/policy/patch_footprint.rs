//! Computes what a request names in the state, without looking at the state. Every decision that must not depend on
//! unreadable values uses only this.

mod of_patch;

use std::collections::BTreeSet;

use serde_json::Value;

use super::judgement::{RejectCode, Violation};
use super::model::NodePolicy;
use super::pattern_set::Patterns;
use crate::json::diff::leaves;
use crate::json::pointer::Pointer;

const ASKS: &str = "the request depends on a value that the node may not read: its `reads` do not cover it";
const NOT_IN_WRITES: &str = "the node may not write this: its `writes` do not cover it";
const IN_DENY: &str = "the node may not write this: its `deny` covers it";
const REPLACES_MORE: &str =
    "this would replace the whole value, of which the node may write only parts: send merge-patch and name the parts";
const REPLACES_DENIED: &str =
    "this would replace the whole value, with parts that its `deny` covers: send merge-patch and name the others";

#[derive(Debug, Default)]
pub(super) struct PatchFootprint {
    /// Paths at which a whole value is set or removed, whatever the previous value.
    pub(super) set: BTreeSet<Pointer>,
    /// Paths at which a merge patch requests an object without naming a member. Existing members stay.
    pub(super) emptied: BTreeSet<Pointer>,
    /// Paths that a merge patch passes on its way down. A value there that is no object becomes one.
    pub(super) passed: BTreeSet<Pointer>,
    /// The leaves that the request names, including those that it deletes.
    pub(super) leaves: BTreeSet<Pointer>,
    /// Paths that decide whether the patch applies.
    pub(super) probes: BTreeSet<Pointer>,
    /// Top-level keys of the state at or below which the request writes.
    pub(super) top_keys: BTreeSet<String>,
}

impl PatchFootprint {
    /// Returns the violations of the request's paths, whatever the state is. A leaf that the node may read is judged
    /// by its effect: the request may name it without changing it.
    pub(super) fn violations(&self, node: &NodePolicy) -> Vec<Violation> {
        let unseen = |pointer: &&Pointer| !node.reads.covers(pointer);
        let asks = |it: &Pointer| Violation::new(RejectCode::ReadNotAllowed, it.clone(), ASKS);
        let mut found: Vec<_> = self.probes.iter().filter(unseen).map(asks).collect();
        found.extend(self.leaves.iter().filter(unseen).filter_map(|leaf| {
            let (code, detail) = match leaf {
                leaf if node.deny.covers(leaf) => (RejectCode::WriteDenied, IN_DENY),
                leaf if !node.writes.covers(leaf) => (RejectCode::WriteNotAllowed, NOT_IN_WRITES),
                _ => return None,
            };
            Some(Violation::new(code, leaf.clone(), detail))
        }));
        // A leaf below such a path is reported already, so an error at the path would only repeat it.
        let told: BTreeSet<_> = found.iter().flat_map(|it| it.pointer.at_and_above()).collect();
        let mut replaces = Vec::new();
        for place in self.set_unseen(&node.reads) {
            // The unreadable part below is replaced unseen, so the node must be allowed to write all of it.
            let all_of_it = node.writes.covers(place) || node.writes.covers_every_member(place);
            let (code, detail) = if node.deny.touches(place) {
                (RejectCode::WriteDenied, REPLACES_DENIED)
            } else if !all_of_it {
                (RejectCode::WriteNotAllowed, REPLACES_MORE)
            } else {
                continue;
            };
            if !told.contains(place.as_str()) {
                replaces.push(Violation::new(code, place.clone(), detail));
            }
        }
        found.extend(replaces);
        found
    }

    /// Returns the paths that the request sets outside the node's reads. They count as touched, whatever the previous
    /// value.
    pub(super) fn set_unseen<'a>(&'a self, reads: &'a Patterns) -> impl Iterator<Item = &'a Pointer> {
        self.set.iter().chain(&self.emptied).filter(|pointer| !reads.covers(pointer))
    }

    /// Returns the paths outside the node's reads that the request passes.
    pub(super) fn passed_unseen<'a>(&'a self, reads: &'a Patterns) -> impl Iterator<Item = &'a Pointer> {
        self.passed.iter().filter(|pointer| !reads.covers(pointer))
    }

    /// Returns the leaves at and below those paths afterwards, and the paths at which nothing is left.
    pub(super) fn leaves_unseen(&self, reads: &Patterns, after: &Value) -> Vec<Pointer> {
        let mut leaves = BTreeSet::new();
        for place in self.set_unseen(reads) {
            match place.resolve(after) {
                Some(value) if self.set.contains(place) => leaves.extend(leaves_at(place, value)),
                // A merge patch does not name the members that stay, so listing them would reveal them.
                _ => _ = leaves.insert(place.clone()),
            }
        }
        leaves.into_iter().collect()
    }

    /// Returns the path that the request names at or nearest above the pointer.
    pub(super) fn nearest_named_path(&self, pointer: &Pointer) -> Option<Pointer> {
        let named = |it: &str| [&self.set, &self.emptied, &self.passed].into_iter().find_map(|places| places.get(it));
        pointer.at_and_above().find_map(named).cloned()
    }

    /// Returns whether the request set the value at the pointer.
    pub(super) fn has_set(&self, pointer: &Pointer) -> bool {
        // A join sets nothing by itself, so the walk up the path is skipped for it.
        !self.set.is_empty() && pointer.at_and_above().any(|it| self.set.contains(it))
    }
}

/// Returns the pointers of every leaf of a value at the given pointer.
fn leaves_at(pointer: &Pointer, value: &Value) -> impl Iterator<Item = Pointer> {
    leaves(value).into_iter().map(move |(below, _)| {
        Pointer::try_from(format!("{pointer}{below}")).expect("a pointer after a pointer is a pointer")
    })
}
