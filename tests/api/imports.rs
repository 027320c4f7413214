//! Tests imported runs. The gateway checks them before it stores them, returns them byte for byte and does nothing else
//! with them. On both databases.

use std::path::Path;

use countersign_domain::chain::hash::Digest;
use countersign_domain::episode::event_line::EventRecord;
use countersign_domain::episode::imported::{FOLDER_BYTES_MAX, ImportChunk, RunImport, RunSigner, RunSignerStatus};
use countersign_domain::episode::verify::{FileContent, Folder};
use countersign_domain::episode::{Artefact, manifest, state};
use countersign_domain::identity::account::MachineRole;
use countersign_domain::identity::party::Party;
use countersign_domain::json::canonical::canonical;
use countersign_domain::keys::{KeyUse, Keys, PublicKeys};
use countersign_domain::primitives::id::{PrincipalId, ThreadId};
use countersign_domain::primitives::time::Timestamp;
use countersign_domain::threads::thread::Thread;

use countersign_service::episodes::import::ImportOutcome;
use countersign_service::error::Error;
use countersign_store::record::Record;
use countersign_store::row::{SealedRow, Table};
use reqwest::Method;
use serde_json::{Value, json};

use crate::episodes::{add, begun, folder, program};
use crate::gateway::{POLICY, TestGateway, owned_token};
use crate::rules::ApiScenario;

on_both! {
    own_run_is_imported_once_and_returned_byte_for_byte(crate::gateway::POLICY),
    unsigned_run_of_another_system_is_imported_as_unsigned(crate::gateway::POLICY),
    changed_run_is_refused(crate::gateway::POLICY),
    signature_of_a_run_is_checked_with_the_given_keys(crate::gateway::POLICY),
    imported_run_is_read_only(crate::gateway::POLICY),
    only_one_of_many_concurrent_imports_is_logged(crate::gateway::POLICY),
}

fn operator() -> PrincipalId {
    PrincipalId::try_from("command-line").unwrap()
}

/// The published golden run.
pub fn golden() -> Folder {
    let at = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/episode/golden");
    countersign::episode_folder::read(&at).unwrap()
}

async fn import(g: &TestGateway, folder: &Folder, given: Option<&PublicKeys>) -> ImportOutcome {
    g.service.episodes.import_episode(&operator(), folder, given).await.unwrap()
}

async fn kept(g: &TestGateway, folder: &Folder, given: Option<&PublicKeys>) -> (ThreadId, RunSigner) {
    match import(g, folder, given).await {
        ImportOutcome::Kept(import, _) => (import.id, import.voucher),
        other => panic!("{other:?}"),
    }
}

async fn refused(g: &TestGateway, folder: &Folder, given: Option<&PublicKeys>) -> Vec<&'static str> {
    match import(g, folder, given).await {
        ImportOutcome::Refused(report) => report.findings.iter().map(|it| it.code.as_str()).collect(),
        other => panic!("{other:?}"),
    }
}

/// Returns the folder of an ended run of this gateway.
async fn over(g: &TestGateway) -> Folder {
    let thread = begun(g).await;
    add(g, &thread, "plan", json!({"steps": ["act:Change it"]})).await.expect(201);
    add(g, &thread, "terminate", json!({"status": "ok", "message": "Changed."})).await.expect(201);
    folder(g, &thread, &g.host).await
}

fn sorted(mut folder: Folder) -> Folder {
    folder.entries.sort_by(|one, other| one.0.cmp(&other.0));
    folder
}

/// The folder as the API gives it.
async fn given_back(g: &TestGateway, thread: &ThreadId) -> Folder {
    sorted(folder(g, &json!({"thread": thread}), &g.auditor).await)
}

async fn told(g: &TestGateway) -> Vec<Value> {
    g.service.log.sequence().await.unwrap();
    let log = g.get("/v1/events?limit=500", &g.auditor).await.expect(200);
    let items = log["events"].as_array().unwrap();
    items.iter().filter(|it| it["type"] == "episode.imported").map(|it| it["data"].clone()).collect()
}

