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
use crate::service::platform::core::ThreadContext;
use crate::service::threads::version::Version;

/// An attempt of a step, with its row as it was read.
#[derive(Debug)]
pub(in crate::service) struct StepAttempt {
    pub(in crate::service) step: StepKey,
    pub(in crate::service) content: Digest,
    pub(in crate::service) known: Option<Stored<StepRow>>,
}

impl StepAttempt {
    /// Returns whether the step has used up its attempts.
    pub(in crate::service) fn is_exhausted(&self, attempts: u32) -> bool {
        self.known.as_ref().is_some_and(|it| it.record.tries.len() >= attempts as usize)
    }
}

/// The context of one proposal while it is decided.
pub(in crate::service) struct ProposalContext<'a> {
    pub(in crate::service) keys: &'a Keys,
    pub(in crate::service) by: Proposer<'a>,
    pub(in crate::service) proposal: &'a Proposal,
    pub(in crate::service) identity: Digest,
    pub(in crate::service) standing: &'a ThreadContext,
    pub(in crate::service) head: &'a Arc<Version>,
    pub(in crate::service) policy: &'a Arc<Policy>,
    /// The attempt, if the proposal is a step.
    pub(in crate::service) trying: Option<&'a StepAttempt>,
    /// The context tokens of the node, once they are counted.
    pub(in crate::service) given: OnceLock<Option<u64>>,
}

impl<'a> ProposalContext<'a> {
    /// Returns an empty change that requires all rows of this decision to be unchanged.
    pub(in crate::service) fn draft(&self, now: Timestamp) -> Draft<'a> {
        let mut draft = Draft::new(self.keys.row(), now);
        self.by.rely(&mut draft);
        self.standing.rely(&mut draft);
        self.proposal.ask.rely(&mut draft);
        draft
    }

    pub(in crate::service) fn base(&self) -> crate::service::threads::commit::CommitBase<'a> {
        crate::service::threads::commit::CommitBase {
            head: self.head,
            policy: self.policy,
            flow: &self.standing.flow.record,
        }
    }
}

pub(in crate::service) fn identity_of(keys: &Keys, by: Proposer<'_>, proposal: &Proposal) -> Digest {
    let secret = keys.salt().thread_secret(proposal.thread.as_str());
    proposal.kept().identity(&secret, &proposal.thread, proposal.parent, &proposal.node, &by.principal())
}
