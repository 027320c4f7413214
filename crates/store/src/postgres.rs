//! The store on PostgreSQL, for several gateways on one database. Concurrent reads and changes are batched.

mod batch;
mod connect;
mod failure;
mod listen;
mod reader;
mod walk;
mod writer;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use countersign_adapters::clock::ClockOffset;
use countersign_domain::primitives::time::Timestamp;
use deadpool_postgres::Pool;
use tokio::runtime::Runtime;
use tokio::sync::mpsc;
use tokio_postgres::Client;

use super::change::ChangeSet;
use super::commit_notify::CommitNotifier;
use super::label::{Label, LabelledRow};
pub use super::migrate::OpenError;
use super::row::{SealedRow, Table};
use super::write_queue;
use super::write_queue::WriteQueue;
pub use super::write_queue::{CommitPoint, CommitProbe};
use super::{Cursor, Direction, LeaderLock, LeaderTask, RowFilter, ScanPage, Store, StoreError, preconditions};
use connect::{PostgresAddress, WATCHED};
use failure::database;
use reader::{LookupKey, PostgresReader, ReadQuery};
use writer::PostgresWriter;

/// The number of threads of the store. It has its own threads, so it works under any runtime and does not depend on the
/// life of one.
const THREADS: usize = 2;

/// The number of pages that a scan reads ahead. Each may contain a thousand full states, so more would use too much
/// memory.
const PAGES_AHEAD: usize = 1;

/// Returns the key of a leader's advisory lock.
const fn lock(duty: LeaderTask) -> i64 {
    i64::from_be_bytes(match duty {
        LeaderTask::Sequencing => *b"csignseq",
        LeaderTask::Sending => *b"csignsnd",
        LeaderTask::Copying => *b"csigncpy",
        LeaderTask::Mailing => *b"csignmai",
        LeaderTask::Archiving => *b"csignarc",
    })
}

/// The handling of a database with missing migrations.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum MigrationMode {
    /// Missing migrations are applied.
    #[default]
    Apply,
    /// The database is refused without a change.
    Check,
}

/// Options of the store. Apart from `authority` and `migrations`, only tests change them.
#[derive(Clone, Debug)]
pub struct PostgresOptions {
    /// An additional trusted CA for the server's certificate, as PEM.
    pub authority: Option<Vec<u8>>,
    pub migrations: MigrationMode,
    /// The offset of the store's time from the database's clock.
    pub clock_offset: ClockOffset,
    /// The time that a change waits for locked rows.
    pub lock_wait: Duration,
    /// A callback at each point of a commit.
    pub probe: CommitProbe,
}

impl Default for PostgresOptions {
    fn default() -> Self {
        Self {
            authority: None,
            migrations: MigrationMode::default(),
            clock_offset: ClockOffset::default(),
            lock_wait: connect::LOCK_WAIT,
            probe: CommitProbe::default(),
        }
    }
}

/// The store on a PostgreSQL database.
pub struct PostgresStore {
    queue: WriteQueue,
    reader: PostgresReader,
    pool: Pool,
    address: PostgresAddress,
    bell: Arc<CommitNotifier>,
    clock_offset: ClockOffset,
    engine: PostgresRuntime,
}

/// The address is omitted, because it may contain a password.
impl std::fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PostgresStore").field("database", &self.address.database()).finish_non_exhaustive()
    }
}

impl PostgresStore {
    /// Connects to a `postgres://` URL and applies missing migrations.
    pub async fn open(url: &str, options: PostgresOptions) -> Result<Self, OpenError> {
        let address = PostgresAddress::read(url, options.authority.as_deref())?;
        let engine = PostgresRuntime::start()?;
        let bell = Arc::new(CommitNotifier::new());
        let pool = connect::pool(&address, options.lock_wait)?;
        let (queue, jobs) = WriteQueue::new();
        let (reader, asks) = PostgresReader::new();
        match options.migrations {
            MigrationMode::Apply => engine.run(connect::migrate(address.clone())).await??,
            MigrationMode::Check => engine.run(connect::check_migrations(address.clone())).await??,
        }
        // Without this, a wrong password would only be noticed by the first request.
        engine.run(connect::warm(pool.clone())).await??;
        let writer = PostgresWriter { pool: pool.clone(), options: options.clone(), bell: Arc::clone(&bell) };
        writer.start(engine.runtime(), jobs);
        reader::start(engine.runtime(), &pool, asks);
        engine.runtime().spawn(listen::forever(address.clone(), Arc::clone(&bell)));
        Ok(Self { queue, reader, pool, address, bell, clock_offset: options.clock_offset, engine })
    }

    async fn rows(&self, query: ReadQuery) -> Result<Vec<SealedRow>, StoreError> {
        self.engine.run(reader::rows(self.pool.clone(), query)).await?
    }
}

#[async_trait]
impl Store for PostgresStore {
    async fn commit(&self, change: ChangeSet) -> Result<(), StoreError> {
        // Checked before queuing, so an invalid change cannot fail the group that it would share.
        preconditions::well_formed(&change)?;
        self.queue.commit(change).await
    }

    async fn get(&self, table: Table, id: &str) -> Result<Option<SealedRow>, StoreError> {
        self.reader.ask(table, LookupKey::Id, id).await
    }

    async fn get_by_alias(&self, table: Table, alias: &str) -> Result<Option<SealedRow>, StoreError> {
        self.reader.ask(table, LookupKey::Alias, alias).await
    }

