use std::fmt::Write as _;

use super::*;

const SCHEMA: &str = r#"{"type": "object", "properties": {
    "id": {"type": "string"}, "n": {"type": "number"}, "s": {"type": "string"}, "t": {"type": "array", "items":
    {"type": "object", "properties": {"id": {"type": "integer"}}, "additionalProperties": true}}},
    "additionalProperties": true}"#;
const RULES: &str = r#"{"immutable_paths": ["$.id"], "monotonic_integer_paths": ["$.n"],
    "ordered_enum_paths": {"$.s": ["a", "b"]},
    "keyed_object_array_paths": {"$.t": {"key": "id", "monotonic_boolean_fields": ["done"]}}}"#;

fn judged(rules: &str, before: &str, after: &str) -> Vec<String> {
    let guard = Guard::new(SCHEMA.as_bytes(), Some(rules.as_bytes())).unwrap();
    let Err(found) = guard.transition(before.as_bytes(), after.as_bytes()) else { return Vec::new() };
    told(&found)
}

fn told(found: &Violations) -> Vec<String> {
    found.list.iter().map(|it| format!("{} {}", it.code.as_str(), it.pointer)).collect()
}

fn items(before: &str, after: &str) -> Vec<String> {
    let rules = r#"{"keyed_object_array_paths": {"$.t": {"key": "id", "monotonic_boolean_fields": ["done"]}}}"#;
    judged(rules, &format!("{{\"t\":{before}}}"), &format!("{{\"t\":{after}}}"))
}

#[test]
fn everything_that_is_wrong_is_told_in_the_order_of_the_rules() {
    let before = r#"{"t":[{"id":1,"done":true},{"id":2}],"s":"b","n":2,"id":"x"}"#;
    let after = r#"{"id":"y","n":1,"s":"a","t":[{"id":3},{"id":1,"x":0}]}"#;
    let expected = [
        "immutable_changed /id",
        "decreased /n",
        "went_back /s",
        "item_removed /t/1",
        "item_inserted /t/0",
        "boolean_not_to_true /t/1/done",
        "field_added /t/1/x",
    ];
    assert_eq!(judged(RULES, before, after), expected);
}

#[test]
fn a_listed_boolean_moves_to_true_and_nowhere_else() {
    for (old, new, passes) in [
        ("", ",\"done\":true", true),
        (",\"done\":false", ",\"done\":true", true),
        (",\"done\":true", ",\"done\":false", false),
        (",\"done\":true", "", false),
        (",\"done\":false", "", false),
        ("", ",\"done\":false", false),
        (",\"done\":false", ",\"done\":1", false),
        (",\"done\":0", ",\"done\":true", false),
    ] {
        let found = items(&format!("[{{\"id\":1{old}}}]"), &format!("[{{\"id\":1{new}}}]"));
        assert_eq!(found.is_empty(), passes, "{old} to {new}: {found:?}");
    }
}

#[test]
fn items_are_appended_and_neither_moved_nor_removed_nor_inserted() {
    let three = r#"[{"id":1},{"id":2},{"id":3}]"#;
    assert_eq!(items(three, r#"[{"id":1},{"id":2},{"id":3},{"id":4}]"#), [""; 0]);
    assert_eq!(items(three, r#"[{"id":2},{"id":1},{"id":3}]"#), ["item_moved /t/1"]);
    assert_eq!(items(three, r#"[{"id":1},{"id":3}]"#), ["item_removed /t/1"]);
    assert_eq!(items(three, r#"[{"id":1},{"id":2},{"id":4},{"id":3}]"#), ["item_inserted /t/2"]);
    assert_eq!(items(three, r#"[{"id":1},{"id":2},{"id":3},{"id":3}]"#), ["key_twice /t/3/id"]);
    let closed = r#"{"keyed_object_array_paths": {"$.t": {"key": "id", "allow_new_items": false}}}"#;
    assert_eq!(judged(closed, r#"{"t":[]}"#, r#"{"t":[{"id":1}]}"#), ["item_not_allowed /t/0"]);
}

#[test]
fn ten_thousand_items_reversed_are_judged_at_once() {
    let list = |ids: &mut dyn Iterator<Item = u32>| {
        ids.fold("[".to_owned(), |mut text, id| {
            write!(text, "{}{{\"id\":{id}}}", if text.len() > 1 { "," } else { "" }).unwrap();
            text
        }) + "]"
    };
    let (there, back) = (list(&mut (0..10_000)), list(&mut (0..10_000).rev()));
    assert_eq!(items(&there, &there), [""; 0]);
    assert_eq!(items(&there, &back).len(), VIOLATIONS_MAX);
}

#[test]
fn a_keyword_or_rule_that_would_have_no_effect_is_refused_where_it_stands() {
    for (schema, rules, at) in [
        (r#"{"type":"integer","minimum":0}"#, "{}", "/minimum"),
        (r#"{"type":"string","properties":{}}"#, "{}", "/properties"),
        (r#"{"type":"array","items":{"type":"nope"}}"#, "{}", "/items/type"),
        (r#"{"type":"null"}"#, r#"{"immutable":["$.a"]}"#, "/immutable"),
        (r#"{"type":"null"}"#, r#"{"immutable_paths":["$.a[0]"]}"#, "/immutable_paths/0"),
        (r#"{"type":"null"}"#, r#"{"ordered_enum_paths":{"$.a":["x","x"]}}"#, "/ordered_enum_paths/$.a"),
    ] {
        let refused = Guard::new(schema.as_bytes(), Some(rules.as_bytes())).unwrap_err();
        assert_eq!(refused.at.as_str(), at, "{refused}");
    }
    assert!(Guard::new(br#"{"type":"null","x-note":1}"#, None).is_ok());
}

#[test]
fn the_proof_is_the_digest_of_the_canonical_text() {
    let guard = Guard::new(br#"{"type":"object","properties":{},"additionalProperties":true}"#, None).unwrap();
    let normal = guard.check(b" {\"b\": 1.0, \"a\": null} ").unwrap();
    assert_eq!(normal.text, r#"{"a":null,"b":1}"#);
    assert_eq!(normal.proof().len(), 71);
    assert_eq!(normal.proof(), guard.check(b"{\"a\":null,\"b\":1}").unwrap().proof());
}
