//! Tool permissions and budgets: requests that commit, are held or are rejected.

use serde_json::{Value, json};

use super::{is_committed, is_held, node, patch, policy, refused};
use crate::chain::hash::{Digest, Tag};
use crate::chain::statement::{Statement, TransitionType};
use crate::json::patch::PatchFormat;
use crate::policy::{
    Judgement, Policy, PolicyCode, PolicyRequest, PolicySource, ReasonCode, RedactedLeaf, Redactor, RejectCode,
    RequestContext, RequestKind, StateLimits, ToolDescription, ToolRisk, judge_in, shown_arguments,
};
use crate::primitives::id::{NodeId, PrincipalId, ProposalId, ThreadId, ToolName};
use crate::primitives::time::Timestamp;
use crate::threads::tool_call::Tool;
use crate::threads::usage::{Totals, Usage};

const BOUNDED: &str = "tool_not_allowed";

const DESCRIBED: &str = r#"[tools]
allow = ["issue_refund", "crm.delete"]

[tools.issue_refund]
title = "Refund a payment"
description = "Sends money back to the customer's card."
risk = "high"
show = ["amount", "customer"]
label.customer = "Customer"
unit.amount = "EUR"

[tools."crm.delete"]
"#;

#[test]
fn tables_of_tools_describe_their_calls() {
    let policy = policy(DESCRIBED);
    let of = |name| policy.tool_description(&ToolName::try_from(name).unwrap());
    let refund = of("issue_refund").unwrap();
    assert_eq!((refund.title(), refund.risk()), (Some("Refund a payment"), Some(ToolRisk::High)));
    assert_eq!((refund.unit_of("amount"), refund.unit_of("customer")), (Some("EUR"), None));
    assert_eq!((refund.label_of("amount"), refund.label_of("customer")), (None, Some("Customer")));
    assert_eq!(["customer", "note", "amount", "order"].map(|it| refund.place_of(it)), [1, 2, 0, 2]);
    assert_eq!(of("crm.delete"), Some(&ToolDescription::default()));
    assert!(of("crm.find").is_none());
    assert!(policy.names_tool(&ToolName::try_from("crm.delete").unwrap()));
}

#[test]
fn name_that_only_a_pattern_covers_is_a_text_of_the_agent() {
    let policy = policy("[tools]\nallow = [\"crm.*\", \"search\"]\n[nodes.n]\ntools = [\"crm.find\"]");
    let named = |name| policy.names_tool(&ToolName::try_from(name).unwrap());
    assert!(named("search") && named("crm.find"));
    assert!(!named("crm.delete") && !named("crm."));
}

#[test]
fn mistake_in_a_description_is_named() {
    for (policy, code, key) in [
        ("[tools]\nalow = [\"a\"]", PolicyCode::UnknownKey, "tools.alow"),
        ("[tools]\nchanged = \"allow\"", PolicyCode::BadValue, "tools.changed"),
        ("[tools]\nchanged = \"hold\"", PolicyCode::Contradiction, "tools.changed"),
        ("[tools.a]\ntitel = \"x\"", PolicyCode::UnknownKey, "tools.a.titel"),
        ("[tools.a]\nrisk = \"severe\"", PolicyCode::BadValue, "tools.a.risk"),
        ("[tools.a]\ntitle = \"two\\nlines\"", PolicyCode::BadValue, "tools.a.title"),
        ("[tools.a]\ntitle = \"a\u{202e}b\"", PolicyCode::BadValue, "tools.a.title"),
        ("[tools.a]\nshow = [\"x\", \"x\"]", PolicyCode::BadValue, "tools.a.show[1]"),
        ("[tools.a]\nunit.x = 1", PolicyCode::WrongType, "tools.a.unit.x"),
        ("[tools.\"a b\"]", PolicyCode::BadValue, "a tool"),
        ("[tools.crm.delete]\ntitle = \"x\"", PolicyCode::UnknownKey, "tools.crm.delete"),
    ] {
        let source = PolicySource { text: format!("flow = \"f\"\n{policy}\n"), ..PolicySource::default() };
        let error = Policy::compile(&source).unwrap_err();
        assert_eq!(error.code, code, "{policy}: {}", error.message);
        assert!(error.message.contains(key), "{policy}: {}", error.message);
    }
}

/// A vote counts under another policy only if reviewers saw the same words.
#[test]
fn changed_description_changes_the_terms() {
    let other = DESCRIBED.replace("EUR", "USD");
    assert!(policy(DESCRIBED).has_same_approval_terms(&policy(DESCRIBED)));
    assert!(!policy(DESCRIBED).has_same_approval_terms(&policy(&other)));
}

