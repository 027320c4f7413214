//! Labels: what people find a row by, besides its names. One table for all, and each label a line in it.
//!
//! A record says which labels it bears, from its content. The change that writes the record puts and removes them,
//! so no writer has to think of them. They bear no seal: whoever edits them can hide a row from a search or put a
//! row where it does not belong, and neither is believed. A row that was found is opened by its seal and must bear
//! the label; that none is missing is for an audit.

use std::collections::BTreeSet;

use super::row::{SealedRow, Table};

/// What a record is found by.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Labels {
    /// The moment in milliseconds that lists by these labels are ordered by.
    pub due: i64,
    /// Each a short text. No secret: whoever reads the database reads them.
    pub words: BTreeSet<String>,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Label {
    /// The name of the row's table.
    pub kept_in: String,
    pub word: String,
    /// The row's place in the list.
    pub due: i64,
    pub id: String,
}

/// A row that a label was put on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LabelledRow {
    /// The label's due moment; the row need not bear it.
    pub due: i64,
    pub row: SealedRow,
}

/// What a change does to labels.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LabelChange {
    /// It is there afterwards, whether or not it was before.
    Put(Label),
    Remove(Label),
}

impl Labels {
    /// Each of them, on the row of that id.
    pub fn on(&self, table: Table, id: &str) -> BTreeSet<Label> {
        let label = |word: &String| Label {
            kept_in: table.name().to_owned(),
            word: word.clone(),
            due: self.due,
            id: id.to_owned(),
        };
        self.words.iter().map(label).collect()
    }

    /// Whether a list by that word has the record there.
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
    /// The label that it is about.
    pub const fn label(&self) -> &Label {
        match self {
            Self::Put(label) | Self::Remove(label) => label,
        }
    }
}

/// What makes one set of labels into the other.
pub fn between(before: &BTreeSet<Label>, after: &BTreeSet<Label>) -> Vec<LabelChange> {
    let gone = before.difference(after).cloned().map(LabelChange::Remove);
    let new = after.difference(before).cloned().map(LabelChange::Put);
    gone.chain(new).collect()
}
