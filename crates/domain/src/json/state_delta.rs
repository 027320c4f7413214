//! Stores a new state as its difference from the state before.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::canonical::canonical;
use super::parse::{DEPTH_CEILING, ParseLimits, parse};
use super::pointer::{Pointer, PointerBuilder};
use super::size::ValueSize;

#[cfg(test)]
mod tests;

/// The difference between two values: removed subtrees and set subtrees. No path occurs twice or within another, so
/// their order does not matter. An array whose length changes is set as a whole.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Delta {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    remove: Vec<Pointer>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    set: Vec<(Pointer, Value)>,
}

/// Why a stored delta cannot be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum DeltaError {
    /// The text is not a stored delta.
    #[error("the text is not a delta")]
    Text,
    /// It belongs to another state.
    #[error("the delta does not fit the state")]
    Misfit,
}

impl Delta {
    /// Returns the difference that changes `before` into `after`.
    pub fn between(before: &Value, after: &Value) -> Self {
        let mut delta = Self::default();
        delta.compare(before, after, &mut PointerBuilder::default());
        delta
    }

    /// Returns whether it changes nothing.
    pub fn is_empty(&self) -> bool {
        self.remove.is_empty() && self.set.is_empty()
    }

    /// Returns the leaves of the values that it sets.
    pub fn leaves_set(&self) -> usize {
        self.set.iter().map(|(_, value)| ValueSize::of(value).leaves).sum()
    }

    /// Returns the new state from the state before.
    pub fn apply(&self, before: &Value) -> Result<Value, DeltaError> {
        let mut state = before.clone();
        for pointer in &self.remove {
            let (members, key) = member(&mut state, pointer)?;
            // A missing member shows that the delta belongs to another state.
            members.remove(&key).ok_or(DeltaError::Misfit)?;
        }
        for (pointer, value) in &self.set {
            if let Some(place) = pointer.resolve_mut(&mut state) {
                *place = value.clone();
            } else {
                let (members, key) = member(&mut state, pointer)?;
                members.insert(key, value.clone());
            }
        }
        Ok(state)
    }

    /// Returns the canonical text to store.
    pub fn encode(&self) -> String {
        canonical(&serde_json::to_value(self).expect("pointers and values are JSON"))
    }

    /// Reads what [`Delta::encode`] wrote, with the numbers in their one form: `serde_json` alone would
    /// read a large whole double back as an integer, which is not `==` to it.
    pub fn decode(text: &[u8]) -> Result<Self, DeltaError> {
        // The length was limited when the state was. A limit that became smaller since must not make a state
        // unreadable.
        let limits = ParseLimits { bytes_max: text.len(), depth_max: DEPTH_CEILING };
        let value = parse(text, &limits).map_err(|_| DeltaError::Text)?;
        // `serde` also reads a struct from an array of its fields. Stored deltas never have that form.
        if !value.is_object() {
            return Err(DeltaError::Text);
        }
        serde_json::from_value(value).map_err(|_| DeltaError::Text)
    }

    fn compare(&mut self, before: &Value, after: &Value, trail: &mut PointerBuilder) {
        match (before, after) {
            (Value::Object(old), Value::Object(new)) => self.compare_members(old, new, trail),
            // Entries have no order, so a delta cannot insert or remove single items.
            (Value::Array(old), Value::Array(new)) if old.len() == new.len() => {
                for (index, (before, after)) in old.iter().zip(new).enumerate() {
                    let above = trail.enter_index(index);
                    self.compare(before, after, trail);
                    trail.leave(above);
                }
            }
            _ if before == after => {}
            _ => self.set.push((trail.pointer(), after.clone())),
        }
    }

    fn compare_members(&mut self, old: &Map<String, Value>, new: &Map<String, Value>, trail: &mut PointerBuilder) {
        for key in old.keys().filter(|key| !new.contains_key(*key)) {
            let above = trail.enter_key(key);
            self.remove.push(trail.pointer());
            trail.leave(above);
        }
        for (key, after) in new {
            let above = trail.enter_key(key);
            match old.get(key) {
                Some(before) => self.compare(before, after, trail),
                None => self.set.push((trail.pointer(), after.clone())),
            }
            trail.leave(above);
        }
    }
}

/// Returns the object that contains the last token of a pointer.
fn member<'v>(state: &'v mut Value, pointer: &Pointer) -> Result<(&'v mut Map<String, Value>, String), DeltaError> {
    let (parent, key) = pointer.split_last().ok_or(DeltaError::Misfit)?;
    match parent.resolve_mut(state) {
        Some(Value::Object(members)) => Ok((members, key.into_owned())),
        // Arrays are set as a whole, so only an object can gain or lose a member.
        _ => Err(DeltaError::Misfit),
    }
}
