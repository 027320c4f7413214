//! What leaves the database by a policy's `[retain]`: nothing without it, nothing before its time, all of it readable as before
//! from its file, and for ever gone once it is erased. On both databases.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use countersign::archives::{packed, unpacked};
use countersign::domain::archive::{Archive, Content, Kept, PLAIN_BYTES_MAX, Whereabouts};
use countersign::domain::chain::hash::Digest;
use countersign::domain::json::patch::Format;
use countersign::domain::json::size::{STATE_DEPTH_CEILING, StateLimits};
use countersign::domain::review::Verdict;
use countersign::domain::thread::Thread;
use countersign::domain::transition::{ChainRow, Transition};
use countersign::domain::usage::Usage;
use countersign::service::error::Error;
use countersign::service::forked::BranchBecame;
use countersign::service::proposals::{Asked, Proposal};
use countersign::service::transitions::Answer as ProposalAnswer;
use countersign::store::change::Draft;
use countersign::store::record::{Reader, Record, Stored};
use countersign::store::row::Table;
use countersign::store::{Filter, LIST_ROWS_MAX};
use countersign::worker::archive::Archiver;
use serde_json::{Value, json};

use crate::gateway::{Answer, Gateway, POLICY, SCHEMA, archives_in, source};
use crate::rules::Scene;

on_both! {
    nothing_goes_unless_a_policy_says_so(super::POLICY),
    what_has_gone_is_read_as_before_and_audited(super::retaining("versions = 10")),
    what_is_younger_than_the_days_stays(super::retaining("days = 30")),
    both_bounds_keep(super::retaining("versions = 10\ndays = 30")),
    an_archive_that_is_gone_or_changed_is_said_and_found(super::retaining("versions = 10")),
    two_threads_files_are_not_each_others(super::retaining("versions = 10")),
    what_is_erased_is_gone_and_its_links_are_not(super::retaining("versions = 10\nerase_after_days = 5")),
    what_was_taken_out_comes_back_as_it_was_after_a_cut_off_run(super::retaining("versions = 10")),
    a_file_is_checked_by_published_keys_alone(super::retaining("versions = 10")),
    what_people_are_asked_for_again_is_not_erased(super::retaining("versions = 10\nerase_after_days = 5")),
    what_was_held_and_not_committed_goes_with_its_stretch(super::retaining("versions = 10\nerase_after_days = 5")),
    a_branch_stays_while_it_may_be_joined(super::forking("versions = 1")),
    what_became_of_a_branch_is_told_from_its_file(super::forking("versions = 10\nerase_after_days = 5")),
    an_altered_state_does_not_pass_whoever_sealed_it(super::retaining("versions = 10")),
    a_dropped_row_is_refused_and_found(super::retaining("versions = 10")),
    what_is_called_erased_and_was_not_is_found(super::retaining("versions = 10")),
    what_is_asked_for_again_is_answered_as_it_was_and_does_nothing(super::retaining("versions = 10\nerase_after_days = 5")),
    another_stretchs_file_does_not_pass_whoever_sealed_it(super::retaining("versions = 10")),
    a_row_beside_the_file_that_has_it_is_found(super::retaining("versions = 10")),
    a_transition_that_is_said_to_be_elsewhere_is_refused_and_found(super::retaining("versions = 10")),
    what_was_stated_is_not_changed_in_what_stays_of_it(super::retaining("versions = 10\nerase_after_days = 5")),
    what_refers_to_what_has_gone_is_answered_as_before(super::retaining("versions = 10\nerase_after_days = 5")),
    when_a_version_was_left_is_told_by_the_next(super::retaining("versions = 10")),
    what_is_nested_deeply_goes_too(super::nesting("versions = 10")),
    what_a_node_was_given_goes_with_its_version(super::counting("versions = 10\nerase_after_days = 5")),
}

fn retaining(keys: &str) -> String {
    format!("{POLICY}\n[retain]\n{keys}\n")
}

/// Where the parser may make branches, too.
fn forking(keys: &str) -> String {
    let policy = retaining(keys);
    assert!(policy.contains("[nodes.input_parser]\n"));
    policy.replacen("[nodes.input_parser]\n", "[nodes.input_parser]\nfork = true\n", 1)
}

/// Where states are of any form.
fn nesting(keys: &str) -> String {
    retaining(keys).replacen("schema = \"payments.schema.json\"\n", "", 1)
}

/// Where what nodes are given is counted.
fn counting(keys: &str) -> String {
    retaining(keys).replacen("[approval]\n", "[budgets.thread]\ncontext_tokens = 1000000\n\n[approval]\n", 1)
}

