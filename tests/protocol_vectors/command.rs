//! `countersign verify` as a command: it accepts a receipt from another implementation. It rejects each spoiled
//! receipt or file with the name of the failed check.

use std::path::Path;
use std::process::Command;

use super::*;

/// A moment at which the export's receipt was good.
const THEN: &str = "2026-11-02T09:05:00.000Z";

/// Files that the command line names in addition to a receipt.
struct CommandFiles {
    folder: tempfile::TempDir,
    entries: Value,
    jwks: Value,
}

impl CommandFiles {
    fn of_the_export() -> Self {
        let entries = vectors("export/chain")["entries"].clone();
        Self { folder: tempfile::tempdir().unwrap(), entries, jwks: vectors("export/jwks") }
    }

    fn receipt(&self) -> String {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors/export/receipt.jwt");
        std::fs::read_to_string(path).unwrap().trim_end().to_owned()
    }

    fn file(&self, name: &str, text: &str) -> String {
        let path = self.folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    }

    /// The line with the entry, statement and opening of that version.
    fn with_version(&self, version: usize) -> Vec<String> {
        let it = &self.entries[version];
        let (statement, opening) = (it["statement"].to_string(), it["opening"].to_string());
        vec![
            "--entry".to_owned(),
            text(it, "entry").to_owned(),
            "--statement".to_owned(),
            self.file("statement.json", &statement),
            "--opening".to_owned(),
            self.file("opening.json", &opening),
        ]
    }

    /// Exit code, conclusion, and the one check that failed with its code.
    fn said(&self, receipt: &str, jwks: &Value, at: &str, rest: &[String]) -> (i32, String, Option<(String, String)>) {
        let (code, said) = self.ran(receipt, jwks, at, rest);
        let checks = said["checks"].as_array().unwrap();
        let failed: Vec<&Value> = checks.iter().filter(|it| it["outcome"] == "failed").collect();
        assert!(failed.len() <= 1, "nothing is believed after a failure: {said}");
        let failed = failed.first().map(|it| (text(it, "check").to_owned(), text(it, "code").to_owned()));
        (code, text(&said, "conclusion").to_owned(), failed)
    }

    /// Exit code and output.
    fn ran(&self, receipt: &str, jwks: &Value, at: &str, rest: &[String]) -> (i32, Value) {
        let receipt = self.file("receipt.jwt", receipt);
        let jwks = self.file("jwks.json", &jwks.to_string());
        let mut line = Command::new(env!("CARGO_BIN_EXE_countersign"));
        line.args(["--json", "verify", &receipt, "--jwks", &jwks, "--at", at]).args(rest);
        let ran = line.env_clear().current_dir(self.folder.path()).output().unwrap();
        let said = serde_json::from_slice(&ran.stdout).unwrap_or_else(|_| panic!("{ran:?}"));
        (ran.status.code().unwrap(), said)
    }
}

fn refused(check: &str, code: &str) -> (i32, String, Option<(String, String)>) {
    (1, "refused".to_owned(), Some((check.to_owned(), code.to_owned())))
}

#[test]
fn the_command_accepts_a_real_receipt_and_names_the_failing_check_of_each_spoiled_one() {
    let beside = CommandFiles::of_the_export();
    let (receipt, whole) = (beside.receipt(), beside.with_version(2));
    assert_eq!(beside.said(&receipt, &beside.jwks, THEN, &[]), (0, "genuine".to_owned(), None));
    assert_eq!(beside.said(&receipt, &beside.jwks, THEN, &whole), (0, "genuine".to_owned(), None));
    let is_bound = |more: &[String]| beside.ran(&receipt, &beside.jwks, THEN, more).1["is_bound"] == true;
    assert!(is_bound(&whole) && !is_bound(&[]), "a receipt alone has only digests");

    let mut tried = 0;
    for case in cases(&vectors("tokens"), "refused") {
        // A set with an unsound key is no set at all: the command cannot tell then, and says so.
        let receipts = text(&case, "accept_as") == "countersign-receipt+jwt" && case.get("jwks").is_none();
        // One break at the end of a file is forgiven, and only that.
        if !receipts || text(&case, "token").ends_with('\n') {
            continue;
        }
        let check = match text(&case, "code") {
            "receipt_malformed" => "form",
            "unknown_key" => "key",
            "signature_invalid" => "signature",
            other => panic!("{other}"),
        };
        let said = beside.said(text(&case, "token"), &vectors("tokens")["jwks"], THEN, &[]);
        assert_eq!(said, refused(check, text(&case, "code")), "{}", case["name"]);
        tried += 1;
    }
    assert!(tried >= 20, "{tried}");
}

#[test]
fn command_names_the_check_that_a_receipt_fails() {
    let beside = CommandFiles::of_the_export();
    let receipt = beside.receipt();
    let said = |jwks: &Value, at: &str, rest: &[String]| beside.said(&receipt, jwks, at, rest);
    let jwks = &beside.jwks;
    assert_eq!(said(jwks, "2026-11-02T09:03:59.999Z", &[]), refused("time", "not_yet_valid"));
    assert_eq!(said(jwks, "2026-11-02T09:14:00.000Z", &[]), refused("time", "expired"));
    let mut others = jwks.clone();
    others["issuer"] = json!("https://another.example");
    assert_eq!(said(&others, THEN, &[]), refused("issuer", "issuer_mismatch"));

    let with = |change: &dyn Fn(&mut Vec<String>)| {
        let mut line = beside.with_version(2);
        change(&mut line);
        said(jwks, THEN, &line)
    };
    let (entry_before, entry_here) = (text(&beside.entries[1], "entry"), text(&beside.entries[2], "entry"));
    assert_eq!(with(&|it| it[1] = beside.file("entry.jwt", "an entry")), refused("entry", "chain_broken"));
    assert_eq!(with(&|it| it[1] = receipt.clone()), refused("entry", "chain_broken"));
    assert_eq!(with(&|it| it[1] = entry_before.to_owned()), refused("link", "chain_broken"));
    assert_eq!(
        with(&|it| *it = vec!["--entry".to_owned(), entry_before.to_owned()]),
        refused("version", "version_mismatch")
    );
    let statement = |change: &dyn Fn(&mut Value)| {
        let mut other = beside.entries[2]["statement"].clone();
        change(&mut other);
        beside.file("other.json", &other.to_string())
    };
    for (member, value) in [("to", json!(beside.entries[1]["statement"]["to"])), ("node", json!("planner2"))] {
        let path = statement(&|it| it[member] = value.clone());
        assert_eq!(with(&|it| it[3].clone_from(&path)), refused("statement", "digest_mismatch"), "{member}");
    }
    let opening = beside.entries[1]["opening"].to_string();
    let path = beside.file("other_opening.json", &opening);
    assert_eq!(with(&|it| it[5].clone_from(&path)), refused("opening", "digest_mismatch"));
    assert_eq!(said(jwks, THEN, &["--entry".to_owned(), entry_here.to_owned()]), (0, "genuine".to_owned(), None));
}

#[test]
fn the_command_says_when_it_cannot_tell() {
    let (beside, tokens) = (CommandFiles::of_the_export(), vectors("tokens"));
    for case in cases(&tokens, "could_not_tell") {
        let said = beside.said(text(&case, "token"), &tokens["jwks"], THEN, &[]);
        assert_eq!(said, (2, "could_not_tell".to_owned(), None), "{}", case["name"]);
    }
}
