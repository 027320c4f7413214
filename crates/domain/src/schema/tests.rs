use serde_json::{Map, json};

use crate::json::pointer::Pointer;

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
    assert_eq!(schema.faults(&state(500_000)), [SchemaViolation::unexplained()]);
    assert_eq!(schema.faults(&state(100)).len(), 9_999);
}

/// Many forms, each of which looks at every member, and none fits.
fn forms_over_members(keyword: &str, forms: usize, members: usize) -> (Value, Value) {
    let form = |it: usize| json!({"additionalProperties": {"type": "string"}, "minProperties": it});
    let value: Map<_, _> = (0..members).map(|it| (format!("k{it:05}"), json!(it))).collect();
    (json!({keyword: (0..forms).map(form).collect::<Vec<_>>()}), Value::Object(value))
}

#[test]
fn forms_that_do_not_fit_are_one_fault_however_many_they_are() {
    for keyword in ["anyOf", "oneOf"] {
        let (schema, value) = forms_over_members(keyword, 1_200, 9_000);
        let found = compiled(&schema).faults(&value);
        let kind = if keyword == "anyOf" { SchemaViolationKind::NoForm } else { SchemaViolationKind::NotOneForm };
        assert_eq!(found, [SchemaViolation { pointer: Pointer::root(), kind }]);
    }
}

#[test]
fn listing_why_no_form_fits_takes_as_many_errors_as_there_are_forms() {
    let (schema, value) = forms_over_members("anyOf", 20, 1_000);
    let schema = compiled(&schema);
    let whole = MeteredValue::whole(&value, &schema.0.prices);
    let errors_of = |it: &Validator<MeteredJson>| -> usize {
        let context = |error: ValidationError<'_>| match error.kind() {
            jsonschema::error::ValidationErrorKind::AnyOf { context } => context.iter().map(Vec::len).sum(),
            _ => 0,
        };
        it.iter_errors(whole).map(context).sum()
    };
    assert_eq!(errors_of(&schema.0.decides), 20_000);
    assert_eq!(errors_of(schema.0.lists.as_ref().unwrap()), 20);
}

#[test]
fn listing_finds_the_same_faults_with_forms_as_without() {
    let schema = json!({
        "properties": {
            "a": {"anyOf": [{"type": "string"}, {"type": "integer", "minimum": 3}]},
            "b": {"oneOf": [{"type": "number"}, {"type": "integer"}, false]},
            "c": {"items": {"anyOf": [{"$ref": "#/$defs/d"}, true], "maxLength": 2}},
        },
        "anyOf": [{"properties": {"x": {"type": "integer"}}, "required": ["x"]}, {"properties": {"y": true}, "required": ["y"]}],
        "unevaluatedProperties": false,
        "$defs": {"d": {"anyOf": [{"const": 1}, {"const": 2}]}},
    });
    let schema = compiled(&schema);
    assert!(schema.0.lists.is_some());
    let listed = |lists: &Validator<MeteredJson>, value: &Value| {
        let whole = MeteredValue::whole(value, &schema.0.prices);
        let mut found: Vec<_> =
            lists.iter_errors(whole).flat_map(|it| SchemaViolation::all_of(&it).collect::<Vec<_>>()).collect();
        found.sort_by(|a, b| (&a.pointer, a.kind).cmp(&(&b.pointer, b.kind)));
        found
    };
    for value in [
        json!({"x": 1, "a": 1, "b": 1, "c": ["xxx", 1]}),
        json!({"x": 1, "z": 1}),
        json!({"y": [], "x": "no", "b": 1.5}),
        json!({"x": "no"}),
        json!({"a": null, "b": null, "x": 1}),
        json!([]),
    ] {
        let (with, without) = (listed(schema.0.lists.as_ref().unwrap(), &value), listed(&schema.0.decides, &value));
        assert_eq!(with, without, "{value}");
    }
}

#[test]
fn a_reference_into_a_form_keeps_its_meaning() {
    let schema = json!({
        "properties": {"a": {"anyOf": [{"type": "string"}, {"const": 3}]}, "b": {"$ref": "#/properties/a/anyOf/0"}},
    });
    assert_eq!(faults(&schema, &json!({"a": 1, "b": "x"})), ["/a"]);
    assert_eq!(faults(&schema, &json!({"a": "x", "b": 1})), ["/b"]);
}

