//! Edits the database directly and compares the result of an audit and of `verify` with a stated outcome.
//!
//! The edits on a SQLite file with a small real history are:
//!
//! - every table × every column × {update, swap two}
//! - every table × {insert a row, delete a row, put a row back to an older sealed revision}
//!
//! On PostgreSQL there is one edit of each column. The outcomes are the same on both databases. The tables and columns
//! are read from the database, so a new one without an outcome fails here.

mod on_postgres;
mod resealed;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use countersign_domain::chain::denial::DenialCode;

use countersign_adapters::keyring::Keyring;
use countersign_service::audit::audit_with;
use countersign_service::error::Error;
use countersign_store::row::Table;
use countersign_store::sqlite::{SqliteOptions, SqliteStore};
use rusqlite::Connection;
use tempfile::TempDir;

use crate::lived::{self, ApprovedWrite, HistoryGateway, ask, live_through};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum EditOutcome {
    /// `audit` finds it.
    Found,
    /// It changes nothing, for this reason.
    Harmless(&'static str),
}

/// How verify takes the loss of a row that it needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum VerifyOutcome {
    /// `verify` refuses the writer, for every row of the thread.
    Refused,
    /// It does not look there; only `audit` does.
    NotAsked(&'static str),
}

/// Every column, with what becomes of an edit of it: the seal covers them all, in every table.
const COLUMNS: &[(&str, EditOutcome)] = &[
    ("id", EditOutcome::Found),
    ("alias", EditOutcome::Found),
    ("owner", EditOutcome::Found),
    ("state", EditOutcome::Found),
    ("due", EditOutcome::Found),
    ("revision", EditOutcome::Found),
    ("body", EditOutcome::Found),
    ("key_id", EditOutcome::Found),
    ("mac", EditOutcome::Found),
];

/// Every table, with what becomes of a deleted row, of an inserted one, and of the head's own at verify.
const TABLES: &[(Table, EditOutcome, VerifyOutcome)] = &[
    (Table::Gateway, EditOutcome::Found, VerifyOutcome::Refused),
    (Table::Flows, EditOutcome::Found, VerifyOutcome::Refused),
    (Table::Policies, EditOutcome::Found, VerifyOutcome::Refused),
    (Table::Amendments, EditOutcome::Found, VerifyOutcome::NotAsked("what judges is said by the flow's own row")),
    (Table::Interrupts, EditOutcome::Found, VerifyOutcome::NotAsked("what a host asserts lets nobody write")),
    (Table::Posts, EditOutcome::Found, VerifyOutcome::NotAsked("what a host asserts lets nobody write")),
    (Table::Threads, EditOutcome::Found, VerifyOutcome::Refused),
    (Table::Transitions, EditOutcome::Found, VerifyOutcome::Refused),
    (Table::Rejections, EditOutcome::Found, VerifyOutcome::NotAsked("what was rejected is in no state")),
    (
        Table::Steps,
        EditOutcome::Found,
        VerifyOutcome::NotAsked("it says what was done before, not what may be written"),
    ),
    (Table::Entries, EditOutcome::Found, VerifyOutcome::Refused),
    (Table::States, EditOutcome::Found, VerifyOutcome::Refused),
    (Table::Archives, EditOutcome::Found, VerifyOutcome::NotAsked("the head is never in one")),
    (Table::Whereabouts, EditOutcome::Found, VerifyOutcome::NotAsked("the head is never in an archive")),
    (
        Table::Holds,
        EditOutcome::Found,
        VerifyOutcome::NotAsked("a receipt is signed; how it came about is for an audit"),
    ),
    (Table::Receipts, EditOutcome::Found, VerifyOutcome::Refused),
    (Table::Writes, EditOutcome::Found, VerifyOutcome::NotAsked("the head's reservation stands in its thread's row")),
    (Table::Accounts, EditOutcome::Found, VerifyOutcome::NotAsked("people were asked before the receipt was signed")),
    (Table::Tokens, EditOutcome::Found, VerifyOutcome::Refused),
    (Table::Sessions, EditOutcome::Found, VerifyOutcome::NotAsked("a writer has none")),
    (Table::Links, EditOutcome::Found, VerifyOutcome::NotAsked("a writer has none")),
    (
        Table::Tries,
        EditOutcome::Harmless("then nobody waits for it any more"),
        VerifyOutcome::NotAsked("a writer has none"),
    ),
    (
        Table::Sightings,
        EditOutcome::Harmless("then nobody knows when that was"),
        VerifyOutcome::NotAsked("it decides nothing"),
    ),
    (Table::Passkeys, EditOutcome::Found, VerifyOutcome::NotAsked("people were asked before the receipt was signed")),
    (Table::Figures, EditOutcome::Found, VerifyOutcome::NotAsked("counts let nobody write")),
    (
        Table::Contacts,
        EditOutcome::Harmless("then they look for themselves"),
        VerifyOutcome::NotAsked("it decides nothing"),
    ),
    (
        Table::Letters,
        EditOutcome::Harmless("then they look for themselves"),
        VerifyOutcome::NotAsked("it decides nothing"),
    ),
    (
        Table::Marks,
        EditOutcome::Harmless("then the log is copied out once more"),
        VerifyOutcome::NotAsked("it decides nothing"),
    ),
    (
        Table::Delegations,
        EditOutcome::Found,
        VerifyOutcome::NotAsked("people were asked before the receipt was signed"),
    ),
    (
        Table::Answers,
        EditOutcome::Harmless("then a request that is sent again is carried out again"),
        VerifyOutcome::NotAsked("a key means nothing there"),
    ),
    (
        Table::EpisodeEvents,
        EditOutcome::Found,
        VerifyOutcome::NotAsked("what agents say of their run lets nobody write"),
    ),
    (Table::Imports, EditOutcome::Found, VerifyOutcome::NotAsked("nothing is written by a run that was imported")),
    (Table::ImportPieces, EditOutcome::Found, VerifyOutcome::NotAsked("nothing is written by a run that was imported")),
    (Table::Events, EditOutcome::Found, VerifyOutcome::Refused),
    (Table::Outbox, EditOutcome::Found, VerifyOutcome::NotAsked("what waits for the log is not what was signed")),
    (Table::Endpoints, EditOutcome::Found, VerifyOutcome::NotAsked("what is sent lets nobody write")),
    (Table::Lanes, EditOutcome::Found, VerifyOutcome::NotAsked("what is sent lets nobody write")),
    (
        Table::Deliveries,
        EditOutcome::Harmless(
            "old ones are forgotten; an event that waited is then not sent, and the log has it still",
        ),
        VerifyOutcome::NotAsked("what is sent lets nobody write"),
    ),
    (Table::Log, EditOutcome::Found, VerifyOutcome::NotAsked("the log repeats the events")),
];

/// One history, and a writer's token that can write its head. Every test works on a copy of it.
pub struct HistoryTemplate {
    folder: TempDir,
    token: String,
    ready: ApprovedWrite,
}

/// The one that all tests share that run at once.
static SHARED: Mutex<Weak<HistoryTemplate>> = Mutex::new(Weak::new());

impl HistoryTemplate {
    pub fn shared(runtime: &tokio::runtime::Runtime) -> Arc<Self> {
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        shared.upgrade().unwrap_or_else(|| {
            let made = Arc::new(runtime.block_on(Self::make()));
            *shared = Arc::downgrade(&made);
            made
        })
    }

    async fn make() -> Self {
        let lived_in = tempfile::tempdir().unwrap();
        let gateway = HistoryGateway::open(lived_in.path()).await;
        let (_, ready) = live_through(&gateway.service).await;
        let (_, token) = gateway.service.identity.add_token(&lived::writer()).await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        copy_all(lived_in.path(), folder.path());
        for name in ["countersign.db", "countersign.db-wal", "countersign.db-shm"] {
            std::fs::remove_file(folder.path().join(name)).unwrap();
        }
        // One file with everything in it, whatever the gateway still does to its own.
        let there = folder.path().join("countersign.db");
        let connection = Connection::open(lived_in.path().join("countersign.db")).unwrap();
        connection.execute("VACUUM INTO ?1", [there.to_str().unwrap()]).unwrap();
        Self { folder, token, ready }
    }

    pub fn edited(&self, edit: impl FnOnce(&Connection)) -> TempDir {
        let copy = self.copy();
        edit(&opened(copy.path()));
        copy
    }

    fn copy(&self) -> TempDir {
        let copy = tempfile::tempdir().unwrap();
        copy_all(self.folder.path(), copy.path());
        copy
    }
}

pub fn opened(folder: &Path) -> Connection {
    Connection::open(folder.join("countersign.db")).unwrap()
}

fn copy_all(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).unwrap() {
        let path: PathBuf = entry.unwrap().path();
        let there = to.join(path.file_name().unwrap());
        if path.is_dir() {
            std::fs::create_dir(&there).unwrap();
            copy_all(&path, &there);
        } else {
            std::fs::copy(&path, there).unwrap();
        }
    }
}

