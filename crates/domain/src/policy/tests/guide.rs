//! Runs the snippets and tables of the policy reference and the policy guide.

use serde_json::{Value, json};

use super::{is_committed, is_held, patch, refused};
use crate::json::patch::PatchFormat;
use crate::policy::{
    CallerContext, Instruction, Judgement, OnViolation, Policy, PolicyRequest, PolicySource, RejectCode,
    RequestContext, RequestKind, StateLimits, judge, judge_for, judge_in, judge_initial,
};
use crate::primitives::id::NodeId;
use crate::threads::tool_call::Tool;
use crate::threads::usage::{Totals, Usage};

const GUIDE: &str = include_str!("../../../../../docs/reference/policy.md");
const TUTORIAL: &str = include_str!("../../../../../docs/guides/policies.md");

/// Returns the part below a heading of the reference or the guide.
pub(super) fn section(heading: &str) -> &'static str {
    let line = format!("\n{heading}\n");
    let page = [GUIDE, TUTORIAL].into_iter().find(|it| it.contains(&line)).unwrap_or_else(|| panic!("{heading}"));
    let rest = page.split_once(&line).unwrap().1;
    rest.find("\n## ").map_or(rest, |end| &rest[..end])
}

/// The snippets of one language in a part of the guide.
pub(super) fn snippets<'t>(text: &'t str, language: &str) -> Vec<&'t str> {
    text.split(&format!("```{language}\n")).skip(1).filter_map(|it| it.split("```").next()).collect()
}

/// The policies that a part of the guide shows.
fn policies(text: &str) -> Vec<Policy> {
    let schema = snippets(text, "json").into_iter().find(|it| it.contains("\"type\""));
    let schemas = schema.map(|it| ("payments.schema.json".to_owned(), it.to_owned())).into_iter().collect();
    let source = PolicySource { text: String::new(), schemas };
    snippets(text, "toml")
        .into_iter()
        .map(|text| {
            let source = PolicySource { text: text.to_owned(), ..source.clone() };
            Policy::compile_submitted(&source).unwrap_or_else(|error| panic!("{error}\n{text}")).policy
        })
        .collect()
}

/// The rows of a part's tables whose first cells are JSON.
pub(super) fn rows(text: &str) -> Vec<(Value, Value, &str)> {
    let cells = |line: &'static str| line.trim_matches('|').split(" | ").map(str::trim).collect::<Vec<_>>();
    let value = |cell: &str| serde_json::from_str(cell.trim_matches('`')).ok();
    let row = |line: &'static str| match cells(line).as_slice() {
        [before, sent, outcome] => Some((value(before)?, value(sent)?, *outcome)),
        _ => None,
    };
    let text: &'static str = text.to_owned().leak();
    text.lines().filter_map(row).collect()
}

/// Returns the code spans of a text. A span in double backticks may contain single ones.
pub(super) fn quoted(text: &str) -> Vec<&str> {
    match text.split_once("`` ").and_then(|(_, rest)| rest.split_once(" ``")) {
        Some((span, rest)) => [span].into_iter().chain(quoted(rest)).collect(),
        None => text.split('`').skip(1).step_by(2).collect(),
    }
}

#[test]
fn every_policy_in_the_guide_is_understood() {
    assert!(policies(GUIDE).len() >= 2);
}

#[test]
fn what_the_guide_says_of_its_rules_is_so() {
    let text = section("## Rules");
    let (policy, rows) = (policies(text).remove(0), rows(text));
    assert!(rows.len() >= 7, "{}", rows.len());
    for (before, sent, outcome) in rows {
        let judged = by_planner(&policy, &before, &sent, &[]);
        match outcome.split([':', ' ']).next().unwrap() {
            "commits" => assert!(is_committed(&judged), "{sent}"),
            "held" => {
                let Judgement::Hold { reasons, .. } = &judged else { panic!("{sent}: {judged:?}") };
                assert_eq!(reasons[0].text, quoted(outcome)[0]);
            }
            "rejected" => {
                let told = refused(&judged);
                assert_eq!([told[0].0.as_str(), &told[0].1], quoted(outcome)[..2], "{sent}");
                assert_eq!(told.len(), 1);
            }
            other => panic!("{other}"),
        }
        assert!(!is_held(&judged) || outcome.starts_with("held"));
    }
    let confirm = json!({"payment": {"confirmed": true}});
    assert!(is_committed(&by_planner(&policy, &json!({}), &confirm, &["approver"])));
}

