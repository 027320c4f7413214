use std::collections::{BTreeSet, HashMap};

use serde_json::{Value, json};

use super::cost_limit::{CostMeter, EvaluationError};
use super::eval::{RuleInputs, holds};
use super::parse::read;
use super::*;
use crate::policy::CallerContext;
use crate::primitives::id::NodeId;

fn object() -> Value {
    json!({
        "a": 1, "b": 2.5, "t": "Text", "yes": true, "no": false, "nil": null, "minus": -7,
        "list": [1, 2, 3], "mixed": [1, "x", null], "empty": [], "deep": {"x": {"y": "z"}}, "none": {},
        "items": [{"id": 1, "ok": true}, {"id": 2, "ok": false}], "big": 9_007_199_254_740_991_i64, "huge": 1e300,
    })
}

/// Returns whether a condition on `object` holds, or why not.
fn asked(when: &str) -> Result<bool, EvaluationError> {
    let expr = read(when).unwrap_or_else(|why| panic!("{when}: {why}"));
    let (before, after) = (json!({}), object());
    let scene =
        RuleInputs { before: &before, after: &after, change: None, node: "n", around: &RequestContext::default() };
    holds(&expr, scene, &mut CostMeter::new())
}

/// A JSON value in the crate's own kind, with the ints and doubles that rules have.
fn of_the_crate(value: &Value) -> cel::Value {
    match value {
        Value::Null => cel::Value::Null,
        Value::Bool(it) => (*it).into(),
        Value::Number(it) => it.as_i64().map_or_else(|| it.as_f64().unwrap().into(), Into::into),
        Value::String(it) => it.as_str().into(),
        Value::Array(it) => it.iter().map(of_the_crate).collect::<Vec<_>>().into(),
        Value::Object(it) => {
            it.iter().map(|(key, value)| (key.clone(), of_the_crate(value))).collect::<HashMap<_, _>>().into()
        }
    }
}

/// The same by the interpreter of the `cel` crate.
fn asked_of_the_crate(when: &str) -> Result<bool, ()> {
    let mut env = cel::Env::stdlib();
    env.add_extension(cel::extensions::strings).unwrap();
    let env = std::sync::Arc::new(env);
    let program = env.compile(when).unwrap();
    let mut context = cel::Context::with_env(env);
    context.add_variable_from_value("object", of_the_crate(&object()));
    match program.execute(&context) {
        Ok(cel::Value::Bool(it)) => Ok(it),
        _ => Err(()),
    }
}

#[test]
fn conditions_mean_what_the_crates_own_interpreter_says() {
    let table = include_str!("conditions.txt");
    let conditions: Vec<_> = table.lines().filter(|it| !it.is_empty() && !it.starts_with("//")).collect();
    let apart: Vec<_> = conditions.iter().filter(|it| asked(it).map_err(drop) != asked_of_the_crate(it)).collect();
    assert_eq!(apart, Vec::<&&str>::new());
    assert!(conditions.len() > 140, "{}", conditions.len());
}

#[test]
fn every_two_values_compare_as_the_crates_own_interpreter_says() {
    let values = [
        "1",
        "-1",
        "1.0",
        "2.5",
        "object.a",
        "object.b",
        "object.big",
        "object.huge",
        "'Text'",
        "object.t",
        "true",
        "false",
        "null",
        "object.nil",
        "object.list",
        "[1, 2, 3]",
        "[1.0, 2, 3]",
        "[]",
        "object.empty",
        "object.none",
        "object.deep",
        "object.items[0]",
        "9223372036854775807",
        "-9223372036854775807",
        "1.0 / 0.0",
    ];
    let mut apart = Vec::new();
    for (a, b) in values.iter().flat_map(|a| values.iter().map(move |b| (a, b))) {
        // Lists are not joined here, which the crate does.
        let joins = |it: &str| it.contains("list") || it.starts_with('[') || it.contains("empty");
        let arithmetic: &[&str] = if joins(a) { &[] } else { &["+", "-", "*", "/", "%"] };
        let compared = ["==", "!=", "<", "<=", ">", ">="].iter().map(|it| format!("{a} {it} {b}"));
        let computed = arithmetic.iter().map(|it| format!("({a} {it} {b}) == ({a} {it} {b})"));
        apart.extend(compared.chain(computed).filter(|it| asked(it).map_err(drop) != asked_of_the_crate(it)));
    }
    assert_eq!(apart, Vec::<String>::new());
}

/// The crate rounds to the nearest double. This implementation is exact.
#[test]
fn an_int_is_compared_with_a_double_exactly() {
    for (when, holds) in [
        ("9223372036854775807 == 9223372036854775807.0", false),
        ("9223372036854775807 < 9223372036854775807.0", true),
        ("9007199254740993 > 9007199254740992.0", true),
        ("-9223372036854775808 == -9223372036854775808.0", true),
        ("-9223372036854775808 > -1e300", true),
        ("3 < 3.5 && -3 > -3.5 && 3 > 2.5", true),
    ] {
        assert_eq!(asked(when), Ok(holds), "{when}");
    }
}

