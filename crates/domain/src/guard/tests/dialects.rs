//! Tests of JSON Schema 2020-12, and of the choice of dialect.

use crate::guard::*;
use crate::schema::BYTES_MAX as SCHEMA_BYTES_MAX;

const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

fn guard(schema: &str) -> Result<StateGuard, GuardConfigError> {
    StateGuard::new(schema.as_bytes(), Some(br#"{"immutable_paths":["$.id"]}"#))
}

/// Builds a JSON Schema with these keywords.
fn json_schema(keywords: &str) -> String {
    format!("{{\"$schema\":\"{DIALECT}\",{keywords}}}")
}

fn found(keywords: &str, state: &str) -> Vec<String> {
    let Err(found) = guard(&json_schema(keywords)).unwrap().check(state.as_bytes()) else { return Vec::new() };
    assert!(
        found.list.iter().all(|it| it.alias == AgentStateGuardCode::Schema && it.subject == ViolationSubject::Proposed)
    );
    found.list.iter().map(|it| format!("{} {}", it.code.as_str(), it.pointer)).collect()
}

#[test]
fn the_text_itself_says_which_dialect_it_is() {
    let keywords = r#""type":"object","properties":{"id":{"type":"integer"}}"#;
    let (small, json) = (guard(&format!("{{{keywords}}}")).unwrap(), guard(&json_schema(keywords)).unwrap());
    assert_eq!((small.dialect(), json.dialect()), (SchemaDialect::Guard, SchemaDialect::JsonSchema));
    // JSON Schema leaves open what the guard's own dialect closes.
    assert!(small.check(br#"{"x":1}"#).is_err());
    assert!(json.check(br#"{"x":1}"#).is_ok());
    for other in ["http://json-schema.org/draft-07/schema#", "", "small"] {
        let refused = guard(&format!("{{\"$schema\":\"{other}\",{keywords}}}")).unwrap_err();
        assert_eq!((refused.code, refused.at.as_str()), (GuardConfigCode::Schema, "/$schema"), "{other}");
    }
    // A JSON Schema without `$schema` is refused, and not read as something else.
    assert_eq!(guard(r#"{"type":"object","required":["id"]}"#).unwrap_err().at.as_str(), "/properties");
    assert_eq!(guard(r#"{"type":"integer","maximum":9223372036854775807}"#).unwrap_err().at.as_str(), "/maximum");
}

#[test]
fn a_json_schema_is_checked_as_policies_check_theirs() {
    for (keywords, at, why) in [
        (r#""properties":{"a":{"maxlength":1}}"#, "/properties/a/maxlength", "unknown keyword"),
        (r#""$ref":"https://example.com/s.json""#, "/$ref", "nothing is fetched"),
        (r##""$ref":"#/$defs/missing""##, "/$ref", "names no schema"),
        (r#""format":"colour""#, "/format", "not checked"),
        (r#""type":"strng""#, "/type", ""),
        (r#""pattern":"(a)\\1""#, "/pattern", ""),
        (r##""$ref":"#""##, "", "never end"),
    ] {
        let refused = guard(&json_schema(keywords)).unwrap_err();
        assert_eq!((refused.code, refused.at.as_str()), (GuardConfigCode::Schema, at), "{refused}");
        assert!(refused.why.contains(why), "{refused}");
    }
    assert_eq!(found(r#""x-owner":{"typ":1},"maximum":9223372036854775807"#, "1"), [""; 0]);
    assert!(guard(&json_schema(r#""type":"null","type":"null""#)).unwrap_err().at.as_str().ends_with("type"));
    let mut no_text = json_schema(r#""maximum":9223372036854775807,"title":"?""#).into_bytes();
    no_text.iter_mut().filter(|it| **it == b'?').for_each(|it| *it = 0xff);
    assert!(StateGuard::new(&no_text, None).is_err(), "a schema is text, also behind a number that no state holds");
    let long = " ".repeat(SCHEMA_BYTES_MAX);
    assert_eq!(guard(&format!("{}{long}", json_schema(r#""type":"null""#))).unwrap_err().at, Pointer::root());
}

#[test]
fn everything_that_a_json_schema_refuses_is_told_in_one_order_with_codes() {
    let keywords = r##""required":["z","id"],"additionalProperties":false,"properties":{
        "id":{"$ref":"#/$defs/id"}, "l":{"items":{"minimum":3},"uniqueItems":true,"maxItems":1}, "d":{"format":"date"},
        "c":{"const":1}, "o":{"oneOf":[{"type":"integer"},{"minimum":0}]}},
        "$defs":{"id":{"type":"string","pattern":"^[a-z]+$","minLength":3}}"##;
    let state = r#"{"id":"A","l":[1,1],"d":"2026-02-30","c":true,"o":1,"b":0,"a":0}"#;
    let expected = [
        "member_unknown /a",
        "member_unknown /b",
        "not_the_constant /c",
        "format_unfit /d",
        "pattern_unmatched /id",
        "text_too_short /id",
        "items_equal /l",
        "too_many_items /l",
        "below_minimum /l/0",
        "below_minimum /l/1",
        "several_forms /o",
        "member_missing /z",
    ];
    assert_eq!(found(keywords, state), expected);
}

#[test]
fn rules_and_the_proof_do_not_depend_on_the_dialect() {
    let guard = guard(&json_schema(r#""type":"object""#)).unwrap();
    let refused = guard.transition(br#"{"id":1}"#, br#"{"id":true}"#).unwrap_err();
    assert_eq!(
        (refused.list[0].code, refused.list[0].alias),
        (GuardCode::Rule(TransitionViolation::ImmutableChanged), AgentStateGuardCode::Rule)
    );
    let current = guard.transition(b"[]", br#"{"id":1}"#).unwrap_err();
    assert_eq!(current.list[0].alias, AgentStateGuardCode::Current);
    assert_eq!(guard.transition(br#"{"id":1}"#, br#"{"id":1.0}"#).unwrap().proposed.text, r#"{"id":1}"#);
}

#[test]
fn a_deep_state_is_judged_by_a_schema_that_refers_to_itself() {
    let keywords = r##""$ref":"#/$defs/n","$defs":{"n":{"anyOf":[{"type":"null"},{"items":{"$ref":"#/$defs/n"},"type":"array"}]}}"##;
    let nested = |inside: &str| format!("{}{inside}{}", "[".repeat(DEPTH_CEILING), "]".repeat(DEPTH_CEILING));
    assert_eq!(found(keywords, &nested("null")), [""; 0]);
    assert_eq!(found(keywords, &nested("1")).len(), 1);
    let deeper = guard(&json_schema(keywords)).unwrap().check(format!("[{}]", nested("")).as_bytes()).unwrap_err();
    assert_eq!(deeper.list[0].code, GuardCode::Json(JsonCode::TooDeep));
}

#[test]
fn a_long_key_does_not_make_gigabytes_of_pointers() {
    let state = |key: usize| format!("{{\"{}\":[{}1]}}", "k".repeat(key), "1,".repeat(9_999));
    let keywords = r#""additionalProperties":{"items":{"type":"null"}}"#;
    assert_eq!(found(keywords, &state(500_000)), ["schema_unfit "]);
    assert_eq!(found(keywords, &state(100)).len(), VIOLATIONS_MAX);
}
