//! Dry runs: what a policy would make of a supposed request. Nothing comes of one.

use std::sync::Arc;

use serde_json::Value;

use crate::domain::json::patch::PatchFormat;
use crate::domain::json::size::StateLimits;
use crate::domain::policy::{HypotheticalContext, HypotheticalRequest, Policy, PolicySource, WhatIf, what_if};
use crate::domain::primitives::id::{FlowId, NodeId};
use crate::metrics::BlockingWork;
use crate::service::Service;
use crate::service::error::{Error, Result};

/// A state that may be made up, and what a node would ask on it.
#[derive(Clone, Debug)]
pub struct DryRun {
    pub state: Value,
    pub node: NodeId,
    pub format: PatchFormat,
    pub patch: Value,
    /// Who would ask, with what along with it, after what.
    pub around: HypotheticalContext,
}

impl DryRun {
    fn judged(&self, policy: &Policy, limits: &StateLimits) -> WhatIf {
        let Self { state, node, format, patch, around } = self;
        what_if(policy, &HypotheticalRequest { state, node, format: *format, patch, around }, limits)
    }
}

impl Service {
    /// Judges a supposed request by the flow's active policy, or by a candidate. A dry run is always done in its asker's
    /// turn: state, policy and request are the asker's choice.
    pub async fn what_if(
        &self,
        by: &str,
        flow: &FlowId,
        candidate: Option<&PolicySource>,
        dry_run: DryRun,
    ) -> Result<WhatIf> {
        if !dry_run.state.is_object() {
            return Err(Error::invalid("/state", "a state is a JSON object"));
        }
        let active = self.active_policy(flow).await?;
        let policy = match candidate {
            Some(source) => Arc::new(self.compiled(by, source).await?),
            None => active,
        };
        if policy.flow() != flow {
            return Err(Error::invalid("/policy", "the policy's flow is not the one in the address"));
        }
        let (limits, turn) = (*self.limits(), self.turns.trying.take(by).await?);
        self.apart(&turn, BlockingWork::DryRun, move || dry_run.judged(&policy, &limits)).await
    }
}
