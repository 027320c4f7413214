//! Views: the part of a state that a node can read.

use std::collections::{BTreeSet, HashSet};

use serde_json::{Map, Value};

use super::model::{NodePolicy, Policy};
use super::pattern_set::Patterns;
use crate::json::diff::LeafChange;
use crate::json::pattern::Pattern;
use crate::json::pointer::Pointer;
use crate::primitives::id::NodeId;

/// Decides which paths are part of a view.
pub(super) trait ViewScope {
    /// Returns everything at and below the pointer is shown.
    fn covers(&self, pointer: &Pointer) -> bool;
    /// Something at or below the pointer may be shown.
    fn reaches(&self, pointer: &Pointer) -> bool;
}

impl ViewScope for Patterns {
    fn covers(&self, pointer: &Pointer) -> bool {
        Self::covers(self, pointer)
    }

    fn reaches(&self, pointer: &Pointer) -> bool {
        self.touches(pointer)
    }
}

/// The patterns of several nodes, each once.
struct AnyPattern<'p>(Vec<&'p Pattern>);

impl ViewScope for AnyPattern<'_> {
    fn covers(&self, pointer: &Pointer) -> bool {
        self.0.iter().any(|it| it.covers(pointer))
    }

    fn reaches(&self, pointer: &Pointer) -> bool {
        self.0.iter().any(|it| it.touches(pointer))
    }
}

/// Returns the part of `state` that `node` may read. It is always an object, and `{}` for a node that the policy does
/// not know.
///
/// Containers are as small as possible. An object has only its readable members and is left out if it has none, so an
/// unreadable object looks like an absent one. An array keeps the positions of its readable items, because pointers
/// name positions. Unreadable items before a readable one are null, and items after the last readable one are cut
/// off. A view therefore reveals that items before a readable one exist, as its position does anyway. It never
/// reveals how long an array is beyond that.
pub fn project(policy: &Policy, node: &NodeId, state: &Value) -> Value {
    policy.node(node).map_or_else(|| Value::Object(Map::new()), |node| project_by(node.reads(), state))
}

/// Returns the part of `state` that at least one of the nodes may read under at least one of the policies. It has the
/// leaves of all their views, and the state is walked once.
pub fn project_any<'p>(
    policies: impl IntoIterator<Item = &'p Policy>,
    nodes: &BTreeSet<NodeId>,
    state: &Value,
) -> Value {
    let reads = policies.into_iter().flat_map(|policy| nodes.iter().filter_map(|it| policy.node(it)));
    let patterns: HashSet<&Pattern> = reads.flat_map(|it| it.reads()).collect();
    project_by(&AnyPattern(patterns.into_iter().collect()), state)
}

/// Returns what each of the nodes may read of `state`. Nodes with the same reads have one view.
pub(super) fn distinct_views(policy: &Policy, nodes: &BTreeSet<NodeId>, state: &Value) -> Vec<Value> {
    let nodes: Vec<&NodeId> = nodes.iter().collect();
    let reads = |node: &NodeId| policy.node(node).map(NodePolicy::reads);
    let first = |(index, node): &(usize, &&NodeId)| !nodes[..*index].iter().any(|it| reads(it) == reads(node));
    nodes.iter().enumerate().filter(first).map(|(_, node)| project(policy, node, state)).collect()
}

/// Returns the part of `changes` that `node` may read, including values.
pub fn diff_for(policy: &Policy, node: &NodeId, changes: &[LeafChange]) -> Vec<LeafChange> {
    let Some(node) = policy.node(node) else { return Vec::new() };
    changes.iter().filter(|change| node.reads().covers(&change.pointer)).cloned().collect()
}

/// Returns the paths that the response lists as changed: differences within the node's reads, and the paths that the
/// request `named` outside them, whether or not they differ. Paths are cut at redacted prefixes, sorted and unique.
pub fn changed_for(policy: &Policy, node: &NodeId, changes: &[LeafChange], named: &[Pointer]) -> Vec<Pointer> {
    let Some(node) = policy.node(node) else { return Vec::new() };
    let read = changes.iter().map(|change| &change.pointer).filter(|pointer| node.reads().covers(pointer));
    let unseen = named.iter().filter(|pointer| !node.reads().covers(pointer));
    let mut told: Vec<_> = read.chain(unseen).map(|pointer| policy.cut(pointer)).collect();
    // The order must not depend on which of the named paths differ.
    told.sort();
    // Several paths below one redacted prefix become the same path.
    told.dedup();
    told
}

pub(super) fn project_by(scope: &impl ViewScope, state: &Value) -> Value {
    shown(scope, state, &Pointer::root()).filter(Value::is_object).unwrap_or_else(|| Value::Object(Map::new()))
}

fn shown(scope: &impl ViewScope, value: &Value, at: &Pointer) -> Option<Value> {
    if scope.covers(at) {
        return Some(value.clone());
    }
    // Nothing below can be shown either, so the walk ends here.
    if !scope.reaches(at) {
        return None;
    }
    match value {
        Value::Object(members) => {
            let member = |(key, value): (&String, &Value)| Some((key.clone(), shown(scope, value, &at.child(key))?));
            let kept: Map<_, _> = members.iter().filter_map(member).collect();
            (!kept.is_empty()).then_some(Value::Object(kept))
        }
        Value::Array(items) => {
            let item = |(index, value): (usize, &Value)| shown(scope, value, &at.index(index));
            let items: Vec<_> = items.iter().enumerate().map(item).collect();
            let last = items.iter().rposition(Option::is_some)?;
            Some(items.into_iter().take(last + 1).map(Option::unwrap_or_default).collect())
        }
        _ => None,
    }
}
