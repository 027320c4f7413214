//! Writes the files of `docs/specs/state-guard.md`, runs its commands and compares their output.

use std::path::Path;
use std::process::Command;

use crate::{PROGRAM, blocks};

fn docs() -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/specs/state-guard.md")).unwrap()
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

/// Runs a line as a shell would, with the program on its path.
fn run(folder: &Path, line: &str) -> (String, String, Option<i32>) {
    let programs = Path::new(PROGRAM).parent().unwrap().to_str().unwrap();
    let path = format!("{programs}:{}", std::env::var("PATH").unwrap());
    let ran = Command::new("sh").args(["-c", line]).env("PATH", path).current_dir(folder).output().unwrap();
    (String::from_utf8(ran.stdout).unwrap(), String::from_utf8(ran.stderr).unwrap(), ran.status.code())
}

#[test]
fn page_shows_the_output_of_its_commands() {
    let (folder, page) = (folder(), docs());
    let real = folder.path().canonicalize().unwrap();
    let mut ran = 0;
    for (_, text) in blocks(&page).into_iter().filter(|it| it.0 == "console") {
        for command in text.split("$ ").skip(1) {
            let (line, expected) = command.split_once('\n').unwrap();
            let (said, wrong, code) = run(&real, line);
            assert_eq!(said.replace(real.to_str().unwrap(), "$PWD"), expected, "{line}: {wrong}");
            assert_eq!(code, Some(i32::from(expected.starts_with("blocked"))), "{line}");
            ran += 1;
        }
    }
    assert_eq!(ran, 8);
}

#[test]
fn an_empty_path_gets_a_json_decision() {
    let folder = folder();
    let decided = |line: &str| {
        let (said, wrong, code) = run(folder.path(), line);
        let answer: serde_json::Value = serde_json::from_str(&said).unwrap_or_else(|_| panic!("{line}: {said}{wrong}"));
        (answer["verdict"].as_str().unwrap().to_owned(), answer["code"].as_str().unwrap().to_owned(), code.unwrap())
    };
    let commit = "countersign guard commit --json --schema schema.json --rules rules.json";
    let root = folder.path().display();
    for (rest, verdict, code, exit) in [
        (format!("--root={root} --target= current.json good.json"), "blocked", "target_not_absolute", 1),
        (format!("--root= --target={root}/a.json current.json good.json"), "could_not_tell", "guard_roots_invalid", 2),
        (format!("--root={root} --target={root}/a.json '' good.json"), "could_not_tell", "unreadable", 2),
        (format!("--root={root} --target={root}/a.json current.json ''"), "could_not_tell", "unreadable", 2),
    ] {
        assert_eq!(decided(&format!("{commit} {rest}")), (verdict.to_owned(), code.to_owned(), exit), "{rest}");
    }
    for line in ["payload --json --schema= current.json", "payload --json --schema schema.json --rules= current.json"] {
        let expected = ("could_not_tell".to_owned(), "unreadable".to_owned(), 2);
        assert_eq!(decided(&format!("countersign guard {line}")), expected, "{line}");
    }
}

#[test]
fn page_names_every_code() {
    let page = docs();
    let source = |file: &str| std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap();
    let mut named = 0;
    for file in [
        "crates/domain/src/guard/code.rs",
        "crates/domain/src/schema/fault.rs",
        "crates/domain/src/transition_rules/violation.rs",
    ] {
        for line in source(file).lines() {
            let Some((_, rest)) = line.split_once("=> (\"").or_else(|| line.trim().split_once('"')) else { continue };
            let code = rest.split('"').next().unwrap();
            if code.is_empty() || !code.chars().all(|it| it.is_ascii_lowercase() || it == '_') || !code.contains('_') {
                continue;
            }
            assert!(page.contains(&format!("`{code}`")), "{code}");
            named += 1;
        }
    }
    assert!(named > 60, "{named}");
}

