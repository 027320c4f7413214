//! Moves old versions into archive files, first into the file and then out of the database.

use countersign_adapters::archives::packed;
use countersign_domain::chain::entry::Entry;
use countersign_domain::chain::hash::Digest;
use countersign_domain::chain::jws;
use countersign_domain::chain::jws::TokenType;
use countersign_domain::keys::Keys;
use countersign_domain::log::event::EventType;
use countersign_domain::policy::Policy;
use countersign_domain::primitives::id::{FlowId, ThreadId};
use countersign_domain::primitives::time::Timestamp;
use countersign_domain::threads::archive::{
    Archive, ArchiveContent, ArchiveContentState, ArchivedLocation, ArchivedVersion, PLAIN_BYTES_MAX, RetentionPolicy,
};
use countersign_domain::threads::flow::Flow;
use countersign_domain::threads::thread::Thread;
use countersign_domain::threads::transition::{ChainRow, StateRow, Transition};
use countersign_store::change::Draft;
use countersign_store::record::Stored;
use countersign_store::{Cursor, LIST_ROWS_MAX, LeaderLock, LeaderTask, RowFilter};
use serde_json::{Value, json};

use crate::archive::VersionArchive;
use crate::archive::openings::OPENINGS_BYTES_MAX;
use crate::error::{Error, Result};
use crate::platform::event_recorder;
use crate::platform::retry::retrying;

/// Number of threads that one pass processes.
const THREADS_AT_ONCE: u32 = 100;

/// Maximum number of archives that one pass makes of a thread. A thread that is older than its retention rule may need
/// several passes.
const ARCHIVES_AT_ONCE: usize = 8;

/// Number of versions in memory at once, each with its full state.
pub(crate) const VERSIONS_AT_ONCE: usize = 4;

pub(crate) const TAKEN: Error = Error::WrongState("a gateway is archiving or erasing now. Retry when it is done.");

/// Position where a pass stopped and the next pass continues.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ArchiveScanCursor {
    pub(super) flow: Option<FlowId>,
    pub(super) thread: Option<String>,
}

/// A thread with the policy that sets its retention.
pub(crate) struct ArchivalCandidate {
    pub(super) thread: Stored<Thread>,
    pub(super) flow: Stored<Flow>,
    pub(super) policy: std::sync::Arc<Policy>,
    pub(super) retain: RetentionPolicy,
}

/// The rows of consecutive versions that leave the database.
pub(crate) struct ArchiveSegment {
    pub(super) links: Vec<Stored<ChainRow>>,
    pub(super) states: Vec<Stored<StateRow>>,
    /// Committed transitions in the order of versions.
    pub(super) committed: Vec<Stored<Transition>>,
    /// Held transitions that were not committed, by digest.
    pub(super) ended: Vec<Stored<Transition>>,
    /// Time since which none of these versions has been the head.
    pub(super) left: Timestamp,
}

impl VersionArchive {
    /// Archives and erases versions of some threads from the cursor on. Returns the number of archives that were made
    /// or erased. Returns 0 if another gateway has the leader lock for archiving.
    pub async fn retain(&self, place: &mut ArchiveScanCursor) -> Result<usize> {
        if self.core.archives.is_none() {
            return Ok(0);
        }
        let Some(duty) = self.core.store.take(LeaderTask::Archiving).await? else { return Ok(0) };
        let done = self.retain_next(&*duty, place).await;
        duty.leave().await;
        done
    }

