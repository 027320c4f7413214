//! Whoever has the row key besides the database: every leaf of every kind of row is changed and sealed again, rows
//! are taken out and sealed at another revision. The audit believes no row, so it finds these
//! too; and each thing that it can say is said here at least once.

mod crafted;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use countersign::archives::Archives;
use countersign::clock::{Clock as _, SystemClock};
use countersign::domain::account::{Account, OneTimeLink, Session, Token};
use countersign::domain::amendment::Amendment;
use countersign::domain::archive::{Archive, Content, Whereabouts};
use countersign::domain::chain::entry::Entry;
use countersign::domain::chain::jws::{self, Typ};
use countersign::domain::chain::statement::Statement;
use countersign::domain::contact::{Contact, Letter};
use countersign::domain::delegation::Delegation;
use countersign::domain::endpoint::delivery::Delivery;
use countersign::domain::endpoint::{Endpoint, Lane};
use countersign::domain::episode::imported::{Imported, Piece};
use countersign::domain::episode::posted::Posted as EpisodeEvent;
use countersign::domain::event::Event;
use countersign::domain::flow::{Flow, Gateway as GatewayRow, PolicyRow, ReceiptRow};
use countersign::domain::interrupt::{Interrupt, Posted};
use countersign::domain::keys::{KeyUse, Keys, RowKey};
use countersign::domain::passkey::Passkey;
use countersign::domain::repeat::KeptAnswer;
use countersign::domain::review::Hold;
use countersign::domain::step::StepRow;
use countersign::domain::thread::Thread;
use countersign::domain::transition::{ChainRow, Rejection, StateRow, Transition};
use countersign::domain::tries::Tries;
use countersign::domain::write::Write;
use countersign::keyring::Keyring;
use countersign::service::audit::audit_with;
use countersign::store::record::Record;
use countersign::store::records::{InsightRow, LogMark, LogRow, Pending, Sighting};
use countersign::store::row::{Row, Table};
use countersign::store::sqlite::{SqliteOptions, SqliteStore};
use rusqlite::{Connection, params};
use serde_json::{Value, json};
use tempfile::TempDir;

use crafted::{amended, another_request, lifted, put_together, signed_again};

use crate::history::{self, Gateway, live_through};

/// Longer than a writer's lease, shorter than a receipt's life.
const LAPSED: Duration = Duration::from_secs(120);

/// Rows of one table in one state that are taken out and renumbered: each costs an audit.
const EACH_MAX: u32 = 2;
/// Events of threads and outside of them, first and later ones, are all among so many.
const EVENTS_MAX: u32 = 60;

type Seal = fn(&RowKey, &Value, i64) -> Option<Row>;

fn sealed<R: Record>(key: &RowKey, body: &Value, revision: i64) -> Option<Row> {
    let record: R = serde_json::from_value(body.clone()).ok()?;
    record.seal(key, revision).ok()
}

const KINDS: &[(Table, Seal)] = &[
    (Table::Gateway, sealed::<GatewayRow>),
    (Table::Flows, sealed::<Flow>),
    (Table::Policies, sealed::<PolicyRow>),
    (Table::Amendments, sealed::<Amendment>),
    (Table::Interrupts, sealed::<Interrupt>),
    (Table::Posts, sealed::<Posted>),
    (Table::Threads, sealed::<Thread>),
    (Table::Transitions, sealed::<Transition>),
    (Table::Rejections, sealed::<Rejection>),
    (Table::Steps, sealed::<StepRow>),
    (Table::Entries, sealed::<ChainRow>),
    (Table::States, sealed::<StateRow>),
    (Table::Archives, sealed::<Archive>),
    (Table::Whereabouts, sealed::<Whereabouts>),
    (Table::Holds, sealed::<Hold>),
    (Table::Receipts, sealed::<ReceiptRow>),
    (Table::Writes, sealed::<Write>),
    (Table::Accounts, sealed::<Account>),
    (Table::Tokens, sealed::<Token>),
    (Table::Sessions, sealed::<Session>),
    (Table::Links, sealed::<OneTimeLink>),
    (Table::Tries, sealed::<Tries>),
    (Table::Sightings, sealed::<Sighting>),
    (Table::Passkeys, sealed::<Passkey>),
    (Table::Figures, sealed::<InsightRow>),
    (Table::Marks, sealed::<LogMark>),
    (Table::Contacts, sealed::<Contact>),
    (Table::Letters, sealed::<Letter>),
    (Table::Delegations, sealed::<Delegation>),
    (Table::Answers, sealed::<KeptAnswer>),
    (Table::EpisodeEvents, sealed::<EpisodeEvent>),
    (Table::Imports, sealed::<Imported>),
    (Table::ImportPieces, sealed::<Piece>),
    (Table::Events, sealed::<Event>),
    (Table::Outbox, sealed::<Pending>),
    (Table::Log, sealed::<LogRow>),
    (Table::Endpoints, sealed::<Endpoint>),
    (Table::Lanes, sealed::<Lane>),
    (Table::Deliveries, sealed::<Delivery>),
];

