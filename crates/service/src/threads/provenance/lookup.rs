//! Reads of the history of threads for a trace. Each version, transition and statement is read as seldom as possible.

use std::ops::RangeInclusive;
use std::sync::Arc;

use countersign_domain::chain::hash::Digest;
use countersign_domain::chain::statement::TransitionType;
use countersign_domain::json::pointer::Pointer;
use countersign_domain::policy::StateText;
use countersign_domain::primitives::id::{ProposalId, ThreadId};
use countersign_domain::threads::transition::Transition;
use serde_json::Value;

use super::{ProvenanceTrace, TracedText};
use crate::error::{Error, Result};
use crate::threads::archive_lookup::ArchiveFiles;
use crate::threads::version::Version;

/// Versions whose statements are read at once during the search.
const WINDOW: u64 = 64;

/// The number of versions whose statements are read. The transition that set an older leaf is found by bisection.
const VERSIONS_WALKED_MAX: u64 = 256;

/// Versions with states that one trace keeps in memory, and transitions.
const VERSIONS_KEPT: usize = 16;

impl ProvenanceTrace<'_> {
    pub(super) async fn version(&mut self, thread: &ThreadId, version: u64) -> Result<Arc<Version>> {
        let is_it = |it: &&Arc<Version>| it.entry.thread == *thread && it.entry.version == version;
        if let Some(known) = self.versions.iter().find(is_it) {
            return Ok(Arc::clone(known));
        }
        let loaded = Arc::new(self.service.version(self.keys, thread, version).await?);
        if self.versions.len() >= VERSIONS_KEPT {
            self.versions.remove(0);
        }
        self.versions.push(Arc::clone(&loaded));
        Ok(loaded)
    }

    pub(super) async fn transition(&mut self, digest: Digest) -> Result<Arc<Transition>> {
        if let Some(known) = self.transitions.iter().find(|it| it.digest == digest) {
            return Ok(Arc::clone(known));
        }
        let loaded = Arc::new(self.service.transition(self.keys, digest).await?);
        if self.transitions.len() >= VERSIONS_KEPT {
            self.transitions.remove(0);
        }
        self.transitions.push(Arc::clone(&loaded));
        Ok(loaded)
    }

    /// Returns the transition that set a leaf. Each statement is read once, newest first, without its state.
    pub(super) async fn made(
        &mut self,
        text: &TracedText,
        leaf: &Pointer,
        origin: &ProposalId,
    ) -> Result<Option<Digest>> {
        let end = text.version + 1;
        let (mut from, mut below) = self.read.get(&text.thread).copied().unwrap_or((end, end));
        let lowest = text.version.saturating_sub(VERSIONS_WALKED_MAX);
        while !self.made.contains_key(origin) && (below < end || from > lowest) {
            let window = match below < end {
                true => below..=end.min(below + WINDOW) - 1,
                false => from.saturating_sub(WINDOW).max(lowest)..=from - 1,
            };
            (from, below) = (from.min(*window.start()), below.max(*window.end() + 1));
            self.read_statements(&text.thread, window).await?;
            self.read.insert(text.thread.clone(), (from, below));
        }
        if !self.made.contains_key(origin) && lowest > 0 {
            self.bisect(text, leaf, origin).await?;
        }
        Ok(self.made.get(origin).copied())
    }

    /// Finds the transition by the trees of a few versions: from the version that set the leaf, each has it with the
    /// same origin.
    async fn bisect(&mut self, text: &TracedText, leaf: &Pointer, origin: &ProposalId) -> Result<()> {
        let (mut low, mut high) = (0, text.version);
        while low < high {
            let middle = low.midpoint(high);
            let has_leaf = match self.version(&text.thread, middle).await {
                Ok(version) => version.tree.origin(leaf) == Some(origin),
                // Erased versions are the oldest ones.
                Err(Error::Erased) => false,
                Err(error) => return Err(error),
            };
            (low, high) = if has_leaf { (low, middle) } else { (middle + 1, high) };
        }
        let found = self.version(&text.thread, low).await?;
        // The version that set the leaf may itself be erased.
        if found.statement.proposal == *origin {
            self.made.insert(origin.clone(), found.entry.transition);
        }
        Ok(())
    }

    async fn read_statements(&mut self, thread: &ThreadId, of: RangeInclusive<u64>) -> Result<()> {
        let (service, keys) = (self.service, self.keys);
        let rows = service.links(keys, &mut ArchiveFiles::default(), thread, of).await?;
        let digests: Vec<Digest> = rows.iter().map(|it| it.transition).collect();
        for (digest, transition) in service.transitions_of(keys, &mut ArchiveFiles::default(), &digests).await? {
            self.made.insert(transition.statement.proposal, digest);
        }
        Ok(())
    }

    /// Returns the earliest of a transition and those that it edits that has the text. An edit takes over what it leaves
    /// as it was proposed.
    pub(super) async fn first_with(
        &mut self,
        mut transition: Arc<Transition>,
        before: &Value,
        value: Option<&Value>,
        text: &StateText,
    ) -> Result<Arc<Transition>> {
        while let (TransitionType::Edit, Some(earlier)) = (transition.statement.kind, transition.statement.supersedes) {
            let earlier = self.transition(earlier).await?;
            let would_be = earlier.delta.apply(before).map_err(|_| Error::Broken("a transition's effect"))?;
            if text.resolve(&would_be).as_deref() != value {
                break;
            }
            transition = earlier;
        }
        Ok(transition)
    }
}
