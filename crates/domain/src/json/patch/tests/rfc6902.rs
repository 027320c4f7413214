use serde_json::json;

use super::*;

#[track_caller]
fn done(state: Value, request: Value, result: Value) {
    assert_eq!(applied(PatchFormat::JsonPatch, &state, request).unwrap(), result);
}

#[track_caller]
fn fails(state: Value, request: Value, code: &str, pointer: &str) {
    refused(PatchFormat::JsonPatch, state, request, code, pointer);
}

#[test]
fn appendix_a_1_to_8() {
    let bar = json!({"foo": "bar"});
    done(bar.clone(), json!([{"op": "add", "path": "/baz", "value": "qux"}]), json!({"baz": "qux", "foo": "bar"}));
    let items = json!({"foo": ["bar", "baz"]});
    done(items, json!([{"op": "add", "path": "/foo/1", "value": "qux"}]), json!({"foo": ["bar", "qux", "baz"]}));
    done(json!({"baz": "qux", "foo": "bar"}), json!([{"op": "remove", "path": "/baz"}]), bar);
    done(
        json!({"foo": ["bar", "qux", "baz"]}),
        json!([{"op": "remove", "path": "/foo/1"}]),
        json!({"foo": ["bar", "baz"]}),
    );
    let replace = json!([{"op": "replace", "path": "/baz", "value": "boo"}]);
    done(json!({"baz": "qux", "foo": "bar"}), replace, json!({"baz": "boo", "foo": "bar"}));
    done(
        json!({"foo": {"bar": "baz", "waldo": "fred"}, "qux": {"corge": "grault"}}),
        json!([{"op": "move", "from": "/foo/waldo", "path": "/qux/thud"}]),
        json!({"foo": {"bar": "baz"}, "qux": {"corge": "grault", "thud": "fred"}}),
    );
    done(
        json!({"foo": ["all", "grass", "cows", "eat"]}),
        json!([{"op": "move", "from": "/foo/1", "path": "/foo/3"}]),
        json!({"foo": ["all", "cows", "eat", "grass"]}),
    );
    let tested = json!({"baz": "qux", "foo": ["a", 2, "c"]});
    let tests = json!([{"op": "test", "path": "/baz", "value": "qux"}, {"op": "test", "path": "/foo/1", "value": 2}]);
    done(tested.clone(), tests, tested);
}

#[test]
fn appendix_a_9_to_16() {
    fails(json!({"baz": "qux"}), json!([{"op": "test", "path": "/baz", "value": "bar"}]), "patch_test_failed", "/baz");
    let child = json!([{"op": "add", "path": "/child", "value": {"grandchild": {}}}]);
    done(json!({"foo": "bar"}), child, json!({"foo": "bar", "child": {"grandchild": {}}}));
    let below_nothing = json!([{"op": "add", "path": "/baz/bat", "value": "qux"}]);
    fails(json!({"foo": "bar"}), below_nothing, "patch_path_not_found", "/baz/bat");
    let escapes = json!({"/": 9, "~1": 10});
    done(escapes.clone(), json!([{"op": "test", "path": "/~01", "value": 10}]), escapes.clone());
    fails(escapes, json!([{"op": "test", "path": "/~01", "value": "10"}]), "patch_test_failed", "/~01");
    let item = json!([{"op": "add", "path": "/foo/-", "value": ["abc", "def"]}]);
    done(json!({"foo": ["bar"]}), item, json!({"foo": ["bar", ["abc", "def"]]}));
}

/// A.11 passes over what it does not know. Here a slip such as `form` for `from` is to be seen, not signed.
#[test]
fn a_member_that_the_operation_does_not_have_is_refused() {
    let unknown = json!([{"op": "add", "path": "/baz", "value": "qux", "xyz": 123}]);
    fails(json!({"foo": "bar"}), unknown, "patch_malformed", "/0/xyz");
    fails(json!({"a": 1}), json!([{"op": "remove", "path": "/a", "value": 1}]), "patch_malformed", "/0/value");
    fails(
        json!({"a": 1}),
        json!([{"op": "add", "path": "/a", "value": 1, "from": "/b"}]),
        "patch_malformed",
        "/0/from",
    );
}

#[test]
fn an_operation_without_what_it_needs_is_refused() {
    for (request, pointer) in [
        (json!(["add"]), "/0"),
        (json!([null]), "/0"),
        (json!([{"path": "/a"}]), "/0/op"),
        (json!([{"op": "ADD", "path": "/a", "value": 1}]), "/0/op"),
        (json!([{"op": 1, "path": "/a"}]), "/0/op"),
        (json!([{"op": "add", "value": 1}]), "/0/path"),
        (json!([{"op": "add", "path": "/a"}]), "/0/value"),
        (json!([{"op": "replace", "path": "/a"}]), "/0/value"),
        (json!([{"op": "test", "path": "/a"}]), "/0/value"),
        (json!([{"op": "move", "path": "/a"}]), "/0/from"),
        (json!([{"op": "copy", "path": "/a"}]), "/0/from"),
        (json!([{"op": "remove", "path": "/a"}, {"op": "copy", "from": "a", "path": "/a"}]), "/1/from"),
        (json!([{"op": "remove", "path": 0}]), "/0/path"),
        (json!([{"op": "remove", "path": "/~2"}]), "/0/path"),
        (json!([{"op": "remove", "path": "#/a"}]), "/0/path"),
    ] {
        fails(json!({"a": 1}), request, "patch_malformed", pointer);
    }
}

