//! The differences between two versions of a thread.

use std::sync::Arc;

use countersign_domain::chain::opening::{OpeningSelection, open};
use countersign_domain::identity::party::Party;
use countersign_domain::json::pointer::Pointer;
use countersign_domain::keys::Keys;
use countersign_domain::primitives::id::ThreadId;
use countersign_domain::threads::thread::Thread;

use super::history::{StateDifference, differing};
use super::provenance::TraceStart;
use super::redaction::SentCall;
use super::redaction_queue::RedactionWork;
use super::version::Version;
use crate::error::{Error, Result};
use crate::threads::Threads;

pub struct VersionComparison {
    pub thread: Thread,
    pub differing: StateDifference,
}

impl Threads {
    /// Returns the differences between two versions. Only these two states are loaded and verified.
    pub async fn compare(
        self: &Arc<Self>,
        thread: &ThreadId,
        from: u64,
        to: u64,
        reader: &Party,
    ) -> Result<VersionComparison> {
        let keys = self.core.keys()?;
        let record = self.core.thread(&keys, thread).await?.record;
        if from.max(to) > record.head.version {
            return Err(Error::NotFound("version"));
        }
        let (before, after) = (self.version(&keys, thread, from).await?, self.version(&keys, thread, to).await?);
        let work = RedactionWork::of(reader, thread, [&before.state, &after.state]);
        let (threads, reader) = (Arc::clone(self), reader.clone());
        self.redact(work, move || async move { threads.comparison_of(&keys, record, before, after, &reader).await })
            .await
    }

    async fn comparison_of(
        &self,
        keys: &Keys,
        record: Thread,
        before: Version,
        after: Version,
        reader: &Party,
    ) -> Result<VersionComparison> {
        let policies = self.policies_over(keys, &record, [before.statement.policy, after.statement.policy]).await?;
        let calls = [self.call_before(keys, &before).await?, self.call_before(keys, &after).await?];
        let calls = [calls[0].as_ref(), calls[1].as_ref()];
        let thread = &record.id;
        let sides =
            [&before, &after].map(|of| TraceStart::Version { thread, version: of.entry.version, state: &of.state });
        let hidings = self.redactors_for(keys, reader, &policies, sides, &calls).await?;
        let hides = |at: &Pointer| hidings.iter().any(|it| it.hides(at));
        let view = OpeningSelection { hidden: &hides, wanted: &|_| false };
        let opening = open((&before.state, &before.tree), (&after.state, &after.tree), &view);
        let differing = differing(opening, &before.state, &after.state, &hidings);
        let differing = StateDifference { policies: policies.clone(), ..differing };
        Ok(VersionComparison { thread: record, differing })
    }

    /// Returns the tool call of the transition that made a version.
    async fn call_before(&self, keys: &Keys, version: &Version) -> Result<Option<SentCall>> {
        self.sent_call(keys, &self.transition(keys, version.entry.transition).await?).await
    }
}
