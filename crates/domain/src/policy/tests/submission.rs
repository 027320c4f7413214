//! Paths and tools that can never match: refused where they should restrict something, and reported elsewhere.

use crate::policy::{Policy, PolicyCode, PolicyError, PolicySource, PolicyWarning, PolicyWarningCode};

const CLOSED: &str = r##"{
  "type": "object",
  "additionalProperties": false,
  "properties": {
    "refund": {"type": "integer"},
    "payment": {"$ref": "#/$defs/payment"},
    "items": {"type": "array", "maxItems": 2, "items": {"$ref": "#/$defs/item"}},
    "pair": {"type": "array", "prefixItems": [{"type": "integer"}, {"$ref": "#/$defs/item"}], "items": false},
    "people": {"type": "object", "additionalProperties": {"$ref": "#/$defs/item"}},
    "tags": {"type": "object", "propertyNames": {"enum": ["red", "blue"]}},
    "codes": {"patternProperties": {"^c[0-9]+$": {"$ref": "#/$defs/item"}}, "additionalProperties": false},
    "either": {"anyOf": [{"$ref": "#/$defs/item"}, {"type": "object", "properties": {"card": {}}, "unevaluatedProperties": false}]},
    "merged": {"allOf": [{"properties": {"one": {}}}, {"properties": {"two": {}}}], "unevaluatedProperties": false},
    "chosen": {"if": {"required": ["kind"]}, "then": {"properties": {"kind": {}}}, "unevaluatedProperties": false},
    "fixed": {"enum": [{"mode": "a"}, null]},
    "open": {"type": "object", "properties": {"known": {"type": "object"}}},
    "tree": {"$ref": "#/$defs/tree"},
    "nothing": false
  },
  "$defs": {
    "payment": {"type": "object", "additionalProperties": false, "properties": {"amount": {"type": "number"}, "note": {"type": "string"}}},
    "item": {"type": "object", "additionalProperties": false, "properties": {"price": {"type": "number"}}},
    "tree": {"type": "object", "additionalProperties": false, "properties": {"value": {}, "next": {"$ref": "#/$defs/tree"}}}
  }
}"##;

fn submit(text: &str) -> Result<Vec<PolicyWarning>, PolicyError> {
    let text = format!("flow = \"f\"\n{text}\n[[approval.stages]]\ngroups = [\"finance\"]\n");
    let source = PolicySource { text, schemas: [("closed".to_owned(), CLOSED.to_owned())].into() };
    // Every policy here is one that a stored flow may have.
    Policy::compile(&source).unwrap();
    Policy::compile_submitted(&source).map(|it| it.warnings)
}

fn protecting(path: &str) -> Result<Vec<PolicyWarning>, PolicyError> {
    submit(&format!("schema = \"closed\"\nprotected = [\"{path}\"]\n[nodes.n]\nwrites = [\"$\"]"))
}

#[test]
fn paths_that_the_schema_can_hold_are_accepted() {
    for path in [
        "$",
        "refund",
        "$.payment.amount",
        "payment.*",
        "*.amount",
        "*",
        "items.0.price",
        "items.1",
        "items.*.price",
        "pair.0",
        "pair.1.price",
        "people.ada.price",
        "people.*.price",
        "tags.red",
        "codes.c12.price",
        "codes.*",
        "either.price",
        "either.card",
        "merged.one",
        "merged.two",
        "chosen.kind",
        "fixed.mode",
        "open.known",
        "tree.next.next.next.value",
    ] {
        assert_eq!(protecting(path), Ok(Vec::new()), "{path}");
    }
}

