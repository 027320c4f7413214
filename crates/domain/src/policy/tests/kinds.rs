//! How the kinds of requests differ.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{is_committed, is_held, node, one_node, patch, policy, refused, rollback};
use crate::json::patch::PatchFormat::Merge;
use crate::json::pointer::Pointer;
use crate::policy::{
    Judgement, Policy, PolicyRequest, PolicySource, ReasonAudience, ReasonCode, RejectCode::*, RequestContext,
    RequestKind, StateLimits, judge, judge_in, judge_initial,
};
use crate::primitives::id::ToolName;
use crate::threads::tool_call::Tool;

fn judged(policy: &Policy, before: &Value, kind: RequestKind<'_>) -> Judgement {
    judge(policy, before, &PolicyRequest { node: &node(), kind }, &StateLimits::default())
}

fn codes(judgement: &Judgement) -> Vec<ReasonCode> {
    match judgement {
        Judgement::Hold { reasons, .. } => reasons.iter().map(|it| it.code).collect(),
        Judgement::Commit { .. } | Judgement::Reject { .. } => Vec::new(),
    }
}

#[test]
fn an_edit_is_always_held_and_judged_like_its_nodes_own() {
    let policy = one_node("a", "a", "", "");
    let (harmless, foreign) = (patch(Merge, json!({"a": 1})), patch(Merge, json!({"b": 1})));
    assert_eq!(codes(&judged(&policy, &json!({}), RequestKind::Edit { patch: &harmless })), [ReasonCode::Edit]);
    let refusal = judged(&policy, &json!({}), RequestKind::Edit { patch: &foreign });
    assert_eq!(refused(&refusal), [(WriteNotAllowed, "/b".into())]);
}

#[test]
fn a_reaffirmation_changes_nothing_and_is_always_held() {
    let policy = one_node("", "", "", "a");
    let before = json!({"a": 1});
    let Judgement::Hold { after, changes, named, reasons, .. } = judged(&policy, &before, RequestKind::Reaffirm) else {
        panic!("not held")
    };
    assert_eq!(after, before);
    assert!(changes.is_empty() && named.is_empty());
    assert_eq!(reasons.iter().map(|it| it.code).collect::<Vec<_>>(), [ReasonCode::Reaffirm]);
}

#[test]
fn a_rollback_is_held_and_needs_the_policys_leave() {
    let allowed = one_node("", "", "", "");
    let to = json!({"a": 0});
    assert_eq!(codes(&judged(&allowed, &json!({"a": 1}), rollback(&to))), [ReasonCode::Rollback]);
    let forbidden = policy("[nodes.n]\nreads = [\"$\"]\nwrites = [\"$\"]");
    let refusal = judged(&forbidden, &json!({"a": 1}), rollback(&to));
    assert_eq!(refused(&refusal), [(WriteNotAllowed, String::new())]);
}

#[test]
fn a_rollback_does_not_tell_its_asker_which_hidden_values_differ() {
    let policy = one_node("open", "", "", "open secret");
    let (before, to) = (json!({"open": 1, "secret": 1}), json!({"open": 2, "secret": 2}));
    let Judgement::Hold { reasons, .. } = judged(&policy, &before, rollback(&to)) else { panic!("not held") };
    let told: Vec<_> = reasons.iter().map(|it| (it.code, it.audience)).collect();
    let expected = [
        (ReasonCode::Rollback, ReasonAudience::Everyone),
        (ReasonCode::Protected, ReasonAudience::Everyone),
        (ReasonCode::Protected, ReasonAudience::Reviewers),
    ];
    assert_eq!(told, expected);
}

#[test]
fn a_rollback_is_not_exempt_from_the_schema() {
    let policy = policy("[schema.properties.a]\ntype = \"integer\"\n[nodes.n]\nrollback = true\nreads = [\"$\"]");
    let refusal = judged(&policy, &json!({"a": 1}), rollback(&json!({"a": "x"})));
    assert_eq!(refused(&refusal), [(Schema, "/a".into())]);
    let standing = judged(&policy, &json!({"a": "x"}), RequestKind::Reaffirm);
    assert_eq!(refused(&standing), [(Schema, "/a".into())], "a head that the policy would not admit");
}

