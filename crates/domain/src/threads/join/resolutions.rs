//! The values that a request chooses for conflicts (`resolve`).

use std::collections::BTreeMap;

use serde_json::Value;

use crate::json::pointer::Pointer;

/// The limit of conflicts that one request settles.
const RESOLUTIONS_MAX: usize = 1_000;

/// The chosen value of each conflict. `None` removes the value.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Resolutions(BTreeMap<Pointer, Option<Value>>);

/// An invalid item of `resolve`.
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
        let Value::Array(items) = value else { return Err(wrong(&root, "`resolve` must be a list")) };
        if items.len() > RESOLUTIONS_MAX {
            return Err(wrong(&root, "`resolve` has more than 1000 items"));
        }
        let mut read = BTreeMap::new();
        for (index, item) in items.iter().enumerate() {
            let at = root.index(index);
            let known =
                // Unknown members are refused, so a misspelled `value` does not remove the path.
                |members: &serde_json::Map<String, Value>| members.keys().all(|it| it == "path" || it == "value");
            let members = item.as_object().filter(|it| known(it));
            let members =
                members.ok_or_else(|| wrong(&at, "an item has `path` and, unless the path is removed, `value`"))?;
            let path = members.get("path").and_then(Value::as_str).and_then(|it| Pointer::try_from(it).ok());
            let path = path.ok_or_else(|| wrong(&at.child("path"), "`path` must be a JSON Pointer"))?;
            // A missing `value` removes the path, while null is a value.
            if read.insert(path, members.get("value").cloned()).is_some() {
                return Err(wrong(&at.child("path"), "this path is settled twice; settle each path once"));
            }
        }
        Ok(Self(read))
    }

    /// Returns the chosen value of a path, if the request settles the path.
    pub(super) fn at(&self, place: &Pointer) -> Option<&Option<Value>> {
        self.0.get(place)
    }

    /// Returns the settled paths.
    pub fn places(&self) -> impl Iterator<Item = &Pointer> {
        self.0.keys()
    }
}