#[test]
fn a_value_that_takes_too_many_steps_is_refused_whether_or_not_it_fits() {
    let (schema, value) = forms_over_members("allOf", 1_200, 9_000);
    let fits: Map<_, _> = value.as_object().unwrap().keys().map(|it| (it.clone(), json!("text"))).collect();
    let schema = {
        let mut schema = schema;
        schema["allOf"].as_array_mut().unwrap().iter_mut().for_each(|it| it["minProperties"] = json!(0));
        compiled(&schema)
    };
    let refused = [SchemaViolation { pointer: Pointer::root(), kind: SchemaViolationKind::TooCostly }];
    assert_eq!(schema.faults(&Value::Object(fits.clone())), refused);
    let fewer: Map<_, _> = fits.into_iter().take(100).collect();
    assert_eq!(schema.faults(&Value::Object(fewer)), []);
}

/// Returns how many steps deciding takes.
fn steps(schema: &Schema, value: &Value) -> u64 {
    let takes = |most: u64| {
        let whole = MeteredValue::whole(value, &schema.0.prices);
        meter::within(most, || schema.0.decides.is_valid(whole)).is_some()
    };
    let (mut few, mut enough) = (0, DECIDING_STEPS_MAX);
    while few < enough {
        let middle = few.midpoint(enough);
        if takes(middle) { enough = middle } else { few = middle + 1 }
    }
    enough
}

#[test]
fn a_check_takes_the_same_steps_every_time_it_is_compiled() {
    let properties: Map<_, _> = (0..100).map(|it| (format!("k{it}"), json!({"type": "integer"}))).collect();
    let schema = json!({
        "properties": properties, "patternProperties": {"^x": {"type": "string"}}, "additionalProperties": false,
        "anyOf": [{"required": ["k1"]}, {"required": ["k2"]}],
    });
    let value: Map<_, _> = (0..100).map(|it| (format!("k{it}"), json!(it))).collect();
    let value = Value::Object(value);
    let first = steps(&compiled(&schema), &value);
    assert!((100..5_000).contains(&first), "{first}");
    (0..5).for_each(|_| assert_eq!(steps(&compiled(&schema), &value), first));
}

#[test]
fn everything_that_takes_long_takes_steps() {
    let items: Vec<_> = (0..1_000).collect();
    let listed: Vec<_> = items.iter().map(|it| json!([it, [it]])).collect();
    let text = "x".repeat(80_000);
    let forms: Vec<_> = (0..2_000).map(|it| json!({"const": it + 5_000})).collect();
    let idle = vec![json!({}); 8_000];
    let long: Vec<_> = vec![0; 10_000];
    let named = json!({"k".repeat(8_000): 1});
    for (schema, value, least) in [
        (json!({"items": {"enum": listed}}), json!(listed), 100_000),
        (json!({"items": {"allOf": idle}}), json!(items), 100_000),
        (json!({"anyOf": forms}), json!(1), 2_000),
        (json!({"allOf": [{"pattern": "^(x|y)*$"}, {"format": "uri-reference"}]}), json!(text), 20_000),
        (json!({"minLength": 1}), json!(text), 10_000),
        (json!({"const": long}), json!(long), 10_000),
        (json!({"uniqueItems": true}), json!([long, text]), 20_000),
        (json!({"propertyNames": {"pattern": "^k*$"}}), named, 1_000),
    ] {
        let steps = steps(&compiled(&schema), &value);
        assert!(steps >= least, "{steps} of {schema:.80}");
    }
}

#[test]
fn equal_items_are_found_by_value() {
    let schema = json!({"uniqueItems": true});
    for equal in [json!([1, 1.0]), json!([{"a": 1, "b": [2]}, {"b": [2.0], "a": 1}]), json!([[1, [2]], 0, [1, [2]]])] {
        assert_eq!(faults(&schema, &equal), [""], "{equal}");
    }
    for unique in [json!([]), json!([1, "1", true, null]), json!([[1, [2]], [[1], 2], [[1, 2]]])] {
        assert_eq!(faults(&schema, &unique), [""; 0], "{unique}");
    }
}

