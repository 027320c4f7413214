//! What is no longer in the database: states and transitions' values, read from archives when somebody asks for them.
//! A file is believed as far as its hash stands in a sealed row; what it says is then committed to its signed root again, as if it
//! had come from the database.

use std::collections::HashMap;
use std::ops::RangeInclusive;

use super::Service;
use super::error::{Error, Result};
use crate::archives::Unusable;
use crate::domain::archive::{Archive, Content, Kept};
use crate::domain::chain::hash::Digest;
use crate::domain::chain::statement::Statement;
use crate::domain::id::ThreadId;
use crate::domain::keys::Keys;
use crate::domain::transition::{StateRow, Transition, Values};
use crate::store::record::Stored;
use crate::store::records::version_id;
use crate::store::{Cursor, Filter};

const BROKEN: Error = Error::Broken("an archive");

/// The transition that was archived as this one.
fn with_values(content: &Content, transition: &Transition) -> Result<Transition> {
    let whole = content.transitions.iter().find(|it| it.digest == transition.digest).ok_or(BROKEN)?;
    if whole.without_values() == *transition { Ok(whole.clone()) } else { Err(BROKEN) }
}

impl Service {
    /// Adds to the rows of these versions those that archives have. Whatever is in neither is not there.
    pub(super) async fn with_archived(
        &self,
        keys: &Keys,
        thread: &ThreadId,
        of: RangeInclusive<u64>,
        mut rows: Vec<StateRow>,
    ) -> Result<Vec<StateRow>> {
        let mut next = *of.start();
        while next <= *of.end() && !rows.iter().any(|it| it.version == next) {
            let Some(archive) = self.archive_over(keys, thread, next).await? else { break };
            let content = self.content(&archive.record).await?;
            next = content.versions().end().saturating_add(1);
            rows.extend(content.states.into_iter().filter(|it| of.contains(&it.version)));
        }
        Ok(rows)
    }

    /// The transition with its values, wherever they are.
    pub(super) async fn whole(&self, keys: &Keys, transition: Transition) -> Result<Transition> {
        if transition.values == Values::Here {
            return Ok(transition);
        }
        let content = self.content_over(keys, &transition.statement).await?;
        with_values(&content, &transition)
    }

    /// Gives these transitions their values, each archive read once. Those that are erased stay without.
    pub(super) async fn fill_in(&self, keys: &Keys, transitions: &mut HashMap<Digest, Transition>) -> Result<()> {
        let mut read: Vec<Content> = Vec::new();
        for transition in transitions.values_mut().filter(|it| it.values == Values::Archived) {
            let statement = &transition.statement;
            let has = |it: &&Content| *it.thread() == statement.thread && it.versions().contains(&statement.version);
            if let Some(content) = read.iter().find(has) {
                *transition = with_values(content, transition)?;
                continue;
            }
            match self.content_over(keys, statement).await {
                Ok(content) => {
                    *transition = with_values(&content, transition)?;
                    read.push(content);
                }
                Err(Error::Erased) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    async fn content_over(&self, keys: &Keys, statement: &Statement) -> Result<Content> {
        let archive = self.archive_over(keys, &statement.thread, statement.version).await?.ok_or(BROKEN)?;
        self.content(&archive.record).await
    }

    /// The archive that a version is in, if it is in one.
    pub(super) async fn archive_over(
        &self,
        keys: &Keys,
        thread: &ThreadId,
        version: u64,
    ) -> Result<Option<Stored<Archive>>> {
        // Archives are called by their last version, so the first that does not end before this one has it.
        let before = version.checked_sub(1).map(|it| Cursor { due: 0, id: version_id(thread, it) });
        let found = self.reader(keys).list::<Archive>(Filter::Owner(thread.as_str()), before.as_ref(), 1).await?;
        Ok(found.into_iter().next().filter(|it| (it.record.from..=it.record.to).contains(&version)))
    }

    /// What an archive holds.
    pub(super) async fn content(&self, archive: &Archive) -> Result<Content> {
        if !matches!(archive.kept, Kept::File {}) {
            return Err(Error::Erased);
        }
        let (archives, archive) = (self.archives.clone().ok_or(Error::NoArchives)?, archive.clone());
        let read = move || {
            let text = archives.read(&archive)?;
            let content = Content::read(&text).filter(|it| it.is_of(&archive));
            content.ok_or_else(|| Unusable::Damaged(archives.path(&archive), "it is no archive of these versions"))
        };
        tokio::task::spawn_blocking(read).await.map_err(|_| BROKEN)?.map_err(Error::Archive)
    }
}