    async fn get_many(&self, table: Table, ids: &[String]) -> Result<Vec<SealedRow>, StoreError> {
        preconditions::few_enough(ids)?;
        // Ids that no row can have would make PostgreSQL refuse the statement.
        let ids = ids.iter().filter(|id| preconditions::can_be_asked(id)).cloned().collect();
        self.rows(ReadQuery::by_ids(table, ids)).await
    }

    async fn list(
        &self,
        table: Table,
        filter: RowFilter<'_>,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Vec<SealedRow>, StoreError> {
        if !preconditions::can_be_listed(table, filter, after)? {
            return Ok(Vec::new());
        }
        self.rows(ReadQuery::list(table, filter, after, limit)).await
    }

    async fn labelled(
        &self,
        table: Table,
        word: &str,
        direction: Direction,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Vec<LabelledRow>, StoreError> {
        if !preconditions::can_be_labelled(table, word, after)? {
            return Ok(Vec::new());
        }
        let query = ReadQuery::labelled(table, word, direction, after, limit);
        self.engine.run(reader::labelled(self.pool.clone(), query)).await?
    }

    async fn labels(&self, after: Option<&Label>, limit: u32) -> Result<Vec<Label>, StoreError> {
        let query = ReadQuery::labels(after, limit);
        self.engine.run(reader::labels(self.pool.clone(), query)).await?
    }

    async fn walk(&self, meet: &mut (dyn FnMut(ScanPage) + Send)) -> Result<(), StoreError> {
        let (pages, mut met) = mpsc::channel(PAGES_AHEAD);
        let walk = self.engine.run(walk::walk(self.pool.clone(), pages));
        let meeting = async {
            while let Some(page) = met.recv().await {
                meet(page);
            }
        };
        // Reading and processing run concurrently, so the snapshot is held for less time.
        tokio::join!(walk, meeting).0?
    }

    async fn by_alias_prefix(&self, table: Table, prefix: &str, limit: u32) -> Result<Vec<SealedRow>, StoreError> {
        if !preconditions::can_be_asked(prefix) {
            return Ok(Vec::new());
        }
        self.rows(ReadQuery::by_alias_prefix(table, prefix, limit)).await
    }

    async fn last_of(&self, table: Table, owner: &str) -> Result<Option<SealedRow>, StoreError> {
        if !preconditions::can_have_last(table, owner)? {
            return Ok(None);
        }
        Ok(self.rows(ReadQuery::last_of(table, owner)).await?.pop())
    }

    async fn now(&self) -> Result<Timestamp, StoreError> {
        let now = self.engine.run(reader::now(self.pool.clone())).await??;
        Ok(self.clock_offset.applied_to(now))
    }

    async fn bytes(&self) -> Result<Option<u64>, StoreError> {
        self.engine.run(reader::bytes(self.pool.clone())).await?.map(Some)
    }

    async fn take(&self, duty: LeaderTask) -> Result<Option<Box<dyn LeaderLock>>, StoreError> {
        let lock = self.engine.run(try_lock(self.address.clone(), lock(duty))).await??;
        Ok(lock.map(|it| -> Box<dyn LeaderLock> { Box::new(it) }))
    }

    fn queued(&self) -> usize {
        self.queue.len()
    }

    async fn changed(&self, patience: Duration) {
        self.bell.wait(patience).await;
    }
}

/// An advisory lock on its own connection. The server releases it when the connection ends for any reason.
struct AdvisoryLock(Client);

#[async_trait]
impl LeaderLock for AdvisoryLock {
    fn stands(&self) -> bool {
        !self.0.is_closed()
    }

    // The error is ignored: if the unlock fails, the connection fails too, and its lock ends with it.
    async fn leave(self: Box<Self>) {
        let _ = self.0.query_one("SELECT pg_advisory_unlock_all()", &[]).await;
    }
}

async fn try_lock(address: PostgresAddress, lock: i64) -> Result<Option<AdvisoryLock>, StoreError> {
    let (client, connection) = address.connect().await.map_err(|error| database(&error))?;
    // The task ends when the client is dropped. If the server ends the connection earlier, another gateway can take the
    // lock.
    tokio::spawn(connection);
    client.batch_execute(WATCHED).await.map_err(|error| database(&error))?;
    let locked = client.query_one("SELECT pg_try_advisory_lock($1)", &[&lock]).await;
    let locked = locked.and_then(|row| row.try_get(0)).map_err(|error| database(&error))?;
    Ok(if locked { Some(AdvisoryLock(client)) } else { None })
}

/// The runtime for connections to the database.
struct PostgresRuntime(Option<Runtime>);

impl PostgresRuntime {
    fn start() -> Result<Self, StoreError> {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = builder.worker_threads(THREADS).thread_name("postgres").enable_all().build();
        runtime.map(|it| Self(Some(it))).map_err(|error| StoreError::Database(format!("no threads: {error}")))
    }

    fn runtime(&self) -> &Runtime {
        self.0.as_ref().expect("it is there until the store is dropped")
    }

    async fn run<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> Result<T, StoreError> {
        self.runtime().spawn(work).await.map_err(|_| write_queue::ended())
    }
}

/// A runtime must not be dropped in an asynchronous context, but the store is. No task waits for the runtime any more.
impl Drop for PostgresRuntime {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}
