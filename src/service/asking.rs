//! Asking: everything around one proposal while it is decided.

use std::sync::{Arc, OnceLock};

use super::Standing;
use super::heads::Version;
use super::proposer::Proposer;
use crate::domain::chain::hash::Digest;
use crate::domain::id::StepKey;
use crate::domain::keys::Keys;
use crate::domain::policy::Policy;
use crate::domain::step::StepRow;
use crate::domain::time::Timestamp;
use crate::service::proposal::Proposal;
use crate::store::change::Draft;
use crate::store::record::Stored;

/// A step that may be tried, as it was found.
#[derive(Debug)]
pub(super) struct Trying {
    pub(super) step: StepKey,
    pub(super) content: Digest,
    pub(super) known: Option<Stored<StepRow>>,
}

impl Trying {
    /// Whether it was tried as often as may be.
    pub(super) fn is_exhausted(&self, attempts: u32) -> bool {
        self.known.as_ref().is_some_and(|it| it.record.tries.len() >= attempts as usize)
    }
}

/// Everything around one proposal while it is decided.
pub(super) struct Asking<'a> {
    pub(super) keys: &'a Keys,
    pub(super) by: Proposer<'a>,
    pub(super) proposal: &'a Proposal,
    pub(super) identity: Digest,
    pub(super) standing: &'a Standing,
    pub(super) head: &'a Arc<Version>,
    pub(super) policy: &'a Arc<Policy>,
    /// The step that it is, as it was found.
    pub(super) trying: Option<&'a Trying>,
    /// What its node is given of the head, once that was counted.
    pub(super) given: OnceLock<Option<u64>>,
}

impl<'a> Asking<'a> {
    /// An empty change that relies on everything this decision relied on.
    pub(super) fn draft(&self, now: Timestamp) -> Draft<'a> {
        let mut draft = Draft::new(self.keys.row(), now);
        self.by.rely(&mut draft);
        self.standing.rely(&mut draft);
        self.proposal.ask.rely(&mut draft);
        draft
    }

    pub(super) fn base(&self) -> super::transitions::Base<'a> {
        super::transitions::Base { head: self.head, policy: self.policy, flow: &self.standing.flow.record }
    }
}

pub(super) fn identity_of(keys: &Keys, by: Proposer<'_>, proposal: &Proposal) -> Digest {
    let (secret, asked) = (keys.salt().thread_secret(proposal.thread.as_str()), (&proposal.thread, proposal.parent));
    proposal.kept().identity(&secret, asked, (&proposal.node, &by.principal()))
}
