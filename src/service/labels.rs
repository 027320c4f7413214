//! Labels on rows of before there were labels.

use super::error::Result;
use super::{Service, retrying};
use crate::domain::keys::Keys;
use crate::domain::review::Hold;
use crate::store::change::Draft;
use crate::store::label::{Label, Labelling};
use crate::store::record::Record;
use crate::store::{Cursor, Filter, Store, StoreError};

/// Which labels records bear is said by the program. One that says otherwise counts on, and every row is labelled again
/// at the first start.
const EDITION: i64 = 1;

/// Rows that are labelled in one change: each bears a few dozen labels at most, and a change has a bound.
const ROWS_AT_ONCE: u32 = 50;

/// What stands among the labels once every row bears its own. The migration that makes the table puts it there if
/// there are no rows.
pub(super) fn settled() -> Label {
    Label { kept_in: "labels".to_owned(), word: "edition".to_owned(), due: EDITION, id: Hold::TABLE.name().to_owned() }
}

/// Whether it stands there.
pub(super) async fn are_settled(store: &dyn Store) -> std::result::Result<bool, StoreError> {
    let settled = settled();
    let before = Label { id: String::new(), ..settled.clone() };
    Ok(store.labels(Some(&before), 1).await?.first() == Some(&settled))
}

impl Service {
    /// Labels what was kept before there were labels, once. Whoever starts beside this one does the same, and it
    /// comes to the same.
    pub(super) async fn settle_labels(&self) -> Result<()> {
        if are_settled(&*self.store).await? {
            return Ok(());
        }
        let keys = self.keys()?;
        let mut after: Option<Cursor> = None;
        loop {
            let next = retrying!(self.label_page(&keys, after.as_ref()))?;
            if next.is_none() {
                break;
            }
            after = next;
        }
        let mut draft = Draft::new(keys.row(), self.now());
        draft.set(Labelling::Put(settled()));
        draft.set(Labelling::Remove(Label { due: EDITION - 1, ..settled() }));
        self.commit(draft.finish()).await
    }

    async fn label_page(&self, keys: &Keys, after: Option<&Cursor>) -> Result<Option<Cursor>> {
        let holds = self.reader(keys).list::<Hold>(Filter::All, after, ROWS_AT_ONCE).await?;
        let mut draft = Draft::new(keys.row(), self.now());
        for hold in &holds {
            draft.label(hold);
        }
        let last = holds.last().map(|it| Cursor { due: it.record.facets().due, id: it.record.id() });
        if last.is_some() {
            self.commit(draft.finish()).await?;
        }
        Ok(last)
    }
}
