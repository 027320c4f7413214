//! A proposal that fits none of the forms of a schema, beside one that the same policy refuses for another reason.

use std::hint::black_box;

use countersign_domain::json::patch::{Patch, PatchFormat};
use countersign_domain::json::size::StateLimits;
use countersign_domain::policy::{Judgement, Policy, PolicyRequest, PolicySource, RequestKind, judge};
use countersign_domain::primitives::id::NodeId;
use serde_json::{Value, json};

use super::documents::micros_of;
use super::speed::TURNS;
use super::{line, median};

/// Kinds of events that the schema knows.
const KINDS: usize = 20;

/// Judgements of one turn.
const JUDGEMENTS: usize = 200;

/// A list of events of many kinds, each with members of its own.
fn schema() -> Value {
    let form = |kind: usize| {
        json!({"additionalProperties": {"type": "integer"}, "required": ["kind"],
            "properties": {"kind": {"const": format!("kind{kind}")}, "note": {"type": "string", "maxLength": 200}}})
    };
    json!({"properties": {"events": {"items": {"anyOf": (0..KINDS).map(form).collect::<Vec<_>>()}}}})
}

fn event(kind: usize, members: usize) -> Value {
    let mut event: Value =
        (0..members).map(|it| (format!("m{it}"), json!(it))).collect::<serde_json::Map<_, _>>().into();
    event["kind"] = json!(format!("kind{}", kind % KINDS));
    event["note"] = json!("as it should be");
    event
}

fn policy() -> Policy {
    let text =
        "flow = \"f\"\nschema = \"s\"\n[nodes.n]\nreads = [\"events\", \"owner\"]\nwrites = [\"events\"]\n".to_owned();
    Policy::compile(&PolicySource { text, schemas: [("s".to_owned(), schema().to_string())].into() }).unwrap()
}

pub fn measure() {
    let (policy, node) = (policy(), NodeId::try_from("n").unwrap());
    for members in [5, 200] {
        let events: Vec<_> = (0..50).map(|kind| event(kind, members)).collect();
        let state = json!({"events": events, "owner": "ada"});
        let unfit = {
            let mut events = events.clone();
            events[7]["m1"] = json!("no integer");
            json!({"events": events})
        };
        let elsewhere = json!({"events": events, "owner": "ben"});
        let [unfit, elsewhere] = [unfit, elsewhere].map(|it| Patch::read(PatchFormat::MergePatch, it).unwrap());
        let judged = |patch| {
            let request = PolicyRequest { node: &node, kind: RequestKind::Propose { patch } };
            let judged = judge(&policy, black_box(&state), &request, &StateLimits::default());
            assert!(matches!(judged, Judgement::Reject { .. }), "{judged:?}");
        };
        let turn = |_| (micros_of(JUDGEMENTS, || judged(&unfit)), micros_of(JUDGEMENTS, || judged(&elsewhere)));
        let pairs: Vec<(f64, f64)> = (0..TURNS).map(turn).collect();
        let ratio = median(pairs.iter().map(|(unfit, elsewhere)| unfit / elsewhere).collect());
        let middle = |of: fn(&(f64, f64)) -> f64| median(pairs.iter().map(of).collect());
        let what = format!("refusing an event of {members} members that fits none of {KINDS} forms ÷ refusing a write");
        let told = format!("{ratio:.2}× ({:.0} against {:.0} µs)", middle(|it| it.0), middle(|it| it.1));
        line(&what, &told, "≤ 3×");
    }
}