/// Returns the findings of an audit of that folder: `table id: finding`.
async fn found(folder: &Path) -> Vec<String> {
    let store = SqliteStore::open(folder.join("countersign.db"), SqliteOptions::default()).unwrap();
    let keyring = Keyring::open(&folder.join("keyring.json"), None).unwrap();
    let keys = keyring.current().unwrap();
    let now = countersign_adapters::clock::Clock::now(&countersign_adapters::clock::SystemClock);
    let archives = lived::archives::in_folder(folder);
    let report = audit_with(&store, Some(&archives), &keys, now).await.unwrap();
    report.findings.iter().map(|it| format!("{} {}: {}", it.table, it.id, it.finding)).collect()
}

/// Returns whether `verify` allows the writer in that folder.
async fn verifies(folder: &Path, original: &HistoryTemplate) -> Result<(), String> {
    let gateway = match tokio::spawn({
        let folder = folder.to_owned();
        async move { HistoryGateway::open(&folder).await }
    })
    .await
    {
        Ok(gateway) => gateway,
        Err(_) => return Err("the gateway does not open".to_owned()),
    };
    let token = gateway.service.identity.token_of(&original.token).await.map_err(|error| error.to_string())?;
    let ApprovedWrite { thread, transition, receipt } = &original.ready;
    let ask = ask(thread, *transition, Some(receipt.clone()), "w-edited");
    gateway.service.writes.verify(&token, &ask).await.map(drop).map_err(|error| match error {
        Error::Denied(code) => DenialCode::as_str(code).to_owned(),
        other => other.to_string(),
    })
}

