//! Records: the typed content of rows, and reading them.

use std::any::Any;
use std::sync::Arc;

use countersign_domain::keys::RowKey;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::label::Labels;
use super::row::{Facets, Seal, SealedRow, Table};
use super::{Cursor, Direction, LIST_ROWS_MAX, RowFilter, Store, StoreError};

/// The initial buffer size. The content of most rows fits without a reallocation.
const BODY_BYTES: usize = 2 * 1024;

/// The content of rows of one table.
pub trait Record: Serialize + DeserializeOwned + Clone + Send + Sync + 'static {
    const TABLE: Table;

    /// Whether decisions read it so often that it is cached.
    const REMEMBERED: bool = false;

    fn id(&self) -> String;

    /// Returns the lookup columns. They are derived from the content, so a row cannot be found under values that its
    /// content does not have.
    fn facets(&self) -> Facets;

    /// Returns the search labels, for tables with [`Table::is_labelled`].
    fn labels(&self) -> Labels {
        Labels::default()
    }

    /// Returns the content as a sealed row of a revision.
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
    /// The revision at the time of the read.
    pub revision: i64,
    /// The seal at the time of the read. A change that relies on the record compares it.
    pub seal: Seal,
}

/// A cached record as it was read or written, of its table's type.
#[derive(Clone, Debug)]
pub struct CachedRecord {
    pub table: Table,
    pub id: String,
    pub bytes: usize,
    /// A [`Stored`] of the table's record type.
    pub stored: Arc<dyn Any + Send + Sync>,
}

impl CachedRecord {
    /// Returns the cached form, if this type is cached.
    pub fn of<R: Record>(row: &SealedRow, record: &R) -> Option<Self> {
        R::REMEMBERED.then(|| {
            let stored = Stored { record: record.clone(), revision: row.revision, seal: row.mac.clone() };
            Self { table: row.table, id: row.id.clone(), bytes: row.body.len(), stored: Arc::new(stored) }
        })
    }
}

/// Opens a row. It checks the seal, the form, and that id and lookup columns match the content.
pub fn open<R: Record>(key: &RowKey, row: &SealedRow) -> Result<Stored<R>, StoreError> {
    let record: R = serde_json::from_str(row.open(key)?).map_err(|_| StoreError::Unreadable(R::TABLE.name()))?;
    // The seal covers the row as it was written. This check detects a writer that set other lookup columns.
    if record.id() != row.id || record.facets() != row.facets {
        return Err(StoreError::Unreadable(R::TABLE.name()));
    }
    Ok(Stored { record, revision: row.revision, seal: row.mac.clone() })
}

/// Reads records through any store.
#[derive(Clone, Copy)]
pub struct RecordReader<'a> {
    pub store: &'a dyn Store,
    /// The key for the check of seals.
    pub key: &'a RowKey,
}

/// How far a list is read. Rows that a caller can add must not fill the memory.
#[derive(Clone, Copy, Debug)]
pub struct ListBounds {
    pub page_rows: u32,
    pub pages_max: usize,
}

impl ListBounds {
    /// Bounds by pages of full length.
    pub const fn pages(pages_max: usize) -> Self {
        Self { page_rows: LIST_ROWS_MAX, pages_max }
    }
}

/// The selected items of a list.
#[derive(Debug)]
pub struct BoundedList<T> {
    pub items: Vec<T>,
    /// Whether the whole list was read.
    pub is_complete: bool,
}