fn tool(name: &str, arguments: Value) -> Value {
    json!({"name": name, "arguments": arguments})
}

/// Judges an empty patch of node `n` with this tool call and usage.
fn call_after(policy: &Policy, tool: Option<Value>, usage: Value, spent: &Totals) -> Judgement {
    let tool = tool.map(|it| Tool::read(&it).unwrap());
    let usage = Usage::read(&usage).unwrap();
    let around = RequestContext { tool: tool.as_ref(), usage, spent: Some(spent), ..RequestContext::default() };
    let (node, nothing) = (node(), patch(PatchFormat::Merge, json!({})));
    let request = PolicyRequest { node: &node, kind: RequestKind::Propose { patch: &nothing } };
    judge_in(policy, &json!({}), &request, &around, &StateLimits::default())
}

fn call(policy: &Policy, name: &str, arguments: Value) -> Judgement {
    call_after(policy, Some(tool(name, arguments)), json!({}), &Totals::default())
}

fn used(policy: &Policy, usage: Value, spent: &Totals) -> Judgement {
    call_after(policy, None, usage, spent)
}

fn codes(judgement: &Judgement) -> Vec<&'static str> {
    refused(judgement).iter().map(|(code, _)| code.as_str()).collect()
}

/// The details of what rejects.
fn details(judgement: &Judgement) -> Vec<String> {
    match judgement {
        Judgement::Reject { violations } => violations.iter().map(|it| it.detail.to_string()).collect(),
        other => panic!("{other:?}"),
    }
}

/// Totals after these committed statements.
fn after(committed: &[(&str, bool, Value)]) -> Totals {
    committed.iter().fold(Totals::default(), |totals, (node, called, usage)| {
        totals.counting(&statement(node, *called, usage.clone()), None).unwrap()
    })
}

pub(super) fn statement(node: &str, called: bool, usage: Value) -> Statement {
    let digest = Digest::of(Tag::Policy, &[b"x"]);
    Statement {
        kind: TransitionType::Propose,
        flow: "f".try_into().unwrap(),
        policy: digest,
        thread: ThreadId::try_from("t").unwrap(),
        version: 1,
        parent: Some(digest),
        node: Some(NodeId::try_from(node).unwrap()),
        principal: PrincipalId::try_from("p").unwrap(),
        proposal: ProposalId::try_from("id").unwrap(),
        attempt: Some(1),
        from: digest,
        to: digest,
        tool: called.then(|| json!({"name": "x", "arguments": digest})),
        usage: Some(usage),
        rationale: None,
        supersedes: None,
        restores: None,
        write_id: None,
        proposed_at: Timestamp::from_millis(0),
        fork: None,
        join: None,
    }
}

#[test]
fn a_node_without_tools_calls_none() {
    let nobody = policy("[nodes.n]\nwrites = [\"$\"]");
    assert_eq!(codes(&call(&nobody, "search", json!({}))), [BOUNDED]);
    let empty = policy("[tools]\nallow = [\"*\"]\n[nodes.n]\ntools = []");
    assert_eq!(codes(&call(&empty, "search", json!({}))), [BOUNDED], "an empty list is not none");
    assert!(is_committed(&used(&nobody, json!({}), &Totals::default())), "what calls nothing needs no leave");
}

#[test]
fn a_nodes_list_narrows_the_flows_and_deny_goes_before_both() {
    let both = policy(
        "[tools]\nallow = [\"crm.*\", \"search\"]\ndeny = [\"*.delete\"]\n[nodes.n]\ntools = [\"crm.*\", \"pay\"]",
    );
    for (name, allowed) in
        [("crm.read", true), ("crm.delete", false), ("search", false), ("pay", false), ("CRM.read", false)]
    {
        let judged = call(&both, name, json!({}));
        assert_eq!(is_committed(&judged), allowed, "{name}");
        assert!(allowed || codes(&judged) == [BOUNDED], "{name}");
    }
    let flows = policy("[tools]\nallow = [\"search\"]\n[nodes.n]");
    assert!(is_committed(&call(&flows, "search", json!({}))), "the flow's list is for nodes without one");
    let own = policy("[nodes.n]\ntools = [\"search\"]");
    assert!(is_committed(&call(&own, "search", json!({}))));
    let denied = policy("[tools]\ndeny = [\"search\"]\n[nodes.n]\ntools = [\"*\"]");
    assert_eq!(details(&call(&denied, "search", json!({}))), ["the policy denies this tool to every node"]);
}

