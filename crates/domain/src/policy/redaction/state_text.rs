//! The texts of a state that one party chose: the values of leaves, and the names of members.

use std::borrow::Cow;
use std::collections::HashMap;

use serde_json::Value;

use crate::json::canonical::canonical;
use crate::json::diff::leaves;
use crate::json::pointer::Pointer;

/// The value of a leaf, or the name of a member.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum StateTextKind {
    Value,
    /// The last token of the path of a member.
    Name,
}

/// A text of a state.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct StateText {
    pub kind: StateTextKind,
    /// The path of the leaf or of the member.
    pub at: Pointer,
}

impl StateText {
    pub const fn value(at: Pointer) -> Self {
        Self { kind: StateTextKind::Value, at }
    }

    pub const fn name(at: Pointer) -> Self {
        Self { kind: StateTextKind::Name, at }
    }

    /// Returns the text that a state has at this path, if it has any.
    pub fn resolve<'v>(&self, state: &'v Value) -> Option<Cow<'v, Value>> {
        let found = self.at.resolve(state)?;
        match self.kind {
            StateTextKind::Value => Some(Cow::Borrowed(found)),
            StateTextKind::Name => Some(Cow::Owned(Value::from(self.at.tokens().last()?.into_owned()))),
        }
    }

    /// Returns whether this is a name that a member had before a change. The change did not set the name then.
    pub fn is_earlier_name(&self, before: &Value) -> bool {
        self.kind == StateTextKind::Name && self.at.resolve(before).is_some()
    }
}

impl StateTextKind {
    /// Returns the paths of each text of this kind in a state, from the top down.
    pub fn index(self, state: &Value) -> TextIndex {
        let mut places = HashMap::new();
        match self {
            Self::Value => leaves(state).into_iter().for_each(|(at, leaf)| add(&mut places, leaf, at)),
            Self::Name => add_names(&mut places, state, &Pointer::root()),
        }
        TextIndex { places }
    }
}

/// The paths of the texts of a state, by text. A long trace asks for thousands of texts of one state.
#[derive(Debug)]
pub struct TextIndex {
    places: HashMap<String, Vec<Pointer>>,
}

impl TextIndex {
    /// Returns the texts without those that another state has at the same place.
    #[must_use]
    pub fn without_texts_of(mut self, kind: StateTextKind, other: &Value) -> Self {
        self.places.retain(|text, places| {
            let is_there = |at: &Pointer| StateText { kind, at: at.clone() }.resolve(other).map(|it| canonical(&it));
            places.retain(|at| is_there(at).as_ref() != Some(text));
            !places.is_empty()
        });
        self
    }

    /// Returns where the state has an equal text.
    pub fn places_of(&self, text: &Value) -> &[Pointer] {
        self.places.get(&canonical(text)).map_or(&[], Vec::as_slice)
    }
}

fn add(places: &mut HashMap<String, Vec<Pointer>>, text: &Value, at: Pointer) {
    places.entry(canonical(text)).or_default().push(at);
}

fn add_names(places: &mut HashMap<String, Vec<Pointer>>, value: &Value, at: &Pointer) {
    match value {
        Value::Object(members) => {
            for (key, value) in members {
                let below = at.child(key);
                add(places, &Value::from(key.as_str()), below.clone());
                add_names(places, value, &below);
            }
        }
        Value::Array(items) => {
            // An index is no name that an author chose, so only the items are searched.
            items.iter().enumerate().for_each(|(index, item)| add_names(places, item, &at.index(index)));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_and_names_are_found_apart() {
        let state = json!({"key": "text", "list": [{"text": 1}, {"other": {"text": "key"}}], "text": []});
        let places = |kind: StateTextKind, text: &str| {
            kind.index(&state).places_of(&json!(text)).iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(places(StateTextKind::Value, "text"), ["/key"]);
        assert_eq!(places(StateTextKind::Name, "text"), ["/list/0/text", "/list/1/other/text", "/text"]);
        assert_eq!(places(StateTextKind::Name, "0"), [""; 0], "an index is no name");
    }

    #[test]
    fn a_name_is_there_if_its_member_is() {
        let (state, at) = (json!({"a": {"b": 1}}), |it: &str| Pointer::try_from(it).unwrap());
        let resolved = |text: StateText| text.resolve(&state).map(Cow::into_owned);
        assert_eq!(resolved(StateText::name(at("/a"))), Some(json!("a")));
        assert_eq!(resolved(StateText::name(at("/a/c"))), None);
        assert_eq!(resolved(StateText::value(at("/a/b"))), Some(json!(1)));
    }
}
