//! Rules of the codebase that the compiler does not check. Each rule is a function from files to complaints. Bad
//! samples prove that it finds them.
#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

#[path = "tidy/capabilities.rs"]
mod capabilities;
#[path = "tidy/circles.rs"]
mod circles;
#[path = "tidy/rules.rs"]
mod rules;
#[path = "tidy/source.rs"]
mod source;
#[path = "tidy/walkthroughs.rs"]
mod walkthroughs;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use rules::{TidyRule, migrations, named_paths, rust_rules};
use source::{File, RustSource};

/// Directories without source text of the project.
const NOT_OURS: [&str; 4] = [".git", "target", "node_modules", "countersign-data"];

fn repository() -> Vec<File> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (mut files, mut directories) = (Vec::new(), vec![root.to_owned()]);
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let entry = entry.unwrap();
            let kind = entry.file_type().unwrap();
            let ours = !NOT_OURS.iter().any(|it| entry.file_name() == *it);
            if kind.is_dir() && ours {
                directories.push(entry.path());
            } else if kind.is_file() && ours {
                let path = entry.path().strip_prefix(root).unwrap().to_str().unwrap().to_owned();
                // A file that is not text, such as a screenshot, counts as empty: only its path matters.
                let text = fs::read_to_string(entry.path()).unwrap_or_default();
                files.push(File { path, text });
            }
        }
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    files
}

fn file(path: &str, text: &str) -> File {
    File { path: path.to_owned(), text: text.to_owned() }
}

fn complaints(rule: TidyRule, path: &str, text: &str) -> Vec<String> {
    rule(&file(path, text), &RustSource::read(text))
}

#[test]
fn the_repository_is_tidy() {
    let files = repository();
    let mut found = Vec::new();
    for file in files.iter().filter(|it| it.path.ends_with(".rs")) {
        let source = RustSource::read(&file.text);
        found.extend(rust_rules().iter().flat_map(|rule| rule(file, &source)));
    }
    found.extend(circles::circles(&files));
    found.extend(capabilities::upward_imports(&files));
    let architecture = files.iter().find(|it| it.path == "ARCHITECTURE.md").unwrap();
    found.extend(walkthroughs::stale_names(&architecture.text, &files));
    found.extend(migrations(&files));
    found.extend(named_paths(&files));
    assert!(found.is_empty(), "\n{}\n", found.join("\n"));
}

#[test]
fn an_arrow_that_points_up_is_found() {
    for (path, text) in [
        ("crates/store/src/sqlite.rs", "use countersign_adapters::keyring::Keyring;"),
        ("crates/store/src/lib.rs", "use countersign_adapters :: {clock::Clock, random};"),
        ("crates/store/src/lib.rs", "use countersign_adapters as everything;"),
        ("crates/store/src/lib.rs", "use countersign_adapters::*;"),
        ("src/wiring.rs", "use crate::{\n    config::Config,\n    cli::{Exit, args},\n};"),
        ("crates/web/src/pages/inbox/list.rs", "use countersign_adapters::http_client::HttpClient;"),
        ("src/worker/expire.rs", "use super::super::cli::Exit;"),
        ("src/worker/expire.rs", "fn f(_: &countersign_store::Store) {}"),
        ("src/worker/mod.rs", "use countersign_web::state::AppState;"),
        ("src/worker/mod.rs", "use crate as everything;"),
        ("src/worker/mod.rs", "use crate::*;"),
        ("src/config.rs", "use countersign_service::Service;"),
        ("src/config.rs", "use crate::wiring::GatewayError;"),
        ("src/helpers.rs", "pub fn help() {}"),
        ("src/helpers/mod.rs", "pub fn help() {}"),
    ] {
        assert_eq!(complaints(rules::arrows, path, text).len(), 1, "{path}: {text}");
    }
}

#[test]
fn an_arrow_that_points_down_is_fine() {
    for (path, text) in [
        ("crates/store/src/lib.rs", "use countersign_adapters::clock::Clock; // countersign_adapters::mail"),
        ("crates/store/src/row.rs", "use super::sql::TABLES; use crate::Store;"),
        ("crates/store/src/sqlite.rs", "#[cfg(test)]\nmod tests { use countersign_adapters::random; }"),
        ("crates/store/src/sqlite/tests.rs", "use countersign_adapters::random;"),
        ("src/wiring.rs", "use countersign_store::{Store, change::ChangeSet}; use crate::config::Config;"),
        ("src/worker/mod.rs", "use countersign_service::Service; const S: &str = \"countersign_store::Store\";"),
        (
            "src/cli/serve.rs",
            "use crate::{wiring, worker}; use countersign_web as web; use countersign_store as store;",
        ),
        ("src/main.rs", "use countersign::cli::Exit;"),
        ("crates/domain/src/chain/entry.rs", "use super::super::keys::Keys; use super::hash::Digest;"),
    ] {
        assert_eq!(complaints(rules::arrows, path, text), Vec::<String>::new(), "{path}: {text}");
    }
}