#[test]
fn protected_path_that_no_state_can_have_is_refused_with_the_nearest_name() {
    for (path, missing, meant) in [
        ("refnd", "`refnd`", "the nearest is `refund`"),
        ("payment.amuont", "`payment.amuont`", "the nearest is `payment.amount`"),
        ("paymnt.amount", "`paymnt`", "the nearest is `payment`"),
        ("payment.*.x", "`payment.*.x`", "remove it"),
        ("refund.amount", "`refund.amount`", "remove it"),
        ("refund.*", "`refund.*`", "remove it"),
        ("items.2", "`items.2`", "remove it"),
        ("items.price", "`items.price`", "remove it"),
        ("items.*.prise", "`items.*.prise`", "the nearest is `items.*.price`"),
        ("pair.2", "`pair.2`", "remove it"),
        ("people.ada.prise", "`people.ada.prise`", "the nearest is `people.ada.price`"),
        ("tags.reed", "`tags.reed`", "the nearest is `tags.red`"),
        ("codes.x1", "`codes.x1`", "remove it"),
        ("either.crad", "`either.crad`", "the nearest is `either.card`"),
        ("merged.three", "`merged.three`", "known: `merged.one`, `merged.two`"),
        ("chosen.kinds", "`chosen.kinds`", "the nearest is `chosen.kind`"),
        ("fixed.mood", "`fixed.mood`", "remove it"),
        ("tree.next.nxt", "`tree.next.nxt`", "the nearest is `tree.next.next`"),
        ("nothing", "`nothing`", ""),
    ] {
        let error = protecting(path).expect_err(path);
        assert_eq!((error.code, error.line), (PolicyCode::NeverMatches, 3), "{path}");
        assert!(error.message.starts_with(&format!("`protected[0]`: no state can have {missing}")), "{error}");
        assert!(error.message.ends_with(meant), "{error}");
    }
}

#[test]
fn hide_and_deny_are_checked_like_protected() {
    let hidden = submit("schema = \"closed\"\n[redaction]\nhide = [\"payment.crad\"]").unwrap_err();
    assert!(hidden.message.contains("`redaction.hide[0]`"), "{hidden}");
    let denied =
        submit("schema = \"closed\"\n[nodes.n]\nwrites = [\"$\"]\ndeny = [\"refund\", \"payment.nte\"]").unwrap_err();
    assert!(denied.message.contains("`nodes.n.deny[1]`") && denied.message.contains("`payment.note`"), "{denied}");
    assert_eq!([hidden.code, denied.code], [PolicyCode::NeverMatches; 2]);
}

#[test]
fn permissions_that_never_match_are_reported_and_not_refused() {
    let text = "schema = \"closed\"\n[nodes.n]\nreads = [\"refnd\"]\nwrites = [\"refund\", \"paymnt\"]\n\
                schema.properties.refund.type = \"integer\"\n[transitions]\nimmutable = [\"$.payment.amnt\"]";
    let warnings = submit(text).unwrap();
    let told: Vec<_> = warnings.iter().map(|it| (it.line, it.code, it.detail.split(':').next().unwrap())).collect();
    let never = PolicyWarningCode::NeverMatches;
    assert_eq!(
        told,
        [
            (4, never, "`nodes.n.reads[0]`"),
            (5, never, "`nodes.n.writes[1]`"),
            (5, never, "`nodes.n.writes[1]`"),
            (8, never, "`transitions.immutable[0]`"),
        ]
    );
    assert!(warnings[2].detail.contains("its own schema"), "{warnings:?}");
}

#[test]
fn open_schema_cannot_confirm_a_path() {
    let unconfirmed = |text: &str| {
        let told = submit(text).unwrap();
        assert!(told.iter().all(|it| it.code == PolicyWarningCode::UnconfirmedPath), "{told:?}");
        told.into_iter().map(|it| it.detail).collect::<Vec<_>>()
    };
    let schema = "schema.properties.refund.type = \"integer\"\n";
    let told =
        unconfirmed(&format!("{schema}protected = [\"refnd\"]\n[nodes.n]\nreads = [\"refund\"]\nwrites = [\"$\"]"));
    assert_eq!(told.len(), 1);
    assert!(told[0].starts_with("`protected[0]`") && told[0].ends_with("the nearest is `refund`"), "{told:?}");
    // A permission is reported only if it looks like a typing error.
    let told = unconfirmed(&format!("{schema}[nodes.n]\nreads = [\"refnd\"]\nwrites = [\"result\"]"));
    assert!(told.len() == 1 && told[0].starts_with("`nodes.n.reads[0]`"), "{told:?}");
    // Without a schema, the lists of the nodes are the only other place with names.
    for (lists, warned) in [
        ("reads = [\"refund\"]\nwrites = [\"refund\"]", 1),
        ("writes = [\"$\"]", 1),
        ("writes = [\"refnd\"]", 0),
        ("reads = [\"refnd.amount\"]", 0),
    ] {
        let told = unconfirmed(&format!("protected = [\"refnd\"]\n[nodes.n]\n{lists}"));
        assert_eq!(told.len(), warned, "{lists}: {told:?}");
    }
    let told = unconfirmed("[nodes.n]\nwrites = [\"payment\"]\ndeny = [\"paymnt.amount\", \"payment.amount\"]");
    assert!(told.len() == 1 && told[0].starts_with("`nodes.n.deny[0]`"), "{told:?}");
}

