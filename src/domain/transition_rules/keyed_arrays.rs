//! Arrays of objects with keys, in time linear in their length.

use std::collections::{BTreeSet, HashMap};

use serde_json::{Map, Value};
use unicode_normalization::{UnicodeNormalization as _, is_nfc};

use super::rules::{Keyed, NewItems};
use super::{Broken, Found, Named, Side};
use crate::domain::json::canonical::canonical;
use crate::domain::json::pointer::Pointer;

type Object = Map<String, Value>;

/// The items by key, text apart from numbers, in order.
struct Items<'v> {
    list: Vec<(String, &'v Object)>,
    places: HashMap<String, usize>,
}

pub(super) fn judge(rule: &Keyed, at: &Pointer, before: Named<'_>, after: &Value, found: &mut impl Found) {
    let (before, side) = before;
    let was = items(rule, at, (before, side), found);
    if was.is_none() && side == Side::After {
        // A state that is held against itself is told once.
        return;
    }
    let now = items(rule, at, (after, Side::After), found);
    let (Some(before), Some(after)) = (was, now) else { return };
    for (index, (key, _)) in before.list.iter().enumerate() {
        if !after.places.contains_key(key) {
            found.broken(side, Broken::ItemRemoved, || at.index(index));
        }
    }
    let last_old = after.list.iter().rposition(|(key, _)| before.places.contains_key(key));
    let mut furthest = None;
    for (index, (key, item)) in after.list.iter().enumerate() {
        let Some(place) = before.places.get(key).copied() else {
            if rule.new_items == NewItems::Refused {
                found.broken(Side::After, Broken::ItemNotAllowed, || at.index(index));
            } else if Some(index) < last_old {
                found.broken(Side::After, Broken::ItemInserted, || at.index(index));
            }
            continue;
        };
        if Some(place) < furthest {
            found.broken(Side::After, Broken::ItemMoved, || at.index(index));
        }
        furthest = furthest.max(Some(place));
        if let Some((_, old)) = before.list.get(place) {
            let old = Standing { members: old, side, index: place };
            fields(rule, at, old, Standing { members: item, side: Side::After, index }, found);
        }
    }
}

/// `None` if the items cannot be told apart; why is in `found`.
fn items<'v>(rule: &Keyed, at: &Pointer, (array, side): Named<'v>, found: &mut impl Found) -> Option<Items<'v>> {
    let Value::Array(array) = array else {
        found.broken(side, Broken::NotAnArray, || at.clone());
        return None;
    };
    let mut items = Items { list: Vec::with_capacity(array.len()), places: HashMap::with_capacity(array.len()) };
    let mut sound = true;
    for (index, item) in array.iter().enumerate() {
        let wrong = match item.as_object().map(|it| (it, it.get(&rule.key))) {
            None => Broken::NotAnObject,
            Some((_, None)) => Broken::KeyMissing,
            Some((item, Some(key @ (Value::String(_) | Value::Number(_))))) => {
                let key = identity(key);
                if items.places.insert(key.clone(), index).is_none() {
                    items.list.push((key, item));
                    continue;
                }
                Broken::KeyTwice
            }
            Some(_) => Broken::KeyUnfit,
        };
        sound = false;
        found.broken(side, wrong, || match wrong {
            Broken::NotAnObject => at.index(index),
            _ => at.index(index).child(&rule.key),
        });
    }
    sound.then_some(items)
}

/// One text for a value that can be a key: a text or a number.
pub fn key_identity(key: &Value) -> Option<String> {
    matches!(key, Value::String(_) | Value::Number(_)).then(|| identity(key))
}

/// One text for one key. Two spellings of one word (NFC) are one key: who reads the list cannot tell them apart.
fn identity(key: &Value) -> String {
    let text = canonical(key);
    if is_nfc(&text) { text } else { text.nfc().collect() }
}

/// An item that was there before, and where it stands.
#[derive(Clone, Copy)]
struct Standing<'v> {
    members: &'v Object,
    side: Side,
    index: usize,
}

fn fields(rule: &Keyed, at: &Pointer, old: Standing<'_>, new: Standing<'_>, found: &mut impl Found) {
    let names: BTreeSet<&String> = old.members.keys().chain(new.members.keys()).collect();
    for name in names {
        let mut tell = |it: Standing<'_>, code| found.broken(it.side, code, || at.index(it.index).child(name));
        match (old.members.get(name), new.members.get(name)) {
            (was, is) if rule.booleans.contains(name) => {
                let odd = |it: Option<&Value>| it.is_some_and(|it| !it.is_boolean());
                // A state that is held against itself is told once.
                if odd(was) && old.side != new.side {
                    tell(old, Broken::NotABoolean);
                }
                if odd(is) {
                    tell(new, Broken::NotABoolean);
                } else if !odd(was) && was != is && is != Some(&Value::Bool(true)) {
                    tell(new, Broken::BooleanNotToTrue);
                }
            }
            (Some(_), None) => tell(new, Broken::FieldRemoved),
            (None, Some(_)) => tell(new, Broken::FieldAdded),
            (was, is) if was != is => tell(new, Broken::FieldChanged),
            _ => {}
        }
    }
}
