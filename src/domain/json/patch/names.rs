//! What a request says by itself, before any state is looked at.

use serde_json::{Map, Value};

use super::operation::Operation;
use super::{Form, Patch};
use crate::domain::json::diff::each_leaf;
use crate::domain::json::pointer::{Pointer, Trail};

/// A place that a request names, and what it asks for there.
#[derive(Clone, PartialEq, Debug)]
pub struct Named {
    /// Where. The last token may be `-`, the place after an array's last item.
    pub pointer: Pointer,
    /// What.
    pub claimed: Claimed,
}

/// What a request asks for at a place.
#[derive(Clone, PartialEq, Debug)]
pub enum Claimed {
    /// This leaf: a scalar, `{}` or `[]`. In a merge patch, `{}` only asks for some object.
    Set(Value),
    /// Nothing there any more.
    Delete,
    /// Something that only the state knows: what a `copy` or a `move` puts there.
    Unknown,
}

impl Patch {
    /// The places whose value or absence decides whether it can be applied. Whoever asks must be allowed
    /// to read them, or a refusal would tell them.
    pub fn probes(&self) -> Vec<Pointer> {
        match &self.0 {
            // They fit every object.
            Form::Merge(_) | Form::MergePatch(_) => Vec::new(),
            Form::JsonPatch(operations) => operations.iter().flat_map(probes_of).collect(),
        }
    }

    /// The leaves that it names, in the order of the request.
    pub fn names(&self) -> Vec<Named> {
        let mut named = Vec::new();
        match &self.0 {
            Form::Merge(members) => {
                for (key, value) in members {
                    name_value(&Pointer::root().child(key), value, &mut named);
                }
            }
            Form::MergePatch(members) => name_merge_patch(members, &mut Trail::default(), &mut named),
            Form::JsonPatch(operations) => operations.iter().for_each(|it| name_operation(it, &mut named)),
        }
        named
    }
}

fn probes_of(operation: &Operation) -> Vec<Pointer> {
    match operation {
        Operation::Add { path, .. } => probe_of_place(path).into_iter().collect(),
        Operation::Remove { path } | Operation::Replace { path, .. } | Operation::Test { path, .. } => {
            vec![path.clone()]
        }
        Operation::Move { from, path } | Operation::Copy { from, path } => {
            std::iter::once(from.clone()).chain(probe_of_place(path)).collect()
        }
    }
}

/// To put something somewhere, there must be a container; the state itself always is one.
fn probe_of_place(path: &Pointer) -> Option<Pointer> {
    path.parent().filter(|it| !it.is_root())
}

fn name_operation(operation: &Operation, named: &mut Vec<Named>) {
    match operation {
        Operation::Add { path, value } | Operation::Replace { path, value } => name_value(path, value, named),
        Operation::Remove { path } => named.push(Named { pointer: path.clone(), claimed: Claimed::Delete }),
        Operation::Move { from, path } => {
            named.push(Named { pointer: from.clone(), claimed: Claimed::Delete });
            named.push(Named { pointer: path.clone(), claimed: Claimed::Unknown });
        }
        Operation::Copy { path, .. } => named.push(Named { pointer: path.clone(), claimed: Claimed::Unknown }),
        Operation::Test { .. } => {}
    }
}

fn name_value(at: &Pointer, value: &Value, named: &mut Vec<Named>) {
    each_leaf(value, &mut Trail::at(at), &mut |pointer, leaf| {
        named.push(Named { pointer, claimed: Claimed::Set(leaf.clone()) });
    });
}

fn name_merge_patch(members: &Map<String, Value>, trail: &mut Trail, named: &mut Vec<Named>) {
    for (key, value) in members {
        let above = trail.enter_key(key);
        match value {
            Value::Null => named.push(Named { pointer: trail.pointer(), claimed: Claimed::Delete }),
            Value::Object(below) if !below.is_empty() => name_merge_patch(below, trail, named),
            value => each_leaf(value, trail, &mut |pointer, leaf| {
                named.push(Named { pointer, claimed: Claimed::Set(leaf.clone()) });
            }),
        }
        trail.leave(above);
    }
}