const DAY: Duration = Duration::from_secs(24 * 3600);

/// Enough for several archives.
const VERSIONS: u64 = 60;

/// Enough for one.
const DEEP_VERSIONS: u64 = 45;

/// A thread with so many versions after its first; its name, and each version's transition.
async fn grown(g: &Gateway, versions: u64) -> (Value, Vec<Value>) {
    let made = g.thread().await;
    let mut heads = vec![made["transition"].clone()];
    for version in 1..=versions {
        let patch = json!({"raw_text": format!("secret text number {version}, and a little more of it")});
        let done = g.propose(&made["thread"], heads.last().unwrap(), (&g.parser, "input_parser"), patch).await;
        heads.push(done.expect(201)["transition"].clone());
    }
    (made["thread"].clone(), heads)
}

async fn works(g: &Gateway) -> usize {
    Archiver::default().run_once(&g.service).await.unwrap()
}

async fn archives(scene: &Scene) -> Vec<Archive> {
    let keys = scene.gateway.service.keys().unwrap();
    let reader = Reader { store: scene.store(), key: keys.row() };
    let found: Vec<Stored<Archive>> = reader.list(Filter::All, None, LIST_ROWS_MAX).await.unwrap();
    found.into_iter().map(|it| it.record).collect()
}

fn path(g: &Gateway, archive: &Archive) -> PathBuf {
    archives_in(g.folder.path()).path(archive)
}

async fn rows(scene: &Scene, table: Table) -> u64 {
    scene.store().list(table, Filter::All, None, LIST_ROWS_MAX).await.unwrap().len() as u64
}

async fn state(g: &Gateway, thread: &Value, version: u64) -> Answer {
    g.get(&format!("/v1/threads/{}/state?node=planner&version={version}", thread.as_str().unwrap()), &g.planner).await
}

/// Everything that is told of a thread to whoever may know all.
async fn told(g: &Gateway, thread: &Value, heads: &[Value]) -> Vec<Value> {
    let id = thread.as_str().unwrap();
    let mut told = vec![g.get(&format!("/v1/threads/{id}/chain?page_size=200"), &g.auditor).await.expect(200)];
    for (version, head) in heads.iter().enumerate() {
        told.push(state(g, thread, version as u64).await.expect(200));
        told.push(g.get(&format!("/v1/transitions/{}", head.as_str().unwrap()), &g.auditor).await.expect(200));
    }
    told
}

async fn nothing_goes_unless_a_policy_says_so(scene: Scene) {
    let g = &scene.gateway;
    grown(g, VERSIONS).await;
    g.pass(DAY * 1000);
    assert_eq!(works(g).await, 0);
    assert_eq!((rows(&scene, Table::States).await, archives(&scene).await.len()), (VERSIONS + 1, 0));
    assert!(!g.folder.path().join("archives").exists());
}

async fn what_has_gone_is_read_as_before_and_audited(scene: Scene) {
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
    // The thread goes on, back to what is in an archive.
    let path = format!("/v1/threads/{}/rollbacks", thread.as_str().unwrap());
    let back = json!({"node": "planner", "parent": heads.last().unwrap(), "to_version": 1});
    let back = g.post(&path, &g.planner, back).await.expect(202);
    g.approved(&back).await;
    let seen = state(g, &thread, VERSIONS + 1).await.expect(200);
    assert_eq!(seen["state"], before[3]["state"], "version 1 again");
    let page = g.service.history(&thread.as_str().unwrap().try_into().unwrap(), None, 200).await.unwrap().1;
    assert_eq!(page.len() as u64, VERSIONS + 2);
    let compared = g.service.compare(&thread.as_str().unwrap().try_into().unwrap(), 1, VERSIONS).await.unwrap();
    assert_eq!(compared.differing.diff.len(), 1);
    scene.passes_an_audit().await;
}

async fn what_is_younger_than_the_days_stays(scene: Scene) {
    let g = &scene.gateway;
    grown(g, VERSIONS).await;
    g.pass(DAY * 29);
    assert_eq!(works(g).await, 0);
    g.pass(DAY * 2);
    assert!(works(g).await > 0);
    assert!(rows(&scene, Table::States).await >= 1, "the head's own stretch stays");
    scene.passes_an_audit().await;
}

async fn both_bounds_keep(scene: Scene) {
    let g = &scene.gateway;
    grown(g, VERSIONS).await;
    assert_eq!(works(g).await, 0, "of the count alone they might go");
    g.pass(DAY * 31);
    assert!(works(g).await > 0);
    assert!(rows(&scene, Table::States).await >= 10, "of the days alone they all might go");
}