impl RecordReader<'_> {
    /// Returns a record by its id.
    pub async fn get<R: Record>(&self, id: &str) -> Result<Option<Stored<R>>, StoreError> {
        let row = self.store.get(R::TABLE, id).await?;
        row.map(|row| self.opened(&row, id)).transpose()
    }

    /// Opens a row that was requested by id, and checks that it has this id.
    pub fn opened<R: Record>(&self, row: &SealedRow, id: &str) -> Result<Stored<R>, StoreError> {
        self.named(row, |it| it.id == id)
    }

    /// Returns a record by its alias.
    pub async fn get_by_alias<R: Record>(&self, alias: &str) -> Result<Option<Stored<R>>, StoreError> {
        let row = self.store.get_by_alias(R::TABLE, alias).await?;
        row.map(|row| self.named(&row, |it| it.facets.alias.as_deref() == Some(alias))).transpose()
    }

    /// Returns the existing records of some ids.
    pub async fn get_many<R: Record>(&self, ids: &[String]) -> Result<Vec<Stored<R>>, StoreError> {
        let rows = self.store.get_many(R::TABLE, ids).await?;
        rows.iter().map(|row| self.named(row, |it| ids.contains(&it.id))).collect()
    }

    /// Returns at most `limit` records after the cursor.
    pub async fn list<R: Record>(
        &self,
        filter: RowFilter<'_>,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Vec<Stored<R>>, StoreError> {
        let rows = self.store.list(R::TABLE, filter, after, limit).await?;
        rows.iter().map(|row| open(self.key, row)).collect()
    }

    /// Returns what `pick` selects of the records after the cursor. The list is read page by page up to its bounds.
    pub async fn select<R: Record, T>(
        &self,
        filter: RowFilter<'_>,
        mut after: Option<Cursor>,
        bounds: ListBounds,
        mut pick: impl FnMut(Stored<R>) -> Option<T>,
    ) -> Result<BoundedList<T>, StoreError> {
        let mut items = Vec::new();
        for _ in 0..bounds.pages_max {
            let page = self.list::<R>(filter, after.as_ref(), bounds.page_rows).await?;
            let is_last = page.len() < bounds.page_rows as usize;
            // The cursor follows the last row, so that new rows cause neither gaps nor repetitions.
            after = page.last().map(|it| Cursor { due: it.record.facets().due, id: it.record.id() });
            items.extend(page.into_iter().filter_map(&mut pick));
            if is_last {
                return Ok(BoundedList { items, is_complete: true });
            }
        }
        Ok(BoundedList { items, is_complete: false })
    }

    /// Returns at most `limit` records with a label after the cursor in that direction, and the cursor of the next
    /// page. Records that do not have the label are skipped.
    pub async fn labelled<R: Record>(
        &self,
        word: &str,
        direction: Direction,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<(Vec<Stored<R>>, Option<Cursor>), StoreError> {
        let found = self.store.labelled(R::TABLE, word, direction, after, limit).await?;
        // The cursor follows the rows that were read, including skipped ones, so a page never repeats.
        let last = found.last().filter(|_| found.len() >= limit as usize);
        let next = last.map(|it| Cursor { due: it.due, id: it.row.id.clone() });
        let mut records = Vec::with_capacity(found.len());
        for it in &found {
            let stored = open::<R>(self.key, &it.row)?;
            // Labels have no seal, so the sealed record decides.
            if stored.record.labels().bear(word, it.due) {
                records.push(stored);
            } else {
                tracing::error!(
                    table = R::TABLE.name(),
                    id = it.row.id,
                    word,
                    "a row does not have the label under which it was found; run an audit"
                );
            }
        }
        Ok((records, next))
    }

    /// Returns the first records whose alias has a prefix.
    pub async fn by_alias_prefix<R: Record>(&self, prefix: &str, limit: u32) -> Result<Vec<Stored<R>>, StoreError> {
        let rows = self.store.by_alias_prefix(R::TABLE, prefix, limit).await?;
        let begins = |row: &SealedRow| row.facets.alias.as_ref().is_some_and(|it| it.starts_with(prefix));
        rows.iter().map(|row| self.named(row, begins)).collect()
    }

    /// Returns the last record of an owner.
    pub async fn last_of<R: Record>(&self, owner: &str) -> Result<Option<Stored<R>>, StoreError> {
        let row = self.store.last_of(R::TABLE, owner).await?;
        row.map(|row| self.named(&row, |it| it.facets.owner == owner)).transpose()
    }

    fn named<R: Record>(&self, row: &SealedRow, asked: impl Fn(&SealedRow) -> bool) -> Result<Stored<R>, StoreError> {
        // The database could return another sealed row than the requested one.
        if asked(row) { open(self.key, row) } else { Err(StoreError::Unreadable(R::TABLE.name())) }
    }
}
