//! The outcome of a proposal, as its proposer may see it.

use std::collections::BTreeSet;
use std::sync::Arc;

use countersign_domain::chain::hash::Digest;
use countersign_domain::json::diff::LeafChange;
use countersign_domain::json::pointer::Pointer;
use countersign_domain::keys::Keys;
use countersign_domain::policy::{JudgedWarning, Policy, ReasonAudience, changed_for, diff_for};
use countersign_domain::reviews::{Hold, HoldReason};
use countersign_domain::threads::thread::Thread;
use countersign_domain::threads::transition::{Rejection, Transition, TransitionOutcome};

use crate::error::Result;
use crate::platform::rejection_body::RejectionBody;
use crate::proposals::Proposals;
use crate::proposals::request::{Proposal, ProposalKind};
use crate::threads::commit::TransitionEffect;

impl Proposals {
    /// Returns the response to an identical earlier proposal. It is looked up before the head is checked,
    /// because the head may have moved since then.
    pub(crate) async fn answered(
        &self,
        keys: &Keys,
        thread: &Thread,
        proposal: &Proposal,
        identity: Digest,
    ) -> Result<Option<ProposalOutcome>> {
        let (name, ask) = (identity.to_string(), &proposal.ask);
        // A rejection is final for its identity. A new attempt number gets a new judgement.
        if let Some(rejection) = self.core.fetch::<Rejection>(keys, &name).await? {
            let checkpoint = self.rejected_head(keys, &rejection.record).await?;
            return Ok(Some(ProposalOutcome::Rejected(RejectionBody::of(rejection.record, ask, checkpoint))));
        }
        let known = match self.core.reader(keys).get_by_alias::<Transition>(&name).await? {
            Some(stored) => Some(stored.record),
            None => self.threads.archived_as(keys, thread, proposal.parent, identity).await?,
        };
        let Some(transition) = known else { return Ok(None) };
        self.proposal_outcome(keys, transition).await.map(Some)
    }

    /// Returns the response to a stored proposal, which never changes.
    pub(crate) async fn proposal_outcome(&self, keys: &Keys, transition: Transition) -> Result<ProposalOutcome> {
        let transition = self.threads.whole(keys, transition).await?;
        let policy = self.policies.policy(keys, transition.statement.policy).await?;
        let changes = self.threads.changes_of(keys, &transition).await?;
        if let Some(hold) = self.threads.hold_of(keys, transition.digest).await? {
            let policies = self.threads.policies_of(keys, &transition.statement).await?;
            return Ok(ProposalOutcome::held(&policies, &transition, &changes, hold.record));
        }
        let effect = TransitionEffect { transition: transition.clone(), changes };
        Ok(ProposalOutcome::committed(&policy, &transition, &effect))
    }
}

/// The response to a proposal.
#[derive(Clone, Debug)]
pub enum ProposalOutcome {
    Committed {
        version: u64,
        transition: Digest,
        entry: String,
        /// The changed paths that the proposing node may read.
        changed: Vec<Pointer>,
        /// The reasons for which enforce mode would have held the proposal, as far as its node may know them.
        would_hold: Option<Vec<HoldReason>>,
        /// The warnings of rules that the proposing node may know.
        warnings: Vec<JudgedWarning>,
    },
    /// The proposal is or was held for approval. The review contains its state.
    Held {
        transition: Digest,
        hold: Box<Hold>,
        /// The reasons that the proposing node may know.
        reasons: Vec<HoldReason>,
        /// The warnings of rules that the proposing node may know.
        warnings: Vec<JudgedWarning>,
        /// The proposed changes that the node may read.
        diff: Vec<LeafChange>,
    },
    Rejected(RejectionBody),
}

impl ProposalOutcome {
    pub(crate) fn committed(policy: &Policy, transition: &Transition, effect: &TransitionEffect) -> Self {
        let statement = &transition.statement;
        let named: Vec<Pointer> = transition.named.iter().cloned().collect();
        let changed = statement.node.as_ref().map(|node| changed_for(policy, node, &effect.changes, &named));
        Self::Committed {
            version: statement.version,
            transition: transition.digest,
            entry: transition.outcome.entry().unwrap_or_default().to_owned(),
            changed: changed.unwrap_or_default(),
            would_hold: match &transition.outcome {
                TransitionOutcome::Observed { would_hold, .. } => Some(reasons_for_requester(would_hold)),
                _ => None,
            },
            warnings: warnings_for_requester(&transition.warnings),
        }
    }

    /// Builds the response to a held proposal, with the changes that all of the policies allow its node to
    /// read.
    pub(crate) fn held(policies: &[Arc<Policy>], transition: &Transition, changes: &[LeafChange], hold: Hold) -> Self {
        let diff = policies.iter().fold(changes.to_vec(), |seen, it| diff_for(it, &hold.node, &seen));
        let reasons = reasons_for_requester(&hold.reasons);
        let warnings = warnings_for_requester(&transition.warnings);
        Self::Held { transition: transition.digest, hold: Box::new(hold), reasons, warnings, diff }
    }
}

/// Returns the reasons that a proposer may read.
pub(crate) fn reasons_for_requester(reasons: &[HoldReason]) -> Vec<HoldReason> {
    reasons.iter().filter(|reason| !reason.for_reviewers_only).cloned().collect()
}

/// Returns the warnings that a proposer may read.
pub fn warnings_for_requester(warnings: &[JudgedWarning]) -> Vec<JudgedWarning> {
    warnings.iter().filter(|it| it.audience == ReasonAudience::Everyone).cloned().collect()
}

/// Returns the authors of the thread since the last confirmed write, with the new owner and the authors of
/// joined branches.
pub(crate) fn authors_with(thread: &Thread, owner: &str, ask: &ProposalKind) -> BTreeSet<String> {
    let mut authors = thread.authors.clone();
    authors.extend(ask.carried().into_iter().flat_map(|it| it.authors.clone()));
    authors.insert(owner.to_owned());
    authors
}
