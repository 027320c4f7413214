//! The rules' text to rules.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::{ConfigCode, ConfigError};
use crate::domain::json::canonical::canonical;
use crate::domain::json::pointer::Pointer;

#[derive(Clone, Debug, Default)]
pub(super) struct Rules {
    pub(super) immutable: Vec<Pointer>,
    pub(super) monotonic: Vec<Pointer>,
    pub(super) ordered: Vec<(Pointer, Vec<Value>)>,
    pub(super) keyed: Vec<(Pointer, Keyed)>,
}

#[derive(Clone, Debug)]
pub(super) struct Keyed {
    pub(super) key: String,
    pub(super) booleans: BTreeSet<String>,
    pub(super) new_items: NewItems,
}

/// Whether items may be appended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum NewItems {
    Allowed,
    Refused,
}

const ORDERED: &str = "ordered_enum_paths";
const KEYED: &str = "keyed_object_array_paths";

impl Rules {
    pub(super) fn read(rules: &Value) -> Result<Self, ConfigError> {
        let Value::Object(members) = rules else { return refuse(&Pointer::root(), "rules are an object") };
        let mut read = Self::default();
        for (name, value) in members {
            let at = Pointer::root().child(name);
            match (name.as_str(), value) {
                ("immutable_paths", Value::Array(list)) => read.immutable = paths(list, &at)?,
                ("monotonic_integer_paths", Value::Array(list)) => read.monotonic = paths(list, &at)?,
                (ORDERED, Value::Object(named)) => {
                    for (text, values) in named {
                        read.ordered.push((path(text, &at.child(text))?, ordered(values, &at.child(text))?));
                    }
                }
                (KEYED, Value::Object(named)) => {
                    for (text, rule) in named {
                        read.keyed.push((path(text, &at.child(text))?, keyed(rule, &at.child(text))?));
                    }
                }
                ("immutable_paths" | "monotonic_integer_paths", _) => return refuse(&at, "this is a list of paths"),
                (ORDERED | KEYED, _) => return refuse(&at, "this is an object with a path for each name"),
                _ => return refuse(&at, "there is no such rule"),
            }
        }
        Ok(read)
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.immutable.is_empty() && self.monotonic.is_empty() && self.ordered.is_empty() && self.keyed.is_empty()
    }
}

fn refuse<T>(at: &Pointer, why: &str) -> Result<T, ConfigError> {
    Err(ConfigCode::Rules.at(at, why))
}

fn paths(list: &[Value], at: &Pointer) -> Result<Vec<Pointer>, ConfigError> {
    let mut paths = Vec::new();
    let mut seen = BTreeSet::new();
    for (index, value) in list.iter().enumerate() {
        let here = at.index(index);
        let Some(text) = value.as_str() else { return refuse(&here, "a path is text") };
        let read = path(text, &here)?;
        if seen.insert(read.clone()) {
            paths.push(read);
        }
    }
    Ok(paths)
}

fn path(text: &str, at: &Pointer) -> Result<Pointer, ConfigError> {
    let Some(names) = text.strip_prefix("$.") else { return refuse(at, "a path begins with $.") };
    if names.split('.').any(str::is_empty) {
        return refuse(at, "a path has a name between its dots");
    }
    if names.contains(['[', ']', '*']) {
        return refuse(at, "a path is names and dots; brackets and stars would never match");
    }
    Ok(names.split('.').fold(Pointer::root(), |path, name| path.child(name)))
}

fn ordered(values: &Value, at: &Pointer) -> Result<Vec<Value>, ConfigError> {
    let Value::Array(values) = values else { return refuse(at, "an order is a list of values") };
    if values.len() < 2 {
        return refuse(at, "an order has at least two values");
    }
    if values.iter().any(|it| it.is_array() || it.is_object()) {
        return refuse(at, "an order has texts, numbers, booleans and null");
    }
    let mut seen = BTreeSet::new();
    if !values.iter().all(|it| seen.insert(canonical(it))) {
        return refuse(at, "a value stands twice in the order");
    }
    Ok(values.clone())
}

fn keyed(rule: &Value, at: &Pointer) -> Result<Keyed, ConfigError> {
    let Value::Object(members) = rule else { return refuse(at, "this rule is an object") };
    let known = ["key", "monotonic_boolean_fields", "allow_new_items"];
    if let Some(name) = members.keys().find(|it| !known.contains(&it.as_str())) {
        return refuse(&at.child(name), "this rule has no such part");
    }
    let key = members.get("key").and_then(Value::as_str).filter(|it| !it.is_empty());
    let Some(key) = key else { return refuse(&at.child("key"), "the rule names the field that is the key") };
    let booleans = booleans(members, &at.child("monotonic_boolean_fields"))?;
    if booleans.contains(key) {
        return refuse(&at.child("monotonic_boolean_fields"), "the key never changes");
    }
    let new_items = match members.get("allow_new_items") {
        None | Some(Value::Bool(true)) => NewItems::Allowed,
        Some(Value::Bool(false)) => NewItems::Refused,
        Some(_) => return refuse(&at.child("allow_new_items"), "this is true or false"),
    };
    Ok(Keyed { key: key.to_owned(), booleans, new_items })
}

fn booleans(members: &Map<String, Value>, at: &Pointer) -> Result<BTreeSet<String>, ConfigError> {
    let names = match members.get("monotonic_boolean_fields") {
        None => Some(BTreeSet::new()),
        Some(Value::Array(names)) => {
            names.iter().map(|it| it.as_str().filter(|it| !it.is_empty()).map(str::to_owned)).collect()
        }
        Some(_) => None,
    };
    names.map_or_else(|| refuse(at, "this is a list of field names"), Ok)
}
