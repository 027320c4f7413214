//! States stay within their limits, to the byte for callers that can read the whole state.

use serde_json::{Value, json};

use super::{is_committed, node, one_node, patch, refused};
use crate::json::patch::PatchFormat::{self, JsonPatch, Merge};
use crate::policy::{Judgement, PolicyRequest, RejectCode::*, RequestKind, StateLimits, judge};

fn judged(before: &Value, format: PatchFormat, request: Value, limits: &StateLimits) -> Judgement {
    let patch = patch(format, request);
    let request = PolicyRequest { node: &node(), kind: RequestKind::Propose { patch: &patch } };
    judge(&one_node("$", "$", "", ""), before, &request, limits)
}

#[test]
fn bytes_and_leaves_are_counted_exactly() {
    let limits = StateLimits { bytes_max: 20, leaves_max: 3, ..StateLimits::default() };
    let fits = json!({"a": "123456789012"});
    assert_eq!(fits.to_string().len(), 20);
    assert!(is_committed(&judged(&json!({}), Merge, fits, &limits)));
    let long = json!({"a": "1234567890123"});
    assert_eq!(refused(&judged(&json!({}), Merge, long, &limits)), [(TooLarge, String::new())]);
    assert!(is_committed(&judged(&json!({"a": 1}), Merge, json!({"b": [1, 2]}), &limits)));
    assert_eq!(
        refused(&judged(&json!({"a": 1}), Merge, json!({"b": [1, 2, 3]}), &limits)),
        [(TooLarge, String::new())]
    );
}

#[test]
fn levels_are_bounded_however_they_come_about() {
    let limits = StateLimits { depth_max: 4, ..StateLimits::default() };
    let deep = json!({"a": {"b": {"c": {"d": 1}}}});
    assert!(is_committed(&judged(&json!({}), Merge, deep.clone(), &limits)));
    assert_eq!(refused(&judged(&json!({}), Merge, json!({"x": deep}), &limits)), [(TooDeep, String::new())]);
    let copied = json!([{"op": "copy", "from": "/a", "path": "/a/b/c"}]);
    assert_eq!(refused(&judged(&deep, JsonPatch, copied, &limits)), [(TooDeep, String::new())]);
}

#[test]
fn a_state_stays_an_object() {
    let limits = StateLimits::default();
    for step in [json!({"op": "add", "path": "", "value": []}), json!({"op": "replace", "path": "", "value": 1})] {
        assert_eq!(refused(&judged(&json!({}), JsonPatch, json!([step]), &limits)), [(Schema, String::new())]);
    }
}

#[test]
fn a_patch_that_does_not_apply_is_told_where() {
    let request = json!([{"op": "remove", "path": "/a/b"}]);
    let judged = judged(&json!({"a": {}}), JsonPatch, request, &StateLimits::default());
    assert_eq!(refused(&judged), [(PatchFailed, "/a/b".into())]);
}

#[test]
fn a_check_tells_a_bounded_number_of_violations() {
    let request: serde_json::Map<_, _> = (0..1_500).map(|i| (format!("k{i:04}"), json!(1))).collect();
    let patch = patch(Merge, Value::Object(request));
    let request = PolicyRequest { node: &node(), kind: RequestKind::Propose { patch: &patch } };
    let judged = judge(&one_node("", "", "", ""), &json!({}), &request, &StateLimits::default());
    assert_eq!(refused(&judged).len(), 1_000);
    assert_eq!(refused(&judged)[0], (WriteNotAllowed, "/k0000".into()));
}

#[test]
fn the_largest_request_against_the_longest_lists_is_judged_in_linear_time() {
    let list: Vec<_> = (0..256).map(|i| format!("none{i}.*.x")).collect();
    let policy = one_node("", "$", "", &list.join(" "));
    let state = |from: u32| {
        let members = (from..from + 9_000).map(|i| (format!("k{i}"), json!({"v": i})));
        Value::Object(members.collect())
    };
    for format in [Merge, PatchFormat::MergePatch] {
        let patch = patch(format, state(500));
        let request = PolicyRequest { node: &node(), kind: RequestKind::Propose { patch: &patch } };
        let limits = StateLimits { leaves_max: 20_000, ..StateLimits::default() };
        assert!(is_committed(&judge(&policy, &state(0), &request, &limits)));
    }
}