/// Places that an audit holds against nothing, each with the reason.
const UNSEEN: &[(&str, &str)] = &[
    ("accounts.created_at", "when it was made decides nothing"),
    ("accounts.sign_in.hash", "no event repeats a secret's hash"),
    ("amendments.votes.*.comment", "a vote's event names person, stage, verdict and digest only"),
    ("amendments.votes.*.name", "a vote's event names person, stage, verdict and digest only"),
    ("amendments.votes.*.nonce", "a vote's event names person, stage, verdict and digest only"),
    ("contacts.at", "where people are told is theirs to say, and decides nothing"),
    ("contacts.mail", "where people are told is theirs to say, and decides nothing"),
    ("deliveries.attempts", "what receivers answered is told by nobody else"),
    ("deliveries.attempts.*.at", "what receivers answered is told by nobody else"),
    ("deliveries.attempts.*.took_ms", "what receivers answered is told by nobody else"),
    ("deliveries.state.by_hand", "what receivers answered is told by nobody else"),
    ("deliveries.state.due", "what receivers answered is told by nobody else"),
    ("deliveries.tries", "what receivers answered is told by nobody else"),
    ("gateway.created_at", "when it was made decides nothing"),
    ("holds.comments.*.name", "a comment's event tells who spoke and when, and not what they said"),
    ("holds.comments.*.nonce", "a comment's event tells who spoke and when, and not what they said"),
    ("holds.comments.*.words", "a comment's event tells who spoke and when, and not what they said"),
    ("holds.excluded", "its event does not name the authors; whoever votes although they are one is found"),
    ("holds.excluded.*", "its event does not name the authors; whoever votes although they are one is found"),
    ("holds.extensions.*.name", "its event names the account"),
    ("holds.proposer", "the transition names the principal"),
    ("holds.reasons.*.code", "its event repeats the words of each reason only"),
    ("holds.reasons.*.for_reviewers_only", "its event repeats the words of each reason only"),
    ("holds.reveals.*.name", "a look's event names the account, place, moment and reason"),
    ("holds.state.reason", "the event of its end has moment, person and reason; the row repeats them for pages"),
    ("holds.votes.*.comment", "a vote's event names person, stage, verdict and digest only"),
    ("holds.votes.*.for.name", "a vote's event names person, stage, verdict and digest only"),
    ("holds.votes.*.name", "a vote's event names person, stage, verdict and digest only"),
    ("holds.votes.*.nonce", "a vote's event names person, stage, verdict and digest only"),
    ("holds.votes.*.withdrawn.nonce", "a vote's event names person, stage, verdict and digest only"),
    ("interrupts.votes.*.comment", "a vote's event names person, stage, verdict and digest only"),
    ("interrupts.votes.*.name", "a vote's event names person, stage, verdict and digest only"),
    ("interrupts.votes.*.nonce", "a vote's event names person, stage, verdict and digest only"),
    ("lanes.arrived_at", "what receivers answered is told by nobody else"),
    ("lanes.failed_at", "what receivers answered is told by nobody else"),
    ("lanes.failing_since", "what receivers answered is told by nobody else"),
    ("lanes.reached", "an administrator may have it read the log again; a place beyond the log is found"),
    ("letters.due", "it moves with each try, and decides nothing"),
    ("letters.tries", "it moves with each try, and decides nothing"),
    ("links.purpose.account", "a link's event does not say for whom"),
    ("links.purpose.browser", "what was asked of a provider is used up in minutes; its event has moment and end"),
    ("links.purpose.next", "what was asked of a provider is used up in minutes; its event has moment and end"),
    ("passkeys.challenge", "what it was registered with is used up"),
    ("passkeys.counter", "the authenticator's own count; what was signed names its moment"),
    ("policies.created_at", "when it was made decides nothing"),
    ("rejections.errors.*.detail", "what was rejected is inert; its event repeats node, patch and codes only"),
    ("rejections.errors.*.pointer", "what was rejected is inert; its event repeats node, patch and codes only"),
    ("rejections.excerpt", "what was rejected is inert; its event repeats node, patch and codes only"),
    ("rejections.flow", "what was rejected is inert; its event repeats node, patch and codes only"),
    ("sessions.created_at", "when it was made decides nothing"),
    ("sessions.expires_at", "its event does not say until when"),
    ("sessions.passkey.challenge", "what opened it is used up"),
    ("sessions.provider_hint", "it only tells the provider whom to sign out"),
    ("sightings.at", "when something was last seen decides nothing"),
    ("states.content.named.*", "it adds to what counts as set; the root is signed"),
    ("threads.created_at", "when it was made decides nothing"),
    ("tokens.created_at", "when it was made decides nothing"),
    ("tokens.secret_hash", "no event repeats a secret's hash"),
    ("transitions.delta.set", "what never came into the chain is not replayed"),
    ("transitions.delta.set.*.*", "what never came into the chain is not replayed"),
    ("transitions.named", "it adds to what counts as set; the root is signed"),
    ("transitions.named.*", "it adds to what counts as set; the root is signed"),
    (
        "transitions.outcome.would_hold",
        "why people would have been asked decides nothing; the signed gate says that they would",
    ),
    ("transitions.outcome.would_hold.*.code", "it decides nothing; the signed gate says that they would"),
    ("transitions.outcome.would_hold.*.for_reviewers_only", "it decides nothing; the signed gate says that they would"),
    ("transitions.outcome.would_hold.*.pointer", "it decides nothing; the signed gate says that they would"),
    ("transitions.outcome.would_hold.*.text", "it decides nothing; the signed gate says that they would"),
    ("transitions.patch", "a creation's patch is its effect"),
    ("tries.failed", "failed tries are told of, not counted, by events"),
    ("tries.last", "failed tries are told of, not counted, by events"),
    ("writes.lease_expires_at", "of a write that has ended; the signed answer is compared to the second"),
    ("writes.state.at", "the event of its end has moment and reason; the row repeats them for pages"),
    ("writes.state.reason", "the event of its end has moment and reason; the row repeats them for pages"),
];

