//! Reads. Concurrent requests for rows are batched into one statement per table.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use countersign_domain::primitives::time::Timestamp;
use deadpool_postgres::{Object, Pool};
use futures_util::future::try_join_all;
use tokio::runtime::Runtime;
use tokio::sync::{Mutex, mpsc, oneshot};
use tokio::time::timeout;
use tokio_postgres::Error;
use tokio_postgres::types::ToSql;

use super::super::label::{Label, LabelledRow};
use super::super::row::{Facets, SealedRow, Table};
use super::super::sql::{LabelStatements, PostgresStatements, ReadStatements, SqlDialect};
use super::connect::{ANSWER_PATIENCE, PooledConnection, silent};
use super::failure::{database, is_lost};
use crate::preconditions::{before, beginning, beyond, can_be_asked};
use crate::{Cursor, Direction, LIST_ROWS_MAX, RowFilter, StoreError, write_queue};

/// The number of concurrent fetchers. While one waits for the database, new requests gather for the other.
const FETCHERS: usize = 2;

/// The limit of names per fetch.
const NAMES_MAX: usize = 1_024;

/// The limit of queued requests: a few fetches. Callers would give up before more could be answered.
const ASKS_MAX: usize = 16_384;

/// The name by which a row is requested.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum LookupKey {
    Id,
    Alias,
}

/// One requested name, and the channel to its caller.
pub(super) struct RowLookup {
    table: Table,
    by: LookupKey,
    name: String,
    answer: oneshot::Sender<Result<Option<SealedRow>, StoreError>>,
}

pub(super) struct PostgresReader(mpsc::Sender<RowLookup>);

impl PostgresReader {
    pub(super) fn new() -> (Self, mpsc::Receiver<RowLookup>) {
        let (asks, received) = mpsc::channel(ASKS_MAX);
        (Self(asks), received)
    }

    pub(super) async fn ask(&self, table: Table, by: LookupKey, name: &str) -> Result<Option<SealedRow>, StoreError> {
        if !can_be_asked(name) {
            return Ok(None);
        }
        let (answer, answered) = oneshot::channel();
        let ask = RowLookup { table, by, name: name.to_owned(), answer };
        self.0.try_send(ask).map_err(|error| match error {
            // Waiting for a free slot would hide the overload from the caller.
            mpsc::error::TrySendError::Full(_) => StoreError::Busy,
            mpsc::error::TrySendError::Closed(_) => write_queue::ended(),
        })?;
        answered.await.map_err(|_| write_queue::ended())?
    }
}

pub(super) fn start(runtime: &Runtime, pool: &Pool, asks: mpsc::Receiver<RowLookup>) {
    let asks = Arc::new(Mutex::new(asks));
    for _ in 0..FETCHERS {
        runtime.spawn(fetch_all(pool.clone(), Arc::clone(&asks)));
    }
}

async fn fetch_all(pool: Pool, asks: Arc<Mutex<mpsc::Receiver<RowLookup>>>) {
    let mut batch = Vec::with_capacity(NAMES_MAX);
    while asks.lock().await.recv_many(&mut batch, NAMES_MAX).await > 0 {
        let mut kinds: BTreeMap<(Table, LookupKey), Vec<RowLookup>> = BTreeMap::new();
        for ask in batch.drain(..) {
            kinds.entry((ask.table, ask.by)).or_default().push(ask);
        }
        let queries = kinds.iter().map(|((table, by), asks)| {
            let mut names: Vec<String> = asks.iter().map(|ask| ask.name.clone()).collect();
            names.sort_unstable();
            // Several callers may have requested the same row.
            names.dedup();
            ReadQuery::by_names(*table, *by, names)
        });
        let fetched = run(&pool, queries.collect(), decode).await;
        match fetched {
            Ok(fetched) => kinds.into_iter().zip(fetched).for_each(|(((_, by), asks), rows)| answer(by, asks, rows)),
            Err(error) => kinds.into_values().flatten().for_each(|ask| {
                let _ = ask.answer.send(Err(write_queue::alike(&error)));
            }),
        }
    }
}

fn answer(by: LookupKey, asks: Vec<RowLookup>, rows: Vec<SealedRow>) {
    let name = |row: &SealedRow| match by {
        LookupKey::Id => row.id.clone(),
        LookupKey::Alias => row.facets.alias.clone().unwrap_or_default(),
    };
    let rows: HashMap<String, SealedRow> = rows.into_iter().map(|row| (name(&row), row)).collect();
    for ask in asks {
        // The error is ignored: the caller has gone away.
        let _ = ask.answer.send(Ok(rows.get(&ask.name).cloned()));
    }
}

