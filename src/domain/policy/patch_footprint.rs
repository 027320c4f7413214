//! What a request says about the state, before anybody looks at the state. Whatever must not depend on what the node
//! may not read is decided from this alone.

mod of_patch;

use std::collections::BTreeSet;

use serde_json::Value;

use super::judgement::{RejectCode, Violation};
use super::model::NodePolicy;
use super::pattern_set::Patterns;
use crate::domain::json::diff::leaves;
use crate::domain::json::pointer::Pointer;

const ASKS: &str = "the request depends on a value that the node may not read: its `reads` do not cover it";
const NOT_IN_WRITES: &str = "the node may not write this: its `writes` do not cover it";
const IN_DENY: &str = "the node is denied to write this";
const REPLACES_MORE: &str =
    "this would replace the whole value, of which the node may write only parts: send merge-patch and name the parts";
const REPLACES_DENIED: &str = "this would replace the whole value, with parts that the node is denied to write: send merge-patch and name the others";

#[derive(Debug, Default)]
pub(super) struct PatchFootprint {
    /// Where a whole value is put or taken away, whatever stood there.
    pub(super) set: BTreeSet<Pointer>,
    /// Where a merge patch asks for an object without naming a member; members that are there stay.
    pub(super) emptied: BTreeSet<Pointer>,
    /// Where a merge patch goes through on its way down; what is no object there becomes one.
    pub(super) passed: BTreeSet<Pointer>,
    /// The leaves that the request names, those to be deleted included.
    pub(super) leaves: BTreeSet<Pointer>,
    /// What decides whether the patch applies.
    pub(super) probes: BTreeSet<Pointer>,
    /// The keys of the state that are written at or below.
    pub(super) top_keys: BTreeSet<String>,
}

impl PatchFootprint {
    /// What the request may not ask or name, whatever the state is. A leaf that the node may read is left to its
    /// effect: it may be named if it does not change.
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
        let told: BTreeSet<_> = found.iter().flat_map(|it| it.pointer.at_and_above()).collect();
        let mut replaces = Vec::new();
        for place in self.set_unseen(&node.reads) {
            // What is unreadable below is replaced unseen, so the node must be allowed to write all of it.
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

    /// Places that the request sets where the node cannot look: they count as touched whatever stands there.
    pub(super) fn set_unseen<'a>(&'a self, reads: &'a Patterns) -> impl Iterator<Item = &'a Pointer> {
        self.set.iter().chain(&self.emptied).filter(|pointer| !reads.covers(pointer))
    }

    /// Places that the request goes through where the node cannot look.
    pub(super) fn passed_unseen<'a>(&'a self, reads: &'a Patterns) -> impl Iterator<Item = &'a Pointer> {
        self.passed.iter().filter(|pointer| !reads.covers(pointer))
    }

    /// The leaves that stand at and below those places afterwards, and the places of which nothing is left.
    pub(super) fn leaves_unseen(&self, reads: &Patterns, after: &Value) -> Vec<Pointer> {
        let mut leaves = BTreeSet::new();
        for place in self.set_unseen(reads) {
            match place.resolve(after) {
                Some(value) if self.set.contains(place) => leaves.extend(leaves_at(place, value)),
                _ => _ = leaves.insert(place.clone()),
            }
        }
        leaves.into_iter().collect()
    }

    /// The place that the request names at or nearest above the pointer.
    pub(super) fn nearest_named_path(&self, pointer: &Pointer) -> Option<Pointer> {
        let named = |it: &str| [&self.set, &self.emptied, &self.passed].into_iter().find_map(|places| places.get(it));
        pointer.at_and_above().find_map(named).cloned()
    }

    /// Whether the value at the pointer is the request's own.
    pub(super) fn has_set(&self, pointer: &Pointer) -> bool {
        !self.set.is_empty() && pointer.at_and_above().any(|it| self.set.contains(it))
    }
}

/// Every leaf of a value that stands at the pointer.
fn leaves_at(pointer: &Pointer, value: &Value) -> impl Iterator<Item = Pointer> {
    leaves(value).into_iter().map(move |(below, _)| {
        Pointer::try_from(format!("{pointer}{below}")).expect("a pointer after a pointer is a pointer")
    })
}