async fn an_archive_that_is_gone_or_changed_is_said_and_found(scene: Scene) {
    let g = &scene.gateway;
    let (thread, _) = grown(g, VERSIONS).await;
    works(g).await;
    let first = path(g, &archives(&scene).await[0]);
    let bytes = std::fs::read(&first).unwrap();
    std::fs::remove_file(&first).unwrap();
    let missing = state(g, &thread, 3).await;
    assert_eq!((missing.status, missing.code()), (503, "archive_missing"), "{:#}", missing.body);
    let found = scene.findings().await.join("\n");
    assert!(found.contains("its file is gone, or is not the one that was written"), "{found}");
    let mut changed = bytes.clone();
    changed[40] ^= 1;
    std::fs::write(&first, &changed).unwrap();
    let damaged = state(g, &thread, 3).await;
    assert_eq!((damaged.status, damaged.code()), (503, "archive_damaged"), "{:#}", damaged.body);
    assert!(!scene.findings().await.is_empty());
    assert_eq!(state(g, &thread, VERSIONS).await.status, 200, "the head needs no archive");
    std::fs::write(&first, &bytes).unwrap();
    state(g, &thread, 3).await.expect(200);
    scene.passes_an_audit().await;
}

async fn two_threads_files_are_not_each_others(scene: Scene) {
    let g = &scene.gateway;
    let ((one, _), _) = (grown(g, VERSIONS).await, grown(g, VERSIONS).await);
    works(g).await;
    let all = archives(&scene).await;
    let of_one = all.iter().find(|it| json!(it.thread) == one).unwrap();
    let of_other = all.iter().find(|it| json!(it.thread) != one).unwrap();
    let (here, there) = (path(g, of_one), path(g, of_other));
    let (mine, theirs) = (std::fs::read(&here).unwrap(), std::fs::read(&there).unwrap());
    std::fs::write(&here, theirs).unwrap();
    std::fs::write(&there, mine).unwrap();
    assert_eq!(state(g, &one, of_one.from).await.code(), "archive_damaged");
    assert_eq!(scene.findings().await.iter().filter(|it| it.contains("its file is gone")).count(), 2);
}

async fn what_is_erased_is_gone_and_its_links_are_not(scene: Scene) {
    let g = &scene.gateway;
    let (thread, heads) = grown(g, VERSIONS).await;
    works(g).await;
    let files: Vec<PathBuf> = archives(&scene).await.iter().map(|it| path(g, it)).collect();
    g.pass(DAY * 4);
    works(g).await;
    assert!(files.iter().all(|it| it.exists()));
    g.pass(DAY * 2);
    assert_eq!(works(g).await, files.len());
    assert!(files.iter().all(|it| !it.exists()));
    let all = archives(&scene).await;
    assert!(all.iter().all(|it| matches!(it.kept, Kept::Erased { .. })), "{all:?}");
    for table in Table::ALL {
        let rows = scene.store().list(*table, Filter::All, None, LIST_ROWS_MAX).await.unwrap();
        assert!(rows.iter().all(|it| !it.body.contains("secret text number 1,")), "{table:?}");
    }
    for archive in &all {
        let plain = unpacked(&std::fs::read(path(g, archive)).unwrap(), PLAIN_BYTES_MAX).unwrap();
        assert!(!plain.contains("secret text"), "what stays in files is what was signed");
    }
    let beside = std::fs::read_dir(path(g, &all[0]).parent().unwrap()).unwrap().count();
    assert_eq!(beside, all.len());
    let last = all.last().unwrap().to;
    for version in [0, 3, last] {
        let erased = state(g, &thread, version).await;
        assert_eq!((erased.status, erased.code()), (410, "state_erased"), "{:#}", erased.body);
    }
    state(g, &thread, last + 1).await.expect(200);
    let back = json!({"node": "planner", "parent": heads.last().unwrap(), "to_version": 1});
    let back = g.post(&format!("/v1/threads/{}/rollbacks", thread.as_str().unwrap()), &g.planner, back).await;
    assert_eq!((back.status, back.code()), (410, "state_erased"), "{:#}", back.body);
    let chain = g.get(&format!("/v1/threads/{}/chain?page_size=200", thread.as_str().unwrap()), &g.auditor).await;
    let chain = chain.expect(200);
    let opened: Vec<bool> = chain["entries"].as_array().unwrap().iter().map(|it| !it["opening"].is_null()).collect();
    let expected: Vec<bool> = (0..=VERSIONS).map(|it| it > last + 1).collect();
    assert_eq!(opened, expected, "every link is there, and the change of what is not erased");
    let page = g.service.history(&thread.as_str().unwrap().try_into().unwrap(), None, 200).await.unwrap().1;
    assert_eq!(page.len() as u64, VERSIONS - last - 1);
    scene.passes_an_audit().await;
}