#[test]
fn json_answers_carry_proof_previous_state_codes_and_pointers() {
    let folder = folder();
    let judged = |proposed: &str| {
        let line = format!(
            "countersign guard transition --json --schema schema.json --rules rules.json current.json {proposed}"
        );
        let (said, _, code) = run(folder.path(), &line);
        (serde_json::from_str::<serde_json::Value>(&said).unwrap(), code)
    };
    let (good, code) = judged("good.json");
    let (said, _, exit) =
        run(folder.path(), "cat current.json | countersign guard payload --dialect guard --schema schema.json -");
    assert!(said.starts_with("verified: the state fits the schema") && exit == Some(0), "{said}");
    assert_eq!((&good["verdict"], &good["verified"], code), (&"verified".into(), &true.into(), Some(0)));
    assert_eq!(good["proof"].as_str().unwrap().len(), 71);
    assert_eq!(good["normalized_previous_state"]["step_count"], 2);
    assert_eq!(good["normalized_state"]["step_count"], 3);
    let (bad, code) = judged("bad.json");
    assert_eq!((&bad["verdict"], code), (&"blocked".into(), Some(1)));
    assert_eq!((&bad["code"], &bad["pointer"]), (&"immutable_changed".into(), &"/agent_id".into()));
    assert_eq!(bad["error_code"], "QWED-AGENT-STATE-106");
    assert_eq!(bad["message"], "the value is immutable and changed");
    assert_eq!(bad["errors"][3]["in"], "proposed");
    assert_eq!(bad["errors"][0]["code"], "immutable_changed");
    assert_eq!(bad["errors"][3]["pointer"], "/tasks/0/done");
}

#[test]
fn check_that_cannot_run_exits_with_two() {
    let folder = folder();
    for (line, said, code) in [
        ("payload --schema missing.json current.json", "cannot read missing.json", "unreadable"),
        ("payload --schema current.json current.json", "guard_schema_invalid", "guard_schema_invalid"),
        (
            "payload --dialect json-schema-2020-12 --schema schema.json current.json",
            "the schema is in the dialect guard, not json-schema-2020-12",
            "guard_schema_invalid",
        ),
        ("payload --schema schema.json --rules schema.json current.json", "guard_rules_invalid", "guard_rules_invalid"),
        (
            "create --schema schema.json --root states --target /s.json current.json",
            "guard_roots_invalid",
            "guard_roots_invalid",
        ),
    ] {
        let (out, wrong, exit) = run(folder.path(), &format!("countersign guard {line}"));
        assert!(wrong.contains(said) && out.is_empty(), "{line}: {wrong}");
        assert_eq!(exit, Some(2), "{line}");
        let (out, wrong, exit) = run(folder.path(), &format!("countersign guard {line} --json"));
        let answer: serde_json::Value = serde_json::from_str(&out).unwrap();
        assert_eq!((&answer["verdict"], &answer["code"]), (&"could_not_tell".into(), &code.into()), "{line}");
        assert!(answer["pointer"].is_string() && wrong.is_empty(), "{line}: {answer} {wrong}");
        assert_eq!(exit, Some(2), "{line}");
    }
}

#[test]
fn commit_returns_the_written_state_or_the_reason_as_json() {
    let folder = folder();
    let flags = "--json --schema schema.json --rules rules.json --root $PWD";
    let run = |line: &str| {
        let (said, wrong, code) = run(folder.path(), &format!("countersign guard {line}"));
        (serde_json::from_str::<serde_json::Value>(&said).expect(&wrong), code)
    };
    let (absent, code) = run(&format!("commit {flags} --absent --target $PWD/s.json current.json good.json"));
    assert_eq!((&absent["verdict"], code), (&"verified".into(), Some(0)), "{absent}");
    assert_eq!(absent["committed_bytes"], 112);
    assert_eq!(absent["normalized_previous_state"]["step_count"], 2);
    let path = Path::new(absent["committed_path"].as_str().unwrap());
    assert_eq!(
        serde_json::from_slice::<serde_json::Value>(&std::fs::read(path).unwrap()).unwrap(),
        absent["normalized_state"]
    );
    let (again, code) = run(&format!("commit {flags} --absent --target $PWD/s.txt current.json bad.json"));
    assert_eq!((&again["verdict"], code), (&"blocked".into(), Some(1)));
    assert_eq!(
        again["errors"][0],
        serde_json::json!({
            "code": "target_not_json", "error_code": "QWED-AGENT-STATE-107", "in": "target", "pointer": "",
            "detail": "the file's name must end with .json",
        })
    );
    assert_eq!(again["errors"].as_array().unwrap().len(), 5);
    let (long, code) = run(&format!("create {flags} --target $PWD/{}.json current.json", "n".repeat(250)));
    assert_eq!(
        (&long["code"], &long["error_code"], code),
        (&"write_failed".into(), &"QWED-AGENT-STATE-108".into(), Some(1))
    );
    assert!(long["cause"].as_str().unwrap().contains("name too long"), "{long}");
    let (none, _) = run("create --json --schema schema.json --target $PWD/t.json current.json");
    assert_eq!(none["code"], "no_roots");
}