/// Rows whose revision counts changes that not every event tells; what they say is held against the events instead.
const UNCOUNTED: &[&str] = &[
    "answers",
    "contacts",
    "deliveries",
    "figures",
    "holds",
    "lanes",
    "letters",
    "marks",
    "sightings",
    "threads",
    "transitions",
    "tries",
];

/// Rows that may be forgotten: how often somebody tried, when something was seen, how far something was copied, where people
/// are told, what was sent, and what was answered.
const FORGOTTEN: &[Table] =
    &[Table::Tries, Table::Sightings, Table::Marks, Table::Contacts, Table::Letters, Table::Deliveries, Table::Answers];

/// Words of enums, for where no made-up text is read.
const WORDS: &[&str] = &[
    "auditor",
    "reviewer",
    "approve",
    "deny",
    "match",
    "mismatch",
    "rollback",
    "create",
    "propose",
    "merge-patch",
    "merge",
    "used",
    "unused",
    "revoked",
    "denied",
    "expired",
    "cancelled",
    "open",
    "reserved",
    "thread.closed",
    "thread.created",
    "sign_in",
    "set_up",
    "aborted",
    "committed",
    "held",
    "full",
    "written",
];

fn seal_of(table: Table) -> Seal {
    KINDS.iter().find(|it| it.0 == table).unwrap().1
}

struct Kept {
    id: String,
    /// What is tried once of each kind: ids are random, and so is which row comes first.
    kind: String,
    revision: i64,
    body: Value,
}

