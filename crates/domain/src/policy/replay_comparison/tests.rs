use serde_json::json;

use super::*;
use crate::chain::statement::TransitionType;
use crate::json::patch::PatchFormat;
use crate::policy::tests::{one_node, propose};

fn was(outcome: ReplayOutcome, codes: &[&str]) -> RecordedOutcome {
    RecordedOutcome::new(outcome, codes.iter().map(|it| (*it).to_owned()))
}

fn would_be(outcome: ReplayOutcome, codes: &[&str]) -> HypotheticalOutcome {
    let codes = was(outcome, codes).codes;
    HypotheticalOutcome { outcome, codes, reasons: Vec::new(), warnings: Vec::new(), errors: Vec::new() }
}

#[test]
fn the_same_is_the_same_outcome_with_the_same_codes() {
    use ReplayOutcome::{Commit, Hold, Observe, Reject};
    for (was, would_be, same) in [
        (was(Commit, &[]), would_be(Commit, &[]), true),
        (was(Commit, &[]), would_be(Hold, &["protected"]), false),
        (was(Observe, &["protected"]), would_be(Hold, &["protected"]), false),
        (was(Observe, &["protected"]), would_be(Observe, &["protected"]), true),
        (was(Hold, &["protected"]), would_be(Hold, &["rule"]), false),
        (was(Reject, &["schema"]), would_be(Reject, &["schema"]), true),
        (was(Reject, &["schema"]), would_be(Reject, &["schema", "budget"]), false),
        (was(Reject, &["schema", "attempts_exhausted"]), would_be(Reject, &["schema"]), true),
        (was(Reject, &["nobody_can_approve"]), would_be(Commit, &[]), false),
        (was(Reject, &["nobody_can_approve"]), would_be(Observe, &["protected"]), false),
    ] {
        let compared = was.compared(would_be.clone());
        let expected = if same { ReplayComparison::Same { would_be } } else { ReplayComparison::Differs { would_be } };
        assert_eq!(compared, expected, "{was:?}");
    }
}

#[test]
fn what_depends_on_more_than_the_policy_is_not_guessed() {
    use ReplayOutcome::{Commit, Hold, Reject};
    let unread = was(Reject, &["attempts_exhausted"]);
    assert_eq!(
        unread.compared(would_be(Commit, &[])),
        ReplayComparison::Unknown { why: ReplayUnknownCause::NotJudged }
    );
    assert_eq!(
        unread.compared(would_be(Reject, &["schema"])),
        ReplayComparison::Unknown { why: ReplayUnknownCause::NotJudged }
    );
    let nobody = was(Reject, &["nobody_can_approve"]);
    assert_eq!(
        nobody.compared(would_be(Hold, &["protected"])),
        ReplayComparison::Unknown { why: ReplayUnknownCause::NobodyThen }
    );
}

fn would_become((candidate, active): (&Policy, &Policy), state: &Value, content: Value) -> HypotheticalOutcome {
    let judgement = propose(candidate, state, PatchFormat::Merge, content.clone());
    let kept = RejectedRequest {
        kind: TransitionType::Propose,
        format: PatchFormat::Merge,
        content,
        attempt: 1,
        tool: None,
        usage: None,
        step: None,
        join: None,
    };
    HypotheticalOutcome::of(judgement, ReplayPolicies { candidate, active }, state, &kept)
}

#[test]
fn a_name_with_a_value_that_either_policy_hides_is_not_told() {
    let hiding = |hidden: &str| {
        crate::policy::tests::policy(&format!("[nodes.n]\nreads = [\"$\"]\n[redaction]\nhide = [{hidden:?}]"))
    };
    let (cards, names) = (hiding("card"), hiding("person"));
    let state = json!({"card": {"number": "4111-1111"}, "person": ["Ana Lima"]});
    let request = json!({"a": {"of 4111-1111": 1}, "b": {"Ana Lima": 1}, "c": {"Eva": 1}});
    for policies in [(&cards, &names), (&names, &cards)] {
        let told = would_become(policies, &state, request.clone());
        let places: Vec<_> = told.errors.iter().map(|it| it.pointer.to_string()).collect();
        assert_eq!(places, ["/a", "/b", "/c/Eva"]);
    }
}

#[test]
fn what_either_policy_hides_is_not_told() {
    let hiding = |hidden: &str| {
        crate::policy::tests::policy(&format!("[nodes.n]\nreads = [\"$\"]\n[redaction]\nhide = [{hidden:?}]"))
    };
    let (cards, names) = (hiding("card"), hiding("person"));
    let request =
        json!({"card": {"number": "4111"}, "person": {"secret_name": 1, "other": {"secret_name": 2}}, "open": 1});
    let told = would_become((&cards, &names), &json!({}), request);
    let places: Vec<_> = told.errors.iter().map(|it| it.pointer.to_string()).collect();
    assert_eq!(places, ["/card", "/open", "/person"]);
    assert!(!format!("{told:?}").contains("secret_name") && !format!("{told:?}").contains("4111"));
}

#[test]
fn a_policy_that_only_observes_would_hold_nothing() {
    let enforcing = one_node("$", "$", "", "owner");
    let mut text = enforcing.source().text.clone();
    text = text.replacen("flow = \"f\"\n", "flow = \"f\"\nmode = \"observe\"\n", 1);
    let observing = Policy::compile(&crate::policy::PolicySource { text, ..Default::default() }).unwrap();
    let became = |policy: &Policy| would_become((policy, policy), &json!({}), json!({"owner": 1})).outcome;
    assert_eq!((became(&enforcing), became(&observing)), (ReplayOutcome::Hold, ReplayOutcome::Observe));
}
