//! `countersign audit --export` itself: an export by another implementation holds, and what was spoiled in it is found, each
//! under the code that the other implementations give it.

use std::path::Path;
use std::process::Command;

use super::*;

mod dishonest;

/// A folder as an auditor has it.
struct ExportFolder {
    folder: tempfile::TempDir,
}

impl ExportFolder {
    fn of(files: &[(&str, String)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        Self { folder }
    }

    /// `{chain, jwks, receipt}` as files.
    fn whole(document: &Value) -> Self {
        Self::of(&[
            ("chain.json", document["chain"].to_string()),
            ("jwks.json", document["jwks"].to_string()),
            ("receipt.jwt", format!("{}\n", text(document, "receipt"))),
        ])
    }

    fn audited(&self, rest: &[&str]) -> (i32, Value, String) {
        let mut line = Command::new(env!("CARGO_BIN_EXE_countersign"));
        line.args(["--json", "audit", "--export"]).arg(self.folder.path()).args(rest);
        let ran = line.env_clear().current_dir(self.folder.path()).output().unwrap();
        let told = serde_json::from_slice(&ran.stdout).unwrap_or(Value::Null);
        (ran.status.code().unwrap(), told, String::from_utf8(ran.stderr).unwrap())
    }
}

fn export() -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors/export/receipt.jwt");
    let receipt = std::fs::read_to_string(path).unwrap();
    json!({"chain": vectors("export/chain"), "jwks": vectors("export/jwks"), "receipt": receipt.trim_end()})
}

fn patched(patch: &Value) -> Value {
    let mut document = export();
    for step in patch.as_array().unwrap() {
        apply(&mut document, step);
    }
    document
}

/// One step of a JSON Patch, as far as the vectors use it.
fn apply(document: &mut Value, step: &Value) {
    let taken = step.get("from").map(|from| document.pointer(from.as_str().unwrap()).unwrap().clone());
    match text(step, "op") {
        "remove" => drop(take(document, text(step, "path"))),
        "replace" => *document.pointer_mut(text(step, "path")).unwrap() = step["value"].clone(),
        "add" => put(document, text(step, "path"), step["value"].clone()),
        "copy" => put(document, text(step, "path"), taken.unwrap()),
        "move" => {
            drop(take(document, text(step, "from")));
            put(document, text(step, "path"), taken.unwrap());
        }
        other => panic!("{other}"),
    }
}

fn parent<'d, 'p>(document: &'d mut Value, path: &'p str) -> (&'d mut Value, &'p str) {
    let (parent, last) = path.rsplit_once('/').unwrap();
    (document.pointer_mut(parent).unwrap(), last)
}

fn take(document: &mut Value, path: &str) -> Value {
    match parent(document, path) {
        (Value::Array(items), at) => items.remove(at.parse().unwrap()),
        (Value::Object(members), name) => members.remove(name).unwrap(),
        other => panic!("{other:?}"),
    }
}

