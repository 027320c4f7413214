//! Tests audits of a read-only folder, of a copy, and of a file with damaged pages.

use std::collections::BTreeMap;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::{FaultyGateway, POLICY, faulty};
use crate::program::{PROGRAM, told};

const PAGE_BYTES: usize = 4_096;

/// As many pages as are damaged, one in each copy.
const DAMAGED_MAX: usize = 24;

/// The location of the commits of a killed or closed gateway.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum CommitLocation {
    /// In the log, as a gateway that was killed left them.
    InTheLog,
    /// In the one file, as the last connection that closes leaves it.
    InTheFile,
}

fn lived(data: &Path, commits: CommitLocation) {
    let mut gateway = FaultyGateway::start(data, &[]);
    told(data, &["policy", "activate", POLICY]);
    for name in ["one", "two", "three"] {
        told(data, &["token", "add", name, "--role", "auditor", "--owner", "platform", "--new-group"]);
    }
    gateway.process.kill().unwrap();
    gateway.process.wait().unwrap();
    if commits == CommitLocation::InTheFile {
        told(data, &["migrate"]);
    }
    assert_eq!(data.join("countersign.db-wal").exists(), commits == CommitLocation::InTheLog);
}

fn copied(from: &Path, to: &Path, names: &[&str]) {
    std::fs::create_dir(to).unwrap();
    for name in names {
        std::fs::copy(from.join(name), to.join(name)).unwrap();
    }
}

fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let each = std::fs::read_dir(folder).unwrap().map(|it| it.unwrap().path());
    each.map(|it| (it.file_name().unwrap().to_str().unwrap().to_owned(), std::fs::read(it).unwrap())).collect()
}

fn audit(data: &Path, environment: &[(&str, &str)]) -> (i32, Value) {
    let mut command = Command::new(PROGRAM);
    command.arg("--data").arg(data).args(["audit", "--json"]).envs(environment.iter().copied());
    let done = command.output().unwrap();
    let said = serde_json::from_slice(&done.stdout).unwrap_or_else(|_| Value::String(format!("{done:?}")));
    (done.status.code().unwrap(), said)
}

#[test]
fn audit_reads_a_read_only_folder_and_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let library = faulty();
    for commits in [CommitLocation::InTheLog, CommitLocation::InTheFile] {
        let data = folder.path().join(format!("data-{commits:?}"));
        lived(&data, commits);
        let read_only = [("LD_PRELOAD", library.as_str()), ("READ_ONLY", data.to_str().unwrap())];
        let before = files(&data);
        let (exit, report) = audit(&data, &read_only);
        assert_eq!((exit, &report["sound"]), (0, &Value::Bool(true)), "{report}");
        assert!(report["report"]["rows"].as_u64().unwrap() > 10, "{report}");
        assert_eq!(files(&data), before, "nothing was written");

        let copy = folder.path().join(format!("copy-{commits:?}"));
        let names: Vec<&str> = before.keys().map(String::as_str).filter(|it| !it.ends_with("-shm")).collect();
        copied(&data, &copy, &names);
        let database = std::fs::read(copy.join("countersign.db")).unwrap();
        assert_eq!(audit(&copy, &[]).1["report"], report["report"]);
        assert_eq!(std::fs::read(copy.join("countersign.db")).unwrap(), database);
    }
}

#[test]
fn every_damaged_page_is_a_finding() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    lived(&data, CommitLocation::InTheFile);
    let pages = std::fs::metadata(data.join("countersign.db")).unwrap().len() as usize / PAGE_BYTES;
    assert!(pages > DAMAGED_MAX, "{pages}");
    for at in 0..DAMAGED_MAX {
        let page = at * pages / DAMAGED_MAX;
        let copy = folder.path().join(format!("page-{page}"));
        copied(&data, &copy, &["countersign.db", "keyring.json"]);
        let keyring = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(copy.join("keyring.json"), keyring).unwrap();
        let database = std::fs::File::options().write(true).open(copy.join("countersign.db")).unwrap();
        database.write_all_at(&[0xa5; 2_048], (page * PAGE_BYTES) as u64).unwrap();
        let (exit, report) = audit(&copy, &[]);
        let findings = report["report"]["findings"].as_array().unwrap_or_else(|| panic!("page {page}: {report}"));
        assert_eq!((exit, &findings[0]["id"]), (1, &Value::from("database_damaged")), "page {page}: {report}");
        let damages = findings.iter().filter(|it| it["id"] == "database_damaged").count();
        assert!(damages <= 20, "page {page}: {damages}");
    }
}

#[test]
fn a_database_that_lacks_migrations_is_not_audited_and_not_changed() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    lived(&data, CommitLocation::InTheFile);
    let path = data.join("countersign.db");
    let database = rusqlite::Connection::open(&path).unwrap();
    database.execute("DELETE FROM schema_migrations WHERE version = 20", []).unwrap();
    drop(database);
    let before = std::fs::read(&path).unwrap();
    let (exit, said) = audit(&data, &[]);
    assert!(exit == 2 && said.to_string().contains("countersign migrate"), "{said}");
    assert_eq!(std::fs::read(&path).unwrap(), before);
}
