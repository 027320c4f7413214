use serde_json::{Map, json};

use super::*;

fn compile(text: &str) -> Result<Schema, SchemaError> {
    SchemaSource::file("s.json", text)?.compile(Openness::AsWritten)
}

fn compiled(schema: &Value) -> Schema {
    compile(&schema.to_string()).unwrap()
}

fn refusal(schema: &Value) -> String {
    compile(&schema.to_string()).unwrap_err().to_string()
}

fn faults(schema: &Value, value: &Value) -> Vec<String> {
    compiled(schema).faults(value).iter().map(|it| it.pointer.to_string()).collect()
}

#[test]
fn a_misspelt_keyword_is_refused_where_it_stands() {
    let schema = json!({"properties": {"a": {"items": {"maxlength": 3}}}});
    let message = refusal(&schema);
    assert!(message.contains("/properties/a/items/maxlength") && message.contains("unknown keyword"), "{message}");
    for nested in [
        json!({"anyOf": [true, {"enums": []}]}),
        json!({"$defs": {"never used": {"requird": []}}}),
        json!({"dependentSchemas": {"a": {"typ": "string"}}}),
        json!({"additionalProperties": {"typ": "string"}}),
        json!({"dependencies": {}}),
    ] {
        assert!(refusal(&nested).contains("unknown keyword"), "{nested}");
    }
}

#[test]
fn notes_and_data_are_not_taken_for_keywords() {
    compiled(&json!({
        "x-owner": {"anything": 1}, "title": "t", "$comment": "c", "default": {"typ": 1}, "examples": [{"typ": 1}],
        "enum": [{"typ": 1}], "const": {"typ": 1}, "properties": {"typ": {}, "x": {"x-note": 1}},
    }));
}

#[test]
fn nothing_outside_the_document_is_referred_to() {
    for reference in ["https://example.com/s.json", "other.json", "file:///etc/passwd", "s.json#/a", "urn:x:y"] {
        assert!(refusal(&json!({"$ref": reference})).contains("nothing is fetched"), "{reference}");
        assert!(refusal(&json!({"items": {"$dynamicRef": reference}})).contains("nothing is fetched"), "{reference}");
    }
}

#[test]
fn a_reference_names_a_schema_not_data() {
    for reference in ["#/$defs/missing", "#nowhere", "#/default", "#/x-note", "#/enum/0", "#/%ZZ"] {
        let schema = json!({"items": {"$ref": reference}, "default": {"typ": 1}, "x-note": {}, "enum": [{}]});
        assert!(refusal(&schema).contains("names no schema"), "{reference}");
    }
}

#[test]
fn references_within_the_document_are_followed() {
    let schema = json!({
        "$id": "https://example.com/s.json",
        "properties": {
            "a": {"$ref": "#/$defs/a~1b%20c"}, "b": {"$ref": "#named"}, "c": {"$ref": "#/properties/a"},
            "d": {"$ref": "#/definitions/old"},
        },
        "$defs": {"a/b c": {"type": "integer"}, "n": {"$anchor": "named", "type": "string"}},
        "definitions": {"old": {"type": "null"}},
    });
    assert_eq!(faults(&schema, &json!({"a": 1, "b": "x", "c": 1, "d": null})), [""; 0]);
    let mut found = faults(&schema, &json!({"a": "x", "b": 1, "c": "x", "d": 1}));
    found.sort();
    assert_eq!(found, ["/a", "/b", "/c", "/d"]);
}

