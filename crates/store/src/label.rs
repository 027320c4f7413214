//! Labels: search terms of rows. One table has the labels of all rows, one per line.
//!
//! A record derives its labels from its content. The change that writes the record also writes its labels. Labels have
//! no seal, so an attacker with database access can add or remove them. The gateway does not trust them: it opens each
//! found row by its seal and checks that the row has the label. An audit finds missing labels.

use std::collections::BTreeSet;

use super::row::{SealedRow, Table};

/// The labels of a record.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Labels {
    /// The sort key of lists by these labels, in milliseconds.
    pub due: i64,
    /// Short texts. They must contain no secret, because the database stores them in clear text.
    pub words: BTreeSet<String>,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Label {
    /// The name of the row's table.
    pub kept_in: String,
    pub word: String,
    /// The sort key of the row.
    pub due: i64,
    pub id: String,
}

/// A row found by a label.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LabelledRow {
    /// The label's sort key. It is not verified against the row yet.
    pub due: i64,
    pub row: SealedRow,
}

/// A change of one label.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LabelChange {
    /// Adds the label if it is not there yet.
    Put(Label),
    Remove(Label),
}

impl Labels {
    /// Returns the labels for a row.
    pub fn on(&self, table: Table, id: &str) -> BTreeSet<Label> {
        let label = |word: &String| Label {
            kept_in: table.name().to_owned(),
            word: word.clone(),
            due: self.due,
            id: id.to_owned(),
        };
        self.words.iter().map(label).collect()
    }

    /// Checks that the record has this label.
    pub fn bear(&self, word: &str, due: i64) -> bool {
        self.due == due && self.words.contains(word)
    }
}

impl Label {
    pub(super) const fn first() -> Self {
        Self { kept_in: String::new(), word: String::new(), due: i64::MIN, id: String::new() }
    }
}

impl LabelChange {
    /// Returns the label.
    pub const fn label(&self) -> &Label {
        match self {
            Self::Put(label) | Self::Remove(label) => label,
        }
    }
}

/// Returns the changes from one set of labels to another.
pub fn between(before: &BTreeSet<Label>, after: &BTreeSet<Label>) -> Vec<LabelChange> {
    let gone = before.difference(after).cloned().map(LabelChange::Remove);
    let new = after.difference(before).cloned().map(LabelChange::Put);
    gone.chain(new).collect()
}