fn refunds(then: &str, when: &str) -> Policy {
    policy(&format!(
        "[tools]\nallow = [\"*\"]\n[nodes.n]\n[[rules]]\nname = \"refunds\"\ntools = [\"pay.*\"]\nwhen = {when:?}\n\
         then = {then:?}\nreason = \"large refunds are asked about\""
    ))
}

#[test]
fn a_rule_of_a_tool_is_asked_for_that_tool_alone() {
    let rule = refunds("hold", "tool.name == 'pay.refund' && tool.arguments.amount > 100");
    assert!(is_committed(&call(&rule, "pay.refund", json!({"amount": 100}))));
    assert!(is_committed(&call(&rule, "search", json!({"amount": 101}))), "no such tool");
    assert!(is_committed(&used(&rule, json!({}), &Totals::default())), "no tool at all");
    let Judgement::Hold { reasons, .. } = call(&rule, "pay.refund", json!({"amount": 101})) else { panic!("not held") };
    assert_eq!((reasons[0].code, &*reasons[0].text), (ReasonCode::Rule, "large refunds are asked about"));
}

#[test]
fn malformed_arguments_pass_no_predicate() {
    for then in ["hold", "deny"] {
        for when in ["tool.arguments.amount > 100", "!(tool.arguments.amount <= 100)"] {
            let rule = refunds(then, when);
            for arguments in [
                json!({}),
                json!({"amount": "5"}),
                json!({"amount": null}),
                json!({"amount": [5]}),
                json!({"amount": {"value": 5}}),
                json!({"amount": true}),
                json!({"Amount": 5}),
            ] {
                let judged = call(&rule, "pay.refund", arguments.clone());
                assert_eq!(codes(&judged), ["rule_error"], "{when} {arguments}");
            }
        }
    }
}

#[test]
fn a_rule_that_asks_about_a_tool_where_there_is_none_rejects() {
    let bare = policy("[[rules]]\nwhen = \"tool.name == 'x'\"\nthen = \"deny\"\nreason = \"r\"\n[nodes.n]");
    assert_eq!(codes(&used(&bare, json!({}), &Totals::default())), ["rule_error"]);
    let asking = "has(tool.name) && tool.name == 'x' || has(usage.tokens) && usage.tokens > 5 || has(usage.cost) && usage.cost > 0.5";
    let asking =
        policy(&format!("[[rules]]\nwhen = {asking:?}\nthen = \"deny\"\nreason = \"r\"\n[nodes.n]\ntools=[\"*\"]"));
    assert!(is_committed(&used(&asking, json!({}), &Totals::default())));
    assert_eq!(codes(&call(&asking, "x", json!({}))), ["rule_denied"]);
    assert_eq!(codes(&used(&asking, json!({"tokens": 6}), &Totals::default())), ["rule_denied"]);
    assert_eq!(codes(&used(&asking, json!({"cost": 0.6}), &Totals::default())), ["rule_denied"]);
    assert!(is_committed(&used(&asking, json!({"tokens": 5, "cost": 0.5}), &Totals::default())));
}

#[test]
fn each_bound_is_held_to_exactly() {
    let bounded = |table: &str| policy(&format!("[nodes.n]\ntools = [\"*\"]\n[nodes.m]\n{table}"));
    let mine =
        after(&[("n", true, json!({"tokens": 60, "cost": 0.3})), ("m", true, json!({"tokens": 30, "cost": 0.6}))]);
    for (table, fits, breaches) in [
        ("[budgets.call]\ntokens = 40", json!({"tokens": 40}), json!({"tokens": 41})),
        ("[budgets.call]\ncost = 0.5", json!({"cost": 0.5}), json!({"cost": 0.500_001})),
        ("[budgets.node]\ntokens = 100", json!({"tokens": 40}), json!({"tokens": 41})),
        ("[budgets.node]\ncost = 1", json!({"cost": 0.7}), json!({"cost": 0.700_001})),
        ("[nodes.n.budget]\ntokens = 100", json!({"tokens": 40}), json!({"tokens": 41})),
        ("[nodes.n.budget]\ncost = 1.0", json!({"cost": 0.7}), json!({"cost": 0.700_001})),
        ("[budgets.thread]\ntokens = 100", json!({"tokens": 10}), json!({"tokens": 11})),
        ("[budgets.thread]\ncost = 1.0", json!({"cost": 0.1}), json!({"cost": 0.100_001})),
    ] {
        let policy = bounded(table);
        assert!(is_committed(&used(&policy, fits, &mine)), "{table}");
        assert_eq!(codes(&used(&policy, breaches, &mine)), ["budget"], "{table}");
        let other = after(&[("m", true, json!({"tokens": 1_000, "cost": 99}))]);
        let of_others = used(&policy, json!({"tokens": 1, "cost": 0.01}), &other);
        assert_eq!(is_committed(&of_others), !table.contains("thread"), "{table}");
    }
    for (table, before, fits) in [
        ("[budgets.node]\ncalls = 2", 1, true),
        ("[budgets.node]\ncalls = 2", 2, false),
        ("[nodes.n.budget]\ncalls = 0", 0, false),
        ("[budgets.thread]\ncalls = 2", 1, true),
        ("[budgets.thread]\ncalls = 2", 2, false),
    ] {
        let spent = after(&vec![("n", true, json!({})); before]);
        assert_eq!(is_committed(&call_after(&bounded(table), Some(tool("x", json!({}))), json!({}), &spent)), fits);
        assert!(is_committed(&used(&bounded(table), json!({}), &spent)), "what calls nothing breaches no calls");
    }
}

