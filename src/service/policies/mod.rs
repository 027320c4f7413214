//! Activating policies, and caching compiled ones.

pub(crate) mod reason_masking;

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use countersign_domain::chain::hash::Digest;
use countersign_domain::keys::Keys;
use countersign_domain::log::event::EventType;
use countersign_domain::operations::halt::Halt;
use countersign_domain::policy::{Policy, PolicySource};
use countersign_domain::policy_changes::change_request::{PolicyChange, PolicyChangeRequest, ReplacedPolicy};
use countersign_domain::primitives::id::{AmendmentId, FlowId, PrincipalId};
use countersign_domain::primitives::time::Timestamp;
use countersign_domain::threads::flow::{Flow, PolicyRow};
use countersign_domain::threads::thread::Thread;
use serde_json::json;

use super::Service;
use super::error::{Error, Result};
use super::platform::event_recorder;
use super::platform::retry::retrying;
use crate::metrics::BlockingWork;
use crate::store::change::Draft;
use crate::store::record::Stored;
use crate::store::{LIST_ROWS_MAX, RowFilter};

/// The error for a policy that was sent to the address of another flow.
pub(in crate::service) const OTHER_FLOW: &str =
    "The `flow` of the policy is not the flow in the address. Correct one of them";

/// How many compiled policies are cached. A gateway has a few flows with a few versions each.
const POLICIES_MAX: usize = 256;

/// Compiled policies by digest. A policy with a digest never changes, so entries never become stale.
#[derive(Default)]
pub(super) struct PolicyCache {
    compiled: Mutex<HashMap<Digest, Arc<Policy>>>,
}

impl PolicyCache {
    fn get(&self, digest: Digest) -> Option<Arc<Policy>> {
        self.compiled.lock().unwrap_or_else(PoisonError::into_inner).get(&digest).cloned()
    }
}

#[derive(Clone, Debug)]
pub struct ActivatedPolicy {
    pub flow: FlowId,
    pub policy: Digest,
    /// Older policies under which heads may still be written.
    pub accepts: BTreeSet<Digest>,
}

/// The result of an activation.
#[derive(Clone, Debug)]
pub enum ActivationOutcome {
    Active(ActivatedPolicy),
    /// The current policy requires approval for a new policy.
    Waiting(Box<PolicyChangeRequest>),
}

impl Service {
    /// Returns the compiled policy with this digest. The stored text is hashed again first, so that a changed
    /// row is detected.
    pub(super) async fn policy(&self, keys: &Keys, digest: Digest) -> Result<Arc<Policy>> {
        if let Some(policy) = self.policies.get(digest) {
            return Ok(policy);
        }
        let row = self.fetch::<PolicyRow>(keys, &digest.to_string()).await?;
        let row = row.ok_or(Error::Broken("a policy is missing"))?.record;
        let source = PolicySource { text: row.text, schemas: row.schemas };
        // The row is sealed too. The digest is the one that statements name.
        if source.digest() != digest {
            return Err(Error::Broken("a policy's text does not match its digest"));
        }
        // Queued by digest, so that requests for the same policy compile it once.
        let turn = self.turns.judging.take(&digest.to_string()).await?;
        if let Some(policy) = self.policies.get(digest) {
            return Ok(policy);
        }
        let compiling = self.apart(&turn, BlockingWork::Policy, move || Policy::compile(&source));
        let policy = Arc::new(compiling.await?.map_err(Error::Policy)?);
        let mut compiled = self.policies.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        // Clearing everything is simple, and a gateway reaches this limit rarely.
        if compiled.len() >= POLICIES_MAX {
            compiled.clear();
        }
        compiled.insert(digest, Arc::clone(&policy));
        Ok(policy)
    }

    /// Activates a policy for its flow, or requests approval for it. The first policy of a new flow creates
    /// the flow.
    pub async fn activate_policy(
        &self,
        by: &PrincipalId,
        flow: Option<&FlowId>,
        source: PolicySource,
        accepts: BTreeSet<Digest>,
    ) -> Result<ActivationOutcome> {
        let policy = self.compiled(by.as_str(), &source).await?;
        if flow.is_some_and(|it| it != policy.flow()) {
            return Err(Error::invalid("/policy", OTHER_FLOW));
        }
        retrying!(self.activate_once(by, &policy, &accepts))
    }

