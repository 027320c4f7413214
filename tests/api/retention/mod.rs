//! Tests archiving by a policy's `[retain]`. Without it, or before its time, nothing leaves the database. Archived data
//! is readable from its file as before, and deleted permanently once it is erased. On both databases.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use countersign_domain::chain::hash::Digest;
use countersign_domain::identity::account::MachineRole;
use countersign_domain::identity::party::Party;
use countersign_domain::json::patch::PatchFormat;
use countersign_domain::json::size::{STATE_DEPTH_CEILING, StateLimits};
use countersign_domain::reviews::VoteVerdict;
use countersign_domain::threads::archive::{
    Archive, ArchiveContent, ArchiveContentState, ArchivedLocation, PLAIN_BYTES_MAX,
};
use countersign_domain::threads::thread::Thread;
use countersign_domain::threads::transition::{ChainRow, StateContent, StateRow, Transition, ValueLocation};
use countersign_domain::threads::usage::Usage;

use countersign::worker::archive::Archiver;
use countersign_adapters::archives::{packed, unpacked};
use countersign_service::Service;
use countersign_service::branches::list::BranchStatus;
use countersign_service::error::Error;
use countersign_service::proposals::outcome::ProposalOutcome;
use countersign_service::proposals::request::{Proposal, ProposalKind};
use countersign_store::change::Draft;
use countersign_store::record::{Record, RecordReader, Stored};
use countersign_store::row::Table;
use countersign_store::{LIST_ROWS_MAX, RowFilter};
use serde_json::{Value, json};

use crate::gateway::{ApiResponse, POLICY, SCHEMA, TestGateway, archives_in, source};
use crate::over::StoreInterceptor;
use crate::rules::ApiScenario;

mod beside;
mod branches;
mod erased;
mod files;
mod forged;
mod restored;
mod sent;

on_both! {
    nothing_is_archived_without_a_policy(super::POLICY),
    archived_versions_are_read_as_before_and_audited(super::retaining("versions = 10")),
    versions_younger_than_the_limit_stay(super::retaining("days = 30")),
    both_bounds_keep(super::retaining("versions = 10\ndays = 30")),
    denied_proposals_are_archived_with_their_versions(super::retaining("versions = 10\nerase_after_days = 5")),
    repeated_request_for_an_archived_version_gets_the_same_answer(super::retaining("versions = 10\nerase_after_days = 5")),
    references_to_archived_versions_are_answered_as_before(super::retaining("versions = 10\nerase_after_days = 5")),
    audit_finds_a_changed_archive_time(super::retaining("versions = 10")),
    openings_too_large_for_an_archive_are_stored_apart(super::nesting("versions = 10")),
    deeply_nested_states_are_archived(super::nesting("versions = 10")),
    versions_with_long_keys_are_stored_whole_and_archived(super::nesting("versions = 10").replacen("writes = [\"raw_text\"]", "writes = [\"raw_text\", \"notes\"]", 1)),
    broken_later_version_does_not_block_earlier_archives(super::retaining("versions = 10")),
    token_count_survives_archiving_and_erasure(super::counting("versions = 10\nerase_after_days = 5")),
}

fn retaining(keys: &str) -> String {
    format!("{POLICY}\n[retain]\n{keys}\n")
}

/// Returns a policy under which the parser may fork, too.
fn forking(keys: &str) -> String {
    let policy = retaining(keys);
    assert!(policy.contains("[nodes.input_parser]\n"));
    policy.replacen("[nodes.input_parser]\n", "[nodes.input_parser]\nfork = true\n", 1)
}

/// Returns a policy without a schema, so that states have any form.
fn nesting(keys: &str) -> String {
    retaining(keys).replacen("schema = \"payments.schema.json\"\n", "", 1)
}

/// Returns a policy under which a node has a hundred attempts.
fn tireless(keys: &str) -> String {
    retaining(keys).replacen("[approval]\n", "[approval]\nattempts = 100\n", 1)
}

/// Returns a policy that counts context tokens.
fn counting(keys: &str) -> String {
    retaining(keys).replacen("[approval]\n", "[budgets.thread]\ncontext_tokens = 1000000\n\n[approval]\n", 1)
}

const DAY: Duration = Duration::from_secs(24 * 3600);

/// Enough for several archives.
const VERSIONS: u64 = 60;

const DEEP_VERSIONS: u64 = 45;

