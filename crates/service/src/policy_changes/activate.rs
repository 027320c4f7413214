//! Activates policies, or requests approval for them.

use std::collections::BTreeSet;

use countersign_domain::chain::hash::Digest;
use countersign_domain::keys::Keys;
use countersign_domain::log::event::EventType;
use countersign_domain::operations::finding::SetupFinding;
use countersign_domain::operations::flow_findings::flow_findings;
use countersign_domain::operations::halt::Halt;
use countersign_domain::policy::{Policy, PolicySource, PolicyStage, PolicyWarning, SubmittedPolicy};
use countersign_domain::policy_changes::change_request::{PolicyChange, PolicyChangeRequest, ReplacedPolicy};
use countersign_domain::primitives::id::{AmendmentId, FlowId, NodeId, PrincipalId};
use countersign_domain::primitives::time::Timestamp;
use countersign_domain::threads::flow::{Flow, PolicyRow};
use countersign_domain::threads::thread::Thread;
use countersign_store::RowFilter;
use countersign_store::change::Draft;
use countersign_store::record::Stored;
use serde_json::json;

use crate::error::{Error, Result};
use crate::platform::event_recorder;
use crate::platform::retry::retrying;
use crate::policy_changes::PolicyChanges;

impl PolicyChanges {
    /// Activates a policy for its flow, or requests approval for it. The first policy of a new flow creates
    /// the flow.
    pub async fn activate_policy(
        &self,
        by: &PrincipalId,
        flow: Option<&FlowId>,
        source: PolicySource,
        accepts: BTreeSet<Digest>,
    ) -> Result<ActivationOutcome> {
        // Compiling waits in the fair queue, so a retry does not repeat it.
        let submitted = self.policies.submitted(by.as_str(), &source).await?;
        if flow.is_some_and(|it| it != submitted.policy.flow()) {
            return Err(Error::invalid("/policy", OTHER_FLOW));
        }
        retrying!(self.activate_once(by, &submitted, &accepts))
    }

    pub(crate) async fn activate_once(
        &self,
        by: &PrincipalId,
        submitted: &SubmittedPolicy,
        accepts: &BTreeSet<Digest>,
    ) -> Result<ActivationOutcome> {
        let policy = &submitted.policy;
        let (keys, now) = (self.core.keys()?, self.core.now());
        let (id, digest) = (policy.flow().clone(), policy.digest());
        self.policies.check_accepts(&keys, &id, accepts).await?;
        let mut draft = Draft::new(keys.row(), now);
        // An earlier activation may have stored the same policy.
        if self.core.fetch::<PolicyRow>(&keys, &digest.to_string()).await?.is_none() {
            draft.insert(&policy_row(policy, now))?;
        }
        let Some(old) = self.core.fetch::<Flow>(&keys, id.as_str()).await? else {
            self.check_never_was(&keys, &id).await?;
            let flow = Flow {
                id: id.clone(),
                policy: digest,
                accepts: accepts.clone(),
                halt: Halt::default(),
                stops: None,
                activated_at: now,
                activated_by: by.clone(),
                amendment: None,
            };
            draft.insert(&flow)?;
            let data = activation_data(&flow, 1);
            event_recorder::outside(&mut draft, Some(&id), now, EventType::PolicyActivated, data)?;
            let active = self.activated(flow, submitted).await?;
            self.core.store_response(&mut draft, &keys, &active)?;
            self.core.commit(draft.finish()).await?;
            return Ok(active);
        };
        // A repeated activation changes nothing, so that a deployment script can retry.
        if old.record.policy == digest && old.record.accepts == *accepts {
            return self.activated(old.record, submitted).await;
        }
        // The current policy defines the approval, because a new policy must not remove the approval of its
        // own change.
        let judging = self.policies.policy(&keys, old.record.policy).await?;
        if let Some(terms) = judging.approval().amending() {
            let over = ReplacedPolicy::of(&old.record);
            let change = PolicyChange { flow: id, policy: digest, accepts: accepts.clone(), over };
            // The request names the policy that it replaces, so the commit fails if another one is activated first.
            draft.require_unchanged(&old);
            return self.request_policy_change(draft, &keys, by, change, terms).await;
        }
        let flow = activated_flow(&old, digest, accepts, by, None, now);
        draft.replace(&old, &flow)?;
        let data = activation_data(&flow, old.revision + 1);
        event_recorder::outside(&mut draft, Some(&id), now, EventType::PolicyActivated, data)?;
        let active = self.activated(flow, submitted).await?;
        self.core.store_response(&mut draft, &keys, &active)?;
        self.core.commit(draft.finish()).await?;
        Ok(active)
    }

