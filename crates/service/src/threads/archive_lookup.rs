//! Reads versions and transitions that moved from the database to archives. A file is accepted if its hash
//! matches a sealed row. Its content is then checked against the signatures like content of the database.

use std::collections::{BTreeSet, HashMap};
use std::ops::RangeInclusive;

use countersign_adapters::archives::ArchiveFileError;
use countersign_domain::chain::hash::Digest;
use countersign_domain::keys::Keys;
use countersign_domain::primitives::id::ThreadId;
use countersign_domain::threads::archive::{Archive, ArchiveContent, ArchivedLocation, ArchivedVersion};
use countersign_domain::threads::thread::Thread;
use countersign_domain::threads::transition::{ChainRow, StateRow, Transition, ValueLocation};
use countersign_store::record::{Record, Stored};
use countersign_store::records::version_id;
use countersign_store::{Cursor, LIST_ROWS_MAX, RowFilter};

use crate::error::{Error, Result};
use crate::platform::fair_queue::QueuePermit;
use crate::threads::Threads;

const BROKEN: Error = Error::Broken("an archive");

/// The queue key for the gateway's own work. No thread can have this name.
const OWN_WORK: &str = "";

/// The archive files that one call has read, up to a limit. They do not outlive the call, so a missing file
/// is noticed at once. A call with files holds a permit of the fair queue.
#[derive(Default)]
pub(crate) struct ArchiveFiles {
    read: Vec<UnpackedArchive>,
    turn: Option<QueuePermit>,
}

struct UnpackedArchive {
    content: ArchiveContent,
    bytes: u64,
}

/// Bytes of file content that one call keeps in memory, in addition to the file that it reads. The files of most
/// threads are far smaller.
const KEPT_BYTES_MAX: u64 = 32 * 1024 * 1024;

impl ArchiveFiles {
    fn put(&mut self, unpacked: UnpackedArchive) {
        let bytes: Vec<u64> = self.read.iter().map(|it| it.bytes).collect();
        self.read.drain(..files_over_limit(&bytes));
        self.read.push(unpacked);
    }
}

/// Returns how many of the oldest files to drop. Versions are read in order, so the newest files are needed
/// next.
fn files_over_limit(bytes: &[u64]) -> usize {
    let mut kept = 0_u64;
    let fits = |it: &&u64| {
        kept = kept.saturating_add(**it);
        kept <= KEPT_BYTES_MAX
    };
    bytes.len() - bytes.iter().rev().take_while(fits).count()
}

/// Extracts a value from an archived version. Returns `None` if it is erased.
pub(crate) type ArchivedExtractor<R> = fn(&ArchivedVersion) -> Option<R>;

/// Returns the archived form of a transition, after a check that it matches the row in the database.
fn with_values(content: &ArchiveContent, transition: &Transition) -> Result<Transition> {
    if !content.has_values() {
        return Err(Error::Erased);
    }
    let whole = content.ended.iter().find(|it| it.digest == transition.digest).ok_or(BROKEN)?;
    if whole.without_values() == *transition { Ok(whole.clone()) } else { Err(BROKEN) }
}

impl Threads {
    /// Returns the rows of these versions from the database and from archives, in order. A version in neither
    /// is left out, and an erased one is an error.
    pub(crate) async fn rows_with_archived<R: Record + VersionedRow>(
        &self,
        keys: &Keys,
        files: &mut ArchiveFiles,
        thread: &ThreadId,
        of: RangeInclusive<u64>,
        taken: ArchivedExtractor<R>,
    ) -> Result<Vec<R>> {
        let ids: Vec<String> = of.clone().map(|it| version_id(thread, it)).collect();
        let found = self.core.reader(keys).get_many::<R>(&ids).await?;
        let mut rows: Vec<R> = found.into_iter().map(|it| it.record).collect();
        let there: BTreeSet<u64> = rows.iter().map(VersionedRow::version).collect();
        for version in of.filter(|it| !there.contains(it)) {
            let Some(file) = self.file_over(keys, files, thread, version).await? else { break };
            let archived = file.at(version).ok_or(BROKEN)?;
            rows.push(taken(archived).ok_or(Error::Erased)?);
        }
        // Archived rows were added after those of the database, so the order is restored.
        rows.sort_by_key(VersionedRow::version);
        Ok(rows)
    }

