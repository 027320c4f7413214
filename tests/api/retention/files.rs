//! Tests archive files: restored byte for byte, and checked with published keys alone.

use super::*;
use crate::exported::{audited, save_chain, save_keys};

on_both! {
    restored_versions_equal_the_originals_after_an_interrupted_run(super::retaining("versions = 10")),
    missing_archive_does_not_block_a_decision(super::retaining("versions = 10")),
    a_file_is_checked_by_published_keys_alone(super::retaining("versions = 10")),
    archives_and_pages_of_one_thread_are_audited_as_one(super::retaining("versions = 10")),
}

async fn restored_versions_equal_the_originals_after_an_interrupted_run(scene: ApiScenario) {
    let g = &scene.gateway;
    let (thread, heads) = grown(g, VERSIONS).await;
    let before = told(g, &thread, &heads).await;
    // A run wrote its file and ended before its change. The next run writes the same file.
    works(g).await;
    let all = archives(&scene).await;
    let written: Vec<Vec<u8>> = all.iter().map(|it| std::fs::read(path(g, it)).unwrap()).collect();
    let id = thread.as_str().unwrap().try_into().unwrap();
    assert_eq!(g.service.archive.restore_archives(&"tests".try_into().unwrap(), &id).await.unwrap(), all.len());
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
    g.service
        .policy_changes
        .activate_policy(&"tests".try_into().unwrap(), None, policy, BTreeSet::new())
        .await
        .unwrap();
    assert_eq!(works(g).await, 0, "without the key nothing more goes");
    scene.passes_an_audit().await;
}

/// Checks a file against the published keys. Returns the program's exit code and its output.
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

async fn a_file_is_checked_by_published_keys_alone(scene: ApiScenario) {
    let g = &scene.gateway;
    grown(g, VERSIONS).await;
    works(g).await;
    check_files(&scene).await;
    g.pass(DAY * 6);
    works(g).await;
    check_files(&scene).await;
}

async fn archives_and_pages_of_one_thread_are_audited_as_one(scene: ApiScenario) {
    let g = &scene.gateway;
    let (thread, _) = grown(g, VERSIONS).await;
    works(g).await;
    let all = archives(&scene).await;
    let folder = tempfile::tempdir().unwrap();
    save_keys(g, folder.path()).await;
    for it in &all {
        std::fs::copy(path(g, it), folder.path().join(format!("{}.json.gz", it.from))).unwrap();
    }
    let archived = all.last().unwrap().to + 1;
    let (exit, told) = audited(folder.path()).await;
    assert_eq!((exit, &told["threads"][0]["to"]), (0, &json!(archived - 1)), "archives alone: {told}");
    save_chain(g, folder.path(), &thread, archived, 7).await;
    let (exit, told) = audited(folder.path()).await;
    assert_eq!(
        (exit, &told["threads"][0]["to"], &told["threads"][0]["from"]),
        (0, &json!(VERSIONS), &json!(0)),
        "{told}"
    );
    // If the chain and the archives both contain a change, the copies must be equal.
    save_chain(g, folder.path(), &thread, 0, 50).await;
    let (exit, told) = audited(folder.path()).await;
    assert_eq!((exit, &told["threads"][0]["changes"]["whole"]), (0, &json!(VERSIONS + 1)), "{told}");
    for name in ["0.json.gz".to_owned(), format!("{}-0.json", thread.as_str().unwrap())] {
        std::fs::remove_file(folder.path().join(name)).unwrap();
    }
    let (exit, told) = audited(folder.path()).await;
    assert_eq!((exit, told["findings"][0]["code"].as_str()), (1, Some("chain")), "one is missing: {told}");
}

/// Checks every file, unchanged and changed, with the program and with an independent implementation.
async fn check_files(scene: &ApiScenario) {
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
        // A change in an opening changes its root, which is signed.
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

async fn missing_archive_does_not_block_a_decision(scene: ApiScenario) {
    let g = &scene.gateway;
    let (thread, heads) = grown(g, VERSIONS).await;
    works(g).await;
    // Version 0 counts as written, and is in it.
    std::fs::remove_file(path(g, &archives(&scene).await[0])).unwrap();
    assert_eq!(state(g, &thread, 0).await.code(), "archive_missing");
    let ask = json!({"target_user_id": 77_123_456});
    let held = g.propose(&thread, heads.last().unwrap(), (&g.planner, "planner"), ask).await.expect(202);
    let review = held["review"]["id"].as_str().unwrap().try_into().unwrap();
    let facts = g.service.reviews.review(&review, &g.alice).await.unwrap();
    let reads = facts.writers[0].leaves.len();
    assert!(reads > 0 && facts.writers[0].changed_since_write.len() == reads, "all counts as changed since");
    // This also works on a gateway without a configured archive directory.
    let elsewhere = scene.another().await;
    assert_eq!(elsewhere.reviews.review(&review, &g.alice).await.unwrap().diff, facts.diff);
    g.vote(&g.alice, &held, VoteVerdict::Approve).await.unwrap();
}
