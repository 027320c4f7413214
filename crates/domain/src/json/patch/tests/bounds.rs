use serde_json::json;

use super::super::OPERATIONS_MAX;
use super::*;
use crate::json::size::{LEAVES_MAX, STATE_DEPTH_CEILING, SizeExceeded};

fn reason(format: PatchFormat, state: &Value, request: Value) -> Option<SizeExceeded> {
    match applied(format, state, request) {
        Err(PatchError::TooBig { reason }) => Some(reason),
        _ => None,
    }
}

fn doubling(times: usize) -> Value {
    (0..times).map(|_| json!({"op": "copy", "from": "", "path": "/a"})).collect::<Vec<_>>().into()
}

#[test]
fn as_many_operations_as_allowed_and_not_one_more() {
    let request = |count: usize| Value::from(vec![json!({"op": "add", "path": "/a", "value": 1}); count]);
    assert!(applied(PatchFormat::JsonPatch, &json!({}), request(OPERATIONS_MAX)).is_ok());
    refused(PatchFormat::JsonPatch, json!({}), request(OPERATIONS_MAX + 1), "patch_too_many_operations", "");
}

#[test]
fn copies_cannot_make_a_state_deeper_than_allowed() {
    assert_eq!(reason(PatchFormat::JsonPatch, &json!({"a": 1}), doubling(200)), Some(SizeExceeded::Depth));
    // One leaf all the way, and about twice as deep with each copy.
    let mut ops = vec![json!({"op": "add", "path": "/a", "value": {"a": 1}})];
    let mut depth = 2;
    while depth <= 64 {
        ops.push(json!({"op": "copy", "from": "/a", "path": "/a".repeat(depth)}));
        depth = 2 * depth - 1;
    }
    let allowed = ops[..ops.len() - 1].to_vec();
    assert!(applied(PatchFormat::JsonPatch, &json!({}), allowed.into()).is_ok());
    assert_eq!(reason(PatchFormat::JsonPatch, &json!({}), ops.into()), Some(SizeExceeded::Depth));
}

#[test]
fn moves_cannot_make_a_state_deeper_than_allowed_in_between() {
    let chain = |depth: usize| (0..depth).fold(json!({}), |below, _| json!({"x": below}));
    let below = "/x".repeat(40);
    let ops = json!([{"op": "move", "from": "/a", "path": format!("/b{below}/a")}, {"op": "remove", "path": "/b"}]);
    assert_eq!(
        reason(PatchFormat::JsonPatch, &json!({"a": chain(30), "b": chain(40)}), ops),
        Some(SizeExceeded::Depth)
    );
}

#[test]
fn added_values_cannot_make_a_state_deeper_than_allowed_in_between() {
    let deep = (0..STATE_DEPTH_CEILING).fold(json!({}), |below, _| json!({"x": below}));
    for op in ["add", "replace"] {
        let ops = json!([{"op": op, "path": "/a", "value": deep}, {"op": "remove", "path": "/a"}]);
        assert_eq!(reason(PatchFormat::JsonPatch, &json!({"a": 1}), ops), Some(SizeExceeded::Depth));
    }
}

#[test]
fn copies_cannot_cost_more_than_one_state_even_if_what_they_made_is_removed() {
    let text = "x".repeat(400_000);
    let again = |count: usize| {
        let ops: Vec<Value> = (0..count)
            .flat_map(|_| [json!({"op": "copy", "from": "/a", "path": "/b"}), json!({"op": "remove", "path": "/b"})])
            .collect();
        Value::from(ops)
    };
    assert!(applied(PatchFormat::JsonPatch, &json!({"a": text}), again(2)).is_ok());
    assert_eq!(reason(PatchFormat::JsonPatch, &json!({"a": text}), again(3)), Some(SizeExceeded::Bytes));
    let items = json!({"a": vec![0; LEAVES_MAX / 2]});
    assert!(applied(PatchFormat::JsonPatch, &items, again(2)).is_ok());
    assert_eq!(reason(PatchFormat::JsonPatch, &items, again(3)), Some(SizeExceeded::Leaves));
}

#[test]
fn copies_to_an_array_end_before_they_cost_anything() {
    let ops: Vec<Value> = (0..OPERATIONS_MAX).map(|_| json!({"op": "copy", "from": "", "path": "/a/-"})).collect();
    assert!(reason(PatchFormat::JsonPatch, &json!({"a": []}), ops.into()).is_some());
}

#[test]
fn the_state_after_stays_within_its_limits_in_every_format() {
    let full = json!({"a": vec![0; LEAVES_MAX]});
    assert_eq!(reason(PatchFormat::Merge, &full, json!({"b": 1})), Some(SizeExceeded::Leaves));
    assert_eq!(reason(PatchFormat::MergePatch, &full, json!({"b": 1})), Some(SizeExceeded::Leaves));
    assert_eq!(
        reason(PatchFormat::JsonPatch, &full, json!([{"op": "add", "path": "/b", "value": 1}])),
        Some(SizeExceeded::Leaves)
    );
    assert!(applied(PatchFormat::Merge, &full, json!({"a": 1})).is_ok());
    let limits = StateLimits { bytes_max: 10, ..StateLimits::default() };
    let patch = read(PatchFormat::Merge, json!({"a": "xx"})).unwrap();
    assert!(patch.apply(&json!({}), &limits).is_ok());
    assert!(patch.apply(&json!({"b": 1}), &limits).is_err());
}

#[test]
fn long_keys_above_many_leaves_are_refused_before_anything_is_named() {
    let key = "k".repeat(100_000);
    let many = vec![0; 1_000];
    for (format, request) in [
        (PatchFormat::Merge, json!({&key: &many})),
        (PatchFormat::MergePatch, json!({&key: &many})),
        (PatchFormat::JsonPatch, json!([{"op": "add", "path": format!("/{key}"), "value": &many}])),
    ] {
        assert_eq!(read(format, request), Err(PatchError::TooBig { reason: SizeExceeded::Pointers }));
    }
}
