//! The guide's snippets and tables, run as they stand there.

use serde_json::{Value, json};

use super::{is_committed, is_held, patch, refused};
use crate::domain::id::NodeId;
use crate::domain::json::patch::Format;
use crate::domain::policy::{Asker, Judgement, Policy, PolicySource, Request, RequestKind, StateLimits, judge_for};

const GUIDE: &str = include_str!("../../../../docs/policy.md");

/// The part of the guide below a heading.
fn section(heading: &str) -> &'static str {
    let start = GUIDE.find(&format!("\n{heading}\n")).unwrap_or_else(|| panic!("{heading}"));
    let rest = &GUIDE[start + heading.len() + 2..];
    rest.find("\n## ").map_or(rest, |end| &rest[..end])
}

/// The policies that a part of the guide shows.
fn policies(text: &str) -> Vec<Policy> {
    let schemas: Vec<_> = text.split("```json\n").skip(1).filter_map(|it| it.split("```").next()).collect();
    let schemas = schemas.iter().map(|it| ("payments.schema.json".to_owned(), (*it).to_owned())).collect();
    let source = PolicySource { text: String::new(), schemas };
    let texts = text.split("```toml\n").skip(1).filter_map(|it| it.split("```").next());
    texts
        .map(|text| {
            let source = PolicySource { text: text.to_owned(), ..source.clone() };
            Policy::compile(&source).unwrap_or_else(|error| panic!("{error}\n{text}"))
        })
        .collect()
}

/// The rows of a part's tables whose first cells are JSON.
fn rows(text: &str) -> Vec<(Value, Value, &str)> {
    let cells = |line: &'static str| line.trim_matches('|').split(" | ").map(str::trim).collect::<Vec<_>>();
    let value = |cell: &str| serde_json::from_str(cell.trim_matches('`')).ok();
    let row = |line: &'static str| match cells(line).as_slice() {
        [before, sent, outcome] => Some((value(before)?, value(sent)?, *outcome)),
        _ => None,
    };
    let text: &'static str = text.to_owned().leak();
    text.lines().filter_map(row).collect()
}

fn quoted(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
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

fn by_planner(policy: &Policy, before: &Value, sent: &Value, committed: &[&str]) -> Judgement {
    let planner = NodeId::try_from("planner").unwrap();
    let committed = committed.iter().map(|it| NodeId::try_from(*it).unwrap()).collect();
    let sent = patch(Format::MergePatch, sent.clone());
    let request = Request { node: &planner, kind: RequestKind::Propose { patch: &sent } };
    let asker = Asker { principal: "id", owner: "team", committed_nodes: &committed };
    judge_for(policy, before, &request, asker, &StateLimits::default())
}
