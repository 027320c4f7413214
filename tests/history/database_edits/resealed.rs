//! Edits by an attacker who has the row key as well as the database. Every leaf of every kind of row is changed and
//! sealed again, and rows are removed or sealed at another revision. The audit trusts no row, so it finds these edits
//! too. Every finding of an audit occurs here at least once.

mod attempts;
mod crafted;
mod kinds;
mod others;
mod unseen;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use countersign_domain::chain::entry::Entry;
use countersign_domain::chain::jws::{self, TokenType};
use countersign_domain::chain::statement::Statement;
use countersign_domain::keys::{KeyUse, Keys};
use countersign_domain::threads::archive::{Archive, ArchiveContent, ArchivedLocation};
use countersign_domain::threads::thread::Thread;
use countersign_domain::threads::transition::{ChainRow, Transition};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use countersign_adapters::archives::Archives;
use countersign_adapters::clock::{Clock as _, SystemClock};
use countersign_adapters::keyring::Keyring;
use countersign_service::audit::audit_with;
use countersign_store::record::Record;
use countersign_store::records::UnsequencedEvent;
use countersign_store::row::{SealedRow, Table};
use countersign_store::sqlite::{SqliteOptions, SqliteStore};
use rusqlite::{Connection, params};
use serde_json::{Value, json};
use tempfile::TempDir;

use attempts::asked_again;
use crafted::{amended, another_request, lifted, other_grounds, put_together, signed_again};
use kinds::{FORGOTTEN, KINDS, UNCOUNTED, seal_of, sealed};
use others::{others, places};
use unseen::UNSEEN;

use crate::lived::{self, HistoryGateway, live_through};

/// Longer than a writer's lease, shorter than a receipt's life.
const LAPSED: Duration = Duration::from_secs(120);

/// Rows of one table in one state that are taken out and renumbered: each costs an audit.
const EACH_MAX: u32 = 2;
/// Events of threads and outside of them, first and later ones, are all among so many.
const EVENTS_MAX: u32 = 60;

struct StoredRow {
    id: String,
    /// Each kind is edited once. Ids are random, so the order of rows cannot select them.
    kind: String,
    revision: i64,
    body: Value,
}

fn rows(connection: &Connection, table: Table) -> Vec<StoredRow> {
    let sql = format!("SELECT id, state, revision, body FROM {} ORDER BY id", table.name());
    let mut statement = connection.prepare(&sql).unwrap();
    let read = |row: &rusqlite::Row<'_>| {
        let body: String = row.get(3)?;
        let body: Value = serde_json::from_str(&body).unwrap();
        // A transition whose values are in an archive is held against its file.
        let kind = format!("{} {} {}", row.get::<_, String>(1)?, body["statement"]["type"], body["values"]);
        Ok(StoredRow { id: row.get(0)?, kind, revision: row.get(2)?, body })
    };
    statement.query_map([], read).unwrap().map(Result::unwrap).collect()
}

/// A database that the test edits, and the audit that runs after each edit.
struct ResealHarness {
    runtime: tokio::runtime::Runtime,
    store: SqliteStore,
    keys: std::sync::Arc<Keys>,
    connection: Connection,
    archives: Archives,
    said: BTreeSet<String>,
}

impl ResealHarness {
    fn on(folder: &Path) -> Self {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let store = SqliteStore::open(folder.join("countersign.db"), SqliteOptions::default()).unwrap();
        let keys = Keyring::open(&folder.join("keyring.json"), None).unwrap().current().unwrap();
        let connection = Connection::open(folder.join("countersign.db")).unwrap();
        let archives = lived::archives::in_folder(folder);
        Self { runtime, store, keys, connection, archives, said: BTreeSet::new() }
    }

    /// The same database once more, in a folder that lasts as long.
    fn on_a_copy_of(bench: &Self, folder: &Path) -> (Self, TempDir) {
        let copy = tempfile::tempdir().unwrap();
        let file = copy.path().join("countersign.db");
        bench.connection.execute("VACUUM INTO ?1", [file.to_str().unwrap()]).unwrap();
        std::fs::copy(folder.join("keyring.json"), copy.path().join("keyring.json")).unwrap();
        // These tests change no archive file, so the copy can share the archives.
        (Self { archives: bench.archives.clone(), ..Self::on(copy.path()) }, copy)
    }

    /// A row of that table for which this holds.
    fn pick(&self, table: Table, fits: impl Fn(&StoredRow) -> bool) -> StoredRow {
        rows(&self.connection, table).into_iter().find(|it| fits(it)).expect("the history has such a row")
    }

    /// Adds a row, and expects this finding.
    fn beside(&mut self, table: Table, row: &SealedRow, finding: &str) {
        let found = self.with(table, None, Some(row)).expect(finding);
        assert!(found.iter().any(|it| it.ends_with(finding)), "{finding}: {found:#?}");
    }

