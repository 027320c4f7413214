//! Folders of runs: the golden one, spoiled ones, and those that are not folders, by the command that people call.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use countersign_domain::episode::finding::{Code, Note};
use serde_json::Value;

const PROGRAM: &str = env!("CARGO_BIN_EXE_countersign");

/// A copy of the golden run in a folder of its own, within one that is the test's, too.
struct RunCopy {
    around: tempfile::TempDir,
    run: PathBuf,
}

impl RunCopy {
    fn path(&self) -> &Path {
        &self.run
    }

    fn outside(&self, name: &str) -> PathBuf {
        self.around.path().join(name)
    }
}

fn golden() -> RunCopy {
    let around = tempfile::tempdir().unwrap();
    let run = around.path().join("run");
    fs::create_dir(&run).unwrap();
    for entry in fs::read_dir(case("golden")).unwrap().map(Result::unwrap) {
        fs::copy(entry.path(), run.join(entry.file_name())).unwrap();
    }
    RunCopy { around, run }
}

fn case(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/episode").join(name)
}

fn run(arguments: &[&str], folder: &Path) -> (String, Option<i32>) {
    let ran = Command::new(PROGRAM).args(["episode"]).args(arguments).arg(folder).output().unwrap();
    (String::from_utf8(ran.stdout).unwrap(), ran.status.code())
}

fn verified(folder: &Path) -> (Value, Option<i32>) {
    let (said, code) = run(&["verify", "--json"], folder);
    (serde_json::from_str(&said).unwrap(), code)
}

/// Returns the findings as `code file`, and checks that the program exits with 1.
fn wrong(folder: &Path) -> Vec<String> {
    let (said, code) = verified(folder);
    assert_eq!(code, Some(1), "{said}");
    let text = |it: &Value, name: &str| it[name].as_str().unwrap().to_owned();
    let told = |it: &Value| format!("{} {}", text(it, "code"), text(it, "file"));
    said["findings"].as_array().unwrap().iter().map(told).collect()
}

#[test]
fn golden_run_verifies_and_missing_evidence_is_noted() {
    let (said, code) = verified(&case("golden"));
    assert_eq!((said["verdict"].as_str(), code), (Some("verified"), Some(0)), "{said}");
    let notes: Vec<_> = said["notes"].as_array().unwrap().iter().map(|it| it["code"].as_str().unwrap()).collect();
    let steps = ["no_step_status"; 3];
    assert_eq!(notes[..2], ["not_signed", "no_event_links"]);
    assert_eq!(notes[2..5], steps);
    assert_eq!(notes[5..], ["link_unkept", "no_projection"], "it links to a learn.jsonl that it does not have");
    let (told, code) = run(&["verify"], &case("golden"));
    assert!(told.ends_with("verified: these are the run's files, and they belong together\n"), "{told}");
    assert_eq!(code, Some(0));
}

#[test]
fn one_flipped_byte_of_any_file_is_found() {
    for file in ["events.jsonl", "state.json", "summary.json"] {
        let folder = golden();
        let path = folder.path().join(file);
        let mut bytes = fs::read(&path).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        fs::write(&path, &bytes).unwrap();
        assert!(wrong(folder.path()).contains(&format!("hash {file}")), "{file}");
    }
    let folder = golden();
    let path = folder.path().join("manifest.json");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replacen("f042e544", "f042e545", 1)).unwrap();
    assert_eq!(wrong(folder.path()), ["hash events.jsonl"]);
}

#[test]
fn a_truncated_a_dropped_and_an_added_file_are_found() {
    for file in ["events.jsonl", "state.json", "summary.json"] {
        let folder = golden();
        let path = folder.path().join(file);
        let bytes = fs::read(&path).unwrap();
        fs::write(&path, &bytes[..bytes.len() - 40]).unwrap();
        assert!(wrong(folder.path()).contains(&format!("size {file}")), "{file}");
        fs::remove_file(&path).unwrap();
        assert!(wrong(folder.path()).contains(&format!("missing {file}")), "{file}");
    }
    let folder = golden();
    fs::write(folder.path().join("learn.jsonl"), "").unwrap();
    assert_eq!(wrong(folder.path()), ["unexpected learn.jsonl"]);
    let folder = golden();
    fs::remove_file(folder.path().join("manifest.json")).unwrap();
    assert_eq!(wrong(folder.path()), ["manifest_missing manifest.json"]);
}

