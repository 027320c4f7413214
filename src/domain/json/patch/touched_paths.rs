//! The places that a request reaches, before any state is looked at.
//!
//! `names` says which leaves; that is not enough for who must not learn what stands there: `{"a": [1]}` and
//! `{"a": {"0": 1}}` name the same leaf, and leave different things of what was at `/a`.

use serde_json::{Map, Value};

use super::operation::Operation;
use super::{Form, Patch};
use crate::domain::json::pointer::Pointer;

/// A place, and what is done there whatever stands there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    /// Where.
    pub pointer: Pointer,
    /// What.
    pub reach: Reach,
}

/// What a request does at a place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reach {
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
            Form::Merge(members) | Form::MergePatch(members) => Some(members),
            Form::JsonPatch(_) => None,
        }
    }

    /// The places that it reaches, in the order of the request.
    pub fn places(&self) -> Vec<Place> {
        let mut places = Vec::new();
        match &self.0 {
            Form::Merge(members) => {
                let put = |key: &String| Place { pointer: Pointer::root().child(key), reach: Reach::Put };
                places.extend(members.keys().map(put));
            }
            Form::MergePatch(members) => merge_patch_places(&Pointer::root(), members, &mut places),
            Form::JsonPatch(operations) => operations.iter().for_each(|it| operation_places(it, &mut places)),
        }
        places
    }
}

fn merge_patch_places(at: &Pointer, members: &Map<String, Value>, places: &mut Vec<Place>) {
    for (key, value) in members {
        let pointer = at.child(key);
        match value {
            Value::Null => places.push(Place { pointer, reach: Reach::Taken }),
            Value::Object(below) if below.is_empty() => places.push(Place { pointer, reach: Reach::Emptied }),
            Value::Object(below) => {
                merge_patch_places(&pointer, below, places);
                places.push(Place { pointer, reach: Reach::Passed });
            }
            _ => places.push(Place { pointer, reach: Reach::Put }),
        }
    }
}

fn operation_places(operation: &Operation, places: &mut Vec<Place>) {
    let mut reach = |pointer: &Pointer, reach| places.push(Place { pointer: pointer.clone(), reach });
    match operation {
        Operation::Add { path, .. } | Operation::Replace { path, .. } | Operation::Copy { path, .. } => {
            reach(path, Reach::Put);
        }
        Operation::Remove { path } => reach(path, Reach::Taken),
        Operation::Move { from, path } => {
            reach(from, Reach::Taken);
            reach(path, Reach::Put);
        }
        Operation::Test { .. } => {}
    }
}
