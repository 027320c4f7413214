//! Reads `[transitions]`: how values may change.

use std::collections::BTreeSet;

use serde_json::Value;
use toml::de::DeValue;

use super::super::bounds;
use super::super::error::{PolicyCode, PolicyError, PolicyTextSpan};
use super::super::toml_reader::{TomlItem, TomlSection};
use crate::json::parse::{ParseLimits, parse};
use crate::json::pattern::Pattern;
use crate::json::pointer::Pointer;
use crate::transition_rules::{KeyedListRule, NewItems, TransitionRule, TransitionRuleKind, ValueOrder, in_order};

pub(super) const KEYS: &[&str] = &["immutable", "monotonic_integer", "ordered_enum", "keyed_arrays"];
pub(super) const KEYED_KEYS: &[&str] = &["key", "monotonic_boolean", "allow_new_items"];

pub(super) fn read_transitions(root: &TomlSection<'_>) -> Result<Vec<TransitionRule>, PolicyError> {
    let Some(item) = root.get("transitions") else { return Ok(Vec::new()) };
    let section = item.section()?;
    section.expect_keys(KEYS)?;
    let mut rules = read_list(&section, "immutable", &TransitionRuleKind::Immutable)?;
    rules.extend(read_list(&section, "monotonic_integer", &TransitionRuleKind::Monotonic)?);
    rules.extend(read_table(&section, "ordered_enum", |it| Ok(TransitionRuleKind::Ordered(read_order(it)?)))?);
    rules.extend(read_table(&section, "keyed_arrays", |it| Ok(TransitionRuleKind::Keyed(read_keyed(it)?)))?);
    Ok(in_order(rules))
}

fn read_list(
    section: &TomlSection<'_>,
    key: &str,
    kind: &TransitionRuleKind,
) -> Result<Vec<TransitionRule>, PolicyError> {
    let Some(list) = section.get(key) else { return Ok(Vec::new()) };
    let mut rules = Vec::new();
    for item in list.items(bounds::PATTERNS_MAX)? {
        let bad = |why: String| item.error(PolicyCode::BadValue, format!("`{}`: {why}", item.name()));
        push(&mut rules, item.text()?, kind.clone(), bad)?;
    }
    Ok(rules)
}

fn read_table(
    section: &TomlSection<'_>,
    key: &str,
    read: impl Fn(&TomlItem<'_>) -> Result<TransitionRuleKind, PolicyError>,
) -> Result<Vec<TransitionRule>, PolicyError> {
    let Some(table) = section.get(key) else { return Ok(Vec::new()) };
    let mut rules = Vec::new();
    for (path, place, item) in in_text_order(table.section()?.members(bounds::PATTERNS_MAX)?) {
        let bad = |why: String| place.error(PolicyCode::BadValue, format!("`{}`: {why}", item.name()));
        push(&mut rules, path, read(&item)?, bad)?;
    }
    Ok(rules)
}

/// Sorts by position in the text, so that the first of two mistakes is reported.
fn in_text_order<'t>(
    mut members: Vec<(&'t str, PolicyTextSpan<'t>, TomlItem<'t>)>,
) -> Vec<(&'t str, PolicyTextSpan<'t>, TomlItem<'t>)> {
    // The TOML parser sorts a table by its keys.
    members.sort_by_key(|(_, place, _)| place.offset());
    members
}

/// Adds a rule about a place that no other of its kind is about, however that is written.
fn push(
    rules: &mut Vec<TransitionRule>,
    path: &str,
    kind: TransitionRuleKind,
    bad: impl Fn(String) -> PolicyError,
) -> Result<(), PolicyError> {
    let at = read_place(path).map_err(&bad)?;
    // Paths are compared after parsing, because `$.a` and `a` are the same path.
    if rules.iter().any(|it| it.at == at) {
        return Err(bad("another rule of this kind is about the same path: remove one of them".to_owned()));
    }
    rules.push(TransitionRule { at, kind });
    Ok(())
}

pub(in crate::policy) fn read_place(path: &str) -> Result<Pointer, String> {
    if path.chars().any(char::is_control) {
        return Err("a path must not contain control characters".to_owned());
    }
    let pattern = Pattern::try_from(path).map_err(|error| error.to_string())?;
    let at = pattern.pointer().ok_or("a rule is about one path: name it without *")?;
    if at.is_root() {
        return Err("a rule is about a path in the state: name it, such as $.status".to_owned());
    }
    Ok(at)
}

fn read_order(item: &TomlItem<'_>) -> Result<ValueOrder, PolicyError> {
    let values: Result<_, _> = item.items(bounds::ORDER_MAX)?.iter().map(read_scalar).collect();
    ValueOrder::new(values?).map_err(|why| item.error(PolicyCode::BadValue, format!("`{}`: {why}", item.name())))
}

fn read_scalar(item: &TomlItem<'_>) -> Result<Value, PolicyError> {
    match item.value() {
        DeValue::Boolean(value) => Ok(Value::Bool(*value)),
        DeValue::Integer(_) | DeValue::Float(_) => {
            let bad = || item.error(PolicyCode::BadValue, format!("`{}` is no number of JSON", item.name()));
            // The gateway's JSON parser reads the number, so that it equals the same number in a state.
            parse(item.number()?.as_bytes(), &ParseLimits::default()).map_err(|_| bad())
        }
        _ => item.text().map(|it| Value::String(it.to_owned())),
    }
}

fn read_keyed(item: &TomlItem<'_>) -> Result<KeyedListRule, PolicyError> {
    let section = item.section()?;
    section.expect_keys(KEYED_KEYS)?;
    let key = section.require("key", "the field that identifies an item, such as key = \"id\"")?;
    let name = read_field(&key)?;
    let mut booleans = BTreeSet::new();
    if let Some(list) = section.get("monotonic_boolean") {
        for item in list.items(bounds::PATTERNS_MAX)? {
            if !booleans.insert(read_field(&item)?) {
                let message = format!("`{}`: the list already has this field: remove it", item.name());
                return Err(item.error(PolicyCode::BadValue, message));
            }
        }
    }
    let new_items = match section.get("allow_new_items").map(|it| it.flag()).transpose()? {
        None | Some(true) => NewItems::Allowed,
        Some(false) => NewItems::Refused,
    };
    KeyedListRule::new(name, booleans, new_items).map_err(|why| {
        key.error(PolicyCode::BadValue, format!("`{}`: {why}: take it out of `monotonic_boolean`", key.name()))
    })
}

fn read_field(item: &TomlItem<'_>) -> Result<String, PolicyError> {
    let text = item.text()?;
    if text.is_empty() {
        return Err(item.error(PolicyCode::BadValue, format!("`{}` is empty: name a field", item.name())));
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests;
