//! Asking: everything around one proposal while it is decided.

use std::sync::{Arc, OnceLock};

use super::proposer::Proposer;
use super::request::Proposal;
use crate::domain::chain::hash::Digest;
use crate::domain::keys::Keys;
use crate::domain::policy::Policy;
use crate::domain::primitives::id::StepKey;
use crate::domain::primitives::time::Timestamp;
use crate::domain::threads::step::StepRow;
use crate::service::ThreadContext;
use crate::service::threads::heads::Version;
use crate::store::change::Draft;
use crate::store::record::Stored;

/// A step that may be tried, as it was found.
#[derive(Debug)]
pub(in crate::service) struct StepAttempt {
    pub(in crate::service) step: StepKey,
    pub(in crate::service) content: Digest,
    pub(in crate::service) known: Option<Stored<StepRow>>,
}

impl StepAttempt {
    /// Whether it was tried as often as may be.
    pub(in crate::service) fn is_exhausted(&self, attempts: u32) -> bool {
        self.known.as_ref().is_some_and(|it| it.record.tries.len() >= attempts as usize)
    }
}

/// Everything around one proposal while it is decided.
pub(in crate::service) struct ProposalContext<'a> {
    pub(in crate::service) keys: &'a Keys,
    pub(in crate::service) by: Proposer<'a>,
    pub(in crate::service) proposal: &'a Proposal,
    pub(in crate::service) identity: Digest,
    pub(in crate::service) standing: &'a ThreadContext,
    pub(in crate::service) head: &'a Arc<Version>,
    pub(in crate::service) policy: &'a Arc<Policy>,
    /// The step that it is, as it was found.
    pub(in crate::service) trying: Option<&'a StepAttempt>,
    /// What its node is given of the head, once that was counted.
    pub(in crate::service) given: OnceLock<Option<u64>>,
}

impl<'a> ProposalContext<'a> {
    /// An empty change that relies on everything this decision relied on.
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
    let (secret, asked) = (keys.salt().thread_secret(proposal.thread.as_str()), (&proposal.thread, proposal.parent));
    proposal.kept().identity(&secret, asked, (&proposal.node, &by.principal()))
}