async fn what_was_taken_out_comes_back_as_it_was_after_a_cut_off_run(scene: Scene) {
    let g = &scene.gateway;
    let (thread, heads) = grown(g, VERSIONS).await;
    let before = told(g, &thread, &heads).await;
    // A run that wrote its file and was cut off before its change: the same run again comes to the same file.
    works(g).await;
    let all = archives(&scene).await;
    let written: Vec<Vec<u8>> = all.iter().map(|it| std::fs::read(path(g, it)).unwrap()).collect();
    let id = thread.as_str().unwrap().try_into().unwrap();
    assert_eq!(g.service.restore_archives(&"tests".try_into().unwrap(), &id).await.unwrap(), all.len());
    assert_eq!(rows(&scene, Table::States).await, VERSIONS + 1);
    assert_eq!(rows(&scene, Table::Transitions).await, VERSIONS + 1);
    assert_eq!(rows(&scene, Table::Entries).await, VERSIONS + 1);
    assert_eq!(rows(&scene, Table::Whereabouts).await, 0);
    assert!(archives(&scene).await.is_empty() && all.iter().all(|it| !path(g, it).exists()));
    assert_eq!(told(g, &thread, &heads).await, before);
    scene.passes_an_audit().await;
    std::fs::create_dir_all(path(g, &all[0]).parent().unwrap()).unwrap();
    std::fs::write(path(g, &all[0]), &written[0]).unwrap();
    works(g).await;
    let again: Vec<Vec<u8>> = all.iter().map(|it| std::fs::read(path(g, it)).unwrap()).collect();
    assert_eq!(again, written);
    assert_eq!(told(g, &thread, &heads).await, before);
    let policy = source(POLICY);
    g.service.activate_policy(&"tests".try_into().unwrap(), None, policy, BTreeSet::new()).await.unwrap();
    assert_eq!(works(g).await, 0, "without the key nothing more goes");
    scene.passes_an_audit().await;
}

/// What a program says of a file and the published keys: its exit and its words.
async fn checked(program: &[String], file: &std::path::Path, bytes: &[u8]) -> (i32, String) {
    std::fs::write(file, bytes).unwrap();
    let program = program.to_vec();
    tokio::task::spawn_blocking(move || {
        let done = Command::new(&program[0]).args(&program[1..]).output().unwrap();
        let said = [done.stdout, done.stderr].concat();
        (done.status.code().unwrap(), String::from_utf8(said).unwrap())
    })
    .await
    .unwrap()
}

async fn a_file_is_checked_by_published_keys_alone(scene: Scene) {
    let g = &scene.gateway;
    grown(g, VERSIONS).await;
    works(g).await;
    check_files(&scene).await;
    g.pass(DAY * 6);
    works(g).await;
    check_files(&scene).await;
}

/// Every file as it is, and changed, by the program and by an implementation of somebody else's.
async fn check_files(scene: &Scene) {
    let g = &scene.gateway;
    let all = archives(scene).await;
    let (file, jwks) = (g.folder.path().join("a.json.gz"), g.folder.path().join("jwks.json"));
    let keys = g.http.get(format!("{}/.well-known/jwks.json", g.url)).send().await.unwrap().text().await.unwrap();
    std::fs::write(&jwks, keys).unwrap();
    let text = |it: &std::path::Path| it.to_str().unwrap().to_owned();
    let python = tokio::task::spawn_blocking(crate::python::python).await.unwrap();
    let oracle = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/oracle/check_export.py");
    let ours = ["archive", "verify", &text(&file), "--jwks", &text(&jwks)].map(str::to_owned);
    let ours: Vec<String> = [env!("CARGO_BIN_EXE_countersign").to_owned()].into_iter().chain(ours).collect();
    let theirs = vec![text(&python), text(&oracle), text(&file), text(&jwks)];
    for archive in &all {
        let bytes = std::fs::read(path(g, archive)).unwrap();
        let plain = unpacked(&bytes, PLAIN_BYTES_MAX).unwrap();
        assert_eq!(plain.contains("\"opening\""), archive.kept.has_values());
        let spoiled = |from: &str, to: &str| {
            assert!(plain.contains(from), "{from}");
            packed(&plain.replacen(from, to, 1)).unwrap()
        };
        let range = format!("\"from\":{},\"to\":{}", archive.from, archive.to);
        let shifted = format!("\"from\":{},\"to\":{}", archive.from + 1, archive.to + 1);
        // In an opening: the root that was signed is another.
        let opened = archive.kept.has_values().then(|| spoiled("\"value\":\"secret text", "\"value\":\"other text"));
        for (bytes, sound) in [
            (bytes.clone(), true),
            (opened.unwrap_or_default(), false),
            (spoiled("\"node\":\"input_parser\"", "\"node\":\"planner\""), false),
            (spoiled(&range, &shifted), false),
            (spoiled("\"edition\":2", "\"edition\":1"), false),
            (bytes[..bytes.len() / 2].to_vec(), false),
        ] {
            let (exit, said) = checked(&ours, &file, &bytes).await;
            assert_eq!(exit == 0, sound, "{said}");
            let (exit, said) = checked(&theirs, &file, &bytes).await;
            assert_eq!(exit == 0, sound, "{said}");
        }
    }
}

