//! Compares arrays of objects with keys, in time linear in their length.

use std::collections::{BTreeSet, HashMap};

use serde_json::{Map, Value};
use unicode_normalization::{UnicodeNormalization as _, is_nfc};

use super::rules::{KeyedListRule, NewItems};
use super::{LabelledState, StateSide, TransitionViolation, ViolationSink};
use crate::json::canonical::canonical;
use crate::json::pointer::Pointer;

type JsonObject = Map<String, Value>;

/// Items by key, in order. Texts and numbers are different keys.
struct KeyedItems<'v> {
    list: Vec<(String, &'v JsonObject)>,
    places: HashMap<String, usize>,
}

pub(super) fn judge(
    rule: &KeyedListRule,
    at: &Pointer,
    before: LabelledState<'_>,
    after: &Value,
    found: &mut impl ViolationSink,
) {
    let (before, side) = before;
    let was = items(rule, at, (before, side), found);
    if was.is_none() && side == StateSide::After {
        // If a state is compared with itself, each violation is reported once.
        return;
    }
    let now = items(rule, at, (after, StateSide::After), found);
    // Without unique keys the items of both states cannot be matched.
    let (Some(before), Some(after)) = (was, now) else { return };
    for (index, (key, _)) in before.list.iter().enumerate() {
        if !after.places.contains_key(key) {
            found.broken(side, TransitionViolation::ItemRemoved, || at.index(index));
        }
    }
    // A new item is appended only if no old item follows it.
    let last_old = after.list.iter().rposition(|(key, _)| before.places.contains_key(key));
    let mut furthest = None;
    for (index, (key, item)) in after.list.iter().enumerate() {
        let Some(place) = before.places.get(key).copied() else {
            if rule.new_items == NewItems::Refused {
                found.broken(StateSide::After, TransitionViolation::ItemNotAllowed, || at.index(index));
            } else if Some(index) < last_old {
                found.broken(StateSide::After, TransitionViolation::ItemInserted, || at.index(index));
            }
            continue;
        };
        if Some(place) < furthest {
            found.broken(StateSide::After, TransitionViolation::ItemMoved, || at.index(index));
        }
        furthest = furthest.max(Some(place));
        if let Some((_, old)) = before.list.get(place) {
            let old = PreviousItem { members: old, side, index: place };
            fields(rule, at, old, PreviousItem { members: item, side: StateSide::After, index }, found);
        }
    }
}

/// Returns `None` if the items have no unique keys, and adds the reason to `found`.
fn items<'v>(
    rule: &KeyedListRule,
    at: &Pointer,
    (array, side): LabelledState<'v>,
    found: &mut impl ViolationSink,
) -> Option<KeyedItems<'v>> {
    let Value::Array(array) = array else {
        found.broken(side, TransitionViolation::NotAnArray, || at.clone());
        return None;
    };
    let mut items = KeyedItems { list: Vec::with_capacity(array.len()), places: HashMap::with_capacity(array.len()) };
    let mut sound = true;
    for (index, item) in array.iter().enumerate() {
        let wrong = match item.as_object().map(|it| (it, it.get(&rule.key))) {
            None => TransitionViolation::NotAnObject,
            Some((_, None)) => TransitionViolation::KeyMissing,
            Some((item, Some(key @ (Value::String(_) | Value::Number(_))))) => {
                let key = identity(key);
                if items.places.insert(key.clone(), index).is_none() {
                    items.list.push((key, item));
                    continue;
                }
                TransitionViolation::KeyTwice
            }
            Some(_) => TransitionViolation::KeyUnfit,
        };
        sound = false;
        found.broken(side, wrong, || match wrong {
            TransitionViolation::NotAnObject => at.index(index),
            _ => at.index(index).child(&rule.key),
        });
    }
    sound.then_some(items)
}

/// Returns one text for a value that can be a key: a text or a number.
pub fn key_identity(key: &Value) -> Option<String> {
    matches!(key, Value::String(_) | Value::Number(_)).then(|| identity(key))
}

/// Returns one text for each key. Two spellings of one word (NFC) are one key, because a reader cannot distinguish
/// them.
fn identity(key: &Value) -> String {
    // The quotes of a text keep `"1"` and `1` apart.
    let text = canonical(key);
    if is_nfc(&text) { text } else { text.nfc().collect() }
}

/// An item of the previous state, with its position.
#[derive(Clone, Copy)]
struct PreviousItem<'v> {
    members: &'v JsonObject,
    side: StateSide,
    index: usize,
}

fn fields(
    rule: &KeyedListRule,
    at: &Pointer,
    old: PreviousItem<'_>,
    new: PreviousItem<'_>,
    found: &mut impl ViolationSink,
) {
    // Sorted, so that violations come in a fixed order.
    let names: BTreeSet<&String> = old.members.keys().chain(new.members.keys()).collect();
    for name in names {
        let mut tell = |it: PreviousItem<'_>, code| found.broken(it.side, code, || at.index(it.index).child(name));
        match (old.members.get(name), new.members.get(name)) {
            (was, is) if rule.booleans.contains(name) => {
                let odd = |it: Option<&Value>| it.is_some_and(|it| !it.is_boolean());
                // If a state is compared with itself, each violation is reported once.
                if odd(was) && old.side != new.side {
                    tell(old, TransitionViolation::NotABoolean);
                }
                if odd(is) {
                    tell(new, TransitionViolation::NotABoolean);
                } else if !odd(was) && was != is && is != Some(&Value::Bool(true)) {
                    tell(new, TransitionViolation::BooleanNotToTrue);
                }
            }
            (Some(_), None) => tell(new, TransitionViolation::FieldRemoved),
            (None, Some(_)) => tell(new, TransitionViolation::FieldAdded),
            (was, is) if was != is => tell(new, TransitionViolation::FieldChanged),
            _ => {}
        }
    }
}
