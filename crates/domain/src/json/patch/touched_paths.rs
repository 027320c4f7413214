//! Lists the paths that a patch reaches, without looking at the state.
//!
//! `names` lists the leaves. That is not enough for callers that must not learn the previous value: `{"a": [1]}` and
//! `{"a": {"0": 1}}` name the same leaf, but they leave different parts of the value at `/a`.

use serde_json::{Map, Value};

use super::operation::Operation;
use super::{Patch, PatchBody};
use crate::json::pointer::Pointer;

/// A path, and the effect of the patch there. The effect does not depend on the previous value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TouchedPath {
    pub pointer: Pointer,
    pub reach: PathEffect,
}

/// The effect of a patch at a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PathEffect {
    /// A whole value is set. Nothing of the previous value stays.
    Put,
    /// The value is removed.
    Taken,
    /// A merge patch requests an object. Existing members stay.
    Emptied,
    /// A merge patch passes the path on its way down. A value that is no object becomes one.
    Passed,
}

impl Patch {
    /// Returns the object of a merge patch. A JSON Patch has none.
    pub const fn object(&self) -> Option<&Map<String, Value>> {
        match &self.0 {
            PatchBody::Merge(members) | PatchBody::MergePatch(members) => Some(members),
            PatchBody::JsonPatch(_) => None,
        }
    }

    /// Returns the paths that the patch reaches, in its order.
    pub fn places(&self) -> Vec<TouchedPath> {
        let mut places = Vec::new();
        match &self.0 {
            PatchBody::Merge(members) => {
                let put = |key: &String| TouchedPath { pointer: Pointer::root().child(key), reach: PathEffect::Put };
                places.extend(members.keys().map(put));
            }
            PatchBody::MergePatch(members) => merge_patch_places(&Pointer::root(), members, &mut places),
            PatchBody::JsonPatch(operations) => operations.iter().for_each(|it| operation_places(it, &mut places)),
        }
        places
    }
}

fn merge_patch_places(at: &Pointer, members: &Map<String, Value>, places: &mut Vec<TouchedPath>) {
    for (key, value) in members {
        let pointer = at.child(key);
        match value {
            Value::Null => places.push(TouchedPath { pointer, reach: PathEffect::Taken }),
            Value::Object(below) if below.is_empty() => {
                places.push(TouchedPath { pointer, reach: PathEffect::Emptied })
            }
            Value::Object(below) => {
                merge_patch_places(&pointer, below, places);
                places.push(TouchedPath { pointer, reach: PathEffect::Passed });
            }
            _ => places.push(TouchedPath { pointer, reach: PathEffect::Put }),
        }
    }
}

fn operation_places(operation: &Operation, places: &mut Vec<TouchedPath>) {
    let mut reach = |pointer: &Pointer, reach| places.push(TouchedPath { pointer: pointer.clone(), reach });
    match operation {
        Operation::Add { path, .. } | Operation::Replace { path, .. } | Operation::Copy { path, .. } => {
            reach(path, PathEffect::Put);
        }
        Operation::Remove { path } => reach(path, PathEffect::Taken),
        Operation::Move { from, path } => {
            reach(from, PathEffect::Taken);
            reach(path, PathEffect::Put);
        }
        Operation::Test { .. } => {}
    }
}
