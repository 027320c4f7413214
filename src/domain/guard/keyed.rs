//! Arrays of objects with keys, in time linear in their length.

use std::collections::{BTreeSet, HashMap};

use serde_json::{Map, Value};

use super::rules::{Keyed, NewItems};
use super::{Alias, Code, Violations};
use crate::domain::json::canonical::canonical;
use crate::domain::json::pointer::Pointer;

type Object = Map<String, Value>;

/// The items by key, text apart from numbers, in order.
struct Items<'v> {
    list: Vec<(String, &'v Object)>,
    places: HashMap<String, usize>,
}

pub(super) fn judge(rule: &Keyed, at: &Pointer, (before, after): (&Value, &Value), found: &mut Violations) {
    let (Value::Array(before), Value::Array(after)) = (before, after) else {
        return found.add(Alias::Rule, Code::NotAnArray, at.clone());
    };
    let before = items(rule, at, before, found);
    let after = items(rule, at, after, found);
    let (Some(before), Some(after)) = (before, after) else { return };
    for (index, (key, _)) in before.list.iter().enumerate() {
        if !after.places.contains_key(key) {
            found.add(Alias::Rule, Code::ItemRemoved, at.index(index));
        }
    }
    let last_old = after.list.iter().rposition(|(key, _)| before.places.contains_key(key));
    let mut furthest = None;
    for (index, (key, item)) in after.list.iter().enumerate() {
        let here = at.index(index);
        let Some(place) = before.places.get(key).copied() else {
            if rule.new_items == NewItems::Refused {
                found.add(Alias::Rule, Code::ItemNotAllowed, here);
            } else if Some(index) < last_old {
                found.add(Alias::Rule, Code::ItemInserted, here);
            }
            continue;
        };
        if Some(place) < furthest {
            found.add(Alias::Rule, Code::ItemMoved, here.clone());
        }
        furthest = furthest.max(Some(place));
        if let Some((_, old)) = before.list.get(place) {
            fields(rule, &here, old, item, found);
        }
    }
}

/// `None` if the items cannot be told apart; why is in `found`.
fn items<'v>(rule: &Keyed, at: &Pointer, array: &'v [Value], found: &mut Violations) -> Option<Items<'v>> {
    let mut items = Items { list: Vec::with_capacity(array.len()), places: HashMap::with_capacity(array.len()) };
    let mut sound = true;
    for (index, item) in array.iter().enumerate() {
        let read = match item.as_object().map(|it| (it, it.get(&rule.key))) {
            None => Err((Code::NotAnObject, at.index(index))),
            Some((_, None)) => Err((Code::KeyMissing, at.index(index).child(&rule.key))),
            Some((item, Some(key @ (Value::String(_) | Value::Number(_))))) => Ok((item, canonical(key))),
            Some(_) => Err((Code::KeyUnfit, at.index(index).child(&rule.key))),
        };
        let read = read.and_then(|(item, key)| match items.places.insert(key.clone(), index) {
            None => Ok((key, item)),
            Some(_) => Err((Code::KeyTwice, at.index(index).child(&rule.key))),
        });
        match read {
            Ok(item) => items.list.push(item),
            Err((code, at)) => {
                sound = false;
                found.add(Alias::Rule, code, at);
            }
        }
    }
    sound.then_some(items)
}

fn fields(rule: &Keyed, at: &Pointer, old: &Object, new: &Object, found: &mut Violations) {
    let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    for name in names {
        let code = match (old.get(name), new.get(name)) {
            (old, new) if rule.booleans.contains(name) => boolean(old, new),
            (Some(_), None) => Some(Code::FieldRemoved),
            (None, Some(_)) => Some(Code::FieldAdded),
            (old, new) => (old != new).then_some(Code::FieldChanged),
        };
        if let Some(code) = code {
            found.add(Alias::Rule, code, at.child(name));
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