fn rows(connection: &Connection, table: Table) -> Vec<Kept> {
    let sql = format!("SELECT id, state, revision, body FROM {} ORDER BY id", table.name());
    let mut statement = connection.prepare(&sql).unwrap();
    let read = |row: &rusqlite::Row<'_>| {
        let body: String = row.get(3)?;
        let body: Value = serde_json::from_str(&body).unwrap();
        // A transition whose values are in an archive is held against its file.
        let kind = format!("{} {} {}", row.get::<_, String>(1)?, body["statement"]["type"], body["values"]);
        Ok(Kept { id: row.get(0)?, kind, revision: row.get(2)?, body })
    };
    statement.query_map([], read).unwrap().map(Result::unwrap).collect()
}

/// What else could stand where this stands.
fn others(value: &Value) -> Vec<Value> {
    let texts = || WORDS.iter().map(|it| json!(it));
    let digest = format!("sha256:{}", "0".repeat(64));
    match value {
        Value::Null => vec![json!("zz"), json!(digest), json!("2026-11-21T01:36:40.123Z"), json!(7), json!(true)],
        Value::Bool(it) => vec![json!(!it)],
        Value::Number(it) => vec![json!(it.as_i64().map_or(7, |it| it + 1)), json!(0)],
        Value::String(text) => {
            let middle = text.len() / 2;
            let flip = |at: usize| {
                let other = if text[at..].starts_with('0') { "1" } else { "0" };
                format!("{}{other}{}", &text[..at], &text[at + 1..])
            };
            let mut other = Vec::new();
            if text.ends_with('Z') && text.len() == 24 {
                other.push(json!(flip(22)));
            } else if text.is_ascii() && !text.is_empty() {
                other.push(json!(flip(middle)));
            }
            other.push(json!(format!("{text}x")));
            other.extend(texts());
            other
        }
        Value::Array(items) => {
            let mut other = vec![Value::Null];
            if items.is_empty() {
                other.extend([json!(["zz"]), json!([digest])]);
            } else {
                other.insert(0, json!(items[1..]));
            }
            other
        }
        Value::Object(members) if members.is_empty() => vec![json!({"zz": 1}), json!({"zz": "zz"}), Value::Null],
        Value::Object(_) => vec![Value::Null],
    }
}

/// Every place in a body below its root: as a pointer, and as its shape, in which every item of a list is alike.
fn places(value: &Value, pointer: &str, shape: &str, found: &mut Vec<(String, String)>) {
    if !pointer.is_empty() {
        found.push((pointer.to_owned(), shape.to_owned()));
    }
    match value {
        Value::Object(members) => {
            for (key, it) in members {
                let escaped = key.replace('~', "~0").replace('/', "~1");
                places(it, &format!("{pointer}/{escaped}"), &format!("{shape}.{key}"), found);
            }
        }
        Value::Array(items) => {
            for (at, it) in items.iter().enumerate() {
                places(it, &format!("{pointer}/{at}"), &format!("{shape}.*"), found);
            }
        }
        _ => {}
    }
}

/// A database under somebody's hands, and the audit that looks at it after each edit.
struct Bench {
    runtime: tokio::runtime::Runtime,
    store: SqliteStore,
    keys: std::sync::Arc<Keys>,
    connection: Connection,
    archives: Archives,
    said: BTreeSet<String>,
}

impl Bench {
    fn on(folder: &Path) -> Self {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let store = SqliteStore::open(folder.join("countersign.db"), SqliteOptions::default()).unwrap();
        let keys = Keyring::open(&folder.join("keyring.json"), None).unwrap().current().unwrap();
        let connection = Connection::open(folder.join("countersign.db")).unwrap();
        let archives = history::archives::in_folder(folder);
        Self { runtime, store, keys, connection, archives, said: BTreeSet::new() }
    }

    /// The same database once more, in a folder that lasts as long.
    fn on_a_copy_of(bench: &Self, folder: &Path) -> (Self, TempDir) {
        let copy = tempfile::tempdir().unwrap();
        let file = copy.path().join("countersign.db");
        bench.connection.execute("VACUUM INTO ?1", [file.to_str().unwrap()]).unwrap();
        std::fs::copy(folder.join("keyring.json"), copy.path().join("keyring.json")).unwrap();
        // Nobody changes a file here, so there need be no copies of them.
        (Self { archives: bench.archives.clone(), ..Self::on(copy.path()) }, copy)
    }

    /// A row of that table for which this holds.
    fn pick(&self, table: Table, fits: impl Fn(&Kept) -> bool) -> Kept {
        rows(&self.connection, table).into_iter().find(|it| fits(it)).expect("the history has such a row")
    }

