use serde_json::{Value, json};

use super::{NamedChange, Patch, PatchError, PatchFormat};
use crate::json::size::StateLimits;

mod bounds;
mod named;
mod rfc6902;
mod rfc7396;

fn read(format: PatchFormat, request: Value) -> Result<Patch, PatchError> {
    Patch::read(format, request)
}

fn applied(format: PatchFormat, state: &Value, request: Value) -> Result<Value, PatchError> {
    read(format, request)?.apply(state, &StateLimits::default())
}

#[track_caller]
fn refused(format: PatchFormat, state: Value, request: Value, code: &str, pointer: &str) {
    let error = applied(format, &state, request).unwrap_err();
    assert_eq!((error.code(), error.pointer().as_str()), (code, pointer));
}

#[test]
fn merge_sets_top_level_keys_and_null_sets_null() {
    let state = json!({"a": {"b": 1, "c": 2}, "d": 1, "e": 2});
    let after = applied(PatchFormat::Merge, &state, json!({"a": {"b": 9}, "d": null, "f": {"g": null}})).unwrap();
    assert_eq!(after, json!({"a": {"b": 9}, "d": null, "e": 2, "f": {"g": null}}));
}

#[test]
fn a_merge_is_an_object_and_a_json_patch_an_array() {
    for request in [json!([]), json!(null), json!(1), json!("x")] {
        refused(PatchFormat::Merge, json!({}), request.clone(), "patch_not_an_object", "");
        refused(PatchFormat::MergePatch, json!({}), request, "patch_not_an_object", "");
    }
    for request in [json!({}), json!(null), json!(1), json!({"op": "add", "path": "/a", "value": 1})] {
        refused(PatchFormat::JsonPatch, json!({}), request, "patch_not_an_array", "");
    }
}

#[test]
fn a_state_that_is_no_object_is_refused() {
    for (format, request) in
        [(PatchFormat::Merge, json!({})), (PatchFormat::MergePatch, json!({})), (PatchFormat::JsonPatch, json!([]))]
    {
        refused(format, json!([1]), request, "patch_state_not_an_object", "");
    }
}

#[test]
fn formats_have_their_names_on_the_wire() {
    for (format, name) in [
        (PatchFormat::Merge, "merge"),
        (PatchFormat::MergePatch, "merge-patch"),
        (PatchFormat::JsonPatch, "json-patch"),
    ] {
        assert_eq!(serde_json::to_value(format).unwrap(), json!(name));
        assert_eq!(format.as_str(), name);
        let request = if format == PatchFormat::JsonPatch { json!([]) } else { json!({}) };
        assert_eq!(read(format, request).unwrap().format(), format);
    }
}

#[test]
fn refusals_do_not_repeat_what_was_sent_or_what_is_there() {
    let state = json!({"key_secret": "value_secret"});
    for request in [
        json!([{"op": "test", "path": "/key_secret", "value": "other_secret"}]),
        json!([{"op": "remove", "path": "/key_secret/x"}]),
        json!([{"op": "op_secret", "path": "/x"}]),
        json!([{"op": "remove", "path": "/x", "member_secret": 1}]),
        json!([{"op": "remove", "path": "secret"}]),
    ] {
        let error = applied(PatchFormat::JsonPatch, &state, request).unwrap_err();
        assert!(!error.to_string().contains("secret"), "{error}");
    }
}