    /// Returns the outcome of an activation. It is made before the commit, because the response is stored with it.
    async fn activated(&self, flow: Flow, submitted: &SubmittedPolicy) -> Result<ActivationOutcome> {
        let policy = &submitted.policy;
        Ok(ActivationOutcome::Active(ActivatedPolicy {
            flow: flow.id,
            policy: flow.policy,
            accepts: flow.accepts,
            nodes: policy.nodes().map(|(name, _)| name.clone()).collect(),
            stages: policy.approval().stages().to_vec(),
            warnings: submitted.warnings.clone(),
            findings: flow_findings(policy, &self.access_facts().await?),
        }))
    }

    /// Checks that no row of a new flow exists. If one does, the row of the flow was deleted, perhaps to
    /// remove a halt or an approval requirement.
    pub(crate) async fn check_never_was(&self, keys: &Keys, id: &FlowId) -> Result<()> {
        let (reader, of_flow) = (self.core.reader(keys), RowFilter::Owner(id.as_str()));
        let nothing = reader.list::<PolicyRow>(of_flow, None, 1).await?.is_empty()
            && reader.list::<Thread>(of_flow, None, 1).await?.is_empty()
            && reader.list::<PolicyChangeRequest>(of_flow, None, 1).await?.is_empty();
        if nothing { Ok(()) } else { Err(Error::Broken("a flow's row is missing")) }
    }
}

#[derive(Clone, Debug)]
pub struct ActivatedPolicy {
    pub flow: FlowId,
    pub policy: Digest,
    /// Older policies under which heads may still be written.
    pub accepts: BTreeSet<Digest>,
    pub nodes: Vec<NodeId>,
    pub stages: Vec<PolicyStage>,
    /// Probable mistakes in the policy.
    pub warnings: Vec<PolicyWarning>,
    /// Missing reviewers and tokens.
    pub findings: Vec<SetupFinding>,
}

/// The result of an activation.
#[derive(Clone, Debug)]
pub enum ActivationOutcome {
    Active(ActivatedPolicy),
    /// The current policy requires approval for a new policy.
    Waiting(Box<PolicyChangeRequest>),
}

pub(crate) fn policy_row(policy: &Policy, created_at: Timestamp) -> PolicyRow {
    let source = policy.source();
    PolicyRow {
        digest: policy.digest(),
        flow: policy.flow().clone(),
        text: source.text.clone(),
        schemas: source.schemas.clone(),
        created_at,
    }
}

/// Returns the flow row with another active policy.
pub(crate) fn activated_flow(
    old: &Stored<Flow>,
    policy: Digest,
    accepts: &BTreeSet<Digest>,
    by: &PrincipalId,
    amendment: Option<&AmendmentId>,
    now: Timestamp,
) -> Flow {
    Flow {
        policy,
        accepts: accepts.clone(),
        activated_at: now,
        activated_by: by.clone(),
        amendment: amendment.cloned(),
        ..old.record.clone()
    }
}

/// Returns the event data of an activation.
pub(crate) fn activation_data(flow: &Flow, revision: i64) -> serde_json::Value {
    let mut data =
        json!({"policy": flow.policy, "accepts": flow.accepts, "by": flow.activated_by, "revision": revision});
    if let Some(amendment) = &flow.amendment {
        data["amendment"] = json!(amendment);
    }
    data
}

/// The error for a policy that was sent to the address of another flow.
pub(crate) const OTHER_FLOW: &str = "The `flow` of the policy is not the flow in the address. Correct one of them";
