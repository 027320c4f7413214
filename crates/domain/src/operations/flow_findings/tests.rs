//! Findings about reviewers, groups, nodes and tokens of a flow.

use std::collections::BTreeSet;

use super::{AccessFacts, flow_findings};
use crate::identity::account::{Account, AccountCredential, MachineRole, PersonRole, Token};
use crate::operations::finding::{FindingCode, FindingSeverity};
use crate::policy::{Policy, PolicySource};
use crate::primitives::id::{GroupName, NodeId};
use crate::primitives::time::Timestamp;

const POLICY: &str = r#"
flow = "payments"

[nodes.planner]
writes = ["note"]

[nodes.bank]
writer = true

[redaction]
reveal_to = ["security"]

[approval]
escalate_after = "1h"
escalate_to = ["lead"]
[[approval.stages]]
groups = ["finance"]
need = 2

[approval.policy]
groups = ["security"]
"#;

const NOW: i64 = 1_000;

fn policy() -> Policy {
    Policy::compile(&PolicySource { text: POLICY.to_owned(), ..PolicySource::default() }).unwrap()
}

fn person(name: &str, groups: &[&str]) -> Account {
    Account {
        id: name.try_into().unwrap(),
        name: name.to_owned(),
        role: PersonRole::Reviewer,
        groups: groups.iter().map(|it| GroupName::try_from(*it).unwrap()).collect(),
        sign_in: AccountCredential::Password { hash: String::new() },
        disabled: false,
        created_at: Timestamp::from_millis(0),
        changed: None,
    }
}

fn token(name: &str, role: MachineRole, owner: &str, node: &str) -> Token {
    Token {
        id: name.try_into().unwrap(),
        name: name.to_owned(),
        role,
        owner: owner.to_owned(),
        flow: Some("payments".try_into().unwrap()),
        nodes: BTreeSet::from([NodeId::try_from(node).unwrap()]),
        secret_hash: String::new(),
        revoked: false,
        created_at: Timestamp::from_millis(0),
        signing: None,
        expires_at: None,
    }
}

/// A flow in which nothing is missing.
fn complete() -> AccessFacts {
    AccessFacts {
        people: vec![person("ada", &["finance", "lead"]), person("bob", &["finance"]), person("carl", &["security"])],
        tokens: vec![
            token("plan", MachineRole::Agent, "platform", "planner"),
            token("bank", MachineRole::Writer, "platform", "bank"),
        ],
        now: Timestamp::from_millis(NOW),
    }
}

fn codes(facts: &AccessFacts) -> Vec<FindingCode> {
    flow_findings(&policy(), facts).into_iter().map(|it| it.code).collect()
}

#[test]
fn complete_flow_has_no_findings() {
    assert_eq!(flow_findings(&policy(), &complete()), []);
}

#[test]
fn stage_without_enough_reviewers_is_found() {
    let mut facts = complete();
    facts.people[1].disabled = true;
    let findings = flow_findings(&policy(), &facts);
    let [finding] = findings.as_slice() else { panic!("{findings:?}") };
    assert_eq!((finding.code, finding.severity), (FindingCode::StageCannotBeMet, FindingSeverity::Problem));
    assert!(
        finding
            .detail
            .contains("stage 1 needs 2 reviewers of finance, and 1 can vote: ada, bob (the account is disabled)")
    );
    assert!(finding.remedy.contains("--group finance"), "{}", finding.remedy);
    facts.people[1] = Account { role: PersonRole::Admin, disabled: false, ..facts.people[1].clone() };
    assert_eq!(codes(&facts), [FindingCode::StageCannotBeMet]);
}

#[test]
fn group_without_a_reviewer_is_found_once() {
    let mut facts = complete();
    facts.people[0].groups = [GroupName::try_from("finance").unwrap()].into();
    assert_eq!(codes(&facts), [FindingCode::EmptyGroup]);
    // The group of policy changes also reveals values, and its stage is the finding.
    facts.people.remove(2);
    assert_eq!(codes(&facts), [FindingCode::StageCannotBeMet, FindingCode::EmptyGroup]);
}

#[test]
fn owner_who_excludes_every_reviewer_is_found() {
    for owner in ["finance", "ada", "Finance"] {
        let mut facts = complete();
        facts.tokens[0].owner = owner.to_owned();
        assert_eq!(codes(&facts), [FindingCode::OwnerExcludesEveryone], "{owner}");
        // A writer proposes nothing, so its owner excludes no reviewer.
        facts.tokens[0].role = MachineRole::Writer;
        facts.tokens[0].nodes = facts.tokens[1].nodes.clone();
        assert_eq!(codes(&facts), [FindingCode::NodeWithoutToken], "{owner}");
    }
}

#[test]
fn node_that_no_token_acts_as_is_found() {
    for change in [
        |it: &mut Token| it.revoked = true,
        |it: &mut Token| it.expires_at = Some(Timestamp::from_millis(NOW)),
        |it: &mut Token| it.flow = Some("other".try_into().unwrap()),
    ] {
        let mut facts = complete();
        change(&mut facts.tokens[0]);
        let findings = flow_findings(&policy(), &facts);
        let [finding] = findings.as_slice() else { panic!("{findings:?}") };
        assert_eq!((finding.code, finding.severity), (FindingCode::NodeWithoutToken, FindingSeverity::Warning));
        assert!(finding.remedy.contains("--role agent") && finding.remedy.contains("--node planner"));
    }
}

#[test]
fn token_for_an_unknown_node_is_found_with_the_nearest_name() {
    let mut facts = complete();
    facts.tokens.push(token("typo", MachineRole::Agent, "platform", "planer"));
    let findings = flow_findings(&policy(), &facts);
    assert_eq!(findings[0].code, FindingCode::UnknownNode);
    assert!(findings.len() == 1 && findings[0].remedy.contains("--node planner"), "{findings:?}");
}

#[test]
fn instance_of_a_node_that_is_no_writer_is_found() {
    let mut facts = complete();
    facts.tokens.push(token("bot", MachineRole::Instance, "platform", "planner"));
    assert_eq!(codes(&facts), [FindingCode::NoWriterNode]);
}