pub(super) struct ReadQuery {
    table: Table,
    text: &'static str,
    parameters: Vec<Box<dyn ToSql + Sync + Send>>,
}

impl ReadQuery {
    fn new(table: Table, text: &'static str) -> Self {
        Self { table, text, parameters: Vec::new() }
    }

    fn with(mut self, parameter: impl ToSql + Sync + Send + 'static) -> Self {
        self.parameters.push(Box::new(parameter));
        self
    }

    fn by_names(table: Table, by: LookupKey, names: Vec<String>) -> Self {
        let statements = PostgresStatements::of(table);
        let text = match by {
            LookupKey::Id => &statements.get,
            LookupKey::Alias => &statements.get_by_alias,
        };
        Self::new(table, text).with(names)
    }

    pub(super) fn by_ids(table: Table, ids: Vec<String>) -> Self {
        Self::by_names(table, LookupKey::Id, ids)
    }

    pub(super) fn last_of(table: Table, owner: &str) -> Self {
        Self::new(table, &ReadStatements::of(SqlDialect::Postgres, table).last_of).with(owner.to_owned())
    }

    pub(super) fn labelled(table: Table, word: &str, direction: Direction, after: Option<&Cursor>, limit: u32) -> Self {
        let reads = ReadStatements::of(SqlDialect::Postgres, table);
        let text = match direction {
            Direction::Forward => &reads.labelled,
            Direction::Backward => &reads.labelled_backward,
        };
        let (due, id) = beginning(direction, after);
        let query = Self::new(table, text).with(word.to_owned()).with(due).with(id.to_owned());
        query.with(i64::from(limit.min(LIST_ROWS_MAX)))
    }

    pub(super) fn labels(after: Option<&Label>, limit: u32) -> Self {
        let after = after.cloned().unwrap_or_else(Label::first);
        // The table does not matter, because labels of all tables are read alike.
        let query = Self::new(Table::Holds, &LabelStatements::of(SqlDialect::Postgres).list);
        let query = query.with(after.kept_in).with(after.word).with(after.due).with(after.id);
        query.with(i64::from(limit.min(LIST_ROWS_MAX)))
    }

    pub(super) fn by_alias_prefix(table: Table, prefix: &str, limit: u32) -> Self {
        let query = Self::new(table, &ReadStatements::of(SqlDialect::Postgres, table).alias_prefix);
        query.with(prefix.to_owned()).with(beyond(prefix)).with(i64::from(limit.min(LIST_ROWS_MAX)))
    }

    pub(super) fn list(table: Table, filter: RowFilter<'_>, after: Option<&Cursor>, limit: u32) -> Self {
        let reads = ReadStatements::of(SqlDialect::Postgres, table);
        let (due, id) = after.map_or((i64::MIN, String::new()), |cursor| (cursor.due, cursor.id.clone()));
        let query = match filter {
            RowFilter::All => Self::new(table, &reads.list_all),
            RowFilter::Owner(owner) => Self::new(table, &reads.list_owner).with(owner.to_owned()),
            RowFilter::OwnerByDue(owner) => Self::new(table, &reads.list_owner_due).with(owner.to_owned()).with(due),
            RowFilter::State(state) => Self::new(table, &reads.list_state).with(state.to_owned()).with(due),
            RowFilter::DueBy(state, by) => {
                Self::new(table, &reads.list_due).with(state.to_owned()).with(by.millis()).with(due)
            }
            RowFilter::Latest => {
                let (due, id) = before(after);
                let query = Self::new(table, &reads.list_latest).with(due).with(id.to_owned());
                return query.with(i64::from(limit.min(LIST_ROWS_MAX)));
            }
        };
        query.with(id).with(i64::from(limit.min(LIST_ROWS_MAX)))
    }
}

pub(super) async fn rows(pool: Pool, query: ReadQuery) -> Result<Vec<SealedRow>, StoreError> {
    Ok(run(&pool, vec![query], decode).await?.pop().unwrap_or_default())
}

/// Returns the rows of a query by label, each with the label's due time.
pub(super) async fn labelled(pool: Pool, query: ReadQuery) -> Result<Vec<LabelledRow>, StoreError> {
    let labelled: Decode<LabelledRow> = |table, row| Ok(LabelledRow { due: row.try_get(9)?, row: decode(table, row)? });
    Ok(run(&pool, vec![query], labelled).await?.pop().unwrap_or_default())
}