#[test]
fn a_rollback_does_not_tell_what_the_schema_says_of_hidden_values() {
    let policy = policy("[schema.properties.secret]\ntype = \"integer\"\n[nodes.n]\nrollback = true");
    let refusal = judged(&policy, &json!({}), rollback(&json!({"secret": "x"})));
    assert_eq!(refused(&refusal), [(Schema, String::new())]);
}

#[test]
fn a_rollback_touches_a_place_only_if_something_there_differs() {
    let policy = one_node("$", "", "", "box.pin");
    let (empty, filled) = (json!({"box": {}}), json!({"box": {"note": 1}}));
    assert_eq!(codes(&judged(&policy, &empty, rollback(&filled))), [ReasonCode::Rollback]);
    assert_eq!(codes(&judged(&policy, &filled, rollback(&empty))), [ReasonCode::Rollback]);
}

/// A node wrote the pin blind, between the version and the head. Whether its value was the same is redacted.
#[test]
fn a_rollback_sets_every_leaf_that_a_node_could_have_guessed() {
    let nodes = "[nodes.n]\nreads = [\"$\"]\nrollback = true\n[nodes.blind]\nwrites = [\"box.pin\"]\n";
    let policy = policy(&format!("protected = [\"box.pin\"]\n{nodes}"));
    let at = |text: &str| Pointer::try_from(text.to_owned()).unwrap();
    let reset = BTreeSet::from([at("/box/pin"), at("/open")]);
    let head = json!({"box": {"pin": "1234"}, "open": 1});
    for pin in ["1234", "1235"] {
        let to = json!({"box": {"pin": pin}, "open": 1});
        let judged = judged(&policy, &head, RequestKind::Rollback { to: &to, reset: &reset });
        let Judgement::Hold { named, reasons, .. } = judged else { panic!("{pin}: a rollback is held") };
        assert_eq!(named, [at("/box/pin")], "{pin}");
        assert_eq!(reasons.len(), 2, "{pin}: a rollback of a protected value");
    }
}

#[test]
fn what_people_must_decide_is_rejected_where_there_are_none() {
    let source = PolicySource { text: "flow = \"f\"\n[nodes.n]\nrollback = true".into(), ..PolicySource::default() };
    let policy = Policy::compile(&source).unwrap();
    for kind in [RequestKind::Reaffirm, rollback(&json!({}))] {
        assert_eq!(refused(&judged(&policy, &json!({}), kind)), [(NobodyCanApprove, String::new())]);
    }
}

fn with_writer() -> Policy {
    policy("protected = [\"secret\"]\n[nodes.n]\nreads = [\"$\"]\nwrites = [\"result\", \"secret\"]\nwriter = true")
}

#[test]
fn a_writers_result_commits_by_itself() {
    let result = patch(Merge, json!({"result": 7}));
    assert!(is_committed(&judged(&with_writer(), &json!({}), RequestKind::Confirm { patch: &result })));
}

#[test]
fn a_writers_result_that_touches_a_protected_value_is_rejected() {
    let result = patch(Merge, json!({"result": 7, "secret": 7}));
    let refusal = judged(&with_writer(), &json!({}), RequestKind::Confirm { patch: &result });
    assert_eq!(refused(&refusal), [(WriteDenied, "/secret".into())]);
    assert!(is_held(&judged(&with_writer(), &json!({}), RequestKind::Propose { patch: &result })));
}

#[test]
fn a_writers_result_stays_within_its_own_lists() {
    let result = patch(Merge, json!({"other": 7}));
    let refusal = judged(&with_writer(), &json!({}), RequestKind::Confirm { patch: &result });
    assert_eq!(refused(&refusal), [(WriteNotAllowed, "/other".into())]);
}

