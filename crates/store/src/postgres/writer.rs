//! Commits. Queued changes share a transaction with few round trips. Each change is still applied or refused on its
//! own.

use std::slice;
use std::sync::Arc;

use countersign_domain::primitives::time::Timestamp;
use deadpool_postgres::{Object, Pool};
use futures_util::future::{try_join, try_join_all, try_join4};
use tokio::runtime::Runtime;
use tokio::sync::{Mutex, mpsc};
use tokio::time::timeout;
use tokio_postgres::Error;
use tokio_postgres::error::DbError;

use super::super::change::ChangeSet;
use super::super::outage::Outage;
use super::super::row::Table;
use super::super::sql::PostgresStatements;
use super::super::{CLOCK_SKEW_MILLIS_MAX, StoreError};
use super::PostgresOptions;
use super::batch;
use super::batch::LockedBatchRows;
use super::connect::{ANSWER_PATIENCE, PooledConnection, silent};
use super::failure::{database, is_lost, of_change, outage_of};
use super::listen::CHANNEL;
use super::reader::NOW;
use crate::commit_notify::CommitNotifier;
use crate::preconditions;
use crate::preconditions::CheckTime;
use crate::write_queue;
use crate::write_queue::{BatchOutcomes, CommitPoint, QueuedChange};

/// The number of concurrent writers. While one waits for the disk, the other prepares.
const WRITERS: usize = 2;

/// The limit of changes per group. It is large enough that the cost of a statement no longer matters. A larger group
/// would only hold its locks longer.
const GROUP_CHANGES_MAX: usize = 256;

/// The longest wait of a change. A longer wait would exceed the allowed clock skew.
const PATIENCE_MILLIS: u128 = CLOCK_SKEW_MILLIS_MAX.unsigned_abs() as u128;

/// The shared data of a writer.
#[derive(Clone)]
pub(super) struct PostgresWriter {
    pub(super) pool: Pool,
    pub(super) options: PostgresOptions,
    pub(super) bell: Arc<CommitNotifier>,
}

/// The reason why no change of a group was committed.
enum PostgresBatchError {
    /// A statement failed and the transaction was rolled back. Each change is tried again on its own.
    Undone(TransactionError),
    /// The connection was lost before the commit. Nothing happened, and another connection may work.
    Lost(StoreError),
    /// No connection is available, or it was lost during the commit.
    Final(StoreError),
}

/// The error inside a transaction.
enum TransactionError {
    Refused(Error),
    /// A statement wrote another number of rows than expected.
    Miscounted(Table),
}

impl From<Error> for TransactionError {
    fn from(error: Error) -> Self {
        Self::Refused(error)
    }
}

impl TransactionError {
    /// Returns the outage that it means, which every change of the group would meet.
    fn outage(&self) -> Option<Outage> {
        match self {
            Self::Refused(error) => outage_of(error),
            Self::Miscounted(_) => None,
        }
    }

    /// Returns the error for the single change that met it.
    fn of_change(&self, change: &ChangeSet) -> StoreError {
        let first = change.writes.first().map_or("nothing", |write| write.name().0.name());
        match self {
            Self::Refused(error) => {
                let named = error.as_db_error().and_then(DbError::table);
                let table = named.and_then(|name| Table::ALL.iter().find(|it| it.name() == name));
                of_change(error, table.map_or(first, |it| it.name()))
            }
            Self::Miscounted(table) => {
                StoreError::Database(format!("PostgreSQL: rows of {} were not written", table.name()))
            }
        }
    }
}

impl PostgresWriter {
    /// Starts all writers.
    pub(super) fn start(self, runtime: &Runtime, jobs: mpsc::Receiver<QueuedChange>) {
        let jobs = Arc::new(Mutex::new(jobs));
        for _ in 0..WRITERS {
            runtime.spawn(self.clone().work(Arc::clone(&jobs)));
        }
    }