    /// Returns the transition with this digest, if its version is in an archive.
    pub(crate) async fn archived(
        &self,
        keys: &Keys,
        files: &mut ArchiveFiles,
        digest: Digest,
    ) -> Result<Option<Transition>> {
        let Some(place) = self.core.fetch::<ArchivedLocation>(keys, &digest.to_string()).await? else {
            return Ok(None);
        };
        self.archived_at(keys, files, &place.record).await.map(Some)
    }

    async fn archived_at(&self, keys: &Keys, files: &mut ArchiveFiles, place: &ArchivedLocation) -> Result<Transition> {
        let file = self.file_over(keys, files, &place.thread, place.version).await?.ok_or(BROKEN)?;
        let row = file.at(place.version).map(ArchivedVersion::row).ok_or(BROKEN)?;
        // The digest is computed again, because an archive is only a file.
        if row.digest == place.transition && row.statement.digest() == row.digest { Ok(row) } else { Err(BROKEN) }
    }

    /// Adds the archived ones of these transitions.
    pub(crate) async fn add_archived(
        &self,
        keys: &Keys,
        files: &mut ArchiveFiles,
        digests: &[Digest],
        found: &mut HashMap<Digest, Transition>,
    ) -> Result<()> {
        let missing = digests.iter().filter(|it| !found.contains_key(it)).map(ToString::to_string);
        let missing: Vec<String> = missing.collect();
        for chunk in missing.chunks(LIST_ROWS_MAX as usize) {
            let mut places = self.core.reader(keys).get_many::<ArchivedLocation>(chunk).await?;
            // Sorted by version, so that each file is read once.
            places.sort_by(|a, b| (&a.record.thread, a.record.version).cmp(&(&b.record.thread, b.record.version)));
            for place in places {
                let transition = self.archived_at(keys, &mut *files, &place.record).await?;
                found.insert(transition.digest, transition);
            }
        }
        Ok(())
    }

    /// Returns the archived transition with this identity on the version after `parent`. No other version can
    /// have it, because a repeated request names the head that it was based on.
    pub(crate) async fn archived_as(
        &self,
        keys: &Keys,
        thread: &Thread,
        parent: Digest,
        identity: Digest,
    ) -> Result<Option<Transition>> {
        // The version after the head is not committed yet, so no archive can contain it.
        if parent == thread.head.transition || thread.gone.archived == 0 {
            return Ok(None);
        }
        let place = self.place_of(keys, parent).await?.filter(|it| it.thread == thread.id);
        // Versions from `archived` on are in the database, where the caller has already looked.
        let next = place.and_then(|it| it.version.checked_add(1)).filter(|it| *it < thread.gone.archived);
        let Some(next) = next else { return Ok(None) };
        let mut files = ArchiveFiles::default();
        let file = self.file_over(keys, &mut files, &thread.id, next).await?.ok_or(BROKEN)?;
        Ok(file.at(next).map(ArchivedVersion::row).filter(|it| it.identity == identity))
    }

    /// Returns the thread and version of a transition, if it is committed.
    pub(crate) async fn place_of(&self, keys: &Keys, transition: Digest) -> Result<Option<ArchivedLocation>> {
        let name = transition.to_string();
        if let Some(row) = self.core.reader(keys).get_by_alias::<ChainRow>(&name).await? {
            let ChainRow { thread, version, .. } = row.record;
            return Ok(Some(ArchivedLocation { transition, thread, version }));
        }
        Ok(self.core.fetch::<ArchivedLocation>(keys, &name).await?.map(|it| it.record))
    }

    /// Returns a transition with its values, from the database or an archive.
    pub(crate) async fn whole(&self, keys: &Keys, transition: Transition) -> Result<Transition> {
        if transition.values == ValueLocation::Here {
            return Ok(transition);
        }
        let (statement, mut files) = (&transition.statement, ArchiveFiles::default());
        let file = self.file_over(keys, &mut files, &statement.thread, statement.version).await?;
        with_values(file.ok_or(BROKEN)?, &transition)
    }

