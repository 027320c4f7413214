//! A change: what a decision relied on and what it makes, applied wholly or not at all.

use std::collections::BTreeSet;

use crate::domain::keys::RowKey;
use crate::domain::primitives::time::Timestamp;

use super::StoreError;
use super::label::{self, Label, LabelChange};
use super::record::{CachedRecord, Record, Stored};
use super::row::{Facets, Seal, SealedRow, Table};

/// What must still be so when the change is applied.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Precondition {
    /// The row stands exactly as it was read: its seal covers all of it, its revision too.
    Unchanged {
        table: Table,
        id: String,
        /// The seal it was read with.
        seal: Seal,
    },
    /// By the database's clock, it is earlier than this.
    Before(Timestamp),
    /// By the database's clock, it is not earlier than this.
    NotBefore(Timestamp),
}

/// What of a row's facets a replacement changes, so that indexes are left alone where nothing does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FacetChange {
    Nothing,
    State,
    /// Its alias or owner, perhaps its state as well.
    Names,
}

impl FacetChange {
    /// From one row's facets to the next one's.
    pub fn between(before: &Facets, after: &Facets) -> Self {
        if before.alias != after.alias || before.owner != after.owner {
            Self::Names
        } else if before.state != after.state || before.due != after.due {
            Self::State
        } else {
            Self::Nothing
        }
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RowWrite {
    /// A new row; its id and alias must be new.
    Insert(SealedRow),
    /// The row's next revision; it must stand exactly as it was read.
    Replace {
        row: SealedRow,
        /// The seal of the one before.
        over: Seal,
        /// Whether it is found by other names than the one before.
        moves: FacetChange,
    },
    /// The row goes; it must stand exactly as it was read. Only the outbox forgets.
    Remove {
        table: Table,
        id: String,
        /// The seal it was read with.
        seal: Seal,
    },
}

/// Everything one decision relies on and does.
#[derive(Clone, Debug)]
pub struct ChangeSet {
    /// When the gateway decided, by its own clock.
    pub decided_at: Timestamp,
    pub guards: Vec<Precondition>,
    pub writes: Vec<RowWrite>,
    /// What of the written rows' labels changes; in this order, after the rows.
    pub labels: Vec<LabelChange>,
}

/// Builds a change out of typed records.
pub struct Draft<'k> {
    key: &'k RowKey,
    drafted: PreparedChange,
}

/// A change, and the records that will stand once it is committed.
#[derive(Debug)]
pub struct PreparedChange {
    pub change: ChangeSet,
    /// What is worth remembering of it.
    pub known: Vec<CachedRecord>,
}

impl ChangeSet {
    /// The rows it relies on and writes.
    pub fn names(&self) -> impl Iterator<Item = (Table, &str)> {
        let relied = self.guards.iter().filter_map(|guard| match guard {
            Precondition::Unchanged { table, id, .. } => Some((*table, id.as_str())),
            Precondition::Before(_) | Precondition::NotBefore(_) => None,
        });
        relied.chain(self.writes.iter().map(RowWrite::name))
    }
}

fn labels_of<R: Record>(record: &R) -> BTreeSet<Label> {
    if R::TABLE.is_labelled() { record.labels().on(R::TABLE, &record.id()) } else { BTreeSet::new() }
}

impl<'k> Draft<'k> {
    /// An empty change, decided now.
    pub fn new(key: &'k RowKey, decided_at: Timestamp) -> Self {
        let change = ChangeSet { decided_at, guards: Vec::new(), writes: Vec::new(), labels: Vec::new() };
        Self { key, drafted: PreparedChange { change, known: Vec::new() } }
    }

    /// The decision relied on this record as it was read.
    pub fn require_unchanged<R: Record>(&mut self, stored: &Stored<R>) -> &mut Self {
        let guard = Precondition::Unchanged { table: R::TABLE, id: stored.record.id(), seal: stored.seal.clone() };
        if !self.drafted.change.guards.contains(&guard) {
            self.drafted.change.guards.push(guard);
        }
        self
    }

    /// Everything that another draft by the same key writes and relies on; this one says when it was decided.
    pub fn add(&mut self, other: Self) {
        let PreparedChange { change: ChangeSet { guards, writes, labels, .. }, known } = other.drafted;
        self.drafted.change.guards.extend(guards);
        self.drafted.change.writes.extend(writes);
        self.drafted.change.labels.extend(labels);
        self.drafted.known.extend(known);
    }

    /// The decision holds only until this moment.
    pub fn before(&mut self, moment: Timestamp) -> &mut Self {
        self.drafted.change.guards.push(Precondition::Before(moment));
        self
    }

    /// The decision holds only from this moment on.
    pub fn not_before(&mut self, moment: Timestamp) -> &mut Self {
        self.drafted.change.guards.push(Precondition::NotBefore(moment));
        self
    }

    /// A new record; the seal it will stand with.
    pub fn insert<R: Record>(&mut self, record: &R) -> Result<Seal, StoreError> {
        let row = record.seal(self.key, 1)?;
        self.drafted.known.extend(CachedRecord::of(&row, record));
        let seal = row.mac.clone();
        self.drafted.change.labels.extend(label::between(&BTreeSet::new(), &labels_of(record)));
        self.drafted.change.writes.push(RowWrite::Insert(row));
        Ok(seal)
    }

    /// A record in place of the one that was read.
    pub fn replace<R: Record>(&mut self, stored: &Stored<R>, record: &R) -> Result<(), StoreError> {
        self.put_over(stored, record).map(drop)
    }

    fn put_over<R: Record>(&mut self, stored: &Stored<R>, record: &R) -> Result<Seal, StoreError> {
        debug_assert_eq!(stored.record.id(), record.id(), "a record keeps its id");
        let row = record.seal(self.key, stored.revision + 1)?;
        let seal = row.mac.clone();
        let moves = FacetChange::between(&stored.record.facets(), &row.facets);
        self.drafted.known.extend(CachedRecord::of(&row, record));
        self.drafted.change.labels.extend(label::between(&labels_of(&stored.record), &labels_of(record)));
        self.drafted.change.writes.push(RowWrite::Replace { row, over: stored.seal.clone(), moves });
        Ok(seal)
    }

    /// The same, and the record as it is read once the change is committed.
    pub fn replaced<R: Record>(&mut self, stored: &Stored<R>, record: R) -> Result<Stored<R>, StoreError> {
        let seal = self.put_over(stored, &record)?;
        Ok(Stored { record, revision: stored.revision + 1, seal })
    }

    /// The record as it was read bears its labels, whatever was put on it before.
    pub fn label<R: Record>(&mut self, stored: &Stored<R>) -> &mut Self {
        self.drafted.change.labels.extend(label::between(&BTreeSet::new(), &labels_of(&stored.record)));
        self.require_unchanged(stored)
    }

    /// One label, whatever row it is on.
    pub fn set(&mut self, labelling: LabelChange) -> &mut Self {
        self.drafted.change.labels.push(labelling);
        self
    }

    pub fn remove<R: Record>(&mut self, stored: &Stored<R>) -> &mut Self {
        self.drafted.change.labels.extend(label::between(&labels_of(&stored.record), &BTreeSet::new()));
        self.drafted.change.writes.push(RowWrite::Remove {
            table: R::TABLE,
            id: stored.record.id(),
            seal: stored.seal.clone(),
        });
        self
    }

    pub fn finish(self) -> PreparedChange {
        self.drafted
    }
}