fn tables_of(connection: &Connection) -> Vec<String> {
    let own = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name";
    let mut statement = connection.prepare(own).unwrap();
    statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

fn columns_of(connection: &Connection, table: &str) -> Vec<String> {
    let mut statement = connection.prepare(&format!("SELECT name FROM pragma_table_info('{table}')")).unwrap();
    statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

fn ids_of(connection: &Connection, table: Table) -> Vec<String> {
    let mut statement = connection.prepare(&format!("SELECT id FROM {} ORDER BY id", table.name())).unwrap();
    statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

/// Every table there may be, in order.
fn expected_tables() -> Vec<String> {
    let mut expected: Vec<String> = TABLES.iter().map(|it| it.0.name().to_owned()).collect();
    // Labels are an index of rows and no kind of row, so `TABLES` does not have them.
    expected.push("labels".to_owned());
    // Which migrations were applied: a gateway does not open on a list that is not its own.
    expected.push("schema_migrations".to_owned());
    expected.sort();
    expected
}

const NO_SEAL: &str = "zeroblob(32)";

/// The finding of an audit about an edited row, after the row's name.
const UNSEALED: &str =
    ": the row does not have the seal of this gateway: it was changed, or belongs to another keyring";

/// Changes the value slightly in a table's last row. A seal becomes one that no key made.
fn updated(table: &str, column: &str, no_seal: &str) -> String {
    let value = match column {
        "due" | "revision" => format!("{column} + 1"),
        "alias" => "coalesce(alias, '') || 'x'".to_owned(),
        "mac" => no_seal.to_owned(),
        "body" => "replace(body, '{', '{ ')".to_owned(),
        column => format!("{column} || 'x'"),
    };
    format!("UPDATE {table} SET {column} = {value} WHERE id = (SELECT max(id) FROM {table})")
}

/// A row that differs from another in its names alone.
fn inserted(table: &str) -> String {
    format!(
        "INSERT INTO {table} SELECT id || 'x', NULL, owner, state, due, revision, body, key_id, mac FROM {table} LIMIT 1"
    )
}

fn expect(outcome: EditOutcome, found: &[String], what: &str) {
    match outcome {
        EditOutcome::Found => assert!(!found.is_empty(), "{what}: nobody noticed"),
        EditOutcome::Harmless(reason) => {
            assert!(found.is_empty(), "{what} is harmless because {reason}, yet: {found:?}")
        }
    }
}

#[test]
fn every_table_and_column_of_the_database_has_a_stated_outcome() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let original = HistoryTemplate::shared(&runtime);
    let whole = original.copy();
    let connection = opened(whole.path());
    assert_eq!(tables_of(&connection), expected_tables());
    assert_eq!(TABLES.len(), Table::ALL.len());
    for table in Table::ALL {
        let stated: Vec<String> = COLUMNS.iter().map(|it| it.0.to_owned()).collect();
        assert_eq!(columns_of(&connection, table.name()), stated, "{}", table.name());
        let alone = matches!(table, Table::Gateway | Table::Marks | Table::Archives);
        assert!(ids_of(&connection, *table).len() >= if alone { 1 } else { 2 }, "{}", table.name());
    }
    assert_eq!(runtime.block_on(found(whole.path())), [""; 0], "the history itself is sound");
    assert_eq!(runtime.block_on(verifies(whole.path(), &original)), Ok(()), "and its head can be written");
}

/// The largest number of labels of one row in the history.
const LABELS_A_ROW_MAX: i64 = 12;

/// Every column of the labels: none is sealed, and an audit knows each from the rows that bear it.
const LABEL_COLUMNS: &[(&str, &str)] =
    &[("kept_in", "kept_in || 'x'"), ("label", "label || 'x'"), ("due", "due + 1"), ("id", "id || 'x'")];

/// Each changes one of them.
fn label_edits() -> Vec<String> {
    let mut edits: Vec<String> = Vec::new();
    // The last of each table that bears labels, and the one that says that all do.
    for row in
        ["(SELECT max(kept_in || label || due || id) FROM labels WHERE kept_in = 'holds')", "'labelsedition2holds'"]
    {
        let at = format!("WHERE kept_in || label || due || id = {row}");
        edits.extend(LABEL_COLUMNS.iter().map(|(column, value)| format!("UPDATE labels SET {column} = {value} {at}")));
        edits.push(format!("DELETE FROM labels {at}"));
    }
    edits.push("INSERT INTO labels SELECT kept_in, 'open group intruders', due, id FROM labels LIMIT 1".to_owned());
    edits.push("INSERT INTO labels SELECT kept_in, label, due, 'nobody' FROM labels LIMIT 1".to_owned());
    edits
}

#[test]
fn an_edited_label_is_found() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let original = HistoryTemplate::shared(&runtime);
    let whole = original.copy();
    let connection = opened(whole.path());
    let columns: Vec<String> = LABEL_COLUMNS.iter().map(|it| it.0.to_owned()).collect();
    assert_eq!(columns_of(&connection, "labels"), columns);
    for edit in label_edits() {
        let copy = original.edited(|it| assert_eq!(it.execute(&edit, []).unwrap(), 1, "{edit}"));
        expect(EditOutcome::Found, &runtime.block_on(found(copy.path())), &edit);
    }
}

#[test]
fn every_single_deleted_label_is_found() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let original = HistoryTemplate::shared(&runtime);
    let whole = original.copy();
    let connection = opened(whole.path());
    let count = "SELECT count(*) FROM labels WHERE kept_in <> 'labels'";
    let mut left: i64 = connection.query_row(count, [], |row| row.get(0)).unwrap();
    assert!(left > 20, "{left}");
    // The labels of a row are counted for that row alone, so one audit is enough for one label of each row.
    for nth in 1..=LABELS_A_ROW_MAX {
        let mut rows = BTreeSet::new();
        let copy = original.edited(|it| rows = without_nth_labels(it, nth));
        left -= i64::try_from(rows.len()).unwrap();
        let missing = rows.iter().map(|id| format!("labels {id}: a label is missing, so searches do not find the row"));
        let found = BTreeSet::from_iter(runtime.block_on(found(copy.path())));
        assert_eq!(found, missing.collect(), "label {nth} of each row");
    }
    assert_eq!(left, 0, "no row has more labels than LABELS_A_ROW_MAX");
}