async fn own_run_is_imported_once_and_returned_byte_for_byte(scene: ApiScenario) {
    let g = &scene.gateway;
    let came = over(g).await;
    let (thread, voucher) = kept(g, &came, None).await;
    let kid = g.service.core.keys().unwrap().signing(KeyUse::Chain).kid().to_owned();
    assert_eq!(voucher, RunSigner::Gateway { kid });
    assert_eq!(given_back(g, &thread).await, sorted(came.clone()));
    let mut backwards = came.clone();
    backwards.entries.reverse();
    match import(g, &backwards, None).await {
        ImportOutcome::KeptBefore(before, _) => assert_eq!(before.id, thread, "the same folder is the same thread"),
        other => panic!("{other:?}"),
    }
    let told = told(g).await;
    assert_eq!(told.len(), 1, "and is told once");
    assert_eq!(
        (&told[0]["thread"], &told[0]["files"], &told[0]["by"]),
        (&json!(thread), &json!(6), &json!("command-line"))
    );
    assert!(!told[0].to_string().contains("Change"), "nothing of what it says is in the log");
    let files: Vec<(String, Vec<u8>)> =
        g.service.episodes.files_of_run("tests", &Party::Receiver, &thread).await.unwrap();
    let same = Folder { entries: files.into_iter().map(|(name, bytes)| (name, FileContent::Bytes(bytes))).collect() };
    assert_eq!(same, sorted(came), "what is exported is what came");
    let (listed, onward) = g.service.episodes.imported_runs(None, 10).await.unwrap();
    assert_eq!((listed.len(), listed[0].id.clone(), onward), (1, thread.clone(), None));
    assert_eq!(g.service.episodes.imported_run(&thread).await.unwrap().standing, RunSignerStatus::Holds);
    scene.passes_an_audit().await;
}

async fn unsigned_run_of_another_system_is_imported_as_unsigned(scene: ApiScenario) {
    let g = &scene.gateway;
    let (thread, voucher) = kept(g, &golden(), None).await;
    assert_eq!(voucher, RunSigner::Nobody {});
    let read = g.service.episodes.imported_run(&thread).await.unwrap();
    assert_eq!(read.import.episode_id, "ep_01JGFJJZ00CTSPE3DKFP348M8P");
    assert_eq!((read.import.task.as_str(), read.import.status.as_str()), ("deterministic golden", "ok"));
    assert_eq!(read.folder, golden());
    assert!(read.report.notes.iter().any(|it| it.code.as_str() == "no_event_links"), "what it cannot show is said");
    assert_eq!(given_back(g, &thread).await, golden());
    let host = g.get(&format!("/v1/threads/{thread}/episode/state.json"), &g.host).await;
    assert_eq!((host.status, host.code()), (409, "imported"), "it is of no flow, and a host's token is of one");
    let learn = g.get(&format!("/v1/threads/{thread}/episode/learn.jsonl"), &g.auditor).await;
    assert_eq!(learn.status, 404, "it came without one");
    scene.passes_an_audit().await;
}

fn changed(mut folder: Folder, file: &str, change: impl FnOnce(&mut Vec<u8>)) -> Folder {
    let FileContent::Bytes(bytes) = &mut folder.entries.iter_mut().find(|it| it.0 == file).unwrap().1 else {
        panic!("{file}")
    };
    change(bytes);
    folder
}