/// Creates a thread with this many versions after its first. Returns its name and the transition of each version.
pub async fn grown(g: &TestGateway, versions: u64) -> (Value, Vec<Value>) {
    let made = g.thread().await;
    let heads = grown_on(g, &made["thread"], vec![made["transition"].clone()], 1..=versions).await;
    (made["thread"].clone(), heads)
}

/// Commits more versions after these.
async fn grown_on(g: &TestGateway, thread: &Value, mut heads: Vec<Value>, versions: RangeInclusive<u64>) -> Vec<Value> {
    for version in versions {
        let patch = json!({"raw_text": format!("secret text number {version}, and a little more of it")});
        let done = g.propose(thread, heads.last().unwrap(), (&g.parser, "input_parser"), patch).await;
        heads.push(done.expect(201)["transition"].clone());
    }
    heads
}

async fn works(g: &TestGateway) -> usize {
    Archiver::default().run_once(&g.service).await.unwrap()
}

/// Returns another gateway on the same files, with an interceptor in its store.
async fn watched(scene: &ApiScenario, watching: impl StoreInterceptor) -> Service {
    scene.another_watched(watching).await.archiving_in(archives_in(scene.gateway.folder.path()))
}

async fn archives(scene: &ApiScenario) -> Vec<Archive> {
    let keys = scene.gateway.service.core.keys().unwrap();
    let reader = RecordReader { store: scene.store(), key: keys.row() };
    let found: Vec<Stored<Archive>> = reader.list(RowFilter::All, None, LIST_ROWS_MAX).await.unwrap();
    found.into_iter().map(|it| it.record).collect()
}

fn path(g: &TestGateway, archive: &Archive) -> PathBuf {
    archives_in(g.folder.path()).path(archive)
}

async fn rows(scene: &ApiScenario, table: Table) -> u64 {
    scene.store().list(table, RowFilter::All, None, LIST_ROWS_MAX).await.unwrap().len() as u64
}

async fn state(g: &TestGateway, thread: &Value, version: u64) -> ApiResponse {
    g.get(&format!("/v1/threads/{}/state?node=planner&version={version}", thread.as_str().unwrap()), &g.planner).await
}

/// Returns every response about a thread for a caller with full access.
async fn told(g: &TestGateway, thread: &Value, heads: &[Value]) -> Vec<Value> {
    let id = thread.as_str().unwrap();
    let mut told = vec![g.get(&format!("/v1/threads/{id}/chain?page_size=200"), &g.auditor).await.expect(200)];
    for (version, head) in heads.iter().enumerate() {
        told.push(state(g, thread, version as u64).await.expect(200));
        told.push(g.get(&format!("/v1/transitions/{}", head.as_str().unwrap()), &g.auditor).await.expect(200));
    }
    told
}

async fn nothing_is_archived_without_a_policy(scene: ApiScenario) {
    let g = &scene.gateway;
    grown(g, VERSIONS).await;
    g.pass(DAY * 1000);
    assert_eq!(works(g).await, 0);
    assert_eq!((rows(&scene, Table::States).await, archives(&scene).await.len()), (VERSIONS + 1, 0));
    assert!(!g.folder.path().join("archives").exists());
}

async fn archived_versions_are_read_as_before_and_audited(scene: ApiScenario) {
    let g = &scene.gateway;
    let (thread, heads) = grown(g, VERSIONS).await;
    let before = told(g, &thread, &heads).await;
    assert!(works(g).await > 0);
    let gone = archives(&scene).await;
    let archived = gone.last().unwrap().to + 1;
    assert!(archived > 20 && archived <= VERSIONS + 1 - 10, "{archived}");
    let left = VERSIONS + 1 - archived;
    assert_eq!(rows(&scene, Table::States).await, left);
    assert_eq!(rows(&scene, Table::Transitions).await, left, "what was asked for goes with the states");
    assert_eq!(rows(&scene, Table::Entries).await, left + 1, "the last entry that went is the first one's parent");
    assert_eq!(rows(&scene, Table::Whereabouts).await, archived);
    assert_eq!(told(g, &thread, &heads).await, before, "nothing is told otherwise");
    scene.passes_an_audit().await;
    assert_eq!(works(g).await, 0, "there is nothing more to do");
    let scrape = crate::metrics::Scrape::of(g).await;
    let bytes: u64 = gone.iter().map(|it| it.bytes).sum();
    assert_eq!(
        (scrape.one("archives", ""), scrape.one("archive_bytes", "")),
        (Some(gone.len() as f64), Some(bytes as f64))
    );
    assert!(scrape.one("database_bytes", "").unwrap() > 100_000.0);
    // The thread continues with a rollback to an archived version.
    let path = format!("/v1/threads/{}/rollbacks", thread.as_str().unwrap());
    let back = json!({"node": "planner", "parent": heads.last().unwrap(), "to_version": 1});
    let back = g.post(&path, &g.planner, back).await.expect(202);
    g.approved(&back).await;
    let seen = state(g, &thread, VERSIONS + 1).await.expect(200);
    assert_eq!(seen["state"], before[3]["state"], "version 1 again");
    let page = g
        .service
        .threads
        .history(&thread.as_str().unwrap().try_into().unwrap(), None, 200, &Party::Receiver)
        .await
        .unwrap()
        .1;
    assert_eq!(page.len() as u64, VERSIONS + 2);
    let compared = g
        .service
        .threads
        .compare(&thread.as_str().unwrap().try_into().unwrap(), 1, VERSIONS, &Party::Receiver)
        .await
        .unwrap();
    let opening = compared.differing.opening;
    assert_ne!(opening.from.root(), opening.to.root());
    scene.passes_an_audit().await;
}