/// Deletes the nth label of every row that has so many, and returns the ids of these rows.
fn without_nth_labels(connection: &Connection, nth: i64) -> BTreeSet<String> {
    let delete = "DELETE FROM labels WHERE (kept_in, label, due, id) IN (SELECT kept_in, label, due, id FROM
        (SELECT *, row_number() OVER (PARTITION BY kept_in, id ORDER BY label, due) AS nth FROM labels
            WHERE kept_in <> 'labels')
        WHERE nth = ?1) RETURNING id";
    let mut statement = connection.prepare(delete).unwrap();
    statement.query_map([nth], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

/// Edits rows of every table, and expects that an audit finds exactly these rows unsealed. `edit` returns the ids of the
/// rows that it edited in a table. The seal of a row depends on no other row, so one audit is enough for all tables.
fn edit_everywhere(original: &HistoryTemplate, what: &str, edit: impl Fn(&Connection, &str) -> Vec<String>) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let mut edited = BTreeSet::new();
    let copy = original.edited(|it| {
        for table in Table::ALL {
            let rows = edit(it, table.name());
            edited.extend(rows.iter().map(|id| format!("{} {id}{UNSEALED}", table.name())));
        }
    });
    let found = runtime.block_on(found(copy.path()));
    assert_eq!(edited, found.into_iter().filter(|it| it.ends_with(UNSEALED)).collect(), "{what}");
}

