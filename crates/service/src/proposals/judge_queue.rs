//! Runs judgements without blocking other requests: a light one at once, a heavy one on a blocking thread
//! after a wait in the fair queue. A judgement owns its data, so that it can move to that thread.

use std::collections::BTreeSet;
use std::sync::Arc;

use countersign_adapters::metrics::BlockingWork;
use countersign_domain::json::patch::Patch;
use countersign_domain::json::pointer::Pointer;
use countersign_domain::json::size::StateLimits;
use countersign_domain::policy::{
    CallerContext, Effort, Judgement, Policy, PolicyRequest, RequestContext, RequestKind, judge_in, parts,
};
use countersign_domain::primitives::id::NodeId;
use countersign_domain::threads::tool_call::Tool;
use countersign_domain::threads::usage::{Totals, Usage};

use crate::error::Result;
use crate::platform::fair_queue::{FairQueue, QueuePermit};
use crate::proposals::Proposals;
use crate::proposals::join_merge::MergedBranches;
use crate::threads::version::Version;

/// The request, with the data that its judgement needs.
pub(crate) enum JudgedRequest {
    Propose(Patch),
    Edit(Patch),
    Confirm(Patch),
    Reaffirm,
    Rollback(Arc<Version>),
    /// The merged branches of a join, and the permit under which they were merged.
    Join(Arc<MergedBranches>, QueuePermit),
}

/// The caller, and the facts about it that policies may use.
#[derive(Default)]
pub(crate) struct JudgingContext {
    pub(crate) principal: String,
    pub(crate) owner: String,
    pub(crate) committed_nodes: BTreeSet<NodeId>,
    pub(crate) tool: Option<Tool>,
    /// Whether the server has changed the definition of the tool.
    pub(crate) tool_has_changed: bool,
    pub(crate) usage: Usage,
    pub(crate) spent: Option<Totals>,
    pub(crate) context_tokens: Option<u64>,
}

/// A request with everything that it is judged on.
pub(crate) struct JudgingJob {
    pub(crate) policy: Arc<Policy>,
    pub(crate) head: Arc<Version>,
    pub(crate) node: NodeId,
    pub(crate) asks: JudgedRequest,
    pub(crate) around: JudgingContext,
}

impl JudgedRequest {
    /// Returns the request as the policy judges it.
    fn kind<'a>(&'a self, reset: &'a BTreeSet<Pointer>) -> RequestKind<'a> {
        match self {
            Self::Propose(patch) => RequestKind::Propose { patch },
            Self::Edit(patch) => RequestKind::Edit { patch },
            Self::Confirm(patch) => RequestKind::Confirm { patch },
            Self::Reaffirm => RequestKind::Reaffirm,
            Self::Rollback(version) => RequestKind::Rollback { to: &version.state, reset },
            Self::Join(merged, _) => {
                RequestKind::Join { to: &merged.after, changed: &merged.changed, used: &merged.carried().spent }
            }
        }
    }
}

impl JudgingJob {
    pub(crate) fn effort(&self, limits: &StateLimits) -> Effort {
        let asked = match &self.asks {
            JudgedRequest::Propose(patch) | JudgedRequest::Edit(patch) | JudgedRequest::Confirm(patch)
                if patch.copies() =>
            {
                limits.leaves_max as u64
            }
            JudgedRequest::Propose(patch) | JudgedRequest::Edit(patch) | JudgedRequest::Confirm(patch) => {
                patch.written().into_iter().map(parts).sum()
            }
            JudgedRequest::Reaffirm => 0,
            JudgedRequest::Rollback(version) => parts(&version.state),
            JudgedRequest::Join(merged, _) => parts(&merged.after),
        };
        self.policy.effort(Some(&self.node), parts(&self.head.state).saturating_add(asked))
    }

    fn judged(&self, limits: &StateLimits) -> Judgement {
        let JudgingContext { principal, owner, committed_nodes, tool, usage, spent, context_tokens, tool_has_changed } =
            &self.around;
        let mut nodes = committed_nodes;
        let with_branches: BTreeSet<_>;
        if let JudgedRequest::Join(merged, _) = &self.asks {
            // Policies may require that a node has committed before. A commit on a joined branch counts.
            with_branches = nodes.union(&merged.carried().committed_nodes).cloned().collect();
            nodes = &with_branches;
        }
        let around = RequestContext {
            tool: tool.as_ref(),
            tool_has_changed: *tool_has_changed,
            usage: *usage,
            spent: spent.as_ref(),
            context_tokens: *context_tokens,
            ..RequestContext::of(CallerContext { principal, owner, committed_nodes: nodes })
        };
        let reset = match &self.asks {
            JudgedRequest::Rollback(version) => version.tree.differing_leaves(&self.head.tree),
            _ => BTreeSet::new(),
        };
        let request = PolicyRequest { node: &self.node, kind: self.asks.kind(&reset) };
        judge_in(&self.policy, &self.head.state, &request, &around, limits)
    }
}

impl Proposals {
    /// Judges a request whose result is committed.
    pub(crate) async fn judged(&self, judging: JudgingJob) -> Result<Judgement> {
        let by = judging.around.principal.clone();
        let queue = match &judging.asks {
            JudgedRequest::Confirm(_) => &self.core.turns.confirming,
            _ => &self.core.turns.judging,
        };
        self.judged_among(queue, &by, judging).await
    }

    /// Judges a request without an effect. `by` is the auditor who repeats the request of an agent.
    pub(crate) async fn judge_without_effect(&self, by: &str, judging: JudgingJob) -> Result<Judgement> {
        self.judged_among(&self.core.turns.trying, by, judging).await
    }

    async fn judged_among(&self, queue: &FairQueue, by: &str, judging: JudgingJob) -> Result<Judgement> {
        let limits = *self.core.limits();
        // Most requests are light. The queue would cost more than the judgement.
        if judging.effort(&limits).is_light() {
            return Ok(judging.judged(&limits));
        }
        // A job with a permit must not wait for another one: two such jobs could deadlock.
        let turn = match &judging.asks {
            JudgedRequest::Join(_, turn) => turn.clone(),
            _ => queue.take(by).await?,
        };
        self.core.apart(&turn, BlockingWork::Judgement, move || judging.judged(&limits)).await
    }
}