async fn versions_younger_than_the_limit_stay(scene: ApiScenario) {
    let g = &scene.gateway;
    grown(g, VERSIONS).await;
    g.pass(DAY * 29);
    assert_eq!(works(g).await, 0);
    g.pass(DAY * 2);
    assert!(works(g).await > 0);
    assert!(rows(&scene, Table::States).await >= 1, "the head's own stretch stays");
    scene.passes_an_audit().await;
}

async fn both_bounds_keep(scene: ApiScenario) {
    let g = &scene.gateway;
    grown(g, VERSIONS).await;
    assert_eq!(works(g).await, 0, "of the count alone they might go");
    g.pass(DAY * 31);
    assert!(works(g).await > 0);
    assert!(rows(&scene, Table::States).await >= 10, "of the days alone they all might go");
}

async fn denied_proposals_are_archived_with_their_versions(scene: ApiScenario) {
    let g = &scene.gateway;
    let made = g.thread().await;
    let ask = json!({"requested_action": "refund", "target_user_id": 77_123_456});
    let held = g.propose(&made["thread"], &made["transition"], (&g.planner, "planner"), ask).await.expect(202);
    g.vote(&g.alice, &held, VoteVerdict::Deny).await.unwrap();
    let mut head = made["transition"].clone();
    for version in 1..=VERSIONS {
        let patch = json!({"raw_text": format!("text {version}, and a little more of it")});
        let done = g.propose(&made["thread"], &head, (&g.parser, "input_parser"), patch).await.expect(201);
        head = done["transition"].clone();
    }
    let path = format!("/v1/transitions/{}", held["transition"].as_str().unwrap());
    let before = g.get(&path, &g.auditor).await.expect(200);
    assert!(before.to_string().contains("77123456"));
    works(g).await;
    assert_eq!(g.get(&path, &g.auditor).await.expect(200), before);
    let found = g
        .service
        .reviews
        .decision(held["transition"].as_str().unwrap().parse().unwrap(), &Party::Receiver)
        .await
        .unwrap()
        .1
        .unwrap();
    assert_eq!(found.decision, "denied");
    scene.passes_an_audit().await;
    g.pass(DAY * 6);
    works(g).await;
    assert_eq!(g.get(&path, &g.auditor).await.code(), "state_erased");
    // A caller without access to the thread gets no sign that it was erased.
    let refunds = POLICY.replace("flow = \"payments\"", "flow = \"refunds\"");
    g.service
        .policy_changes
        .activate_policy(&"tests".try_into().unwrap(), None, source(&refunds), BTreeSet::new())
        .await
        .unwrap();
    let stranger = crate::roles::other_flows(g, "other-agent", MachineRole::Agent, &["planner"]).await;
    let taken_back = g.post(&format!("{path}/cancellation"), &stranger, json!({"reason": "x"})).await;
    assert_eq!((taken_back.status, taken_back.code()), (404, "not_found"), "{:#}", taken_back.body);
    for table in Table::ALL {
        let rows = scene.store().list(*table, RowFilter::All, None, LIST_ROWS_MAX).await.unwrap();
        assert!(rows.iter().all(|it| !it.body.contains("77123456")), "{table:?}");
    }
    scene.passes_an_audit().await;
}