    /// Replaces a row, and expects this finding.
    fn instead(&mut self, table: Table, kept: &StoredRow, body: &Value, finding: &str) {
        let key = std::sync::Arc::clone(&self.keys);
        let row = seal_of(table)(key.row(), body, kept.revision).unwrap();
        let found = self.with(table, Some(&kept.id), Some(&row)).unwrap();
        assert!(found.iter().any(|it| it.ends_with(finding)), "{finding}: {found:#?}");
    }

    fn findings(&mut self) -> Vec<String> {
        let now = SystemClock.now().plus(LAPSED);
        let auditing = audit_with(&self.store, Some(&self.archives), &self.keys, now);
        let report = self.runtime.block_on(auditing).unwrap();
        self.said.extend(report.findings.iter().map(|it| it.finding.clone()));
        report.findings.iter().map(|it| format!("{} {}: {}", it.table, it.id, it.finding)).collect()
    }

    /// Returns the findings while one row replaces the other. `None` means that the database refuses the row.
    fn with(&mut self, table: Table, out: Option<&str>, put: Option<&SealedRow>) -> Option<Vec<String>> {
        let taken = self.edit(table, out, put);
        let found = taken.then(|| self.findings());
        self.undo(table, out, put.filter(|_| taken));
        found
    }

    fn edit(&mut self, table: Table, out: Option<&str>, put: Option<&SealedRow>) -> bool {
        self.connection.execute_batch("SAVEPOINT edit").unwrap();
        let name = table.name();
        if let Some(id) = out {
            let keep = format!("CREATE TEMP TABLE old_{name} AS SELECT * FROM {name} WHERE id = ?1");
            self.connection.execute(&keep, [id]).unwrap();
            self.connection.execute(&format!("DELETE FROM {name} WHERE id = ?1"), [id]).unwrap();
        }
        let taken = put.is_none_or(|row| {
            let sql = format!("INSERT INTO {name} VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)");
            let facets = &row.facets;
            let row = params![
                row.id,
                facets.alias,
                facets.owner,
                facets.state,
                facets.due,
                row.revision,
                row.body,
                row.key_id,
                row.mac
            ];
            self.connection.execute(&sql, row).is_ok()
        });
        self.connection.execute_batch("RELEASE edit").unwrap();
        taken
    }

    fn undo(&mut self, table: Table, out: Option<&str>, put: Option<&SealedRow>) {
        let name = table.name();
        if let Some(row) = put {
            self.connection.execute(&format!("DELETE FROM {name} WHERE id = ?1"), [&row.id]).unwrap();
        }
        if out.is_some() {
            let back = format!("INSERT INTO {name} SELECT * FROM old_{name}; DROP TABLE old_{name}");
            self.connection.execute_batch(&back).unwrap();
        }
    }
}

/// A place in a row, and what that row is sealed as with something else there.
struct Alteration {
    table: Table,
    id: String,
    shape: String,
    row: SealedRow,
}

/// Every place of every kind of row, in each state of it, once.
fn alterations(bench: &ResealHarness) -> Vec<Alteration> {
    let key = bench.keys.row();
    let mut all = Vec::new();
    for (table, seal) in KINDS {
        let mut tried = BTreeSet::new();
        for kept in rows(&bench.connection, *table) {
            let whole = seal(key, &kept.body, kept.revision).unwrap();
            let mut found = Vec::new();
            places(&kept.body, "", table.name(), &mut found);
            for (pointer, shape) in found {
                if !tried.insert((kept.kind.clone(), shape.clone())) {
                    continue;
                }
                let other = others(kept.body.pointer(&pointer).unwrap()).into_iter().find_map(|other| {
                    let mut body = kept.body.clone();
                    *body.pointer_mut(&pointer).unwrap() = other;
                    seal(key, &body, kept.revision).filter(|it| it.body != whole.body)
                });
                all.extend(other.map(|row| Alteration { table: *table, id: kept.id.clone(), shape, row }));
            }
        }
    }
    all
}

/// Marks the approval under a head as revoked without an event, and removes that mark where an event exists.
fn taken_back_otherwise(bench: &mut ResealHarness) {
    const FINDING: &str = "the row and its events disagree on whether the approval of the head was revoked";
    let kept = bench.pick(Table::Threads, |it| it.body["head"]["usage"]["state"] == "unused");
    let mut body = kept.body.clone();
    body["taken_back"] = json!(true);
    bench.instead(Table::Threads, &kept, &body, FINDING);
    let kept = bench.pick(Table::Threads, |it| it.body["taken_back"] == true);
    let mut body = kept.body.clone();
    body["taken_back"] = json!(false);
    bench.instead(Table::Threads, &kept, &body, FINDING);
}

