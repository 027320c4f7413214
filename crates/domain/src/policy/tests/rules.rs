//! Effects of rules on requests, and the information that responses leave out.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{is_committed, is_held, node, patch, policy, propose, refused, rollback};
use crate::json::patch::PatchFormat;
use crate::policy::{
    CallerContext, JudgedWarning, Judgement, Policy, PolicyCode, PolicyRequest, PolicySource, ReasonAudience,
    ReasonCode, RejectCode, RequestKind, StateLimits, judge, judge_for,
};
use crate::primitives::id::NodeId;

const DENIED: &str = "rule_denied";

/// Node `n` reads and writes as said, with rules as `then: when`.
fn ruled(node: &str, rules: &[(&str, &str)]) -> Policy {
    let tables = rules.iter().enumerate().map(|(index, (then, when))| {
        format!("[[rules]]\nname = \"r{index}\"\nwhen = {when:?}\nthen = {then:?}\nreason = \"why {index}\"\n")
    });
    policy(&format!("[nodes.n]\nrollback = true\nwriter = true\n{node}\n{}", tables.collect::<String>()))
}

const ALL: &str = "reads = [\"$\"]\nwrites = [\"$\"]";

/// Code, place, rule and detail of each violation.
fn told(judgement: &Judgement) -> Vec<(&str, String, Option<&str>, &str)> {
    match judgement {
        Judgement::Reject { violations } => {
            let line = |it: &'_ crate::policy::Violation| (it.code.as_str(), it.pointer.to_string());
            let lines = violations.iter().map(|it| (line(it), it.rule.as_deref(), &*it.detail));
            lines.map(|((code, pointer), rule, detail)| (code, pointer, rule, detail)).collect()
        }
        other => panic!("{other:?}"),
    }
}

fn merge(policy: &Policy, before: Value, request: Value) -> Judgement {
    propose(policy, &before, PatchFormat::MergePatch, request)
}

#[test]
fn a_rule_that_denies_names_itself_its_reason_and_the_place() {
    let policy = ruled(ALL, &[("deny", "change.path == '/amount' && object.amount > 1000")]);
    assert!(is_committed(&merge(&policy, json!({}), json!({"amount": 1000}))));
    assert!(is_committed(&merge(&policy, json!({"amount": 5000}), json!({"other": 1}))), "it is about the change");
    let judged = merge(&policy, json!({}), json!({"amount": 1001}));
    assert_eq!(told(&judged), [(DENIED, "/amount".to_owned(), Some("r0"), "why 0")]);
}

#[test]
fn a_rule_that_holds_asks_people() {
    let policy = ruled(ALL, &[("hold", "change.path == '/amount' && object.amount > 1000")]);
    let Judgement::Hold { reasons, .. } = merge(&policy, json!({}), json!({"amount": 1001})) else {
        panic!("not held")
    };
    assert_eq!((reasons[0].code, &*reasons[0].text), (ReasonCode::Rule, "why 0"));
    assert_eq!(reasons.len(), 1);
}

#[test]
fn every_denial_is_told_in_the_order_of_the_policy_and_the_first_is_first() {
    let rules = [("deny", "change.path == '/b'"), ("hold", "true"), ("deny", "change.after == 2"), ("deny", "true")];
    let judged = merge(&ruled(ALL, &rules), json!({}), json!({"a": 2, "b": 2}));
    let lines: Vec<_> = told(&judged).into_iter().map(|(_, pointer, rule, _)| (pointer, rule.unwrap())).collect();
    let lines: Vec<_> = lines.iter().map(|(pointer, rule)| (&**pointer, *rule)).collect();
    assert_eq!(lines, [("/b", "r0"), ("/a", "r2"), ("/b", "r2"), ("", "r3")]);
}

#[test]
fn what_cannot_be_evaluated_rejects_whatever_the_rule_would_do() {
    for then in ["deny", "hold"] {
        for when in ["object.a > 'x'", "object.missing", "object.a", "1 / 0 == 1", "change.after > 'x'", "null"] {
            let judged = merge(&ruled(ALL, &[(then, when)]), json!({}), json!({"a": 1}));
            let lines = told(&judged);
            assert_eq!((lines[0].0, lines[0].2), ("rule_error", Some("r0")), "{when}");
        }
    }
}

