//! Lists what a patch names, without looking at the state.

use serde_json::{Map, Value};

use super::operation::Operation;
use super::{Patch, PatchBody};
use crate::json::diff::each_leaf;
use crate::json::pointer::{Pointer, PointerBuilder, array_index};

/// A path that a patch names, with the requested result.
#[derive(Clone, PartialEq, Debug)]
pub struct NamedLeaf {
    /// The path. The last token may be `-`, the position after the last item of an array.
    pub pointer: Pointer,
    pub claimed: NamedChange,
}

/// The requested result at a path.
#[derive(Clone, PartialEq, Debug)]
pub enum NamedChange {
    /// This leaf: a scalar, `{}` or `[]`. In a merge patch, `{}` only requests that an object exists.
    Set(Value),
    Delete,
    /// A value from the state, which a `copy` or a `move` puts there.
    Unknown,
}

impl Patch {
    /// Returns the paths whose value or absence decides whether the patch applies. The caller must be allowed to read
    /// them, because a rejection reveals whether they exist.
    pub fn probes(&self) -> Vec<Pointer> {
        match &self.0 {
            // A merge patch applies to every object.
            PatchBody::Merge(_) | PatchBody::MergePatch(_) => Vec::new(),
            PatchBody::JsonPatch(operations) => {
                let mut prober = ProbeCollector::default();
                operations.iter().for_each(|it| prober.operation(it));
                prober.probes
            }
        }
    }

    /// Returns the leaves that the patch names, in its order.
    pub fn names(&self) -> Vec<NamedLeaf> {
        let mut named = Vec::new();
        match &self.0 {
            PatchBody::Merge(members) => {
                for (key, value) in members {
                    name_value(&Pointer::root().child(key), value, &mut named);
                }
            }
            PatchBody::MergePatch(members) => name_merge_patch(members, &mut PointerBuilder::default(), &mut named),
            PatchBody::JsonPatch(operations) => operations.iter().for_each(|it| name_operation(it, &mut named)),
        }
        named
    }
}

#[derive(Default)]
struct ProbeCollector {
    probes: Vec<Pointer>,
    /// Arrays from which an item may have been removed, so that later items moved up. From then on, a path into such
    /// an array reads an item that had another index.
    shifted: Vec<Pointer>,
}

impl ProbeCollector {
    fn operation(&mut self, operation: &Operation) {
        match operation {
            Operation::Add { path, .. } => self.container_of(path),
            Operation::Replace { path, .. } | Operation::Test { path, .. } => self.probe(path.clone()),
            Operation::Remove { path } => self.taken(path),
            Operation::Move { from, path } => {
                self.taken(from);
                self.container_of(path);
            }
            Operation::Copy { from, path } => {
                self.probe(from.clone());
                self.container_of(path);
            }
        }
    }

    fn probe(&mut self, path: Pointer) {
        // A path into such an array reads a shifted item, so the caller needs access to the whole array.
        let arrays = self.shifted.iter().filter(|it| it.covers(&path) && **it != path);
        self.probes.extend(arrays.cloned());
        self.probes.push(path);
    }

    /// A value needs an existing container. The state itself always is one.
    fn container_of(&mut self, path: &Pointer) {
        if let Some(container) = path.parent().filter(|it| !it.is_root()) {
            self.probe(container);
        }
    }

    fn taken(&mut self, path: &Pointer) {
        self.probe(path.clone());
        if let Some((array, token)) = path.split_last()
            // The state is not visible here, so every token that can be an index counts as one.
            && array_index(&token).is_some()
            && !array.is_root()
            && !self.shifted.contains(&array)
        {
            self.shifted.push(array);
        }
    }
}

fn name_operation(operation: &Operation, named: &mut Vec<NamedLeaf>) {
    match operation {
        Operation::Add { path, value } | Operation::Replace { path, value } => name_value(path, value, named),
        Operation::Remove { path } => named.push(NamedLeaf { pointer: path.clone(), claimed: NamedChange::Delete }),
        Operation::Move { from, path } => {
            named.push(NamedLeaf { pointer: from.clone(), claimed: NamedChange::Delete });
            // The moved value is in the state, which this list must not read.
            named.push(NamedLeaf { pointer: path.clone(), claimed: NamedChange::Unknown });
        }
        Operation::Copy { path, .. } => named.push(NamedLeaf { pointer: path.clone(), claimed: NamedChange::Unknown }),
        // A test sets no leaf, and `probes` lists its path.
        Operation::Test { .. } => {}
    }
}

fn name_value(at: &Pointer, value: &Value, named: &mut Vec<NamedLeaf>) {
    each_leaf(value, &mut PointerBuilder::at(at), &mut |pointer, leaf| {
        named.push(NamedLeaf { pointer, claimed: NamedChange::Set(leaf.clone()) });
    });
}

fn name_merge_patch(members: &Map<String, Value>, trail: &mut PointerBuilder, named: &mut Vec<NamedLeaf>) {
    for (key, value) in members {
        let above = trail.enter_key(key);
        match value {
            Value::Null => named.push(NamedLeaf { pointer: trail.pointer(), claimed: NamedChange::Delete }),
            Value::Object(below) if !below.is_empty() => name_merge_patch(below, trail, named),
            value => each_leaf(value, trail, &mut |pointer, leaf| {
                named.push(NamedLeaf { pointer, claimed: NamedChange::Set(leaf.clone()) });
            }),
        }
        trail.leave(above);
    }
}
