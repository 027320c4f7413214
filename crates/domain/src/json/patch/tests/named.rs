use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::json::diff::diff;
use crate::json::pointer::Pointer;
use crate::json::samples::alike_state;

fn named(format: PatchFormat, request: Value) -> Vec<(String, NamedChange)> {
    let names = read(format, request).unwrap().names();
    names.into_iter().map(|it| (it.pointer.to_string(), it.claimed)).collect()
}

fn set(pointer: &str, value: Value) -> (String, NamedChange) {
    (pointer.to_owned(), NamedChange::Set(value))
}

fn delete(pointer: &str) -> (String, NamedChange) {
    (pointer.to_owned(), NamedChange::Delete)
}

fn unknown(pointer: &str) -> (String, NamedChange) {
    (pointer.to_owned(), NamedChange::Unknown)
}

fn probes(request: Value) -> Vec<String> {
    read(PatchFormat::JsonPatch, request).unwrap().probes().iter().map(Pointer::to_string).collect()
}

#[test]
fn a_merge_names_the_leaves_of_its_values() {
    let request = json!({"a": {"b": 1, "c": [true, {}]}, "d/e": null, "f": []});
    let expected = [
        set("/a/b", json!(1)),
        set("/a/c/0", json!(true)),
        set("/a/c/1", json!({})),
        set("/d~1e", json!(null)),
        set("/f", json!([])),
    ];
    assert_eq!(named(PatchFormat::Merge, request), expected);
}

#[test]
fn a_merge_patch_names_what_its_nulls_delete() {
    let request = json!({"a": {"b": null, "c": 1, "d": {}}, "e": null, "f": [null, {"g": null}]});
    let expected = [
        delete("/a/b"),
        set("/a/c", json!(1)),
        set("/a/d", json!({})),
        delete("/e"),
        set("/f/0", json!(null)),
        set("/f/1/g", json!(null)),
    ];
    assert_eq!(named(PatchFormat::MergePatch, request), expected);
}

#[test]
fn a_json_patch_names_what_each_operation_does() {
    let request = json!([
        {"op": "add", "path": "/a/0", "value": {"x": 1, "y": []}},
        {"op": "add", "path": "/a/-", "value": 2},
        {"op": "replace", "path": "/b", "value": null},
        {"op": "remove", "path": "/c"},
        {"op": "move", "from": "/d", "path": "/e"},
        {"op": "copy", "from": "/f", "path": "/g"},
        {"op": "test", "path": "/h", "value": 1},
    ]);
    let expected = [
        set("/a/0/x", json!(1)),
        set("/a/0/y", json!([])),
        set("/a/-", json!(2)),
        set("/b", json!(null)),
        delete("/c"),
        delete("/d"),
        unknown("/e"),
        unknown("/g"),
    ];
    assert_eq!(named(PatchFormat::JsonPatch, request), expected);
}

#[test]
fn whatever_decides_whether_it_applies_is_a_probe() {
    for (op, expected) in [
        (json!({"op": "add", "path": "/a", "value": 1}), vec![]),
        (json!({"op": "add", "path": "", "value": {}}), vec![]),
        (json!({"op": "add", "path": "/a/b", "value": 1}), vec!["/a"]),
        (json!({"op": "add", "path": "/a/-", "value": 1}), vec!["/a"]),
        (json!({"op": "remove", "path": "/a"}), vec!["/a"]),
        (json!({"op": "replace", "path": "/a/b", "value": 1}), vec!["/a/b"]),
        (json!({"op": "test", "path": "/a", "value": 1}), vec!["/a"]),
        (json!({"op": "move", "from": "/a", "path": "/b/c"}), vec!["/a", "/b"]),
        (json!({"op": "copy", "from": "/a", "path": "/b"}), vec!["/a"]),
    ] {
        assert_eq!(probes(json!([op])), expected);
    }
    assert!(read(PatchFormat::Merge, json!({"a": {"b": 1}})).unwrap().probes().is_empty());
    assert!(read(PatchFormat::MergePatch, json!({"a": {"b": null}})).unwrap().probes().is_empty());
}

#[test]
fn an_array_that_lost_an_item_is_a_probe_once_it_is_looked_into_again() {
    let remove = json!({"op": "remove", "path": "/a/0"});
    let test = json!({"op": "test", "path": "/a/0", "value": 1});
    assert_eq!(probes(json!([remove, test])), ["/a/0", "/a", "/a/0"]);
    assert_eq!(probes(json!([test, remove])), ["/a/0", "/a/0"]);
    assert_eq!(probes(json!([{"op": "move", "from": "/a/0", "path": "/a/1/x"}])), ["/a/0", "/a", "/a/1"]);
    assert_eq!(probes(json!([{"op": "remove", "path": "/a/b"}, {"op": "remove", "path": "/a/c"}])), ["/a/b", "/a/c"]);
}