#[test]
fn an_error_tells_nothing_of_what_it_stumbled_over() {
    let policy = ruled("writes = [\"a\"]", &[("deny", "object.secret + 1 > 0")]);
    let judged: Vec<_> = [json!("hunter2"), json!(true), json!(null), json!({"deep": "hunter2"})]
        .into_iter()
        .map(|secret| merge(&policy, json!({"secret": secret}), json!({"a": 1})))
        .collect();
    assert!(judged.windows(2).all(|pair| pair[0] == pair[1]));
    let text = serde_json::to_string(&match &judged[0] {
        Judgement::Reject { violations } => violations.clone(),
        other => panic!("{other:?}"),
    })
    .unwrap();
    assert!(!text.contains("hunter") && !text.contains("secret"), "{text}");
}

#[test]
fn a_denial_is_placed_where_the_asker_may_look() {
    let policy = ruled("reads = [\"b\"]\nwrites = [\"a\"]", &[("deny", "change.path.startsWith('/a/secret')")]);
    let judged = propose(&policy, &json!({"a": {"secret": {"deep": 1}}}), PatchFormat::Merge, json!({"a": {"x": 1}}));
    assert_eq!(told(&judged)[0].1, "/a", "not where its secret was");
}

#[test]
fn a_denial_is_cut_where_something_is_hidden() {
    let hide = format!("{ALL}\n[redaction]\nhide = [\"card\"]\n");
    let judged =
        merge(&ruled(&hide, &[("deny", "change.path.contains('number')")]), json!({}), json!({"card": {"number": 4}}));
    assert_eq!(told(&judged), [(DENIED, "/card".to_owned(), Some("r0"), "why 0")]);
}

#[test]
fn a_right_guess_is_asked_about_like_a_wrong_one() {
    let policy = ruled("writes = [\"pin\"]", &[("deny", "change.path == '/pin'")]);
    let judged = |pin: i32| merge(&policy, json!({"pin": 1234}), json!({"pin": pin}));
    assert_eq!(judged(1234), judged(9999));
    let policy = ruled("writes = [\"p\"]", &[("deny", "change.path.startsWith('/p')")]);
    let judged =
        |before: Value| propose(&policy, &json!({"p": before}), PatchFormat::Merge, json!({"p": {"a": 1, "b": 2}}));
    assert_eq!(judged(json!({"a": 1, "b": 0})), judged(json!({"a": 0, "b": 2})));
    assert_eq!(judged(json!({"a": 1, "b": 2})), judged(json!({"a": 0, "b": 0})));
}

#[test]
fn rules_are_not_asked_about_what_the_node_may_not_write_anyway() {
    let policy = ruled("writes = [\"a\"]", &[("deny", "object.pin == 1234")]);
    let judged = |pin: i32| merge(&policy, json!({"pin": pin}), json!({"a": 1, "other": 1}));
    assert_eq!(judged(1234), judged(1), "or a hopeless request would be asked back");
    assert_eq!(refused(&judged(1234))[0].0, RejectCode::WriteNotAllowed);
}

#[test]
fn beside_a_schemas_fault_only_denials_are_told() {
    let node = format!("{ALL}\n[nodes.n.schema]\nproperties.a.type = \"integer\"\n");
    let policy = ruled(&node, &[("deny", "object.a > 1"), ("deny", "change.path == '/a'")]);
    let judged = merge(&policy, json!({}), json!({"a": "x"}));
    let codes: Vec<_> = told(&judged).into_iter().map(|it| (it.0, it.2)).collect();
    assert_eq!(codes, [("schema", None), (DENIED, Some("r1"))]);
}

fn asked_as(policy: &Policy, owner: &str, committed: &[&str]) -> Judgement {
    let committed: BTreeSet<_> = committed.iter().map(|it| NodeId::try_from(*it).unwrap()).collect();
    let patch = patch(PatchFormat::Merge, json!({"confirmed": true}));
    let request = PolicyRequest { node: &node(), kind: RequestKind::Propose { patch: &patch } };
    let asker = CallerContext { principal: "id-1", owner, committed_nodes: &committed };
    judge_for(policy, &json!({}), &request, asker, &StateLimits::default())
}

#[test]
fn a_value_can_wait_until_a_node_has_committed() {
    let when = "change.path == '/confirmed' && !('approver' in thread.committed_nodes)";
    let policy = ruled(ALL, &[("deny", when)]);
    assert_eq!(told(&asked_as(&policy, "team", &["planner"]))[0].0, DENIED);
    assert!(is_committed(&asked_as(&policy, "team", &["approver", "planner"])));
}

#[test]
fn a_rule_can_ask_who_and_as_which_node() {
    let policy = ruled(ALL, &[("deny", "principal.owner != 'team' || principal.id != 'id-1' || node != 'n'")]);
    assert!(is_committed(&asked_as(&policy, "team", &[])));
    assert_eq!(told(&asked_as(&policy, "others", &[]))[0].0, DENIED);
}

