//! Checks that apply only to joins.

use serde_json::Value;

use super::budget_check;
use super::budget_check::BudgetBreaches;
use super::judgement::{RejectCode, Violation};
use super::model::{NodePolicy, Policy};
use super::request::RequestContext;
use crate::json::pointer::Pointer;
use crate::primitives::id::NodeId;
use crate::threads::usage::Totals;

const UNREAD: &str = "a branch changed a path that this node may not read: join as a node that may read all changes";

/// Returns a violation if a branch changed a path that the node may not read. The violation names no path, because
/// the node named none of them itself.
pub fn unread(policy: &Policy, node: &NodeId, changed: &[Pointer]) -> Option<Violation> {
    let reads = policy.node(node).map(NodePolicy::reads);
    // A node that the policy does not name reads nothing.
    let unseen = changed.iter().any(|it| !reads.is_some_and(|reads| reads.covers(it)));
    unseen.then(|| Violation::new(RejectCode::ReadNotAllowed, Pointer::root(), UNREAD))
}

/// Returns the breaches of the join's own usage and of the total usage of its branches.
pub(super) fn breaches(
    policy: &Policy,
    node: &NodePolicy,
    name: &NodeId,
    state: &Value,
    around: &RequestContext<'_>,
    used: &Totals,
) -> BudgetBreaches {
    let before = around.spent.cloned().unwrap_or_default();
    let sum = before.clone().plus(used);
    // The join comes after its branches, so their usage counts as earlier usage.
    let own = budget_check::breaches(policy, node, name, state, &RequestContext { spent: Some(&sum), ..*around });
    own.and(budget_check::breaches_together(policy, &before, used))
}
