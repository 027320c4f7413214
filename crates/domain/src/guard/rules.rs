//! Parses the text of the rules.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::{GuardConfigCode, GuardConfigError, Violations};
use crate::json::pointer::Pointer;
use crate::transition_rules::{
    KeyedListRule, LabelledState, NewItems, TransitionRule, TransitionRuleKind, ValueOrder, in_order,
};

/// Rules in the order in which they are checked.
#[derive(Clone, Debug, Default)]
pub(super) struct GuardRules(Vec<TransitionRule>);

const ORDERED: &str = "ordered_enum_paths";
const KEYED: &str = "keyed_object_array_paths";

impl GuardRules {
    pub(super) fn read(rules: &Value) -> Result<Self, GuardConfigError> {
        let Value::Object(members) = rules else { return refuse(&Pointer::root(), "rules are an object") };
        let mut read = Vec::new();
        for (name, value) in members {
            let at = Pointer::root().child(name);
            match (name.as_str(), value) {
                ("immutable_paths", Value::Array(list)) => {
                    read.extend(paths(list, &at, &TransitionRuleKind::Immutable)?)
                }
                ("monotonic_integer_paths", Value::Array(list)) => {
                    read.extend(paths(list, &at, &TransitionRuleKind::Monotonic)?)
                }
                (ORDERED, Value::Object(named)) => {
                    for (text, values) in named {
                        let at = at.child(text);
                        read.push(TransitionRule {
                            at: path(text, &at)?,
                            kind: TransitionRuleKind::Ordered(ordered(values, &at)?),
                        });
                    }
                }
                (KEYED, Value::Object(named)) => {
                    for (text, rule) in named {
                        let at = at.child(text);
                        read.push(TransitionRule {
                            at: path(text, &at)?,
                            kind: TransitionRuleKind::Keyed(keyed(rule, &at)?),
                        });
                    }
                }
                ("immutable_paths" | "monotonic_integer_paths", _) => return refuse(&at, "this is a list of paths"),
                (ORDERED | KEYED, _) => return refuse(&at, "this is an object with a path for each name"),
                _ => return refuse(&at, "there is no such rule"),
            }
        }
        // The order of the kinds in the text has no meaning, so violations always come in one order.
        Ok(Self(in_order(read)))
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn judge(&self, before: LabelledState<'_>, after: &Value, found: &mut Violations) {
        for rule in &self.0 {
            rule.judge(before, after, found);
        }
    }
}

fn refuse<T>(at: &Pointer, why: &str) -> Result<T, GuardConfigError> {
    Err(GuardConfigCode::Rules.at(at, why))
}

fn paths(list: &[Value], at: &Pointer, kind: &TransitionRuleKind) -> Result<Vec<TransitionRule>, GuardConfigError> {
    let mut rules = Vec::new();
    let mut seen = BTreeSet::new();
    for (index, value) in list.iter().enumerate() {
        let here = at.index(index);
        let Some(text) = value.as_str() else { return refuse(&here, "a path is text") };
        let at = path(text, &here)?;
        // A repeated path would report each violation twice.
        if seen.insert(at.clone()) {
            rules.push(TransitionRule { at, kind: kind.clone() });
        }
    }
    Ok(rules)
}

fn path(text: &str, at: &Pointer) -> Result<Pointer, GuardConfigError> {
    let Some(names) = text.strip_prefix("$.") else { return refuse(at, "a path begins with $.") };
    if names.split('.').any(str::is_empty) {
        return refuse(at, "a path has a name between its dots");
    }
    if names.contains(['[', ']', '*']) {
        return refuse(at, "a path is names and dots; brackets and stars would never match");
    }
    Ok(names.split('.').fold(Pointer::root(), |path, name| path.child(name)))
}

fn ordered(values: &Value, at: &Pointer) -> Result<ValueOrder, GuardConfigError> {
    let Value::Array(values) = values else { return refuse(at, "an order is a list of values") };
    ValueOrder::new(values.clone()).or_else(|why| refuse(at, why))
}

fn keyed(rule: &Value, at: &Pointer) -> Result<KeyedListRule, GuardConfigError> {
    let Value::Object(members) = rule else { return refuse(at, "this rule is an object") };
    let known = ["key", "monotonic_boolean_fields", "allow_new_items"];
    // A misspelled part would silently have no effect.
    if let Some(name) = members.keys().find(|it| !known.contains(&it.as_str())) {
        return refuse(&at.child(name), "this rule has no such part");
    }
    let key = members.get("key").and_then(Value::as_str).filter(|it| !it.is_empty());
    let Some(key) = key else { return refuse(&at.child("key"), "the rule names the field that is the key") };
    let booleans = booleans(members, &at.child("monotonic_boolean_fields"))?;
    let new_items = match members.get("allow_new_items") {
        None | Some(Value::Bool(true)) => NewItems::Allowed,
        Some(Value::Bool(false)) => NewItems::Refused,
        Some(_) => return refuse(&at.child("allow_new_items"), "this is true or false"),
    };
    KeyedListRule::new(key.to_owned(), booleans, new_items)
        .or_else(|why| refuse(&at.child("monotonic_boolean_fields"), why))
}

fn booleans(members: &Map<String, Value>, at: &Pointer) -> Result<BTreeSet<String>, GuardConfigError> {
    let names = match members.get("monotonic_boolean_fields") {
        None => Some(BTreeSet::new()),
        Some(Value::Array(names)) => {
            names.iter().map(|it| it.as_str().filter(|it| !it.is_empty()).map(str::to_owned)).collect()
        }
        Some(_) => None,
    };
    names.map_or_else(|| refuse(at, "this is a list of field names"), Ok)
}