#[test]
fn who_asks_for_nobody_is_refused_by_rules_about_somebody() {
    let policy = ruled(ALL, &[("deny", "principal.owner == 'evil'"), ("deny", "'evil' in thread.committed_nodes")]);
    let judged = merge(&policy, json!({}), json!({"a": 1}));
    assert_eq!(refused(&judged).iter().map(|it| it.0).collect::<Vec<_>>(), [RejectCode::RuleError; 2]);
}

fn ask(policy: &Policy, before: &Value, kind: RequestKind<'_>) -> Judgement {
    judge(policy, before, &PolicyRequest { node: &node(), kind }, &StateLimits::default())
}

#[test]
fn a_rollback_is_asked_about_too_and_learns_no_place() {
    let (before, to) = (json!({"secret": 1}), json!({"secret": 2}));
    let denied = ruled("", &[("deny", "change.path == '/secret'")]);
    let judged = ask(&denied, &before, rollback(&to));
    assert_eq!(told(&judged), [(DENIED, String::new(), Some("r0"), "why 0")]);
    let held = ruled("", &[("hold", "change.path == '/secret'")]);
    let Judgement::Hold { reasons, .. } = ask(&held, &before, rollback(&to)) else { panic!("not held") };
    assert_eq!((reasons[1].code, reasons[1].audience), (ReasonCode::Rule, ReasonAudience::Reviewers));
    let failing = ruled("", &[("deny", "object.secret")]);
    assert_eq!(refused(&ask(&failing, &before, rollback(&to)))[0].0, RejectCode::RuleError);
}

#[test]
fn a_reaffirmation_of_what_a_rule_denies_is_denied() {
    let policy = ruled("", &[("deny", "object.amount > 1000")]);
    assert!(is_held(&ask(&policy, &json!({"amount": 1}), RequestKind::Reaffirm)));
    assert_eq!(told(&ask(&policy, &json!({"amount": 1001}), RequestKind::Reaffirm))[0].0, DENIED);
}

#[test]
fn a_writers_result_that_would_be_held_is_rejected() {
    let policy = ruled(ALL, &[("hold", "change.path == '/ref'")]);
    let result = patch(PatchFormat::Merge, json!({"ref": 1, "b": 2}));
    let judged = ask(&policy, &json!({}), RequestKind::Confirm { patch: &result });
    assert_eq!(told(&judged), [(DENIED, "/ref".to_owned(), Some("r0"), "why 0")]);
}

#[test]
fn ten_thousand_changes_are_asked_about_without_running_out() {
    let rules: Vec<_> = (0..20).map(|index| format!("change.path == '/k{index}' && object.k{index} > 5")).collect();
    let rules: Vec<_> = rules.iter().map(|it| ("deny", it.as_str())).collect();
    let wide: Vec<_> = (0..19).map(|_| ("deny", "change.after > 20000")).collect();
    let request: Value =
        (0..9_999).map(|index| (format!("k{index}"), json!(index))).collect::<serde_json::Map<_, _>>().into();
    assert_eq!(told(&merge(&ruled(ALL, &rules), json!({}), request.clone())).len(), 14);
    assert!(is_committed(&merge(&ruled(ALL, &wide), json!({}), request)));
}

#[test]
fn a_rule_is_refused_with_its_place_and_what_is_wrong() {
    let refused = |rule: &str| {
        let text = format!("flow = \"f\"\n[[approval.stages]]\ngroups = [\"g\"]\n[[rules]]\n{rule}");
        Policy::compile(&PolicySource { text, ..PolicySource::default() }).expect_err(rule)
    };
    let whole = |when: &str| format!("when = {when:?}\nthen = \"deny\"\nreason = \"r\"");
    let unknown = refused(&whole("objet.a == 1"));
    assert_eq!((unknown.code, unknown.line, unknown.column), (PolicyCode::BadRule, 5, 8));
    assert!(unknown.message.contains("`rules[0].when`") && unknown.message.contains("`objet`"), "{}", unknown.message);
    assert_eq!(refused("then = \"deny\"\nreason = \"r\"").code, PolicyCode::Missing);
    assert_eq!(refused("when = \"true\"\nreason = \"r\"").code, PolicyCode::Missing);
    assert_eq!(refused("when = \"true\"\nthen = \"deny\"").code, PolicyCode::Missing);
    assert_eq!(refused("when = true\nthen = \"deny\"\nreason = \"r\"").code, PolicyCode::WrongType);
    assert_eq!(refused("when = \"true\"\nthen = \"ask\"\nreason = \"r\"").code, PolicyCode::BadValue);
    assert_eq!(refused("when = \"true\"\nthen = \"deny\"\nreason = \" \"").code, PolicyCode::BadValue);
    assert_eq!(refused("when = \"true\"\nthen = \"deny\"\nreason = \"a\\nb\"").code, PolicyCode::BadValue);
    assert_eq!(refused(&format!("{}\nunless = 1", whole("true"))).code, PolicyCode::UnknownKey);
    let twice = format!("name = \"a\"\n{0}\n[[rules]]\nname = \"a\"\n{0}", whole("true"));
    assert_eq!(refused(&twice).code, PolicyCode::BadValue);
    let nobody = "flow = \"f\"\n[[rules]]\nwhen = \"true\"\nthen = \"hold\"\nreason = \"r\"".to_owned();
    let nobody = Policy::compile(&PolicySource { text: nobody, ..PolicySource::default() }).unwrap_err();
    assert_eq!(nobody.code, PolicyCode::Contradiction);
}