#[test]
fn paths_to_nothing_are_refused() {
    let state = json!({"a": 1, "b": [1], "c": {"d": 1}});
    for (op, code) in [
        (json!({"op": "remove", "path": "/x"}), "patch_path_not_found"),
        (json!({"op": "remove", "path": "/a/x"}), "patch_path_not_found"),
        (json!({"op": "replace", "path": "/x", "value": 1}), "patch_path_not_found"),
        (json!({"op": "replace", "path": "/b/-", "value": 1}), "patch_path_not_found"),
        (json!({"op": "replace", "path": "/b/1", "value": 1}), "patch_path_not_found"),
        (json!({"op": "test", "path": "/x", "value": null}), "patch_path_not_found"),
        (json!({"op": "add", "path": "/x/y", "value": 1}), "patch_path_not_found"),
        (json!({"op": "add", "path": "/a/y", "value": 1}), "patch_path_not_found"),
        (json!({"op": "move", "from": "/x", "path": "/y"}), "patch_path_not_found"),
        (json!({"op": "move", "from": "/x", "path": "/x"}), "patch_path_not_found"),
        (json!({"op": "copy", "from": "/x", "path": "/y"}), "patch_path_not_found"),
        (json!({"op": "copy", "from": "/a", "path": "/x/y"}), "patch_path_not_found"),
        (json!({"op": "add", "path": "/b/2", "value": 1}), "patch_bad_index"),
        (json!({"op": "add", "path": "/b/01", "value": 1}), "patch_bad_index"),
        (json!({"op": "add", "path": "/b/+1", "value": 1}), "patch_bad_index"),
        (json!({"op": "add", "path": "/b/-1", "value": 1}), "patch_bad_index"),
        (json!({"op": "add", "path": "/b/x", "value": 1}), "patch_bad_index"),
        (json!({"op": "add", "path": "/b/", "value": 1}), "patch_bad_index"),
        (json!({"op": "add", "path": "/b/99999999999999999999999", "value": 1}), "patch_bad_index"),
        (json!({"op": "remove", "path": "/b/1"}), "patch_path_not_found"),
        (json!({"op": "remove", "path": "/b/-"}), "patch_path_not_found"),
        (json!({"op": "remove", "path": "/b/00"}), "patch_path_not_found"),
    ] {
        let path = op["path"].as_str().unwrap().to_owned();
        fails(state.clone(), json!([op]), code, &path);
    }
}

#[test]
fn a_value_cannot_be_moved_below_itself_but_copied_it_can() {
    let state = json!({"a": {"b": 1}, "ab": {}});
    fails(state.clone(), json!([{"op": "move", "from": "/a", "path": "/a/c"}]), "patch_moved_into_itself", "/a/c");
    fails(state.clone(), json!([{"op": "move", "from": "", "path": "/c"}]), "patch_moved_into_itself", "/c");
    done(state.clone(), json!([{"op": "move", "from": "/a", "path": "/ab/c"}]), json!({"ab": {"c": {"b": 1}}}));
    done(state.clone(), json!([{"op": "move", "from": "/a", "path": "/a"}]), state.clone());
    done(state.clone(), json!([{"op": "move", "from": "", "path": ""}]), state.clone());
    done(
        state.clone(),
        json!([{"op": "copy", "from": "/a", "path": "/a/c"}]),
        json!({"a": {"b": 1, "c": {"b": 1}}, "ab": {}}),
    );
    done(state, json!([{"op": "move", "from": "/a", "path": ""}]), json!({"b": 1}));
}

#[test]
fn a_state_stays_an_object_at_every_step() {
    for op in [
        json!({"op": "remove", "path": ""}),
        json!({"op": "replace", "path": "", "value": []}),
        json!({"op": "add", "path": "", "value": 1}),
        json!({"op": "copy", "from": "/a", "path": ""}),
        json!({"op": "move", "from": "/a", "path": ""}),
    ] {
        let back = json!({"op": "add", "path": "", "value": {}});
        fails(json!({"a": 1}), json!([op, back]), "patch_state_not_an_object", "");
    }
    done(json!({"a": 1}), json!([{"op": "replace", "path": "", "value": {"b": 2}}]), json!({"b": 2}));
    done(json!({"a": 1}), json!([{"op": "add", "path": "", "value": {}}]), json!({}));
    done(json!({"a": 1}), json!([{"op": "copy", "from": "", "path": "/b"}]), json!({"a": 1, "b": {"a": 1}}));
}

#[test]
fn later_operations_see_earlier_ones_and_all_fail_together() {
    let ops = json!([
        {"op": "add", "path": "/a", "value": []},
        {"op": "add", "path": "/a/-", "value": 1},
        {"op": "test", "path": "/a", "value": [1]},
        {"op": "copy", "from": "/a/0", "path": "/-"},
        {"op": "remove", "path": "/a/0"},
    ]);
    done(json!({}), ops, json!({"a": [], "-": 1}));
    let state = json!({"a": 1});
    let error = applied(
        PatchFormat::JsonPatch,
        &state,
        json!([{"op": "add", "path": "/b", "value": 1}, {"op": "test", "path": "/a", "value": 2}]),
    );
    assert!(matches!(error, Err(PatchError::TestFailed { operation: 1, .. })));
    assert_eq!(state, json!({"a": 1}));
}
