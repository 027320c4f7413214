//! Arrays of objects with keys, in time linear in their length.

use std::collections::{BTreeSet, HashMap};

use serde_json::{Map, Value};
use unicode_normalization::{UnicodeNormalization as _, is_nfc};

use super::rules::{Keyed, NewItems};
use super::transition::Named;
use super::{Code, Subject, Violations};
use crate::domain::json::canonical::canonical;
use crate::domain::json::pointer::Pointer;

type Object = Map<String, Value>;

/// The items by key, text apart from numbers, in order.
struct Items<'v> {
    list: Vec<(String, &'v Object)>,
    places: HashMap<String, usize>,
}

pub(super) fn judge(rule: &Keyed, at: &Pointer, before: Named<'_>, after: &Value, found: &mut Violations) {
    let (before, subject) = before;
    let was = items(rule, at, (before, subject), found);
    if was.is_none() && subject == Subject::Proposed {
        // A state that is held against itself is told once.
        return;
    }
    let now = items(rule, at, (after, Subject::Proposed), found);
    let (Some(before), Some(after)) = (was, now) else { return };
    for (index, (key, _)) in before.list.iter().enumerate() {
        if !after.places.contains_key(key) {
            found.rule(subject, Code::ItemRemoved, || at.index(index));
        }
    }
    let last_old = after.list.iter().rposition(|(key, _)| before.places.contains_key(key));
    let mut furthest = None;
    for (index, (key, item)) in after.list.iter().enumerate() {
        let Some(place) = before.places.get(key).copied() else {
            if rule.new_items == NewItems::Refused {
                found.rule(Subject::Proposed, Code::ItemNotAllowed, || at.index(index));
            } else if Some(index) < last_old {
                found.rule(Subject::Proposed, Code::ItemInserted, || at.index(index));
            }
            continue;
        };
        if Some(place) < furthest {
            found.rule(Subject::Proposed, Code::ItemMoved, || at.index(index));
        }
        furthest = furthest.max(Some(place));
        if let Some((_, old)) = before.list.get(place) {
            let old = Standing { members: old, subject, index: place };
            fields(rule, at, old, Standing { members: item, subject: Subject::Proposed, index }, found);
        }
    }
}

/// `None` if the items cannot be told apart; why is in `found`.
fn items<'v>(rule: &Keyed, at: &Pointer, (array, subject): Named<'v>, found: &mut Violations) -> Option<Items<'v>> {
    let Value::Array(array) = array else {
        found.rule(subject, Code::NotAnArray, || at.clone());
        return None;
    };
    let mut items = Items { list: Vec::with_capacity(array.len()), places: HashMap::with_capacity(array.len()) };
    let mut sound = true;
    for (index, item) in array.iter().enumerate() {
        let wrong = match item.as_object().map(|it| (it, it.get(&rule.key))) {
            None => Code::NotAnObject,
            Some((_, None)) => Code::KeyMissing,
            Some((item, Some(key @ (Value::String(_) | Value::Number(_))))) => {
                let key = identity(key);
                if items.places.insert(key.clone(), index).is_none() {
                    items.list.push((key, item));
                    continue;
                }
                Code::KeyTwice
            }
            Some(_) => Code::KeyUnfit,
        };
        sound = false;
        found.rule(subject, wrong, || match wrong {
            Code::NotAnObject => at.index(index),
            _ => at.index(index).child(&rule.key),
        });
    }
    sound.then_some(items)
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
    subject: Subject,
    index: usize,
}

fn fields(rule: &Keyed, at: &Pointer, old: Standing<'_>, new: Standing<'_>, found: &mut Violations) {
    let names: BTreeSet<&String> = old.members.keys().chain(new.members.keys()).collect();
    for name in names {
        let mut tell = |it: Standing<'_>, code| found.rule(it.subject, code, || at.index(it.index).child(name));
        match (old.members.get(name), new.members.get(name)) {
            (was, is) if rule.booleans.contains(name) => {
                let odd = |it: Option<&Value>| it.is_some_and(|it| !it.is_boolean());
                // A state that is held against itself is told once.
                if odd(was) && old.subject != new.subject {
                    tell(old, Code::NotABoolean);
                }
                if odd(is) {
                    tell(new, Code::NotABoolean);
                } else if !odd(was) && was != is && is != Some(&Value::Bool(true)) {
                    tell(new, Code::BooleanNotToTrue);
                }
            }
            (Some(_), None) => tell(new, Code::FieldRemoved),
            (None, Some(_)) => tell(new, Code::FieldAdded),
            (was, is) if was != is => tell(new, Code::FieldChanged),
            _ => {}
        }
    }
}
