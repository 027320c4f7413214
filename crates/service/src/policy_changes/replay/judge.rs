//! Judges one recorded proposal by the candidate policy, on its original head and with its original context.

use std::sync::Arc;

use countersign_domain::chain::statement::TransitionType;
use countersign_domain::identity::account::Token;
use countersign_domain::json::patch::{Patch, PatchFormat};
use countersign_domain::policy::{
    HypotheticalOutcome, Judgement, RejectCode, ReplayComparison, ReplayOutcome, ReplayPolicies, ReplayUnknownCause,
    unreadable,
};
use countersign_domain::threads::flow::Mode;
use countersign_domain::threads::rejected_request::RejectedRequest;
use countersign_domain::threads::thread::Thread;
use countersign_domain::threads::usage::Usage;

use super::ReplayedProposal;
use super::walk::{BROKEN, RecordedProposal, ReplayContext, ReplayState};
use crate::error::{Error, Result};
use crate::policy_changes::PolicyChanges;
use crate::proposals::branch_hold::{branch_hold_rejection, branch_violation};
use crate::proposals::judge_queue::{JudgedRequest, JudgingContext, JudgingJob};
use crate::proposals::request::ProposalKind;
use crate::threads::version::Version;

/// The merge of a recorded join under the candidate.
enum ReplayedJoin {
    /// The request to judge. Errors point into the merged state, so the stored request contains it for redaction.
    Merged(JudgedRequest, RejectedRequest),
    Rejected(Judgement, RejectedRequest),
    Refused(&'static str),
}

impl PolicyChanges {
    /// Returns the result of a recorded proposal under the candidate policy.
    pub(super) async fn tried(
        &self,
        trial: &ReplayContext<'_>,
        thread: &Thread,
        past: &mut ReplayState,
        recorded: &RecordedProposal,
    ) -> Result<ReplayComparison> {
        let RecordedProposal { row, parent: Some(parent), request: Some(request), .. } = recorded else {
            let is_erased = recorded.row.transition.is_some();
            let why = if is_erased { ReplayUnknownCause::Erased } else { ReplayUnknownCause::NotKept };
            return Ok(ReplayComparison::Unknown { why });
        };
        // Rules may depend on the owner of the token.
        let Some(token) = self.core.fetch::<Token>(trial.keys, row.principal.as_str()).await? else {
            return Ok(ReplayComparison::Unknown { why: ReplayUnknownCause::NoAsker });
        };
        // Consecutive proposals often have the same head, so the loaded version is reused.
        let head = match past.head.take() {
            Some(head) if head.entry.version == past.version => head,
            _ => Arc::new(self.threads.version(trial.keys, &row.thread, past.version).await?),
        };
        if head.entry.transition != *parent {
            return Err(BROKEN);
        }
        let usage = request.usage.as_ref().map(Usage::read).transpose().map_err(|_| BROKEN)?.unwrap_or_default();
        let context_tokens = self.proposals.given(trial.candidate, &row.node, &head.state, thread.id.as_str()).await?;
        let around = JudgingContext {
            principal: row.principal.to_string(),
            owner: token.record.owner.clone(),
            committed_nodes: past.committed_nodes.clone(),
            tool: request.tool.clone(),
            tool_has_changed: thread.request.as_ref().is_some_and(|it| it.tool_has_changed),
            usage,
            spent: Some(past.spent.clone()),
            context_tokens,
        };
        let policies = ReplayPolicies { candidate: trial.candidate, active: trial.active };
        let would_be = match request.kind {
            TransitionType::Join => match self.replayed_join(trial, thread, recorded, &head).await? {
                ReplayedJoin::Merged(asks, merged) => {
                    let judgement = self.judged_by(trial, past, job(trial, row, &head, asks, around)).await?;
                    HypotheticalOutcome::of(judgement, policies, &head.state, &merged)
                }
                ReplayedJoin::Rejected(judgement, it) => HypotheticalOutcome::of(judgement, policies, &head.state, &it),
                ReplayedJoin::Refused(code) => HypotheticalOutcome::refused(code),
            },
            _ => {
                let judgement = match self.recorded_request(trial, row, request, &head).await? {
                    Ok(asks) => self.judged_by(trial, past, job(trial, row, &head, asks, around)).await?,
                    Err(unreadable) => unreadable,
                };
                match &thread.branch {
                    None => HypotheticalOutcome::of(judgement, policies, &head.state, request),
                    Some(_) => on_a_branch(judgement, policies, &head, request),
                }
            }
        };
        past.head = Some(head);
        Ok(row.was.compared(would_be))
    }

