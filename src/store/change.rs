//! A change: what a decision relied on and what it makes, applied wholly or not at all.

use crate::domain::keys::RowKey;
use crate::domain::time::Timestamp;

use super::StoreError;
use super::record::{Record, Stored};
use super::row::{Row, Table};

/// What must still be so when the change is applied.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Guard {
    /// The row stands at this revision.
    Unchanged {
        /// Its table.
        table: Table,
        /// Its id.
        id: String,
        /// The revision it was read at.
        revision: i64,
    },
    /// By the database's clock, it is earlier than this.
    Before(Timestamp),
}

/// One row written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RowWrite {
    /// A new row; its id and alias must be new.
    Insert(Row),
    /// The row's next revision; it must stand at the one before.
    Replace(Row),
    /// The row goes; it must stand at this revision. Only the outbox forgets.
    Remove {
        /// Its table.
        table: Table,
        /// Its id.
        id: String,
        /// The revision it was read at.
        revision: i64,
    },
}

/// Everything one decision relies on and does.
#[derive(Clone, Debug)]
pub struct Change {
    /// When the gateway decided, by its own clock.
    pub decided_at: Timestamp,
    /// What must still be so.
    pub guards: Vec<Guard>,
    /// What is written.
    pub writes: Vec<RowWrite>,
}

/// Builds a change out of typed records.
pub struct Draft<'k> {
    key: &'k RowKey,
    change: Change,
}

impl<'k> Draft<'k> {
    /// An empty change, decided now.
    pub fn new(key: &'k RowKey, decided_at: Timestamp) -> Self {
        Self { key, change: Change { decided_at, guards: Vec::new(), writes: Vec::new() } }
    }

    /// The decision relied on this record as it was read.
    pub fn rely_on<R: Record>(&mut self, stored: &Stored<R>) -> &mut Self {
        let guard = Guard::Unchanged { table: R::TABLE, id: stored.record.id(), revision: stored.revision };
        if !self.change.guards.contains(&guard) {
            self.change.guards.push(guard);
        }
        self
    }

    /// The decision holds only until this moment.
    pub fn before(&mut self, moment: Timestamp) -> &mut Self {
        self.change.guards.push(Guard::Before(moment));
        self
    }

    /// A new record.
    pub fn insert<R: Record>(&mut self, record: &R) -> Result<&mut Self, StoreError> {
        let row = record.seal(self.key, 1)?;
        self.change.writes.push(RowWrite::Insert(row));
        Ok(self)
    }

    /// A record in place of the one that was read.
    pub fn replace<R: Record>(&mut self, stored: &Stored<R>, record: &R) -> Result<&mut Self, StoreError> {
        debug_assert_eq!(stored.record.id(), record.id(), "a record keeps its id");
        let row = record.seal(self.key, stored.revision + 1)?;
        self.change.writes.push(RowWrite::Replace(row));
        Ok(self)
    }

    /// The record goes.
    pub fn remove<R: Record>(&mut self, stored: &Stored<R>) -> &mut Self {
        self.change.writes.push(RowWrite::Remove {
            table: R::TABLE,
            id: stored.record.id(),
            revision: stored.revision,
        });
        self
    }

    /// The change as built.
    pub fn finish(self) -> Change {
        self.change
    }
}
