//! Policies about tools and budgets, translated into policies of Countersign.

use countersign_domain::json::patch::{Patch, PatchFormat};
use countersign_domain::policy::{
    Judgement, Policy, PolicyRequest, RejectCode, RequestContext, RequestKind, StateLimits, judge_in,
};
use countersign_domain::primitives::id::NodeId;
use countersign_domain::threads::tool_call::Tool;
use countersign_domain::threads::usage::{Totals, Usage};
use serde_json::{Value, json};

use super::CaseOutcome;
use super::said::compiled;

const WHEN: &str =
    "when(!(name==payment.transfer && args.amount is Number >1000),'amount above 1000 requires approval')";

/// Returns our policy for an expression about tools: the table and the rules.
fn said(expression: &str) -> String {
    let everything = "[tools]\nallow = [\"*\"]\n".to_owned();
    if expression == WHEN {
        let when = "has(tool.arguments.amount) && type(tool.arguments.amount) in [int, double] && tool.arguments.amount > 1000";
        return format!(
            "{everything}[[rules]]\ntools = [\"payment.transfer\"]\nwhen = {when:?}\nthen = \"deny\"\n\
             reason = \"amount above 1000 requires approval\"\n"
        );
    }
    let names = |it: &str| it.split(',').map(str::to_owned).collect::<Vec<_>>();
    let list = |kind: &str, text: &str| text.strip_prefix(kind)?.strip_suffix(')').map(names);
    let (allow, deny) = match expression.split_once(".and(") {
        Some((allow, deny)) => (list("allowList(", allow), list("denyList(", deny.strip_suffix(')').unwrap())),
        None => (list("allowList(", expression), list("denyList(", expression)),
    };
    match (expression, allow, deny) {
        ("ALLOW_ALL", ..) => everything,
        ("DENY_ALL", ..) => String::new(),
        (_, Some(allow), deny) => format!("[tools]\nallow = {allow:?}\ndeny = {:?}\n", deny.unwrap_or_default()),
        (_, None, Some(deny)) => format!("{everything}deny = {deny:?}\n"),
        _ => panic!("no such policy: {expression}"),
    }
}

/// A node calls a tool, and writes nothing.
fn call(policy: &Policy, node: &str, around: &RequestContext<'_>) -> CaseOutcome {
    let patch = Patch::read(PatchFormat::Merge, json!({})).unwrap();
    let node = NodeId::try_from(node).unwrap();
    let request = PolicyRequest { node: &node, kind: RequestKind::Propose { patch: &patch } };
    match judge_in(policy, &json!({}), &request, around, &StateLimits::default()) {
        Judgement::Commit { .. } => Ok(String::new()),
        Judgement::Hold { .. } => Err("held".to_owned()),
        Judgement::Reject { violations } => {
            let first = &violations[0];
            Err(if first.code == RejectCode::RuleDenied { first.detail.to_string() } else { first.code.to_string() })
        }
    }
}

/// `op: tool`: whether a tool may be called.
pub fn tool(case: &Value) -> (CaseOutcome, CaseOutcome) {
    let theirs = match case["expect"]["reason"].as_str() {
        None => Ok(String::new()),
        Some(reason) if reason.starts_with("tool '") || reason == "DENY_ALL policy" => {
            Err("tool_not_allowed".to_owned())
        }
        Some(reason) => Err(reason.to_owned()),
    };
    let policy = compiled(&format!("flow = \"f\"\n[nodes.n]\n{}", said(case["policy"].as_str().unwrap())));
    let tool = Tool::read(&json!({"name": case["tool"], "arguments": case["args"]})).unwrap();
    (theirs, call(&policy, "n", &RequestContext { tool: Some(&tool), ..RequestContext::default() }))
}

/// `op: budget`: which calls of a sequence may be made, each for one unit of money, counted if it is made.
pub fn budget(case: &Value) -> (CaseOutcome, CaseOutcome) {
    let Some(decisions) = case["expect"]["decisions"].as_array() else { return denied_writer_is_charged(case) };
    let limit = |name: &str| case["limits"][name].as_f64().unwrap();
    let policy = compiled(&format!(
        "flow = \"f\"\n[nodes.a]\n[nodes.b]\n[budgets.thread]\ncost = {:?}\n[budgets.node]\ncost = {:?}\n\
         [budgets.call]\ncost = {:?}\n",
        limit("perRun"),
        limit("perNode"),
        limit("perCall")
    ));
    let usage = Usage::read(&json!({"cost": case["estimate"]})).unwrap();
    let (mut spent, mut ours) = ([("a", 0), ("b", 0)], Vec::new());
    for (index, node) in case["sequence"].as_array().unwrap().iter().enumerate() {
        let node = node.as_str().unwrap();
        let each =
            spent.map(|(name, units)| (name, json!({"calls": 0, "tokens": 0, "cost_millionths": units * 1_000_000})));
        let totals: Totals = serde_json::from_value(each.into_iter().collect()).unwrap();
        let around = RequestContext { usage, spent: Some(&totals), ..RequestContext::default() };
        if call(&policy, node, &around).is_ok() {
            ours.push(format!("{index}:{node}"));
            spent.iter_mut().find(|it| it.0 == node).unwrap().1 += 1;
        }
    }
    let theirs = decisions.iter().enumerate().filter(|it| it.1["allowed"] == true);
    let theirs: Vec<String> = theirs.map(|(index, it)| format!("{index}:{}", it["node"].as_str().unwrap())).collect();
    (Ok(theirs.join(", ")), Ok(ours.join(", ")))
}

/// There a node whose write was denied has spent all the same; here what came to nothing is not counted, which is the
/// gateway's: `tests/api` has it.
fn denied_writer_is_charged(case: &Value) -> (CaseOutcome, CaseOutcome) {
    assert_eq!(case["name"], "state_denied_node_is_charged");
    assert_eq!(case["expect"]["spentRun"], 1.0);
    (Err("charged".to_owned()), Ok("not charged".to_owned()))
}