async fn changed_run_is_refused(scene: ApiScenario) {
    let g = &scene.gateway;
    for file in ["events.jsonl", "state.json", "summary.json"] {
        assert!(refused(g, &changed(golden(), file, |it| it[40] ^= 1), None).await.contains(&"hash"), "{file}");
    }
    let mut added = golden();
    added.entries.push(("more.json".to_owned(), FileContent::Bytes(b"{}".to_vec())));
    assert_eq!(refused(g, &added, None).await, ["unexpected"]);
    let mut climbing = golden();
    climbing.entries.push(("../more.json".to_owned(), FileContent::Bytes(b"{}".to_vec())));
    assert!(refused(g, &climbing, None).await.contains(&"name"));
    assert_eq!(refused(g, &Folder::default(), None).await, ["manifest_missing"]);
    let mut forged = over(g).await;
    forged = changed(forged, "manifest.json", |it| {
        let mut manifest: Value = serde_json::from_slice(it).unwrap();
        manifest["created_at"] = json!("2026-01-01T00:00:00.000Z");
        *it = canonical(&manifest).into_bytes();
    });
    assert_eq!(refused(g, &forged, None).await, ["signature"], "it names this gateway's key");
    let thread = begun(g).await;
    let waiting = folder(g, &thread, &g.host).await;
    assert_eq!(refused(g, &waiting, None).await, [""; 0], "nothing is wrong, and nothing says that it is whole");
    assert!(told(g).await.is_empty() && g.service.episodes.imported_runs(None, 10).await.unwrap().0.is_empty());
    scene.passes_an_audit().await;
}

fn others() -> Keys {
    let now = Timestamp::from_millis(1_795_225_000_000);
    Keys::generate("https://b.example", now, &mut countersign_adapters::random::fill).unwrap()
}

/// Returns the folder as another gateway would have signed it.
fn signed_by(keys: &Keys, folder: Folder) -> Folder {
    changed(folder, "manifest.json", |it| {
        let mut manifest: Value = serde_json::from_slice(it).unwrap();
        manifest["signer"] = Value::Null;
        let run = ThreadId::try_from(manifest["episode_id"].as_str().unwrap()).unwrap();
        let signed = manifest::signed(manifest, &run, keys.signing(KeyUse::Chain), keys.issuer(), 1);
        *it = canonical(&signed).into_bytes();
    })
}

async fn signature_of_a_run_is_checked_with_the_given_keys(scene: ApiScenario) {
    let g = &scene.gateway;
    let (keys, stranger) = (others(), others());
    let theirs = signed_by(&keys, golden());
    let kid = keys.signing(KeyUse::Chain).kid().to_owned();
    let published = PublicKeys::from_jwks(&keys.trusted().jwks()).unwrap();
    assert_eq!(refused(g, &theirs, Some(stranger.trusted())).await, ["signature"]);
    assert_eq!(refused(g, &golden(), Some(&published)).await, ["unsigned"]);
    let (thread, voucher) = kept(g, &theirs, Some(&published)).await;
    let RunSigner::Other { issuer, kid: by, keys: kept_keys } = &voucher else { panic!("{voucher:?}") };
    assert_eq!((issuer.as_str(), by), ("https://b.example", &kid));
    assert_eq!(kept_keys["keys"].as_array().unwrap().len(), 1, "the key that signed, and none beside it");
    assert_eq!(g.service.episodes.imported_run(&thread).await.unwrap().standing, RunSignerStatus::Holds);
    let unknown = signed_by(&stranger, golden());
    let (_, voucher) = kept(g, &unknown, None).await;
    assert_eq!(voucher, RunSigner::Unchecked { kid: stranger.signing(KeyUse::Chain).kid().to_owned() });
    scene.passes_an_audit().await;
}

