//! Putting what was archived back into the database, byte for byte; by whoever runs commands with the keyring.

use serde_json::Value;

use super::archiving::told;
use super::error::{Error, Result};
use super::{Service, recorder, retrying};
use crate::domain::archive::{Archive, Content, Kept};
use crate::domain::event::EventType;
use crate::domain::id::{PrincipalId, ThreadId};
use crate::domain::keys::Keys;
use crate::domain::transition::Transition;
use crate::store::change::Draft;
use crate::store::record::{Record as _, Stored};
use crate::store::{Filter, LIST_ROWS_MAX};

impl Service {
    /// Puts back what archives hold of a thread, the last first; what is erased is not there to be put back. Returns how
    /// many archives that were.
    pub async fn restore_archives(&self, by: &PrincipalId, thread: &ThreadId) -> Result<usize> {
        let mut done = 0;
        while retrying!(self.restore_last(by, thread))? {
            done += 1;
        }
        Ok(done)
    }

    async fn restore_last(&self, by: &PrincipalId, thread: &ThreadId) -> Result<bool> {
        let (keys, now) = (self.keys()?, self.now());
        let stored = self.thread(&keys, thread).await?;
        let last = self.reader(&keys).last_of::<Archive>(thread.as_str()).await?;
        let Some(archive) = last.filter(|it| matches!(it.record.kept, Kept::File {})) else { return Ok(false) };
        let content = self.content(&archive.record).await?;
        let mut draft = Draft::new(keys.row(), now);
        for (slim, whole) in self.archived_rows(&keys, &content).await? {
            draft.replace(&slim, &whole)?;
        }
        for state in &content.states {
            draft.insert(state)?;
        }
        let mut record = stored.record.clone();
        record.gone.archived = archive.record.from;
        let mut data = told(&archive.record, archive.record.policy);
        data["by"] = Value::from(by.as_str());
        recorder::in_thread(&mut draft, &mut record, now, EventType::ThreadRestored, data)?;
        draft.replace(&stored, &record)?;
        draft.remove(&archive);
        self.commit(draft.finish()).await?;
        let (archives, gone) = (self.archives.clone().ok_or(Error::NoArchives)?, archive.record);
        let removed = tokio::task::spawn_blocking(move || archives.remove(&gone)).await;
        removed.map_err(std::io::Error::other).flatten().map_err(Error::Unwritten)?;
        Ok(true)
    }

    /// The transitions of an archive as they stand in the database, each with what it was.
    async fn archived_rows(&self, keys: &Keys, content: &Content) -> Result<Vec<(Stored<Transition>, Transition)>> {
        let ids: Vec<String> = content.transitions.iter().map(|it| it.id()).collect();
        let mut pairs = Vec::with_capacity(ids.len());
        for chunk in ids.chunks(LIST_ROWS_MAX as usize) {
            for slim in self.reader(keys).get_many::<Transition>(chunk).await? {
                let whole = content.transitions.iter().find(|it| it.without_values() == slim.record);
                let whole = whole.ok_or(Error::Broken("an archive"))?.clone();
                pairs.push((slim, whole));
            }
        }
        if pairs.len() == ids.len() { Ok(pairs) } else { Err(Error::Broken("an archive")) }
    }

    /// Archives, in the order of threads and versions, after a row.
    pub async fn archives_listed(&self, of: Option<&ThreadId>) -> Result<Vec<Archive>> {
        let keys = self.keys()?;
        let filter = of.map_or(Filter::All, |it| Filter::Owner(it.as_str()));
        let mut found: Vec<Archive> = Vec::new();
        loop {
            let after = found.last().map(|it| crate::store::Cursor { due: 0, id: it.id() });
            let page = self.reader(&keys).list::<Archive>(filter, after.as_ref(), LIST_ROWS_MAX).await?;
            let full = page.len() == LIST_ROWS_MAX as usize;
            found.extend(page.into_iter().map(|it| it.record));
            if !full {
                return Ok(found);
            }
        }
    }
}
