//! The context of one proposal while it is decided.

use std::sync::{Arc, OnceLock};

use countersign_domain::chain::hash::Digest;
use countersign_domain::keys::Keys;
use countersign_domain::policy::Policy;
use countersign_domain::primitives::id::StepKey;
use countersign_domain::primitives::time::Timestamp;
use countersign_domain::threads::step::StepRow;
use countersign_store::change::Draft;
use countersign_store::record::Stored;

use super::proposer::Proposer;
use super::request::Proposal;
use crate::platform::core::ThreadContext;
use crate::threads::version::Version;

/// An attempt of a step, with its row as it was read.
#[derive(Debug)]
pub(crate) struct StepAttempt {
    pub(crate) step: StepKey,
    pub(crate) content: Digest,
    pub(crate) known: Option<Stored<StepRow>>,
}

impl StepAttempt {
    /// Returns whether the step has used up its attempts.
    pub(crate) fn is_exhausted(&self, attempts: u32) -> bool {
        self.known.as_ref().is_some_and(|it| it.record.tries.len() >= attempts as usize)
    }
}

/// The context of one proposal while it is decided.
pub(crate) struct ProposalContext<'a> {
    pub(crate) keys: &'a Keys,
    pub(crate) by: Proposer<'a>,
    pub(crate) proposal: &'a Proposal,
    pub(crate) identity: Digest,
    pub(crate) standing: &'a ThreadContext,
    pub(crate) head: &'a Arc<Version>,
    pub(crate) policy: &'a Arc<Policy>,
    /// The attempt, if the proposal is a step.
    pub(crate) trying: Option<&'a StepAttempt>,
    /// The context tokens of the node, once they are counted.
    pub(crate) given: OnceLock<Option<u64>>,
}

impl<'a> ProposalContext<'a> {
    /// Returns an empty change that requires all rows of this decision to be unchanged.
    pub(crate) fn draft(&self, now: Timestamp) -> Draft<'a> {
        let mut draft = Draft::new(self.keys.row(), now);
        self.by.rely(&mut draft);
        self.standing.rely(&mut draft);
        self.proposal.ask.rely(&mut draft);
        draft
    }

    pub(crate) fn base(&self) -> crate::threads::commit::CommitBase<'a> {
        crate::threads::commit::CommitBase { head: self.head, policy: self.policy, flow: &self.standing.flow.record }
    }
}

pub(crate) fn identity_of(keys: &Keys, by: Proposer<'_>, proposal: &Proposal) -> Digest {
    let secret = keys.salt().thread_secret(proposal.thread.as_str());
    proposal.kept().identity(&secret, &proposal.thread, proposal.parent, &proposal.node, &by.principal())
}