#[test]
fn a_domain_that_is_not_pure_is_found() {
    for text in ["async fn decide() {}", "use std::fs;", "use std::{env, fmt};", "use std::io::{self, Write};"] {
        assert_eq!(complaints(rules::pure_domain, "crates/domain/src/reviews/mod.rs", text).len(), 1, "{text}");
        assert_eq!(complaints(rules::pure_domain, "crates/service/src/review.rs", text).len(), 0, "{text}");
    }
    assert_eq!(complaints(rules::pure_domain, "crates/domain/src/a.rs", "use std::io::Write as _;").len(), 0);
}

#[test]
fn a_database_outside_the_store_is_found() {
    for text in ["use rusqlite::Connection;", "fn f(it: tokio_postgres::Row) {}", "use deadpool_postgres::Pool;"] {
        assert_eq!(complaints(rules::databases_in_store, "crates/service/src/lib.rs", text).len(), 1, "{text}");
        assert_eq!(complaints(rules::databases_in_store, "crates/store/src/sqlite.rs", text).len(), 0, "{text}");
    }
}

#[test]
fn long_work_out_of_turn_is_found() {
    let text = "fn f() { tokio::task::spawn_blocking(|| ()); }";
    assert_eq!(complaints(rules::turns, "crates/service/src/proposals/join_merge.rs", text).len(), 1);
    for path in [
        "crates/service/src/platform/fair_queue.rs",
        "crates/service/src/identity/password_hash.rs",
        "crates/web/src/lib.rs",
        "tests/api/main.rs",
    ] {
        assert_eq!(complaints(rules::turns, path, text).len(), 0, "{path}");
    }
}

#[test]
fn a_form_from_anybody_is_found() {
    let text = "async fn submit(form: web::Form<Fields>) {}";
    assert_eq!(complaints(rules::forms, "crates/web/src/pages/identity/account.rs", text).len(), 1);
    assert_eq!(complaints(rules::forms, "crates/web/src/pages/shared/form.rs", text).len(), 0);
    let ours = "async fn submit(form: Form<Fields>, config: web::FormConfig) {}";
    assert_eq!(complaints(rules::forms, "crates/web/src/pages/identity/account.rs", ours).len(), 0);
}

#[test]
fn a_handler_with_the_whole_service_is_found() {
    for text in [
        "use countersign_service::Service;",
        "use crate::state::AppState;",
        "use crate::state::FromState as _;",
        "fn f(request: &HttpRequest) { let writes = Capability :: <Writes>::extract(request); }",
        "fn f(request: &HttpRequest) { let app = SignInCapabilities::extract(request); }",
    ] {
        for path in ["crates/web/src/api/writes.rs", "crates/web/src/pages/shared/vote_form.rs"] {
            assert_eq!(complaints(rules::handler_capabilities, path, text).len(), 1, "{path}: {text}");
        }
        assert_eq!(complaints(rules::handler_capabilities, "crates/web/src/state.rs", text).len(), 0, "{text}");
    }
    let service = "fn f(service: &countersign_service::Service) {}";
    assert_eq!(complaints(rules::handler_capabilities, "crates/web/src/server.rs", service).len(), 1);
    let extractor = "use crate::state::FromState as _; fn f(it: &HttpRequest) { Capability::<Log>::of(it) }";
    assert_eq!(complaints(rules::handler_capabilities, "crates/web/src/pages/shared/visitor.rs", extractor).len(), 0);
    let fine = "async fn verify(writes: Capability<Writes>) {} // Service";
    assert_eq!(complaints(rules::handler_capabilities, "crates/web/src/api/writes.rs", fine).len(), 0);
}

