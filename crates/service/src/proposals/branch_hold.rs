//! Handles proposals on branches that would be held on the parent thread.

use countersign_domain::json::pointer::Pointer;
use countersign_domain::policy::{JudgedReason, ReasonCode, RejectCode, Violation};

use crate::error::Result;
use crate::proposals::Proposals;
use crate::proposals::context::ProposalContext;
use crate::proposals::outcome::ProposalOutcome;
use crate::proposals::reject::RejectionCause;
use crate::threads::statement::JudgedEffect;

impl Proposals {
    /// Commits a held transition on a branch if its join decides all of it, and rejects it otherwise.
    ///
    /// Nothing on a branch can be written, and the join requires approval for every change. Changes therefore commit
    /// here. Approval that is required for another reason, such as the node or a tool, would never be requested, so it
    /// is a rejection.
    pub(crate) async fn commit_pending_join(
        &self,
        asking: &ProposalContext<'_>,
        effected: JudgedEffect,
        reasons: Vec<JudgedReason>,
    ) -> Result<ProposalOutcome> {
        match branch_hold_rejection(&reasons) {
            None => self.commit_without_approval(asking, effected, Some(reasons)).await,
            Some(code) => self.reject(asking, RejectionCause::of(vec![branch_violation(code)])).await,
        }
    }
}

/// Returns the code of the rejection if the join would not decide every reason for the review.
pub(crate) fn branch_hold_rejection(reasons: &[JudgedReason]) -> Option<RejectCode> {
    let is_of_the_effect =
        |it: &&JudgedReason| matches!(it.code, ReasonCode::Protected | ReasonCode::Rollback | ReasonCode::Reaffirm);
    let others: Vec<&JudgedReason> = reasons.iter().filter(|it| !is_of_the_effect(it)).collect();
    let over = others.iter().all(|it| it.code == ReasonCode::Budget);
    let code = if over { RejectCode::Budget } else { RejectCode::RuleDenied };
    (!others.is_empty()).then_some(code)
}

pub(crate) fn branch_violation(code: RejectCode) -> Violation {
    Violation::new(code, Pointer::root(), "no approval is possible on a branch: propose this on the parent thread")
}
