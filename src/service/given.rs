//! What a node is given of a head, counted for the budgets: once for each decision, and not where others wait.

use serde_json::Value;

use super::Service;
use super::asking::Asking;
use super::error::{Error, Result};
use crate::domain::context::{Wish, count_given};
use crate::domain::id::NodeId;
use crate::domain::policy::{Policy, project};

impl Service {
    /// How many tokens the node of a proposal is given of its head, if the policy that judges it bounds that.
    pub(super) async fn given_for(&self, asking: &Asking<'_>) -> Result<Option<u64>> {
        if !asking.proposal.ask.kind().is_given_context() {
            return Ok(None);
        }
        if let Some(known) = asking.given.get() {
            return Ok(*known);
        }
        let _turn = match asking.policy.bounds_context(&asking.proposal.node) {
            true => Some(self.turns.counting.take(asking.by.principal().as_str()).await?),
            false => None,
        };
        let counted = self.given(asking.policy, (&asking.proposal.node, &asking.head.state)).await?;
        Ok(*asking.given.get_or_init(|| counted))
    }

    /// How many tokens a node is given of a state, if a budget of the policy bounds that.
    pub(super) async fn given(&self, policy: &Policy, (node, state): (&NodeId, &Value)) -> Result<Option<u64>> {
        if !policy.bounds_context(node) {
            return Ok(None);
        }
        let (view, wish) = (project(policy, node, state), policy.wish(node));
        let (requires, priority, receives) = (wish.requires.to_vec(), wish.priority.to_vec(), wish.receives.cloned());
        let (max_tokens, encoding) = (wish.max_tokens, wish.encoding);
        // Counting a large state takes long, and others ask here too.
        let counting = move || {
            let receives = receives.as_ref();
            count_given(&view, &Wish { requires: &requires, priority: &priority, max_tokens, encoding, receives })
        };
        let counted = tokio::task::spawn_blocking(counting).await;
        counted.map(Some).map_err(|_| Error::Broken("the counting of tokens"))
    }
}