fn put(document: &mut Value, path: &str, value: Value) {
    match parent(document, path) {
        (Value::Array(items), "-") => items.push(value),
        (Value::Array(items), at) => items.insert(at.parse().unwrap(), value),
        (Value::Object(members), name) => drop(members.insert(name.to_owned(), value)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn sound_export_is_reported_with_its_numbers() {
    let (exit, told, _) = ExportFolder::whole(&export()).audited(&[]);
    let versions = export()["chain"]["entries"].as_array().unwrap().len();
    assert_eq!((exit, &told["sound"], &told["findings"]), (0, &json!(true), &json!([])), "{told}");
    let thread = &told["threads"][0];
    assert_eq!(thread["from"], 0);
    assert_eq!(thread["to"], versions - 1);
    assert_eq!(thread["changes"], json!({"whole": versions - 3, "partly": 3, "not_seen": 0}), "{told}");
    assert_eq!((&thread["written"], &thread["approved"], &thread["receipts"]), (&json!(2), &json!(3), &json!(1)));
}

#[test]
fn each_spoiled_export_is_found_under_its_code() {
    let document = vectors("exports");
    let all = cases(&document, "cases");
    assert!(all.len() >= 70);
    for case in all {
        let (exit, told, said) = ExportFolder::whole(&patched(&case["patch"])).audited(&[]);
        let (name, code) = (text(&case, "name"), text(&case, "code"));
        // A set with one unsound key is no set at all.
        if told.is_null() {
            let keys = case["patch"].to_string().contains("/jwks");
            assert!(exit == 2 && keys && said.contains("jwks.json is not a valid key set"), "{name}: {said}");
            continue;
        }
        assert_eq!(told["sound"], false, "{name}: {told}");
        // Nothing that is here says anything about it: that of another thread may be as genuine as it looks.
        if name == "a receipt of another thread, well signed" {
            assert!(exit == 2 && told["could_not_tell"][0].as_str().unwrap().starts_with("receipt.jwt"), "{told}");
            continue;
        }
        assert_eq!(exit, 1, "{name}: {told}");
        assert_eq!(told["findings"][0]["code"], code, "{name}: {told}");
    }
    for case in cases(&document, "accepted") {
        let (exit, told, _) = ExportFolder::whole(&patched(&case["patch"])).audited(&[]);
        assert_eq!(exit, 0, "{}: {told}", text(&case, "name"));
    }
}

/// The first versions in one page and the others in the next, as they are fetched.
fn paged(at: usize) -> Vec<(&'static str, String)> {
    let whole = export();
    let entries = whole["chain"]["entries"].as_array().unwrap();
    let first = json!({"entries": entries[..at], "next_page_token": at});
    let second = json!({"entries": entries[at..], "next_page_token": null});
    // Named so that they are not read in their order.
    vec![("b/1.json", first.to_string()), ("a/2.json", second.to_string()), ("jwks.json", whole["jwks"].to_string())]
}

#[test]
fn pages_are_put_together_and_none_may_be_missing() {
    assert_eq!(ExportFolder::of(&paged(3)).audited(&[]).0, 0);
    for (left_out, code) in [("b/1.json", "chain"), ("a/2.json", "chain")] {
        let files: Vec<_> = paged(3).into_iter().filter(|it| it.0 != left_out).collect();
        let (exit, told, _) = ExportFolder::of(&files).audited(&[]);
        assert_eq!((exit, told["findings"][0]["code"].as_str()), (1, Some(code)), "{left_out}: {told}");
    }
}

#[test]
fn entries_in_two_files_must_be_equal() {
    let whole = export();
    let both = |other: Value| {
        let files = [
            ("one.json", whole["chain"].to_string()),
            ("other.json", other.to_string()),
            ("jwks.json", whole["jwks"].to_string()),
        ];
        ExportFolder::of(&files).audited(&[])
    };
    let some = |at: usize| json!({"entries": [whole["chain"]["entries"][at]], "next_page_token": null});
    assert_eq!(both(some(4)).0, 0);
    let spoiled = patched(
        &cases(&vectors("exports"), "cases").into_iter().find(|it| it["name"] == "an entry forged").unwrap()["patch"],
    );
    let (exit, told, _) = both(json!({"entries": [spoiled["chain"]["entries"][4]], "next_page_token": null}));
    assert_eq!((exit, told["findings"][0]["code"].as_str()), (1, Some("signature_invalid")), "{told}");
}

#[test]
fn keys_that_are_trusted_go_before_those_of_the_export() {
    let mut whole = export();
    let trusted = ExportFolder::of(&[("keys", whole["jwks"].to_string())]);
    let keys = trusted.folder.path().join("keys").display().to_string();
    whole["jwks"] = json!({"issuer": "https://countersign.example", "keys": []});
    let export = ExportFolder::whole(&whole);
    assert_eq!(export.audited(&[]).1["findings"][0]["code"], "unknown_key");
    assert_eq!(export.audited(&["--jwks", &keys]).0, 0);
}

#[test]
fn files_that_are_no_export_are_reported() {
    let whole = export();
    let (exit, _, said) = ExportFolder::of(&[("chain.json", whole["chain"].to_string())]).audited(&[]);
    assert!(exit == 2 && said.contains("/.well-known/jwks.json"), "{said}");
    let (exit, _, said) = ExportFolder::of(&[("jwks.json", whole["jwks"].to_string())]).audited(&[]);
    assert!(exit == 2 && said.contains("contains no chain"), "{said}");
    let files = [
        ("chain.json", whole["chain"].to_string()),
        ("jwks.json", whole["jwks"].to_string()),
        ("notes.txt", "seen".to_owned()),
        ("twice.json", r#"{"entries": [], "entries": []}"#.to_owned()),
        ("old.json.gz", "no archive".to_owned()),
    ];
    let (exit, told, _) = ExportFolder::of(&files).audited(&[]);
    assert_eq!((exit, &told["passed_over"]), (1, &json!(["notes.txt"])), "{told}");
    let codes: Vec<&str> = told["findings"].as_array().unwrap().iter().map(|it| text(it, "code")).collect();
    assert_eq!(codes, ["chain", "duplicate_key"], "{told}");
}

/// A thread and the branches that it joined, each in a file.
fn forked(chains: &Value, jwks: &Value) -> ExportFolder {
    let chain = |it: &Value| json!({"entries": it, "next_page_token": null}).to_string();
    let branches = chains["branches"].as_object().unwrap().iter();
    let mut files =
        vec![("jwks.json".to_owned(), jwks.to_string()), ("parent.json".to_owned(), chain(&chains["parent"]))];
    files.extend(branches.map(|(name, it)| (format!("{name}.json"), chain(it))));
    let files: Vec<(&str, String)> = files.iter().map(|(name, text)| (name.as_str(), text.clone())).collect();
    ExportFolder::of(&files)
}

#[test]
fn branches_are_held_against_the_thread_that_they_were_made_of_and_joins_against_their_branches() {
    let file = vectors("branches");
    let (exit, told, _) = forked(&file["chains"], &file["jwks"]).audited(&[]);
    assert_eq!((exit, &told["not_seen"], told["threads"].as_array().unwrap().len()), (0, &json!([]), 3), "{told}");
    for case in cases(&file, "spoiled") {
        let mut chains = file["chains"].clone();
        case["patch"].as_array().unwrap().iter().for_each(|step| apply(&mut chains, step));
        let (exit, told, _) = forked(&chains, &file["jwks"]).audited(&[]);
        let unseen = told["not_seen"].as_array().unwrap().len();
        match text(&case, "name") {
            // A file's name has no meaning here: a chain itself names its thread.
            "branches in each other's place" => assert_eq!((exit, unseen), (0, 0), "{told}"),
            "a branch that is none" => assert_eq!((exit, unseen), (0, 1), "{told}"),
            // The thread may have gone on since its pages were saved.
            "a branch of a head that is not there" => assert_eq!((exit, unseen), (0, 2), "{told}"),
            name => {
                let code = told["findings"][0]["code"].as_str().unwrap_or_default();
                assert!(exit == 1 && ["gate", "join", "branch"].contains(&code), "{name}: {told}");
            }
        }
    }
}