#[test]
fn links_folders_and_pipes_are_not_read_whatever_they_lead_to() {
    let folder = golden();
    let path = folder.path().join("state.json");
    fs::rename(&path, folder.outside("elsewhere.json")).unwrap();
    symlink(folder.outside("elsewhere.json"), &path).unwrap();
    assert!(wrong(folder.path()).contains(&"not_a_file state.json".to_owned()));
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    assert!(wrong(folder.path()).contains(&"not_a_file state.json".to_owned()));
    fs::remove_dir(&path).unwrap();
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    assert!(wrong(folder.path()).contains(&"not_a_file state.json".to_owned()), "and nobody waits for a writer");
}

#[test]
fn a_manifest_that_leads_out_of_the_folder_is_refused_without_looking_there() {
    let folder = golden();
    fs::write(folder.outside("outside.json"), "{}").unwrap();
    let path = folder.path().join("manifest.json");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replacen("\"summary.json\"", "\"../outside.json\"", 1)).unwrap();
    let found = wrong(folder.path());
    assert!(found.contains(&"name ../outside.json".to_owned()), "{found:?}");
    assert!(found.contains(&"missing ../outside.json".to_owned()), "{found:?}");
}

#[test]
fn missing_folder_exits_with_two_and_empty_folder_has_no_manifest() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(run(&["verify"], &folder.path().join("nowhere")).1, Some(2));
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    assert_eq!(run(&["verify"], &file).1, Some(2));
    let empty = folder.path().join("empty");
    fs::create_dir(&empty).unwrap();
    assert_eq!(wrong(&empty), ["manifest_missing manifest.json"]);
}

#[test]
fn a_signature_that_is_asked_for_has_to_be_there() {
    let keys = tempfile::NamedTempFile::new().unwrap();
    fs::write(keys.path(), r#"{"keys":[]}"#).unwrap();
    let (said, code) = run(&["verify", "--jwks", keys.path().to_str().unwrap()], &case("golden"));
    assert!(said.contains("[unsigned]"), "{said}");
    assert_eq!(code, Some(1));
    fs::write(keys.path(), "[]").unwrap();
    assert_eq!(run(&["verify", "--jwks", keys.path().to_str().unwrap()], &case("golden")).1, Some(2));
}

#[test]
fn a_run_is_shown_and_nothing_in_it_acts_on_the_terminal() {
    let (said, code) = run(&["show"], &case("golden"));
    assert_eq!(code, Some(0));
    for words in ["ep_01JGFJJZ00CTSPE3DKFP348M8P", "deterministic golden", "Completed 3 minimal steps."] {
        assert!(said.contains(words), "{words}: {said}");
    }
    assert!(said.contains("  done     verify   Verify outcome and capture learnings\n"), "{said}");
    let folder = golden();
    let path = folder.path().join("state.json");
    let text = fs::read_to_string(&path).unwrap();
    let evil = r"\u001b[2J\nstatus   forged\u202e";
    fs::write(&path, text.replacen("Completed 3 minimal steps.", evil, 1)).unwrap();
    let (said, code) = run(&["show"], folder.path());
    assert_eq!(code, Some(1), "it is no longer the one that the manifest names");
    assert!(said.contains("⟨U+001B⟩[2J⟨U+000A⟩status   forged⟨U+202E⟩"), "{said}");
    assert!(!said.contains('\u{1b}') && !said.contains("\nstatus   forged"), "{said}");
    let (said, _) = run(&["show", "--json"], folder.path());
    assert!(!said.contains(['\u{1b}', '\u{202e}']));
    assert_eq!(serde_json::from_str::<Value>(&said).unwrap()["state"]["outcomes"]["status"], "ok");
}

#[test]
fn page_shows_the_output_of_the_command_and_names_every_code() {
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/specs/episodes.md")).unwrap();
    let block = page.split("```console\n$ countersign episode verify golden\n").nth(1).unwrap();
    let (said, _) = run(&["verify"], &case("golden"));
    assert_eq!(block.split("```").next().unwrap(), said);
    let codes = Code::ALL.iter().map(|it| it.as_str()).chain(Note::ALL.iter().map(|it| it.as_str()));
    for code in codes {
        assert!(page.contains(&format!("`{code}`")), "{code}");
    }
}
