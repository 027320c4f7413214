//! Compiled policies by digest, and the active policies of flows.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError};

use countersign_adapters::metrics::BlockingWork;
use countersign_domain::chain::hash::Digest;
use countersign_domain::keys::Keys;
use countersign_domain::policy::{
    InitialState, Policy, PolicySource, SubmittedPolicy, Violation, judge_initial, parts,
};
use countersign_domain::policy_changes::change_request::ReplacedPolicy;
use countersign_domain::primitives::id::FlowId;
use countersign_domain::threads::flow::{Flow, PolicyRow};
use countersign_store::record::{ListBounds, Stored};
use countersign_store::{LIST_ROWS_MAX, RowFilter};
use serde_json::Value;

use crate::error::{Error, Result};
use crate::policies::Policies;
use crate::policies::policy_cache::POLICIES_MAX;

/// Pages of the list of flows.
const FLOW_PAGES_MAX: usize = 100;

impl Policies {
    /// Returns the compiled policy with this digest. The stored text is hashed again first, so that a changed
    /// row is detected.
    pub(crate) async fn policy(&self, keys: &Keys, digest: Digest) -> Result<Arc<Policy>> {
        if let Some(policy) = self.cache.get(digest) {
            return Ok(policy);
        }
        let row = self.core.fetch::<PolicyRow>(keys, &digest.to_string()).await?;
        let row = row.ok_or(Error::Broken("a policy is missing"))?.record;
        let source = PolicySource { text: row.text, schemas: row.schemas };
        // The row is sealed too. The digest is the one that statements name.
        if source.digest() != digest {
            return Err(Error::Broken("a policy's text does not match its digest"));
        }
        // Queued by digest, so that requests for the same policy compile it once.
        let turn = self.core.turns.judging.take(&digest.to_string()).await?;
        if let Some(policy) = self.cache.get(digest) {
            return Ok(policy);
        }
        let compiling = self.core.apart(&turn, BlockingWork::Policy, move || Policy::compile(&source));
        let policy = Arc::new(compiling.await?.map_err(Error::Policy)?);
        let mut compiled = self.cache.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        // Clearing everything is simple, and a gateway reaches this limit rarely.
        if compiled.len() >= POLICIES_MAX {
            compiled.clear();
        }
        compiled.insert(digest, Arc::clone(&policy));
        Ok(policy)
    }

    /// Checks that each accepted policy was active in the flow.
    pub(crate) async fn check_accepts(&self, keys: &Keys, flow: &FlowId, accepts: &BTreeSet<Digest>) -> Result<()> {
        for accepted in accepts {
            let known = self.core.fetch::<PolicyRow>(keys, &accepted.to_string()).await?;
            if known.is_none_or(|it| it.record.flow != *flow) {
                return Err(Error::invalid(
                    "/accepts",
                    "`accepts` names a policy that was never active in this flow. Remove its digest",
                ));
            }
        }
        Ok(())
    }

    pub async fn flows(&self) -> Result<Vec<FlowId>> {
        let keys = self.core.keys()?;
        let flows = self.core.reader(&keys).list::<Flow>(RowFilter::All, None, LIST_ROWS_MAX).await?;
        Ok(flows.into_iter().map(|it| it.record.id).collect())
    }

    pub async fn flow_with_policy(&self, flow: &FlowId) -> Result<Flow> {
        let keys = self.core.keys()?;
        Ok(self.core.flow(&keys, flow).await?.record)
    }

    /// Returns the text and schemas of a policy, active or not.
    pub async fn policy_source(&self, digest: Digest) -> Result<PolicySource> {
        let keys = self.core.keys()?;
        Ok(self.policy(&keys, digest).await?.source().clone())
    }

    pub async fn active_policy(&self, flow: &FlowId) -> Result<Arc<Policy>> {
        let keys = self.core.keys()?;
        let flow = self.core.flow(&keys, flow).await?;
        self.policy(&keys, flow.record.policy).await
    }

    /// Returns the active policy of each flow.
    pub(crate) async fn active_policy_by_flow(&self, keys: &Keys) -> Result<ActivePolicies> {
        let active = |it: Stored<Flow>| Some((it.record.id.clone(), ReplacedPolicy::of(&it.record)));
        let all =
            self.core.reader(keys).select(RowFilter::All, None, ListBounds::pages(FLOW_PAGES_MAX), active).await?;
        // A missing flow would count as one without a policy.
        if all.is_complete {
            return Ok(all.items.into_iter().collect());
        }
        Err(Error::WrongState("there are more flows than the gateway can list"))
    }

    /// Compiles a submitted policy. A megabyte of schemas takes seconds, so this runs in the queue for dry
    /// runs.
    pub(crate) async fn compiled(&self, by: &str, source: &PolicySource) -> Result<Policy> {
        let source = source.clone();
        let turn = self.core.turns.trying.take(by).await?;
        self.core.apart(&turn, BlockingWork::Policy, move || Policy::compile(&source)).await?.map_err(Error::Policy)
    }

    /// Compiles a policy that should be activated, and checks that its paths and tools can match something.
    pub(crate) async fn submitted(&self, by: &str, source: &PolicySource) -> Result<SubmittedPolicy> {
        let source = source.clone();
        let turn = self.core.turns.trying.take(by).await?;
        self.core
            .apart(&turn, BlockingWork::Policy, move || Policy::compile_submitted(&source))
            .await?
            .map_err(Error::Policy)
    }

    /// Judges the initial state that a host application creates a thread with.
    pub(crate) async fn judge_initial_state(
        &self,
        by: &str,
        policy: &Arc<Policy>,
        state: &Value,
    ) -> Result<std::result::Result<InitialState, Vec<Violation>>> {
        let limits = *self.core.limits();
        if policy.effort(None, parts(state)).is_light() {
            return Ok(judge_initial(policy, state, &limits));
        }
        let (policy, state) = (Arc::clone(policy), state.clone());
        let turn = self.core.turns.judging.take(by).await?;
        self.core.apart(&turn, BlockingWork::Judgement, move || judge_initial(&policy, &state, &limits)).await
    }
}

/// The active policy of each flow, and its activation time.
pub(crate) type ActivePolicies = BTreeMap<FlowId, ReplacedPolicy>;
