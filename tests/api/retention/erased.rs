//! Tests erasure. Values are deleted permanently, and signed records stay.

use std::sync::atomic::{AtomicBool, Ordering};

use countersign_domain::chain::entry::Entry;
use countersign_domain::chain::jws::{self, TokenType};
use countersign_domain::identity::party::Party;
use countersign_domain::primitives::time::Timestamp;

use async_trait::async_trait;
use countersign_store::change::ChangeSet;
use countersign_store::{Store, StoreError};

use super::*;
use crate::over::StoreInterceptor;

on_both! {
    erased_values_are_deleted_and_their_chain_stays(super::retaining("versions = 10\nerase_after_days = 5")),
    version_that_a_pending_review_restores_is_not_erased(super::retaining("versions = 10\nerase_after_days = 5")),
    audit_finds_a_false_mark_of_erasure(super::retaining("versions = 10")),
    proposals_that_did_not_fit_an_archive_are_erased_with_it(super::tireless("versions = 10\nerase_after_days = 5")),
    proposals_from_a_clock_that_was_ahead_are_erased_with_their_archive(super::retaining("versions = 10\nerase_after_days = 5")),
    audit_finds_a_changed_statement_in_an_erased_archive(super::retaining("versions = 10\nerase_after_days = 5")),
    proposals_on_each_version_are_archived_with_it(super::retaining("versions = 10\nerase_after_days = 5")),
    archive_stays_erasing_while_its_directory_is_missing(super::retaining("versions = 10\nerase_after_days = 5")),
    a_clock_that_goes_back_for_a_moment_erases_nothing(super::retaining("versions = 10\nerase_after_days = 5")),
    erased_values_are_in_no_later_archive(super::retaining("versions = 10\nerase_after_days = 5")),
    archive_that_cannot_be_erased_does_not_block_others(super::retaining("versions = 10\nerase_after_days = 5")),
}

