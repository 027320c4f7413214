//! Imports finished episodes from a folder: checks the files, stores them unchanged, and reads them again.

use countersign_adapters::metrics::BlockingWork;
use countersign_domain::episode::imported::{self, ImportChunk, RunImport, RunSignerStatus};
use countersign_domain::episode::verify::{FileContent, Folder, RunFolder, RunReport, SignatureRequirement, verify};
use countersign_domain::keys::{Keys, PublicKeys};
use countersign_domain::log::event::EventType;
use countersign_domain::primitives::id::{PrincipalId, ThreadId};
use countersign_domain::threads::thread::Thread;
use countersign_store::RowFilter;
use countersign_store::change::Draft;
use countersign_store::records::piece_id;

use crate::episodes::Episodes;
use crate::error::{Error, Result};
use crate::platform::event_recorder;
use crate::platform::retry::retrying;
use crate::proposals::rejection_list::OlderCursor;

#[derive(Clone, PartialEq, Debug)]
pub enum ImportOutcome {
    /// The folder is not a valid finished episode, so nothing was stored.
    Refused(RunReport),
    Kept(RunImport, RunReport),
    /// The episode was imported before and is unchanged.
    KeptBefore(RunImport, RunReport),
}

/// An imported episode, read from its files.
#[derive(Clone, PartialEq, Debug)]
pub struct ImportedRun {
    pub import: RunImport,
    pub folder: Folder,
    pub run: RunFolder,
    pub report: RunReport,
    /// Current validity of its signature.
    pub standing: RunSignerStatus,
}

impl Episodes {
    /// Stores the folder of a finished episode if it has no errors. The same folder is stored once, even if another
    /// person imports it again. `given` has the keys of the expected signer.
    pub async fn import_episode(
        &self,
        by: &PrincipalId,
        folder: &Folder,
        given: Option<&PublicKeys>,
    ) -> Result<ImportOutcome> {
        let keys = self.core.keys()?;
        let (brought, own, theirs) = (folder.clone(), keys.trusted().clone(), given.cloned());
        let turn = self.core.turns.unpacking.take(by.as_str()).await?;
        let checking = move || imported::check(&brought, &own, theirs.as_ref());
        let checked = self.core.apart(&turn, BlockingWork::Import, checking).await?;
        // The permit covers the check only, so others do not wait for the commit.
        drop(turn);
        if !checked.report.is_whole() {
            return Ok(ImportOutcome::Refused(checked.report));
        }
        retrying!({
            let made = RunImport::of(folder, &checked.run, checked.voucher.clone(), by.clone(), self.core.now());
            let (mut import, pieces) = made.map_err(|it| Error::invalid("", it.to_string()))?;
            if let Some(kept) = self.core.fetch::<RunImport>(&keys, import.id.as_str()).await? {
                return Ok(ImportOutcome::KeptBefore(kept.record, checked.report.clone()));
            }
            // An imported run must not pass for a thread of this gateway.
            if self.core.fetch::<Thread>(&keys, import.id.as_str()).await?.is_some() {
                return Err(Error::Exists("a thread already has the id of this run"));
            }
            let mut files = Draft::new(keys.row(), self.core.now());
            for piece in &pieces {
                files.insert(piece)?;
            }
            // A store rejects a change that was decided seconds ago, and sealing several megabytes can take that long.
            let now = self.core.now();
            import.at = now;
            let mut draft = Draft::new(keys.row(), now);
            draft.insert(&import)?;
            draft.add(files);
            event_recorder::outside(&mut draft, None, now, EventType::EpisodeImported, import.told())?;
            self.core.commit(draft.finish()).await?;
            Ok(ImportOutcome::Kept(import, checked.report.clone()))
        })
    }

    /// Returns an imported episode after comparing its files with its row.
    pub async fn imported_run(&self, thread: &ThreadId) -> Result<ImportedRun> {
        let keys = self.core.keys()?;
        let import = self.core.need::<RunImport>(&keys, thread.as_str(), "thread").await?.record;
        let own = keys.trusted().clone();
        // The files can have several megabytes, so requests wait before they load any of them.
        let turn = self.core.turns.unpacking.take(thread.as_str()).await?;
        let folder = self.imported_folder(&keys, &import).await?;
        let reading = move || {
            let (run, report) = verify(&folder, SignatureRequirement::Unchecked);
            let standing = import.voucher.stands(&run, &own);
            ImportedRun { import, folder, run, report, standing }
        };
        let read = turn.work("an imported run", reading).await?;
        if read.standing == RunSignerStatus::Broken { Err(Error::Broken("an imported run")) } else { Ok(read) }
    }

    async fn imported_folder(&self, keys: &Keys, import: &RunImport) -> Result<Folder> {
        let ids: Vec<String> = (0..import.pieces()).map(|it| piece_id(&import.id, it)).collect();
        let mut pieces: Vec<ImportChunk> = Vec::with_capacity(ids.len());
        if !ids.is_empty() {
            pieces.extend(self.core.reader(keys).get_many::<ImportChunk>(&ids).await?.into_iter().map(|it| it.record));
        }
        pieces.sort_by_key(|it| it.number);
        import.folder(&pieces).ok_or(Error::Broken("an imported run"))
    }

    /// Returns the files of an imported episode unchanged.
    pub(crate) async fn files_of_import(&self, thread: &ThreadId) -> Result<Vec<(String, Vec<u8>)>> {
        let entries = self.imported_run(thread).await?.folder.entries;
        let bytes = |(name, content)| match content {
            FileContent::Bytes(bytes) => Ok((name, bytes)),
            FileContent::TooLong | FileContent::NotAFile => Err(Error::Broken("an imported run")),
        };
        entries.into_iter().map(bytes).collect()
    }

    /// Returns the imported episodes, the newest first.
    pub async fn imported_runs(
        &self,
        after: Option<&OlderCursor>,
        limit: u32,
    ) -> Result<(Vec<RunImport>, Option<OlderCursor>)> {
        let keys = self.core.keys()?;
        let page =
            self.core.reader(&keys).list::<RunImport>(RowFilter::Latest, after.map(OlderCursor::cursor), limit).await?;
        let runs: Vec<RunImport> = page.into_iter().map(|it| it.record).collect();
        // A short page is the last one.
        let last = runs.last().filter(|_| runs.len() == limit as usize);
        let next = last.map(|it| OlderCursor::at(it.at, it.id.as_str()));
        Ok((runs, next))
    }
}
