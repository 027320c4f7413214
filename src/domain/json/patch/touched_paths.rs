//! The places that a request reaches, before any state is looked at.
//!
//! `names` says which leaves; that is not enough for who must not learn what stands there: `{"a": [1]}` and
//! `{"a": {"0": 1}}` name the same leaf, and leave different things of what was at `/a`.

use serde_json::{Map, Value};

use super::operation::Operation;
use super::{Patch, PatchBody};
use crate::domain::json::pointer::Pointer;

/// A place, and what is done there whatever stands there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TouchedPath {
    pub pointer: Pointer,
    pub reach: PathEffect,
}

/// What a request does at a place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PathEffect {
    /// A whole value is put there; nothing of what stood there stays.
    Put,
    /// What stands there is taken away.
    Taken,
    /// A merge patch asks for an object there; the members of one that is there stay.
    Emptied,
    /// A merge patch goes through on its way down; what is no object there becomes one.
    Passed,
}

impl Patch {
    /// The object that a merge form sends; a JSON Patch sends none.
    pub const fn object(&self) -> Option<&Map<String, Value>> {
        match &self.0 {
            PatchBody::Merge(members) | PatchBody::MergePatch(members) => Some(members),
            PatchBody::JsonPatch(_) => None,
        }
    }

    /// The places that it reaches, in the order of the request.
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
