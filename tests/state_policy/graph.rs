//! Graphs of nodes in sequence. Their runtime does only what the rejection instructs.

use countersign_domain::json::diff::leaves;
use countersign_domain::policy::{Instruction, OnViolation, Policy};
use serde_json::{Value, json};

use crate::CaseOutcome;
use crate::said::{TranslatedPolicy, compile, reason, write};

/// Behavior of a node in one call.
#[derive(Clone, Copy)]
enum NodeBehavior {
    Sends(&'static str),
    /// It ends with an error of its own, and sends nothing.
    Throws,
}

const DENIED: NodeBehavior = NodeBehavior::Sends(r#"{"payment":{"confirmed":true}}"#);
const CLEAN: NodeBehavior = NodeBehavior::Sends(r#"{"ticket":{"draft":"ok"}}"#);
const MIXED: NodeBehavior = NodeBehavior::Sends(r#"{"ticket":{"draft":"ok"},"payment":{"confirmed":true}}"#);
const TYPED: &str = "[schema.properties.ticket.properties.draft]\ntype = \"string\"\n";

/// Nodes in their order, each with what it does at the first call, the second, and so on.
fn nodes(name: &str) -> Vec<&'static [NodeBehavior]> {
    match name {
        it if it.starts_with("denied_first_node_") || it.starts_with("explicit_retry_") => vec![&[DENIED]],
        it if it.starts_with("denied_then_clean_") => vec![&[DENIED, CLEAN]],
        it if it.starts_with("node_throws_then_ok_") => vec![&[NodeBehavior::Throws, CLEAN]],
        it if it.starts_with("mixed_") => vec![&[MIXED]],
        "skip_retains_earlier_updates" => vec![&[NodeBehavior::Sends(r#"{"ticket":{"draft":"first"}}"#)], &[DENIED]],
        // Their map cannot hold null: the node fails before it has anything to send.
        "null_update_value" => vec![&[NodeBehavior::Throws]],
        "wrong_type_value" | "wrong_type_value_skip" => vec![&[NodeBehavior::Sends(r#"{"ticket":{"draft":1}}"#)]],
        "policy_throws" | "policy_throws_skip" | "policy_null_reason" => {
            vec![&[NodeBehavior::Sends(r#"{"ticket":{"draft":"v"}}"#)]]
        }
        "deny_all_no_updates" => vec![&[NodeBehavior::Sends("{}")]],
        "same_name_two_types_allowed" => vec![&[NodeBehavior::Sends(r#"{"k":true,"k":"s"}"#)]],
        "interrupted_with_denied_update" => vec![&[DENIED]],
        // A failed result is the runtime's to see; what it carries is never sent.
        "error_result_with_denied_update" => vec![&[NodeBehavior::Throws]],
        other => panic!("no such case: {other}"),
    }
}

/// Returns the state's leaves and the number of calls of each node at the end of a graph, or the reason of its
/// failure.
pub fn run(case: &Value) -> (CaseOutcome, CaseOutcome) {
    let name = case["name"].as_str().unwrap();
    let said = TranslatedPolicy::read(case["policy"].as_str().unwrap());
    let on_violation = case["errorPolicy"].as_str().unwrap().to_lowercase();
    let schema = if name.starts_with("wrong_type") { TYPED } else { "" };
    let text = format!("flow = \"f\"\non_violation = {on_violation:?}\n{schema}{}{}", said.node("n"), said.rules());
    let ours = match compile(&text) {
        Ok(policy) => ended(&policy, &nodes(name)),
        Err(error) => Err(error.code.to_string()),
    };
    (seen(&case["expect"]), ours)
}

fn ended(policy: &Policy, nodes: &[&[NodeBehavior]]) -> CaseOutcome {
    let (mut state, mut calls) = (json!({}), 0_usize);
    for turns in nodes {
        let mut rejected = 0;
        for turn in 0.. {
            calls += 1;
            let (instruction, why) = match turns.get(turn).or(turns.last()).unwrap() {
                NodeBehavior::Throws => (of_a_throw(policy.on_violation(), turn), "the node threw".to_owned()),
                NodeBehavior::Sends(_) if policy.on_violation().is_exhausted(rejected) => {
                    panic!("a runtime that does as it is told never gets here")
                }
                NodeBehavior::Sends(update) => match write(policy, "n", &state, update) {
                    Ok(after) => {
                        state = after.expect("nothing is protected");
                        break;
                    }
                    Err(why) => {
                        rejected += 1;
                        (policy.on_violation().instruction(rejected), why)
                    }
                },
            };
            match instruction {
                Instruction::Stop | Instruction::NoMoreTries => return Err(why),
                Instruction::SkipNode => break,
                Instruction::RetryOnce => {}
            }
        }
    }
    Ok(format!("{}; calls {calls}", names(&state)))
}

/// Returns the instruction after a node throws. No policy judges it: their runtime applies the same error policy.
fn of_a_throw(on_violation: OnViolation, turn: usize) -> Instruction {
    match on_violation {
        OnViolation::FailFast => Instruction::Stop,
        OnViolation::SkipNode => Instruction::SkipNode,
        OnViolation::RetryOnce if turn == 0 => Instruction::RetryOnce,
        OnViolation::RetryOnce => Instruction::NoMoreTries,
    }
}

fn names(state: &Value) -> String {
    let named = leaves(state).into_iter().filter(|(at, _)| !at.as_str().is_empty()).map(|(at, value)| {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        format!("{}={value}", at.tokens().collect::<Vec<_>>().join("."))
    });
    named.collect::<Vec<_>>().join(", ")
}

/// From `{a.b:Type=value, …} messages=2`.
fn seen(expect: &Value) -> CaseOutcome {
    if expect["cause"] == "StatePolicyViolation" {
        return Err(reason(expect["violationReason"].as_str().unwrap()));
    }
    if expect["hasError"] == true {
        return Err("the node threw".to_owned());
    }
    if let Some(raised) = expect["invokeThrows"].as_str() {
        return Err(raised.to_owned());
    }
    let seen = expect["stateSeenByTail"].as_str().unwrap();
    let inside = seen.strip_prefix('{').and_then(|it| it.split_once('}')).unwrap().0;
    let mut named: Vec<_> = inside.split(", ").filter(|it| !it.is_empty()).collect();
    named.sort_unstable();
    let named = named.into_iter().map(|it| {
        let (key, value) = it.split_once('=').unwrap();
        format!("{}={value}", key.split_once(':').unwrap().0)
    });
    let calls: u64 = expect["calls"].as_object().unwrap().values().filter_map(Value::as_u64).sum();
    Ok(format!("{}; calls {calls}", named.collect::<Vec<_>>().join(", ")))
}
