//! Checks that a flow can work: its stages have reviewers, its nodes have tokens, and its tokens name its nodes.
//!
//! The command line, the API and the pages show the same findings, because all of them come from [`flow_findings`].

use std::collections::BTreeSet;

use super::finding::{FindingCode, SetupFinding};
use crate::identity::account::{Account, MachineRole, PersonRole, Token};
use crate::policy::{NodePolicy, Policy};
use crate::primitives::id::{FlowId, GroupName, NodeId};
use crate::primitives::nearest::nearest;
use crate::primitives::time::Timestamp;
use crate::reviews::{StageShortage, can_be_approved, shortages, stage_of, stages_of};

/// The accounts and tokens that the flows of a gateway depend on.
#[derive(Clone, Debug)]
pub struct AccessFacts {
    pub people: Vec<Account>,
    pub tokens: Vec<Token>,
    pub now: Timestamp,
}

/// Returns the problems of a flow under a policy, the worst first.
pub fn flow_findings(policy: &Policy, facts: &AccessFacts) -> Vec<SetupFinding> {
    let mut findings = Vec::new();
    let short = stage_findings(policy, facts, &mut findings);
    group_findings(policy, facts, &short, &mut findings);
    let tokens: Vec<&Token> =
        facts.tokens.iter().filter(|it| it.is_valid(facts.now) && it.of_flow(policy.flow())).collect();
    for token in &tokens {
        owner_finding(policy, facts, token, &mut findings);
        node_findings(policy, token, &mut findings);
    }
    let has_token = |node: &NodeId| tokens.iter().any(|it| it.acts_as(policy.flow(), node));
    findings.extend(policy.nodes().filter(|it| !has_token(it.0)).map(|(name, node)| without_token(policy, name, node)));
    findings.sort_by_key(|it| (it.severity, it.code));
    findings
}

/// Returns the finding for a token whose flow has no policy.
pub fn flow_without_policy(flow: &FlowId) -> SetupFinding {
    SetupFinding::warning(
        FindingCode::FlowWithoutPolicy,
        format!("No policy is active for the flow {flow}, so every request for the flow is refused."),
        "Activate one: countersign policy activate FILE".to_owned(),
    )
}

/// Reports stages with too few reviewers, and returns their groups.
fn stage_findings(policy: &Policy, facts: &AccessFacts, findings: &mut Vec<SetupFinding>) -> BTreeSet<GroupName> {
    let nobody_excluded = BTreeSet::new();
    let short = shortages(&stages_of(policy), &nobody_excluded, &facts.people);
    let change = policy.approval().amending().map(|it| stage_of(it.stage()));
    let change = shortages(change.as_slice(), &nobody_excluded, &facts.people);
    let effect = "a request that requires approval is rejected with nobody_can_approve";
    findings.extend(short.iter().map(|it| short_stage(it, &format!("In the flow {}, {it}", policy.flow()), effect)));
    findings.extend(change.iter().map(|it| {
        let words = format!("Policy changes of the flow {}: {it}", policy.flow());
        short_stage(it, &words, "a new policy cannot be requested")
    }));
    short.into_iter().chain(change).flat_map(|it| it.groups).collect()
}

fn short_stage(short: &StageShortage, words: &str, effect: &str) -> SetupFinding {
    let group = short.groups.first().map_or("GROUP", GroupName::as_str);
    let remedy = if short.eligible >= short.need {
        // Each stage has enough people, but they are the same ones.
        "The stages need more distinct people: add reviewers to their groups.".to_owned()
    } else {
        add_reviewer(group)
    };
    SetupFinding::problem(FindingCode::StageCannotBeMet, format!("{words}. Until then, {effect}."), remedy)
}

fn add_reviewer(group: &str) -> String {
    format!(
        "Add a reviewer: countersign user add NAME --role reviewer --group {group} --password-stdin. Or add the group to an account on the People page."
    )
}

