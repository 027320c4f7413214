//! What leaves the database by a policy's `[retain]`: nothing without it, nothing before its time, all of it readable as before
//! from its file, and for ever gone once it is erased. On both databases.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use countersign::archives::{packed, unpacked};
use countersign::domain::archive::{Archive, Kept, PLAIN_BYTES_MAX};
use countersign::domain::chain::hash::Digest;
use countersign::domain::review::Verdict;
use countersign::domain::thread::Thread;
use countersign::store::change::Draft;
use countersign::store::record::{Reader, Record, Stored};
use countersign::store::row::Table;
use countersign::store::{Filter, LIST_ROWS_MAX};
use countersign::worker::archive::Archiver;
use serde_json::{Value, json};

use crate::gateway::{Answer, Gateway, POLICY, archives_in, source};
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
    an_altered_state_does_not_pass_whoever_sealed_it(super::retaining("versions = 10")),
    a_dropped_row_is_refused_and_found(super::retaining("versions = 10")),
    what_is_called_erased_and_was_not_is_found(super::retaining("versions = 10")),
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

const DAY: Duration = Duration::from_secs(24 * 3600);

/// Enough for several archives.
const VERSIONS: u64 = 60;

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

async fn state_rows(scene: &Scene) -> usize {
    scene.store().list(Table::States, Filter::All, None, LIST_ROWS_MAX).await.unwrap().len()
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
    assert_eq!((state_rows(&scene).await, archives(&scene).await.len()), (VERSIONS as usize + 1, 0));
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
    assert_eq!(state_rows(&scene).await as u64, VERSIONS + 1 - archived);
    let rows = scene.store().list(Table::Transitions, Filter::All, None, LIST_ROWS_MAX).await.unwrap();
    let says = |version: u64| rows.iter().any(|it| it.body.contains(&format!("secret text number {version},")));
    assert!(!says(1) && says(VERSIONS), "what was asked for goes with the states");
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
    assert!(state_rows(&scene).await >= 1, "the head's own stretch stays");
    scene.passes_an_audit().await;
}

async fn both_bounds_keep(scene: Scene) {
    let g = &scene.gateway;
    grown(g, VERSIONS).await;
    assert_eq!(works(g).await, 0, "of the count alone they might go");
    g.pass(DAY * 31);
    assert!(works(g).await > 0);
    assert!(state_rows(&scene).await >= 10, "of the days alone they all might go");
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
    for table in [Table::States, Table::Transitions, Table::Entries, Table::Events, Table::Archives] {
        let rows = scene.store().list(table, Filter::All, None, LIST_ROWS_MAX).await.unwrap();
        assert!(rows.iter().all(|it| !it.body.contains("secret text number 1,")), "{table:?}");
    }
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
    assert_eq!(state_rows(&scene).await as u64, VERSIONS + 1);
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
    let all = archives(&scene).await;
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
        let spoiled = |from: &str, to: &str| {
            assert!(plain.contains(from), "{from}");
            packed(&plain.replacen(from, to, 1)).unwrap()
        };
        let range = format!("\"from\":{},\"to\":{}", archive.from, archive.to);
        let shifted = format!("\"from\":{},\"to\":{}", archive.from + 1, archive.to + 1);
        for (bytes, sound) in [
            (bytes.clone(), true),
            // In an opening: the root that was signed is another.
            (spoiled("\"value\":\"secret text", "\"value\":\"other text"), false),
            (spoiled("\"node\":\"input_parser\"", "\"node\":\"planner\""), false),
            (spoiled(&range, &shifted), false),
            (spoiled("\"edition\":1", "\"edition\":2"), false),
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

/// What whoever has the row key besides the database writes there.
async fn seals<R: Record>(scene: &Scene, write: impl FnOnce(&mut Draft<'_>, &[Stored<R>])) {
    let keys = scene.gateway.service.keys().unwrap();
    let reader = Reader { store: scene.store(), key: keys.row() };
    let found: Vec<Stored<R>> = reader.list(Filter::All, None, LIST_ROWS_MAX).await.unwrap();
    let mut draft = Draft::new(keys.row(), scene.gateway.service.now());
    write(&mut draft, &found);
    scene.store().commit(draft.finish().change).await.unwrap();
}

async fn an_altered_state_does_not_pass_whoever_sealed_it(scene: Scene) {
    let g = &scene.gateway;
    let (thread, _) = grown(g, VERSIONS).await;
    works(g).await;
    let first = archives(&scene).await[0].clone();
    let plain = unpacked(&std::fs::read(path(g, &first)).unwrap(), PLAIN_BYTES_MAX).unwrap();
    let (states, lie) = (plain.find("\"states\":").unwrap(), "\"raw_text\":\"another text");
    let altered = plain[..states].to_owned() + &plain[states..].replace("\"raw_text\":\"secret text", lie);
    let altered = altered.replace("[\"/raw_text\",\"secret text", "[\"/raw_text\",\"another text");
    assert_ne!(altered, plain);
    let bytes = packed(&altered).unwrap();
    archives_in(g.folder.path()).write(&first, &bytes).unwrap();
    let sealed = Archive {
        file: Digest::of_file(&bytes),
        bytes: bytes.len() as u64,
        plain_bytes: altered.len() as u64,
        ..first.clone()
    };
    seals::<Archive>(&scene, |draft, rows| {
        let row = rows.iter().find(|it| it.record == first).unwrap();
        draft.replace(row, &sealed).unwrap();
    })
    .await;
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
    assert!(found.contains("a version's state is gone"), "{found}");
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
    assert_eq!(state(g, &thread, 3).await.code(), "state_erased");
    let found = scene.findings().await.join("\n");
    assert!(found.contains("the archives are not those that events tell of"), "{found}");
    assert!(found.contains("how far its past has left the database is not what its events say"), "{found}");
}
