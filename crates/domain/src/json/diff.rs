//! Computes the leaves that differ between two values.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::pointer::{Pointer, PointerBuilder};

#[cfg(test)]
mod tests;

/// One leaf that differs. A leaf is a scalar, `{}` or `[]`. Its presence counts, too.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct LeafChange {
    pub pointer: Pointer,
    /// The leaf before; `None` if there was none. JSON's null is a value.
    #[serde(default, with = "presence", skip_serializing_if = "Option::is_none")]
    pub before: Option<Value>,
    /// The leaf after; `None` if there is none.
    #[serde(default, with = "presence", skip_serializing_if = "Option::is_none")]
    pub after: Option<Value>,
}

impl LeafChange {
    /// Returns whether this change is only the `{}` or `[]` of a container that becomes empty or stops being empty.
    /// The container exists before and after. The change inside it is listed separately.
    pub fn is_filling(&self, before: &Value, after: &Value) -> bool {
        // A leaf on both sides has another value, so it is a real change.
        if self.before.is_some() && self.after.is_some() {
            return false;
        }
        let sides = (self.pointer.resolve(before), self.pointer.resolve(after));
        matches!(
            sides,
            (Some(Value::Object(_)), Some(Value::Object(_))) | (Some(Value::Array(_)), Some(Value::Array(_)))
        )
    }
}

/// Distinguishes null, which is a value, from a missing member.
mod presence {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use serde_json::Value;

    pub(super) fn serialize<S: Serializer>(value: &Option<Value>, serializer: S) -> Result<S::Ok, S::Error> {
        value.serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
        // Serde would read null as `None`.
        Value::deserialize(deserializer).map(Some)
    }
}

/// A leaf is a scalar, `{}` or `[]`.
pub fn is_leaf(value: &Value) -> bool {
    match value {
        Value::Object(members) => members.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => true,
    }
}

/// Returns how many leaves a value has.
pub fn leaf_count(value: &Value) -> usize {
    match value {
        Value::Object(members) if !members.is_empty() => members.values().map(leaf_count).sum(),
        Value::Array(items) if !items.is_empty() => items.iter().map(leaf_count).sum(),
        _ => 1,
    }
}

/// Returns every leaf of a value, from the top down.
pub fn leaves(value: &Value) -> Vec<(Pointer, &Value)> {
    let mut found = Vec::new();
    each_leaf(value, &mut PointerBuilder::default(), &mut |pointer, leaf| found.push((pointer, leaf)));
    found
}

/// Calls `found` for every leaf of a value, with its pointer below the trail.
pub(super) fn each_leaf<'v>(value: &'v Value, trail: &mut PointerBuilder, found: &mut impl FnMut(Pointer, &'v Value)) {
    match value {
        Value::Object(members) if !members.is_empty() => {
            for (key, value) in members {
                let above = trail.enter_key(key);
                each_leaf(value, trail, found);
                trail.leave(above);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for (index, item) in items.iter().enumerate() {
                let above = trail.enter_index(index);
                each_leaf(item, trail, found);
                trail.leave(above);
            }
        }
        leaf => found(trail.pointer(), leaf),
    }
}

/// Returns every leaf that differs. The list is empty if and only if the values are equal. If a container changes its
/// kind, every leaf below it on either side is listed, even if pointer and value are the same.
pub fn diff(before: &Value, after: &Value) -> Vec<LeafChange> {
    let mut differ = DiffBuilder { trail: PointerBuilder::default(), changes: Vec::new() };
    differ.compare(before, after);
    differ.changes
}

/// Returns whether two scalars are equal. Most values of two states are, so they are skipped without building their
/// pointers.
fn same_scalar(before: Option<&Value>, after: Option<&Value>) -> bool {
    match (before, after) {
        (Some(Value::String(before)), Some(Value::String(after))) => before == after,
        (Some(Value::Number(before)), Some(Value::Number(after))) => before == after,
        (Some(Value::Bool(before)), Some(Value::Bool(after))) => before == after,
        (Some(Value::Null), Some(Value::Null)) => true,
        _ => false,
    }
}

struct DiffBuilder {
    trail: PointerBuilder,
    changes: Vec<LeafChange>,
}

impl DiffBuilder {
    fn compare(&mut self, before: &Value, after: &Value) {
        match (before, after) {
            (Value::Object(old), Value::Object(new)) if !old.is_empty() && !new.is_empty() => {
                self.compare_members(old, new);
            }
            (Value::Array(old), Value::Array(new)) if !old.is_empty() && !new.is_empty() => {
                // Items are compared by index, because a pointer names an item by its index.
                for index in 0..old.len().max(new.len()) {
                    if same_scalar(old.get(index), new.get(index)) {
                        continue;
                    }
                    let above = self.trail.enter_index(index);
                    self.compare_or_name(old.get(index), new.get(index));
                    self.trail.leave(above);
                }
            }
            _ if is_leaf(before) && is_leaf(after) && before == after => {}
            _ => self.replace(before, after),
        }
    }

    /// Walks two sorted maps side by side.
    fn compare_members(&mut self, old: &Map<String, Value>, new: &Map<String, Value>) {
        // One walk lists the changes in the order of the keys, without a lookup for each key.
        let mut added = new.iter().peekable();
        for (key, before) in old {
            while let Some((key, after)) = added.next_if(|(it, _)| *it < key) {
                self.member(key, None, Some(after));
            }
            let after = added.next_if(|(it, _)| *it == key).map(|(_, after)| after);
            self.member(key, Some(before), after);
        }
        for (key, after) in added {
            self.member(key, None, Some(after));
        }
    }

    fn member(&mut self, key: &str, before: Option<&Value>, after: Option<&Value>) {
        if same_scalar(before, after) {
            return;
        }
        let above = self.trail.enter_key(key);
        self.compare_or_name(before, after);
        self.trail.leave(above);
    }

    fn compare_or_name(&mut self, before: Option<&Value>, after: Option<&Value>) {
        let changes = &mut self.changes;
        match (before, after) {
            (Some(before), Some(after)) => self.compare(before, after),
            (Some(before), None) => each_leaf(before, &mut self.trail, &mut |pointer, leaf| {
                changes.push(LeafChange { pointer, before: Some(leaf.clone()), after: None });
            }),
            (None, Some(after)) => each_leaf(after, &mut self.trail, &mut |pointer, leaf| {
                changes.push(LeafChange { pointer, before: None, after: Some(leaf.clone()) });
            }),
            // Every key and index comes from at least one side.
            (None, None) => {}
        }
    }

    /// Lists every leaf of both sides. A leaf on both sides is one change.
    fn replace(&mut self, before: &Value, after: &Value) {
        let mut sides: BTreeMap<Pointer, (Option<Value>, Option<Value>)> = BTreeMap::new();
        each_leaf(before, &mut self.trail, &mut |pointer, leaf| {
            sides.entry(pointer).or_default().0 = Some(leaf.clone());
        });
        each_leaf(after, &mut self.trail, &mut |pointer, leaf| {
            sides.entry(pointer).or_default().1 = Some(leaf.clone());
        });
        let changes = sides.into_iter().map(|(pointer, (before, after))| LeafChange { pointer, before, after });
        self.changes.extend(changes);
    }
}
