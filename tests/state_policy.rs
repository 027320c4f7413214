//! StatePolicy (agentflow4j 0.6.0): all its cases, each translated into a policy of Countersign and judged by it.
//!
//! A key such as `payment.confirmed` is one name there and a path here. An allow-list is a node's `writes`, a
//! deny-list its `deny`, ALLOW_ALL is `writes = ["$"]`, DENY_ALL a node without `writes`, `when` a rule that denies,
//! and `a.and(b)` a node with both. A case that differs is listed by name with a reason. It may be stricter than the
//! observed behaviour. Otherwise it must do what StatePolicy's own page or its own checks say.

#![expect(
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test reports, and one that cannot go on has failed"
)]

#[path = "state_policy/calls.rs"]
mod calls;
#[path = "state_policy/graph.rs"]
mod graph;
#[path = "state_policy/said.rs"]
mod said;

use std::collections::BTreeMap;

use countersign_domain::policy::Policy;
use serde_json::{Value, json};

use said::{TranslatedPolicy, compile, compiled, first_of, nested, write};

const CASES: &str = include_str!("conformance/state_policy.jsonl");
const DIVERGENCES: &str = include_str!("conformance/state_policy.divergences");

/// Only these reasons allow what StatePolicy was seen to block.
const LOOSER: [&str; 3] = ["By its own page", "By its own checks", "Counted is what was committed"];

/// How a case ended: with what, or why not.
pub type CaseOutcome = Result<String, String>;

/// `op: check`: whether one key may be written.
fn check(case: &Value) -> (CaseOutcome, CaseOutcome) {
    let expect = &case["expect"];
    let theirs = match (expect["allowed"].as_bool(), expect["reason"].as_str()) {
        (Some(true), _) => Ok(String::new()),
        (Some(false), reason) => Err(said::reason(reason.unwrap())),
        _ => Err("an exception leaked".to_owned()),
    };
    let said = TranslatedPolicy::read(case["policy"].as_str().unwrap());
    let policy = compiled(&said.policy("n"));
    let (key, value) = (case["key"].as_str().unwrap(), &case["value"]);
    let number = |it: &str| matches!(it, "NaN" | "Infinity");
    // A double that is no number has no spelling in JSON; it is sent as its own name.
    let update = match value.as_str().filter(|it| number(it)) {
        Some(odd) => nested(key, &json!("@")).to_string().replace("\"@\"", odd),
        None => nested(key, value).to_string(),
    };
    (theirs, write(&policy, "n", &json!({}), &update).map(|_| String::new()))
}

/// `op: construct`: whether there can be such a policy at all. A null in StatePolicy is a key without a value here.
fn construct(case: &Value) -> (CaseOutcome, CaseOutcome) {
    let at_once = "refused at once";
    let rule = |text: &str| format!("flow = \"f\"\n[nodes.n]\nwrites = [\"$\"]\n[[rules]]\nthen = \"deny\"\n{text}");
    let node = |text: &str| format!("flow = \"f\"\n[nodes.n]\n{text}");
    let expression = case["expr"].as_str().unwrap();
    let text = match expression {
        "denyWriteKeys((String[])null)" => node("writes = [\"$\"]\ndeny ="),
        "when(null,'r')" => rule("reason = \"r\""),
        "ALLOW_ALL.and(null)" => node("writes = [\"$\"]\nwrites ="),
        "Decision.deny(null)" => rule("when = \"true\""),
        "Decision.deny('')" => rule("when = \"true\"\nreason = \"\""),
        "new Decision(true,'r')" => rule("when = \"false\"\nreason = \"r\""),
        "builder.statePolicy(null)" => String::new(),
        "StateKey.of('',String)" => node("writes = [\"\"]"),
        "StateKey.of('  ',String)" => node("writes = [\"  \"]"),
        "StateKey.of(null,String)" => node("writes = [{}]"),
        "new StatePolicyViolation(key,null,'r').getMessage()" => rule("when = \"true\"\nreason = \"r\""),
        "AgentResult.builder().stateUpdates({k:null})" => node("writes = [\"k\"]"),
        other => panic!("no such case: {other}"),
    };
    let ours = compile(&text).map_err(|_| at_once.to_owned());
    match expression {
        // The message of a violation has the reason, in its author's words.
        "new StatePolicyViolation(key,null,'r').getMessage()" => {
            let message = case["expect"]["value"].as_str().unwrap();
            let theirs = Err(message.rsplit(": ").next().unwrap().to_owned());
            (theirs, write(&ours.unwrap(), "n", &json!({}), "{\"k\":null}").map(|_| String::new()))
        }
        "AgentResult.builder().stateUpdates({k:null})" => {
            (Err(at_once.to_owned()), write(&ours.unwrap(), "n", &json!({}), "{\"k\":null}").map(|_| String::new()))
        }
        _ => {
            let theirs = if case["expect"]["ok"] == true { Ok(String::new()) } else { Err(at_once.to_owned()) };
            (theirs, ours.map(|_| String::new()))
        }
    }
}

