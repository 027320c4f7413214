//! What is kept, and the few promises that keeping makes.
//!
//! Everything is a sealed row: a name, a revision, a little to look it up by, a JSON body and an
//! HMAC over all of it under a key that the database does not have. A decision reaches the store
//! as one [`ChangeSet`]: the rows it relied on, the rows it makes or replaces, and the moments it
//! must lie between. The store applies all of it or nothing, and checks what it relied on again
//! inside the transaction. That is why both databases need so little code of their own.

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

use crate::domain::primitives::time::Timestamp;

use change::ChangeSet;
use label::{Label, LabelledRow};
use outage::Outage;
use row::{SealedRow, Table};

/// Why the store did not do as asked. Nothing was changed, except perhaps where the database itself failed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A row that the change relied on is not at the revision it was read at: load again and decide again.
    #[error("a row of {0} changed meanwhile")]
    Conflict(&'static str),
    /// By the database's clock the change comes too late.
    #[error("the deadline of the change has passed")]
    TooLate,
    /// By the database's clock the change comes too soon: a lease that it relies on having passed has not.
    #[error("what the change relies on having passed has not")]
    TooSoon,
    /// The gateway's clock and the database's differ by more than [`CLOCK_SKEW_MILLIS_MAX`].
    #[error("this gateway's clock is more than 2 s off the database's; set it right")]
    ClockSkew,
    /// More work is queued than can be done soon.
    #[error("the store is overloaded")]
    Busy,
    /// A row was changed by something that does not hold the row key.
    #[error("a row of {0} does not bear this gateway's seal")]
    Unsealed(&'static str),
    /// A row is sealed but not of the shape this version reads.
    #[error("a row of {0} cannot be read")]
    Unreadable(&'static str),
    /// The database cannot be used for now. A commit that ended so may have been made all the same: the connection may
    /// have been lost after the database had it. Callers read again before they decide again.
    #[error("the database cannot be used, {outage}: {detail}")]
    Unavailable {
        outage: Outage,
        /// What the database or the system said.
        detail: String,
    },
    /// The database refused a statement that this program should not have sent, or answered what it cannot read.
    #[error("the database failed: {0}")]
    Database(String),
}

impl StoreError {
    pub(crate) fn unavailable(outage: Outage, detail: impl Into<String>) -> Self {
        Self::Unavailable { outage, detail: detail.into() }
    }

    /// A file of the database could not be used.
    fn of_file(what: &str, error: &std::io::Error) -> Self {
        Self::unavailable(Outage::of_file(error), format!("{what}: {error}"))
    }
}

/// Decisions carry the gateway's time; a gateway further off than this would sign wrong times.
pub const CLOCK_SKEW_MILLIS_MAX: i64 = 2_000;

/// Which rows a list gives, in the order of their ids unless it says otherwise.
#[derive(Clone, Copy, Debug)]
pub enum RowFilter<'a> {
    All,
    Owner(&'a str),
    /// Rows of one owner, by due moment and then id.
    OwnerByDue(&'a str),
    /// Rows in one state, by due moment and then id.
    State(&'a str),
    /// Rows in one state that are due by a moment, by due moment and then id.
    DueBy(&'a str, Timestamp),
    /// Every row, the one with the last due moment first.
    Latest,
}

/// Which way a list is gone through.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    Forward,
    Backward,
}

/// Where a list goes on: after this row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// The due moment of the last row seen, for lists in that order.
    pub due: i64,
    pub id: String,
}

/// What is met at once on a walk through everything, at most [`LIST_ROWS_MAX`] of them and at least one.
#[derive(Clone, Debug)]
pub enum ScanPage {
    Rows(Vec<SealedRow>),
    Labels(Vec<Label>),
}

/// The promises. Each holds on both databases and is tried on both in `tests/store_contract`.
#[async_trait]
pub trait Store: Send + Sync {
    /// Applies a change wholly or not at all, durably before it returns.
    ///
    /// Inside one transaction, by the database's clock and under row locks taken in one order:
    /// every guard holds, every inserted id and alias is new, every replaced row is at the
    /// revision it was read at. Of any number of changes that replace the same revision of a
    /// row, exactly one succeeds. A refused change leaves no trace and harms no other.
    async fn commit(&self, change: ChangeSet) -> Result<(), StoreError>;

    /// The row of that id, if there is one. What a returned `commit` wrote is seen.
    async fn get(&self, table: Table, id: &str) -> Result<Option<SealedRow>, StoreError>;

    /// The row of that alias (a second unique name), if there is one.
    async fn get_by_alias(&self, table: Table, alias: &str) -> Result<Option<SealedRow>, StoreError>;

    /// The rows of those ids that exist, in no order. At most [`LIST_ROWS_MAX`] ids.
    async fn get_many(&self, table: Table, ids: &[String]) -> Result<Vec<SealedRow>, StoreError>;

    /// At most `limit` (and at most [`LIST_ROWS_MAX`]) rows, after the cursor. Refused where no index serves it:
    /// by owner or state only where [`Table::is_listed_by_facets`], and an empty one is none; by owner and
    /// due moment only where [`Table::is_owned_for_a_time`]; by due moment alone only where
    /// [`Table::is_listed_by_moment`].
    async fn list(
        &self,
        table: Table,
        filter: RowFilter<'_>,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Vec<SealedRow>, StoreError>;

    /// At most `limit` (and at most [`LIST_ROWS_MAX`]) rows that a label was put on, by the label's due moment and then
    /// id, after the cursor in that direction. Refused unless [`Table::is_labelled`]. Labels are put and removed by
    /// the change that writes their row. They bear no seal: the caller opens each row and asks whether the label is
    /// one of its own. A label whose row is gone finds nothing.
    async fn labelled(
        &self,
        table: Table,
        word: &str,
        direction: Direction,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Vec<LabelledRow>, StoreError>;

    /// At most `limit` (and at most [`LIST_ROWS_MAX`]) labels as they stand, in the order of table's name, word, due
    /// moment and id, after that label.
    async fn labels(&self, after: Option<&Label>, limit: u32) -> Result<Vec<Label>, StoreError>;

    /// Goes through every row of every table, a page of one table after the other, each table in the order of ids, and
    /// then through every label: all of them as they stood at one moment after this was asked. What is committed meanwhile is not
    /// waited for, waits for nothing, and is not met. For an audit: until this ends a database keeps what was replaced.
    async fn walk(&self, meet: &mut (dyn FnMut(ScanPage) + Send)) -> Result<(), StoreError>;

    /// The first rows, at most `limit` (and at most [`LIST_ROWS_MAX`]), whose alias begins so, in the order of aliases.
    async fn by_alias_prefix(&self, table: Table, prefix: &str, limit: u32) -> Result<Vec<SealedRow>, StoreError>;

    /// The last row of an owner, in the order of ids; where lists by owner exist.
    async fn last_of(&self, table: Table, owner: &str) -> Result<Option<SealedRow>, StoreError>;

    /// The time by the database's clock.
    async fn now(&self) -> Result<Timestamp, StoreError>;

    /// Tries to become the one who does this for as long as the guard lives; `None` if another is. When a process or
    /// its connection ends, however it ends, the duty is another's to take at once.
    async fn take(&self, duty: LeaderTask) -> Result<Option<Box<dyn LeaderLock>>, StoreError>;

    /// How many bytes the database takes, as it says itself; `None` where that is not known.
    async fn bytes(&self) -> Result<Option<u64>, StoreError> {
        Ok(None)
    }

    /// Refuses with [`StoreError::Unavailable`] if the files of the database are not those that were opened, or their disk
    /// has next to no room. Only a store on files of its own can tell.
    async fn check_storage(&self) -> Result<(), StoreError> {
        Ok(())
    }

    /// What the database's own check finds damaged, as far as it has one: at most [`DAMAGES_MAX`] sentences. It reads all.
    async fn damages(&self) -> Result<Vec<String>, StoreError> {
        Ok(Vec::new())
    }

    /// The outage that a call met within the last second, where that is noted.
    fn recent_outage(&self) -> Option<Outage> {
        None
    }

    /// Returns once a file of the database was removed or replaced while it was open, and says which; never otherwise.
    async fn replaced(&self) -> String {
        std::future::pending().await
    }

    /// How many changes wait to be written, here and now.
    fn queued(&self) -> usize;

    /// Returns when something was committed since the last call, by this process or another, or after `patience`.
    /// A hint to look again, never a fact: callers look whether or not it came.
    async fn changed(&self, patience: std::time::Duration);
}

/// What one gateway does at a time, of all that share a database.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LeaderTask {
    /// Giving events their place in the log.
    Sequencing,
    /// Sending them to endpoints.
    Sending,
    Copying,
    Mailing,
    /// Taking states out of the database into files.
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

/// Held by whoever took a duty. If it is dropped, the duty is soon another's to take.
#[async_trait]
pub trait LeaderLock: Send + Sync {
    /// Whether it is held still. A gateway that lost it learns so when it next asks; what it does until then another
    /// may do, too.
    fn stands(&self) -> bool;

    /// Gives it up: once this returns, it is anybody's to take.
    async fn leave(self: Box<Self>);
}

/// As many damages as [`Store::damages`] names. One damaged page may be named a hundred times.
pub const DAMAGES_MAX: u32 = 20;

/// No list is longer; callers page.
pub const LIST_ROWS_MAX: u32 = 1_000;