async fn imported_run_is_read_only(scene: ApiScenario) {
    let g = &scene.gateway;
    let (thread, _) = kept(g, &golden(), None).await;
    let (own, digest) = (g.thread().await, Digest::of_file(b"x"));
    let at = |rest: &str| format!("/v1/threads/{thread}{rest}");
    let patch = json!({"node": "planner", "parent": digest, "patch": {"requested_action": "none"}});
    let event = json!({"node": "planner", "phase": "observe", "payload": {}});
    let rollback = json!({"node": "planner", "parent": digest, "to_version": 0});
    let joins = json!({"node": "planner", "parent": digest, "branches": ["a", "b"], "strategy": "union"});
    for (method, path, token, body) in [
        (Method::POST, at("/transitions"), &g.planner, Some(patch)),
        (Method::POST, at("/rollbacks"), &g.planner, Some(rollback)),
        (Method::POST, at("/forks"), &g.planner, Some(json!({"node": "planner", "branches": ["a"]}))),
        (Method::POST, at("/joins"), &g.planner, Some(joins)),
        (Method::POST, at("/episode/events"), &g.planner, Some(event)),
        (Method::POST, at("/closing"), &g.admin, Some(json!({"reason": "x"}))),
        (Method::POST, at("/reopening"), &g.admin, Some(json!({"reason": "x"}))),
        (Method::GET, at(""), &g.host, None),
        (Method::GET, at("/state?node=planner"), &g.planner, None),
        (Method::GET, at("/envelope?node=planner"), &g.planner, None),
        (Method::GET, at("/chain"), &g.host, None),
    ] {
        let answer = g.send(method.clone(), &path, token, body).await;
        assert_eq!((answer.status, answer.code()), (409, "imported"), "{method} {path}: {}", answer.body);
    }
    let denied = g.verify(&json!(thread), &own["transition"], &Value::Null, "w1").await;
    assert_eq!((denied.status, denied.code()), (403, "imported"));
    let state = json!({"requested_action": "none", "target_user_id": 17});
    let taken = g.post("/v1/threads", &g.host, json!({"flow": "payments", "thread": thread, "state": state})).await;
    assert_eq!((taken.status, taken.body["errors"][0]["pointer"].as_str()), (400, Some("/thread")));
    let free = format!("imported-{}", "0".repeat(32));
    let taken = g.post("/v1/threads", &g.host, json!({"flow": "payments", "thread": free, "state": state})).await;
    assert_eq!(taken.status, 400, "nobody takes the name of a run that is still to come");
    assert_eq!(g.get(&format!("/v1/threads/{free}"), &g.host).await.status, 404);
    let stranger = owned_token(&g.service, "stranger", MachineRole::Agent, &["planner"], "platform").await;
    assert_eq!(g.get(&at("/episode/state.json"), &stranger).await.status, 403);
    scene.passes_an_audit().await;
}

async fn only_one_of_many_concurrent_imports_is_logged(scene: ApiScenario) {
    let g = &scene.gateway;
    let (folder, by) = (golden(), operator());
    let all = (0..8).map(|_| g.service.episodes.import_episode(&by, &folder, None));
    let done = futures_util::future::join_all(all).await;
    let kept = done.iter().filter(|it| matches!(it, Ok(ImportOutcome::Kept(..)))).count();
    assert_eq!(kept, 1, "{done:?}");
    assert!(
        done.iter()
            .all(|it| matches!(it, Ok(ImportOutcome::Kept(..) | ImportOutcome::KeptBefore(..)) | Err(Error::Busy)))
    );
    assert_eq!(told(g).await.len(), 1);
    scene.passes_an_audit().await;
}

/// Returns a finished run of another system with a file of this size.
fn with_a_file_of(bytes: u64) -> Folder {
    let mut folder = golden();
    let made = vec![b'x'; usize::try_from(bytes).unwrap()];
    let entry = json!({"kind": "artifact", "name": "made.bin", "sha256": Digest::of_file(&made), "size_bytes": bytes});
    folder.entries.push(("made.bin".to_owned(), FileContent::Bytes(made)));
    changed(folder, "manifest.json", |it| {
        let mut manifest: Value = serde_json::from_slice(it).unwrap();
        manifest["files"].as_array_mut().unwrap().push(entry);
        *it = canonical(&manifest).into_bytes();
    })
}

