//! A committed state is on the disk before anything says so: the system calls of a real commit, in their order.
//!
//! A file that was never synced looks like one that was, until the power fails. So the calls themselves are looked at,
//! with `strace`, and made to fail.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

const SCHEMA: &str = r#"{"type": "object", "properties": {"n": {"type": "integer"}}}"#;
const RULES: &str = r#"{"monotonic_integer_paths": ["$.n"]}"#;
const BEFORE: &str = r#"{"n":1}"#;
const AFTER: &str = r#"{"n":2}"#;

/// System calls that change a folder, and those that make a change durable.
const TRACED: &str = "write,fsync,fdatasync,rename,renameat,renameat2,link,linkat,unlink,unlinkat";

/// How the state comes into the file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FileWriteMode {
    /// In the place of the one before.
    Commit,
    Create,
}

struct GuardFixture {
    _folder: tempfile::TempDir,
    files: PathBuf,
    states: PathBuf,
}

impl GuardFixture {
    fn new(how: FileWriteMode) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let files = folder.path().canonicalize().unwrap();
        let states = files.join("states");
        fs::create_dir(&states).unwrap();
        for (name, text) in [("schema", SCHEMA), ("rules", RULES), ("before", BEFORE), ("after", AFTER)] {
            fs::write(files.join(name), text).unwrap();
        }
        if how == FileWriteMode::Commit {
            fs::write(states.join("s.json"), BEFORE).unwrap();
        }
        Self { _folder: folder, files, states }
    }

    /// Runs the program under strace.
    fn run(&self, how: FileWriteMode, inject: Option<&str>) -> Output {
        let mut strace = Command::new("strace");
        strace.current_dir(&self.files).args(["-f", "-y", "-o", "trace", "-e", &format!("trace={TRACED}")]);
        if let Some(fault) = inject {
            strace.args(["-e", &format!("inject={fault}")]);
        }
        strace.args([env!("CARGO_BIN_EXE_countersign"), "guard"]);
        strace.arg(if how == FileWriteMode::Commit { "commit" } else { "create" });
        strace.args(["--schema", "schema", "--rules", "rules", "--root"]).arg(&self.states);
        strace.arg("--target").arg(self.states.join("s.json"));
        strace.args(if how == FileWriteMode::Commit { &["before", "after"][..] } else { &["after"] });
        strace.output().expect("strace is installed: ./test does it")
    }

    /// The calls that were about the states' folder, in order: which call, and which file; and the answer.
    fn calls(&self) -> Vec<String> {
        let trace = fs::read_to_string(self.files.join("trace")).unwrap();
        let folder = self.states.to_str().unwrap();
        let call = |line: &str| {
            let (name, arguments) = line.split_once(' ')?.1.trim_start().split_once('(')?;
            let file = if arguments.contains("draft") { "draft" } else { "folder" };
            // An answer names the file, too, but goes elsewhere.
            let is_told = !arguments.split(',').next()?.contains(folder);
            arguments.contains(folder).then(|| if is_told { "told".to_owned() } else { format!("{name} {file}") })
        };
        trace.lines().filter_map(call).collect()
    }

    fn files(&self) -> Vec<(String, String)> {
        let entry = |it: std::io::Result<fs::DirEntry>| {
            let path = it.unwrap().path();
            (path.file_name().unwrap().to_str().unwrap().to_owned(), fs::read_to_string(path).unwrap())
        };
        fs::read_dir(&self.states).unwrap().map(entry).collect()
    }
}

#[test]
fn a_committed_state_is_synced_before_it_takes_its_place_and_the_folder_after() {
    let place = GuardFixture::new(FileWriteMode::Commit);
    let ran = place.run(FileWriteMode::Commit, None);
    assert_eq!(ran.status.code(), Some(0), "{ran:?}");
    // A draft that an earlier commit left, and one that this one left: neither is there.
    let calls =
        ["unlinkat draft", "write draft", "fsync draft", "renameat draft", "unlinkat draft", "fsync folder", "told"];
    assert_eq!(place.calls(), calls);
}

#[test]
fn a_first_state_is_synced_before_it_gets_its_name_and_the_folder_after() {
    let place = GuardFixture::new(FileWriteMode::Create);
    let ran = place.run(FileWriteMode::Create, None);
    assert_eq!(ran.status.code(), Some(0), "{ran:?}");
    let calls =
        ["unlinkat draft", "write draft", "fsync draft", "linkat draft", "unlinkat draft", "fsync folder", "told"];
    assert_eq!(place.calls(), calls);
}

#[test]
fn draft_that_cannot_be_synced_replaces_no_file() {
    for (how, held) in [(FileWriteMode::Commit, Some(BEFORE)), (FileWriteMode::Create, None)] {
        let place = GuardFixture::new(how);
        let ran = place.run(how, Some("fsync:error=EIO:when=1"));
        assert_eq!(ran.status.code(), Some(1), "{ran:?}");
        assert!(String::from_utf8_lossy(&ran.stdout).contains("write_failed"), "{ran:?}");
        let held: Vec<_> = held.map(|it| ("s.json".to_owned(), it.to_owned())).into_iter().collect();
        assert_eq!(place.files(), held);
    }
}

#[test]
fn folder_that_cannot_be_synced_is_reported() {
    for how in [FileWriteMode::Commit, FileWriteMode::Create] {
        let place = GuardFixture::new(how);
        let ran = place.run(how, Some("fsync:error=EIO:when=2"));
        assert_eq!(ran.status.code(), Some(2), "{ran:?}");
        assert_eq!(place.files(), [("s.json".to_owned(), AFTER.to_owned())]);
    }
}
