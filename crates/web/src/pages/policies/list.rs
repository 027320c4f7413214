//! `GET /policies`: the active policy and the latest policy change requests of each flow.

use countersign_domain::operations::flow_findings::flow_findings;
use countersign_domain::policy::Policy;
use countersign_domain::policy_changes::change_request::{PolicyChangeRequest, PolicyChangeState};
use countersign_domain::primitives::time::Timestamp;
use countersign_domain::threads::flow::{Flow, Mode};
use countersign_service::error::Result;
use countersign_service::policies::Policies;
use countersign_service::policy_changes::PolicyChanges;

use super::list_view::{FlowCard, PoliciesPage, PolicyChangeRow};
use crate::pages::shared::findings::FindingRow;
use crate::pages::shared::format::moment;
use crate::pages::shared::layout::{DigestText, Tone};
use crate::pages::shared::safe_text::SafeLine;
use crate::pages::shared::visitor::Visitor;
use crate::state::Capability;

/// Maximum number of policy change requests in the card of a flow.
const AMENDMENTS_SHOWN: usize = 10;

/// `GET /policies`.
pub async fn show(
    policies: Capability<Policies>,
    policy_changes: Capability<PolicyChanges>,
    visitor: Visitor,
) -> Result<PoliciesPage> {
    let (mut flows, facts) = (Vec::new(), policy_changes.access_facts().await?);
    for flow in policies.flows().await? {
        let flow = policies.flow_with_policy(&flow).await?;
        let policy = policies.active_policy(&flow.id).await?;
        let findings = flow_findings(&policy, &facts).iter().map(FindingRow::from).collect();
        let amendments = policy_changes.policy_changes_of(&flow.id).await?;
        let now = visitor.now();
        let amendments = amendments.iter().take(AMENDMENTS_SHOWN).map(|it| row(it, now)).collect();
        flows.push(FlowCard { findings, amendments, ..card(&flow, &policy, now) });
    }
    Ok(PoliciesPage { shell: visitor.shell(None).await?, flows })
}

/// Returns the card of a flow, without findings and policy change requests.
fn card(flow: &Flow, policy: &Policy, now: Timestamp) -> FlowCard {
    FlowCard {
        name: SafeLine::new(flow.id.as_str()),
        mode: match policy.mode() {
            Mode::Enforce => "Enforced",
            Mode::Observe => "Observe mode",
        },
        policy: DigestText::new(flow.policy.to_string()),
        since: moment(flow.activated_at, now),
        by: SafeLine::new(flow.activated_by.as_str()),
        accepts: flow.accepts.iter().map(|it| DigestText::new(it.to_string())).collect(),
        findings: Vec::new(),
        text: policy.source().text.lines().map(SafeLine::new).collect(),
        amendments: Vec::new(),
    }
}

pub fn row(amendment: &PolicyChangeRequest, now: Timestamp) -> PolicyChangeRow {
    let (words, tone) = standing(amendment, now);
    PolicyChangeRow {
        url: format!("/amendments/{}", amendment.id),
        flow: SafeLine::new(amendment.change.flow.as_str()),
        policy: DigestText::new(amendment.change.policy.to_string()),
        proposer: SafeLine::new(amendment.proposer.as_str()),
        words,
        tone,
        at: moment(amendment.state.ended_at().unwrap_or(amendment.expires_at), now),
    }
}

/// Returns the state of a policy change request as a word, with its colour.
pub fn standing(amendment: &PolicyChangeRequest, now: Timestamp) -> (&'static str, Tone) {
    match &amendment.state {
        PolicyChangeState::Open {} if amendment.is_open(now) => ("Waiting for approval", Tone::Care),
        // A worker stores the expiry later, so a request after its deadline already counts as expired.
        PolicyChangeState::Open {} | PolicyChangeState::Expired { .. } => ("Expired", Tone::Plain),
        PolicyChangeState::Activated { .. } => ("Activated", Tone::Good),
        PolicyChangeState::Denied { .. } => ("Denied", Tone::Bad),
        PolicyChangeState::Cancelled { .. } => ("Cancelled", Tone::Plain),
        PolicyChangeState::Superseded { .. } => ("Superseded", Tone::Plain),
    }
}
