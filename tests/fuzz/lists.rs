//! The promises of a judgement under lists of every shape, over few names, so that lists, states and requests meet.

use countersign_domain::policy::{Policy, PolicySource};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use serde_json::{Value, json};

use crate::targets::judgements;

const KEYS: &[&str] = &["a", "b", "0"];

/// No pattern names one item of a list: items move, and the names below a redacted item move with them.
const PATTERNS: &[&str] = &["a", "b", "0", "a.b", "a.a", "a.*", "b.*", "a.b.a", "a.*.b", "*.b", "*.a.b"];

fn value() -> impl Strategy<Value = Value> {
    let scalar = prop_oneof![
        2 => select(vec!["x", "y", ""]).prop_map(Value::from),
        1 => select(vec![json!(null), json!(1), json!({}), json!([])]),
    ];
    scalar.prop_recursive(
        3,
        12,
        3,
        |inner| prop_oneof![1 => vec(inner.clone(), 1..4).prop_map(Value::Array), 2 => object_of(inner)],
    )
}

fn object_of(inner: impl Strategy<Value = Value>) -> impl Strategy<Value = Value> {
    btree_map(select(KEYS).prop_map(str::to_owned), inner, 0..3).prop_map(|it| Value::Object(it.into_iter().collect()))
}

fn pointer() -> impl Strategy<Value = String> {
    let token = prop_oneof![9 => select(KEYS), 1 => Just("-")];
    vec(token, 0..4).prop_map(|tokens| tokens.iter().map(|it| format!("/{it}")).collect())
}

fn step() -> impl Strategy<Value = Value> {
    let op = select(vec!["add", "remove", "replace", "move", "copy", "test"]);
    (op, pointer(), pointer(), value()).prop_map(|(op, path, from, value)| match op {
        "remove" => json!({"op": op, "path": path}),
        "move" | "copy" => json!({"op": op, "path": path, "from": from}),
        _ => json!({"op": op, "path": path, "value": value}),
    })
}

fn request() -> impl Strategy<Value = Value> {
    prop_oneof![object_of(value()), vec(step(), 1..4).prop_map(Value::Array)]
}

fn patterns(most: usize) -> impl Strategy<Value = Vec<&'static str>> {
    subsequence(PATTERNS, 0..=most)
}

fn policy() -> impl Strategy<Value = Policy> {
    let writes = prop_oneof![3 => patterns(6), 1 => Just(vec!["$"])];
    let reads = prop_oneof![3 => patterns(6), 1 => Just(vec!["$"])];
    (reads, writes, patterns(2), patterns(2), patterns(3)).prop_map(|(reads, writes, deny, protected, hide)| {
        let text = format!(
            "flow = \"f\"\nprotected = {protected:?}\n[nodes.n]\nreads = {reads:?}\nwrites = {writes:?}\ndeny = {deny:?}\n\
             [redaction]\nhide = {hide:?}\n[[approval.stages]]\ngroups = [\"people\"]\n"
        );
        Policy::compile(&PolicySource { text, ..PolicySource::default() }).expect("lists of patterns are a policy")
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_048, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn judgements_hold_the_promises_for_lists(policy in policy(), state in object_of(value()), request in request()) {
        judgements::promises(&policy, &state, &request);
    }
}
