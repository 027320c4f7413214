//! Records: typed content of rows, and how they are fetched.

use std::any::Any;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::domain::keys::RowKey;

use super::label::Labels;
use super::row::{Facets, Seal, SealedRow, Table};
use super::{Cursor, Direction, RowFilter, Store, StoreError};

/// What most rows' content fits into, so that writing it grows nothing.
const BODY_BYTES: usize = 2 * 1024;

/// Content that is kept as rows of one table.
pub trait Record: Serialize + DeserializeOwned + Clone + Send + Sync + 'static {
    const TABLE: Table;

    /// Whether decisions start from it so often that it is worth remembering.
    const REMEMBERED: bool = false;

    fn id(&self) -> String;

    /// What it is looked up by; derived from the content, so that a row cannot say one thing and be found as another.
    fn facets(&self) -> Facets;

    /// What people find it by; only where [`Table::is_labelled`].
    fn labels(&self) -> Labels {
        Labels::default()
    }

    /// The content as a sealed row of that revision.
    fn seal(&self, key: &RowKey, revision: i64) -> Result<SealedRow, StoreError> {
        let unreadable = |_| StoreError::Unreadable(Self::TABLE.name());
        let mut body = Vec::with_capacity(BODY_BYTES);
        serde_json::to_writer(&mut body, self).map_err(unreadable)?;
        let body = String::from_utf8(body).map_err(|_| StoreError::Unreadable(Self::TABLE.name()))?;
        Ok(SealedRow::seal(key, Self::TABLE, self.id(), self.facets(), revision, body))
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored<R> {
    pub record: R,
    /// The revision it stood at.
    pub revision: i64,
    /// The seal it stood with: what a change that relies on it is checked by.
    pub seal: Seal,
}

/// A record as it was read or written, worth remembering: of the type that its table keeps.
#[derive(Clone, Debug)]
pub struct CachedRecord {
    pub table: Table,
    pub id: String,
    pub bytes: usize,
    /// A `Stored` of the table's record.
    pub stored: Arc<dyn Any + Send + Sync>,
}

impl CachedRecord {
    /// Of a row that has this content.
    pub fn of<R: Record>(row: &SealedRow, record: &R) -> Option<Self> {
        R::REMEMBERED.then(|| {
            let stored = Stored { record: record.clone(), revision: row.revision, seal: row.mac.clone() };
            Self { table: row.table, id: row.id.clone(), bytes: row.body.len(), stored: Arc::new(stored) }
        })
    }
}

/// Opens a row: its seal, its shape, and that what it is found by is what it says.
pub fn open<R: Record>(key: &RowKey, row: &SealedRow) -> Result<Stored<R>, StoreError> {
    let record: R = serde_json::from_str(row.open(key)?).map_err(|_| StoreError::Unreadable(R::TABLE.name()))?;
    if record.id() != row.id || record.facets() != row.facets {
        return Err(StoreError::Unreadable(R::TABLE.name()));
    }
    Ok(Stored { record, revision: row.revision, seal: row.mac.clone() })
}

/// Reads records through any store.
#[derive(Clone, Copy)]
pub struct RecordReader<'a> {
    pub store: &'a dyn Store,
    /// What their seals are checked with.
    pub key: &'a RowKey,
}

impl RecordReader<'_> {
    /// The record of that id, if there is one.
    pub async fn get<R: Record>(&self, id: &str) -> Result<Option<Stored<R>>, StoreError> {
        let row = self.store.get(R::TABLE, id).await?;
        row.map(|row| self.opened(&row, id)).transpose()
    }

    /// A row that was asked for by its id, opened.
    pub fn opened<R: Record>(&self, row: &SealedRow, id: &str) -> Result<Stored<R>, StoreError> {
        self.named(row, |it| it.id == id)
    }

    /// The record of that alias, if there is one.
    pub async fn get_by_alias<R: Record>(&self, alias: &str) -> Result<Option<Stored<R>>, StoreError> {
        let row = self.store.get_by_alias(R::TABLE, alias).await?;
        row.map(|row| self.named(&row, |it| it.facets.alias.as_deref() == Some(alias))).transpose()
    }

    /// The records of those ids that exist.
    pub async fn get_many<R: Record>(&self, ids: &[String]) -> Result<Vec<Stored<R>>, StoreError> {
        let rows = self.store.get_many(R::TABLE, ids).await?;
        rows.iter().map(|row| self.named(row, |it| ids.contains(&it.id))).collect()
    }

    /// At most `limit` records after the cursor.
    pub async fn list<R: Record>(
        &self,
        filter: RowFilter<'_>,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Vec<Stored<R>>, StoreError> {
        let rows = self.store.list(R::TABLE, filter, after, limit).await?;
        rows.iter().map(|row| open(self.key, row)).collect()
    }

    /// At most `limit` records that bear the label, after the cursor in that direction, and where the list goes on: what
    /// does not bear it is passed over.
    pub async fn labelled<R: Record>(
        &self,
        word: &str,
        direction: Direction,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<(Vec<Stored<R>>, Option<Cursor>), StoreError> {
        let found = self.store.labelled(R::TABLE, word, direction, after, limit).await?;
        let last = found.last().filter(|_| found.len() >= limit as usize);
        let next = last.map(|it| Cursor { due: it.due, id: it.row.id.clone() });
        let mut records = Vec::with_capacity(found.len());
        for it in &found {
            let stored = open::<R>(self.key, &it.row)?;
            if stored.record.labels().bear(word, it.due) {
                records.push(stored);
            } else {
                tracing::error!(
                    table = R::TABLE.name(),
                    id = it.row.id,
                    word,
                    "a label is not the row's own; run an audit"
                );
            }
        }
        Ok((records, next))
    }

    /// The first records whose alias begins so.
    pub async fn by_alias_prefix<R: Record>(&self, prefix: &str, limit: u32) -> Result<Vec<Stored<R>>, StoreError> {
        let rows = self.store.by_alias_prefix(R::TABLE, prefix, limit).await?;
        let begins = |row: &SealedRow| row.facets.alias.as_ref().is_some_and(|it| it.starts_with(prefix));
        rows.iter().map(|row| self.named(row, begins)).collect()
    }

    /// The last record of an owner.
    pub async fn last_of<R: Record>(&self, owner: &str) -> Result<Option<Stored<R>>, StoreError> {
        let row = self.store.last_of(R::TABLE, owner).await?;
        row.map(|row| self.named(&row, |it| it.facets.owner == owner)).transpose()
    }

    fn named<R: Record>(&self, row: &SealedRow, asked: impl Fn(&SealedRow) -> bool) -> Result<Stored<R>, StoreError> {
        if asked(row) { open(self.key, row) } else { Err(StoreError::Unreadable(R::TABLE.name())) }
    }
}
