//! Merging as many branches as there may be, as large as they may be, beside comparing each of them with what it was made of.

use std::hint::black_box;

use countersign_domain::policy::Policy;
use countersign_domain::primitives::id::BranchName;
use countersign_domain::threads::branch::{BRANCHES_MAX, Strategy};
use countersign_domain::threads::join::{BranchState, JoinOptions, Resolutions, changed, join};
use serde_json::{Value, json};

use super::documents::micros_of;
use super::speed::TURNS;
use super::{gateway, line, median};

/// Merges of one turn.
const MERGES: usize = 3;

/// Objects of a state, each with as many leaves: 10,000 in all.
const PARTS: usize = 100;

fn state() -> Value {
    let part = |_| (0..PARTS).map(|leaf| (format!("leaf{leaf}"), json!(leaf))).collect::<serde_json::Map<_, _>>();
    (0..PARTS).map(|it| (format!("part{it}"), Value::Object(part(it)))).collect::<serde_json::Map<_, _>>().into()
}

/// Every branch changes a part of its own.
fn branch(number: usize) -> Value {
    let mut state = state();
    for leaf in state[format!("part{number}")].as_object_mut().unwrap().values_mut() {
        *leaf = json!("found");
    }
    state
}

pub fn measure() {
    let text = "flow = \"f\"\n[nodes.n]\nreads = [\"$\"]\n";
    let policy = Policy::compile(&gateway::source(text)).unwrap();
    let base = state();
    let count = BRANCHES_MAX as usize;
    let names: Vec<BranchName> = (0..count).map(|it| format!("b{it}").as_str().try_into().unwrap()).collect();
    let states: Vec<Value> = (0..count).map(branch).collect();
    let sides: Vec<BranchState<'_>> =
        names.iter().zip(&states).map(|(name, state)| BranchState { name, state, confidence: 0 }).collect();
    let resolutions = Resolutions::default();
    let how = || JoinOptions { strategy: Strategy::Union, policy: &policy, resolutions: &resolutions };
    let compared = || drop(black_box(changed(black_box(&base), states.iter())));
    let merged = || drop(black_box(join(black_box(&base), &sides, how()).unwrap()));
    let turn = || (micros_of(MERGES, compared), micros_of(MERGES, merged));
    let pairs: Vec<(f64, f64)> = (0..TURNS).map(|_| turn()).collect();
    let ratio = median(pairs.iter().map(|(compared, merged)| merged / compared).collect());
    let middle = |of: fn(&(f64, f64)) -> f64| median(pairs.iter().map(of).collect()) / 1_000.0;
    let what = format!("merging {count} branches of 10,000 leaves ÷ comparing each with the fork point");
    let told = format!("{ratio:.2}× ({:.0} against {:.0} ms)", middle(|it| it.1), middle(|it| it.0));
    line(&what, &told, "≤ 10×");
}
