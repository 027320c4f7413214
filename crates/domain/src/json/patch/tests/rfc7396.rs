use serde_json::json;

use super::*;

#[test]
fn the_test_cases_of_rfc_7396_hold_one_level_down() {
    for (original, patch, result) in [
        (json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"})),
        (json!({"a": "b"}), json!({"b": "c"}), json!({"a": "b", "b": "c"})),
        (json!({"a": "b"}), json!({"a": null}), json!({})),
        (json!({"a": "b", "b": "c"}), json!({"a": null}), json!({"b": "c"})),
        (json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"})),
        (json!({"a": "c"}), json!({"a": ["b"]}), json!({"a": ["b"]})),
        (json!({"a": {"b": "c"}}), json!({"a": {"b": "d", "c": null}}), json!({"a": {"b": "d"}})),
        (json!({"a": [{"b": "c"}]}), json!({"a": [1]}), json!({"a": [1]})),
        (json!(["a", "b"]), json!(["c", "d"]), json!(["c", "d"])),
        (json!({"a": "b"}), json!(["c"]), json!(["c"])),
        (json!({"a": "foo"}), json!("bar"), json!("bar")),
        (json!({"e": null}), json!({"a": 1}), json!({"e": null, "a": 1})),
        (json!([1, 2]), json!({"a": "b", "c": null}), json!({"a": "b"})),
        (json!({}), json!({"a": {"bb": {"ccc": null}}}), json!({"a": {"bb": {}}})),
    ] {
        let state = json!({"at": original, "beside": 1});
        let after = applied(PatchFormat::MergePatch, &state, json!({"at": patch})).unwrap();
        assert_eq!(after, json!({"at": result, "beside": 1}), "{patch}");
        if state["at"].is_object() && patch.is_object() {
            assert_eq!(applied(PatchFormat::MergePatch, &state["at"], patch).unwrap(), result);
        }
    }
}

#[test]
fn nulls_within_arrays_stay() {
    let after = applied(PatchFormat::MergePatch, &json!({}), json!({"a": [null, {"b": null}]})).unwrap();
    assert_eq!(after, json!({"a": [null, {"b": null}]}));
}

#[test]
fn an_empty_object_makes_an_object_of_what_was_none() {
    assert_eq!(
        applied(PatchFormat::MergePatch, &json!({"a": {"b": 1}}), json!({"a": {}})).unwrap(),
        json!({"a": {"b": 1}})
    );
    assert_eq!(applied(PatchFormat::MergePatch, &json!({"a": 1}), json!({"a": {}})).unwrap(), json!({"a": {}}));
}