async fn what_people_are_asked_for_again_is_not_erased(scene: Scene) {
    let g = &scene.gateway;
    let (thread, heads) = grown(g, VERSIONS).await;
    works(g).await;
    g.pass(DAY * 6 - Duration::from_secs(3600));
    let id = thread.as_str().unwrap();
    let back = json!({"node": "planner", "parent": heads.last().unwrap(), "to_version": 1});
    let held = g.post(&format!("/v1/threads/{id}/rollbacks"), &g.planner, back).await;
    assert_eq!(held.status, 202, "{:#}", held.body);
    assert_eq!(works(g).await, 0, "a review asks for version 1");
    g.approved(&held.body).await;
    assert!(works(g).await > 0);
    assert_eq!(state(g, &thread, 1).await.code(), "state_erased");
    assert!(state(g, &thread, VERSIONS + 1).await.expect(200)["state"].to_string().contains("secret text number 1,"));
    scene.passes_an_audit().await;
}

async fn what_was_held_and_not_committed_goes_with_its_stretch(scene: Scene) {
    let g = &scene.gateway;
    let made = g.thread().await;
    let ask = json!({"requested_action": "refund", "target_user_id": 77_123_456});
    let held = g.propose(&made["thread"], &made["transition"], (&g.planner, "planner"), ask).await.expect(202);
    g.vote(&g.alice, &held, Verdict::Deny).await.unwrap();
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
    let found = g.service.decision(held["transition"].as_str().unwrap().parse().unwrap()).await.unwrap().1.unwrap();
    assert_eq!(found.decision, "denied");
    scene.passes_an_audit().await;
    g.pass(DAY * 6);
    works(g).await;
    assert_eq!(g.get(&path, &g.auditor).await.code(), "state_erased");
    for table in Table::ALL {
        let rows = scene.store().list(*table, Filter::All, None, LIST_ROWS_MAX).await.unwrap();
        assert!(rows.iter().all(|it| !it.body.contains("77123456")), "{table:?}");
    }
    scene.passes_an_audit().await;
}

async fn a_branch_stays_while_it_may_be_joined(scene: Scene) {
    let g = &scene.gateway;
    let made = g.thread().await;
    let id = made["thread"].as_str().unwrap();
    let fork = json!({"node": "input_parser", "branches": ["one"]});
    let forked = g.post(&format!("/v1/threads/{id}/forks"), &g.parser, fork).await.expect(201);
    let branch = &forked["branches"][0];
    let mut head = branch["transition"].clone();
    for version in 1..=VERSIONS {
        let patch = json!({"raw_text": format!("text {version}, and a little more of it")});
        let done = g.propose(&branch["thread"], &head, (&g.parser, "input_parser"), patch).await.expect(201);
        head = done["transition"].clone();
    }
    assert_eq!(works(g).await, 0, "a join compares it with what it began with");
    let join = json!({"node": "input_parser", "parent": made["transition"], "branches": ["one"], "strategy": "union"});
    g.post(&format!("/v1/threads/{id}/joins"), &g.parser, join).await.expect(201);
    assert!(works(g).await > 0, "the head has moved, so nothing of it is joined again");
    scene.passes_an_audit().await;
}