#[test]
fn rule_about_a_path_that_no_state_can_have_is_refused() {
    let rule = |path: &str, then: &str| {
        submit(&format!(
            "schema = \"closed\"\n[[rules]]\nwhen = \"change.path == '{path}'\"\nthen = \"{then}\"\nreason = \"r\""
        ))
    };
    assert_eq!(rule("/payment/amount", "hold"), Ok(Vec::new()));
    assert_eq!(rule("/payment/amuont", "warn"), Ok(Vec::new()));
    for then in ["hold", "deny"] {
        let error = rule("/payment/amuont", then).unwrap_err();
        assert_eq!(error.code, PolicyCode::NeverMatches);
        assert!(error.message.contains("`rules[0].when`") && error.message.contains("`amount`"), "{error}");
    }
}

#[test]
fn tools_that_no_list_allows_are_refused_where_they_restrict() {
    let text = |more: &str| format!("[nodes.n]\n[tools]\nallow = [\"refund\", \"crm.*\"]\n{more}");
    let rule = |tool: &str| {
        text(&format!("[[rules]]\ntools = [\"{tool}\"]\nwhen = \"true\"\nthen = \"hold\"\nreason = \"r\""))
    };
    for good in [text("deny = [\"*.delete\"]"), rule("refund"), rule("crm.delete"), rule("*")] {
        assert_eq!(submit(&good), Ok(Vec::new()), "{good}");
    }
    for (bad, key) in [(text("deny = [\"refnd\"]"), "`tools.deny[0]`"), (rule("refnd"), "`rules[0].tools[0]`")] {
        let error = submit(&bad).unwrap_err();
        assert_eq!(error.code, PolicyCode::NeverMatches);
        assert!(error.message.starts_with(key) && error.message.ends_with("the nearest is `refund`"), "{error}");
    }
    let told =
        submit(&text("hide = [\"amuont\"]\n[tools.refund]\nshow = [\"amount\"]\n[tools.refnd]\nrisk = \"high\""))
            .unwrap();
    let told: Vec<_> = told.iter().map(|it| it.detail.split(':').next().unwrap()).collect();
    assert_eq!(told, ["`tools.hide[0]`", "`tools.refnd`"]);
    let node = submit("[tools]\nallow = [\"refund\"]\n[nodes.n]\ntools = [\"refnd\"]").unwrap();
    assert!(node.len() == 1 && node[0].detail.starts_with("`nodes.n.tools[0]`"), "{node:?}");
    // Only the nodes have lists here.
    let error = submit("[nodes.n]\ntools = [\"refund\"]\n[tools]\ndeny = [\"refnd\"]").unwrap_err();
    assert_eq!(error.code, PolicyCode::NeverMatches);
}

#[test]
fn schema_that_takes_too_long_to_follow_counts_as_open() {
    // Each level offers two forms for the next one, so following all of them doubles the work at each level.
    let form = |kind: &str| format!(r##"{{"title": "{kind}", "properties": {{"a": {{"$ref": "#"}}}}}}"##);
    let schema = format!(r#"{{"anyOf": [{}, {}]}}"#, form("one"), form("other"));
    let path = "a.".repeat(60);
    let text =
        format!("flow = \"f\"\nschema = \"s\"\nprotected = [\"{path}b\"]\n[[approval.stages]]\ngroups = [\"g\"]");
    let source = PolicySource { text, schemas: [("s".to_owned(), schema)].into() };
    assert_eq!(Policy::compile_submitted(&source).unwrap().warnings.len(), 1);
}