#[test]
fn what_the_guide_says_of_tools_and_budgets_is_so() {
    let text = section("## Tools and budgets");
    let (policy, rows) = (policies(text).remove(0), rows(text));
    assert!(rows.len() >= 10, "{}", rows.len());
    for (committed, sent, outcome) in rows {
        let spent = committed.as_array().unwrap().iter().fold(Totals::default(), |totals, usage| {
            totals.counting(&super::tools::statement("planner", false, usage.clone()), None).unwrap()
        });
        let tool = sent.get("tool").map(|it| Tool::read(it).unwrap());
        let usage = sent.get("usage").map(|it| Usage::read(it).unwrap()).unwrap_or_default();
        let around = RequestContext { tool: tool.as_ref(), usage, spent: Some(&spent), ..RequestContext::default() };
        let (planner, nothing) = (NodeId::try_from("planner").unwrap(), patch(PatchFormat::Merge, json!({})));
        let request = PolicyRequest { node: &planner, kind: RequestKind::Propose { patch: &nothing } };
        match (judge_in(&policy, &json!({}), &request, &around, &StateLimits::default()), outcome) {
            (Judgement::Commit { .. }, "commits") => {}
            (Judgement::Hold { reasons, .. }, _) if outcome.starts_with("held") => {
                assert_eq!(reasons[0].text, quoted(outcome)[0]);
            }
            (Judgement::Reject { violations }, _) if outcome.starts_with("rejected") => {
                assert!(violations.iter().all(|it| it.code.as_str() == quoted(outcome)[0]), "{sent}: {violations:?}");
            }
            (judged, _) => panic!("{sent}: {outcome}, but {judged:?}"),
        }
    }
}

pub(super) fn by_planner(policy: &Policy, before: &Value, sent: &Value, committed: &[&str]) -> Judgement {
    let planner = NodeId::try_from("planner").unwrap();
    let committed = committed.iter().map(|it| NodeId::try_from(*it).unwrap()).collect();
    let sent = patch(PatchFormat::MergePatch, sent.clone());
    let request = PolicyRequest { node: &planner, kind: RequestKind::Propose { patch: &sent } };
    let asker = CallerContext { principal: "id", owner: "team", committed_nodes: &committed };
    judge_for(policy, before, &request, asker, &StateLimits::default())
}

#[test]
fn the_guides_lines_for_everything_and_nothing_are_that() {
    let extremes = policies(GUIDE).into_iter().find(|it| it.flow().as_str() == "extremes").unwrap();
    let judged = |node: &str, sent: Value| {
        let (node, sent) = (NodeId::try_from(node).unwrap(), patch(PatchFormat::Merge, sent));
        let request = PolicyRequest { node: &node, kind: RequestKind::Propose { patch: &sent } };
        judge(&extremes, &json!({"x": 1}), &request, &StateLimits::default())
    };
    for sent in [json!({"x": "hi"}), json!({"y": null}), json!({"a": {"b": [1, {"c": 2}]}})] {
        assert!(is_committed(&judged("allow_all", sent.clone())), "{sent}");
        assert_eq!(refused(&judged("deny_all", sent.clone()))[0].0, RejectCode::WriteNotAllowed, "{sent}");
    }
    assert!(is_committed(&judged("deny_all", json!({}))), "nothing is not forbidden");
}

#[test]
fn the_guides_line_for_everything_but_one_part_is_that() {
    let text = "flow = \"f\"\n[nodes.planner]\nwrites = [\"$\"]\ndeny = [\"payment.confirmed\"]";
    assert!(GUIDE.contains("`writes = [\"$\"]` with `deny = [\"payment.confirmed\"]`"));
    let policy = Policy::compile(&PolicySource { text: text.to_owned(), ..PolicySource::default() }).unwrap();
    let judged = |sent: Value| by_planner(&policy, &json!({}), &sent, &[]);
    assert!(is_committed(&judged(json!({"payment": {"amount": 1}, "other": 1}))));
    for sent in [json!({"payment": {"confirmed": true}}), json!({"payment": 1})] {
        assert_eq!(refused(&judged(sent))[0].0, RejectCode::WriteDenied);
    }
}