async fn what_became_of_a_branch_is_told_from_its_file(scene: Scene) {
    let g = &scene.gateway;
    let made = g.thread().await;
    let id = made["thread"].as_str().unwrap();
    let fork = json!({"node": "input_parser", "branches": ["one", "two"]});
    let forked = g.post(&format!("/v1/threads/{id}/forks"), &g.parser, fork).await.expect(201);
    let branch = &forked["branches"][0];
    let patch = json!({"raw_text": "what the branch says"});
    g.propose(&branch["thread"], &branch["transition"], (&g.parser, "input_parser"), patch).await.expect(201);
    let join = json!({"node": "input_parser", "parent": made["transition"], "branches": ["one"], "strategy": "union"});
    let joined = g.post(&format!("/v1/threads/{id}/joins"), &g.parser, join).await.expect(201);
    let mut head = joined["transition"].clone();
    for version in 1..=VERSIONS {
        let patch = json!({"raw_text": format!("text {version}, and a little more of it")});
        let done = g.propose(&made["thread"], &head, (&g.parser, "input_parser"), patch).await.expect(201);
        head = done["transition"].clone();
    }
    let became = async || {
        let row = g.service.overview(&id.try_into().unwrap()).await.unwrap().thread;
        let seen = g.service.branches_seen(&row, None, 10).await.unwrap().branches;
        seen.into_iter().map(|it| (it.name.to_string(), it.became)).collect::<Vec<_>>()
    };
    let all = [("one".to_owned(), BranchBecame::Joined { version: 1 }), ("two".to_owned(), BranchBecame::LeftBehind)];
    assert_eq!(became().await, all);
    assert!(works(g).await > 0);
    assert_eq!(became().await, all, "what was archived says it");
    g.pass(DAY * 6);
    assert!(works(g).await > 0);
    assert_eq!(became().await, all, "and so does what is erased");
    scene.passes_an_audit().await;
}