    async fn work(self, jobs: Arc<Mutex<mpsc::Receiver<QueuedChange>>>) {
        let mut group = Vec::with_capacity(GROUP_CHANGES_MAX);
        while jobs.lock().await.recv_many(&mut group, GROUP_CHANGES_MAX).await > 0 {
            let outcomes = self.commit(&group).await;
            // Readers of this process are notified directly, without the round trip of NOTIFY.
            if outcomes.iter().any(Result::is_ok) {
                self.bell.ring();
            }
            write_queue::answer(&mut group, outcomes);
        }
    }

    async fn commit(&self, group: &[QueuedChange]) -> BatchOutcomes {
        match self.commit_together(group).await {
            Ok(outcomes) => outcomes,
            Err(PostgresBatchError::Undone(trouble)) if group.len() == 1 => {
                vec![Err(trouble.of_change(&group[0].change))]
            }
            // An outage affects every change, so trying each of them would only take longer.
            Err(PostgresBatchError::Undone(trouble)) if trouble.outage().is_some() => {
                write_queue::all_fail(group, &trouble.of_change(&group[0].change))
            }
            Err(PostgresBatchError::Undone(_)) => {
                let mut outcomes = Vec::with_capacity(group.len());
                for job in group {
                    // The change is too old to be accepted. Trying it would only delay the next one.
                    let outcome = match job.waited().as_millis() > PATIENCE_MILLIS {
                        true => vec![Err(StoreError::Busy)],
                        false => Box::pin(self.commit(slice::from_ref(job))).await,
                    };
                    outcomes.extend(outcome);
                }
                outcomes
            }
            Err(PostgresBatchError::Lost(error) | PostgresBatchError::Final(error)) => {
                write_queue::all_fail(group, &error)
            }
        }
    }

    /// Commits a group in one transaction. It is tried once more if the connection is lost before the commit.
    async fn commit_together(&self, group: &[QueuedChange]) -> Result<BatchOutcomes, PostgresBatchError> {
        let work = async {
            match self.commit_once(group).await {
                // Before the commit nothing was applied, so a repetition is safe.
                Err(PostgresBatchError::Lost(_)) => self.commit_once(group).await,
                done => done,
            }
        };
        timeout(ANSWER_PATIENCE, work).await.unwrap_or_else(|_| Err(PostgresBatchError::Final(silent())))
    }

    async fn commit_once(&self, group: &[QueuedChange]) -> Result<BatchOutcomes, PostgresBatchError> {
        let client = PooledConnection::take(&self.pool).await.map_err(PostgresBatchError::Final)?;
        match self.write(&client, group).await {
            Ok(outcomes) => {
                // NOTIFY is part of the transaction: it is sent if and only if the transaction commits.
                let end = format!("NOTIFY {CHANNEL}; COMMIT");
                (self.options.probe.0)(CommitPoint::Written);
                // An error here does not reveal whether the commit was applied, so it is not repeated.
                client.batch_execute(&end).await.map_err(|error| PostgresBatchError::Final(database(&error)))?;
                (self.options.probe.0)(CommitPoint::Committed);
                client.give_back();
                Ok(outcomes)
            }
            Err(TransactionError::Refused(error)) if is_lost(&error) => Err(PostgresBatchError::Lost(database(&error))),
            Err(trouble) => {
                // Only a connection without an open transaction may go back to the pool.
                let rolled_back = client.batch_execute("ROLLBACK").await.is_ok();
                match trouble.outage() {
                    // A session stays read-only, or connected to a server that is no longer the primary. So all pooled
                    // connections are closed.
                    Some(Outage::ReadOnly) => drop(self.pool.retain(|_, _| false)),
                    _ if rolled_back => client.give_back(),
                    _ => {}
                }
                Err(PostgresBatchError::Undone(trouble))
            }
        }
    }