/// The shapes that may be altered unseen. Each alteration costs an audit, and all of them most of what the tests
/// cost: every core takes its share, on a copy of its own.
fn unseen(bench: &mut ResealHarness, folder: &Path) -> BTreeSet<String> {
    let all = alterations(bench);
    let next = AtomicUsize::new(0);
    let take = |bench: &mut ResealHarness| {
        let mut unseen = BTreeSet::new();
        while let Some(it) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
            if bench.with(it.table, Some(&it.id), Some(&it.row)).is_some_and(|it| it.is_empty()) {
                unseen.insert(it.shape.clone());
            }
        }
        unseen
    };
    let helpers = std::thread::available_parallelism().map_or(0, |it| it.get() - 1);
    let mut copies: Vec<_> = (0..helpers).map(|_| ResealHarness::on_a_copy_of(bench, folder)).collect();
    let shares: Vec<_> = std::thread::scope(|scope| {
        let running: Vec<_> = copies.iter_mut().map(|(it, _)| scope.spawn(|| take(it))).collect();
        let own = take(bench);
        running.into_iter().map(|it| it.join().unwrap()).chain([own]).collect()
    });
    for (copy, _) in copies {
        bench.said.extend(copy.said);
    }
    shares.into_iter().flatten().collect()
}

fn removed_and_renumbered(bench: &mut ResealHarness) -> BTreeSet<&'static str> {
    let mut uncounted = BTreeSet::new();
    let key = std::sync::Arc::clone(&bench.keys);
    for (table, seal) in KINDS {
        let mut tried: BTreeMap<String, u32> = BTreeMap::new();
        for kept in rows(&bench.connection, *table) {
            let turn = tried.entry(kept.kind.clone()).or_default();
            *turn += 1;
            if *turn > if *table == Table::Events { EVENTS_MAX } else { EACH_MAX } {
                continue;
            }
            let found = bench.with(*table, Some(&kept.id), None).unwrap();
            let missed = FORGOTTEN.contains(table) || !found.is_empty();
            assert!(missed, "{} {}: taken out", table.name(), kept.id);
            if *table == Table::Outbox {
                continue;
            }
            let row = seal(key.row(), &kept.body, kept.revision + 1).unwrap();
            let found = bench.with(*table, Some(&kept.id), Some(&row)).unwrap();
            if found.is_empty() {
                uncounted.insert(table.name());
            }
        }
    }
    uncounted
}

/// A gateway that has not been started since there are labels: its rows bear none yet.
fn unlabelled(bench: &mut ResealHarness) {
    let moved = |bench: &ResealHarness, by: i64| {
        let update = "UPDATE labels SET due = due + ?1 WHERE kept_in = 'labels'";
        assert_eq!(bench.connection.execute(update, params![by]).unwrap(), 1);
    };
    moved(bench, -1);
    let found = bench.findings();
    assert!(found.iter().any(|it| it.contains("the rows have no labels yet")), "{found:#?}");
    moved(bench, 1);
}

/// Every sentence that the audit's source has, up to where something is put in. Damage to the file itself is for
/// `tests/api/faults/audits.rs`: rows that are sealed again leave the file sound.
fn sentences() -> BTreeSet<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/service/src/audit");
    let mut all = BTreeSet::new();
    let files = std::fs::read_dir(folder).unwrap().map(|it| it.unwrap().path());
    for file in files.filter(|it| !it.ends_with("damages.rs")) {
        let text = std::fs::read_to_string(file).unwrap();
        for line in text.lines().filter(|it| !it.trim_start().starts_with("//")) {
            for literal in line.split('"').skip(1).step_by(2).filter(|it| it.contains(' ')) {
                all.insert(literal.split('{').next().unwrap().trim_end().to_owned());
            }
        }
    }
    all
}

#[test]
fn whatever_is_changed_and_sealed_again_is_found_and_every_finding_is_made_once() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let gateway = HistoryGateway::open(folder.path()).await;
        live_through(&gateway.service).await;
        // The lease of the one open write expires, and an event records it.
        gateway.clock.0.set_millis(LAPSED.as_millis().try_into().unwrap());
        countersign::worker::expire_leases::run_once(&gateway.service).await.unwrap();
        assert!(
            countersign::worker::escalate::run_once(&gateway.service).await.unwrap() > 0,
            "a review waits for long"
        );
    });
    drop(runtime);
    let mut bench = ResealHarness::on(folder.path());
    assert_eq!(bench.findings(), [""; 0], "the history itself is sound");
    let uncounted = removed_and_renumbered(&mut bench);
    another_request(&mut bench);
    put_together(&mut bench);
    asked_again(&mut bench);
    other_grounds(&mut bench);
    amended(&mut bench);
    lifted(&mut bench);
    unlabelled(&mut bench);
    signed_again(&mut bench);
    taken_back_otherwise(&mut bench);
    let unseen = unseen(&mut bench, folder.path());
    assert_eq!(bench.findings(), [""; 0], "and everything was put back");
    let stated: Vec<&str> = UNSEEN.iter().map(|it| it.0).collect();
    let unsaid: Vec<String> =
        sentences().into_iter().filter(|it| !bench.said.iter().any(|said| said.starts_with(it))).collect();
    assert_eq!(uncounted.into_iter().collect::<Vec<_>>(), UNCOUNTED);
    assert_eq!(unseen.into_iter().collect::<Vec<_>>(), stated);
    assert_eq!(unsaid, [""; 0]);
}