#[test]
fn only_a_writer_confirms() {
    let nothing = patch(Merge, json!({}));
    let refusal = judged(&one_node("$", "$", "", ""), &json!({}), RequestKind::Confirm { patch: &nothing });
    assert_eq!(refused(&refusal), [(WriteNotAllowed, String::new())]);
}

#[test]
fn version_0_owes_for_the_protected_values_it_sets() {
    let limits = StateLimits::default();
    let text = "protected = [\"amount\", \"target.*\"]\n[nodes.n]";
    let owing = |text: &str, state: Value| {
        let initial = judge_initial(&policy(text), &state, &limits).unwrap();
        initial.owes_reason.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(owing(text, json!({"amount": 0, "note": 1})), ["amount"]);
    assert_eq!(owing(text, json!({"target": {"id": 1}})), ["target.*"]);
    assert!(owing(text, json!({"note": 1})).is_empty());
    assert!(owing(&format!("trust_initial = true\n{text}"), json!({"amount": 0})).is_empty());
}

#[test]
fn version_0_must_fit_the_schema_and_is_told_everything() {
    let policy = policy("[schema]\nadditionalProperties = false\n[schema.properties.a]\ntype = \"integer\"\n[nodes.n]");
    let violations = judge_initial(&policy, &json!({"a": "x", "b": 1}), &StateLimits::default()).unwrap_err();
    let told: Vec<_> = violations.iter().map(|it| (it.code, it.pointer.to_string())).collect();
    assert_eq!(told, [(Schema, "/a".to_owned()), (Schema, "/b".to_owned())]);
}

#[test]
fn version_0_is_an_object_with_keys_in_one_spelling() {
    let refusal = |state: Value| {
        let violations = judge_initial(&one_node("", "", "", ""), &state, &StateLimits::default()).unwrap_err();
        violations.iter().map(|it| it.code).collect::<Vec<_>>()
    };
    assert_eq!(refusal(json!([])), [Schema]);
    assert_eq!(refusal(json!({"a": {"cafe\u{301}": []}})), [Encoding]);
}

#[test]
fn version_0_stays_within_the_limits() {
    let limits = StateLimits { bytes_max: 20, leaves_max: 3, depth_max: 3 };
    let judged = |state: Value| judge_initial(&one_node("", "", "", ""), &state, &limits).map_err(|it| it[0].code);
    assert!(judged(json!({"a": "123456789012"})).is_ok());
    assert_eq!(judged(json!({"a": "1234567890123"})), Err(TooLarge));
    assert!(judged(json!({"a": [1, 2, 3]})).is_ok());
    assert_eq!(judged(json!({"a": [1, 2, 3, 4]})), Err(TooLarge));
    assert!(judged(json!({"a": {"b": {}}})).is_ok());
    assert_eq!(judged(json!({"a": {"b": {"c": []}}})), Err(TooDeep));
}

#[test]
fn call_of_a_changed_tool_is_refused_or_held() {
    let text = |more: &str| {
        format!(
            "[nodes.n]\nreads = [\"$\"]\nwrites = [\"$\"]\n[tools]\nallow = [\"t\"]\n{more}\n[approval]\n[[approval.stages]]\ngroups = [\"g\"]"
        )
    };
    let tool = Tool::new(ToolName::try_from("t").unwrap(), Default::default()).unwrap();
    let (empty, node) = (patch(Merge, json!({})), node());
    let judged = |more: &str, tool_has_changed: bool| {
        let request = PolicyRequest { node: &node, kind: RequestKind::Propose { patch: &empty } };
        let around = RequestContext { tool: Some(&tool), tool_has_changed, ..RequestContext::default() };
        judge_in(&policy(&text(more)), &json!({}), &request, &around, &StateLimits::default())
    };
    for more in ["", "changed = \"refuse\""] {
        assert_eq!(refused(&judged(more, true)), [(ToolNotAllowed, String::new())]);
        assert!(matches!(judged(more, false), Judgement::Commit { .. }));
    }
    assert_eq!(codes(&judged("changed = \"hold\"", true)), [ReasonCode::ToolChanged]);
    assert!(matches!(judged("changed = \"hold\"", false), Judgement::Commit { .. }));
}
