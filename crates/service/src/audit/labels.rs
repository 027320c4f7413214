//! Checks the search labels: each row has exactly its own.

use std::collections::BTreeMap;

use countersign_domain::reviews::Hold;
use countersign_domain::threads::thread::Thread;
use countersign_store::label::Label;
use countersign_store::record::Record;
use countersign_store::row::Table;

use super::{AuditFinding, AuditRun};
use crate::platform::label_backfill::settled;

const LABELS: &str = "labels";

impl AuditRun<'_> {
    /// Checks all labels and counts those of each row. No label may be there twice.
    pub(super) fn check_labels(&mut self) {
        let all = self.all;
        let mut borne: BTreeMap<&str, usize> = BTreeMap::new();
        let mut missing: Vec<String> = Vec::new();
        let mut settled_says_so = false;
        for label in &all.labels {
            // This label marks that all older rows have labels.
            if *label == settled() {
                settled_says_so = true;
            } else if self.is_borne(label) {
                *borne.entry(&label.id).or_insert(0) += 1;
            } else {
                self.note_label(&label.id, format!("the label {:?} does not belong to this row", label.word));
            }
        }
        if !settled_says_so {
            self.note_label(
                Hold::TABLE.name(),
                "the rows have no labels yet: start the gateway once to add them".to_owned(),
            );
        }
        let holds = self.all.holds.iter().map(|(id, it)| (id, it.record.labels().words.len()));
        let threads = self.all.threads.iter().map(|(id, it)| (id, it.record.labels().words.len()));
        for (id, expected) in holds.chain(threads) {
            // Before the labels were added, missing ones are expected.
            if settled_says_so && borne.get(id.as_str()).copied().unwrap_or_default() != expected {
                missing.push(id.clone());
            }
        }
        for id in missing {
            self.note_label(&id, "a label is missing, so searches do not find the row".to_owned());
        }
    }

    fn is_borne(&self, label: &Label) -> bool {
        let of = |table: Table| label.kept_in == table.name();
        let hold = of(Hold::TABLE).then(|| self.all.holds.get(&label.id)).flatten().map(|it| it.record.labels());
        let thread = of(Thread::TABLE).then(|| self.all.threads.get(&label.id)).flatten().map(|it| it.record.labels());
        hold.or(thread).is_some_and(|it| it.bear(&label.word, label.due))
    }

    fn note_label(&mut self, id: &str, finding: String) {
        self.findings.push(AuditFinding { table: LABELS, id: id.to_owned(), finding });
    }
}