    /// Does everything except the commit: locks, checks and writes.
    async fn write(&self, client: &Object, group: &[QueuedChange]) -> Result<BatchOutcomes, TransactionError> {
        let (mut rows, now) = begin_and_lock(client, group).await?;
        (self.options.probe.0)(CommitPoint::Locked);
        let now = self.options.clock_offset.applied_to(now);
        let mut outcomes = Vec::with_capacity(group.len());
        for job in group {
            let verdict = preconditions::check(&job.change, CheckTime { now, waited: job.waited() }, &mut rows);
            if verdict.is_ok() {
                // Later changes of the group are checked against the rows as this change leaves them.
                rows.write(&job.change);
            }
            outcomes.push(verdict);
        }
        let accepted = group.iter().zip(&outcomes).filter(|(_, verdict)| verdict.is_ok());
        let writings = batch::writings(accepted.map(|(job, _)| &job.change));
        let mut prepared = Vec::with_capacity(writings.len());
        for writing in &writings {
            prepared.push((client.prepare_cached(writing.text()).await?, writing.parameters()));
        }
        let counts = try_join_all(prepared.iter().map(|(text, values)| client.execute(text, values))).await?;
        let accepted = group.iter().zip(&outcomes).filter(|(_, verdict)| verdict.is_ok());
        write_labels(client, accepted.map(|(job, _)| &job.change)).await?;
        // A different count means that the locks did not protect the rows, so nothing is committed.
        match writings.iter().zip(counts).find(|(writing, count)| writing.count() != *count) {
            Some((writing, _)) => Err(TransactionError::Miscounted(writing.table)),
            None => Ok(outcomes),
        }
    }
}

/// Writes labels in a pipeline, one statement each. Only searchable rows have labels, so there are few.
async fn write_labels<'c>(client: &Object, changes: impl Iterator<Item = &'c ChangeSet>) -> Result<(), Error> {
    let labellings = batch::labellings(changes);
    let mut prepared = Vec::with_capacity(labellings.len());
    for (text, label) in labellings {
        prepared.push((client.prepare_cached(text).await?, label));
    }
    let sent =
        prepared.iter().map(async |(text, it)| client.execute(text, &[&it.kept_in, &it.word, &it.due, &it.id]).await);
    try_join_all(sent).await.map(drop)
}

/// Begins, locks all rows of the group, and reads them and the clock in one round trip.
async fn begin_and_lock(client: &Object, group: &[QueuedChange]) -> Result<(LockedBatchRows, Timestamp), Error> {
    let locks = batch::locks(group.iter().map(|job| &job.change));
    let aliases = batch::aliases(group.iter().map(|job| &job.change));
    let turns = batch::turns(&locks);
    let take_turns = client.prepare_cached(batch::TAKE_TURNS).await?;
    let now = client.prepare_cached(NOW).await?;
    let mut statements = Vec::with_capacity(locks.len());
    for lock in &locks {
        statements.push((client.prepare_cached(lock.text()).await?, &lock.ids));
    }
    let mut lookups = Vec::with_capacity(aliases.len());
    for (table, names) in &aliases {
        lookups.push((client.prepare_cached(&PostgresStatements::of(*table).holders).await?, names));
    }
    // The statements run in the order in which they are sent: the clock is read after all locks are taken. READ
    // COMMITTED makes each read after a wait for a lock see the newest rows. The level is set here and not for the
    // session, because a connection pooler may change session settings.
    let begin = client.batch_execute("BEGIN ISOLATION LEVEL READ COMMITTED");
    let turn = async {
        match turns.keys.is_empty() {
            true => Ok(()),
            false => client.query(&take_turns, &[&turns.keys, &turns.alone]).await.map(drop),
        }
    };
    let locked = try_join_all(statements.iter().map(async |(text, ids)| client.query(text, &[ids]).await));
    let held = try_join_all(lookups.iter().map(async |(text, names)| client.query(text, &[names]).await));
    let begun = async { try_join(begin, turn).await.map(drop) };
    let ((), locked, held, now) = try_join4(begun, locked, held, client.query_one(&now, &[])).await?;
    let mut rows = LockedBatchRows::default();
    for (lock, found) in locks.iter().zip(&locked) {
        for row in found {
            rows.stands_with(lock.table, row.try_get(0)?, row.try_get(1)?);
        }
    }
    for ((table, _), found) in aliases.iter().zip(&held) {
        for row in found {
            rows.is_held(*table, row.try_get(0)?, row.try_get(1)?);
        }
    }
    Ok((rows, Timestamp::from_millis(now.try_get(0)?)))
}
