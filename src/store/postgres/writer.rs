//! Commits. Changes that wait together share a transaction of few round trips; each is still applied
//! wholly or refused on its own.

use std::slice;
use std::sync::Arc;

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
use crate::domain::primitives::time::Timestamp;
use crate::store::commit_notify::CommitNotifier;
use crate::store::preconditions;
use crate::store::preconditions::CheckTime;
use crate::store::write_queue;
use crate::store::write_queue::{BatchOutcomes, CommitPoint, QueuedChange};

/// How many commit beside each other: while one waits for the disk, the other prepares.
const WRITERS: usize = 2;

/// Enough that a statement's own cost no longer counts; more would only hold the locks longer.
const GROUP_CHANGES_MAX: usize = 256;

/// A change that waited longer was decided longer ago than clocks may differ.
const PATIENCE_MILLIS: u128 = CLOCK_SKEW_MILLIS_MAX.unsigned_abs() as u128;

/// What each writer works with.
#[derive(Clone)]
pub(super) struct PostgresWriter {
    pub(super) pool: Pool,
    pub(super) options: PostgresOptions,
    pub(super) bell: Arc<CommitNotifier>,
}

/// Why nothing of a group was committed.
enum PostgresBatchError {
    /// A statement failed and the transaction was undone: the changes deserve to be tried one by one.
    Undone(TransactionError),
    /// The connection was lost before the end: nothing happened, and another may do better.
    Lost(StoreError),
    /// No connection is to be had, or it was lost at the very end.
    Final(StoreError),
}

/// What went wrong in the middle of a transaction.
enum TransactionError {
    Refused(Error),
    /// It wrote another number of rows than it was given.
    Miscounted(Table),
}

impl From<Error> for TransactionError {
    fn from(error: Error) -> Self {
        Self::Refused(error)
    }
}

impl TransactionError {
    /// The outage that it is part of, which every change of the group would meet.
    fn outage(&self) -> Option<Outage> {
        match self {
            Self::Refused(error) => outage_of(error),
            Self::Miscounted(_) => None,
        }
    }

    /// What it is to the only change that met it.
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
    /// Starts as many as are of use.
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
            Err(PostgresBatchError::Undone(trouble)) if trouble.outage().is_some() => {
                write_queue::all_fail(group, &trouble.of_change(&group[0].change))
            }
            Err(PostgresBatchError::Undone(_)) => {
                let mut outcomes = Vec::with_capacity(group.len());
                for job in group {
                    // Too old to be accepted, and so no reason to let the next grow old as well.
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

    /// One transaction, tried once more where a broken connection shows before its end.
    async fn commit_together(&self, group: &[QueuedChange]) -> Result<BatchOutcomes, PostgresBatchError> {
        let work = async {
            match self.commit_once(group).await {
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
                // NOTIFY is part of the transaction: it is heard if and only if it commits.
                let end = format!("NOTIFY {CHANNEL}; COMMIT");
                (self.options.probe.0)(CommitPoint::Written);
                client.batch_execute(&end).await.map_err(|error| PostgresBatchError::Final(database(&error)))?;
                (self.options.probe.0)(CommitPoint::Committed);
                client.give_back();
                Ok(outcomes)
            }
            Err(TransactionError::Refused(error)) if is_lost(&error) => Err(PostgresBatchError::Lost(database(&error))),
            Err(trouble) => {
                let rolled_back = client.batch_execute("ROLLBACK").await.is_ok();
                match trouble.outage() {
                    // A session stays read-only for as long as it lives, or stays with a server that is no primary any more.
                    Some(Outage::ReadOnly) => drop(self.pool.retain(|_, _| false)),
                    _ if rolled_back => client.give_back(),
                    _ => {}
                }
                Err(PostgresBatchError::Undone(trouble))
            }
        }
    }

    /// Everything but the end: locks, checks, writes.
    async fn write(&self, client: &Object, group: &[QueuedChange]) -> Result<BatchOutcomes, TransactionError> {
        let (mut rows, now) = begin_and_lock(client, group).await?;
        (self.options.probe.0)(CommitPoint::Locked);
        let now = self.options.clock_offset.applied_to(now);
        let mut outcomes = Vec::with_capacity(group.len());
        for job in group {
            let verdict = preconditions::check(&job.change, CheckTime { now, waited: job.waited() }, &mut rows);
            if verdict.is_ok() {
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
        match writings.iter().zip(counts).find(|(writing, count)| writing.count() != *count) {
            Some((writing, _)) => Err(TransactionError::Miscounted(writing.table)),
            None => Ok(outcomes),
        }
    }
}

/// Puts and removes labels, one statement each and all sent before the first is answered: only rows that people search
/// bear any.
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

/// Begins, locks all rows of the group, and looks at them and at the clock: one round trip.
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
    // Sent in this order, and so run in this order: the clock is asked when all locks are had.
    // What is looked at after a turn was waited for has to be what it has become meanwhile. Said here, and not of the session,
    // which whoever shares connections out may change.
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