fn any_operation() -> impl Strategy<Value = Value> {
    let pointer = || "(/[01a~-]){0,3}".prop_map(|it| it.replace('~', "~0"));
    let value = alike_state().prop_flat_map(|it| prop_oneof![Just(it.clone()), Just(json!([it, 1])), Just(json!(1))]);
    (prop::sample::select(vec!["add", "remove", "replace", "move", "copy", "test"]), pointer(), pointer(), value)
        .prop_map(|(op, path, from, value)| match op {
            "add" | "replace" | "test" => json!({"op": op, "path": path, "value": value}),
            "move" | "copy" => json!({"op": op, "path": path, "from": from}),
            _ => json!({"op": op, "path": path}),
        })
}

fn few_items() -> impl Strategy<Value = Value> {
    let item = prop_oneof![Just(json!(0)), Just(json!(1)), Just(json!([0])), Just(json!([1, 0]))];
    let items = || prop::collection::vec(item.clone(), 0..4);
    (items(), items()).prop_map(|(a, b)| json!({"a": a, "b": b}))
}

fn array_operation() -> impl Strategy<Value = Value> {
    let path = || prop::sample::select(vec!["/a", "/b", "/a/0", "/a/1", "/a/-", "/b/0", "/a/0/0", "/a/0/1", "/c"]);
    prop_oneof![
        path().prop_map(|path| json!({"op": "remove", "path": path})),
        (path(), 0..2).prop_map(|(path, value)| json!({"op": "test", "path": path, "value": value})),
        (path(), 0..2).prop_map(|(path, value)| json!({"op": "add", "path": path, "value": value})),
        (path(), path()).prop_map(|(from, path)| json!({"op": "move", "from": from, "path": path})),
        (path(), path()).prop_map(|(from, path)| json!({"op": "copy", "from": from, "path": path})),
    ]
}

fn outcome_is_of_probes(patch: &Patch, one: &Value, other: &Value) -> bool {
    let outcome = |state| patch.apply(state, &StateLimits::default()).map(drop);
    let same = patch.probes().iter().all(|it| it.resolve(one) == it.resolve(other));
    !same || outcome(one) == outcome(other)
}

proptest! {
    #[test]
    fn merge_forms_apply_to_every_state(state in alike_state(), request in alike_state()) {
        prop_assert!(applied(PatchFormat::Merge, &state, request.clone()).is_ok());
        prop_assert!(applied(PatchFormat::MergePatch, &state, request).is_ok());
    }

    /// Every other difference is an item of a shifted array, or the `{}` that a removal left.
    #[test]
    fn whatever_appears_was_named(state in alike_state(), op in any_operation()) {
        let patch = read(PatchFormat::JsonPatch, json!([op])).unwrap();
        if let Ok(after) = patch.apply(&state, &StateLimits::default()) {
            let reach = |at: Pointer| {
                let above = std::iter::successors(at.parent(), Pointer::parent);
                above.filter(|it| it.resolve(&state).is_some_and(Value::is_array)).last().unwrap_or(at)
            };
            for change in diff(&state, &after).iter().filter(|it| it.after.is_some()) {
                prop_assert!(patch.names().into_iter().any(|it| reach(it.pointer).touches(&change.pointer)));
            }
        }
    }

    /// A refusal says nothing about places that are not probes: with those the same, so is the outcome.
    #[test]
    fn only_probes_decide_whether_a_patch_applies(
        one in alike_state(),
        other in alike_state(),
        ops in prop::collection::vec(any_operation(), 1..4),
    ) {
        let patch = read(PatchFormat::JsonPatch, ops.into()).unwrap();
        prop_assert!(outcome_is_of_probes(&patch, &one, &other));
    }

    /// The same where it is hardest: items that move up when one before them goes.
    #[test]
    fn only_probes_decide_whether_a_patch_of_arrays_applies(
        one in few_items(),
        other in few_items(),
        ops in prop::collection::vec(array_operation(), 1..5),
    ) {
        let patch = read(PatchFormat::JsonPatch, ops.into()).unwrap();
        prop_assert!(outcome_is_of_probes(&patch, &one, &other));
    }
}
