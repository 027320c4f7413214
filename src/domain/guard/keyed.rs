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
            fields(rule, (at, index), old, item, found);
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

fn fields(rule: &Keyed, (at, index): (&Pointer, usize), old: &Object, new: &Object, found: &mut Violations) {
    let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    for name in names {
        let code = match (old.get(name), new.get(name)) {
            (old, new) if rule.booleans.contains(name) => boolean(old, new),
            (Some(_), None) => Some(Code::FieldRemoved),
            (None, Some(_)) => Some(Code::FieldAdded),
            (old, new) => (old != new).then_some(Code::FieldChanged),
        };
        if let Some(code) = code {
            found.rule(Subject::Proposed, code, || at.index(index).child(name));
        }
    }
}

fn boolean(old: Option<&Value>, new: Option<&Value>) -> Option<Code> {
    let fits = |it: Option<&Value>| it.is_none_or(Value::is_boolean);
    if !fits(old) || !fits(new) {
        return Some(Code::NotABoolean);
    }
    (old != new && new != Some(&Value::Bool(true))).then_some(Code::BooleanNotToTrue)
}
