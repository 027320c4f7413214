//! References name a schema of the document, and never come back to where they started without going down.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::SchemaError;
use super::keywords::{Places, child};

/// Refuses references to nothing or to data, and circles that would never end.
pub(super) fn check(document: &Value, places: &Places<'_>) -> Result<(), SchemaError> {
    let anchors = anchors(places);
    let mut done = BTreeSet::new();
    debug_assert!(document.is_object(), "keywords were checked first");
    for pointer in places.keys() {
        follow(pointer, places, &anchors, &mut Vec::new(), &mut done)?;
    }
    Ok(())
}

fn anchors<'p>(places: &'p Places<'_>) -> BTreeMap<&'p str, &'p str> {
    let mut anchors = BTreeMap::new();
    for (pointer, schema) in places {
        for keyword in ["$anchor", "$dynamicAnchor"] {
            if let Some(name) = schema.get(keyword).and_then(Value::as_str) {
                anchors.insert(name, pointer.as_str());
            }
        }
    }
    anchors
}

/// Goes through all schemas that judge the same value as the one at `pointer`.
fn follow(
    pointer: &str,
    places: &Places<'_>,
    anchors: &BTreeMap<&str, &str>,
    path: &mut Vec<String>,
    done: &mut BTreeSet<String>,
) -> Result<(), SchemaError> {
    if done.contains(pointer) {
        return Ok(());
    }
    let refuse = |why: &str| Err(SchemaError::At { at: pointer.to_owned(), why: why.to_owned() });
    if path.iter().any(|it| it == pointer) {
        return refuse("this schema refers to itself for the same value and would never end: refer from a member");
    }
    let Some(Value::Object(schema)) = places.get(pointer) else { return Ok(()) };
    path.push(pointer.to_owned());
    for (keyword, value) in schema {
        for next in beside(pointer, keyword, value) {
            follow(&next, places, anchors, path, done)?;
        }
        if matches!(keyword.as_str(), "$ref" | "$dynamicRef") {
            let Some(target) = target(value.as_str().unwrap_or_default(), places, anchors) else {
                return refuse("the reference names no schema of this document");
            };
            follow(&target, places, anchors, path, done)?;
        }
    }
    path.pop();
    done.insert(pointer.to_owned());
    Ok(())
}

/// The subschemas under a keyword that judge the same value, not a part of it.
fn beside(pointer: &str, keyword: &str, value: &Value) -> Vec<String> {
    let here = child(pointer, keyword);
    match (keyword, value) {
        ("not" | "if" | "then" | "else", _) => vec![here],
        ("allOf" | "anyOf" | "oneOf", Value::Array(items)) => {
            (0..items.len()).map(|index| child(&here, &index.to_string())).collect()
        }
        ("dependentSchemas", Value::Object(named)) => named.keys().map(|name| child(&here, name)).collect(),
        _ => Vec::new(),
    }
}

fn target(reference: &str, places: &Places<'_>, anchors: &BTreeMap<&str, &str>) -> Option<String> {
    let fragment = reference.strip_prefix('#')?;
    if fragment.is_empty() || fragment.starts_with('/') {
        let pointer = percent_decoded(fragment)?;
        return places.contains_key(&pointer).then_some(pointer);
    }
    anchors.get(fragment).map(|pointer| (*pointer).to_owned())
}

fn percent_decoded(fragment: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(fragment.len());
    let mut rest = fragment.as_bytes();
    while let [first, tail @ ..] = rest {
        rest = tail;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let [high, low, tail @ ..] = rest else { return None };
        let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|it| u8::try_from(it).ok());
        bytes.push(digit(*high)? << 4 | digit(*low)?);
        rest = tail;
    }
    String::from_utf8(bytes).ok()
}
