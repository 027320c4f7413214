//! What a request says of conflicts itself.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::domain::json::pointer::Pointer;

/// How many conflicts one request settles.
const RESOLUTIONS_MAX: usize = 1_000;

/// What is to stand at which conflict; nothing, where it is to go.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Resolutions(BTreeMap<Pointer, Option<Value>>);

/// What is wrong with a part of them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InvalidResolution {
    pub pointer: Pointer,
    pub detail: &'static str,
}

impl Resolutions {
    /// Reads `[{"path", "value"?}]`.
    pub fn read(value: &Value) -> Result<Self, InvalidResolution> {
        let root = Pointer::root();
        let wrong = |pointer: &Pointer, detail| InvalidResolution { pointer: pointer.clone(), detail };
        let Value::Array(items) = value else { return Err(wrong(&root, "resolve is a list")) };
        if items.len() > RESOLUTIONS_MAX {
            return Err(wrong(&root, "resolve has at most 1000 items"));
        }
        let mut read = BTreeMap::new();
        for (index, item) in items.iter().enumerate() {
            let at = root.index(index);
            let known =
                |members: &serde_json::Map<String, Value>| members.keys().all(|it| it == "path" || it == "value");
            let members = item.as_object().filter(|it| known(it));
            let members = members
                .ok_or_else(|| wrong(&at, "an item has `path`, and `value` unless nothing is to stand there"))?;
            let path = members.get("path").and_then(Value::as_str).and_then(|it| Pointer::try_from(it).ok());
            let path = path.ok_or_else(|| wrong(&at.child("path"), "a path is a JSON Pointer"))?;
            if read.insert(path, members.get("value").cloned()).is_some() {
                return Err(wrong(&at.child("path"), "each place is settled once"));
            }
        }
        Ok(Self(read))
    }

    /// What is to stand at a place, if it is settled.
    pub(super) fn at(&self, place: &Pointer) -> Option<&Option<Value>> {
        self.0.get(place)
    }

    /// Every place that is settled.
    pub fn places(&self) -> impl Iterator<Item = &Pointer> {
        self.0.keys()
    }
}