#[test]
fn what_is_bounded_must_be_said() {
    let bounded = policy("[nodes.n]\n[budgets.thread]\ntokens = 100\ncost = 1\nthen = \"hold\"");
    let judged = used(&bounded, json!({}), &Totals::default());
    assert_eq!(codes(&judged), ["budget", "budget"]);
    assert!(details(&judged)[0].contains("usage.tokens") && details(&judged)[1].contains("usage.cost"));
    assert_eq!(codes(&used(&bounded, json!({"tokens": 1}), &Totals::default())), ["budget"]);
    assert!(is_committed(&used(&bounded, json!({"tokens": 0, "cost": 0}), &Totals::default())));
}

#[test]
fn a_breach_does_what_its_table_says() {
    let mixed = policy(
        "[nodes.n]\n[budgets.call]\ntokens = 10\n[budgets.thread]\ntokens = 15\nthen = \"hold\"\n\
         [nodes.n.budget]\ntokens = 12\nthen = \"hold\"",
    );
    let spent = after(&[("n", false, json!({"tokens": 10}))]);
    let Judgement::Hold { reasons, .. } = used(&mixed, json!({"tokens": 6}), &spent) else { panic!("not held") };
    let told: Vec<_> = reasons.iter().map(|it| (it.code, it.text.as_str())).collect();
    let node = (ReasonCode::Budget, "the node exceeds its token limit for one thread");
    assert_eq!(told, [node, (ReasonCode::Budget, "the thread exceeds its token limit")]);
    assert_eq!(codes(&used(&mixed, json!({"tokens": 11}), &spent)), ["budget"], "what rejects goes first");
    let past = after(&[("n", false, json!({"tokens": 99}))]);
    assert!(is_committed(&used(&mixed, json!({"tokens": 0}), &past)), "what uses nothing breaches nothing");
    assert!(is_held(&used(&mixed, json!({"tokens": 1}), &past)));
}

#[test]
fn what_a_statement_says_is_counted_for_its_node() {
    let totals = after(&[
        ("n", true, json!({"tokens": 5, "cost": 0.1})),
        ("n", false, json!({"tokens": 6, "cost": 0.2})),
        ("m", true, json!({})),
    ]);
    let of = totals.of_node(&node());
    assert_eq!((of.calls, of.tokens, of.cost_millionths.text()), (1, 11, "0.3".to_owned()));
    let all = totals.of_thread();
    assert_eq!((all.calls, all.tokens, all.cost_millionths.text()), (2, 11, "0.3".to_owned()));
    assert!(totals.counting(&statement("n", false, json!({"tokens": "1"})), None).is_none(), "what nobody could say");
}

#[test]
fn hidden_arguments_are_cut_where_they_begin() {
    let hiding = policy("[tools]\nhide = [\"card\", \"*.password\"]\n[nodes.n]");
    let secret = json!({"card": {"number": "4111", "owner": "me"}, "login": {"password": "pw", "user": "u"}, "x": []});
    let called = Tool::read(&tool("pay", secret)).unwrap();
    let shown = shown_arguments(&Redactor::of(&hiding, [], Some(&called)), &called);
    let places: Vec<_> = shown
        .iter()
        .map(|it| match it {
            RedactedLeaf::Hidden { pointer } => (pointer.to_string(), None),
            RedactedLeaf::Shown { pointer, value } => (pointer.to_string(), Some(value.clone())),
        })
        .collect();
    let expected = [
        ("/card".to_owned(), None),
        ("/login/password".to_owned(), None),
        ("/login/user".to_owned(), Some(json!("u"))),
        ("/x".to_owned(), Some(json!([]))),
    ];
    assert_eq!(places, expected);
}

