//! Reading a state strictly, beside reading it at all.

use std::collections::BTreeMap;
use std::hint::black_box;

use countersign_domain::chain::hash::{Digest, Tag};
use countersign_domain::json::canonical::canonical;
use countersign_domain::json::parse::{ParseLimits, parse};
use countersign_domain::json::size::StateLimits;
use countersign_domain::policy::{Policy, judge_initial};

use countersign_adapters::clock::{Clock as _, SystemClock};

use super::speed::TURNS;
use super::{gateway, line, median};

/// Documents of one turn.
const DOCUMENTS: usize = 20_000;

pub fn micros(work: impl Fn()) -> f64 {
    micros_of(DOCUMENTS, work)
}

/// Microseconds that each of so many takes.
pub fn micros_of(times: usize, work: impl Fn()) -> f64 {
    let begin = SystemClock.instant();
    for _ in 0..times {
        work();
    }
    SystemClock.instant().duration_since(begin).as_secs_f64() * 1e6 / times as f64
}

/// A state of about 2 KB with many members, as an agent keeps it.
fn document() -> (Policy, Vec<u8>) {
    let schema = r#"{"type": "object", "additionalProperties": false, "required": ["customers"], "properties": {"customers": {"type": "array",
        "items": {"type": "object", "additionalProperties": false, "properties": {"id": {"type": "integer"}, "name": {"type": "string", "maxLength": 80},
        "email": {"type": "string", "maxLength": 80}, "amount": {"type": "number"}, "active": {"type": "boolean"}}}}}}"#;
    let text = "flow = \"customers\"\nschema = \"customers.schema.json\"\ntrust_initial = true\n\n\
        [nodes.planner]\nreads = [\"customers\"]\nwrites = [\"customers\"]\n\n\
        [approval]\n[[approval.stages]]\ngroups = [\"reviewers\"]\nneed = 1\n";
    let mut source = gateway::source(text);
    source.schemas = BTreeMap::from([("customers.schema.json".to_owned(), schema.to_owned())]);
    let customers: Vec<_> = (0..19)
        .map(|n| {
            serde_json::json!({"id": n, "name": format!("Customer number {n}"), "email": format!("customer{n}@example.org"), "amount": f64::from(n) + 0.25, "active": n % 2 == 0})
        })
        .collect();
    (Policy::compile(&source).unwrap(), serde_json::to_vec(&serde_json::json!({"customers": customers})).unwrap())
}

pub fn measure() {
    let (policy, text) = document();
    let (limits, state_limits) = (ParseLimits::default(), StateLimits::default());
    let plain = || drop(black_box(serde_json::from_slice::<serde_json::Value>(black_box(&text)).unwrap()));
    let strict = || {
        let state = parse(black_box(&text), &limits).unwrap();
        black_box(judge_initial(&policy, &state, &state_limits).is_ok());
        black_box(Digest::of(Tag::Patch, &[canonical(&state).as_bytes()]));
    };
    let pairs: Vec<(f64, f64)> = (0..TURNS).map(|_| (micros(plain), micros(strict))).collect();
    let ratio = median(pairs.iter().map(|(plain, strict)| strict / plain).collect());
    let (plain, strict) =
        (median(pairs.iter().map(|it| it.0).collect()), median(pairs.iter().map(|it| it.1).collect()));
    let what = format!("strict parse, schema, canonical form and hash of {} bytes ÷ serde_json's parse", text.len());
    line(&what, &format!("{ratio:.2}× ({strict:.1} against {plain:.1} µs)"), "≤ 2.5×");
}
