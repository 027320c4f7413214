//! Restores archived versions to the database, byte for byte, for an operator who has the keyring.

use countersign_domain::keys::Keys;
use countersign_domain::log::event::EventType;
use countersign_domain::primitives::id::{PrincipalId, ThreadId};
use countersign_domain::threads::archive::{Archive, ArchiveContent, ArchivedLocation};
use countersign_domain::threads::transition::Transition;
use countersign_store::change::Draft;
use countersign_store::record::{ListBounds, Stored};
use countersign_store::{LeaderLock, LeaderTask, RowFilter};
use serde_json::Value;

use crate::archive::VersionArchive;
use crate::archive::move_versions::{TAKEN, require_leadership, told};
use crate::error::{Error, Result};
use crate::platform::event_recorder;
use crate::platform::retry::retrying;
use crate::threads::archive_lookup::ArchiveFiles;

/// Pages of one list of archives.
const PAGES_MAX: usize = 100;

const BROKEN: Error = Error::Broken("an archive");

impl VersionArchive {
    /// Restores the archives of a thread, the last one first. Erased archives cannot be restored. Returns the number of
    /// restored archives.
    ///
    /// A gateway that archives at the same time could write the same file that is deleted here. The restore therefore
    /// has the leader lock for archiving throughout, and is refused while another process has it.
    pub async fn restore_archives(&self, by: &PrincipalId, thread: &ThreadId) -> Result<usize> {
        let duty = self.core.store.take(LeaderTask::Archiving).await?.ok_or(TAKEN)?;
        let restored = self.restore_all(&*duty, by, thread).await;
        duty.leave().await;
        restored
    }

    async fn restore_all(&self, duty: &dyn LeaderLock, by: &PrincipalId, thread: &ThreadId) -> Result<usize> {
        let mut done = 0;
        while retrying!(self.restore_last(duty, by, thread))? {
            done += 1;
        }
        Ok(done)
    }

    async fn restore_last(&self, duty: &dyn LeaderLock, by: &PrincipalId, thread: &ThreadId) -> Result<bool> {
        let keys = self.core.keys()?;
        let stored = self.core.thread(&keys, thread).await?;
        let last = self.core.reader(&keys).last_of::<Archive>(thread.as_str()).await?;
        let Some(archive) = last.filter(|it| it.record.kept.has_values()) else { return Ok(false) };
        let content = self.threads.content(&archive.record).await?;
        let mut rows = Draft::new(keys.row(), self.core.now());
        self.put_back(&mut rows, &keys, &content).await?;
        // A store rejects a change that was decided seconds ago, and unpacking and sealing several megabytes can take
        // that long.
        let now = self.core.now();
        let mut draft = Draft::new(keys.row(), now);
        draft.add(rows);
        let mut record = stored.record.clone();
        record.gone.archived = archive.record.from;
        let mut data = told(&archive.record, archive.record.policy);
        data["by"] = Value::from(by.as_str());
        event_recorder::append_thread_event(&mut draft, &mut record, now, EventType::ThreadRestored, data)?;
        draft.replace(&stored, &record)?;
        draft.remove(&archive);
        require_leadership(duty)?;
        self.core.commit(draft.finish()).await?;
        // Without the leader lock, another gateway may have written this file by now. A file that is left behind does
        // no harm, because no row names it.
        require_leadership(duty)?;
        let (archives, gone) = (self.core.archives.clone().ok_or(Error::NoArchives)?, archive.record);
        let removed = tokio::task::spawn_blocking(move || archives.remove(&gone)).await;
        removed.map_err(std::io::Error::other).flatten().map_err(Error::Unwritten)?;
        Ok(true)
    }

    /// Adds every row of an archive to the change, as it was taken out.
    async fn put_back(&self, draft: &mut Draft<'_>, keys: &Keys, content: &ArchiveContent) -> Result<()> {
        let digests: Vec<String> = content.entries.iter().map(|it| it.transition.to_string()).collect();
        let places = self.core.reader(keys).get_many::<ArchivedLocation>(&digests).await?;
        if places.len() != digests.len() {
            return Err(BROKEN);
        }
        for place in &places {
            draft.remove(place);
        }
        for archived in &content.entries {
            draft.insert(&archived.row())?;
            draft.insert(&archived.state().ok_or(BROKEN)?)?;
        }
        let ended: Vec<String> = content.ended.iter().map(|it| it.digest.to_string()).collect();
        let ended = self.core.reader(keys).get_many::<Transition>(&ended).await?;
        if ended.len() != content.ended.len() {
            return Err(BROKEN);
        }
        for slim in ended {
            let whole = content.ended.iter().find(|it| it.without_values() == slim.record).ok_or(BROKEN)?;
            draft.replace(&slim, whole)?;
        }
        // The last entry of the archive stayed in the database. The last entry before the archive now stays there
        // again.
        let (first, last) = content.versions().into_inner();
        let before = first.saturating_sub(1);
        for link in self
            .threads
            .links(keys, &mut ArchiveFiles::default(), content.thread(), before..=last.saturating_sub(1))
            .await?
        {
            draft.insert(&link)?;
        }
        Ok(())
    }

    /// Returns the archives in the order of threads and versions.
    pub async fn list_archives(&self, of: Option<&ThreadId>) -> Result<Vec<Archive>> {
        let keys = self.core.keys()?;
        let filter = of.map_or(RowFilter::All, |it| RowFilter::Owner(it.as_str()));
        let record = |it: Stored<Archive>| Some(it.record);
        let all = self.core.reader(&keys).select(filter, None, ListBounds::pages(PAGES_MAX), record).await?;
        match all.is_complete {
            true => Ok(all.items),
            false => Err(Error::WrongState("there are more archives than one list has: name a thread")),
        }
    }
}