/// Imports a run of another system with this text in every field. Returns its thread.
pub async fn hostile(g: &TestGateway, said: &str) -> String {
    let record = |phase: &str, payload: Value| EventRecord {
        agent_id: said.to_owned(),
        caused_by: None,
        episode_id: said.to_owned(),
        event_type: (phase == "runtime").then(|| said.to_owned()),
        evidence_ids: vec![said.to_owned()],
        id: None,
        payload: serde_json::from_value(payload).unwrap(),
        phase: phase.to_owned(),
        timestamp: "2026-01-01T00:00:00Z".to_owned(),
        previous: None,
    };
    let step = json!({"id": said, "kind": "act", "description": said, "rationale": said});
    let events = [
        record("start", json!({"task": said, "type": said, "using": said, "tags": {(said): said}})),
        record("plan", json!({"source": said, "rationale": said, "step_records": [step], (said): said})),
        record("runtime", json!({"review": said, "run": said})),
        record(said, json!({(said): [said]})),
        record("insight", json!({"metrics": {(said): said}})),
        record("act", json!({"result_artifacts": [{"type": said, "uri": said}]})),
        record("terminate", json!({"status": "ok", "message": said})),
    ];
    let lines: String = events.iter().map(|it| it.line() + "\n").collect();
    let state = canonical(&state::state(&events));
    let files = [(Artefact::Events, lines.as_bytes()), (Artefact::State, state.as_bytes())];
    let mut manifest = manifest::make(said, "2026-01-01T00:00:00Z", &files);
    manifest["signer"] = json!({"jws": said, "kid": said});
    let mut folder = Folder::default();
    for (file, bytes) in files.into_iter().chain([(Artefact::Manifest, canonical(&manifest).as_bytes())]) {
        folder.entries.push((file.file().to_owned(), FileContent::Bytes(bytes.to_vec())));
    }
    kept(g, &folder, None).await.0.to_string()
}

#[tokio::test]
async fn imported_folder_is_limited_in_size() {
    let scene = ApiScenario::on_sqlite(POLICY).await;
    let g = &scene.gateway;
    let rest = |folder: &Folder| -> u64 {
        let sizes = folder.entries.iter().map(|it| match &it.1 {
            FileContent::Bytes(bytes) => bytes.len() as u64,
            _ => 0,
        });
        sizes.sum()
    };
    // The manifest has the same number of digits, so that the rest of the folder has the same size.
    let beside = rest(&with_a_file_of(10_000_000)) - 10_000_000;
    let largest = with_a_file_of(FOLDER_BYTES_MAX - beside);
    assert_eq!(rest(&largest), FOLDER_BYTES_MAX);
    let (thread, _) = kept(g, &largest, None).await;
    assert_eq!(g.service.episodes.imported_run(&thread).await.unwrap().folder, sorted(largest));
    let more =
        g.service.episodes.import_episode(&operator(), &with_a_file_of(FOLDER_BYTES_MAX - beside + 1), None).await;
    assert!(matches!(more, Err(Error::Invalid { .. })), "{more:?}");
    assert_eq!(g.service.episodes.imported_runs(None, 10).await.unwrap().0.len(), 1);
    scene.passes_an_audit().await;
}

#[tokio::test]
async fn import_signed_by_a_revoked_key_is_marked() {
    let scene = ApiScenario::on_sqlite(POLICY).await;
    let g = &scene.gateway;
    let came = over(g).await;
    let (thread, voucher) = kept(g, &came, None).await;
    let RunSigner::Gateway { kid } = voucher else { panic!("{voucher:?}") };
    let (said, code) = program(g, &["keys", "rotate", "chain"]);
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(
        g.service.episodes.imported_run(&thread).await.unwrap().standing,
        RunSignerStatus::Holds,
        "a retired key did sign"
    );
    let (said, code) = program(g, &["keys", "revoke", &kid]);
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(g.service.episodes.imported_run(&thread).await.unwrap().standing, RunSignerStatus::Revoked);
    assert_eq!(given_back(g, &thread).await, sorted(came.clone()), "it can be read all the same");
    let mut other = came;
    other.entries.retain(|it| it.0 != "learn.jsonl");
    assert!(refused(g, &other, None).await.contains(&"signature"));
}

