//! Tests the files of a SQLite database. Only one gateway serves from them, and a gateway stops if its files are
//! removed.

use std::path::{Path, PathBuf};
use std::process::Output;

use countersign_store::sqlite::{OpenError, SqliteOpenMode, SqliteOptions, SqliteStore};
use serde_json::{Value, json};

use super::{FaultyGateway, POLICY, serve};
use crate::program::told;

fn file(data: &Path, suffix: &str) -> PathBuf {
    data.join(format!("countersign.db{suffix}"))
}

fn refused(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn one_gateway_serves_and_the_command_line_works_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let (data, linked) = (folder.path().join("data"), folder.path().join("linked"));
    let mut gateway = FaultyGateway::start(&data, &[]);
    std::os::unix::fs::symlink(&data, &linked).unwrap();
    for place in [&data, &linked] {
        let said = refused(&serve(place).output().unwrap());
        assert!(said.contains("another gateway (process ") && said.contains("PostgreSQL"), "{said}");
    }
    told(&data, &["policy", "activate", POLICY]);
    told(
        &data,
        &["token", "add", "host", "--role", "host", "--owner", "platform", "--new-group", "--flow", "payments"],
    );
    told(&data, &["halt", "set", "all"]);
    told(&data, &["audit"]);
    told(&data, &["migrate"]);
    // The lock ends with its process, not with its file.
    gateway.process.kill().unwrap();
    gateway.process.wait().unwrap();
    assert!(file(&data, "-serve").exists());
    drop(FaultyGateway::start(&data, &[]));
}

#[test]
fn a_second_gateway_is_refused_before_it_changes_anything() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("countersign.db");
    let serving = || SqliteOptions { purpose: SqliteOpenMode::Serving, ..SqliteOptions::default() };
    let first = SqliteStore::open(&path, serving()).unwrap();
    std::fs::remove_file(&path).unwrap();
    let refused = SqliteStore::open(&path, serving()).unwrap_err();
    assert!(matches!(refused, OpenError::Served { .. }), "{refused}");
    assert!(refused.to_string().contains(&format!("another gateway (process {})", std::process::id())), "{refused}");
    assert!(!path.exists(), "no database was made, and none was brought up to date");
    drop(first);
}

#[test]
fn database_with_a_second_hard_link_is_not_served() {
    let folder = tempfile::tempdir().unwrap();
    let (path, link) = (folder.path().join("countersign.db"), folder.path().join("linked.db"));
    let open = |at: &Path| {
        SqliteStore::open(at, SqliteOptions { purpose: SqliteOpenMode::Serving, ..SqliteOptions::default() })
    };
    let first = open(&path).unwrap();
    std::fs::hard_link(&path, &link).unwrap();
    let refused = open(&link).unwrap_err();
    assert!(matches!(refused, OpenError::HardLinked { links: 2, .. }), "{refused}");
    assert!(refused.to_string().contains("sqlite3") && refused.to_string().contains(".backup"), "{refused}");
    assert!(!folder.path().join("linked.db-serve").exists() && !folder.path().join("linked.db-wal").exists());
    drop(first);
    assert!(matches!(open(&path), Err(OpenError::HardLinked { .. })), "whichever name is served first");
    std::fs::remove_file(&link).unwrap();
    open(&path).unwrap();
}

/// Damages a file of the database.
type FileFault = fn(&Path);

#[tokio::test]
async fn gateway_stops_if_its_files_are_removed() {
    countersign_adapters::tls::ready();
    let remove: FileFault = |file| std::fs::remove_file(file).unwrap();
    let replace: FileFault = |file| {
        let copy = file.with_extension("copy");
        std::fs::copy(file, &copy).unwrap();
        std::fs::rename(copy, file).unwrap();
    };
    for (suffix, fault) in
        [("-wal", remove), ("-shm", remove), ("", remove), ("", replace), ("-wal", replace), ("-serve", remove)]
    {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        let mut gateway = FaultyGateway::start(&data, &[]);
        told(&data, &["policy", "activate", POLICY]);
        let host = told(
            &data,
            &["token", "add", "host", "--role", "host", "--owner", "platform", "--new-group", "--flow", "payments"],
        );
        let state = json!({"raw_text": "x", "requested_action": "none", "target_user_id": 17,
            "payment": {"amount": 40, "currency": "EUR"}});
        let body = json!({"flow": "payments", "thread": "order-1", "state": state});
        fault(&file(&data, suffix));
        let http = reqwest::Client::new();
        let answer = http.post(format!("{}/v1/threads", gateway.url)).bearer_auth(&host).json(&body).send().await;
        // The request is refused, or the gateway has already stopped.
        if let Ok(answer) = answer {
            let (status, body) = (answer.status().as_u16(), answer.json::<Value>().await.unwrap());
            assert_eq!((status, &body["code"]), (503, &json!("store_unavailable")), "{suffix}: {body}");
        }
        assert_eq!(gateway.ended(), 2, "{suffix}");
        let log = gateway.log();
        assert!(
            log.contains("was removed or replaced while it was open") && log.contains("countersign audit"),
            "{log}"
        );
    }
}