/// Reports groups without a reviewer, except those of stages that are reported.
fn group_findings(
    policy: &Policy,
    facts: &AccessFacts,
    reported: &BTreeSet<GroupName>,
    findings: &mut Vec<SetupFinding>,
) {
    let approval = policy.approval();
    let stages = approval.stages().iter().flat_map(|it| it.groups()).map(|it| (it, "a stage asks it"));
    let escalation = approval.escalation().into_iter().flat_map(|it| it.to()).map(|it| (it, "reviews escalate to it"));
    let changes = approval.amending().into_iter().flat_map(|it| it.stage().groups());
    let changes = changes.map(|it| (it, "it approves policy changes"));
    let reveals = policy.reveal_to().iter().map(|it| (it, "its members may reveal redacted values"));
    let mut seen = BTreeSet::new();
    for (group, purpose) in stages.chain(escalation).chain(changes).chain(reveals) {
        let has_reviewer =
            facts.people.iter().any(|it| it.groups.contains(group) && it.role == PersonRole::Reviewer && !it.disabled);
        if has_reviewer || reported.contains(group) || !seen.insert(group) {
            continue;
        }
        let detail = format!("The group {group} has no reviewer, and in the flow {} {purpose}.", policy.flow());
        findings.push(SetupFinding::warning(FindingCode::EmptyGroup, detail, add_reviewer(group.as_str())));
    }
}

/// Reports a token whose owner excludes every reviewer, by separation of duties.
fn owner_finding(policy: &Policy, facts: &AccessFacts, token: &Token, findings: &mut Vec<SetupFinding>) {
    let asks =
        matches!(token.role, MachineRole::Agent | MachineRole::Instance | MachineRole::Provisioner | MachineRole::Host);
    let (stages, owner) = (stages_of(policy), BTreeSet::from([token.owner.clone()]));
    if !asks || stages.is_empty() || !can_be_approved(&stages, &BTreeSet::new(), &facts.people) {
        return;
    }
    let short = shortages(&stages, &owner, &facts.people);
    let Some(first) = short.first() else { return };
    let detail = format!(
        "The owner {} of the token {} is excluded from approving what the token proposes, so {first}. A request that requires approval is rejected with nobody_can_approve.",
        token.owner, token.name
    );
    let remedy =
        "Add reviewers who are not the owner, or create a token that a team without reviewers owns.".to_owned();
    findings.push(SetupFinding::problem(FindingCode::OwnerExcludesEveryone, detail, remedy));
}

/// Reports nodes of a token that do not exist, or that cannot use approvals.
fn node_findings(policy: &Policy, token: &Token, findings: &mut Vec<SetupFinding>) {
    for name in &token.nodes {
        let Some(node) = policy.node(name) else {
            let known: Vec<&str> = policy.nodes().map(|it| it.0.as_str()).collect();
            let detail = format!(
                "The token {} acts as the node {name}, which the policy of the flow {} does not have. Its requests are refused.",
                token.name,
                policy.flow()
            );
            let remedy = match nearest(name.as_str(), known.iter().copied()) {
                Some(meant) => format!("The policy has the node {meant}. Create a token with --node {meant}."),
                None => format!("Create a token for a node of the policy: {}.", known.join(", ")),
            };
            findings.push(SetupFinding::problem(FindingCode::UnknownNode, detail, remedy));
            continue;
        };
        if matches!(token.role, MachineRole::Writer | MachineRole::Instance | MachineRole::Provisioner)
            && !node.is_writer()
        {
            let role = token.role.as_str();
            let detail = format!(
                "The token {} has the role {role}, and its node {name} is not a writer in the policy of the flow {}. It can use no approval.",
                token.name,
                policy.flow()
            );
            let remedy = format!("Set writer = true in [nodes.{name}].");
            findings.push(SetupFinding::problem(FindingCode::NoWriterNode, detail, remedy));
        }
    }
}

fn without_token(policy: &Policy, name: &NodeId, node: &NodePolicy) -> SetupFinding {
    let flow = policy.flow();
    let (roles, purpose) =
        if node.is_writer() { ("writer", "Use the role instance if it calls tools.") } else { ("agent", "") };
    let remedy = format!(
        "Create one: countersign token add NAME --role {roles} --owner TEAM --flow {flow} --node {name}. {purpose}"
    );
    SetupFinding::warning(
        FindingCode::NodeWithoutToken,
        format!("No token acts as the node {name} of the flow {flow}."),
        remedy.trim_end().to_owned(),
    )
}

#[cfg(test)]
mod tests;
