//! Tests archives that are missing, exchanged or forged. Every reader gets an error, and the audit finds them, even if
//! an attacker sealed the rows.

use countersign_domain::identity::party::Party;
use countersign_service::inbox::list::InboxItem;

use super::*;

on_both! {
    missing_or_changed_archive_is_reported_and_found(super::retaining("versions = 10")),
    archives_of_two_threads_cannot_be_exchanged(super::retaining("versions = 10")),
    altered_state_is_found_even_under_a_valid_seal(super::retaining("versions = 10")),
    a_dropped_row_is_refused_and_found(super::retaining("versions = 10")),
    exchanged_archive_is_found_even_under_a_valid_seal(super::retaining("versions = 10")),
    audit_finds_a_row_that_is_also_in_an_archive(super::retaining("versions = 10")),
    transition_with_a_forged_location_is_refused_and_found(super::retaining("versions = 10")),
    a_list_of_reviews_reads_no_archive(super::retaining("versions = 10")),
}

async fn missing_or_changed_archive_is_reported_and_found(scene: ApiScenario) {
    let g = &scene.gateway;
    let (thread, _) = grown(g, VERSIONS).await;
    works(g).await;
    let first = path(g, &archives(&scene).await[0]);
    let bytes = std::fs::read(&first).unwrap();
    std::fs::remove_file(&first).unwrap();
    let missing = state(g, &thread, 3).await;
    assert_eq!((missing.status, missing.code()), (503, "archive_missing"), "{:#}", missing.body);
    let found = scene.findings().await.join("\n");
    assert!(found.contains("the archive file is missing or was changed: restore it from a backup"), "{found}");
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

async fn archives_of_two_threads_cannot_be_exchanged(scene: ApiScenario) {
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
    assert_eq!(scene.findings().await.iter().filter(|it| it.contains("the archive file is missing")).count(), 2);
}

async fn altered_state_is_found_even_under_a_valid_seal(scene: ApiScenario) {
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
    assert!(found.contains("the archives of the thread differ from its events"), "{found}");
    assert!(
        found.contains("the state is not the result of its transition on the state before")
            || found.contains("do not form one signed link"),
        "{found}"
    );
}

async fn a_dropped_row_is_refused_and_found(scene: ApiScenario) {
    let g = &scene.gateway;
    let (thread, _) = grown(g, VERSIONS).await;
    works(g).await;
    seals::<Archive>(&scene, |draft, rows| {
        draft.remove(&rows[0]);
    })
    .await;
    assert_eq!(state(g, &thread, 3).await.code(), "chain_broken");
    let found = scene.findings().await.join("\n");
    assert!(found.contains("the archives of the thread differ from its events"), "{found}");
    assert!(found.contains("a version of the chain is missing"), "{found}");
    assert!(found.contains("no archive contains the transition"), "{found}");
}

async fn exchanged_archive_is_found_even_under_a_valid_seal(scene: ApiScenario) {
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
        assert!(found.contains("the archive file is missing or was changed: restore it from a backup"), "{found}");
    }
}

async fn audit_finds_a_row_that_is_also_in_an_archive(scene: ApiScenario) {
    let g = &scene.gateway;
    grown(g, VERSIONS).await;
    works(g).await;
    let all = archives(&scene).await;
    let archived = content(g, &all[0]).await.entries[3].clone();
    let finding = "the archive file does not match the rows that were taken out of the database";
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
    // The last archived entry stays in the database.
    seals::<ChainRow>(&scene, |draft, rows| {
        draft.remove(rows.iter().min_by_key(|it| it.record.version).unwrap());
    })
    .await;
    assert!(found().await.contains(finding), "{}", found().await);
}

async fn transition_with_a_forged_location_is_refused_and_found(scene: ApiScenario) {
    let g = &scene.gateway;
    let (thread, heads) = grown(g, VERSIONS).await;
    works(g).await;
    let told = async || g.get(&format!("/v1/transitions/{}", heads[3].as_str().unwrap()), &g.auditor).await;
    told().await.expect(200);
    seals::<ArchivedLocation>(&scene, |draft, rows| {
        let row = rows.iter().find(|it| json!(it.record.transition) == heads[3]).unwrap();
        draft.replace(row, &ArchivedLocation { version: 4, ..row.record.clone() }).unwrap();
    })
    .await;
    assert_eq!(told().await.code(), "chain_broken");
    let decided = g.service.reviews.decision(heads[3].as_str().unwrap().parse().unwrap(), &Party::Receiver).await;
    assert!(matches!(decided, Err(Error::Broken(_))), "{decided:?}");
    let finding = "a transition of the archive has no matching row in whereabouts";
    assert!(scene.findings().await.join("\n").contains(finding));
    seals::<ArchivedLocation>(&scene, |draft, rows| {
        draft.remove(rows.iter().find(|it| json!(it.record.transition) == heads[3]).unwrap());
    })
    .await;
    assert_eq!(told().await.status, 404);
    assert_eq!(state(g, &thread, 3).await.code(), "chain_broken");
    assert!(scene.findings().await.join("\n").contains(finding));
    // The row has its first revision, as if it had always had this content.
    seals::<ArchivedLocation>(&scene, |draft, rows| {
        let transition = heads[3].as_str().unwrap().parse().unwrap();
        draft.insert(&ArchivedLocation { transition, version: 4, ..rows[0].record.clone() }).unwrap();
    })
    .await;
    assert_eq!(told().await.code(), "chain_broken");
    assert!(scene.findings().await.join("\n").contains(finding));
    seals::<ArchivedLocation>(&scene, |draft, rows| {
        let strange = ArchivedLocation { transition: Digest::of_file(b"nothing"), ..rows[0].record.clone() };
        draft.insert(&strange).unwrap();
    })
    .await;
    assert!(scene.findings().await.join("\n").contains("no archive contains the transition"));
}

async fn a_list_of_reviews_reads_no_archive(scene: ApiScenario) {
    let g = &scene.gateway;
    let made = g.thread().await;
    let (thread, mut head) = (made["thread"].clone(), made["transition"].clone());
    for (user, verdict) in [(42, VoteVerdict::Deny), (43, VoteVerdict::Approve)] {
        let ask = json!({"target_user_id": user});
        let held = g.propose(&thread, &head, (&g.planner, "planner"), ask).await.expect(202);
        g.vote(&g.alice, &held, verdict).await.unwrap();
        if verdict == VoteVerdict::Approve {
            head = held["transition"].clone();
        }
    }
    for version in 0..VERSIONS {
        let patch = json!({"raw_text": format!("text {version}, and a little more of it")});
        head = g.propose(&thread, &head, (&g.parser, "input_parser"), patch).await.expect(201)["transition"].clone();
    }
    let before = g.service.inbox.recently_ended(&g.alice, 15).await.unwrap();
    assert!(before.len() == 2 && before.iter().all(|it| it.diff.len() == 1), "{:?}", before.len());
    works(g).await;
    for archive in archives(&scene).await {
        std::fs::remove_file(path(g, &archive)).unwrap();
    }
    let after = g.service.inbox.recently_ended(&g.alice, 15).await.unwrap();
    let told = |it: &[InboxItem]| it.iter().map(|it| it.hold.clone()).collect::<Vec<_>>();
    assert_eq!(told(&after), told(&before), "that they were, and how they ended");
    assert!(after.iter().all(|it| it.diff.is_empty()));
}