/// What whoever has the row key besides the database writes there.
async fn seals<R: Record>(scene: &Scene, write: impl FnOnce(&mut Draft<'_>, &[Stored<R>])) {
    let keys = scene.gateway.service.keys().unwrap();
    let reader = Reader { store: scene.store(), key: keys.row() };
    let found: Vec<Stored<R>> = reader.list(Filter::All, None, LIST_ROWS_MAX).await.unwrap();
    let mut draft = Draft::new(keys.row(), scene.gateway.service.now());
    write(&mut draft, &found);
    scene.store().commit(draft.finish().change).await.unwrap();
}

/// Whoever has the row key writes another file, and a row that calls it the one.
async fn seals_file(scene: &Scene, archive: &Archive, text: &str) {
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

async fn an_altered_state_does_not_pass_whoever_sealed_it(scene: Scene) {
    let g = &scene.gateway;
    let (thread, _) = grown(g, VERSIONS).await;
    works(g).await;
    let first = archives(&scene).await[0].clone();
    let plain = unpacked(&std::fs::read(path(g, &first)).unwrap(), PLAIN_BYTES_MAX).unwrap();
    let altered = plain.replace("\"raw_text\":\"secret text", "\"raw_text\":\"another text");
    let altered = altered.replace("[\"/raw_text\",\"secret text", "[\"/raw_text\",\"another text");
    assert_ne!(altered, plain);
    seals_file(&scene, &first, &altered).await;
    let lied = state(g, &thread, 3).await;
    assert_eq!((lied.status, lied.code()), (500, "chain_broken"), "{:#}", lied.body);
    let found = scene.findings().await.join("\n");
    assert!(found.contains("the archives are not those that events tell of"), "{found}");
    assert!(
        found.contains("the state is not what the transition made") || found.contains("not one signed link"),
        "{found}"
    );
}

async fn a_dropped_row_is_refused_and_found(scene: Scene) {
    let g = &scene.gateway;
    let (thread, _) = grown(g, VERSIONS).await;
    works(g).await;
    seals::<Archive>(&scene, |draft, rows| {
        draft.remove(&rows[0]);
    })
    .await;
    assert_eq!(state(g, &thread, 3).await.code(), "chain_broken");
    let found = scene.findings().await.join("\n");
    assert!(found.contains("the archives are not those that events tell of"), "{found}");
    assert!(found.contains("a version of the chain is gone"), "{found}");
    assert!(found.contains("no archive has it"), "{found}");
}

async fn what_is_called_erased_and_was_not_is_found(scene: Scene) {
    let g = &scene.gateway;
    let (thread, _) = grown(g, VERSIONS).await;
    works(g).await;
    let first = archives(&scene).await[0].clone();
    let kept = Kept::Erased { at: g.service.now(), policy: first.policy };
    seals::<Archive>(&scene, |draft, rows| {
        let row = rows.iter().find(|it| it.record == first).unwrap();
        draft.replace(row, &Archive { kept, ..first.clone() }).unwrap();
    })
    .await;
    seals::<Thread>(&scene, |draft, rows| {
        let mut record = rows[0].record.clone();
        record.gone.erased = first.to + 1;
        draft.replace(&rows[0], &record).unwrap();
    })
    .await;
    assert_eq!(state(g, &thread, 3).await.code(), "archive_missing");
    let found = scene.findings().await.join("\n");
    assert!(found.contains("the archives are not those that events tell of"), "{found}");
    assert!(found.contains("how far its past has left the database is not what its events say"), "{found}");
}

async fn what_is_asked_for_again_is_answered_as_it_was_and_does_nothing(scene: Scene) {
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
    let overview = g.service.overview(&id.try_into().unwrap()).await.unwrap();
    assert_eq!(overview.thread.head.version, VERSIONS, "nothing came of any of it");
    scene.passes_an_audit().await;
}

async fn another_stretchs_file_does_not_pass_whoever_sealed_it(scene: Scene) {
    let g = &scene.gateway;
    let ((one, _), _) = (grown(g, VERSIONS * 2).await, grown(g, VERSIONS * 2).await);
    works(g).await;
    let all = archives(&scene).await;
    let first = all.iter().find(|it| json!(it.thread) == one).unwrap();
    let own = all.iter().find(|it| it.thread == first.thread && it.from > first.to).unwrap();
    let strange = all.iter().find(|it| it.thread != first.thread && it.from == first.from).unwrap();
    let text = |it: &Archive| unpacked(&std::fs::read(path(g, it)).unwrap(), PLAIN_BYTES_MAX).unwrap();
    let (own, strange) = (text(own), text(strange));
    let mut row = first.clone();
    for other in [own, strange] {
        seals_file(&scene, &row, &other).await;
        row = archives(&scene).await.into_iter().find(|it| it.thread == first.thread && it.from == first.from).unwrap();
        let refused = state(g, &one, first.from).await;
        assert_eq!((refused.status, refused.code()), (503, "archive_damaged"), "{:#}", refused.body);
        let found = scene.findings().await.join("\n");
        assert!(found.contains("its file is gone, or is not the one that was written"), "{found}");
    }
}

async fn content(g: &Gateway, archive: &Archive) -> Content {
    Content::read(&unpacked(&std::fs::read(path(g, archive)).unwrap(), PLAIN_BYTES_MAX).unwrap()).unwrap()
}

async fn a_row_beside_the_file_that_has_it_is_found(scene: Scene) {
    let g = &scene.gateway;
    grown(g, VERSIONS).await;
    works(g).await;
    let all = archives(&scene).await;
    let archived = content(g, &all[0]).await.entries[3].clone();
    let finding = "what it holds is not what was taken out of the database";
    let found = async || scene.findings().await.join("\n");
    seals::<Transition>(&scene, |draft, _| drop(draft.insert(&archived.row()).unwrap())).await;
    assert!(found().await.contains(finding), "{}", found().await);
    seals::<Transition>(&scene, |draft, rows| {
        draft.remove(rows.iter().find(|it| it.record.digest == archived.transition).unwrap());
    })
    .await;
    scene.passes_an_audit().await;
    seals::<ChainRow>(&scene, |draft, _| drop(draft.insert(&archived.link()).unwrap())).await;
    assert!(found().await.contains(finding), "{}", found().await);
    seals::<ChainRow>(&scene, |draft, rows| {
        draft.remove(rows.iter().find(|it| it.record.version == 3).unwrap());
    })
    .await;
    scene.passes_an_audit().await;
    // The last entry that went is there still.
    seals::<ChainRow>(&scene, |draft, rows| {
        draft.remove(rows.iter().min_by_key(|it| it.record.version).unwrap());
    })
    .await;
    assert!(found().await.contains(finding), "{}", found().await);
}

async fn a_transition_that_is_said_to_be_elsewhere_is_refused_and_found(scene: Scene) {
    let g = &scene.gateway;
    let (thread, heads) = grown(g, VERSIONS).await;
    works(g).await;
    let told = async || g.get(&format!("/v1/transitions/{}", heads[3].as_str().unwrap()), &g.auditor).await;
    told().await.expect(200);
    seals::<Whereabouts>(&scene, |draft, rows| {
        let row = rows.iter().find(|it| json!(it.record.transition) == heads[3]).unwrap();
        draft.replace(row, &Whereabouts { version: 4, ..row.record.clone() }).unwrap();
    })
    .await;
    assert_eq!(told().await.code(), "chain_broken");
    let decided = g.service.decision(heads[3].as_str().unwrap().parse().unwrap()).await;
    assert!(matches!(decided, Err(Error::Broken(_))), "{decided:?}");
    let finding = "the database does not say of all its transitions that they are in it";
    assert!(scene.findings().await.join("\n").contains(finding));
    seals::<Whereabouts>(&scene, |draft, rows| {
        draft.remove(rows.iter().find(|it| json!(it.record.transition) == heads[3]).unwrap());
    })
    .await;
    assert_eq!(told().await.status, 404);
    assert_eq!(state(g, &thread, 3).await.code(), "chain_broken");
    assert!(scene.findings().await.join("\n").contains(finding));
    // At its first revision, as if it had always said so.
    seals::<Whereabouts>(&scene, |draft, rows| {
        let transition = heads[3].as_str().unwrap().parse().unwrap();
        draft.insert(&Whereabouts { transition, version: 4, ..rows[0].record.clone() }).unwrap();
    })
    .await;
    assert_eq!(told().await.code(), "chain_broken");
    assert!(scene.findings().await.join("\n").contains(finding));
    seals::<Whereabouts>(&scene, |draft, rows| {
        let strange = Whereabouts { transition: Digest::of_file(b"nothing"), ..rows[0].record.clone() };
        draft.insert(&strange).unwrap();
    })
    .await;
    assert!(scene.findings().await.join("\n").contains("no archive has it"));
}

async fn what_was_stated_is_not_changed_in_what_stays_of_it(scene: Scene) {
    let g = &scene.gateway;
    let (thread, _) = grown(g, VERSIONS).await;
    works(g).await;
    g.pass(DAY * 6);
    works(g).await;
    let first = archives(&scene).await[0].clone();
    let chain = async || {
        let id = thread.as_str().unwrap();
        g.get(&format!("/v1/threads/{id}/chain?page_size=200"), &g.auditor).await
    };
    chain().await.expect(200);
    let text = content(g, &first).await.text();
    seals_file(&scene, &first, &text.replacen("\"node\":\"input_parser\"", "\"node\":\"planner\"", 1)).await;
    assert_eq!(chain().await.code(), "chain_broken");
    let found = scene.findings().await.join("\n");
    assert!(found.contains("the archives are not those that events tell of"), "{found}");
    assert!(found.contains("entry, statement and state are not one signed link"), "{found}");
}

async fn what_is_nested_deeply_goes_too(scene: Scene) {
    let g = &scene.gateway;
    let made = g.thread().await;
    let limits = StateLimits { depth_max: STATE_DEPTH_CEILING, ..StateLimits::default() };
    let service = scene.another_within(limits).await.archiving_in(archives_in(g.folder.path()));
    let token = service.token_of(&g.parser).await.unwrap();
    let mut head: Digest = made["transition"].as_str().unwrap().parse().unwrap();
    for version in 1..=DEEP_VERSIONS {
        let deep = (2..STATE_DEPTH_CEILING).fold(json!({"at": version}), |below, _| json!({"a": below}));
        let proposal = Proposal {
            thread: made["thread"].as_str().unwrap().try_into().unwrap(),
            parent: head,
            node: "input_parser".try_into().unwrap(),
            ask: Asked::Patch { format: Format::Merge, patch: json!({"raw_text": deep}) },
            attempt: 1,
            rationale: None,
            tool: None,
            usage: Usage::default(),
            step: None,
        };
        let Ok(ProposalAnswer::Committed { transition, .. }) = service.propose(&token, &proposal).await else {
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

async fn what_refers_to_what_has_gone_is_answered_as_before(scene: Scene) {
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
        let facts = g.service.review(&review.try_into().unwrap(), &g.alice).await.unwrap();
        let version = g.service.version_facts(&id.try_into().unwrap(), 1).await.unwrap();
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
    let erased = g.service.review(&review.try_into().unwrap(), &g.alice).await;
    assert!(matches!(erased, Err(Error::Erased)));
    scene.passes_an_audit().await;
}

async fn when_a_version_was_left_is_told_by_the_next(scene: Scene) {
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
    assert!(found.contains("the archives are not those that events tell of"), "{found}");
}

async fn what_a_node_was_given_goes_with_its_version(scene: Scene) {
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
    assert!(archives(&scene).await.iter().all(|it| matches!(it.kept, Kept::Erased { .. })));
    assert_eq!(sum().await, counted);
    scene.passes_an_audit().await;
}