/// A node approves by itself what another node may only do with approval. Keys with a gate in StatePolicy are
/// protected keys here. The gateway decides whose approval counts, and how often: `tests/api` and
/// `tests/store_contract` test that.
fn approval(case: &Value) -> (CaseOutcome, CaseOutcome) {
    let (expect, paid, held) = (&case["expect"], || Ok("paid".to_owned()), || Err("held".to_owned()));
    let theirs = match (expect["payRan"].as_u64(), expect["hasError"].as_bool(), expect["afterWrong"].as_str()) {
        (_, _, Some(_)) => held(),
        (Some(1), ..) => paid(),
        (_, Some(true), _) => Err("write_denied".to_owned()),
        other => panic!("{other:?}"),
    };
    let said = TranslatedPolicy::read(case["policy"].as_str().unwrap());
    let policy = compiled(&format!(
        "flow = \"f\"\nprotected = [\"payment.sent\"]\n{}[nodes.pay]\nreads = [\"$\"]\nwrites = [\"$\"]\n\
         [[approval.stages]]\ngroups = [\"people\"]\n",
        said.node("evil")
    ));
    let granted = nested("__approval.granted", &json!(["pay"])).to_string();
    let ours = write(&policy, "evil", &json!({}), &granted).and_then(|after| {
        let after = after.expect("only payment.sent is protected");
        match write(&policy, "pay", &after, r#"{"payment":{"sent":true}}"#)? {
            None => held(),
            Some(_) => paid(),
        }
    });
    (theirs, ours)
}

/// Cases have no names of their own; the line tells those apart that look alike.
fn name(line: usize, case: &Value) -> String {
    let text = |it: &str| case[it].as_str().unwrap_or_default();
    let what = match text("op") {
        "check" => format!("{} {}={}", text("policy"), text("key"), case["value"]),
        "construct" => text("expr").to_owned(),
        "graph" => text("name").to_owned(),
        "tool" => format!("{} {} {}", text("policy"), text("tool"), case["args"]),
        _ => format!("{}{}", text("name"), case["limits"]),
    };
    format!("{:03} {} {what}", line + 1, text("op"))
}

fn run(case: &Value) -> (CaseOutcome, CaseOutcome) {
    match case["op"].as_str().unwrap() {
        "check" => check(case),
        "construct" => construct(case),
        "graph" if case["errorPolicy"].is_null() => approval(case),
        "graph" => graph::run(case),
        "tool" => calls::tool(case),
        "budget" => calls::budget(case),
        other => panic!("no such operation: {other}"),
    }
}

/// Case to reason, from a file with one reason a paragraph and its cases below it.
fn listed() -> BTreeMap<&'static str, &'static str> {
    let (mut reason, mut listed) = ("", BTreeMap::new());
    for line in DIVERGENCES.lines().filter(|it| !it.is_empty()) {
        match line.strip_prefix("# ") {
            Some(text) => reason = text,
            None => assert!(listed.insert(line, reason).is_none(), "listed twice: {line}"),
        }
    }
    listed
}

/// Checks that our outcome is a rejection, or that our state has no more leaves than StatePolicy's.
fn is_stricter(theirs: &CaseOutcome, ours: &CaseOutcome) -> bool {
    match (theirs, ours) {
        (_, Err(_)) => true,
        (Err(_), Ok(_)) => false,
        (Ok(theirs), Ok(ours)) => first_of(ours).iter().all(|leaf| first_of(theirs).contains(leaf)),
    }
}

#[test]
fn all_of_state_policy_is_run_and_differs_only_as_listed() {
    let mut listed = listed();
    let (mut agreed, mut diverged, mut wrong) = (0, BTreeMap::<&str, usize>::new(), Vec::new());
    for (line, text) in CASES.lines().enumerate() {
        let case: Value = serde_json::from_str(text).unwrap();
        let name = name(line, &case);
        let (theirs, ours) = run(&case);
        let complaint = match listed.remove(name.as_str()) {
            None if theirs == ours => {
                agreed += 1;
                continue;
            }
            None => "not listed",
            Some(_) if theirs == ours => "listed, but agrees",
            Some(reason) if !is_stricter(&theirs, &ours) && !LOOSER.iter().any(|it| reason.starts_with(it)) => {
                "looser than what was seen"
            }
            Some(reason) => {
                *diverged.entry(reason).or_default() += 1;
                continue;
            }
        };
        wrong.push(format!("{complaint}: {name}: theirs {theirs:?}, ours {ours:?}"));
    }
    println!("agreed: {agreed}");
    diverged.iter().for_each(|(reason, count)| println!("diverged: {count}: {reason}"));
    println!("unexplained: {}", wrong.len());
    assert_eq!(agreed + diverged.values().sum::<usize>() + wrong.len(), 110, "every case is run");
    wrong.extend(listed.keys().map(|it| format!("no such case: {it}")));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_guide_says_how_many_agree() {
    let guide = include_str!("../docs/reference/policy.md");
    let differ = DIVERGENCES.lines().filter(|it| !it.is_empty() && !it.starts_with('#')).count();
    assert!(guide.contains(&format!("{} agree", 110 - differ)), "{}", 110 - differ);
}

/// A policy as the guide would have it understands each of these, so that what is judged above is what was meant.
#[test]
fn translated_policy_has_the_patterns_of_the_expression() {
    let said = TranslatedPolicy::read("((ALLOW_ALL).and(denyWriteKeys(a.b))).and(allowWriteKeys(c,d))");
    let policy: Policy = compiled(&said.policy("n"));
    let node = policy.nodes().next().unwrap().1;
    let patterns = |it: &countersign_domain::policy::Patterns| it.iter().map(|it| it.to_string()).collect::<Vec<_>>();
    assert_eq!((patterns(node.writes()), patterns(node.deny())), (vec!["c".into(), "d".into()], vec!["a.b".into()]));
}