#[test]
fn what_has_no_value_is_an_error_and_never_a_no() {
    for when in [
        "object.missing == 1",
        "object.t > 1",
        "object.list[3] == 1",
        "object.list[-1] == 1",
        "object.a",
        "'yes'",
        "null",
        "object.t.x == 1",
        "has(object.t.x)",
        "has(object.missing.x)",
        "1 / 0 == 1",
        "9223372036854775807 + 1 > 0",
        "object.a + object.b > 1.0",
        "object.missing == 1 || false",
        "true && object.missing == 1",
        "object.yes ? object.missing : true",
        "object.mixed.all(x, x > 0)",
        "object.a.exists(x, x == 1)",
        "!object.a",
    ] {
        assert_eq!(asked(when), Err(EvaluationError::Failed), "{when}");
    }
    for when in ["principal.id == 'x'", "principal.owner == 'x'", "'n' in thread.committed_nodes"] {
        assert_eq!(asked(when), Err(EvaluationError::Unsupposed), "{when}");
    }
}

#[test]
fn what_is_not_understood_is_refused_by_name() {
    for (when, named) in [
        ("objet.a == 1", "`objet`"),
        ("x == 1", "`x`"),
        ("object.list.all(x, y > 1)", "`y`"),
        ("object.list.all(x, x > 1) && x == 1", "`x`"),
        ("change == 1", "change.path"),
        ("change.value == 1", "`change.value`"),
        ("has(change.value)", "`change.value`"),
        ("principal == 'x'", "principal.id"),
        ("principal.name == 'x'", "`principal.name`"),
        ("thread.version > 1", "`thread.version`"),
        ("has(thread.committed_nodes)", "always there"),
        ("object.t.matches('a+')", "`matches`"),
        ("timestamp(object.t) == timestamp(object.t)", "`timestamp`"),
        ("string(object.a) == '1'", "`string`"),
        ("object.t.size(1) == 1", "`size`"),
        ("size(object.a, object.b) == 1", "`size`"),
        ("lowerAscii(object.t) == 't'", "`lowerAscii`"),
        ("contains(object.t, 't')", "`contains`"),
        ("object.list.map(x, x) == []", "`map` and `filter`"),
        ("object.list.filter(x, x > 1) == []", "`map` and `filter`"),
        ("{'a': 1} == object", "maps"),
        ("object.a == 1u", "unsigned"),
        ("object.t == b'x'", "bytes"),
        ("object.list.all(object, true)", "`object`"),
        ("object.list.all(change, true)", "`change`"),
        ("object.list.all(int, true)", "`int`"),
        ("object.a ==", "line 1"),
        ("", "line 1"),
        ("object.a == 1 }", "line 1"),
        ("object.?a == 1", "not CEL"),
    ] {
        let why = read(when).expect_err(when);
        assert!(why.contains(named), "{when}: {why}");
    }
}

#[test]
fn a_condition_has_bounds_in_every_direction() {
    let long = format!("object.t == '{}'", "x".repeat(bounds::RULE_BYTES_MAX));
    let wide = format!("object.a in [{}]", vec!["1"; bounds::RULE_PARTS_MAX].join(","));
    let loops = "object.list.all(a, object.list.all(b, object.list.all(c, true)))";
    for (when, why) in [(long.as_str(), "bytes"), (&wide, "parts"), (loops, "in one another")] {
        assert!(read(when).expect_err(why).contains(why), "{why}");
    }
    assert!(read("object.list.all(a, object.list.all(b, true))").is_ok());
}

/// On the stack that a test has, in the build that takes most of it.
#[test]
fn what_is_nested_without_end_is_refused_and_breaks_nothing() {
    for (open, close) in [("(", ")"), ("[", "]"), ("{1:", "}"), ("size(", ")"), ("(true?true:", ")"), ("[')',(", ")]")]
    {
        for times in [bounds::RULE_BRACKETS_MAX + 1, 16, bounds::RULE_BYTES_MAX / (open.len() + close.len()) - 4] {
            let why = read(&format!("{}true{}", open.repeat(times), close.repeat(times))).expect_err(open);
            assert!(why.contains("brackets"), "{open}: {why}");
        }
    }
    for (open, close) in [("!", "true"), ("-", "1"), ("true?true:", "true"), ("(!true?!true:", "true))))))")] {
        for times in [6, 24, 48, 150] {
            _ = read(&format!("{}{close}", open.repeat(times)));
        }
    }
    for part in [".a", "[0]", ".size()", "&&true", "+1", "==1", "?true:true"] {
        _ = read(&format!("object{}", part.repeat((bounds::RULE_BYTES_MAX - 8) / part.len())));
    }
    assert_eq!(asked(&vec!["true"; 120].join(" && ")), Ok(true));
}

