//! Where a host says that its values stand. Its words have any shape: a state with changes in the places of its values,
//! a list of lines that name their places, places as keys.

use serde_json::{Map, Value};

use crate::domain::json::pointer::Pointer;

/// By these a line of a list of changes names its place.
const NAMES: [&str; 4] = ["pointer", "path", "key", "field"];

/// These stand between a place and its values.
const SIDES: [&str; 7] = ["before", "after", "old", "new", "from", "to", "value"];

/// A part of what a host says, that by its own words stands at a hidden place.
pub(super) struct HostValue<'v> {
    /// Where it stands in what the host says.
    pub(super) at: Pointer,
    /// The value of the place, on one side of the change or the other. Other words of the line about it are none.
    pub(super) value: Option<&'v Value>,
}

/// What of it stands at places that are hidden: `begins` tells where the hidden part of a place begins.
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
    /// `at` is where it stands in what the host says, and `place` where that says that it stands.
    fn go(&mut self, value: &'v Value, at: &Pointer, place: &Pointer, is_value: bool) {
        if (self.begins)(place).is_some() {
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
            self.placed.push(HostValue { at: at.clone(), value: None });
        }
        let named = NAMES.iter().find_map(|it| Some((*it, place_in(members.get(*it)?)?)));
        for (key, value) in members {
            let at = at.child(key);
            match &named {
                Some((name, place)) if name == key => {
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

    /// Whether the name of the place tells a name that is hidden.
    fn is_below_hidden(&self, place: &Pointer) -> bool {
        (self.begins)(place).is_some_and(|it| it != *place)
    }
}

/// The place that a name of a place means: a pointer, keys with dots between them, or a list of keys.
fn place_in(name: &Value) -> Option<Pointer> {
    let below = |place: Pointer, key: &str| place.child(key);
    match name {
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