#[test]
fn words_of_sql_outside_the_store_are_found() {
    for text in [
        "const Q: &str = \"SELECT a FROM b\";",
        "const Q: &str = \"select a from b\";",
        "const Q: &str = r#\"INSERT\n INTO b VALUES (1)\"#;",
        "const Q: &str = \"UPDATE b SET a = 1\";",
        "const Q: &str = \"DELETE FROM b\";",
        "const Q: &str = \"CREATE TABLE b (a)\";",
        "const Q: &str = \"PRAGMA synchronous = OFF\";",
        "const Q: &str = \"BEGIN IMMEDIATE\";",
    ] {
        assert_eq!(complaints(rules::sql_in_store, "crates/service/src/lib.rs", text).len(), 1, "{text}");
        assert_eq!(complaints(rules::sql_in_store, "crates/store/src/sqlite.rs", text).len(), 0, "{text}");
    }
    for text in ["// SELECT a FROM b", "const T: &str = \"select a flow; updates come from there\";"] {
        assert_eq!(complaints(rules::sql_in_store, "crates/web/src/lib.rs", text).len(), 0, "{text}");
    }
}

#[test]
fn a_file_or_function_that_is_too_long_is_found() {
    let lines = |count: usize| "// A line.\n".repeat(count);
    let function = |count: usize| format!("impl It {{\n    pub fn long<T>(a: [u8; 3]) -> u8\n{}}}\n}}\n", body(count));
    fn body(count: usize) -> String {
        format!("    {{\n{}    ", "        let a = '{';\n".repeat(count - 3))
    }
    assert_eq!(complaints(rules::sizes, "crates/domain/src/a.rs", &lines(401)).len(), 1);
    assert_eq!(complaints(rules::sizes, "crates/domain/src/a.rs", &lines(400)).len(), 0);
    assert_eq!(complaints(rules::sizes, "crates/domain/src/a/tests.rs", &lines(401)).len(), 0);
    assert_eq!(complaints(rules::sizes, "crates/domain/src/a_tests.rs", &lines(401)).len(), 0);
    assert_eq!(complaints(rules::sizes, "tests/api.rs", &lines(401)).len(), 0);
    let tests = format!("{}#[cfg(test)]\nmod tests {{\n{}}}\n", lines(399), lines(300));
    assert_eq!(complaints(rules::sizes, "crates/domain/src/a.rs", &tests).len(), 0);
    assert_eq!(complaints(rules::sizes, "crates/domain/src/a.rs", &format!("{tests}//\n//\n")).len(), 1);
    assert_eq!(complaints(rules::sizes, "crates/domain/src/a.rs", &function(61)).len(), 1);
    assert_eq!(complaints(rules::sizes, "crates/domain/src/a.rs", &function(60)).len(), 0);
    assert_eq!(complaints(rules::sizes, "src/main.rs", &lines(60)).len(), 1);
    assert_eq!(complaints(rules::sizes, "src/main.rs", &lines(59)).len(), 0);
}

#[test]
fn tuple_parameter_is_found() {
    for text in [
        "fn f((a, b): (u8, u8)) {}",
        "fn f<T: Fn(u8) -> u8>(\n    &self,\n    (a, (b, c)): (\n        &u8,\n        (u8, T),\n    ),\n) -> u8 { 1 }",
        "impl It { async fn f(self, a: Vec<(u8, u8)>, (b, c): (u8, u8)) {} }",
    ] {
        assert_eq!(complaints(rules::tuple_parameters, "crates/service/src/lib.rs", text).len(), 1, "{text}");
        assert_eq!(complaints(rules::tuple_parameters, "crates/service/src/tests.rs", text).len(), 0, "{text}");
    }
    for text in [
        "fn f(a: (u8, u8), b: HashMap<u8, (u8, u8)>) { let (c, d): (u8, u8) = a; }",
        "fn f() { let g = |(a, b): (u8, u8)| a + b; }",
        "fn f(Pair { a, b }: Pair, g: fn(u8) -> u8) {}",
        "fn f((name, help): MetricFamily) {}",
        "#[cfg(test)]\nmod tests { fn f((a, b): (u8, u8)) {} }",
    ] {
        assert_eq!(complaints(rules::tuple_parameters, "crates/service/src/lib.rs", text).len(), 0, "{text}");
    }
}

#[test]
fn a_lint_that_is_silenced_is_found() {
    for text in
        ["#[allow(dead_code)] fn f() {}", "#![allow(missing_docs)]", "#[cfg_attr(test, allow(unused))] fn f() {}"]
    {
        for path in ["crates/service/src/lib.rs", "crates/service/src/tests.rs", "tests/api.rs", "benches/verify.rs"] {
            assert_eq!(complaints(rules::silenced, path, text).len(), 1, "{text}");
        }
    }
    for text in ["#[expect(dead_code, reason = \"why\")] fn f() {}", "// #[allow(x)]", "fn allow(a: u8) { allow(a) }"] {
        assert_eq!(complaints(rules::silenced, "crates/service/src/lib.rs", text).len(), 0, "{text}");
    }
    assert_eq!(complaints(rules::silenced, "tests/api.rs", "#[test]\n#[ignore]\nfn f() {}").len(), 1);
}