#[tokio::test]
async fn import_with_missing_pieces_is_not_returned() {
    let scene = ApiScenario::on_sqlite(POLICY).await;
    let g = &scene.gateway;
    let (thread, _) = kept(g, &golden(), None).await;
    let database = rusqlite::Connection::open(g.folder.path().join("countersign.db")).unwrap();
    let pieces = Table::ImportPieces.name();
    assert_eq!(database.execute(&format!("DELETE FROM {pieces}"), []).unwrap(), 1);
    assert!(matches!(g.service.episodes.imported_run(&thread).await, Err(Error::Broken(_))));
    let answer = g.get(&format!("/v1/threads/{thread}/episode/state.json"), &g.auditor).await;
    assert_eq!((answer.status, answer.code()), (500, "chain_broken"));
}

#[tokio::test]
async fn import_command_names_the_signer_and_every_error() {
    let scene = ApiScenario::on_sqlite(POLICY).await;
    let g = &scene.gateway;
    let around = tempfile::tempdir().unwrap();
    let here = |name: &str| around.path().join(name).to_str().unwrap().to_owned();
    let golden_at = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/episode/golden");
    let golden_at = golden_at.to_str().unwrap();
    let (said, code) = program(g, &["episode", "import", golden_at, "--json"]);
    assert_eq!(code, Some(0), "{said}");
    let first: Value = serde_json::from_str(&said).unwrap();
    assert_eq!((&first["imported"], &first["signed"]["by"]), (&json!(true), &json!("nobody")));
    let thread = first["thread"].as_str().unwrap();
    let (said, code) = program(g, &["episode", "import", golden_at]);
    assert_eq!(code, Some(0));
    assert!(said.contains(&format!("{thread}: was imported before, signed by nobody")), "{said}");
    let (said, code) = program(g, &["episode", "export", thread, "--out", &here("back")]);
    assert_eq!(code, Some(0), "{said}");
    let back = countersign::episode_folder::read(Path::new(&here("back"))).unwrap();
    assert_eq!(back, golden(), "to the byte, and no file more");
    std::fs::write(Path::new(&here("back")).join("state.json"), "{}").unwrap();
    let (said, code) = program(g, &["episode", "import", &here("back")]);
    assert_eq!(code, Some(1));
    assert!(said.contains("[hash]") && said.ends_with("nothing was imported\n"), "{said}");
    let thread = begun(g).await;
    let waiting = thread["thread"].as_str().unwrap();
    let (said, code) = program(g, &["episode", "export", waiting, "--out", &here("waiting")]);
    assert_eq!(code, Some(0), "{said}");
    let (said, code) = program(g, &["episode", "import", &here("waiting")]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("[not_finished]") && said.ends_with("nothing was imported\n"), "{said}");
    assert_eq!(g.service.episodes.imported_runs(None, 10).await.unwrap().0.len(), 1);
    scene.passes_an_audit().await;
}

/// Puts a record into the database, sealed as the gateway would.
pub fn put<R: Record>(g: &TestGateway, record: &R) {
    sealed(g, record, 1);
}

/// Writes the record with this number of revisions.
pub fn sealed<R: Record>(g: &TestGateway, record: &R, revision: i64) {
    let keys = g.service.core.keys().unwrap();
    let SealedRow { table, id, facets, revision, body, key_id, mac } = record.seal(keys.row(), revision).unwrap();
    let database = rusqlite::Connection::open(g.folder.path().join("countersign.db")).unwrap();
    let columns = "id, alias, owner, state, due, revision, body, key_id, mac";
    let sql =
        format!("INSERT OR REPLACE INTO {} ({columns}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)", table.name());
    let row = rusqlite::params![id, facets.alias, facets.owner, facets.state, facets.due, revision, body, key_id, mac];
    assert_eq!(database.execute(&sql, row).unwrap(), 1);
}

fn removed(g: &TestGateway, table: Table) {
    let database = rusqlite::Connection::open(g.folder.path().join("countersign.db")).unwrap();
    database.execute(&format!("DELETE FROM {}", table.name()), []).unwrap();
}

