//! A change set: the preconditions and the row writes of one decision, applied atomically.

use std::collections::BTreeSet;

use countersign_domain::keys::RowKey;
use countersign_domain::primitives::time::Timestamp;

use super::StoreError;
use super::label::{self, Label, LabelChange};
use super::record::{CachedRecord, Record, Stored};
use super::row::{Facets, Seal, SealedRow, Table};

/// A condition that must hold when the change is applied.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Precondition {
    /// The row is unchanged since it was read. Its seal covers all of it, including the revision.
    Unchanged {
        table: Table,
        id: String,
        /// The seal at the time of the read.
        seal: Seal,
    },
    /// The database's clock is before this time.
    Before(Timestamp),
    /// The database's clock is at or after this time.
    NotBefore(Timestamp),
}

/// The lookup columns that a replacement changes. Indexes of unchanged columns are not written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FacetChange {
    Nothing,
    State,
    /// The alias or owner, and possibly the state.
    Names,
}

impl FacetChange {
    /// Compares the lookup columns of two revisions.
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
    /// A new row. Its id and alias must not exist.
    Insert(SealedRow),
    /// The next revision of a row. The row must be unchanged since it was read.
    Replace {
        row: SealedRow,
        /// The seal of the previous revision.
        over: Seal,
        /// The lookup columns that change.
        moves: FacetChange,
    },
    /// Deletes a row. The row must be unchanged since it was read. Only tables of temporary data, such as the outbox,
    /// use it.
    Remove {
        table: Table,
        id: String,
        /// The seal at the time of the read.
        seal: Seal,
    },
}

/// All preconditions and writes of one decision.
#[derive(Clone, Debug)]
pub struct ChangeSet {
    /// The time of the decision by the gateway's clock.
    pub decided_at: Timestamp,
    pub guards: Vec<Precondition>,
    pub writes: Vec<RowWrite>,
    /// Changes of labels, applied in this order after the rows.
    pub labels: Vec<LabelChange>,
}

/// Builds a change set from typed records.
pub struct Draft<'k> {
    key: &'k RowKey,
    drafted: PreparedChange,
}

/// A change set, and the records that it will commit.
#[derive(Debug)]
pub struct PreparedChange {
    pub change: ChangeSet,
    /// The records to cache after the commit.
    pub known: Vec<CachedRecord>,
}

impl ChangeSet {
    /// Returns the rows that it relies on or writes.
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
    /// Returns an empty change.
    pub fn new(key: &'k RowKey, decided_at: Timestamp) -> Self {
        let change = ChangeSet { decided_at, guards: Vec::new(), writes: Vec::new(), labels: Vec::new() };
        Self { key, drafted: PreparedChange { change, known: Vec::new() } }
    }

    /// Adds the precondition that a record is unchanged since it was read.
    pub fn require_unchanged<R: Record>(&mut self, stored: &Stored<R>) -> &mut Self {
        let guard = Precondition::Unchanged { table: R::TABLE, id: stored.record.id(), seal: stored.seal.clone() };
        // Several parts of a decision may rely on the same record.
        if !self.drafted.change.guards.contains(&guard) {
            self.drafted.change.guards.push(guard);
        }
        self
    }

    /// Adds all preconditions and writes of another draft. The time of this draft's decision stays.
    pub fn add(&mut self, other: Self) {
        let PreparedChange { change: ChangeSet { guards, writes, labels, .. }, known } = other.drafted;
        self.drafted.change.guards.extend(guards);
        self.drafted.change.writes.extend(writes);
        self.drafted.change.labels.extend(labels);
        self.drafted.known.extend(known);
    }

    /// Adds the precondition that the database's clock is before a time.
    pub fn before(&mut self, moment: Timestamp) -> &mut Self {
        self.drafted.change.guards.push(Precondition::Before(moment));
        self
    }

    /// Adds the precondition that the database's clock is at or after a time.
    pub fn not_before(&mut self, moment: Timestamp) -> &mut Self {
        self.drafted.change.guards.push(Precondition::NotBefore(moment));
        self
    }

    /// Adds a new record and returns it as it will be read after the commit.
    pub fn inserting<R: Record>(&mut self, record: R) -> Result<Stored<R>, StoreError> {
        let seal = self.insert(&record)?;
        Ok(Stored { record, revision: 1, seal })
    }

    /// Adds a new record and returns its seal.
    pub fn insert<R: Record>(&mut self, record: &R) -> Result<Seal, StoreError> {
        let row = record.seal(self.key, 1)?;
        self.drafted.known.extend(CachedRecord::of(&row, record));
        let seal = row.mac.clone();
        self.drafted.change.labels.extend(label::between(&BTreeSet::new(), &labels_of(record)));
        self.drafted.change.writes.push(RowWrite::Insert(row));
        Ok(seal)
    }

    /// Replaces a record that was read, or that this change inserts.
    pub fn replace<R: Record>(&mut self, stored: &Stored<R>, record: &R) -> Result<(), StoreError> {
        self.put_over(stored, record).map(drop)
    }

    fn put_over<R: Record>(&mut self, stored: &Stored<R>, record: &R) -> Result<Seal, StoreError> {
        debug_assert_eq!(stored.record.id(), record.id(), "a record keeps its id");
        // Only the last content of an inserted row is written.
        if let Some(at) = self.inserted(stored) {
            let row = record.seal(self.key, stored.revision)?;
            let seal = row.mac.clone();
            self.drafted.known.extend(CachedRecord::of(&row, record));
            self.drafted.change.labels.extend(label::between(&labels_of(&stored.record), &labels_of(record)));
            self.drafted.change.writes[at] = RowWrite::Insert(row);
            return Ok(seal);
        }
        let row = record.seal(self.key, stored.revision + 1)?;
        let seal = row.mac.clone();
        let moves = FacetChange::between(&stored.record.facets(), &row.facets);
        self.drafted.known.extend(CachedRecord::of(&row, record));
        self.drafted.change.labels.extend(label::between(&labels_of(&stored.record), &labels_of(record)));
        self.drafted.change.writes.push(RowWrite::Replace { row, over: stored.seal.clone(), moves });
        Ok(seal)
    }

    /// Returns the place of the write that inserts a record in this change.
    fn inserted<R: Record>(&self, stored: &Stored<R>) -> Option<usize> {
        let is_it = |it: &RowWrite| match it {
            RowWrite::Insert(row) => row.table == R::TABLE && row.mac == stored.seal,
            RowWrite::Replace { .. } | RowWrite::Remove { .. } => false,
        };
        self.drafted.change.writes.iter().position(is_it)
    }

    /// Replaces a record and returns it as it will be read after the commit.
    pub fn replaced<R: Record>(&mut self, stored: &Stored<R>, record: R) -> Result<Stored<R>, StoreError> {
        let is_inserted = self.inserted(stored).is_some();
        let seal = self.put_over(stored, &record)?;
        Ok(Stored { record, revision: if is_inserted { stored.revision } else { stored.revision + 1 }, seal })
    }

    /// Sets the labels of an unchanged record again, whatever labels its row has now.
    pub fn label<R: Record>(&mut self, stored: &Stored<R>) -> &mut Self {
        self.drafted.change.labels.extend(label::between(&BTreeSet::new(), &labels_of(&stored.record)));
        self.require_unchanged(stored)
    }

    /// Adds a label change for any row.
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
