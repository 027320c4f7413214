//! Writes the files of `docs/guides/policies.md`, runs its commands and compares their output, and compares the keys
//! and reasons in `docs/reference/policy.md` with the program.

use std::path::Path;
use std::process::Command;

use countersign_domain::policy::ReplayUnknownCause;

use crate::{PROGRAM, blocks};

fn section(page: &str, heading: &str) -> String {
    let page = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs").join(page)).unwrap();
    let rest = page.split(&format!("\n## {heading}\n")).nth(1).unwrap();
    rest.split("\n## ").next().unwrap().to_owned()
}

fn guide() -> String {
    section("guides/policies.md", "Test before you activate")
}

/// Returns the words in the first cells of the tables below a heading of the reference.
fn keys(heading: &str) -> Vec<String> {
    let part = section("reference/policy.md", heading);
    let cells = part.lines().filter(|it| it.starts_with("| `")).map(|it| it.split('|').nth(1).unwrap());
    cells.flat_map(|it| it.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>()).collect()
}

#[test]
fn page_shows_the_output_of_its_commands() {
    let (folder, page) = (tempfile::tempdir().unwrap(), guide());
    let mut ran = 0;
    for (fence, text) in blocks(&page) {
        if let Some((_, name)) = fence.split_once(' ') {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
    }
    for (_, text) in blocks(&page).into_iter().filter(|it| it.0 == "console") {
        for command in text.split("$ ").skip(1) {
            let (line, expected) = command.split_once('\n').unwrap();
            let programs = Path::new(PROGRAM).parent().unwrap().to_str().unwrap();
            let path = format!("{programs}:{}", std::env::var("PATH").unwrap());
            let done = Command::new("sh").args(["-c", line]).env("PATH", path).current_dir(&folder).output().unwrap();
            let said = String::from_utf8(done.stdout).unwrap();
            assert_eq!(said, expected, "{line}: {}", String::from_utf8_lossy(&done.stderr));
            assert_eq!(done.status.code(), Some(1), "{line}");
            ran += 1;
        }
    }
    assert_eq!(ran, 2);
}

#[test]
fn a_case_has_the_keys_that_the_page_names_and_no_others() {
    let (folder, page) = (tempfile::tempdir().unwrap(), guide());
    let policy = blocks(&page).into_iter().find(|it| it.0 == "toml payments.toml").unwrap().1;
    std::fs::write(folder.path().join("p.toml"), policy).unwrap();
    let named = keys("Test cases");
    let with = |key: &str| {
        let mut case =
            serde_json::json!({"name": "a", "state": {}, "node": "planner", "patch": {}, "expect": "commit"});
        case[key] = if case[key].is_null() { serde_json::json!(7) } else { case[key].clone() };
        std::fs::write(folder.path().join("c.jsonl"), case.to_string()).unwrap();
        let ran = Command::new(PROGRAM).args(["policy", "test", "p.toml", "c.jsonl"]).current_dir(&folder).output();
        String::from_utf8(ran.unwrap().stderr).unwrap()
    };
    for key in &named {
        let word = ["commit", "hold", "reject", "merge"].contains(&key.as_str());
        assert_eq!(with(key).contains("a case has no key"), word, "{key}");
    }
    assert!(named.len() >= 15, "{named:?}");
    assert!(with("warns").contains("a case has no key \"warns\""));
}

#[test]
fn page_names_every_cause_of_an_unknown_replay_result() {
    let named = keys("Replay results");
    for cause in ReplayUnknownCause::ALL {
        assert!(named.iter().any(|it| it == cause.as_str()), "{cause:?} {named:?}");
    }
}