    /// Adds the archived values to these transitions. Transitions with erased values stay without them.
    pub(crate) async fn fill_in(
        &self,
        keys: &Keys,
        files: &mut ArchiveFiles,
        transitions: &mut HashMap<Digest, Transition>,
    ) -> Result<()> {
        let mut slim: Vec<_> = transitions.values_mut().filter(|it| it.values == ValueLocation::Archived).collect();
        // Sorted by version, so that each file is unpacked once.
        slim.sort_by(|a, b| {
            let place = |it: &Transition| (it.statement.thread.clone(), it.statement.version);
            place(a).cmp(&place(b))
        });
        for transition in slim {
            let statement = &transition.statement;
            let file = self.file_over(keys, &mut *files, &statement.thread, statement.version).await?;
            match with_values(file.ok_or(BROKEN)?, transition) {
                Ok(whole) => *transition = whole,
                Err(Error::Erased) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Returns the content of the archive that contains a version.
    async fn file_over<'f>(
        &self,
        keys: &Keys,
        files: &'f mut ArchiveFiles,
        thread: &ThreadId,
        version: u64,
    ) -> Result<Option<&'f ArchiveContent>> {
        let has = |it: &ArchiveContent| it.thread() == thread && it.versions().contains(&version);
        let at = match files.read.iter().position(|it| has(&it.content)) {
            Some(at) => at,
            None => {
                let Some(archive) = self.archive_over(keys, thread, version).await? else { return Ok(None) };
                // One permit serves all files of the call, because a second one for the same thread would wait for the
                // first.
                let turn = match files.turn.take() {
                    Some(turn) => turn,
                    None => self.core.turns.unpacking.take(thread.as_str()).await?,
                };
                let content = self.unpacked(&archive.record, files.turn.insert(turn)).await?;
                files.put(UnpackedArchive { content, bytes: archive.record.plain_bytes });
                files.read.len() - 1
            }
        };
        Ok(files.read.get(at).map(|it| &it.content))
    }

    /// Returns the archive that contains a version.
    pub(crate) async fn archive_over(
        &self,
        keys: &Keys,
        thread: &ThreadId,
        version: u64,
    ) -> Result<Option<Stored<Archive>>> {
        // The id of an archive contains its last version. So the first archive that does not end before this
        // version is the only candidate.
        let before = version.checked_sub(1).map(|it| Cursor { due: 0, id: version_id(thread, it) });
        let found =
            self.core.reader(keys).list::<Archive>(RowFilter::Owner(thread.as_str()), before.as_ref(), 1).await?;
        Ok(found.into_iter().next().filter(|it| (it.record.from..=it.record.to).contains(&version)))
    }

    /// Returns the content of an archive for the gateway's own work, which does not wait behind the readers
    /// of a thread.
    pub(crate) async fn content(&self, archive: &Archive) -> Result<ArchiveContent> {
        let turn = self.core.turns.unpacking.take(OWN_WORK).await?;
        self.unpacked(archive, &turn).await
    }

    async fn unpacked(&self, archive: &Archive, turn: &QueuePermit) -> Result<ArchiveContent> {
        let (archives, archive) = (self.core.archives.clone().ok_or(Error::NoArchives)?, archive.clone());
        let read = move || {
            let text = archives.read(&archive)?;
            let content = ArchiveContent::read(&text).filter(|it| it.is_of(&archive));
            content.ok_or_else(|| {
                ArchiveFileError::Damaged(archives.path(&archive), "the content is not an archive of these versions")
            })
        };
        turn.work("an archive", read).await?.map_err(Error::Archive)
    }
}

/// A row of one version.
pub(crate) trait VersionedRow {
    fn version(&self) -> u64;
}

impl VersionedRow for ChainRow {
    fn version(&self) -> u64 {
        self.version
    }
}

impl VersionedRow for StateRow {
    fn version(&self) -> u64 {
        self.version
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newest_files_stay_within_the_limit() {
        const HALF: u64 = KEPT_BYTES_MAX / 2;
        assert_eq!(files_over_limit(&[]), 0);
        assert_eq!(files_over_limit(&[HALF, HALF]), 0);
        assert_eq!(files_over_limit(&[HALF, 1, HALF]), 1);
        assert_eq!(files_over_limit(&[1, KEPT_BYTES_MAX, 1]), 2, "files older than a dropped one are dropped too");
        assert_eq!(files_over_limit(&[KEPT_BYTES_MAX + 1]), 1);
    }
}