pub(super) async fn labels(pool: Pool, query: ReadQuery) -> Result<Vec<Label>, StoreError> {
    Ok(run(&pool, vec![query], label).await?.pop().unwrap_or_default())
}

/// Runs one query on a connection that the caller keeps.
pub(super) async fn page<T>(client: &Object, query: ReadQuery, decode: Decode<T>) -> Result<Vec<T>, StoreError> {
    let answered = timeout(ANSWER_PATIENCE, run_on(client, &[query], decode)).await.map_err(|_| silent())?;
    Ok(answered.map_err(|error| database(&error))?.pop().unwrap_or_default())
}

/// The decoder of a result row.
type Decode<T> = fn(Table, &tokio_postgres::Row) -> Result<T, Error>;

/// Returns the time of the database's clock.
pub(super) async fn now(pool: Pool) -> Result<Timestamp, StoreError> {
    let client = PooledConnection::take(&pool).await?;
    let row = client.query_one(NOW, &[]).await.map_err(|error| database(&error))?;
    let now = row.try_get(0).map(Timestamp::from_millis).map_err(|error| database(&error))?;
    client.give_back();
    Ok(now)
}

/// Returns the size of the database in bytes.
pub(super) async fn bytes(pool: Pool) -> Result<u64, StoreError> {
    let client = PooledConnection::take(&pool).await?;
    let row = client.query_one(BYTES, &[]).await.map_err(|error| database(&error))?;
    let bytes: i64 = row.try_get(0).map_err(|error| database(&error))?;
    client.give_back();
    Ok(bytes.unsigned_abs())
}

const BYTES: &str = "SELECT pg_database_size(current_database())";

/// Milliseconds since 1970 when the statement runs, not when its transaction began.
pub(super) const NOW: &str = "SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint";

/// Runs queries in a pipeline: all are sent before the first is answered. If the connection turns out to be lost,
/// another one is tried once.
async fn run<T>(pool: &Pool, queries: Vec<ReadQuery>, decode: Decode<T>) -> Result<Vec<Vec<T>>, StoreError> {
    let work = async {
        match run_once(pool, &queries, decode).await? {
            Err(error) if is_lost(&error) => run_once(pool, &queries, decode).await?.map_err(|error| database(&error)),
            done => done.map_err(|error| database(&error)),
        }
    };
    timeout(ANSWER_PATIENCE, work).await.unwrap_or_else(|_| Err(silent()))
}

async fn run_once<T>(
    pool: &Pool,
    queries: &[ReadQuery],
    decode: Decode<T>,
) -> Result<Result<Vec<Vec<T>>, Error>, StoreError> {
    let client = PooledConnection::take(pool).await?;
    let done = run_on(&client, queries, decode).await;
    // After an error the state of the connection is unknown, so it is closed.
    if done.is_ok() {
        client.give_back();
    }
    Ok(done)
}

async fn run_on<T>(client: &Object, queries: &[ReadQuery], decode: Decode<T>) -> Result<Vec<Vec<T>>, Error> {
    let mut prepared = Vec::with_capacity(queries.len());
    for query in queries {
        let parameters: Vec<&(dyn ToSql + Sync)> =
            query.parameters.iter().map(|it| -> &(dyn ToSql + Sync) { &**it }).collect();
        prepared.push((client.prepare_cached(query.text).await?, parameters));
    }
    let sent = prepared.iter().map(|(statement, parameters)| client.query(statement, parameters));
    let answers = try_join_all(sent).await?;
    let decoded = answers
        .iter()
        .zip(queries)
        .map(|(rows, query)| rows.iter().map(|row| decode(query.table, row)).collect::<Result<Vec<T>, Error>>());
    decoded.collect()
}

/// Decodes a row. The columns have the order of every statement.
pub(super) fn decode(table: Table, row: &tokio_postgres::Row) -> Result<SealedRow, Error> {
    let facets =
        Facets { alias: row.try_get(1)?, owner: row.try_get(2)?, state: row.try_get(3)?, due: row.try_get(4)? };
    Ok(SealedRow {
        table,
        id: row.try_get(0)?,
        facets,
        revision: row.try_get(5)?,
        body: row.try_get(6)?,
        key_id: row.try_get(7)?,
        mac: row.try_get(8)?,
    })
}

/// Decodes a label. All labels are in one table.
pub(super) fn label(_: Table, row: &tokio_postgres::Row) -> Result<Label, Error> {
    Ok(Label { kept_in: row.try_get(0)?, word: row.try_get(1)?, due: row.try_get(2)?, id: row.try_get(3)? })
}
