//! Judging a request with rules, beside what the same costs without them.

use std::collections::BTreeSet;
use std::hint::black_box;

use countersign::domain::id::NodeId;
use countersign::domain::json::patch::{Format, Patch};
use countersign::domain::json::size::StateLimits;
use countersign::domain::policy::{Asker, Policy, PolicySource, Request, RequestKind, judge_for};
use serde_json::{Value, json};

use super::documents::micros;
use super::speed::TURNS;
use super::{line, median};

const SCHEMA: &str = r#"{"type": "object", "additionalProperties": false, "properties": {
    "orders": {"type": "array", "items": {"type": "object", "additionalProperties": false, "properties": {
        "id": {"type": "integer"}, "name": {"type": "string", "maxLength": 80}, "email": {"type": "string", "maxLength": 80},
        "amount": {"type": "number"}, "active": {"type": "boolean"}}}},
    "payment": {"type": "object", "properties": {"amount": {"type": "number"}, "note": {"type": "string"}}},
    "draft": {"type": "string"}}}"#;

/// Twenty rules as people write them: of one path, of many, of the whole state, and of who asks.
fn rules() -> String {
    let of_a_path =
        (0..8).map(|n| format!("change.path == '/payment/amount' && object.payment.amount > {}", 5_000 + n));
    let of_texts = ["password", "secret", "ignore previous"].map(|it| {
        format!("has(change.after) && type(change.after) == string && change.after.lowerAscii().contains('{it}')")
    });
    let others = [
        "change.path.startsWith('/orders/') && change.path.endsWith('/id')",
        "change.path == '/draft' && !('approver' in thread.committed_nodes)",
        "principal.owner != 'platform' && node == 'planner'",
        "size(object.orders) < size(oldObject.orders)",
        "object.orders.exists(it, it.amount > 100000)",
        "object.orders.exists(it, !has(it.id))",
        "object.payment.amount != oldObject.payment.amount && double(object.payment.amount) > 10000.0",
        "node in ['nobody', 'stranger']",
        "!(change.path.startsWith('/orders/') || change.path.startsWith('/payment/') || change.path == '/draft')",
    ];
    let conditions = of_a_path.chain(of_texts).chain(others.map(str::to_owned));
    conditions.map(|it| format!("[[rules]]\nwhen = {it:?}\nthen = \"deny\"\nreason = \"a bench\"\n")).collect()
}

fn policy(rules: &str) -> Policy {
    let text = format!(
        "flow = \"orders\"\nschema = \"orders\"\n[nodes.planner]\nreads = [\"orders\", \"payment\"]\n\
         writes = [\"orders\", \"payment\", \"draft\"]\n{rules}"
    );
    Policy::compile(&PolicySource { text, schemas: [("orders".to_owned(), SCHEMA.to_owned())].into() }).unwrap()
}

fn state() -> Value {
    let order = |n: i64| json!({"id": n, "name": format!("Order number {n}"), "email": format!("customer{n}@example.org"), "amount": n * 100 + 7, "active": n % 2 == 0});
    json!({"orders": (0..19).map(order).collect::<Vec<_>>(), "payment": {"amount": 10, "note": "none"}})
}

pub fn measure() {
    let (with, without, state, limits) = (policy(&rules()), policy(""), state(), StateLimits::default());
    assert_eq!(rules().matches("[[rules]]").count(), 20);
    let bytes = serde_json::to_vec(&state).unwrap().len();
    let patch = json!({"payment": {"amount": 4_000, "note": "two for one"}});
    let patch = Patch::read(Format::MergePatch, patch).unwrap();
    let (node, nodes) = (NodeId::try_from("planner").unwrap(), BTreeSet::new());
    let judged = |policy: &Policy| {
        let request = Request { node: &node, kind: RequestKind::Propose { patch: &patch } };
        let asker = Asker { principal: "token", owner: "platform", committed_nodes: &nodes };
        judge_for(policy, black_box(&state), &request, asker, &limits)
    };
    for policy in [&with, &without] {
        let judged = judged(policy);
        assert!(matches!(judged, countersign::domain::policy::Judgement::Commit { .. }), "{judged:?}");
    }
    let time = |policy: &Policy| micros(|| drop(black_box(judged(policy))));
    let pairs: Vec<(f64, f64)> = (0..TURNS).map(|_| (time(&with), time(&without))).collect();
    let [with, without] =
        [|it: &(f64, f64)| it.0, |it: &(f64, f64)| it.1].map(|it| median(pairs.iter().map(it).collect()));
    let what = format!("judging two changes to {bytes} bytes with a schema and 20 rules, and without the rules");
    line(&what, &format!("{with:.1} µs, {without:.1} µs without"), "≤ 50 µs");
}