#[test]
fn printing_outside_the_command_line_is_found() {
    for text in [
        "fn f() { println!(\"a\") }",
        "fn f() { eprint!(\"a\") }",
        "fn f() { std::print!(\"a\") }",
        "fn f() { dbg!(1); }",
    ] {
        assert_eq!(complaints(rules::printing, "crates/service/src/lib.rs", text).len(), 1, "{text}");
        assert_eq!(complaints(rules::printing, "src/cli/serve.rs", text).len(), 0, "{text}");
    }
    assert_eq!(complaints(rules::printing, "crates/web/src/lib.rs", "// println!\nfn print() {}").len(), 0);
}

#[test]
fn a_text_that_is_there_by_chance_is_found() {
    for text in ["assert!(!page.contains(\"4111\"))", "let a = b &&\n    !told.to_string().contains(\"9-32\");"] {
        assert_eq!(complaints(rules::chances, "tests/api/rules.rs", text).len(), 1, "{text}");
    }
    for text in ["assert!(page.contains(\"4111\"))", "!page.contains(\"4111 1111\")", "!page.contains(\"holder\")"] {
        assert_eq!(complaints(rules::chances, "tests/api/rules.rs", text).len(), 0, "{text}");
    }
}

#[test]
fn a_migration_without_its_twin_is_found() {
    let found = |names: &[&str]| migrations(&names.iter().map(|it| file(it, ";")).collect::<Vec<_>>()).len();
    assert_eq!(found(&[]), 0);
    assert_eq!(found(&["migrations/sqlite/0001_core.sql", "migrations/postgres/0001_core.sql"]), 0);
    assert_eq!(found(&["migrations/sqlite/0001_core.sql"]), 1);
    assert_eq!(found(&["migrations/postgres/0001_core.sql"]), 1);
    assert_eq!(found(&["migrations/sqlite/0001_core.sql", "migrations/postgres/0001_cores.sql"]), 2);
    assert_eq!(found(&["migrations/sqlite/0002_core.sql", "migrations/postgres/0002_core.sql"]), 1);
    assert_eq!(found(&["migrations/sqlite/core.sql", "migrations/postgres/core.sql"]), 1);
    assert_eq!(found(&["migrations/mysql/0001_core.sql"]), 1);
}

#[test]
fn a_path_that_is_named_but_not_there_is_found() {
    let there = [
        "crates/domain/src/keys.rs",
        "crates/domain/src/json/parse.rs",
        "docs/protocol.md",
        "test",
        ".ci/run",
        "Cargo.toml",
    ];
    let found = |name: &str, text: &str| {
        let mut files: Vec<File> = there.iter().map(|it| file(it, "")).collect();
        files.push(file(name, text));
        named_paths(&files).len()
    };
    for text in [
        "See `crates/domain/src/keyz.rs`.",
        "See `crates/domain/src/{keys,missing}.rs`.",
        "See [the protocol](docs/protokol.md).",
        "Run `./tests`.",
        "Run `.ci/runs`.",
        "Read `SECURITY.md`.",
        "In `crates/store/src/`.",
        "See [it](protocol.md#digest).",
    ] {
        assert_eq!(found("README.md", text), 1, "{text}");
        assert_eq!(found("ARCHITECTURE.md", text), 1, "{text}");
    }
    for text in [
        "See `crates/domain/src/keys.rs` and `crates/domain/src/`, `crates/domain/src/{keys,json/parse}.rs`, `crates/domain/src/*.rs`.",
        "See [the protocol](docs/protocol.md#digest), [a site](https://example.org/a.md), [here](#here).",
        "Run `./test` and `.ci/run`; `POST /v1/threads`, `application/json`, `./countersign-data`, `a/b`.",
        "```\ncat src/nothing.rs\n```",
    ] {
        assert_eq!(found("README.md", text), 0, "{text}");
    }
    assert_eq!(found("docs/security.md", "See [it](protocol.md#digest), [up](../Cargo.toml)."), 0);
    assert_eq!(found("docs/security.md", "See [it](docs/protocol.md)."), 1);
}