    async fn retain_next(&self, duty: &dyn LeaderLock, place: &mut ArchiveScanCursor) -> Result<usize> {
        let keys = self.core.keys()?;
        let (mut done, mut failed) = (0, None);
        match self.finish_erasing(duty, &keys).await {
            Ok(finished) => done = finished,
            Err(error) => failed = Some(error),
        }
        for thread in self.next_threads(&keys, place).await? {
            if let Err(lost) = require_leadership(duty) {
                return Err(failed.unwrap_or(lost));
            }
            match self.apply_retention_as_leader(duty, &thread).await {
                Ok(more) => done += more,
                // A failed thread must not block the others.
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        failed.map_or(Ok(done), Err)
    }

    /// Returns the threads after the cursor, from the next flow whose policy has a retention rule.
    async fn next_threads(&self, keys: &Keys, place: &mut ArchiveScanCursor) -> Result<Vec<ThreadId>> {
        if place.thread.is_none() {
            place.flow = self.next_flow(keys, place.flow.as_ref()).await?;
        }
        let Some(flow) = &place.flow else { return Ok(Vec::new()) };
        let after = place.thread.take().map(|id| Cursor { due: 0, id });
        let threads = self
            .core
            .reader(keys)
            .list::<Thread>(RowFilter::Owner(flow.as_str()), after.as_ref(), THREADS_AT_ONCE)
            .await?;
        if threads.len() == THREADS_AT_ONCE as usize {
            place.thread = threads.last().map(|it| it.record.id.to_string());
        }
        Ok(threads.into_iter().map(|it| it.record.id).collect())
    }

    async fn next_flow(&self, keys: &Keys, after: Option<&FlowId>) -> Result<Option<FlowId>> {
        let mut after = after.map(|it| Cursor { due: 0, id: it.to_string() });
        loop {
            let flows = self.core.reader(keys).list::<Flow>(RowFilter::All, after.as_ref(), LIST_ROWS_MAX).await?;
            let Some(last) = flows.last() else { return Ok(None) };
            after = Some(Cursor { due: 0, id: last.record.id.to_string() });
            for flow in flows {
                if self.policies.policy(keys, flow.record.policy).await?.retain().is_some() {
                    return Ok(Some(flow.record.id));
                }
            }
        }
    }

    /// Applies the retention rule to one thread. Returns the number of archives that were made or erased.
    pub async fn apply_thread_retention(&self, thread: &ThreadId) -> Result<usize> {
        let Some(duty) = self.core.store.take(LeaderTask::Archiving).await? else { return Ok(0) };
        let done = self.apply_retention_as_leader(&*duty, thread).await;
        duty.leave().await;
        done
    }

    async fn apply_retention_as_leader(&self, duty: &dyn LeaderLock, thread: &ThreadId) -> Result<usize> {
        let mut done = 0;
        while done < ARCHIVES_AT_ONCE && retrying!(self.archive_once(duty, thread))? {
            done += 1;
        }
        while done < ARCHIVES_AT_ONCE && retrying!(self.erase_once(duty, thread))? {
            done += 1;
        }
        Ok(done)
    }

    pub(crate) async fn retained(&self, keys: &Keys, thread: &ThreadId) -> Result<Option<ArchivalCandidate>> {
        let thread = self.core.thread(keys, thread).await?;
        let flow = self.core.flow(keys, &thread.record.flow).await?;
        let policy = self.policies.policy(keys, flow.record.policy).await?;
        let Some(retain) = policy.retain().copied() else { return Ok(None) };
        if self.may_be_joined(keys, &thread.record).await? {
            return Ok(None);
        }
        Ok(Some(ArchivalCandidate { thread, flow, policy, retain }))
    }

    /// Returns true for a branch of the current head of its parent. A join still needs version 0 of that branch.
    async fn may_be_joined(&self, keys: &Keys, thread: &Thread) -> Result<bool> {
        let Some(origin) = &thread.branch else { return Ok(false) };
        let parent = self.core.thread(keys, &origin.thread).await?;
        Ok(parent.record.head.transition == origin.transition)
    }

    /// Archives the oldest segment that is in the database if the policy allows it for all of its versions.
    async fn archive_once(&self, duty: &dyn LeaderLock, thread: &ThreadId) -> Result<bool> {
        let keys = self.core.keys()?;
        let Some(standing) = self.retained(&keys, thread).await? else { return Ok(false) };
        let Some(stretch) = self.next_segment(&keys, &standing, self.core.now()).await? else { return Ok(false) };
        let content = self.content_of(&keys, &standing, &stretch).await?;
        let Some(archive) = self.write_archive(&standing, &content, stretch.left).await? else { return Ok(false) };
        let mut rows = Draft::new(keys.row(), self.core.now());
        self.remove_archived_rows(&mut rows, &keys, &stretch).await?;
        // Writing a large file takes time. The policy or the thread may have changed since then, so both are checked
        // again.
        let Some(standing) = self.retained_still(&keys, &standing).await? else { return Ok(false) };
        let (mut record, now) = (standing.thread.record.clone(), self.core.now());
        if !standing.retain.lets_go(archive.to, archive.left, record.head.version, now) {
            return Ok(false);
        }
        let archive = Archive { at: now, policy: standing.policy.digest(), ..archive };
        let mut draft = Draft::new(keys.row(), now);
        draft.add(rows);
        draft.require_unchanged(&standing.flow);
        record.gone.archived = archive.to + 1;
        event_recorder::append_thread_event(
            &mut draft,
            &mut record,
            now,
            EventType::ThreadArchived,
            told(&archive, archive.policy),
        )?;
        draft.replace(&standing.thread, &record)?;
        draft.insert(&archive)?;
        require_leadership(duty)?;
        self.core.commit(draft.finish()).await?;
        Ok(true)
    }

    /// Returns the thread as it is now, unless more of its versions were archived or erased since then.
    pub(crate) async fn retained_still(
        &self,
        keys: &Keys,
        before: &ArchivalCandidate,
    ) -> Result<Option<ArchivalCandidate>> {
        let Thread { id, gone, .. } = &before.thread.record;
        Ok(self.retained(keys, id).await?.filter(|it| it.thread.record.gone == *gone))
    }

    /// Removes the rows of a segment from the database. Deleting whole rows frees whole pages at the oldest end, which
    /// shortening rows would not. `whereabouts` then has the position of each transition.
    async fn remove_archived_rows(&self, draft: &mut Draft<'_>, keys: &Keys, stretch: &ArchiveSegment) -> Result<()> {
        for state in &stretch.states {
            draft.remove(state);
        }
        for transition in &stretch.committed {
            let Transition { digest, statement, .. } = &transition.record;
            let (thread, version) = (statement.thread.clone(), statement.version);
            draft.remove(transition).insert(&ArchivedLocation { transition: *digest, thread, version })?;
        }
        for transition in &stretch.ended {
            draft.replace(transition, &transition.record.without_values())?;
        }
        // The last entry stays until the next segment leaves. The version after it is checked against this entry
        // without reading a file.
        let Some((last, links)) = stretch.links.split_last() else { return Err(Error::Broken("the chain")) };
        for link in links {
            draft.remove(link);
        }
        if let Some(before) = last.record.version.checked_sub(stretch.links.len() as u64) {
            for link in self.threads.stored_versions::<ChainRow>(keys, &last.record.thread, before..=before).await? {
                draft.remove(&link);
            }
        }
        Ok(())
    }

    /// Returns the content of the archive file. Each version is checked like a head first.
    pub(crate) async fn content_of(
        &self,
        keys: &Keys,
        standing: &ArchivalCandidate,
        stretch: &ArchiveSegment,
    ) -> Result<ArchiveContent> {
        let thread = &standing.thread.record.id;
        let ends = stretch.links.first().zip(stretch.links.last());
        let range = ends.map(|(first, last)| first.record.version..=last.record.version);
        let range = range.ok_or(Error::Broken("the chain"))?;
        // An opening contains the changed values. Those of the version before belong to another file and are erased
        // with that file.
        let mut before = None;
        let rows = stretch.links.iter().zip(&stretch.committed).zip(&stretch.states).collect::<Vec<_>>();
        let mut entries = Vec::with_capacity(rows.len());
        let mut room = OPENINGS_BYTES_MAX;
        for some in rows.chunks(VERSIONS_AT_ONCE) {
            let first = range.start() + entries.len() as u64;
            let versions = self.threads.versions(keys, thread, first..=first + some.len() as u64 - 1).await?;
            for ((version, _), ((link, transition), state)) in versions.into_iter().zip(some) {
                let policy = self.policies.policy(keys, version.entry.policy).await?;
                // An opening that exceeds the limit is left out. The links are intact without it.
                let opening = self.opened(keys, &policy, before.as_ref(), &version, &mut room).unwrap_or_default();
                entries.extend(ArchivedVersion::new(&link.record, &transition.record, &state.record, opening));
                before = Some(version);
            }
        }
        let ended = stretch.ended.iter().map(|it| it.record.clone()).collect();
        let whole = entries.len() == stretch.links.len();
        ArchiveContent::new(thread, entries, ended).filter(|_| whole).ok_or(Error::Broken("the chain"))
    }

    /// Writes the file and reads it back. Only content that is read back completely may leave the database. Returns
    /// `None` if the content is too large to be read again.
    async fn write_archive(
        &self,
        standing: &ArchivalCandidate,
        content: &ArchiveContent,
        left: Timestamp,
    ) -> Result<Option<Archive>> {
        let text = content.text();
        if text.len() as u64 > PLAIN_BYTES_MAX {
            tracing::warn!(thread = %content.thread(), "the versions are too large for one archive and stay in the database");
            return Ok(None);
        }
        let bytes = packed(&text).map_err(Error::Unwritten)?;
        let archive = Archive {
            thread: content.thread().clone(),
            from: *content.versions().start(),
            to: *content.versions().end(),
            left,
            file: Digest::of_file(&bytes),
            bytes: bytes.len() as u64,
            plain_bytes: text.len() as u64,
            policy: standing.policy.digest(),
            at: self.core.now(),
            kept: ArchiveContentState::Whole {},
        };
        self.write_file(&archive, bytes, content).await?;
        Ok(Some(archive))
    }

    /// Writes the file of an archive and reads it back. No reader asks for the file before a row names it.
    pub(crate) async fn write_file(&self, archive: &Archive, bytes: Vec<u8>, content: &ArchiveContent) -> Result<()> {
        let (archives, written) = (self.core.archives.clone().ok_or(Error::NoArchives)?, archive.clone());
        let write = move || archives.write(&written, &bytes);
        let wrote = tokio::task::spawn_blocking(write).await.map_err(std::io::Error::other);
        wrote.flatten().map_err(Error::Unwritten)?;
        if self.threads.content(archive).await? == *content { Ok(()) } else { Err(Error::Broken("an archive")) }
    }
}

/// Fails if this gateway has lost the leader lock, because another gateway may now work on the same files.
pub(crate) fn require_leadership(duty: &dyn LeaderLock) -> Result<()> {
    if duty.stands() { Ok(()) } else { Err(TAKEN) }
}

/// Returns the event data of an archive.
pub(crate) fn told(archive: &Archive, policy: Digest) -> Value {
    json!({"from": archive.from, "to": archive.to, "file": archive.file, "policy": policy})
}

pub(crate) fn committed_in(row: &ChainRow) -> Result<Timestamp> {
    let entry = jws::read::<Entry>(&row.entry, TokenType::Entry).ok();
    entry.map(|it| it.claims_unverified().committed_at).ok_or(Error::Broken("the chain"))
}
