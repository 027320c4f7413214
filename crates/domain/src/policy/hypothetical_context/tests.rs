use serde_json::json;

use super::*;
use crate::json::patch::PatchFormat;
use crate::policy::{HypotheticalRequest, JudgedOutcome, Policy, PolicySource, WhatIf, what_if};

const POLICY: &str = r#"
flow = "f"

[nodes.n]
reads = ["$"]
writes = ["$"]

[[rules]]
name = "team"
when = "change.path == '/team' && principal.owner != 'team'"
then = "deny"
reason = "not of the team"

[[rules]]
name = "first"
when = "change.path == '/late' && !('first' in thread.committed_nodes)"
then = "deny"
reason = "first comes first"

[budgets.thread]
tokens = 100
"#;

fn told(patch: &Value, around: &Value) -> WhatIf {
    let source = PolicySource { text: POLICY.to_owned(), ..PolicySource::default() };
    let policy = Policy::compile(&source).unwrap();
    let (node, around) = (NodeId::try_from("n").unwrap(), HypotheticalContext::read(around).unwrap());
    let supposed =
        HypotheticalRequest { state: &json!({}), node: &node, format: PatchFormat::Merge, patch, around: &around };
    what_if(&policy, &supposed, &crate::json::size::StateLimits::default())
}

#[test]
fn a_rule_that_asks_for_what_is_not_supposed_says_so() {
    let usage = json!({"tokens": 1, "cost": 0});
    for (patch, around) in [
        (json!({"team": 1}), json!({"usage": usage, "committed_nodes": []})),
        (json!({"late": 1}), json!({"usage": usage, "principal": {"id": "t", "owner": "team"}})),
    ] {
        let told = told(&patch, &around);
        assert_eq!((told.outcome, told.errors.len()), (JudgedOutcome::Reject, 1), "{told:?}");
        assert_eq!(told.errors[0].code.as_str(), "rule_error");
        assert!(told.errors[0].detail.ends_with("set `principal` and `committed_nodes`"), "{told:?}");
    }
}

#[test]
fn what_is_supposed_is_judged_by() {
    let judged = |patch: Value, members: Value| {
        let mut around = json!({"usage": {"tokens": 10}});
        around.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        let told = told(&patch, &around);
        (told.outcome, told.errors.first().map(|it| it.code.as_str()))
    };
    let of = |owner: &str| json!({"principal": {"id": "t", "owner": owner}});
    assert_eq!(judged(json!({"team": 1}), of("team")), (JudgedOutcome::Commit, None));
    assert_eq!(judged(json!({"team": 1}), of("others")), (JudgedOutcome::Reject, Some("rule_denied")));
    assert_eq!(judged(json!({"late": 1}), json!({"committed_nodes": ["first"]})), (JudgedOutcome::Commit, None));
    assert_eq!(
        judged(json!({"late": 1}), json!({"committed_nodes": []})),
        (JudgedOutcome::Reject, Some("rule_denied"))
    );
    let used = |tokens: u64| json!({"totals": {"n": {"tokens": tokens - 1}, "other": {"calls": 3, "tokens": 1}}});
    assert_eq!(judged(json!({}), used(90)), (JudgedOutcome::Commit, None));
    assert_eq!(judged(json!({}), used(91)), (JudgedOutcome::Reject, Some("budget")));
}

#[test]
fn what_is_malformed_is_refused_with_its_place() {
    for (around, at) in [
        (json!([]), ""),
        (json!({"asker": {}}), "/asker"),
        (json!({"principal": "t"}), "/principal"),
        (json!({"principal": {"id": "t"}}), "/principal"),
        (json!({"principal": {"id": "t", "owner": ""}}), "/principal/owner"),
        (json!({"principal": {"id": "", "owner": "o"}}), "/principal/id"),
        (json!({"principal": {"id": "t", "owner": "o", "role": "agent"}}), "/principal/role"),
        (json!({"committed_nodes": "n"}), "/committed_nodes"),
        (json!({"committed_nodes": ["n", "n"]}), "/committed_nodes/1"),
        (json!({"committed_nodes": [1]}), "/committed_nodes/0"),
        (json!({"tool": {"name": "x"}}), "/tool/arguments"),
        (json!({"usage": {"tokens": -1}}), "/usage/tokens"),
        (json!({"totals": []}), "/totals"),
        (json!({"totals": {"": {}}}), "/totals/"),
        (json!({"totals": {"n": {"calls": -1}}}), "/totals/n/calls"),
        (json!({"totals": {"n": {"money": 1}}}), "/totals/n/money"),
    ] {
        assert_eq!(HypotheticalContext::read(&around).unwrap_err().pointer.as_str(), at, "{around}");
    }
}