#[test]
fn what_an_error_copies_counts() {
    // Each error of `not` copies the schema that it excludes.
    let schema = json!({"items": {"not": {"minLength": 1, "x-note": "n".repeat(100_000)}}});
    assert_eq!(compiled(&schema).faults(&json!(vec![1; 5_000])), [SchemaViolation::unexplained()]);
    let short = json!({"items": {"not": {"minLength": 1}}});
    assert_eq!(compiled(&short).faults(&json!(vec![1; 5_000])).len(), 5_000);
}

#[test]
fn a_pattern_that_would_take_seconds_for_a_text_ends_the_check() {
    let digits: String =
        (0..700_000_u32).map(|it| if it.wrapping_mul(it).count_ones() % 2 == 0 { '0' } else { '1' }).collect();
    let refused = [SchemaViolation { pointer: Pointer::root(), kind: SchemaViolationKind::TooCostly }];
    for pattern in ["1(0|1){400}x[01]", "1[01]{3000}[a-c]+[01]", "(1[01]{200}|0[01]{300}){3}z[01]"] {
        let schema = compiled(&json!({"pattern": pattern}));
        assert_eq!(schema.faults(&json!(digits)), refused, "{pattern}");
        let short = digits.get(..300).unwrap();
        assert_eq!(
            schema.faults(&json!(short)),
            [SchemaViolation { pointer: Pointer::root(), kind: SchemaViolationKind::PatternUnmatched }]
        );
    }
}

#[test]
fn a_long_text_is_matched_where_the_automaton_decides_it() {
    let text = "Grüße an alle, und noch mehr. ".repeat(20_000);
    for (pattern, fits) in [
        ("^[^<>]*$", true),
        ("^[\\p{L}\\p{N} .,!?-]+$", true),
        ("^(a+)+$", false),
        ("mehr\\. $", true),
        ("^Gr", true),
        ("^(x|y)$", false),
        ("^\\S*$", false),
        ("\\bund\\b", true),
        ("^[\\s\\S]{1,1000}$", false),
    ] {
        let found = compiled(&json!({"pattern": pattern})).faults(&json!(text));
        let expected = if fits { Vec::new() } else { vec![SchemaViolationKind::PatternUnmatched] };
        assert_eq!(found.iter().map(|it| it.kind).collect::<Vec<_>>(), expected, "{pattern}");
    }
}

#[test]
fn as_many_texts_as_a_state_may_have_are_matched() {
    let schema = compiled(
        &json!({"items": {"pattern": "^[A-Z]{2}[0-9]{2}[A-Z0-9]{11,30}$|^[A-Za-z0-9 .,-]+$", "maxLength": 200}}),
    );
    let texts = vec!["Some words that somebody wrote, as long as a line is.".repeat(2); 9_000];
    assert_eq!(schema.faults(&json!(texts)), []);
}

#[test]
fn patterns_mean_what_they_mean_to_the_validator() {
    let patterns = [
        "a",
        "^a",
        "^a$",
        "^(a|bc)$",
        "^\\S*$",
        "\\d+",
        "^[\\w-]{2,4}$",
        "(?i)",
        "é",
        "^$",
        "\\u0041",
        "a{2}|^b",
        "[^a]",
    ];
    let texts = ["", "a", "abc", "bc", "a c", "12", "١٢", "É", "é", "A", "aa", "ab-c_d", "b\n", "a\u{feff}"];
    for pattern in patterns {
        let theirs =
            jsonschema::options().with_pattern_options(PatternOptions::regex()).build(&json!({"pattern": pattern}));
        let ours = compile(&json!({"pattern": pattern}).to_string());
        assert_eq!(theirs.is_ok(), ours.is_ok(), "{pattern}");
        let (Ok(theirs), Ok(ours)) = (theirs, ours) else { continue };
        for text in texts {
            assert_eq!(theirs.is_valid(&json!(text)), ours.faults(&json!(text)).is_empty(), "{pattern} of {text:?}");
        }
    }
}