    async fn activate_once(
        &self,
        by: &PrincipalId,
        policy: &Policy,
        accepts: &BTreeSet<Digest>,
    ) -> Result<ActivationOutcome> {
        let (keys, now) = (self.keys()?, self.now());
        let (id, digest) = (policy.flow().clone(), policy.digest());
        self.check_accepts(&keys, &id, accepts).await?;
        let mut draft = Draft::new(keys.row(), now);
        if self.fetch::<PolicyRow>(&keys, &digest.to_string()).await?.is_none() {
            draft.insert(&policy_row(policy, now))?;
        }
        let Some(old) = self.fetch::<Flow>(&keys, id.as_str()).await? else {
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
            let active = active(flow);
            self.store_response(&mut draft, &keys, &active)?;
            self.commit(draft.finish()).await?;
            return Ok(active);
        };
        // A repeated activation changes nothing, so that a deployment script can retry.
        if old.record.policy == digest && old.record.accepts == *accepts {
            return Ok(active(old.record));
        }
        // The current policy defines the approval, because a new policy must not remove the approval of its
        // own change.
        let judging = self.policy(&keys, old.record.policy).await?;
        if let Some(terms) = judging.approval().amending() {
            let over = ReplacedPolicy::of(&old.record);
            let change = PolicyChange { flow: id, policy: digest, accepts: accepts.clone(), over };
            draft.require_unchanged(&old);
            return self.request_policy_change(draft, &keys, by, change, terms).await;
        }
        let flow = activated_flow(&old, digest, accepts, by, None, now);
        draft.replace(&old, &flow)?;
        let data = activation_data(&flow, old.revision + 1);
        event_recorder::outside(&mut draft, Some(&id), now, EventType::PolicyActivated, data)?;
        let active = active(flow);
        self.store_response(&mut draft, &keys, &active)?;
        self.commit(draft.finish()).await?;
        Ok(active)
    }

    /// Checks that each accepted policy was active in the flow.
    async fn check_accepts(&self, keys: &Keys, flow: &FlowId, accepts: &BTreeSet<Digest>) -> Result<()> {
        for accepted in accepts {
            let known = self.fetch::<PolicyRow>(keys, &accepted.to_string()).await?;
            if known.is_none_or(|it| it.record.flow != *flow) {
                return Err(Error::invalid(
                    "/accepts",
                    "`accepts` names a policy that was never active in this flow. Remove its digest",
                ));
            }
        }
        Ok(())
    }

    /// Checks that no row of a new flow exists. If one does, the row of the flow was deleted, perhaps to
    /// remove a halt or an approval requirement.
    async fn check_never_was(&self, keys: &Keys, id: &FlowId) -> Result<()> {
        let (reader, of_flow) = (self.reader(keys), RowFilter::Owner(id.as_str()));
        let nothing = reader.list::<PolicyRow>(of_flow, None, 1).await?.is_empty()
            && reader.list::<Thread>(of_flow, None, 1).await?.is_empty()
            && reader.list::<PolicyChangeRequest>(of_flow, None, 1).await?.is_empty();
        if nothing { Ok(()) } else { Err(Error::Broken("a flow's row is missing")) }
    }

    pub async fn flows(&self) -> Result<Vec<FlowId>> {
        let keys = self.keys()?;
        let flows = self.reader(&keys).list::<Flow>(RowFilter::All, None, LIST_ROWS_MAX).await?;
        Ok(flows.into_iter().map(|it| it.record.id).collect())
    }

    pub async fn flow_with_policy(&self, flow: &FlowId) -> Result<Flow> {
        let keys = self.keys()?;
        Ok(self.flow(&keys, flow).await?.record)
    }

    /// Returns the text and schemas of a policy, active or not.
    pub async fn policy_source(&self, digest: Digest) -> Result<PolicySource> {
        let keys = self.keys()?;
        Ok(self.policy(&keys, digest).await?.source().clone())
    }

    pub async fn active_policy(&self, flow: &FlowId) -> Result<Arc<Policy>> {
        let keys = self.keys()?;
        let flow = self.flow(&keys, flow).await?;
        self.policy(&keys, flow.record.policy).await
    }
}

fn policy_row(policy: &Policy, created_at: Timestamp) -> PolicyRow {
    let source = policy.source();
    PolicyRow {
        digest: policy.digest(),
        flow: policy.flow().clone(),
        text: source.text.clone(),
        schemas: source.schemas.clone(),
        created_at,
    }
}

fn active(flow: Flow) -> ActivationOutcome {
    ActivationOutcome::Active(ActivatedPolicy { flow: flow.id, policy: flow.policy, accepts: flow.accepts })
}

/// Returns the flow row with another active policy.
pub(super) fn activated_flow(
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
pub(super) fn activation_data(flow: &Flow, revision: i64) -> serde_json::Value {
    let mut data =
        json!({"policy": flow.policy, "accepts": flow.accepts, "by": flow.activated_by, "revision": revision});
    if let Some(amendment) = &flow.amendment {
        data["amendment"] = json!(amendment);
    }
    data
}
