//! Runs that come in a folder: checked, kept to the byte, and read. Nothing else is done with them.

use crate::domain::episode::imported::{self, Imported, Piece, Standing};
use crate::domain::episode::verify::{Content, Folder, Report, Run, Signature, verify};
use crate::domain::keys::{Keys, PublicKeys};
use crate::domain::log::event::EventType;
use crate::domain::primitives::id::{PrincipalId, ThreadId};
use crate::domain::threads::thread::Thread;
use crate::metrics::Work;
use crate::service::Service;
use crate::service::error::{Error, Result};
use crate::service::platform::event_recorder;
use crate::service::platform::retry::retrying;
use crate::service::proposals::rejection_list::Older;
use crate::store::Filter;
use crate::store::change::Draft;
use crate::store::record::Stored;
use crate::store::records::piece_id;

/// What became of a folder.
#[derive(Clone, PartialEq, Debug)]
pub enum Import {
    /// It is not what a finished run left, so nothing was done.
    Refused(Report),
    /// It is kept.
    Kept(Imported, Report),
    /// It was kept before, and stays as it is.
    KeptBefore(Imported, Report),
}

/// An imported run, read again.
#[derive(Clone, PartialEq, Debug)]
pub struct ImportedRun {
    /// What is kept of it.
    pub import: Imported,
    /// Its files.
    pub folder: Folder,
    /// What they hold.
    pub run: Run,
    /// What could not be told of them.
    pub report: Report,
    /// What its voucher is worth today.
    pub standing: Standing,
}

impl Service {
    /// Keeps the folder of a finished run, if nothing is wrong with it. The same folder is kept once, whoever brings it.
    /// `given` are the keys of whoever is to have signed it.
    pub async fn import_episode(
        &self,
        by: &PrincipalId,
        folder: &Folder,
        given: Option<&PublicKeys>,
    ) -> Result<Import> {
        let keys = self.keys()?;
        let (brought, own, theirs) = (folder.clone(), keys.trusted().clone(), given.cloned());
        let turn = self.turns.unpacking.take(by.as_str()).await?;
        let checking = move || imported::check(&brought, &own, theirs.as_ref());
        let checked = self.apart(&turn, Work::Import, checking).await?;
        drop(turn);
        if !checked.report.is_whole() {
            return Ok(Import::Refused(checked.report));
        }
        retrying!(self.import_once(&keys, by, folder, &checked))
    }

    async fn import_once(
        &self,
        keys: &Keys,
        by: &PrincipalId,
        folder: &Folder,
        checked: &imported::Checked,
    ) -> Result<Import> {
        let from = (&checked.run, checked.voucher.clone());
        let made = Imported::of(folder, from, by.clone(), self.now());
        let (mut import, pieces) = made.map_err(|it| Error::invalid("", it.to_string()))?;
        if let Some(kept) = self.fetch::<Imported>(keys, import.id.as_str()).await? {
            return Ok(Import::KeptBefore(kept.record, checked.report.clone()));
        }
        if self.fetch::<Thread>(keys, import.id.as_str()).await?.is_some() {
            return Err(Error::Exists("a thread has the name that this run would be shown under"));
        }
        let mut files = Draft::new(keys.row(), self.now());
        for piece in &pieces {
            files.insert(piece)?;
        }
        // A store refuses what was decided seconds ago, and to seal some megabytes may take that long.
        let now = self.now();
        import.at = now;
        let mut draft = Draft::new(keys.row(), now);
        draft.insert(&import)?;
        draft.add(files);
        event_recorder::outside(&mut draft, None, now, EventType::EpisodeImported, import.told())?;
        self.commit(draft.finish()).await?;
        Ok(Import::Kept(import, checked.report.clone()))
    }

    /// An imported run, its files held against what is kept of them.
    pub async fn imported_run(&self, thread: &ThreadId) -> Result<ImportedRun> {
        let keys = self.keys()?;
        let import = self.need::<Imported>(&keys, thread.as_str(), "thread").await?.record;
        let own = keys.trusted().clone();
        // Some megabytes of JSON, as those of an archive. Whoever waits has none of them in hand.
        let turn = self.turns.unpacking.take(thread.as_str()).await?;
        let folder = self.imported_folder(&keys, &import).await?;
        let reading = move || {
            let (run, report) = verify(&folder, Signature::Unchecked);
            let standing = import.voucher.stands(&run, &own);
            ImportedRun { import, folder, run, report, standing }
        };
        let read = turn.work("an imported run", reading).await?;
        if read.standing == Standing::Broken { Err(Error::Broken("an imported run")) } else { Ok(read) }
    }

    async fn imported_folder(&self, keys: &Keys, import: &Imported) -> Result<Folder> {
        let ids: Vec<String> = (0..import.pieces()).map(|it| piece_id(&import.id, it)).collect();
        let mut pieces: Vec<Piece> = Vec::with_capacity(ids.len());
        if !ids.is_empty() {
            pieces.extend(self.reader(keys).get_many::<Piece>(&ids).await?.into_iter().map(|it| it.record));
        }
        pieces.sort_by_key(|it| it.number);
        import.folder(&pieces).ok_or(Error::Broken("an imported run"))
    }

    /// The files of an imported run, as they came.
    pub(in crate::service) async fn files_of_import(&self, thread: &ThreadId) -> Result<Vec<(String, Vec<u8>)>> {
        let entries = self.imported_run(thread).await?.folder.entries;
        let bytes = |(name, content)| match content {
            Content::Bytes(bytes) => Ok((name, bytes)),
            Content::TooLong | Content::NotAFile => Err(Error::Broken("an imported run")),
        };
        entries.into_iter().map(bytes).collect()
    }

    /// Imported runs, the last first.
    pub async fn imported_runs(&self, after: Option<&Older>, limit: u32) -> Result<(Vec<Imported>, Option<Older>)> {
        let keys = self.keys()?;
        let page = self.reader(&keys).list::<Imported>(Filter::Latest, after.map(Older::cursor), limit).await?;
        let runs: Vec<Imported> = page.into_iter().map(|it| it.record).collect();
        let last = runs.last().filter(|_| runs.len() == limit as usize);
        let next = last.map(|it| Older::at(it.at, it.id.as_str()));
        Ok((runs, next))
    }

    /// What to say of a thread that is not there: it may be a run that was imported.
    pub(in crate::service) async fn no_thread(&self, keys: &Keys, thread: &ThreadId) -> Error {
        let kept: Result<Option<Stored<Imported>>> = match imported::is_name(thread) {
            true => self.fetch(keys, thread.as_str()).await,
            false => Ok(None),
        };
        match kept {
            Ok(Some(_)) => Error::Imported,
            Ok(None) => Error::NotFound("thread"),
            Err(error) => error,
        }
    }
}
