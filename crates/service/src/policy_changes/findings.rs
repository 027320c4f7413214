//! Findings about flows: missing reviewers and tokens.

use countersign_domain::operations::finding::SetupFinding;
use countersign_domain::operations::flow_findings::{AccessFacts, flow_findings, flow_without_policy};
use countersign_domain::primitives::id::FlowId;

use crate::error::{Error, Result};
use crate::policy_changes::PolicyChanges;

impl PolicyChanges {
    /// Returns the accounts and tokens that flows depend on.
    pub async fn access_facts(&self) -> Result<AccessFacts> {
        let keys = self.core.keys()?;
        let (people, tokens) = (self.identity.accounts_all(&keys).await?, self.identity.tokens().await?);
        Ok(AccessFacts { people, tokens, now: self.core.now() })
    }

    /// Returns the findings about a flow under its active policy.
    pub async fn findings_of(&self, flow: &FlowId) -> Result<Vec<SetupFinding>> {
        match self.policies.active_policy(flow).await {
            Ok(policy) => Ok(flow_findings(&policy, &self.access_facts().await?)),
            Err(Error::NotFound(_)) => Ok(vec![flow_without_policy(flow)]),
            Err(error) => Err(error),
        }
    }
}