    async fn judged_by(
        &self,
        trial: &ReplayContext<'_>,
        past: &mut ReplayState,
        judging: JudgingJob,
    ) -> Result<Judgement> {
        past.judged = past.judged.and(judging.effort(self.core.limits()));
        self.proposals.judge_without_effect(trial.by, judging).await
    }

    /// Returns the recorded request, or the rejection of a patch that is invalid in its format.
    async fn recorded_request(
        &self,
        trial: &ReplayContext<'_>,
        row: &ReplayedProposal,
        request: &RejectedRequest,
        head: &Version,
    ) -> Result<std::result::Result<JudgedRequest, Judgement>> {
        Ok(Ok(match request.kind {
            TransitionType::Propose => match Patch::read(request.format, request.content.clone()) {
                Ok(patch) => JudgedRequest::Propose(patch),
                Err(error) => return Ok(Err(unreadable(error.pointer()))),
            },
            TransitionType::Reaffirm => JudgedRequest::Reaffirm,
            TransitionType::Rollback => {
                let to = request.content.get("to_version").and_then(|it| it.as_u64());
                let to = to.filter(|it| *it < head.entry.version).ok_or(BROKEN)?;
                JudgedRequest::Rollback(Arc::new(self.threads.version(trial.keys, &row.thread, to).await?))
            }
            // `is_proposal` admits none of these, except joins, which `replayed_join` judges.
            TransitionType::Create
            | TransitionType::Fork
            | TransitionType::Edit
            | TransitionType::Join
            | TransitionType::Confirm => return Err(BROKEN),
        }))
    }

    /// Merges the recorded branches under the candidate. The merge depends on the policy, which defines the keys of lists and the confidence paths.
    async fn replayed_join(
        &self,
        trial: &ReplayContext<'_>,
        thread: &Thread,
        recorded: &RecordedProposal,
        head: &Arc<Version>,
    ) -> Result<ReplayedJoin> {
        let (proposal, node) = (recorded.join.as_ref().ok_or(BROKEN)?, &recorded.row.node);
        let proposal = self.proposals.in_turn(proposal, thread.id.as_str()).await?.into_owned();
        let proposal = self.proposals.gather_inputs(trial.keys, head, thread, proposal).await?;
        let ProposalKind::Join(join) = &proposal.ask else { return Err(BROKEN) };
        let kept = |content| {
            let request = recorded.request.clone().ok_or(BROKEN)?;
            Ok::<_, Error>(RejectedRequest { format: PatchFormat::Merge, content, ..request })
        };
        let (merged, turn) = match self.proposals.joined(trial.candidate, node, head, join).await {
            Ok(Ok((merged, turn))) => (Arc::new(merged), turn),
            Ok(Err(unread)) => {
                let judgement = Judgement::Reject { violations: vec![unread] };
                return Ok(ReplayedJoin::Rejected(judgement, kept(join.content())?));
            }
            Err(Error::Conflict { .. }) => return Ok(ReplayedJoin::Refused("conflict")),
            Err(Error::Invalid { .. }) => return Ok(ReplayedJoin::Refused("malformed")),
            Err(error) => return Err(error),
        };
        let asks = JudgedRequest::Join(Arc::clone(&merged), turn);
        Ok(ReplayedJoin::Merged(asks, kept(merged.after.clone())?))
    }
}

/// Returns the job that judges a recorded request by the candidate.
fn job(
    trial: &ReplayContext<'_>,
    row: &ReplayedProposal,
    head: &Arc<Version>,
    asks: JudgedRequest,
    around: JudgingContext,
) -> JudgingJob {
    JudgingJob { policy: Arc::clone(trial.candidate), head: Arc::clone(head), node: row.node.clone(), asks, around }
}

/// Applies the rules of branches. Branches have no reviews: a request that is held for its effect commits,
/// and any other held request is rejected. Tool calls are rejected.
fn on_a_branch(
    judgement: Judgement,
    policies: ReplayPolicies<'_>,
    head: &Version,
    request: &RejectedRequest,
) -> HypotheticalOutcome {
    let refused = |code| Judgement::Reject { violations: vec![branch_violation(code)] };
    let enforced = policies.candidate.mode() == Mode::Enforce;
    let judgement = match judgement {
        _ if request.tool.is_some() => refused(RejectCode::ToolNotAllowed),
        Judgement::Hold { reasons, .. } if enforced && branch_hold_rejection(&reasons).is_some() => {
            refused(branch_hold_rejection(&reasons).unwrap_or(RejectCode::RuleDenied))
        }
        judgement => judgement,
    };
    let would_be = HypotheticalOutcome::of(judgement, policies, &head.state, request);
    let outcome = if would_be.outcome == ReplayOutcome::Hold { ReplayOutcome::Observe } else { would_be.outcome };
    HypotheticalOutcome { outcome, ..would_be }
}
