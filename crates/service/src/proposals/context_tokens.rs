//! Counts the context tokens of a node for the budgets, once for each decision and in the fair queue.

use countersign_domain::context::{ViewRequirements, count_given};
use countersign_domain::policy::{Policy, project};
use countersign_domain::primitives::id::NodeId;
use serde_json::Value;

use super::context::ProposalContext;
use crate::error::Result;
use crate::proposals::Proposals;

/// The name of the work in an error, if the count fails.
pub(crate) const COUNTING: &str = "the counting of tokens";

impl Proposals {
    /// Returns the context tokens of the proposing node, if the policy has a budget for them.
    pub(crate) async fn context_tokens_for(&self, asking: &ProposalContext<'_>) -> Result<Option<u64>> {
        if !asking.proposal.ask.kind().is_given_context() {
            return Ok(None);
        }
        if let Some(known) = asking.given.get() {
            return Ok(*known);
        }
        let by = asking.by.principal();
        let counted = self.given(asking.policy, &asking.proposal.node, &asking.head.state, by.as_str()).await?;
        Ok(*asking.given.get_or_init(|| counted))
    }

    /// Returns the context tokens of a node on a state, if the policy has a budget for them. The count of a
    /// large state takes long, so the caller waits in the fair queue.
    pub(crate) async fn given(&self, policy: &Policy, node: &NodeId, state: &Value, by: &str) -> Result<Option<u64>> {
        if !policy.bounds_context(node) {
            return Ok(None);
        }
        let turn = self.core.turns.counting.take(by).await?;
        // Projected here and not in the blocking task, because the task cannot borrow the state.
        let (view, wish) = (project(policy, node, state), policy.wish(node));
        let (requires, priority, receives) = (wish.requires.to_vec(), wish.priority.to_vec(), wish.receives.cloned());
        let (max_tokens, encoding) = (wish.max_tokens, wish.encoding);
        let counting = move || {
            let receives = receives.as_ref();
            count_given(
                &view,
                &ViewRequirements { requires: &requires, priority: &priority, max_tokens, encoding, receives },
            )
        };
        turn.work(COUNTING, counting).await.map(Some)
    }
}