#[test]
fn the_lexer_tells_code_from_texts_and_comments() {
    let text = concat!(
        "let a = \"x // \\\" y\"; // c \"not a text\"\n",
        "let b = r##\"raw \"# text\"##; /* one /* two */ still */ let c = b\"bytes\"; let d = br#\"r\"#;\n",
        "fn f<'a>(it: &'a str) -> char { '\"' } let e = '\\''; let g = 'x';\n",
    );
    let source = RustSource::read(text);
    let texts: Vec<_> = source.texts.iter().map(|(line, it)| (*line, it.as_str())).collect();
    assert_eq!(texts, [(1, "x // \\\" y"), (2, "raw \"# text"), (2, "bytes"), (2, "r")]);
    assert_eq!(source.code.len(), text.len());
    for gone in ["not a text", "still", "one", "raw", "bytes"] {
        assert!(!source.code.contains(gone), "{gone}: {}", source.code);
    }
    assert!(source.code.contains("let g = ' ';") && source.code.contains("fn f<'a>(it: &'a str)"));
    assert_eq!(source.functions(), [("f".to_owned(), 3, 1)]);
}

#[test]
fn every_module_has_its_allowed_imports() {
    let planned: BTreeSet<&str> = rules::MODULES.iter().map(|it| it.0).collect();
    for (module, below) in rules::MODULES {
        assert!(below.iter().all(|it| rules::CRATES.contains(&rules::layer(it)) || planned.contains(it)), "{module}");
    }
    // Dependencies have one direction: a lower module must not use a higher one.
    let reaches =
        |from: &str, to: &str| rules::MODULES.iter().any(|(module, below)| *module == from && below.contains(&to));
    for (from, below) in rules::MODULES {
        assert!(below.iter().all(|to| !reaches(to, from)), "{from}");
    }
}

#[test]
fn imports_in_a_circle_are_found() {
    let codebase = |texts: &[(&str, &str)]| {
        circles::circles(&texts.iter().map(|(path, text)| file(path, text)).collect::<Vec<_>>())
    };
    let down = ("crates/domain/src/writes/write.rs", "use crate::threads::thread::Thread;");
    for up in [
        "use crate::writes::write::Write;",
        "use crate::{id::Jti, writes::{write::{Write, Reserve}}};",
        "type W = crate::writes::write::Write;",
    ] {
        let found = codebase(&[down, ("crates/domain/src/threads/thread.rs", up)]);
        assert_eq!(found.len(), 1, "{up}: {found:?}");
        assert!(found[0].starts_with("threads::thread -> writes::write -> threads::thread"), "{found:?}");
    }
    let around = [("src/a.rs", "use crate::b::B;"), ("src/b.rs", "use crate::c::C;"), ("src/c.rs", "use crate::a::A;")];
    assert_eq!(codebase(&around).len(), 1);
    assert!(codebase(&around[..2]).is_empty());
    // Imports of tests and mentions in comments are not imports.
    for other in
        ["#[cfg(test)]\nuse crate::writes::write::Write;", "//! See crate::writes::write::Write.", "pub struct Thread;"]
    {
        assert!(codebase(&[down, ("crates/domain/src/threads/thread.rs", other)]).is_empty(), "{other}");
    }
    assert_eq!(codebase(&[("src/a.rs", "mod b; use self::b::B;"), ("src/a/b.rs", "use super::A;")]).len(), 1);
    assert!(codebase(&[("src/a.rs", "mod b;"), ("src/a/b.rs", "use super::A;")]).is_empty());
}

#[test]
fn capability_that_uses_one_above_it_is_found() {
    let above = |text: &str| capabilities::upward_imports(&[file("crates/service/src/proposals/hold.rs", text)]).len();
    for up in [
        "use crate::reviews::Reviews;",
        "use super::super::reviews::vote::VoteOutcome;",
        "fn f(log: &crate::log::Log) {}",
    ] {
        assert_eq!(above(up), 1, "{up}");
    }
    for down in ["use crate::threads::Threads;", "use super::Proposals;", "use crate::error::Error;"] {
        assert_eq!(above(down), 0, "{down}");
    }
}

#[test]
fn walkthrough_that_names_a_function_that_is_gone_is_found() {
    let files = [file("src/a.rs", "pub fn propose() {}\npub struct Vote;\n")];
    for there in
        ["`propose` in `src/a.rs`", "`Service::propose` (`src/a.rs`)", "`Vote` (`src/a.rs`)", "`gone` and `src/a.rs`"]
    {
        assert!(walkthroughs::stale_names(&format!("1. {there}."), &files).is_empty(), "{there}");
    }
    for gone in ["`pro` in `src/a.rs`", "`Service::commit` (`src/a.rs`)", "`propose` in `src/b.rs`"] {
        assert_eq!(walkthroughs::stale_names(&format!("1. {gone}."), &files).len(), 1, "{gone}");
    }
}