/// Writes rows as an attacker who has the row key and the database.
async fn seals<R: Record>(scene: &ApiScenario, write: impl FnOnce(&mut Draft<'_>, &[Stored<R>])) {
    let keys = scene.gateway.service.core.keys().unwrap();
    let reader = RecordReader { store: scene.store(), key: keys.row() };
    let found: Vec<Stored<R>> = reader.list(RowFilter::All, None, LIST_ROWS_MAX).await.unwrap();
    let mut draft = Draft::new(keys.row(), scene.gateway.service.core.now());
    write(&mut draft, &found);
    scene.store().commit(draft.finish().change).await.unwrap();
}

/// Writes another file and a row for it, as an attacker who has the row key.
async fn seals_file(scene: &ApiScenario, archive: &Archive, text: &str) {
    let bytes = packed(text).unwrap();
    archives_in(scene.gateway.folder.path()).write(archive, &bytes).unwrap();
    let (file, plain_bytes) = (Digest::of_file(&bytes), text.len() as u64);
    let sealed = Archive { file, bytes: bytes.len() as u64, plain_bytes, ..archive.clone() };
    seals::<Archive>(scene, |draft, rows| {
        let row = rows.iter().find(|it| it.record == *archive).unwrap();
        draft.replace(row, &sealed).unwrap();
    })
    .await;
}

async fn repeated_request_for_an_archived_version_gets_the_same_answer(scene: ApiScenario) {
    let g = &scene.gateway;
    let (thread, heads) = grown(g, 2).await;
    let id = thread.as_str().unwrap();
    let stepped = json!({"node": "input_parser", "parent": heads[2], "step": "third", "patch": {"raw_text": "a step"}});
    let ask = async |body: &Value| g.post(&format!("/v1/threads/{id}/transitions"), &g.parser, body.clone()).await;
    let first = ask(&stepped).await.expect(201);
    let mut head = first["transition"].clone();
    for version in 4..=VERSIONS {
        let patch = json!({"raw_text": format!("text number {version}, and a little more of it")});
        head = g.propose(&thread, &head, (&g.parser, "input_parser"), patch).await.expect(201)["transition"].clone();
    }
    let again = json!({"node": "input_parser", "parent": heads[1],
        "patch": {"raw_text": "secret text number 2, and a little more of it"}});
    let mut elsewhere = stepped.clone();
    elsewhere["parent"] = head.clone();
    let mut other = again.clone();
    other["patch"]["raw_text"] = json!("something else");
    let before = [ask(&again).await.expect(201), ask(&stepped).await.expect(201), ask(&elsewhere).await.expect(201)];
    assert!(works(g).await > 0);
    assert_eq!(rows(&scene, Table::Transitions).await, rows(&scene, Table::States).await);
    let after = [ask(&again).await.expect(201), ask(&stepped).await.expect(201), ask(&elsewhere).await.expect(201)];
    assert_eq!((after, &before[1]["transition"]), (before.clone(), &first["transition"]));
    assert_eq!(ask(&other).await.code(), "head_moved");
    let mut reused = elsewhere.clone();
    reused["patch"]["raw_text"] = json!("something else");
    assert_eq!(ask(&reused).await.code(), "step_reused");
    g.pass(DAY * 6);
    assert!(works(g).await > 0);
    for body in [&again, &stepped, &elsewhere] {
        let erased = ask(body).await;
        assert_eq!((erased.status, erased.code()), (410, "state_erased"), "{:#}", erased.body);
    }
    assert_eq!(ask(&other).await.code(), "head_moved");
    let overview = g.service.threads.overview(&id.try_into().unwrap()).await.unwrap();
    assert_eq!(overview.thread.head.version, VERSIONS, "nothing came of any of it");
    scene.passes_an_audit().await;
}

async fn content(g: &TestGateway, archive: &Archive) -> ArchiveContent {
    ArchiveContent::read(&unpacked(&std::fs::read(path(g, archive)).unwrap(), PLAIN_BYTES_MAX).unwrap()).unwrap()
}

async fn deeply_nested_states_are_archived(scene: ApiScenario) {
    let g = &scene.gateway;
    let made = g.thread().await;
    let limits = StateLimits { depth_max: STATE_DEPTH_CEILING, ..StateLimits::default() };
    let service = scene.another_within(limits).await.archiving_in(archives_in(g.folder.path()));
    let token = service.identity.token_of(&g.parser).await.unwrap();
    let mut head: Digest = made["transition"].as_str().unwrap().parse().unwrap();
    for version in 1..=DEEP_VERSIONS {
        let deep = (2..STATE_DEPTH_CEILING).fold(json!({"at": version}), |below, _| json!({"a": below}));
        let proposal = Proposal {
            thread: made["thread"].as_str().unwrap().try_into().unwrap(),
            parent: head,
            node: "input_parser".try_into().unwrap(),
            ask: ProposalKind::Patch { format: PatchFormat::Merge, patch: json!({"raw_text": deep}) },
            attempt: 1,
            rationale: None,
            tool: None,
            usage: Usage::default(),
            step: None,
        };
        let Ok(ProposalOutcome::Committed { transition, .. }) = service.proposals.propose(&token, &proposal).await
        else {
            panic!()
        };
        head = transition;
    }
    assert!(Archiver::default().run_once(&service).await.unwrap() > 0);
    state(g, &made["thread"], 3).await.expect(200);
    let of = archives(&scene).await;
    assert!(content(g, &of[0]).await.entries[5].opening.is_some());
    scene.passes_an_audit().await;
}

/// Returns a text with forty levels in each member. Its opening takes much more memory than its length.
fn nested(turn: u64) -> Value {
    let items = (0..700_u64).map(|at| (0..40).fold(json!(1_000_000 * turn + at), |below, _| json!([below])));
    Value::Array(items.collect())
}

async fn openings_too_large_for_an_archive_are_stored_apart(scene: ApiScenario) {
    let g = &scene.gateway;
    let made = g.thread().await;
    let (thread, mut head) = (made["thread"].clone(), made["transition"].clone());
    for version in 1..=DEEP_VERSIONS {
        let text = if version < 3 { nested(version) } else { json!(format!("text {version}")) };
        let done = g.propose(&thread, &head, (&g.parser, "input_parser"), json!({"raw_text": text})).await.expect(201);
        head = done["transition"].clone();
    }
    let pages = async || {
        let (mut lengths, mut opened, mut next) = (Vec::new(), 0, Value::from(0));
        while let Some(from) = next.as_u64() {
            let path = format!("/v1/threads/{}/chain?page_size=50&page_token={from}", thread.as_str().unwrap());
            let page = g.get(&path, &g.auditor).await.expect(200);
            let entries = page["entries"].as_array().unwrap();
            opened += entries.iter().filter(|it| it["opening"].is_object()).count() as u64;
            lengths.push(entries.len());
            next = page["next_page_token"].clone();
        }
        (lengths, opened)
    };
    let (lengths, opened) = pages().await;
    assert!(lengths[0] < 3 && lengths.len() > 1, "{lengths:?}");
    assert_eq!(opened, DEEP_VERSIONS + 1, "and none is left out");
    assert!(works(g).await > 0);
    assert_eq!(pages().await, (lengths, opened));
    let of = archives(&scene).await;
    let entries = content(g, &of[0]).await.entries;
    let without: Vec<usize> = (0..entries.len()).filter(|it| entries[*it].opening.is_none()).collect();
    assert!(!without.is_empty() && without.iter().all(|it| *it < 5), "{without:?}");
    scene.passes_an_audit().await;
}

async fn references_to_archived_versions_are_answered_as_before(scene: ApiScenario) {
    let g = &scene.gateway;
    let made = g.thread().await;
    let held = g.held(&made).await;
    let approved = g.approved(&held).await;
    let (id, review) = (made["thread"].as_str().unwrap(), held["review"]["id"].as_str().unwrap());
    let mut head = held["transition"].clone();
    for version in 2..=VERSIONS {
        let patch = json!({"raw_text": format!("text {version}, and a little more of it")});
        head = g.propose(&made["thread"], &head, (&g.parser, "input_parser"), patch).await.expect(201)["transition"]
            .clone();
    }
    let stays = async |write_id: &str| {
        let verified = g.verify(&made["thread"], &held["transition"], &approved["receipt"], write_id).await;
        json!([
            g.decision(&held).await.expect(200),
            verified.status,
            verified.body["code"],
            verified.body["denial"]["code"]
        ])
    };
    let goes = async || {
        let facts = g.service.reviews.review(&review.try_into().unwrap(), &g.alice).await.unwrap();
        let version = g.service.threads.version_facts(&id.try_into().unwrap(), 1, &Party::Receiver).await.unwrap();
        let replays = json!({"policy": retaining("versions = 10"), "schemas": {"payments.schema.json": SCHEMA}});
        let replayed = g.post("/v1/flows/payments/replays", &g.admin, replays).await.expect(200);
        let told = g.get(&format!("/v1/transitions/{}", held["transition"].as_str().unwrap()), &g.auditor).await;
        json!([
            format!("{:?} {:?}", facts.diff, facts.receipt),
            format!("{:?}", version.receipt),
            version.token,
            replayed["proposals"][0],
            told.expect(200)
        ])
    };
    let (first, second) = (stays("w1").await, goes().await);
    assert!(works(g).await > 0);
    assert_eq!(rows(&scene, Table::Transitions).await, rows(&scene, Table::States).await);
    assert_eq!((stays("w2").await, goes().await), (first.clone(), second));
    scene.passes_an_audit().await;
    g.pass(DAY * 6);
    assert!(works(g).await > 0);
    let after = stays("w3").await;
    assert_eq!(after[0]["decision"], "approved", "how it was decided stays");
    assert_eq!(after[0]["receipt"], first[0]["receipt"]);
    let erased = g.service.reviews.review(&review.try_into().unwrap(), &g.alice).await;
    assert!(matches!(erased, Err(Error::Erased)));
    scene.passes_an_audit().await;
}

async fn audit_finds_a_changed_archive_time(scene: ApiScenario) {
    let g = &scene.gateway;
    grown(g, VERSIONS).await;
    works(g).await;
    scene.passes_an_audit().await;
    let first = archives(&scene).await[0].clone();
    seals::<Archive>(&scene, |draft, rows| {
        draft.remove(rows.iter().find(|it| it.record == first).unwrap());
    })
    .await;
    let earlier = Archive { left: first.left.minus(DAY * 30), ..first };
    seals::<Archive>(&scene, |draft, _| drop(draft.insert(&earlier).unwrap())).await;
    let found = scene.findings().await.join("\n");
    assert!(found.contains("the archives of the thread differ from its events"), "{found}");
}

async fn token_count_survives_archiving_and_erasure(scene: ApiScenario) {
    let g = &scene.gateway;
    let (thread, heads) = grown(g, VERSIONS).await;
    let path = format!("/v1/threads/{}", thread.as_str().unwrap());
    let sum = async || g.get(&path, &g.host).await.expect(200)["spent"]["context_tokens"].clone();
    let counted = sum().await;
    assert!(counted.as_u64().is_some_and(|it| it >= 100 * VERSIONS), "{counted}");
    let before = told(g, &thread, &heads).await;
    assert!(works(g).await > 0);
    assert_eq!(told(g, &thread, &heads).await, before);
    scene.passes_an_audit().await;
    g.pass(DAY * 6);
    assert!(works(g).await > 0);
    assert!(archives(&scene).await.iter().all(|it| matches!(it.kept, ArchiveContentState::Erased { .. })));
    assert_eq!(sum().await, counted);
    scene.passes_an_audit().await;
}

/// A value that a node sets and may not read is recorded leaf by leaf, each with its keys.
async fn versions_with_long_keys_are_stored_whole_and_archived(scene: ApiScenario) {
    let g = &scene.gateway;
    let made = g.thread().await;
    let (thread, mut head) = (made["thread"].clone(), made["transition"].clone());
    let text = "a text ".repeat(2_000);
    for version in 1..=35_u64 {
        let leaves = (0..60).map(|it| (format!("leaf {it}"), json!(if it == 0 { version } else { 0 })));
        let leaves: serde_json::Map<String, Value> = leaves.collect();
        let patch = json!({"raw_text": text, "notes": {"key".repeat(500): leaves}});
        let done = g.propose(&thread, &head, (&g.parser, "input_parser"), patch).await.expect(201);
        head = done["transition"].clone();
    }
    let keys = g.service.core.keys().unwrap();
    let reader = RecordReader { store: scene.store(), key: keys.row() };
    let states: Vec<Stored<StateRow>> = reader.list(RowFilter::All, None, LIST_ROWS_MAX).await.unwrap();
    let is_whole = |it: &Stored<StateRow>| matches!(it.record.content, StateContent::Full { .. });
    assert!(states.len() == 36 && states.iter().all(is_whole), "a difference saves nothing");
    assert!(works(g).await > 0);
    scene.passes_an_audit().await;
}

async fn broken_later_version_does_not_block_earlier_archives(scene: ApiScenario) {
    let g = &scene.gateway;
    grown(g, VERSIONS).await;
    seals::<StateRow>(&scene, |draft, rows| {
        draft.remove(rows.iter().find(|it| it.record.version == 47).unwrap());
    })
    .await;
    Archiver::default().run_once(&g.service).await.unwrap_err();
    assert!(!archives(&scene).await.is_empty(), "no more is read than shows where it ends");
}
