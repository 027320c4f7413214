//! Judging where no request waits for it: at once if it is little work, and else off the threads that answer requests, in
//! the asker's turn. A judgement borrows nothing, so that it can move there.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use super::fair_queue::{FairQueue, QueuePermit};
use crate::domain::json::patch::Patch;
use crate::domain::json::size::StateLimits;
use crate::domain::policy::{
    CallerContext, Effort, InitialState, Judgement, Policy, PolicyRequest, PolicySource, RequestContext, RequestKind,
    Violation, judge_in, judge_initial, parts,
};
use crate::domain::primitives::id::NodeId;
use crate::domain::threads::tool_call::Tool;
use crate::domain::threads::usage::{Totals, Usage};
use crate::metrics::BlockingWork;
use crate::service::Service;
use crate::service::error::{Error, Result};
use crate::service::proposals::join_merge::MergedBranches;
use crate::service::threads::heads::Version;

/// What is asked, with everything that it takes.
pub(in crate::service) enum JudgedRequest {
    Propose(Patch),
    Edit(Patch),
    Confirm(Patch),
    Reaffirm,
    Rollback(Arc<Version>),
    /// What comes of branches, in the turn in which they were merged.
    Join(Arc<MergedBranches>, QueuePermit),
}

/// Who asks, and what is known around it.
pub(in crate::service) struct JudgingContext {
    pub(in crate::service) principal: String,
    pub(in crate::service) owner: String,
    pub(in crate::service) committed_nodes: BTreeSet<NodeId>,
    pub(in crate::service) tool: Option<Tool>,
    pub(in crate::service) usage: Usage,
    pub(in crate::service) spent: Option<Totals>,
    pub(in crate::service) context_tokens: Option<u64>,
}

/// A request with all that it is judged on.
pub(in crate::service) struct JudgingJob {
    pub(in crate::service) policy: Arc<Policy>,
    pub(in crate::service) head: Arc<Version>,
    pub(in crate::service) node: NodeId,
    pub(in crate::service) asks: JudgedRequest,
    pub(in crate::service) around: JudgingContext,
}

impl JudgedRequest {
    /// What is asked, as it is judged.
    fn kind(&self) -> RequestKind<'_> {
        match self {
            Self::Propose(patch) => RequestKind::Propose { patch },
            Self::Edit(patch) => RequestKind::Edit { patch },
            Self::Confirm(patch) => RequestKind::Confirm { patch },
            Self::Reaffirm => RequestKind::Reaffirm,
            Self::Rollback(version) => RequestKind::Rollback { to: &version.state },
            Self::Join(merged, _) => {
                RequestKind::Join { to: &merged.after, changed: &merged.changed, used: &merged.carried().spent }
            }
        }
    }
}

impl JudgingJob {
    pub(in crate::service) fn effort(&self, limits: &StateLimits) -> Effort {
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
        let JudgingContext { principal, owner, committed_nodes, tool, usage, spent, context_tokens } = &self.around;
        let mut nodes = committed_nodes;
        let with_branches: BTreeSet<_>;
        if let JudgedRequest::Join(merged, _) = &self.asks {
            with_branches = nodes.union(&merged.carried().committed_nodes).cloned().collect();
            nodes = &with_branches;
        }
        let around = RequestContext {
            tool: tool.as_ref(),
            usage: *usage,
            spent: spent.as_ref(),
            context_tokens: *context_tokens,
            ..RequestContext::of(CallerContext { principal, owner, committed_nodes: nodes })
        };
        let request = PolicyRequest { node: &self.node, kind: self.asks.kind() };
        judge_in(&self.policy, &self.head.state, &request, &around, limits)
    }
}

impl Service {
    /// Judges a request that is decided.
    pub(in crate::service) async fn judged(&self, judging: JudgingJob) -> Result<Judgement> {
        let by = judging.around.principal.clone();
        let queue = match &judging.asks {
            JudgedRequest::Confirm(_) => &self.turns.confirming,
            _ => &self.turns.judging,
        };
        self.judged_among((queue, &by), judging).await
    }

    /// Judges a request of which nothing comes, for an asker who made another's request theirs.
    pub(in crate::service) async fn judge_without_effect(&self, by: &str, judging: JudgingJob) -> Result<Judgement> {
        self.judged_among((&self.turns.trying, by), judging).await
    }

    async fn judged_among(&self, (queue, by): (&FairQueue, &str), judging: JudgingJob) -> Result<Judgement> {
        let limits = *self.limits();
        if judging.effort(&limits).is_light() {
            return Ok(judging.judged(&limits));
        }
        // Whoever has a turn already waits for no other: two of them could wait for one another.
        let turn = match &judging.asks {
            JudgedRequest::Join(_, turn) => turn.clone(),
            _ => queue.take(by).await?,
        };
        self.apart(&turn, BlockingWork::Judgement, move || judging.judged(&limits)).await
    }

    /// Judges the state that a host starts a thread with.
    pub(in crate::service) async fn judge_initial_state(
        &self,
        by: &str,
        policy: &Arc<Policy>,
        state: &Value,
    ) -> Result<std::result::Result<InitialState, Vec<Violation>>> {
        let limits = *self.limits();
        if policy.effort(None, parts(state)).is_light() {
            return Ok(judge_initial(policy, state, &limits));
        }
        let (policy, state) = (Arc::clone(policy), state.clone());
        let turn = self.turns.judging.take(by).await?;
        self.apart(&turn, BlockingWork::Judgement, move || judge_initial(&policy, &state, &limits)).await
    }

    /// Compiles a policy that was handed in. A megabyte of schemas takes seconds.
    pub(in crate::service) async fn compiled(&self, by: &str, source: &PolicySource) -> Result<Policy> {
        let source = source.clone();
        let turn = self.turns.trying.take(by).await?;
        self.apart(&turn, BlockingWork::Policy, move || Policy::compile(&source)).await?.map_err(Error::Policy)
    }

    /// Does work where no request waits for it, and counts it.
    pub(in crate::service) async fn apart<T: Send + 'static>(
        &self,
        turn: &QueuePermit,
        kind: BlockingWork,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T> {
        self.metrics.worked(kind);
        turn.work(kind.name(), work).await
    }
}