#[test]
fn what_the_guide_shows_of_a_rejection_is_what_is_told() {
    let example = snippets(GUIDE, "json").into_iter().find(|it| it.contains("\"errors\"")).unwrap();
    let shown: Value = serde_json::from_str(example).unwrap();
    let rules = policies(section("## Rules")).remove(0);
    let Judgement::Reject { violations } =
        by_planner(&rules, &json!({}), &json!({"draft": {"text": shown["errors"][0]["value"]}}), &[])
    else {
        panic!("not rejected")
    };
    for key in ["pointer", "code", "rule", "detail"] {
        assert_eq!(serde_json::to_value(&violations[0]).unwrap()[key], shown["errors"][0][key]);
    }
    let example = snippets(GUIDE, "json").into_iter().find(|it| it.contains("\"instruction\"")).unwrap();
    let shown: Value = serde_json::from_str(example).unwrap();
    let told = Instruction::RetryOnce;
    assert_eq!(shown["instruction"], json!({"action": told.as_str(), "detail": told.detail()}));
}

#[test]
fn every_on_violation_has_the_guides_actions_in_the_guides_order() {
    let text = section("## How a request is judged");
    for policy in [OnViolation::FailFast, OnViolation::RetryOnce, OnViolation::SkipNode] {
        let row = text.lines().find(|it| it.starts_with(&format!("| `{}` |", policy.as_str()))).unwrap();
        let actions = quoted(row.split('|').nth(2).unwrap());
        let told: Vec<_> = (1..=3).map(|violations| policy.instruction(violations).as_str()).collect();
        assert_eq!(told[..actions.len()], actions, "{row}");
        assert!(told[actions.len()..].iter().all(|it| Some(it) == actions.last()), "{row}");
        assert_eq!((policy.is_exhausted(1), policy.is_exhausted(2)), (false, policy == OnViolation::RetryOnce));
    }
}

#[test]
fn what_the_guide_says_of_what_may_follow_what_is_so() {
    let text = section("## Transition rule examples");
    let policy = policies(text).remove(0);
    let line = text.lines().find(|it| it.starts_with("The state before is")).unwrap();
    let before: Value = serde_json::from_str(quoted(line)[0]).unwrap();
    assert!(judge_initial(&policy, &before, &StateLimits::default()).is_ok());
    let worker = NodeId::try_from("worker").unwrap();
    let rows: Vec<_> = text.lines().filter(|it| it.starts_with("| `{")).collect();
    assert!(rows.len() >= 10, "{}", rows.len());
    for row in rows {
        let (sent, outcome) = row.trim_matches('|').split_once(" | ").unwrap();
        let sent = patch(PatchFormat::MergePatch, serde_json::from_str(sent.trim().trim_matches('`')).unwrap());
        let request = PolicyRequest { node: &worker, kind: RequestKind::Propose { patch: &sent } };
        let judged = judge(&policy, &before, &request, &StateLimits::default());
        if outcome.trim().starts_with("commits") {
            assert!(is_committed(&judged), "{row}: {judged:?}");
        } else {
            let told = refused(&judged);
            assert_eq!([told[0].0.as_str(), &told[0].1], quoted(outcome)[..2], "{row}");
            assert_eq!(told.len(), 1, "{row}: {told:?}");
        }
    }
}

#[test]
fn what_the_guide_shows_of_a_warning_is_what_is_told() {
    let warning = policies(section("## Rules")).remove(1);
    let shown = snippets(section("## Rules"), "json").into_iter().find(|it| it.contains("\"warnings\"")).unwrap();
    let shown: Value = serde_json::from_str(shown).unwrap();
    let Judgement::Commit { warnings, .. } =
        by_planner(&warning, &json!({}), &json!({"payment": {"amount": 1001}}), &[])
    else {
        panic!("not committed")
    };
    let mut told = serde_json::to_value(&warnings).unwrap();
    told[0].as_object_mut().unwrap().remove("audience");
    assert_eq!(told, shown["warnings"]);
}