/// Runs an edit of one row, and returns that row's id.
fn edited_row(connection: &Connection, sql: &str) -> Vec<String> {
    let mut statement = connection.prepare(&format!("{sql} RETURNING id")).unwrap();
    let ids: Vec<String> = statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    assert_eq!(ids.len(), 1, "{sql}");
    ids
}

#[test]
fn an_updated_column_is_found_in_every_table() {
    let original = HistoryTemplate::shared(&tokio::runtime::Runtime::new().unwrap());
    for (column, outcome) in COLUMNS {
        assert_eq!(*outcome, EditOutcome::Found, "{column}");
        edit_everywhere(&original, column, |it, table| edited_row(it, &updated(table, column, NO_SEAL)));
    }
}

#[test]
fn two_swapped_values_are_found_in_every_table() {
    let original = HistoryTemplate::shared(&tokio::runtime::Runtime::new().unwrap());
    for (column, outcome) in COLUMNS {
        assert_eq!(*outcome, EditOutcome::Found, "{column}");
        edit_everywhere(&original, column, |it, table| swap(it, table, column));
    }
}

/// Exchanges two different values of a column, and returns the ids of both rows, or none if there are no two values.
fn swap(connection: &Connection, table: &str, column: &str) -> Vec<String> {
    use rusqlite::types::Value;
    let pick = format!("SELECT id, {column} FROM {table} ORDER BY id");
    let mut statement = connection.prepare(&pick).unwrap();
    let rows: Vec<(String, Value)> =
        statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap().map(Result::unwrap).collect();
    let (first, value) = &rows[0];
    let Some((second, other)) = rows.iter().find(|(_, it)| it != value) else { return Vec::new() };
    let away = match column {
        "due" | "revision" => Value::Integer(i64::MIN),
        "mac" => Value::Blob(Vec::new()),
        _ => Value::Text("away".to_owned()),
    };
    let set = format!("UPDATE {table} SET {column} = ?2 WHERE id = ?1");
    let named = |id: &String| if column == "id" { "away".to_owned() } else { id.clone() };
    assert_eq!(connection.execute(&set, (first, away)).unwrap(), 1);
    assert_eq!(connection.execute(&set, (second, value)).unwrap(), 1);
    assert_eq!(connection.execute(&set, (named(first), other)).unwrap(), 1);
    vec![first.clone(), second.clone()]
}

