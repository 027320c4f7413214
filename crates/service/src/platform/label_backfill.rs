//! Adds labels to rows that an older version stored without them.

use countersign_domain::keys::Keys;
use countersign_domain::reviews::Hold;
use countersign_domain::threads::thread::Thread;
use countersign_store::change::Draft;
use countersign_store::label::{Label, LabelChange};
use countersign_store::record::{Record, Stored};
use countersign_store::{Cursor, RowFilter, Store, StoreError};

use super::retry::retrying;
use crate::error::Result;
use crate::platform::core::Core;

/// The edition of the labels that records compute. A change of the labels increments it, and the next start
/// labels every row again.
const EDITION: i64 = 2;

/// Rows in one commit. A row has a few dozen labels at most, and the size of a commit is limited.
const ROWS_AT_ONCE: u32 = 50;

/// Returns the marker that all rows have labels of this edition. The migration that creates the table inserts
/// it if there are no rows.
pub(crate) fn settled() -> Label {
    Label { kept_in: "labels".to_owned(), word: "edition".to_owned(), due: EDITION, id: Hold::TABLE.name().to_owned() }
}

pub(crate) async fn are_settled(store: &dyn Store) -> std::result::Result<bool, StoreError> {
    let settled = settled();
    let before = Label { id: String::new(), ..settled.clone() };
    Ok(store.labels(Some(&before), 1).await?.first() == Some(&settled))
}

impl Core {
    /// Labels all rows once. Another gateway may do the same concurrently, because the result is the same.
    pub(crate) async fn settle_labels(&self) -> Result<()> {
        if are_settled(&*self.store).await? {
            return Ok(());
        }
        self.label_all::<Hold>().await?;
        self.label_all::<Thread>().await?;
        // The marker is written last, so that an interrupted run starts again.
        let keys = self.keys()?;
        let mut draft = Draft::new(keys.row(), self.now());
        draft.set(LabelChange::Put(settled()));
        // Markers of older editions would otherwise stay forever.
        for before in 1..EDITION {
            draft.set(LabelChange::Remove(Label { due: before, ..settled() }));
        }
        self.commit(draft.finish()).await
    }

    async fn label_all<R: Record>(&self) -> Result<()> {
        let keys = self.keys()?;
        let mut after: Option<Cursor> = None;
        loop {
            let next = retrying!(self.label_page::<R>(&keys, after.as_ref()))?;
            if next.is_none() {
                return Ok(());
            }
            after = next;
        }
    }

    async fn label_page<R: Record>(&self, keys: &Keys, after: Option<&Cursor>) -> Result<Option<Cursor>> {
        let rows = self.reader(keys).list::<R>(RowFilter::All, after, ROWS_AT_ONCE).await?;
        let mut draft = Draft::new(keys.row(), self.now());
        let bearing: Vec<&Stored<R>> = rows.iter().filter(|it| !it.record.labels().words.is_empty()).collect();
        for row in &bearing {
            draft.label(row);
        }
        if !bearing.is_empty() {
            self.commit(draft.finish()).await?;
        }
        Ok(rows.last().map(|it| Cursor { due: it.record.facets().due, id: it.record.id() }))
    }
}