    /// Puts a row beside all others, and expects that to be said of it.
    fn beside(&mut self, table: Table, row: &Row, finding: &str) {
        let found = self.with(table, None, Some(row)).expect(finding);
        assert!(found.iter().any(|it| it.ends_with(finding)), "{finding}: {found:#?}");
    }

    /// Puts a row in another's place, and expects that to be said of it.
    fn instead(&mut self, table: Table, kept: &Kept, body: &Value, finding: &str) {
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

    /// What is found while this row stands where that one stood; `None` if the database does not take it.
    fn with(&mut self, table: Table, out: Option<&str>, put: Option<&Row>) -> Option<Vec<String>> {
        let taken = self.edit(table, out, put);
        let found = taken.then(|| self.findings());
        self.undo(table, out, put.filter(|_| taken));
        found
    }

    fn edit(&mut self, table: Table, out: Option<&str>, put: Option<&Row>) -> bool {
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

    fn undo(&mut self, table: Table, out: Option<&str>, put: Option<&Row>) {
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
    row: Row,
}

/// Every place of every kind of row, in each state of it, once.
fn alterations(bench: &Bench) -> Vec<Alteration> {
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

/// The shapes that may be altered unseen. Each alteration costs an audit, and all of them most of what the tests
/// cost: every core takes its share, on a copy of its own.
fn unseen(bench: &mut Bench, folder: &Path) -> BTreeSet<String> {
    let all = alterations(bench);
    let next = AtomicUsize::new(0);
    let take = |bench: &mut Bench| {
        let mut unseen = BTreeSet::new();
        while let Some(it) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
            if bench.with(it.table, Some(&it.id), Some(&it.row)).is_some_and(|it| it.is_empty()) {
                unseen.insert(it.shape.clone());
            }
        }
        unseen
    };
    let helpers = std::thread::available_parallelism().map_or(0, |it| it.get() - 1);
    let mut copies: Vec<_> = (0..helpers).map(|_| Bench::on_a_copy_of(bench, folder)).collect();
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

fn removed_and_renumbered(bench: &mut Bench) -> BTreeSet<&'static str> {
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
fn unlabelled(bench: &mut Bench) {
    let moved = |bench: &Bench, by: i64| {
        let update = "UPDATE labels SET due = due + ?1 WHERE kept_in = 'labels'";
        assert_eq!(bench.connection.execute(update, params![by]).unwrap(), 1);
    };
    moved(bench, -1);
    let found = bench.findings();
    assert!(found.iter().any(|it| it.contains("not labelled yet")), "{found:#?}");
    moved(bench, 1);
}

/// Every sentence that the audit's source has, up to where something is put in.
fn sentences() -> BTreeSet<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/service/audit");
    let mut all = BTreeSet::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
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
        let gateway = Gateway::open(folder.path()).await;
        live_through(&gateway.service).await;
        // The one write that is under way lapses, and the log says so.
        gateway.clock.0.set_millis(LAPSED.as_millis().try_into().unwrap());
        countersign::worker::lapse::run_once(&gateway.service).await.unwrap();
        assert!(countersign::worker::notice::run_once(&gateway.service).await.unwrap() > 0, "a review waits for long");
    });
    drop(runtime);
    let mut bench = Bench::on(folder.path());
    assert_eq!(bench.findings(), [""; 0], "the history itself is sound");
    let uncounted = removed_and_renumbered(&mut bench);
    another_request(&mut bench);
    put_together(&mut bench);
    amended(&mut bench);
    lifted(&mut bench);
    unlabelled(&mut bench);
    signed_again(&mut bench);
    let unseen = unseen(&mut bench, folder.path());
    assert_eq!(bench.findings(), [""; 0], "and everything was put back");
    let stated: Vec<&str> = UNSEEN.iter().map(|it| it.0).collect();
    let unsaid: Vec<String> =
        sentences().into_iter().filter(|it| !bench.said.iter().any(|said| said.starts_with(it))).collect();
    assert_eq!(uncounted.into_iter().collect::<Vec<_>>(), UNCOUNTED);
    assert_eq!(unseen.into_iter().collect::<Vec<_>>(), stated);
    assert_eq!(unsaid, [""; 0]);
}