/// Returns the findings of an audit as `table: finding`.
pub async fn found(scene: &ApiScenario) -> Vec<String> {
    let short = |line: String| {
        let (row, finding) = line.split_once(": ").unwrap();
        format!("{}: {finding}", row.split_once(' ').unwrap().0)
    };
    scene.findings().await.into_iter().map(short).collect()
}

#[tokio::test]
async fn audit_finds_every_resealed_row_of_an_import() {
    let scene = ApiScenario::on_sqlite(POLICY).await;
    let g = &scene.gateway;
    let (thread, _) = kept(g, &golden(), None).await;
    let run = g.service.episodes.imported_run(&thread).await.unwrap();
    let import = run.import.clone();
    assert_eq!(found(&scene).await, [""; 0]);
    let not_told = "imports: the row differs from the event that records it".to_owned();
    let other_files = "imports: the files differ from those that were imported".to_owned();
    put(g, &RunImport { voucher: RunSigner::Unchecked { kid: "k".to_owned() }, ..import.clone() });
    assert_eq!(found(&scene).await, [other_files.clone(), not_told.clone()]);
    assert!(matches!(g.service.episodes.imported_run(&thread).await, Err(Error::Broken(_))), "nobody signed it");
    put(g, &RunImport { task: "another".to_owned(), ..import.clone() });
    assert_eq!(found(&scene).await, std::slice::from_ref(&other_files), "what lists say of it follows from its files");
    put(g, &RunImport { at: Timestamp::from_millis(1), ..import.clone() });
    assert_eq!(found(&scene).await, std::slice::from_ref(&not_told));
    sealed(g, &import, 2);
    assert_eq!(found(&scene).await, std::slice::from_ref(&not_told), "nothing is changed of it");
    put(g, &import);
    let (_, mut pieces) =
        RunImport::of(&run.folder, &run.run, import.voucher.clone(), import.by.clone(), import.at).unwrap();
    let piece = pieces.remove(0);
    put(g, &ImportChunk { bytes: piece.bytes.replacen('A', "B", 1), ..piece.clone() });
    assert_eq!(found(&scene).await, [other_files]);
    sealed(g, &piece, 2);
    assert_eq!(found(&scene).await, ["import_pieces: the chunk belongs to no imported episode"]);
    put(g, &piece);
    put(g, &ImportChunk { number: 1, ..piece.clone() });
    assert_eq!(found(&scene).await, ["import_pieces: the chunk belongs to no imported episode"]);
    removed(g, Table::ImportPieces);
    put(g, &piece);
    assert_eq!(found(&scene).await, [""; 0]);
    removed(g, Table::Imports);
    let gone = found(&scene).await;
    assert!(gone.contains(&"imports: the row is missing, but an event records it".to_owned()), "{gone:?}");
}

#[tokio::test]
async fn import_with_the_id_of_an_existing_thread_is_refused() {
    let scene = ApiScenario::on_sqlite(POLICY).await;
    let g = &scene.gateway;
    let own: ThreadId = serde_json::from_value(g.thread().await["thread"].clone()).unwrap();
    let row = g.service.threads.overview(&own).await.unwrap().thread;
    let elsewhere = ApiScenario::on_sqlite(POLICY).await;
    let (name, _) = kept(&elsewhere.gateway, &golden(), None).await;
    put(g, &Thread { id: name.clone(), ..row.clone() });
    let refused = g.service.episodes.import_episode(&operator(), &golden(), None).await;
    assert!(matches!(refused, Err(Error::Exists(_))), "{refused:?}");
    assert!(g.service.episodes.imported_runs(None, 10).await.unwrap().0.is_empty());
    let other = &elsewhere.gateway;
    put(other, &Thread { id: name, ..row });
    assert!(found(&elsewhere).await.contains(&"imports: a thread has the same id as the imported episode".to_owned()));
}
