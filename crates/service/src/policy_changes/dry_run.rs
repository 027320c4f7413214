//! Dry runs (what-if): judges a hypothetical request by a policy without any effect.

use std::sync::Arc;

use countersign_adapters::metrics::BlockingWork;
use countersign_domain::json::patch::PatchFormat;
use countersign_domain::json::size::StateLimits;
use countersign_domain::policy::{HypotheticalContext, HypotheticalRequest, Policy, PolicySource, WhatIf, what_if};
use countersign_domain::primitives::id::{FlowId, NodeId};
use serde_json::Value;

use crate::error::{Error, Result};
use crate::policy_changes::PolicyChanges;

/// A hypothetical request on a state that may be invented.
#[derive(Clone, Debug)]
pub struct DryRun {
    pub state: Value,
    pub node: NodeId,
    pub format: PatchFormat,
    pub patch: Value,
    /// The caller of the request, its tool call and usage, and the nodes that committed before it.
    pub around: HypotheticalContext,
}

impl DryRun {
    fn judged(&self, policy: &Policy, limits: &StateLimits) -> WhatIf {
        let Self { state, node, format, patch, around } = self;
        what_if(policy, &HypotheticalRequest { state, node, format: *format, patch, around }, limits)
    }
}

impl PolicyChanges {
    /// Judges a hypothetical request by the active policy of a flow, or by a candidate policy. Dry runs
    /// always wait in the fair queue, because the caller chooses the state, the policy and the request.
    pub async fn what_if(
        &self,
        by: &str,
        flow: &FlowId,
        candidate: Option<&PolicySource>,
        dry_run: DryRun,
    ) -> Result<WhatIf> {
        if !dry_run.state.is_object() {
            return Err(Error::invalid("/state", "The state is not a JSON object. Send an object"));
        }
        let active = self.policies.active_policy(flow).await?;
        let policy = match candidate {
            Some(source) => Arc::new(self.policies.compiled(by, source).await?),
            None => active,
        };
        if policy.flow() != flow {
            return Err(Error::invalid("/policy", crate::policy_changes::activate::OTHER_FLOW));
        }
        let (limits, turn) = (*self.core.limits(), self.core.turns.trying.take(by).await?);
        self.core.apart(&turn, BlockingWork::DryRun, move || dry_run.judged(&policy, &limits)).await
    }
}