#[test]
fn an_inserted_row_is_found_in_every_table() {
    let original = HistoryTemplate::shared(&tokio::runtime::Runtime::new().unwrap());
    edit_everywhere(&original, "a row inserted", |it, table| edited_row(it, &inserted(table)));
}

#[test]
fn every_single_deleted_row_is_found() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let original = HistoryTemplate::shared(&runtime);
    let whole = original.copy();
    let connection = opened(whole.path());
    for (table, outcome, _) in TABLES {
        for id in ids_of(&connection, *table) {
            let name = table.name();
            let copy = original.edited(|it| {
                assert_eq!(it.execute(&format!("DELETE FROM {name} WHERE id = ?1"), [&id]).unwrap(), 1);
            });
            expect(*outcome, &runtime.block_on(found(copy.path())), &format!("{name} {id}: deleted"));
        }
    }
}

#[test]
fn a_writer_is_not_let_through_where_a_table_that_verify_needs_was_emptied_or_unsealed() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let original = HistoryTemplate::shared(&runtime);
    for (table, _, at_verify) in TABLES {
        let name = table.name();
        for edit in [format!("DELETE FROM {name}"), format!("UPDATE {name} SET mac = zeroblob(32)")] {
            let copy = original.edited(|it| {
                it.execute(&edit, []).unwrap();
            });
            let outcome = runtime.block_on(verifies(copy.path(), &original));
            match at_verify {
                VerifyOutcome::Refused => assert!(outcome.is_err(), "{edit}: let through"),
                VerifyOutcome::NotAsked(reason) => assert_eq!(outcome, Ok(()), "{edit}: {reason}"),
            }
        }
    }
}

#[test]
fn a_row_put_back_to_an_older_sealed_revision_is_found() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (folder, older) = runtime.block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let gateway = HistoryGateway::open(folder.path()).await;
        let older =
            lived::remembered::live_through_remembering(&gateway.service, &folder.path().join("countersign.db")).await;
        (folder, older)
    });
    let keyring = folder.path().join("keyring.json");
    let mut tried = BTreeSet::new();
    for (table, columns) in older {
        let copy = tempfile::tempdir().unwrap();
        std::fs::copy(&keyring, copy.path().join("keyring.json")).unwrap();
        for name in ["countersign.db", "countersign.db-wal"] {
            std::fs::copy(folder.path().join(name), copy.path().join(name)).unwrap();
        }
        let connection = Connection::open(copy.path().join("countersign.db")).unwrap();
        let sql = format!("REPLACE INTO {} VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)", table.name());
        connection.execute(&sql, rusqlite::params_from_iter(&columns)).unwrap();
        drop(connection);
        let what = format!("{} {:?}: put back", table.name(), columns[0]);
        let stated = TABLES.iter().find(|it| it.0 == table).unwrap().1;
        expect(stated, &runtime.block_on(found(copy.path())), &what);
        tried.insert(table);
    }
    let replaced = [
        Table::Gateway,
        Table::Flows,
        Table::Interrupts,
        Table::Threads,
        Table::Transitions,
        Table::Holds,
        Table::Receipts,
        Table::Writes,
        Table::Accounts,
        Table::Tokens,
        Table::Sessions,
        Table::Links,
        Table::Passkeys,
        Table::Figures,
        Table::Marks,
        Table::Delegations,
    ];
    assert_eq!(tried, replaced.into_iter().collect(), "every table whose rows are ever replaced");
}
