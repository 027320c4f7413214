//! The store: sealed rows in SQLite or PostgreSQL, with atomic changes.
//!
//! Each row has an id, a revision, lookup columns, a JSON body and an HMAC over all of them. The key of the HMAC is not
//! in the database. A decision reaches the store as one [`ChangeSet`]: the rows that it relied on, the rows that it
//! writes, and the time limits. The store applies all of it or nothing, and checks the preconditions inside the
//! transaction. So each database needs little code of its own.

pub mod change;
mod commit_notify;
pub mod label;
mod migrate;
pub mod outage;
pub mod postgres;
mod preconditions;
pub mod record;
pub mod records;
pub mod row;
pub mod sql;
pub mod sqlite;
pub mod watched;
mod write_queue;

use async_trait::async_trait;
use countersign_domain::primitives::time::Timestamp;

use change::ChangeSet;
use label::{Label, LabelledRow};
use outage::Outage;
use row::{SealedRow, Table};

/// The reason why the store failed. Nothing was changed, except possibly if the database itself failed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A row changed since the decision read it. Load it and decide again.
    #[error("a row of {0} changed since it was read")]
    Conflict(&'static str),
    /// The deadline has passed by the database's clock.
    #[error("the deadline of the change has passed")]
    TooLate,
    /// The required time has not come by the database's clock, such as the end of a lease.
    #[error("the change requires a time that has not come yet")]
    TooSoon,
    /// The gateway's clock and the database's differ by more than [`CLOCK_SKEW_MILLIS_MAX`].
    #[error("this gateway's clock differs from the database's by more than 2 s; set the clocks right")]
    ClockSkew,
    /// The queue is full.
    #[error("the store is overloaded; try again later")]
    Busy,
    /// A row was changed without the row key.
    #[error("a row of {0} does not bear this gateway's seal; run an audit")]
    Unsealed(&'static str),
    /// The row is sealed, but its form is unknown to this version.
    #[error("a row of {0} cannot be read")]
    Unreadable(&'static str),
    /// The database is temporarily unavailable. A commit that fails this way may still have been applied, because the
    /// connection may have been lost afterwards. Callers read again before they decide again.
    #[error("the database cannot be used, {outage}: {detail}")]
    Unavailable {
        outage: Outage,
        /// The message of the database or the system.
        detail: String,
    },
    /// The database refused an invalid statement, or its answer cannot be read.
    #[error("the database failed: {0}")]
    Database(String),
}

impl StoreError {
    pub fn unavailable(outage: Outage, detail: impl Into<String>) -> Self {
        Self::Unavailable { outage, detail: detail.into() }
    }

    /// Returns the error for a database file that cannot be used.
    fn of_file(what: &str, error: &std::io::Error) -> Self {
        Self::unavailable(Outage::of_file(error), format!("{what}: {error}"))
    }
}

/// The limit of clock skew. Decisions contain the gateway's time, so a gateway beyond the limit would sign wrong times.
pub const CLOCK_SKEW_MILLIS_MAX: i64 = 2_000;

/// The rows of a list, sorted by id unless stated otherwise.
#[derive(Clone, Copy, Debug)]
pub enum RowFilter<'a> {
    All,
    Owner(&'a str),
    /// Rows of one owner, by due time and then id.
    OwnerByDue(&'a str),
    /// Rows in one state, by due time and then id.
    State(&'a str),
    /// Rows in one state that are due by a time, by due time and then id.
    DueBy(&'a str, Timestamp),
    /// All rows, the latest due time first.
    Latest,
}

/// The direction of a list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    Forward,
    Backward,
}

/// The cursor of a list: it continues after this row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// The due time of the last row, for lists in that order.
    pub due: i64,
    pub id: String,
}

/// One page of a scan of the whole database: at least one and at most [`LIST_ROWS_MAX`] items.
#[derive(Clone, Debug)]
pub enum ScanPage {
    Rows(Vec<SealedRow>),
    Labels(Vec<Label>),
}

/// The interface of both databases. `tests/store_contract` checks every guarantee on both.
#[async_trait]
pub trait Store: Send + Sync {
    /// Applies a change atomically. The change is durable when this returns.
    ///
    /// All checks run in one transaction, by the database's clock and under row locks that are taken in one order.
    /// Every precondition must hold, every inserted id and alias must be new, and every replaced row must have the
    /// revision that was read. If several changes replace the same revision of a row, exactly one succeeds. A refused
    /// change has no effect on the database or on other changes.
    async fn commit(&self, change: ChangeSet) -> Result<(), StoreError>;

    /// Returns a row by its id. It sees all writes of completed commits.
    async fn get(&self, table: Table, id: &str) -> Result<Option<SealedRow>, StoreError>;

    /// Returns a row by its alias, a second unique name.
    async fn get_by_alias(&self, table: Table, alias: &str) -> Result<Option<SealedRow>, StoreError>;

    /// Returns the existing rows of up to [`LIST_ROWS_MAX`] ids, in any order.
    async fn get_many(&self, table: Table, ids: &[String]) -> Result<Vec<SealedRow>, StoreError>;

    /// Returns at most `limit` (and at most [`LIST_ROWS_MAX`]) rows after the cursor. A list that no index serves is
    /// refused:
    ///
    /// - By a non-empty owner or state: only if [`Table::is_listed_by_facets`].
    /// - By owner and due time: only if [`Table::is_owned_for_a_time`].
    /// - By due time alone: only if [`Table::is_listed_by_moment`].
    async fn list(
        &self,
        table: Table,
        filter: RowFilter<'_>,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Vec<SealedRow>, StoreError>;

    /// Returns at most `limit` (and at most [`LIST_ROWS_MAX`]) rows with a label, by the label's due time and then id,
    /// after the cursor in that direction. Refused unless [`Table::is_labelled`]. The change that writes a row also
    /// writes its labels. Labels have no seal, so the caller opens each row and checks that the label is its own. A
    /// label without its row is skipped.
    async fn labelled(
        &self,
        table: Table,
        word: &str,
        direction: Direction,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Vec<LabelledRow>, StoreError>;

    /// Returns at most `limit` (and at most [`LIST_ROWS_MAX`]) labels after a label, sorted by table name, word, due
    /// time and id.
    async fn labels(&self, after: Option<&Label>, limit: u32) -> Result<Vec<Label>, StoreError>;

    /// Reads all rows of all tables in pages, each table by id, and then all labels, from one snapshot. The snapshot is
    /// taken after the call. Later commits are not visible, and neither side waits for the other. It is for an audit.
    /// The database stores replaced revisions until it ends.
    async fn walk(&self, meet: &mut (dyn FnMut(ScanPage) + Send)) -> Result<(), StoreError>;

    /// Returns at most `limit` (and at most [`LIST_ROWS_MAX`]) rows whose alias starts with `prefix`, by alias.
    async fn by_alias_prefix(&self, table: Table, prefix: &str, limit: u32) -> Result<Vec<SealedRow>, StoreError>;

    /// Returns the last row of an owner by id, for tables with lists by owner.
    async fn last_of(&self, table: Table, owner: &str) -> Result<Option<SealedRow>, StoreError>;

    /// Returns the time of the database's clock.
    async fn now(&self) -> Result<Timestamp, StoreError>;

    /// Tries to become the leader of a task until the returned lock is dropped. Returns `None` if another gateway is
    /// the leader. If the process or its connection ends, another gateway can take over at once.
    async fn take(&self, duty: LeaderTask) -> Result<Option<Box<dyn LeaderLock>>, StoreError>;

    /// Returns the size of the database in bytes, or `None` if it is unknown.
    async fn bytes(&self) -> Result<Option<u64>, StoreError> {
        Ok(None)
    }

    /// Returns [`StoreError::Unavailable`] if the files of the database are not the opened ones, or if their disk is
    /// nearly full. Only a store with its own files can check this.
    async fn check_storage(&self) -> Result<(), StoreError> {
        Ok(())
    }

    /// Returns the damage that the database's own check reports, in at most [`DAMAGES_MAX`] sentences. The check reads
    /// the whole database.
    async fn damages(&self) -> Result<Vec<String>, StoreError> {
        Ok(Vec::new())
    }

    /// Returns the outage that a call met within the last second, if outages are recorded.
    fn recent_outage(&self) -> Option<Outage> {
        None
    }

    /// Returns the name of a database file after it was removed or replaced while it was open. Otherwise it never
    /// returns.
    async fn replaced(&self) -> String {
        std::future::pending().await
    }

    /// Returns the number of changes in this process's queue.
    fn queued(&self) -> usize;

    /// Returns when this or another process has committed since the last call, or after `patience`. It is only a hint:
    /// callers read again in either case.
    async fn changed(&self, patience: std::time::Duration);
}

/// A task that only one of the gateways on a database does at a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LeaderTask {
    /// Assigning log positions to events.
    Sequencing,
    /// Sending events to endpoints.
    Sending,
    Copying,
    Mailing,
    /// Moving states from the database to files.
    Archiving,
}

impl LeaderTask {
    const fn name(self) -> &'static str {
        match self {
            Self::Sequencing => "sequencer",
            Self::Sending => "sender",
            Self::Copying => "copier",
            Self::Mailing => "mailer",
            Self::Archiving => "archiver",
        }
    }
}

/// The lock of a leader. After it is dropped, another gateway can become the leader.
#[async_trait]
pub trait LeaderLock: Send + Sync {
    /// Checks that the lock is still held. A gateway learns of a loss only by this check. Until then another gateway
    /// may do the same task.
    fn stands(&self) -> bool;

    /// Releases the lock. After this returns, any gateway can take it.
    async fn leave(self: Box<Self>);
}

/// The limit of damages that [`Store::damages`] returns. One damaged page may cause a hundred.
pub const DAMAGES_MAX: u32 = 20;

/// The limit of every list. Callers use pagination.
pub const LIST_ROWS_MAX: u32 = 1_000;
