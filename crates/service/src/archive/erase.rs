//! Erases archived values as the policy requires. The gateway writes a file without the values, records the decision,
//! and then deletes the file that had the values. Everything that was signed, and every link of the chain, stays.

use countersign_adapters::archives::packed;
use countersign_domain::chain::hash::Digest;
use countersign_domain::keys::Keys;
use countersign_domain::log::event::EventType;
use countersign_domain::primitives::id::ThreadId;
use countersign_domain::reviews::Hold;
use countersign_domain::threads::archive::{Archive, ArchiveContentState, ERASING};
use countersign_domain::threads::thread::Thread;
use countersign_store::change::Draft;
use countersign_store::record::Stored;
use countersign_store::{LIST_ROWS_MAX, LeaderLock, RowFilter};

use super::segments::ALWAYS;
use crate::archive::VersionArchive;
use crate::archive::move_versions::{ArchivalCandidate, require_leadership, told};
use crate::error::{Error, Result};
use crate::platform::event_recorder;

/// Maximum number of rows that one change empties. One row can have several megabytes.
const EMPTIED_AT_ONCE: usize = 16;

impl VersionArchive {
    /// Decides that the values of the oldest archive with values are erased, if its policy requires it. No client gets
    /// the values from then on.
    pub(super) async fn erase_once(&self, duty: &dyn LeaderLock, thread: &ThreadId) -> Result<bool> {
        let keys = self.core.keys()?;
        let Some(standing) = self.retained(&keys, thread).await? else { return Ok(false) };
        let (record, first) = (&standing.thread.record, standing.thread.record.gone.erased);
        // Only archived versions can be erased.
        if standing.retain.erase_after_days.is_none() || first >= record.gone.archived {
            return Ok(false);
        }
        let archive = self.threads.archive_over(&keys, thread, first).await?.ok_or(Error::Broken("an archive"))?;
        if !self.may_be_erased(&keys, &standing, &archive.record).await? {
            return Ok(false);
        }
        let written = self.write_without_values(&standing, &archive.record).await?;
        // Writing the file takes time. The policy or the thread may have changed since then, so both are checked again.
        let Some(standing) = self.retained_still(&keys, &standing).await? else { return Ok(false) };
        if !self.may_be_erased(&keys, &standing, &archive.record).await? {
            return Ok(false);
        }
        let (now, policy) = (self.core.now(), standing.policy.digest());
        let erasing = Archive { kept: ArchiveContentState::Erasing { at: now, policy }, ..written };
        let mut draft = Draft::new(keys.row(), now);
        draft.require_unchanged(&standing.flow).replace(&archive, &erasing)?;
        let mut next = standing.thread.record.clone();
        next.gone.erased = erasing.to + 1;
        let data = told(&erasing, policy);
        event_recorder::append_thread_event(&mut draft, &mut next, now, EventType::ThreadErased, data)?;
        draft.replace(&standing.thread, &next)?;
        require_leadership(duty)?;
        self.core.commit(draft.finish()).await?;
        // The decision is committed before the file is deleted. A crash in between is completed by the next run.
        self.finish_erasing(duty, &keys).await?;
        Ok(true)
    }

    /// Returns true if the policy allows the erasure and no open review asks for a state of these versions.
    async fn may_be_erased(&self, keys: &Keys, standing: &ArchivalCandidate, archive: &Archive) -> Result<bool> {
        let over = standing.retain.may_erase(archive.left, self.core.now());
        Ok(over && !self.is_asked_for(keys, &standing.thread.record, archive.to).await?)
    }

    /// Writes the part of an archive that stays into a second file beside it. The content follows from the archive
    /// alone, so an interrupted run produces the same file again.
    async fn write_without_values(&self, standing: &ArchivalCandidate, archive: &Archive) -> Result<Archive> {
        let content = self.threads.content(archive).await?.without_values();
        let text = content.text();
        let bytes = packed(&text).map_err(Error::Unwritten)?;
        let erasing = Archive {
            file: Digest::of_file(&bytes),
            bytes: bytes.len() as u64,
            plain_bytes: text.len() as u64,
            kept: ArchiveContentState::Erasing { at: self.core.now(), policy: standing.policy.digest() },
            ..archive.clone()
        };
        self.write_file(&erasing, bytes, &content).await?;
        Ok(erasing)
    }

    /// Returns true if an open review asks to restore a state of these versions.
    async fn is_asked_for(&self, keys: &Keys, thread: &Thread, up_to: u64) -> Result<bool> {
        let Some(review) = &thread.hold else { return Ok(false) };
        let hold: Stored<Hold> = self.core.need(keys, review.as_str(), "review").await?;
        let Some(restores) = self.threads.stated(keys, hold.record.transition).await?.statement.restores else {
            return Ok(false);
        };
        let place = self.threads.place_of(keys, restores).await?.ok_or(Error::Broken("the chain"))?;
        Ok(place.version <= up_to)
    }

    /// Deletes the files of archives that are being erased, and the values that were not in those files. The next run
    /// completes an interrupted one.
    pub(super) async fn finish_erasing(&self, duty: &dyn LeaderLock, keys: &Keys) -> Result<usize> {
        let erasing = self.core.reader(keys).list::<Archive>(RowFilter::State(ERASING), None, LIST_ROWS_MAX).await?;
        let (mut done, mut failed) = (0, None);
        for archive in erasing {
            match self.finish(duty, keys, &archive).await {
                Ok(()) => done += 1,
                // A failed archive must not block the others.
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        failed.map_or(Ok(done), Err)
    }

    async fn finish(&self, duty: &dyn LeaderLock, keys: &Keys, archive: &Stored<Archive>) -> Result<()> {
        let ArchiveContentState::Erasing { at, policy } = archive.record.kept.clone() else { return Ok(()) };
        let archives = self.core.archives.clone().ok_or(Error::NoArchives)?;
        // The file without the values is in the same directory. If it is missing, the directory is unavailable, and
        // nothing is known about its other files.
        self.threads.content(&archive.record).await?;
        let erased = archive.record.clone();
        require_leadership(duty)?;
        let removed = tokio::task::spawn_blocking(move || archives.remove_values(&erased)).await;
        removed.map_err(std::io::Error::other).flatten().map_err(Error::Unwritten)?;
        self.empty_remaining_rows(duty, keys, &archive.record).await?;
        let mut draft = Draft::new(keys.row(), self.core.now());
        draft.replace(
            archive,
            &Archive { kept: ArchiveContentState::Erased { at, policy }, ..archive.record.clone() },
        )?;
        require_leadership(duty)?;
        self.core.commit(draft.finish()).await
    }

    /// Removes the values of requests on these versions that were not committed and did not fit into the file. All
    /// times are searched, because a clock may have been wrong when a request was held.
    async fn empty_remaining_rows(&self, duty: &dyn LeaderLock, keys: &Keys, archive: &Archive) -> Result<()> {
        let mut after = None;
        while let Some((digests, next)) = self.held_within(keys, &archive.thread, &ALWAYS, after.as_ref()).await? {
            for chunk in digests.chunks(EMPTIED_AT_ONCE) {
                let stayed = self.ended_among(keys, chunk, &(archive.from..=archive.to)).await?;
                let mut draft = Draft::new(keys.row(), self.core.now());
                for transition in &stayed {
                    draft.replace(transition, &transition.record.without_values())?;
                }
                if !stayed.is_empty() {
                    require_leadership(duty)?;
                    self.core.commit(draft.finish()).await?;
                }
            }
            after = Some(next);
        }
        Ok(())
    }
}