#[test]
fn a_table_that_means_nothing_is_refused_with_its_place() {
    for (text, code, name) in [
        ("[budgets.thread]\n", PolicyCode::Missing, "`budgets.thread`"),
        ("[budgets.thread]\nthen = \"deny\"", PolicyCode::Missing, "`budgets.thread`"),
        ("[budgets.call]\ncalls = 1", PolicyCode::UnknownKey, "`budgets.call.calls`"),
        ("[budgets.call]\ncontext_tokens = 1", PolicyCode::UnknownKey, "`budgets.call.context_tokens`"),
        ("[budgets.thread]\ncontext_tokens = 1.5", PolicyCode::WrongType, "`budgets.thread.context_tokens`"),
        ("[nodes.n.budget]\ncontext_tokens = -1", PolicyCode::BadValue, "`nodes.n.budget.context_tokens`"),
        ("[budgets.flow]\ncalls = 1", PolicyCode::UnknownKey, "`budgets.flow`"),
        ("[budgets.thread]\ntokens = -1", PolicyCode::BadValue, "`budgets.thread.tokens`"),
        ("[budgets.thread]\ntokens = 1.5", PolicyCode::WrongType, "`budgets.thread.tokens`"),
        ("[budgets.thread]\ntokens = 9000000000000000", PolicyCode::BadValue, "`budgets.thread.tokens`"),
        ("[budgets.thread]\ncost = \"1\"", PolicyCode::WrongType, "`budgets.thread.cost`"),
        ("[budgets.thread]\ncost = -0.5", PolicyCode::BadValue, "`budgets.thread.cost`"),
        ("[budgets.thread]\ncost = inf", PolicyCode::BadValue, "`budgets.thread.cost`"),
        ("[budgets.thread]\ncost = 0.0000001", PolicyCode::BadValue, "`budgets.thread.cost`"),
        ("[budgets.thread]\ncost = 0x10", PolicyCode::WrongType, "`budgets.thread.cost`"),
        ("[budgets.thread]\ncalls = 1\nthen = \"warn\"", PolicyCode::BadValue, "`budgets.thread.then`"),
        ("[budgets.thread]\ncalls = 1\nthen = \"hold\"", PolicyCode::Contradiction, "needs reviewers"),
        ("[nodes.n.budget]\ncalls = 1\nthen = \"hold\"", PolicyCode::Contradiction, "needs reviewers"),
        ("[nodes.n.budget]\n", PolicyCode::Missing, "`nodes.n.budget`"),
        ("[nodes.n]\ntools = [\"a b\"]", PolicyCode::BadValue, "`nodes.n.tools[0]`"),
        ("[nodes.n]\ntools = [\"a\", \"a\"]", PolicyCode::BadValue, "`nodes.n.tools[1]`"),
        ("[nodes.n]\ntools = \"*\"", PolicyCode::WrongType, "`nodes.n.tools`"),
        ("[tools]\nallows = []", PolicyCode::UnknownKey, "`tools.allows`"),
        ("[tools.search]\nallow = []", PolicyCode::UnknownKey, "`tools.search.allow`"),
        (
            "[[rules]]\ntools = [\"/\"]\nwhen = \"true\"\nthen = \"deny\"\nreason = \"r\"",
            PolicyCode::BadValue,
            "`rules[0].tools[0]`",
        ),
        ("[[rules]]\nwhen = \"tool.nam == 'x'\"\nthen = \"deny\"\nreason = \"r\"", PolicyCode::BadRule, "`tool.nam`"),
        ("[[rules]]\nwhen = \"tool == 'x'\"\nthen = \"deny\"\nreason = \"r\"", PolicyCode::BadRule, "`tool`"),
    ] {
        let source = PolicySource { text: format!("flow = \"f\"\n{text}"), ..PolicySource::default() };
        let error = Policy::compile(&source).expect_err(text);
        assert_eq!(error.code, code, "{text}: {error}");
        assert!(error.message.contains(name), "{text}: {error}");
    }
}

#[test]
fn a_writers_result_is_not_held_against_budgets() {
    let bounded = policy("[nodes.n]\nwriter = true\nwrites = [\"$\"]\n[budgets.thread]\ntokens = 1");
    let (node, result) = (node(), patch(PatchFormat::Merge, json!({"ref": 1})));
    let request = PolicyRequest { node: &node, kind: RequestKind::Confirm { patch: &result } };
    let judged = judge_in(&bounded, &json!({}), &request, &RequestContext::default(), &StateLimits::default());
    assert!(is_committed(&judged), "the write has happened");
    assert_eq!(RejectCode::Budget.as_str(), "budget");
}
