//! Labels: every row bears all of its own, and nothing else does.

use std::collections::BTreeMap;

use super::{Audit, Finding};
use crate::domain::review::Hold;
use crate::service::labels::settled;
use crate::store::label::Label;
use crate::store::record::Record;
use crate::store::{LIST_ROWS_MAX, Store, StoreError};

/// What labels stand in.
const LABELS: &str = "labels";

impl Audit<'_> {
    /// Goes through all labels in their order, and counts those of each row: none is there twice.
    pub(super) async fn check_labels(&mut self, store: &dyn Store) -> Result<(), StoreError> {
        let mut borne: BTreeMap<String, usize> = BTreeMap::new();
        let (mut settled_says_so, mut after): (bool, Option<Label>) = (false, None);
        loop {
            let page = store.labels(after.as_ref(), LIST_ROWS_MAX).await?;
            let Some(last) = page.last() else { break };
            after = Some(last.clone());
            for label in &page {
                if *label == settled() {
                    settled_says_so = true;
                } else if self.is_borne(label) {
                    *borne.entry(label.id.clone()).or_insert(0) += 1;
                } else {
                    self.note_label(&label.id, format!("no row bears the label {:?} there", label.word));
                }
            }
        }
        if !settled_says_so {
            self.note_label(
                Hold::TABLE.name(),
                "its rows were not labelled yet; starting the gateway does it".to_owned(),
            );
        }
        for (id, hold) in &self.all.holds {
            let expected = hold.record.labels().words.len();
            if settled_says_so && borne.get(id).copied().unwrap_or_default() != expected {
                self.note_label(id, "a label is missing: a search does not find the row".to_owned());
            }
        }
        Ok(())
    }

    fn is_borne(&self, label: &Label) -> bool {
        let hold = (label.kept_in == Hold::TABLE.name()).then(|| self.all.holds.get(&label.id)).flatten();
        hold.is_some_and(|it| it.record.labels().bear(&label.word, label.due))
    }

    fn note_label(&mut self, id: &str, finding: String) {
        self.findings.push(Finding { table: LABELS, id: id.to_owned(), finding });
    }
}
