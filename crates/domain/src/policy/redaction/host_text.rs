//! Finds the paths that a host's description gives to its values. The description has no fixed form: a state with
//! changes in place of values, a list of lines with paths, or paths as keys.

use serde_json::{Map, Value};

use crate::json::pointer::Pointer;

/// Members with which a line in a list of changes names its path.
const NAMES: [&str; 4] = ["pointer", "path", "key", "field"];

/// Members between a path and its values.
const SIDES: [&str; 7] = ["before", "after", "old", "new", "from", "to", "value"];

/// Part of a host's description that, by the description itself, belongs to a redacted path.
pub(super) struct HostValue<'v> {
    /// Path within the description.
    pub(super) at: Pointer,
    /// The value at the path, before or after the change. Other text of the line is not a value.
    pub(super) value: Option<&'v Value>,
}

/// Returns the parts of the description that belong to redacted paths. `begins` returns the start of the redacted
/// part of a path.
pub(super) fn placed<'v>(told: &'v Value, begins: &dyn Fn(&Pointer) -> Option<Pointer>) -> Vec<HostValue<'v>> {
    let mut walk = HostTextWalk { begins, placed: Vec::new() };
    walk.go(told, &Pointer::root(), &Pointer::root(), true);
    walk.placed
}

struct HostTextWalk<'h, 'v> {
    begins: &'h dyn Fn(&Pointer) -> Option<Pointer>,
    placed: Vec<HostValue<'v>>,
}

impl<'v> HostTextWalk<'_, 'v> {
    /// Walks the description. `at` is the path within the description, and `place` is the path in the state that the
    /// description gives.
    fn go(&mut self, value: &'v Value, at: &Pointer, place: &Pointer, is_value: bool) {
        if (self.begins)(place).is_some() {
            // Other text of a line is redacted here, but it is no value to search the description for.
            self.placed.push(HostValue { at: at.clone(), value: is_value.then_some(value) });
            return;
        }
        match value {
            Value::Object(members) => self.members(members, at, place),
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.go(item, &at.index(index), &place.index(index), is_value);
                }
            }
            _ => {}
        }
    }

    fn members(&mut self, members: &'v Map<String, Value>, at: &Pointer, place: &Pointer) {
        let keyed = members.keys().filter_map(|it| pointer_in(it)).find(|it| self.is_below_hidden(it));
        if keyed.is_some() {
            // The keys contain redacted names, and the keys of an object are shown together or not at all.
            self.placed.push(HostValue { at: at.clone(), value: None });
        }
        let named = NAMES.iter().find_map(|it| Some((*it, place_in(members.get(*it)?)?)));
        for (key, value) in members {
            let at = at.child(key);
            match &named {
                Some((name, place)) if name == key => {
                    // The path to a redacted value may be shown, but no name below that value.
                    if self.is_below_hidden(place) {
                        self.placed.push(HostValue { at, value: None });
                    }
                }
                Some((_, place)) if SIDES.contains(&key.as_str()) => self.go(value, &at, place, true),
                Some((_, place)) => self.go(value, &at, &place.child(key), false),
                None if SIDES.contains(&key.as_str()) => self.go(value, &at, place, true),
                None => {
                    let place = pointer_in(key).unwrap_or_else(|| place.child(key));
                    self.go(value, &at, &place, true);
                }
            }
        }
    }

    /// Returns whether the path contains a redacted name.
    fn is_below_hidden(&self, place: &Pointer) -> bool {
        (self.begins)(place).is_some_and(|it| it != *place)
    }
}

/// Returns the path that a text or list means: a JSON Pointer, keys separated by dots, or a list of keys.
fn place_in(name: &Value) -> Option<Pointer> {
    let below = |place: Pointer, key: &str| place.child(key);
    match name {
        // A host application may write paths in either form.
        Value::String(text) => Some(pointer_in(text).unwrap_or_else(|| text.split('.').fold(Pointer::root(), below))),
        Value::Array(keys) => keys.iter().try_fold(Pointer::root(), |place, key| match key {
            Value::String(key) => Some(place.child(key)),
            Value::Number(index) => Some(place.child(&index.to_string())),
            _ => None,
        }),
        _ => None,
    }
}

fn pointer_in(text: &str) -> Option<Pointer> {
    text.starts_with('/').then(|| Pointer::try_from(text).ok()).flatten()
}

#[cfg(test)]
mod tests;