#[test]
fn a_rule_that_warns_changes_nothing_of_what_becomes_of_a_request() {
    let when = "change.path.startsWith('/amount') && change.after > 1000";
    let policy = ruled(ALL, &[("warn", when), ("hold", "change.path == '/amount' && change.after > 5000")]);
    let Judgement::Commit { warnings, .. } = merge(&policy, json!({}), json!({"amount": 1001})) else { panic!() };
    let of_amount = |audience| JudgedWarning {
        rule: "r0".to_owned(),
        pointer: "/amount".try_into().unwrap(),
        detail: "why 0".to_owned(),
        audience,
    };
    assert_eq!(warnings, [of_amount(ReasonAudience::Everyone)]);
    let Judgement::Commit { warnings, .. } = merge(&policy, json!({}), json!({"amount": 1000})) else { panic!() };
    assert_eq!(warnings, []);
    let Judgement::Hold { reasons, warnings, .. } = merge(&policy, json!({}), json!({"amount": 5001})) else {
        panic!()
    };
    assert_eq!((reasons.len(), warnings), (1, vec![of_amount(ReasonAudience::Everyone)]));
    let to = json!({"amount": 2000});
    let request = PolicyRequest { node: &node(), kind: rollback(&to) };
    let judged = judge(&policy, &json!({"amount": 1}), &request, &StateLimits::default());
    let Judgement::Hold { warnings, .. } = judged else { panic!() };
    assert_eq!(warnings, [of_amount(ReasonAudience::Reviewers)], "who rolls back may not read what it brings back");
}

#[test]
fn a_rule_that_warns_and_has_no_answer_rejects() {
    let policy = ruled(ALL, &[("warn", "change.path == '/amount' && change.after > 1000")]);
    assert_eq!(
        refused(&merge(&policy, json!({}), json!({"amount": "x"}))),
        [(RejectCode::RuleError, "/amount".to_owned())]
    );
}

#[test]
fn a_warning_names_no_hidden_place_and_there_are_not_endlessly_many() {
    let policy = ruled(&format!("{ALL}\n[redaction]\nhide = [\"secret\"]"), &[("warn", "change.path != ''")]);
    let deep = json!({"secret": {"a": {"b": 1, "c": 2}}});
    let Judgement::Commit { warnings, .. } = merge(&policy, json!({}), deep) else { panic!() };
    assert_eq!(warnings.iter().map(|it| it.pointer.as_str()).collect::<Vec<_>>(), ["/secret"]);
    let many: serde_json::Map<_, _> = (0..100).map(|it| (format!("k{it:02}"), json!(1))).collect();
    let Judgement::Commit { warnings, .. } = merge(&policy, json!({}), many.into()) else { panic!() };
    assert_eq!((warnings.len(), warnings[63].pointer.as_str()), (64, "/k63"));
}

#[test]
fn a_warning_needs_no_people_and_a_budget_does_not_warn() {
    let compile = |text: &str| {
        let source = PolicySource { text: format!("flow = \"f\"\n{text}"), ..PolicySource::default() };
        Policy::compile(&source).map(drop).map_err(|it| (it.code, it.line))
    };
    assert_eq!(compile("[[rules]]\nwhen = \"true\"\nthen = \"warn\"\nreason = \"r\""), Ok(()));
    assert_eq!(compile("[budgets.call]\ntokens = 1\nthen = \"warn\""), Err((PolicyCode::BadValue, 4)));
}
