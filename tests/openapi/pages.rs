//! The generated tables of `docs/reference/errors.md` and `docs/reference/http-api.md`, and the codes that these pages
//! list by hand.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use countersign_web::api::error_codes::{BY_STATUS, DENIAL_TEXTS, ErrorText, FAULT_TEXTS, PROBLEM_TEXTS, Retry};
use countersign_web::api::error_codes::{denials, faults};

use super::{calls, described};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Renders error texts as a table.
fn errors(texts: &[ErrorText]) -> String {
    let with_status = texts.iter().all(|it| it.status != 0);
    let mut table = if with_status {
        "| code | status | meaning | retry? | fix |\n|---|---|---|---|---|\n".to_owned()
    } else {
        "| code | meaning | retry? | fix |\n|---|---|---|---|\n".to_owned()
    };
    for it in texts {
        let retry = match it.retry {
            Retry::No => "no",
            Retry::Later => "later",
            Retry::Changed => "changed",
        };
        let status = if with_status { format!(" {} |", it.status) } else { String::new() };
        writeln!(table, "| `{}` |{status} {} | {retry} | {} |", it.code, it.meaning, it.fix).unwrap();
    }
    table
}

/// Renders every call of the OpenAPI document with the roles that may send it.
fn routes() -> String {
    let mut table = "| call | purpose | roles |\n|---|---|---|\n".to_owned();
    let api = described();
    for (path, method, call) in calls(&api) {
        let roles: Vec<_> = call["x-roles"].as_array().into_iter().flatten().filter_map(|it| it.as_str()).collect();
        let roles = if roles.is_empty() { "all, without a token".to_owned() } else { roles.join(", ") };
        let summary = call["summary"].as_str().unwrap().trim_end_matches('.');
        writeln!(table, "| `{} {path}` | {summary} | {roles} |", method.to_uppercase()).unwrap();
    }
    table
}

fn table(name: &str) -> String {
    match name {
        "problems" => errors(PROBLEM_TEXTS),
        "denials" => errors(DENIAL_TEXTS),
        "faults" => errors(FAULT_TEXTS),
        "routes" => routes(),
        other => unreachable!("no table is called {other}"),
    }
}

/// Replaces the text between `<!-- table: NAME -->` and `<!-- end -->` by the table of that name.
fn with_tables(page: &str) -> String {
    let mut parts = page.split("<!-- table: ");
    let mut rendered = parts.next().unwrap().to_owned();
    for part in parts {
        let (name, rest) = part.split_once(" -->\n").unwrap();
        let (_, after) = rest.split_once("<!-- end -->").unwrap();
        write!(rendered, "<!-- table: {name} -->\n\n{}\n<!-- end -->{after}", table(name)).unwrap();
    }
    rendered
}

#[test]
fn generated_tables_are_current() {
    for name in ["errors.md", "http-api.md"] {
        let file = root().join("docs/reference").join(name);
        let page = fs::read_to_string(&file).unwrap();
        let rendered = with_tables(&page);
        if std::env::var_os("RENEW").is_some() {
            fs::write(&file, rendered).unwrap();
        } else {
            assert!(page == rendered, "docs/reference/{name} is stale: RENEW=1 cargo test --test openapi");
        }
    }
}

#[test]
fn every_code_has_one_text() {
    let listed: Vec<_> = PROBLEM_TEXTS.iter().map(|it| (it.status, it.code)).collect();
    let known: Vec<_> = BY_STATUS.iter().flat_map(|(status, _, codes)| codes.iter().map(|it| (*status, *it))).collect();
    assert_eq!(listed, known);
    assert_eq!(DENIAL_TEXTS.iter().map(|it| it.code).collect::<Vec<_>>(), denials());
    assert_eq!(FAULT_TEXTS.iter().map(|it| it.code).collect::<Vec<_>>(), faults());
    for it in PROBLEM_TEXTS.iter().chain(DENIAL_TEXTS).chain(FAULT_TEXTS) {
        assert!(it.meaning.ends_with('.') && it.fix.ends_with('.') && !it.meaning.contains('|'), "{}", it.code);
    }
}

/// Returns the text of every Rust file below a folder.
fn sources(folder: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).unwrap().map(|it| it.unwrap().path()) {
        if entry.is_dir() {
            sources(&entry, found);
        } else if entry.extension().is_some_and(|it| it == "rs") {
            found.push(fs::read_to_string(entry).unwrap());
        }
    }
}

#[test]
fn page_lists_every_code_of_votes_and_of_the_state_guard() {
    let page = fs::read_to_string(root().join("docs/reference/errors.md")).unwrap();
    let mut all = Vec::new();
    for folder in ["src", "crates"] {
        sources(&root().join(folder), &mut all);
    }
    let part = |start: &str, end: &str| {
        let found = all.iter().find_map(|it| it.split_once(start)).unwrap_or_else(|| panic!("{start}")).1;
        found.split_once(end).unwrap().0.to_owned()
    };
    let words = |text: &str| text.split('"').skip(1).step_by(2).map(str::to_owned).collect::<BTreeSet<_>>();
    let votes = words(&part("fn vote_code(", "\n}\n"));
    let guard = part("(code.as_str(), code.detail())", "pub enum AgentStateGuardCode");
    let guard: BTreeSet<_> =
        guard.split("=> (\"").skip(1).filter_map(|it| it.split('"').next()).map(str::to_owned).collect();
    assert!(votes.len() >= 20 && guard.len() >= 14, "{votes:?} {guard:?}");
    for code in votes.iter().chain(&guard) {
        assert!(page.contains(&format!("| `{code}` |")), "{code}");
    }
}