#[test]
fn brackets_are_counted_outside_of_texts_and_comments() {
    for (source, depth) in [
        ("a(b[c])", 2),
        ("a() && b()", 1),
        ("'((('", 0),
        ("(')', ('))', 1))", 2),
        (r"('\')', (1))", 2),
        (r"(r'', (1))", 2),
        (r#"("""a"b)""", (1))"#, 2),
        ("( // )\n (1))", 2),
    ] {
        assert_eq!(depth_limit::depth(source), depth, "{source}");
    }
}

#[test]
fn a_judgement_costs_no_more_than_it_may() {
    let state = json!({"l": (0..3_000).collect::<Vec<_>>()});
    let changes = [LeafChange { pointer: Pointer::root().child("l"), before: None, after: None }].map(Cow::Owned);
    let matter =
        RuleSubject { before: &state, after: &state, changes: &changes, node: "n", around: &RequestContext::default() };
    let rule = |when: &str| PolicyRule::new(when.to_owned(), when, RuleAction::Deny, "no".to_owned(), None).unwrap();
    let rules = [
        rule("object == oldObject && false"),
        rule("object.l.all(a, object.l.all(b, a + b >= 0))"),
        rule("false && object.l.all(a, true)"),
        rule("object.l == [1]"),
    ];
    let findings = ask(&rules, &matter, Pointer::clone);
    let failed: Vec<_> = findings.failed.iter().filter_map(|it| it.rule.as_deref()).collect();
    assert_eq!(failed, [&*rules[1].name, &rules[2].name, &rules[3].name], "and nothing after it comes for free");
    assert!(findings.denied.is_empty());
}

#[test]
fn what_is_spent_stays_spent() {
    let mut meter = CostMeter::new();
    assert_eq!(meter.text(&"x".repeat(bounds::RULE_STEPS_MAX * 40)), Err(EvaluationError::Spent));
    assert_eq!(meter.step(), Err(EvaluationError::Spent), "not even what would have fitted before");
}

#[test]
fn spent_steps_are_not_made_up_for_by_a_side_that_decides() {
    let state = json!({"l": (0..3_000).collect::<Vec<_>>()});
    let expr = read("object.l.all(a, object.l.all(b, true)) || true").unwrap();
    let scene =
        RuleInputs { before: &state, after: &state, change: None, node: "n", around: &RequestContext::default() };
    assert_eq!(holds(&expr, scene, &mut CostMeter::new()), Err(EvaluationError::Spent));
}

#[test]
fn a_rule_of_one_path_is_asked_for_that_path_alone() {
    for (when, path) in [
        ("change.path == '/a' && object.missing", Some("/a")),
        ("object.missing && ('/a' == change.path)", Some("/a")),
        ("object.a == 1 && (object.b == 2 && change.path == '/a')", Some("/a")),
        ("change.path == '/a' || object.a == 1", None),
        ("!(change.path == '/a')", None),
        ("change.path != '/a'", None),
        ("change.path.startsWith('/a')", None),
    ] {
        assert_eq!(read(when).unwrap().only_path(), path, "{when}");
    }
}

#[test]
fn the_askers_facts_are_what_they_are_called() {
    let nodes: BTreeSet<_> = ["approver", "planner"].map(|it| NodeId::try_from(it).unwrap()).into();
    let asker = CallerContext { principal: "token-1", owner: "team", committed_nodes: &nodes };
    let around = RequestContext::of(asker);
    let (before, after) = (json!({"v": 1}), json!({"v": 2}));
    let change = LeafChange { pointer: Pointer::root().child("v"), before: Some(json!(1)), after: None };
    for (when, holds_) in [
        ("principal.id == 'token-1' && principal.owner == 'team' && node == 'n'", true),
        ("'approver' in thread.committed_nodes && !('payer' in thread.committed_nodes)", true),
        ("thread.committed_nodes == ['approver', 'planner'] && size(thread.committed_nodes) == 2", true),
        ("thread.committed_nodes.exists(it, it.startsWith('app'))", true),
        ("oldObject.v == 1 && object.v == 2", true),
        ("change.path == '/v' && change.before == 1 && has(change.before) && !has(change.after)", true),
        ("type(change.before) == int && type(change.path) == string", true),
    ] {
        let expr = read(when).unwrap();
        let scene = RuleInputs { before: &before, after: &after, change: Some(&change), node: "n", around: &around };
        assert_eq!(holds(&expr, scene, &mut CostMeter::new()), Ok(holds_), "{when}");
    }
}
