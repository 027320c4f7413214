use proptest::prelude::*;
use serde_json::json;

use super::{Delta, DeltaError};
use crate::json::samples::{alike_value, any_value};
use crate::json::size::STATE_DEPTH_CEILING;

#[test]
fn only_what_differs_is_kept() {
    let before = json!({"a": {"b": 1, "c": [1, 2, 3], "d": "x"}, "e": 0});
    let after = json!({"a": {"b": 1, "c": [1, 5, 3], "f": null}, "e": 0});
    let delta = Delta::between(&before, &after);
    assert_eq!(delta.encode(), r#"{"remove":["/a/d"],"set":[["/a/c/1",5],["/a/f",null]]}"#);
    assert_eq!(Delta::between(&before, &before).encode(), "{}");
    assert!(Delta::between(&before, &before).is_empty() && !delta.is_empty());
}

#[test]
fn an_array_of_another_length_is_kept_whole() {
    let delta = Delta::between(&json!({"a": [1, 2]}), &json!({"a": [1]}));
    assert_eq!(delta.encode(), r#"{"set":[["/a",[1]]]}"#);
}

#[test]
fn a_delta_of_another_state_does_not_fit() {
    let text = |it: &str| Delta::decode(it.as_bytes()).unwrap();
    for delta in [
        r#"{"remove":["/x"]}"#,
        r#"{"remove":[""]}"#,
        r#"{"remove":["/b/0"]}"#,
        r#"{"set":[["/x/y",1]]}"#,
        r#"{"set":[["/b/1",1]]}"#,
    ] {
        assert_eq!(text(delta).apply(&json!({"a": 1, "b": [1]})), Err(DeltaError::Misfit), "{delta}");
    }
}

#[test]
fn only_deltas_are_read_as_deltas() {
    for text in ["", "[]", "1", r#"{"set":[["a",1]]}"#, r#"{"set":[["/a"]]}"#, r#"{"put":[]}"#, r#"{"set":{}}"#] {
        assert_eq!(Delta::decode(text.as_bytes()), Err(DeltaError::Text), "{text}");
    }
}

#[test]
fn the_deepest_state_can_be_stored() {
    let deep = (1..STATE_DEPTH_CEILING).fold(json!([]), |below, _| json!({"a": below}));
    let delta = Delta::between(&json!(1), &deep);
    assert_eq!(Delta::decode(delta.encode().as_bytes()).unwrap().apply(&json!(1)).unwrap(), deep);
}

proptest! {
    #[test]
    fn a_delta_leads_from_one_value_to_the_other(before in alike_value(), after in alike_value()) {
        let delta = Delta::between(&before, &after);
        prop_assert_eq!(delta.apply(&before).unwrap(), after.clone());
        prop_assert_eq!(delta.is_empty(), before == after);
    }

    #[test]
    fn a_stored_delta_is_the_same_delta(before in any_value(), after in any_value()) {
        let (before, after) = (json!({"a": before, "b": 1}), json!({"a": after, "c": 1}));
        let delta = Delta::between(&before, &after);
        let stored = Delta::decode(delta.encode().as_bytes()).unwrap();
        prop_assert_eq!(&stored, &delta);
        prop_assert_eq!(stored.apply(&before).unwrap(), after);
    }
}