#[test]
fn a_schema_may_refer_to_itself_for_parts_but_not_for_the_same_value() {
    let tree = json!({"type": "object", "properties": {"left": {"$ref": "#"}, "n": {"type": "integer"}}});
    assert_eq!(faults(&tree, &json!({"left": {"left": {"n": 1}}})), [""; 0]);
    assert_eq!(faults(&tree, &json!({"left": {"left": {"n": "x"}}})), [""], "refused, without a list of why");
    for endless in [
        json!({"$ref": "#"}),
        json!({"allOf": [{"$ref": "#"}]}),
        json!({"not": {"$ref": "#"}}),
        json!({"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"anyOf": [true, {"$ref": "#/$defs/a"}]}}}),
        json!({"$ref": "#/$defs/a", "$defs": {
            "a": {"additionalProperties": {"$ref": "#/$defs/x"}, "allOf": [{"$ref": "#/$defs/x"}]},
            "x": {"$ref": "#/$defs/a"},
        }}),
    ] {
        assert!(refusal(&endless).contains("never end"), "{endless}");
    }
}

#[test]
fn references_that_multiply_are_refused() {
    let mut defs = Map::new();
    for i in 0..20 {
        let next = json!({"$ref": format!("#/$defs/a{}", i + 1)});
        defs.insert(format!("a{i}"), json!({"anyOf": [next, next]}));
    }
    defs.insert("a20".into(), json!({"type": "integer"}));
    let message = refusal(&json!({"$ref": "#/$defs/a0", "$defs": defs}));
    assert!(message.contains("too often") || message.contains("one within another"), "{message}");
}

#[test]
fn a_hostile_value_cannot_make_a_recursive_schema_expensive() {
    let branch = |k: u8| json!({"type": "object", "required": ["x"], "properties": {"x": {"$ref": "#/$defs/n"}, "k": {"const": k}}});
    let schema = json!({
        "$ref": "#/$defs/n",
        "$defs": {"n": {"anyOf": [{"type": "integer"}, branch(1), branch(2), branch(3)]}},
    });
    let deep = (0..60).fold(json!("bad"), |below, _| json!({"x": below}));
    // Three to the power of sixty, if it were not remembered.
    assert_eq!(faults(&schema, &deep), [""]);
}

#[test]
fn the_deepest_admitted_schema_and_value_fit_on_a_threads_stack() {
    let mut defs = Map::new();
    for i in 0..15 {
        defs.insert(format!("a{i}"), json!({"allOf": [{"$ref": format!("#/$defs/a{}", i + 1)}]}));
    }
    defs.insert("a15".into(), json!({"type": "object", "properties": {"x": {"$ref": "#/$defs/a0"}}}));
    let schema = compiled(&json!({"$ref": "#/$defs/a0", "$defs": defs}));
    let deep = (0..63).fold(json!("bad"), |below, _| json!({"x": below}));
    assert_eq!(schema.faults(&deep).len(), 1);
}

#[test]
fn formats_are_checked_and_unknown_ones_refused() {
    for (format, good, bad) in [
        ("date-time", "2026-01-02T03:04:05Z", "yesterday"),
        ("email", "a@example.com", "a"),
        ("ipv4", "127.0.0.1", "1.2.3"),
        ("uri", "https://example.com/", "not a uri"),
        ("uuid", "0199c7a4-0000-7000-8000-000000000000", "0199"),
    ] {
        assert_eq!(faults(&json!({"format": format}), &json!(good)), [""; 0], "{format}");
        assert_eq!(faults(&json!({"format": format}), &json!(bad)), [""], "{format}");
    }
    for unknown in [json!("idn-email"), json!("credit-card"), json!(7)] {
        assert!(refusal(&json!({"items": {"format": unknown}})).contains("not checked"));
    }
    for known in keywords::FORMATS {
        compiled(&json!({"format": known}));
    }
}

#[test]
fn patterns_are_matched_in_linear_time_or_refused() {
    for backtracking in ["(a)\\1", "(?=a)b", "(?<!a)b"] {
        assert!(compile(&json!({"pattern": backtracking}).to_string()).is_err(), "{backtracking}");
        assert!(compile(&json!({"patternProperties": {backtracking: {}}}).to_string()).is_err(), "{backtracking}");
    }
    assert!(compile(&json!({"pattern": "((a{1,1000}){1,1000}){1,1000}"}).to_string()).is_err(), "too large");
    let hard = json!({"pattern": "^(a+)+$"});
    assert_eq!(faults(&hard, &json!(format!("{}!", "a".repeat(100_000)))), [""]);
}

#[test]
fn numbers_are_as_written() {
    let schema = r#"{"maximum": 9223372036854775807, "multipleOf": 0.01}"#;
    let schema = compile(schema).unwrap();
    assert!(schema.faults(&json!(19.99)).is_empty());
    assert_eq!(schema.faults(&json!(19.999)).len(), 1);
    assert_eq!(faults(&json!({"const": 1.0}), &json!(1)), [""; 0]);
    assert_eq!(faults(&json!({"type": "integer"}), &json!(1.5)), [""]);
}

#[test]
fn a_schemas_text_has_one_reading() {
    for text in ["", "{", "{} {}", "{\"type\": \"string\", \"type\": \"integer\"}", "{\"maximum\": NaN}", "[1,]"] {
        assert!(matches!(compile(text), Err(SchemaError::Text { .. })), "{text}");
    }
    for text in ["true", "[]", "\"string\"", "null"] {
        assert!(matches!(compile(text), Err(SchemaError::At { .. })), "{text}");
    }
}

#[test]
fn only_the_dialect_that_is_enforced_is_read() {
    compiled(&json!({"$schema": "https://json-schema.org/draft/2020-12/schema"}));
    for other in ["http://json-schema.org/draft-07/schema#", "https://example.com/mine"] {
        assert!(refusal(&json!({"$schema": other})).contains("2020-12"), "{other}");
    }
    for wrong in [json!({"type": "strng"}), json!({"items": []}), json!({"required": "a"}), json!({"minLength": -1})] {
        assert!(compile(&wrong.to_string()).is_err(), "{wrong}");
    }
    assert!(refusal(&json!({"items": {"$id": "https://example.com/part"}})).contains("$id"));
}

#[test]
fn every_fault_is_told_at_its_member() {
    let schema = json!({
        "required": ["a", "b"], "properties": {"a": {}, "b": {}, "c": {"maxLength": 1}},
        "additionalProperties": false, "propertyNames": {"maxLength": 3},
    });
    let mut found = faults(&schema, &json!({"c": "xx", "long/name": 1, "e": 1}));
    found.sort();
    assert_eq!(found, ["/a", "/b", "/c", "/e", "/long~1name", "/long~1name"]);
}

#[test]
fn the_number_of_faults_is_bounded() {
    let schema = json!({"items": {"type": "string"}});
    let many: Vec<_> = (0..FAULTS_MAX + 500).collect();
    assert_eq!(compiled(&schema).faults(&json!(many)).len(), FAULTS_MAX);
}

#[test]
fn faults_are_not_listed_where_their_places_would_fill_the_memory() {
    let schema = compiled(&json!({"additionalProperties": {"items": {"type": "null"}}}));
    let state = |key: usize| json!({"k".repeat(key): vec![1; 9_999]});
    assert_eq!(schema.faults(&state(500_000)), [Fault::unexplained()]);
    assert_eq!(schema.faults(&state(100)).len(), 9_999);
}
