//! Every touch of a protected path is found, in every patch format.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::properties::{cases, named, pointer, state, value, words};
use super::{one_node, propose};
use crate::json::patch::{Patch, PatchFormat};
use crate::policy::{Judgement, StateLimits};

/// The way from one state to the other in each form that can say it.
fn in_every_form(before: &Value, after: &Value) -> Vec<(PatchFormat, Value)> {
    let (Value::Object(old), Value::Object(new)) = (before, after) else { return Vec::new() };
    let differing: Map<_, _> =
        new.iter().filter(|(key, it)| old.get(*key) != Some(it)).map(|(key, value)| owned(key, value)).collect();
    let gone: Vec<_> = old.keys().filter(|key| !new.contains_key(*key)).collect();
    let mut by_key: Vec<_> = gone.iter().map(|key| json!({"op": "remove", "path": format!("/{key}")})).collect();
    by_key.extend(differing.iter().map(|(key, it)| json!({"op": "add", "path": format!("/{key}"), "value": it})));
    let moved = |(key, it): (&String, &Value)| {
        let parked = json!({"op": "add", "path": "/parked", "value": it});
        [parked, json!({"op": "move", "from": "/parked", "path": format!("/{key}")})]
    };
    let removed = by_key.iter().take(gone.len()).cloned();
    let by_moving: Vec<_> = removed.chain(differing.iter().flat_map(moved)).collect();
    let by_copy =
        json!([{"op": "add", "path": "/parked", "value": after}, {"op": "copy", "from": "/parked", "path": ""}]);
    let forms = [
        (PatchFormat::Merge, Value::Object(differing.clone())),
        (PatchFormat::MergePatch, merge_patch(old, new)),
        (PatchFormat::JsonPatch, Value::Array(by_key)),
        (PatchFormat::JsonPatch, Value::Array(by_moving)),
        (PatchFormat::JsonPatch, by_copy),
        (PatchFormat::JsonPatch, json!([{"op": "replace", "path": "", "value": after}])),
    ];
    let leads = |(format, request): &(PatchFormat, Value)| {
        let patch = Patch::read(*format, request.clone()).unwrap();
        patch.apply(before, &StateLimits::default()).as_ref() == Ok(after)
    };
    forms.into_iter().filter(leads).collect()
}

fn owned(key: &str, value: &Value) -> (String, Value) {
    (key.to_owned(), value.clone())
}

/// As RFC 7396 says it, where it can.
fn merge_patch(old: &Map<String, Value>, new: &Map<String, Value>) -> Value {
    let gone = old.keys().filter(|key| !new.contains_key(*key)).map(|key| (key.clone(), Value::Null));
    let differing =
        new.iter().filter(|(key, it)| old.get(*key) != Some(it)).map(|(key, it)| match (old.get(key), it) {
            (Some(Value::Object(old)), Value::Object(new)) => (key.clone(), merge_patch(old, new)),
            (_, it) => (key.clone(), it.clone()),
        });
    Value::Object(gone.chain(differing).collect())
}

/// The state with something put or taken away at a pointer, if that can be done.
fn edited(state: &Value, path: &str, value: Option<Value>) -> Option<Value> {
    let step = match value {
        Some(value) => json!([{"op": "add", "path": path, "value": value}]),
        None => json!([{"op": "remove", "path": path}]),
    };
    Patch::read(PatchFormat::JsonPatch, step).unwrap().apply(state, &StateLimits::default()).ok()
}

proptest! {
    #![proptest_config(cases(2048))]

    #[test]
    fn what_touches_a_protected_value_is_held_in_every_form(
        words in words(), before in state(), path in pointer(), value in proptest::option::weighted(0.7, value()),
    ) {
        let Some(after) = edited(&before, &path, value) else { return Ok(()) };
        let policy = one_node("$", "$", "", &words.protected.join(" "));
        let touched: Vec<_> = words.protected.iter().filter(|it| named(it, &before) != named(it, &after)).collect();
        let forms = in_every_form(&before, &after);
        prop_assert!(forms.len() >= 3, "{:?}", forms);
        for (format, request) in forms {
            let judgement = propose(&policy, &before, format, request.clone());
            let told: Vec<_> = match &judgement {
                Judgement::Hold { reasons, .. } => reasons.iter().filter_map(|it| it.pattern.as_ref()).collect(),
                Judgement::Commit { .. } => Vec::new(),
                Judgement::Reject { violations } => return Err(TestCaseError::fail(format!("{violations:?}"))),
            };
            for pattern in &touched {
                prop_assert!(told.iter().any(|it| it.as_str() == **pattern), "{} by {}", pattern, request);
            }
        }
    }
}
