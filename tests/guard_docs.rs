//! `docs/guard.md`: its files are written, its commands are run, and they say what it says.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::path::Path;
use std::process::Command;

const PROGRAM: &str = env!("CARGO_BIN_EXE_countersign");

fn docs() -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/guard.md")).unwrap()
}

/// The fenced blocks: what stands after the fence, and the text.
fn blocks(page: &str) -> Vec<(&str, &str)> {
    page.split("```").skip(1).step_by(2).map(|it| it.split_once('\n').unwrap()).collect()
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let page = docs();
    for (fence, text) in blocks(&page) {
        if let Some(name) = fence.strip_prefix("json ") {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
    }
    folder
}

fn run(folder: &Path, line: &str) -> (String, String, Option<i32>) {
    let ran = Command::new(PROGRAM).args(line.split(' ')).current_dir(folder).output().unwrap();
    (String::from_utf8(ran.stdout).unwrap(), String::from_utf8(ran.stderr).unwrap(), ran.status.code())
}

#[test]
fn the_page_says_what_the_commands_say() {
    let (folder, page) = (folder(), docs());
    let mut ran = 0;
    for (_, text) in blocks(&page).into_iter().filter(|it| it.0 == "console") {
        let (line, expected) = text.split_once('\n').unwrap();
        let (said, wrong, code) = run(folder.path(), line.strip_prefix("$ countersign ").unwrap());
        assert_eq!(said, expected, "{line}: {wrong}");
        assert_eq!(code, Some(i32::from(expected.starts_with("blocked"))), "{line}");
        ran += 1;
    }
    assert_eq!(ran, 3);
}

#[test]
fn json_answers_carry_proof_previous_state_codes_and_pointers() {
    let folder = folder();
    let judged = |proposed: &str| {
        let line = format!("guard transition --json --schema schema.json --rules rules.json current.json {proposed}");
        let (said, _, code) = run(folder.path(), &line);
        (serde_json::from_str::<serde_json::Value>(&said).unwrap(), code)
    };
    let (good, code) = judged("good.json");
    assert_eq!((&good["verified"], code), (&true.into(), Some(0)));
    assert_eq!(good["proof"].as_str().unwrap().len(), 71);
    assert_eq!(good["normalized_previous_state"]["step_count"], 2);
    assert_eq!(good["normalized_state"]["step_count"], 3);
    let (bad, code) = judged("bad.json");
    assert_eq!((&bad["error_code"], code), (&"QWED-AGENT-STATE-106".into(), Some(1)));
    assert_eq!(bad["violations"][0]["code"], "immutable_changed");
    assert_eq!(bad["violations"][3]["pointer"], "/tasks/0/done");
}

#[test]
fn what_cannot_be_judged_exits_with_two() {
    let folder = folder();
    for (line, said) in [
        ("guard check --schema missing.json current.json", "cannot read missing.json"),
        ("guard check --schema current.json current.json", "guard_schema_invalid"),
        ("guard check --schema schema.json --rules schema.json current.json", "guard_rules_invalid"),
        ("guard commit --schema schema.json current.json good.json", "`countersign guard commit` is not built yet"),
    ] {
        let (_, wrong, code) = run(folder.path(), line);
        assert!(wrong.contains(said), "{line}: {wrong}");
        assert_eq!(code, Some(2), "{line}");
    }
}
