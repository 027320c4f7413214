mod dialects;
mod properties;

use std::fmt::Write as _;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use super::*;

const SCHEMA: &str = r#"{"type": "object", "properties": {
    "id": {"type": "string"}, "n": {"type": "number"}, "s": {"type": "string"}, "t": {"type": "array", "items":
    {"type": "object", "properties": {"id": {"type": "integer"}}, "additionalProperties": true}}},
    "additionalProperties": true}"#;
const RULES: &str = r#"{"immutable_paths": ["$.id"], "monotonic_integer_paths": ["$.n"],
    "ordered_enum_paths": {"$.s": ["a", "b"]},
    "keyed_object_array_paths": {"$.t": {"key": "id", "monotonic_boolean_fields": ["done"]}}}"#;

fn judged(rules: &str, before: &str, after: &str) -> Vec<String> {
    let guard = StateGuard::new(SCHEMA.as_bytes(), Some(rules.as_bytes())).unwrap();
    let Err(found) = guard.transition(before.as_bytes(), after.as_bytes()) else { return Vec::new() };
    told(&found)
}

fn told(found: &Violations) -> Vec<String> {
    found.list.iter().map(|it| format!("{} {}", it.code.as_str(), it.pointer)).collect()
}

/// A schema that accepts every object.
const OPEN: &str = r#"{"type":"object","properties":{},"additionalProperties":true}"#;
const KEYED: &str = r#"{"keyed_object_array_paths": {"$.t": {"key": "id", "monotonic_boolean_fields": ["done"]}}}"#;

fn open(rules: &str, before: &str, after: &str) -> Vec<String> {
    let guard = StateGuard::new(OPEN.as_bytes(), Some(rules.as_bytes())).unwrap();
    guard.transition(before.as_bytes(), after.as_bytes()).err().map_or_else(Vec::new, |it| told(&it))
}

fn keyed(before: &str, after: &str) -> Vec<String> {
    open(KEYED, &format!("{{\"t\":{before}}}"), &format!("{{\"t\":{after}}}"))
}