async fn erased_values_are_deleted_and_their_chain_stays(scene: ApiScenario) {
    let g = &scene.gateway;
    let (thread, heads) = grown(g, VERSIONS).await;
    works(g).await;
    let files: Vec<PathBuf> = archives(&scene).await.iter().map(|it| path(g, it)).collect();
    // A gateway was killed before a row named the file, under a policy with other stretches.
    let left = files[0].with_file_name("00000000000000000001-00000000000000000009.json.gz");
    std::fs::copy(&files[0], &left).unwrap();
    g.pass(DAY * 4);
    works(g).await;
    assert!(files.iter().all(|it| it.exists()));
    g.pass(DAY * 2);
    assert_eq!(works(g).await, files.len());
    assert!(files.iter().chain([&left]).all(|it| !it.exists()));
    let all = archives(&scene).await;
    assert!(all.iter().all(|it| matches!(it.kept, ArchiveContentState::Erased { .. })), "{all:?}");
    for table in Table::ALL {
        let rows = scene.store().list(*table, RowFilter::All, None, LIST_ROWS_MAX).await.unwrap();
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
    let page = g
        .service
        .threads
        .history(&thread.as_str().unwrap().try_into().unwrap(), None, 200, &Party::Receiver)
        .await
        .unwrap()
        .1;
    assert_eq!(page.len() as u64, VERSIONS - last - 1);
    scene.passes_an_audit().await;
}

async fn version_that_a_pending_review_restores_is_not_erased(scene: ApiScenario) {
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

async fn audit_finds_a_false_mark_of_erasure(scene: ApiScenario) {
    let g = &scene.gateway;
    let (thread, _) = grown(g, VERSIONS).await;
    works(g).await;
    let first = archives(&scene).await[0].clone();
    let kept = ArchiveContentState::Erased { at: g.service.core.now(), policy: first.policy };
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
    assert!(found.contains("the archives of the thread differ from its events"), "{found}");
    assert!(found.contains("the archived and erased versions of the thread differ from its events"), "{found}");
}

async fn audit_finds_a_changed_statement_in_an_erased_archive(scene: ApiScenario) {
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
    assert!(found.contains("the archives of the thread differ from its events"), "{found}");
    assert!(found.contains("the entry, the statement and the state do not form one signed link"), "{found}");
}

/// Proposes changes that require approval and cancels each. Returns their transitions.
async fn takes_back(g: &TestGateway, on: (&Value, &Value), numbers: std::ops::Range<u64>) -> Vec<String> {
    let mut asked = Vec::new();
    for number in numbers {
        let ask = json!({"target_user_id": 77_000_000 + number});
        let held = g.propose(on.0, on.1, (&g.planner, "planner"), ask).await.expect(202);
        let transition = held["transition"].as_str().unwrap().to_owned();
        let reason = json!({"reason": "again"});
        g.post(&format!("/v1/transitions/{transition}/cancellation"), &g.planner, reason).await.expect(200);
        asked.push(format!("/v1/transitions/{transition}"));
    }
    asked
}

async fn proposals_that_did_not_fit_an_archive_are_erased_with_it(scene: ApiScenario) {
    let g = &scene.gateway;
    let made = g.thread().await;
    let mut asked = takes_back(g, (&made["thread"], &made["transition"]), 0..70).await;
    let mut head = made["transition"].clone();
    for version in 1..=VERSIONS {
        let patch = json!({"raw_text": format!("text {version}, and a little more of it")});
        let done = g.propose(&made["thread"], &head, (&g.parser, "input_parser"), patch).await.expect(201);
        head = done["transition"].clone();
        if version == 1 {
            asked.extend(takes_back(g, (&made["thread"], &head), 70..140).await);
        }
    }
    works(g).await;
    let first = content(g, &archives(&scene).await[0]).await;
    assert_eq!(first.ended.len(), 128, "an agent does not make a file too large to be written");
    let in_rows = async || {
        let rows = scene.store().list(Table::Transitions, RowFilter::All, None, LIST_ROWS_MAX).await.unwrap();
        rows.iter().filter(|it| it.body.contains("\"target_user_id\":770")).count()
    };
    assert_eq!(in_rows().await, asked.len() - 128);
    for path in &asked {
        assert!(g.get(path, &g.auditor).await.expect(200).to_string().contains(":770"));
    }
    scene.passes_an_audit().await;
    g.pass(DAY * 6);
    works(g).await;
    assert_eq!(in_rows().await, 0, "none of it outlives its stretch");
    for path in &asked {
        assert_eq!(g.get(path, &g.auditor).await.code(), "state_erased");
    }
    scene.passes_an_audit().await;
}

/// Proposals from a clock that was ahead cannot be found by their time.
async fn proposals_from_a_clock_that_was_ahead_are_erased_with_their_archive(scene: ApiScenario) {
    let g = &scene.gateway;
    let made = g.thread().await;
    g.pass(DAY * 30);
    let asked = takes_back(g, (&made["thread"], &made["transition"]), 0..3).await;
    g.clock.set_millis(0);
    let mut head = made["transition"].clone();
    for version in 1..=VERSIONS {
        let patch = json!({"raw_text": format!("text {version}, and a little more of it")});
        let done = g.propose(&made["thread"], &head, (&g.parser, "input_parser"), patch).await.expect(201);
        head = done["transition"].clone();
    }
    works(g).await;
    let keys = g.service.core.keys().unwrap();
    let reader = RecordReader { store: scene.store(), key: keys.row() };
    let digests: Vec<String> = asked.iter().map(|it| it.rsplit('/').next().unwrap().to_owned()).collect();
    let before: Vec<Stored<Transition>> = reader.get_many(&digests).await.unwrap();
    assert!(before.iter().all(|it| it.record.values == ValueLocation::Here), "they were not found for the file");
    g.pass(DAY * 6);
    works(g).await;
    for path in &asked {
        assert_eq!(g.get(path, &g.auditor).await.code(), "state_erased");
    }
    scene.passes_an_audit().await;
    seals::<Transition>(&scene, |draft, rows| {
        let row = rows.iter().find(|it| it.record.digest == before[0].record.digest).unwrap();
        draft.replace(row, &before[0].record).unwrap();
    })
    .await;
    let found = scene.findings().await.join("\n");
    assert!(found.contains("the values of the transition are still stored, although its version is erased"), "{found}");
}

/// Enough for several stretches of short versions.
const HELD: u64 = 110;

/// A proposal is held on every version for a while before the next version is committed.
async fn proposals_on_each_version_are_archived_with_it(scene: ApiScenario) {
    let g = &scene.gateway;
    let made = g.thread().await;
    let (thread, mut head) = (made["thread"].clone(), made["transition"].clone());
    for version in 1..=HELD {
        let ask = json!({"target_user_id": 77_000_000 + version});
        let held = g.propose(&thread, &head, (&g.planner, "planner"), ask).await.expect(202);
        g.vote(&g.alice, &held, VoteVerdict::Deny).await.unwrap();
        g.pass(Duration::from_secs(60));
        let patch = json!({"raw_text": format!("text {version}, and a little more of it")});
        head = g.propose(&thread, &head, (&g.parser, "input_parser"), patch).await.expect(201)["transition"].clone();
    }
    for days in [0, 6] {
        g.pass(DAY * days);
        works(g).await;
        let last = archives(&scene).await.iter().map(|it| it.to).max().unwrap();
        assert!(archives(&scene).await.len() > 1, "several stretches have gone: {last}");
        let rows = scene.store().list(Table::Transitions, RowFilter::All, None, LIST_ROWS_MAX).await.unwrap();
        let stays = |it: &u64| rows.iter().any(|row| row.body.contains(&format!(":{}", 77_000_000 + it)));
        let stay: Vec<u64> = (1..=HELD).filter(stays).collect();
        assert_eq!(stay, (last + 1..=HELD).collect::<Vec<_>>(), "after {days} days: held to become these versions");
    }
    scene.passes_an_audit().await;
}

async fn archive_that_cannot_be_erased_does_not_block_others(scene: ApiScenario) {
    let g = &scene.gateway;
    grown(g, VERSIONS).await;
    works(g).await;
    let stuck = archives(&scene).await[0].clone();
    let kept = ArchiveContentState::Erasing { at: g.service.core.now(), policy: stuck.policy };
    let text = content(g, &stuck).await.without_values().text();
    let bytes = packed(&text).unwrap();
    let (file, plain_bytes) = (Digest::of_file(&bytes), text.len() as u64);
    let erasing = Archive { kept, file, bytes: bytes.len() as u64, plain_bytes, ..stuck.clone() };
    archives_in(g.folder.path()).write(&erasing, &bytes).unwrap();
    scene.retells(&format!("{}/{:020}", stuck.thread, stuck.to), |_: Archive| erasing).await;
    // The worker does not remove directories.
    let file = path(g, &stuck).with_file_name("00000000000000000001-00000000000000000009.json.gz");
    std::fs::create_dir(file).unwrap();
    let before = archives(&scene).await.len();
    grown(g, VERSIONS).await;
    Archiver::default().run_once(&g.service).await.unwrap_err();
    assert!(archives(&scene).await.len() > before, "another thread's versions have gone");
}

/// Enough for two archives of short versions.
const TWO: u64 = 80;

/// The opening of an archive's first version would contain the values before its change.
async fn erased_values_are_in_no_later_archive(scene: ApiScenario) {
    let g = &scene.gateway;
    let (thread, heads) = grown(g, 40).await;
    g.pass(DAY * 3);
    grown_on(g, &thread, heads, 41..=TWO).await;
    works(g).await;
    let [first, second] = &archives(&scene).await[..2] else { panic!() };
    assert!(first.to < 40 && second.to >= 40, "{first:?} {second:?}");
    let plain = async |archive: &Archive| content(g, archive).await.text();
    let last = format!("secret text number {},", first.to);
    assert!(plain(first).await.contains(&last));
    assert!(content(g, second).await.entries[1].opening.is_some());
    scene.passes_an_audit().await;
    let chain = async || {
        let path = format!("/v1/threads/{}/chain?page_size=200", thread.as_str().unwrap());
        g.get(&path, &g.auditor).await.expect(200)["entries"].clone()
    };
    assert!(chain().await.as_array().unwrap().iter().all(|it| it["opening"].is_object()), "an auditor is told all");
    g.pass(DAY * 3);
    works(g).await;
    let all = archives(&scene).await;
    assert!(matches!(all[0].kept, ArchiveContentState::Erased { .. }) && all[1].kept.has_values(), "{all:?}");
    for archive in &all {
        assert!(!plain(archive).await.contains(&last), "{archive:?}");
    }
    assert!(chain().await[usize::try_from(all[1].from).unwrap()]["opening"].is_null());
    scene.passes_an_audit().await;
}

/// Allows one change and no later one.
struct SingleChangeStore(AtomicBool);

#[async_trait]
impl StoreInterceptor for SingleChangeStore {
    async fn commit(&self, inner: &dyn Store, change: ChangeSet) -> Result<(), StoreError> {
        if self.0.swap(false, Ordering::SeqCst) { inner.commit(change).await } else { Err(StoreError::Busy) }
    }
}

async fn archive_stays_erasing_while_its_directory_is_missing(scene: ApiScenario) {
    let g = &scene.gateway;
    grown(g, VERSIONS).await;
    works(g).await;
    g.pass(DAY * 6);
    let cut_off = watched(&scene, SingleChangeStore(AtomicBool::new(true))).await;
    Archiver::default().run_once(&cut_off).await.unwrap_err();
    // The gateway was killed before it removed a file, which is still there.
    let first = archives(&scene).await[0].clone();
    assert!(matches!(first.kept, ArchiveContentState::Erasing { .. }), "{first:?}");
    let values = path(g, &Archive { kept: ArchiveContentState::Whole {}, ..first.clone() });
    std::fs::write(&values, "secret text").unwrap();
    let (folder, away) = (values.parent().unwrap(), g.folder.path().join("away"));
    std::fs::rename(folder, &away).unwrap();
    Archiver::default().run_once(&g.service).await.unwrap_err();
    assert_eq!(archives(&scene).await[0], first);
    // The archive also stays `erasing` while another directory is mounted in its place.
    std::fs::create_dir(folder).unwrap();
    Archiver::default().run_once(&g.service).await.unwrap_err();
    assert_eq!(archives(&scene).await[0], first);
    std::fs::remove_dir(folder).unwrap();
    std::fs::rename(&away, folder).unwrap();
    works(g).await;
    let all = archives(&scene).await;
    assert!(all.iter().all(|it| matches!(it.kept, ArchiveContentState::Erased { .. })), "{all:?}");
    let names = std::fs::read_dir(folder).unwrap().map(|it| it.unwrap().file_name().into_string().unwrap());
    let names: Vec<String> = names.collect();
    assert!(names.len() == all.len() && names.iter().all(|it| it.ends_with(".erased.json.gz")), "{names:?}");
    scene.passes_an_audit().await;
}

async fn a_clock_that_goes_back_for_a_moment_erases_nothing(scene: ApiScenario) {
    let g = &scene.gateway;
    // The version after the first stretch is the same in each of these threads.
    grown(g, VERSIONS).await;
    works(g).await;
    let follows = archives(&scene).await[0].to + 1;
    g.pass(DAY * 30);
    works(g).await;
    let before = archives(&scene).await.len();
    let (thread, heads) = grown(g, follows - 1).await;
    g.clock.set_millis(0);
    let heads = grown_on(g, &thread, heads, follows..=follows).await;
    g.pass(DAY * 30);
    grown_on(g, &thread, heads, follows + 1..=TWO).await;
    works(g).await;
    let all = archives(&scene).await;
    let id = thread.as_str().unwrap();
    let first = all.iter().find(|it| it.thread.as_str() == id).unwrap();
    assert!(all.len() > before && first.to + 1 == follows && first.kept.has_values(), "{first:?}");
    assert!(all.iter().filter(|it| it.thread.as_str() == id).all(|it| it.kept.has_values()), "{all:?}");
    scene.passes_an_audit().await;
    // An earlier release recorded the time of the next commit as their end.
    let next = all.iter().find(|it| it.thread.as_str() == id && it.from == follows).unwrap();
    let next = content(g, next).await.entries[0].entry.clone();
    let left = jws::read::<Entry>(&next, TokenType::Entry).unwrap().claims_unverified().committed_at;
    assert!(left < first.left.minus(DAY * 29));
    let resealed = async |from: &Archive, left: Timestamp| {
        seals::<Archive>(&scene, |draft, rows| {
            draft.remove(rows.iter().find(|it| it.record == *from).unwrap());
        })
        .await;
        let other = Archive { left, ..from.clone() };
        seals::<Archive>(&scene, |draft, _| drop(draft.insert(&other).unwrap())).await;
        other
    };
    let of_before = resealed(first, left).await;
    scene.passes_an_audit().await;
    resealed(&of_before, first.left).await;
    g.pass(DAY * 6);
    works(g).await;
    let all = archives(&scene).await;
    assert!(all.iter().all(|it| matches!(it.kept, ArchiveContentState::Erased { .. })), "{all:?}");
    scene.passes_an_audit().await;
}
