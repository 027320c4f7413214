use serde_json::json;

use super::super::tests::policy;
use super::super::{Effect, RedactedChange, True, redacted, redacted_by};
use super::*;
use crate::domain::json::diff::diff;

const POLICY: &str = r#"
[nodes.n]
reads = ["*"]
writes = ["memo", "notes", "n"]

[redaction]
hide = ["card.*"]
detect = ["email", "card_number"]
patterns = { order = 'ORD-\d{4}' }
"#;

fn hidden(pointer: &str, effect: Effect) -> RedactedChange {
    RedactedChange::Hidden { pointer: Pointer::try_from(pointer).unwrap(), hidden: True, effect }
}

#[test]
fn a_leaf_in_which_something_is_found_is_hidden_on_both_sides() {
    let policy = policy(POLICY);
    let told = |before: Value, after: Value| redacted(&policy, &diff(&before, &after));
    let found = [
        json!("write to ana@example.org"),
        json!("4111 1111 1111 1111"),
        json!(4_111_111_111_111_111_i64),
        json!("ORD-1234"),
    ];
    for value in found {
        assert_eq!(told(json!({"memo": "a"}), json!({"memo": value})), [hidden("/memo", Effect::Changed)], "{value}");
        assert_eq!(told(json!({"memo": value}), json!({"memo": "a"})), [hidden("/memo", Effect::Changed)], "{value}");
        assert_eq!(
            told(json!({"n": 0, "memo": value}), json!({"n": 0})),
            [hidden("/memo", Effect::Removed)],
            "{value}"
        );
        assert_eq!(
            told(json!({"n": 0}), json!({"n": 0, "memo": [value]})),
            [hidden("/memo/0", Effect::Added)],
            "{value}"
        );
    }
    let plain = told(json!({"n": 0}), json!({"memo": "nothing to see", "n": 17}));
    assert!(plain.iter().all(|it| matches!(it, RedactedChange::Shown { .. })), "{plain:?}");
}

#[test]
fn a_container_with_a_key_in_which_something_is_found_is_hidden_whole() {
    let policy = policy(POLICY);
    let (before, after) = (json!({"notes": {"a": 1}}), json!({"notes": {"a": 2, "ana@example.org": 1}}));
    assert_eq!(redacted(&policy, &diff(&before, &after)), [hidden("/notes", Effect::Changed)]);
    // The key that gives it away need not be one that changes, where the whole states are shown from.
    let (before, after) =
        (json!({"notes": {"a": 1, "b@example.org": 0}}), json!({"notes": {"a": 2, "b@example.org": 0}}));
    let hiding = Hiding::of_states(&policy, [&before, &after]);
    assert_eq!(redacted_by(&hiding, &diff(&before, &after)), [hidden("/notes", Effect::Changed)]);
    let top = json!({"ana@example.org": {"x": 1}});
    assert_eq!(redacted(&policy, &diff(&json!({}), &top)), [hidden("", Effect::Changed)]);
}

#[test]
fn a_pointer_is_cut_before_a_name_in_which_something_is_found() {
    let policy = policy(POLICY);
    let cut = |text: &str| policy.cut(&Pointer::try_from(text).unwrap()).to_string();
    assert_eq!(cut("/notes/ana@example.org/x"), "/notes");
    assert_eq!(cut("/ana@example.org"), "");
    assert_eq!(cut("/card/number/x"), "/card/number");
    assert_eq!(cut("/notes/a/b"), "/notes/a/b");
}

#[test]
fn words_are_masked_and_an_excerpt_has_nothing_of_it() {
    let policy = policy(POLICY);
    assert_eq!(policy.masked("ask ana@example.org about ORD-1234"), "ask [email] about [order]");
    let excerpt = |request: Value| super::super::excerpt(&policy, crate::domain::json::patch::Format::Merge, &request);
    assert_eq!(excerpt(json!({"memo": "to ana@example.org", "n": 1})), r#"{"memo":"[hidden]","n":1}"#);
    assert_eq!(excerpt(json!({"notes": {"ana@example.org": 1}})), r#"{"notes":"[hidden]"}"#);
}

#[test]
fn without_detectors_nothing_is_looked_for() {
    let policy =
        policy(&POLICY.replace("detect = [\"email\", \"card_number\"]\npatterns = { order = 'ORD-\\d{4}' }", ""));
    let changes = diff(&json!({"n": 0}), &json!({"n": 0, "memo": "ana@example.org ORD-1234"}));
    assert!(matches!(redacted(&policy, &changes)[..], [RedactedChange::Shown { .. }]));
}
