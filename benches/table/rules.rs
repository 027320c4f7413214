//! Judging a request with rules: beside what the same costs without them, and on larger and larger states.

use std::collections::BTreeSet;
use std::hint::black_box;

use countersign_domain::guard::StateGuard;
use countersign_domain::json::patch::{Patch, PatchFormat};
use countersign_domain::json::size::StateLimits;
use countersign_domain::policy::{
    CallerContext, Judgement, Policy, PolicyRequest, PolicySource, RequestKind, judge_for,
};
use countersign_domain::primitives::id::NodeId;
use serde_json::{Value, json};

use super::documents::{micros, micros_of};
use super::speed::TURNS;
use super::{line, median};

const SCHEMA: &str = r#"{"type": "object", "additionalProperties": false, "properties": {
    "orders": {"type": "array", "items": {"type": "object", "additionalProperties": false, "properties": {
        "id": {"type": "integer"}, "name": {"type": "string", "maxLength": 500}, "email": {"type": "string", "maxLength": 80},
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

/// A state with so many orders, each with a name of at least so many bytes.
fn state(orders: i64, name_bytes: usize) -> Value {
    let order = |n: i64| {
        let name = format!("{:.<name_bytes$}", format!("Order number {n}"));
        // Amounts stay below what a rule looks for.
        json!({"id": n, "name": name, "email": format!("customer{n}@example.org"), "amount": n % 19 * 100 + 7, "active": n % 2 == 0})
    };
    json!({"orders": (0..orders).map(order).collect::<Vec<_>>(), "payment": {"amount": 10, "note": "none"}})
}

/// The agent that asks, on a policy's behalf.
struct RuleBenchAgent {
    node: NodeId,
    nodes: BTreeSet<NodeId>,
    limits: StateLimits,
}

impl RuleBenchAgent {
    fn new() -> Self {
        let node = NodeId::try_from("planner").unwrap();
        Self { node, nodes: BTreeSet::new(), limits: StateLimits::default() }
    }

    fn judged(&self, policy: &Policy, state: &Value, patch: &Patch) -> Judgement {
        let request = PolicyRequest { node: &self.node, kind: RequestKind::Propose { patch } };
        let asker = CallerContext { principal: "token", owner: "platform", committed_nodes: &self.nodes };
        judge_for(policy, black_box(state), &request, asker, &self.limits)
    }

    fn commits(&self, policy: &Policy, state: &Value, patch: &Patch) {
        let judged = self.judged(policy, state, patch);
        let Judgement::Reject { violations } = judged else { return };
        panic!("{violations:?}");
    }
}

fn merge_patch(request: Value) -> Patch {
    Patch::read(PatchFormat::MergePatch, request).unwrap()
}

fn two_changes() -> Patch {
    merge_patch(json!({"payment": {"amount": 4_000, "note": "two for one"}}))
}

pub fn measure() {
    beside_the_same_without();
    on_larger_states();
    through_unseen_places();
    on_longer_lists();
}

fn beside_the_same_without() {
    let (with, without, state, asking) = (policy(&rules()), policy(""), state(19, 0), RuleBenchAgent::new());
    assert_eq!(rules().matches("[[rules]]").count(), 20);
    let (text, patch) = (serde_json::to_vec(&state).unwrap(), two_changes());
    for policy in [&with, &without] {
        asking.commits(policy, &state, &patch);
    }
    let time = |policy: &Policy| micros(|| drop(black_box(asking.judged(policy, &state, &patch))));
    let parse = || micros(|| drop(black_box(serde_json::from_slice::<Value>(black_box(&text)).unwrap())));
    let turns: Vec<[f64; 3]> = (0..TURNS).map(|_| [time(&with), time(&without), parse()]).collect();
    let [with, without, parse] = [0, 1, 2].map(|at| median(turns.iter().map(|it| it[at]).collect()));
    let ratio = median(turns.iter().map(|it| it[0] / it[2]).collect());
    let bytes = text.len();
    let what = format!("judging two changes to {bytes} bytes with a schema and 20 rules, and without the rules");
    line(&what, &format!("{with:.1} µs, {without:.1} µs without"), "≤ 50 µs");
    let what = format!("the same with the rules ÷ serde_json's parse of the {bytes} bytes");
    line(&what, &format!("{ratio:.2}× ({with:.1} against {parse:.1} µs)"), "");
}

/// About 2 KB, 64 KB and 1 MB: as many orders as there may be leaves for.
const ORDERS: [i64; 3] = [4, 122, 1_950];

/// What one order is long, so that so many of them are a megabyte.
const NAME_BYTES: usize = 430;

fn on_larger_states() {
    let (policy, asking) = (policy(&rules()), RuleBenchAgent::new());
    let states = ORDERS.map(|orders| state(orders, NAME_BYTES));
    let all_of = |state: &Value| {
        let mut orders = state["orders"].clone();
        for object in orders.as_array_mut().unwrap() {
            object["name"] = json!(format!("{:-<NAME_BYTES$}", ""));
            object["email"] = json!("somebody@example.org");
            object["amount"] = json!(8);
            object["active"] = json!(object["active"] == false);
        }
        merge_patch(json!({ "orders": orders }))
    };
    for (what, patches) in [
        ("judging two changes with 20 rules", states.each_ref().map(|_| two_changes())),
        ("judging changes everywhere with 20 rules", states.each_ref().map(all_of)),
    ] {
        let sized = |at: usize| (&states[at], &patches[at], serde_json::to_vec(&states[at]).unwrap().len());
        let sized = [0, 1, 2].map(sized);
        for (state, patch, _) in sized {
            asking.commits(&policy, state, patch);
        }
        let per_kb = sized.map(|(state, patch, bytes)| {
            let each = |_| {
                micros_of(WORK_BYTES / bytes, || drop(black_box(asking.judged(&policy, state, patch)))) * 1024.0
                    / bytes as f64
            };
            median((0..TURNS).map(each).collect())
        });
        let sizes = sized.map(|it| it.2 / 1024);
        level(&format!("{what}, per KB at {}, {} and {} KB", sizes[0], sizes[1], sizes[2]), "KB", per_kb);
    }
}

/// What is judged in one turn.
const WORK_BYTES: usize = 20 * 1024 * 1024;

/// Places that a request goes through; the most that a state has leaves for.
const PLACES: [usize; 3] = [600, 2_400, 9_600];

/// Places that are judged in one turn.
const WORK_PLACES: usize = 50_000;

/// The worst that a request can be: what stands in its way, where its node cannot look, is replaced at each place.
fn through_unseen_places() {
    let text = "flow = \"orders\"\n[nodes.planner]\nwrites = [\"notes\"]\n".to_owned();
    let policy = Policy::compile(&PolicySource { text, ..PolicySource::default() }).unwrap();
    let asking = RuleBenchAgent::new();
    let notes = |places: usize, note: &Value| {
        let members = (0..places).map(|n| (format!("note-{n}"), note.clone()));
        json!({"notes": members.collect::<serde_json::Map<_, _>>()})
    };
    let per_place = PLACES.map(|places| {
        let (state, patch) = (notes(places, &json!(1)), merge_patch(notes(places, &json!({"text": "x"}))));
        asking.commits(&policy, &state, &patch);
        let work = || drop(black_box(asking.judged(&policy, &state, &patch)));
        let each = |_| micros_of(WORK_PLACES / places, work) / places as f64;
        median((0..TURNS).map(each).collect())
    });
    let [a, b, c] = PLACES;
    level(
        &format!("judging a merge patch through places that its node cannot see, per place at {a}, {b} and {c}"),
        "place",
        per_place,
    );
}

/// Keyed items of the state guard.
const ITEMS: [usize; 3] = [100, 1_000, 10_000];

/// Items that are judged in one turn.
const WORK_ITEMS: usize = 200_000;

fn on_longer_lists() {
    let schema = br#"{"type": "object", "properties": {"tasks": {"type": "array", "items": {"type": "object",
        "additionalProperties": true, "properties": {}}}}, "additionalProperties": false}"#;
    let rules = br#"{"keyed_object_array_paths": {"$.tasks": {"key": "id", "monotonic_boolean_fields": ["done"]}}}"#;
    let guard = StateGuard::new(schema, Some(rules)).unwrap();
    let list = |items: usize, done: bool| {
        let item = |n: usize| json!({"id": format!("task-{n}"), "title": "Call back", "done": done});
        serde_json::to_vec(&json!({"tasks": (0..items).map(item).collect::<Vec<_>>()})).unwrap()
    };
    let per_item = ITEMS.map(|items| {
        let (before, after) = (list(items, false), list(items, true));
        assert_eq!(guard.transition(&before, &after).err(), None);
        let each =
            |_| micros_of(WORK_ITEMS / items, || drop(black_box(guard.transition(&before, &after)))) / items as f64;
        median((0..TURNS).map(each).collect())
    });
    let [a, b, c] = ITEMS;
    level(
        &format!("the state guard on keyed lists, each item changed, per item at {a}, {b} and {c}"),
        "item",
        per_item,
    );
}

/// What each of a unit costs on three sizes; level is linear.
fn level(what: &str, unit: &str, cost: [f64; 3]) {
    let [small, middle, large] = cost;
    let ratios = format!("{:.2}× and {:.2}× of the smallest", middle / small, large / small);
    line(what, &format!("{small:.2}, {middle:.2} and {large:.2} µs a {unit}: {ratios}"), "level");
}
