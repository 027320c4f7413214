//! Rollbacks that people request. A rollback is a proposal of a node that may roll back. It is always held
//! for approval, and its requester has no vote.

use std::sync::OnceLock;

use countersign_domain::chain::hash::Digest;
use countersign_domain::identity::account::{Account, PersonRole};
use countersign_domain::policy::Judgement;
use countersign_domain::primitives::id::{AccountId, NodeId, ReviewId, ThreadId};
use countersign_domain::threads::usage::Usage;

use super::context::{ProposalContext, identity_of};
use super::proposer::Proposer;
use super::request::{Proposal, ProposalKind};
use crate::error::{Error, Result};
use crate::platform::retry::retrying;
use crate::proposals::Proposals;
use crate::proposals::outcome::ProposalOutcome;
use crate::proposals::propose::check_words;

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RollbackInput {
    pub thread: ThreadId,
    pub node: NodeId,
    /// The head that the person saw.
    pub parent: Digest,
    /// The version whose state is restored.
    pub to_version: u64,
    /// The number of the attempt. A form that is sent twice has the same number and counts once.
    pub attempt: u32,
    pub reason: Option<String>,
}

impl Proposals {
    /// Requests approval for a rollback to an earlier state. It is held even in observe mode, because no
    /// person may roll back alone.
    pub async fn ask_for_rollback(&self, person: &AccountId, rollback: &RollbackInput) -> Result<ReviewId> {
        retrying!({
            let keys = self.core.keys()?;
            let account = self.core.need::<Account>(&keys, person.as_str(), "account").await?;
            // Checked here and not only on the page, because the account may have changed since the page was
            // loaded.
            if account.record.disabled || account.record.role != PersonRole::Reviewer {
                return Err(Error::Forbidden("only an active reviewer can request a rollback. Ask a reviewer"));
            }
            let thread = self.core.thread(&keys, &rollback.thread).await?;
            if thread.record.branch.is_some() {
                return Err(Error::WrongState("this thread is a branch, which has no reviews. Its join is reviewed"));
            }
            let proposal = proposal_of(rollback);
            check_words(&proposal)?;
            let by = Proposer::Person(&account);
            let identity = identity_of(&keys, by, &proposal);
            if let Some(answer) = self.answered(&keys, &thread.record, &proposal, identity).await? {
                return held(answer);
            }
            let standing = self.ready(&keys, thread, rollback.parent).await?;
            let head = self.threads.head(&keys, &standing.thread.record).await?;
            let policy = self.policies.policy(&keys, standing.flow.record.policy).await?;
            let asking = ProposalContext {
                keys: &keys,
                by,
                proposal: &proposal,
                identity,
                standing: &standing,
                head: &head,
                policy: &policy,
                trying: None,
                given: OnceLock::new(),
            };
            match self.judge_proposal(&asking).await? {
                Judgement::Hold { after, named, reasons, warnings, .. } => {
                    let effected =
                        crate::threads::statement::JudgedEffect { after, named: named.into_iter().collect(), warnings };
                    held(self.hold_or_reject(&asking, effected, reasons).await?)
                }
                Judgement::Commit { .. } => {
                    Err(Error::WrongState("the policy requires no approval for this rollback, so it was not requested"))
                }
                Judgement::Reject { violations } => {
                    let why = violations.first().map_or("", |it| it.detail.as_ref());
                    Err(Error::invalid("", format!("the policy rejects a rollback by this node: {why}")))
                }
            }
        })
    }
}

fn proposal_of(rollback: &RollbackInput) -> Proposal {
    Proposal {
        thread: rollback.thread.clone(),
        node: rollback.node.clone(),
        parent: rollback.parent,
        ask: ProposalKind::Rollback { to_version: rollback.to_version },
        attempt: rollback.attempt,
        rationale: rollback.reason.clone(),
        tool: None,
        usage: Usage::default(),
        step: None,
    }
}

fn held(answer: ProposalOutcome) -> Result<ReviewId> {
    match answer {
        ProposalOutcome::Held { hold, .. } => Ok(hold.id),
        ProposalOutcome::Rejected(refusal) => {
            let why = refusal.errors.first().map(|it| it.detail.clone()).unwrap_or_default();
            Err(Error::invalid("", format!("the rollback cannot be requested: {why}")))
        }
        ProposalOutcome::Committed { .. } => Err(Error::WrongState("the rollback was committed without approval")),
    }
}