fn items(before: &str, after: &str) -> Vec<String> {
    judged(KEYED, &format!("{{\"t\":{before}}}"), &format!("{{\"t\":{after}}}"))
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

/// Returns the processor time of this thread, without that of other threads.
fn processor_time() -> Duration {
    let taken = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(taken.tv_sec.try_into().unwrap(), taken.tv_nsec.try_into().unwrap())
}

#[test]
fn ten_times_as_many_items_cost_about_ten_times_as_much() {
    let list = |ids: &mut dyn Iterator<Item = u32>| {
        ids.fold("[".to_owned(), |mut text, id| {
            write!(text, "{}{{\"id\":{id}}}", if text.len() > 1 { "," } else { "" }).unwrap();
            text
        }) + "]"
    };
    // Take the cheapest of five attempts.
    let cost = |items: u32, expected: usize| {
        let (there, back) = (list(&mut (0..items)), list(&mut (0..items).rev()));
        let tries = (0..5).map(|_| {
            let start = processor_time();
            assert_eq!(keyed(&there, &there).len(), 0);
            assert_eq!(keyed(&there, &back).len(), expected);
            assert_eq!(keyed("[]", &back).len(), 0);
            processor_time() - start
        });
        tries.min().unwrap()
    };
    let (thousand, ten_thousand) = (cost(1_000, 999), cost(10_000, VIOLATIONS_MAX));
    // Quadratic work would cost a hundred times as much.
    assert!(ten_thousand < thousand * 35, "{thousand:?} and {ten_thousand:?}");
}

#[test]
fn a_long_enum_costs_a_state_no_more_than_a_short_one() {
    let state = format!("[{}\"v0\"]", "\"v0\",".repeat(3_000));
    let cost = |values: u32| {
        let last_is_looked_for = (0..values).rev().map(|it| format!("\"v{it}\"")).collect::<Vec<_>>().join(",");
        let schema = format!(r#"{{"type":"array","items":{{"type":"string","enum":[{last_is_looked_for}]}}}}"#);
        let guard = StateGuard::new(schema.as_bytes(), None).unwrap();
        let tries = (0..5).map(|_| {
            let start = processor_time();
            guard.check(state.as_bytes()).unwrap();
            processor_time() - start
        });
        tries.min().unwrap()
    };
    let (short, long) = (cost(10), cost(10_000));
    // A linear search would cost several hundred times as much.
    assert!(long < short * 20, "{short:?} and {long:?}");
}

#[test]
fn an_order_of_many_values_is_read_at_once_and_none_stands_twice() {
    let rules = |last: u32| {
        let values = (0..100_000).chain([last]).map(|it| it.to_string()).collect::<Vec<_>>().join(",");
        StateGuard::new(OPEN.as_bytes(), Some(format!(r#"{{"ordered_enum_paths":{{"$.x":[{values}]}}}}"#).as_bytes()))
    };
    assert!(rules(100_000).is_ok());
    assert!(rules(0).unwrap_err().why.contains("twice"));
}

#[test]
fn two_spellings_of_one_key_are_one_key() {
    let composed = "[{\"id\":\"\u{e9}\"}]";
    assert_eq!(keyed(composed, "[{\"id\":\"\u{e9}\"},{\"id\":\"e\u{301}\"}]"), ["key_twice /t/1/id"]);
    assert_eq!(keyed(composed, "[{\"id\":\"e\u{301}\"}]"), ["field_changed /t/0/id"]);
    assert_eq!(keyed("[]", r#"[{"id":"1"},{"id":1}]"#), [""; 0]);
    assert_eq!(keyed("[]", r#"[{"id":1},{"id":1.0}]"#), ["key_twice /t/1/id"]);
    assert_eq!(keyed("[]", r#"[{"id":true}]"#), ["key_unfit /t/0/id"]);
}

#[test]
fn true_is_not_one_and_null_is_not_missing() {
    for (before, after) in [("true", "1"), ("false", "0"), ("1", "true"), ("null", "0"), ("\"1\"", "1")] {
        let state = |it: &str| format!("{{\"x\":{it}}}");
        assert_eq!(open(r#"{"immutable_paths":["$.x"]}"#, &state(before), &state(after)), ["immutable_changed /x"]);
    }
    assert_eq!(open(r#"{"immutable_paths":["$.x"]}"#, "{\"x\":1}", "{\"x\":1.0}"), [""; 0]);
    let ordered = r#"{"ordered_enum_paths":{"$.x":[0, true, "1"]}}"#;
    assert_eq!(open(ordered, "{\"x\":0}", "{\"x\":1}"), ["not_in_order /x"]);
    assert_eq!(open(ordered, "{\"x\":0}", "{\"x\":true}"), [""; 0]);
    let monotonic = r#"{"monotonic_integer_paths":["$.x"]}"#;
    assert_eq!(open(monotonic, "{\"x\":false}", "{\"x\":true}"), ["not_an_integer /x"]);
    assert_eq!(open(monotonic, "{\"x\":1}", "{\"x\":1.5}"), ["not_an_integer /x"]);
    assert_eq!(keyed(r#"[{"id":1,"x":null}]"#, r#"[{"id":1}]"#), ["field_removed /t/0/x"]);
    assert_eq!(keyed(r#"[{"id":1}]"#, r#"[{"id":1,"x":null}]"#), ["field_added /t/0/x"]);
}

#[test]
fn a_place_that_is_missing_breaks_each_rule_about_it_in_the_state_that_lacks_it() {
    let guard = StateGuard::new(OPEN.as_bytes(), Some(br#"{"immutable_paths":["$.a.b"]}"#)).unwrap();
    let subjects = |before: &str, after: &str| {
        let found = guard.transition(before.as_bytes(), after.as_bytes()).unwrap_err();
        assert!(
            found.list.iter().all(|it| it.code == GuardCode::Rule(TransitionViolation::PathMissing) && it.pointer.as_str() == "/a/b")
        );
        found.list.iter().map(|it| it.subject).collect::<Vec<_>>()
    };
    let there = r#"{"a":{"b":1}}"#;
    assert_eq!(subjects("{}", there), [ViolationSubject::Current]);
    assert_eq!(subjects(there, r#"{"a":[1]}"#), [ViolationSubject::Proposed]);
    assert_eq!(subjects(r#"{"a.b":1}"#, "{}"), [ViolationSubject::Current, ViolationSubject::Proposed]);
    let found = guard.first(b"{}").unwrap_err();
    assert_eq!(told(&found), ["path_missing /a/b"]);
    assert_eq!(found.list[0].subject, ViolationSubject::Proposed);
}

#[test]
fn what_the_schema_refuses_does_not_hide_what_the_rules_refuse() {
    let before = r#"{"id":"x","n":2,"s":"a","t":[{"id":1}]}"#;
    let after = r#"{"id":1,"n":1,"s":"a","t":[{"id":1,"x":1},{"id":"2"}]}"#;
    let expected =
        ["wrong_type /id", "wrong_type /t/1/id", "immutable_changed /id", "decreased /n", "field_added /t/0/x"];
    assert_eq!(judged(RULES, before, after), expected);
    let guard = StateGuard::new(SCHEMA.as_bytes(), Some(RULES.as_bytes())).unwrap();
    let found = guard.transition(after.as_bytes(), before.as_bytes()).unwrap_err();
    assert_eq!(found.list[0].alias, AgentStateGuardCode::Current);
    assert_eq!(found.list[0].subject, ViolationSubject::Current);
    assert_eq!(guard.transition(b"{", b"{").unwrap_err().list.len(), 2);
}

#[test]
fn without_rules_no_transition_passes_and_the_states_are_judged_all_the_same() {
    for rules in [None, Some("{}"), Some(r#"{"immutable_paths":[]}"#)] {
        let guard = StateGuard::new(OPEN.as_bytes(), rules.map(str::as_bytes)).unwrap();
        assert_eq!(told(&guard.transition(b"{}", b"{}").unwrap_err()), ["no_rules "]);
        assert_eq!(told(&guard.transition(b"{}", b"[]").unwrap_err()), ["no_rules ", "wrong_type "]);
    }
}

#[test]
fn a_keyed_array_that_cannot_be_told_apart_is_told_for_each_state() {
    let found = keyed(r#"[{"id":1},{"id":1},2]"#, r#"[{},{"id":null}]"#);
    assert_eq!(found, ["key_twice /t/1/id", "not_an_object /t/2", "key_missing /t/0/id", "key_unfit /t/1/id"]);
    assert_eq!(keyed("1", "{}"), ["not_an_array /t", "not_an_array /t"]);
    let guard = StateGuard::new(OPEN.as_bytes(), Some(KEYED.as_bytes())).unwrap();
    assert_eq!(told(&guard.first(br#"{"t":[{"id":1},{"id":1}]}"#).unwrap_err()), ["key_twice /t/1/id"]);
}

#[test]
fn a_required_name_is_missing_once_and_what_is_unknown_is_told_before_what_is_inside() {
    let schema =
        br#"{"type":"object","properties":{"a":{"type":"null"},"b":{"type":"null"}},"required":["b","a","b"]}"#;
    let guard = StateGuard::new(schema, None).unwrap();
    assert_eq!(told(&guard.check(b"{}").unwrap_err()), ["member_missing /b", "member_missing /a"]);
    assert_eq!(
        told(&guard.check(br#"{"a":1,"c":1}"#).unwrap_err()),
        ["member_missing /b", "member_unknown /c", "wrong_type /a"]
    );
}

#[test]
fn what_is_beyond_the_first_thousand_is_counted() {
    let guard = StateGuard::new(br#"{"type":"array","items":{"type":"null"}}"#, None).unwrap();
    let found = guard.check(format!("[{}1]", "1,".repeat(VIOLATIONS_MAX + 9)).as_bytes()).unwrap_err();
    assert_eq!((found.list.len(), found.omitted), (VIOLATIONS_MAX, 10));
    assert_eq!(found.list[11].pointer.as_str(), "/11");
}

#[test]
fn a_keyword_or_rule_that_would_have_no_effect_is_refused_where_it_stands() {
    for (schema, rules, at) in [
        (r#"{"type":"integer","minimum":0}"#, "{}", "/minimum"),
        (r#"{"type":"string","properties":{}}"#, "{}", "/properties"),
        (r#"{"type":"array","items":{"type":"nope"}}"#, "{}", "/items/type"),
        (r#"{"type":"object","properties":{"$schema":{"type":"null"}},"oneOf":[]}"#, "{}", "/oneOf"),
        (r#"{"type":"array","items":{"type":"null","$schema":"x"}}"#, "{}", "/items/$schema"),
        (r#"{"type":"object","properties":{},"required":["a"],"additionalProperties":true}"#, "{}", "/required"),
        (r#"{"type":"null"}"#, r#"{"immutable":["$.a"]}"#, "/immutable"),
        (r#"{"type":"null"}"#, r#"{"immutable_paths":["$.a[0]"]}"#, "/immutable_paths/0"),
        (r#"{"type":"null"}"#, r#"{"ordered_enum_paths":{"$.a":["x","x"]}}"#, "/ordered_enum_paths/$.a"),
        (
            r#"{"type":"null"}"#,
            r#"{"keyed_object_array_paths":{"$.a":{"key":"k","monotonic_boolean_fields":["k"]}}}"#,
            "/keyed_object_array_paths/$.a/monotonic_boolean_fields",
        ),
    ] {
        let refused = StateGuard::new(schema.as_bytes(), Some(rules.as_bytes())).unwrap_err();
        assert_eq!(refused.at.as_str(), at, "{refused}");
        assert!(refused.to_string().contains(&format!(" not accepted at {at:?}: ")), "{refused}");
    }
    assert!(StateGuard::new(br#"{"type":"null","x-note":1}"#, None).is_ok());
}

#[test]
fn a_schema_has_one_level_more_than_the_states_it_was_made_for() {
    let nested = |levels: usize| {
        let (open, shut) = (r#"{"type":"array","items":"#.repeat(levels), "}".repeat(levels));
        StateGuard::new(format!("{open}{{\"type\":\"null\"}}{shut}").as_bytes(), None)
    };
    assert!(nested(64).is_ok());
    assert!(nested(65).unwrap_err().why.contains("too many levels"));
}

#[test]
fn a_schema_describes_64_levels_of_a_value_with_its_scalar() {
    let levels = |arrays: usize, inside: &str| {
        let (open, shut) = (r#"{"type":"array","items":"#.repeat(arrays), "}".repeat(arrays));
        let guard = StateGuard::new(format!("{open}{{\"type\":\"null\"}}{shut}").as_bytes(), None).unwrap();
        let state = format!("{}{inside}{}", "[".repeat(arrays), "]".repeat(arrays));
        guard.check(state.as_bytes()).map_or_else(|it| told(&it), |_| Vec::new())
    };
    assert_eq!(levels(63, "null"), [""; 0]);
    assert_eq!(levels(64, ""), [""; 0]);
    assert_eq!(levels(64, "null,1"), [0, 1].map(|last| format!("too_many_levels {}/{last}", "/0".repeat(63))));
}

#[test]
fn a_text_of_white_space_alone_is_no_text() {
    let guard = StateGuard::new(br#"{"type":"null"}"#, None).unwrap();
    for blank in ["", " \n", "\u{3000}", "\u{85}", "\u{1c}\u{1f}"] {
        let found = guard.check(blank.as_bytes()).unwrap_err();
        assert_eq!(
            (found.list[0].code, found.list[0].alias),
            (GuardCode::Json(JsonCode::Empty), AgentStateGuardCode::Input),
            "{blank:?}"
        );
    }
    assert_eq!(guard.check("\u{200b}".as_bytes()).unwrap_err().list[0].alias, AgentStateGuardCode::Json);
}

#[test]
fn the_proof_is_the_digest_of_the_canonical_text() {
    let guard = StateGuard::new(br#"{"type":"object","properties":{},"additionalProperties":true}"#, None).unwrap();
    let normal = guard.check(b" {\"b\": 1.0, \"a\": null} ").unwrap();
    assert_eq!(normal.text, r#"{"a":null,"b":1}"#);
    assert_eq!(normal.proof().len(), 71);
    assert_eq!(normal.proof(), guard.check(b"{\"a\":null,\"b\":1}").unwrap().proof());
}
