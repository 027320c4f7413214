//! The lint for prose and names: everything that people read, held against the rules of STYLE.md.
//!
//! `SHOW=docs/guides cargo test --test prose` prints every finding in files whose path starts with `docs/guides`.
//! `SHOW=openapi` prints every finding of that kind.
#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

#[path = "prose/clients.rs"]
mod clients;
#[path = "prose/described.rs"]
mod described;
#[path = "prose/html.rs"]
mod html;
#[path = "prose/markdown.rs"]
mod markdown;
#[path = "prose/names.rs"]
mod names;
#[path = "prose/ratchet.rs"]
mod ratchet;
#[path = "prose/rules.rs"]
mod rules;
#[path = "prose/rust.rs"]
mod rust;
#[path = "prose/samples.rs"]
mod samples;
#[path = "tidy/source.rs"]
#[expect(dead_code, reason = "the lint for the layers uses the rest")]
mod source;
#[path = "prose/terms.rs"]
mod terms;
#[path = "prose/text.rs"]
mod text;

use std::collections::BTreeMap;
use std::env::var_os;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::{fs, io};

use clap::CommandFactory as _;
use countersign::cli::args::Args;

use names::DeclaredTypes;
use ratchet::{AllowedCounts, CountChange, NAMES, TextMoved};
use text::{Passage, ProseFinding, SourceKind};

/// Folders that are not the project's text.
const NOT_OURS: [&str; 7] =
    ["target", "node_modules", "countersign-data", "__pycache__", "vectors", "seeds", "screens"];

/// A failure prints so many findings for each area that rose. `SHOW` prints all.
const SHOWN_MAX: usize = 40;

/// The texts and type names of the repository.
#[derive(Default)]
struct Repository {
    passages: Vec<Passage>,
    types: DeclaredTypes,
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn files() -> Vec<(String, PathBuf)> {
    let (mut files, mut folders) = (Vec::new(), vec![root().to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            let (name, kind) = (entry.file_name().into_string().unwrap(), entry.file_type().unwrap());
            let ours = !NOT_OURS.contains(&name.as_str()) && (!name.starts_with('.') || name == ".github");
            if kind.is_dir() && ours {
                folders.push(entry.path());
            } else if kind.is_file() && ours {
                let path = entry.path();
                files.push((path.strip_prefix(root()).unwrap().to_str().unwrap().to_owned(), path));
            }
        }
    }
    files.sort();
    files
}

/// Sends a file to the readers for its type.
fn read_file(path: &str, text: &str, read: &mut Repository) {
    let passage = |kind: SourceKind| {
        let path = path.to_owned();
        move |(line, text): (usize, String)| Passage { kind, path: path.clone(), line, text }
    };
    match path.rsplit_once('.').map(|it| it.1) {
        Some("md") => read.passages.extend(markdown::passages(text).into_iter().map(passage(kind_of_page(path)))),
        Some("html") if path.starts_with("templates/") => {
            read.passages.extend(html::passages(text).into_iter().map(passage(SourceKind::Templates)));
        }
        Some("rs") => {
            read.passages.extend(rust::comments(path, text));
            names::declared(path, text, &mut read.types);
            if (path.starts_with("src/") || path.starts_with("crates/")) && !is_test(path) {
                read.passages.extend(rust::strings(path, text));
            }
        }
        Some("py") if path.starts_with("clients/") => {
            read.passages.extend(clients::docstrings(text).into_iter().map(passage(SourceKind::Clients)));
        }
        Some("sql") if path.starts_with("clients/") => {
            read.passages.extend(clients::sql_comments(text).into_iter().map(passage(SourceKind::Clients)));
        }
        _ => (),
    }
}

fn is_test(path: &str) -> bool {
    path.ends_with("/tests.rs") || path.ends_with("_tests.rs") || path.contains("/tests/")
}

fn kind_of_page(path: &str) -> SourceKind {
    match path {
        "README.md" => SourceKind::Readme,
        _ if path.starts_with("docs/specs/") => SourceKind::OtherPages,
        _ if path.starts_with("docs/") => SourceKind::Docs,
        _ if path.starts_with("clients/") => SourceKind::Clients,
        _ => SourceKind::OtherPages,
    }
}

fn repository() -> Repository {
    let mut read = Repository::default();
    for (path, file) in files() {
        // A file that is not UTF-8 has no text.
        if let Ok(text) = fs::read_to_string(file) {
            read_file(&path, &text, &mut read);
        }
    }
    let passage = |kind: SourceKind| move |(path, text): (String, String)| Passage { kind, path, line: 0, text };
    let help = described::help(&Args::command(), "countersign");
    read.passages.extend(described::passages(help).map(passage(SourceKind::CliHelp)));
    let document = fs::read_to_string(root().join("docs/openapi.json")).unwrap();
    let texts = described::descriptions(&serde_json::from_str(&document).unwrap(), "docs/openapi.json ");
    read.passages.extend(described::passages(texts).map(passage(SourceKind::Openapi)));
    read
}

/// Returns the findings, and the number of sentences of each kind.
fn findings(passages: &[Passage]) -> (Vec<ProseFinding>, BTreeMap<SourceKind, usize>) {
    let (mut all, mut sentences) = (Vec::new(), BTreeMap::new());
    for passage in passages {
        let (count, found) = text::check(passage, &text::area(&passage.path));
        *sentences.entry(passage.kind).or_default() += count;
        all.extend(found);
    }
    (all, sentences)
}

fn counts(findings: &[ProseFinding], types: &DeclaredTypes) -> AllowedCounts {
    let mut counts = AllowedCounts::default();
    for it in findings {
        counts.add(it.kind.name(), &it.area, 1);
    }
    counts.add(NAMES, "shared", names::shared(types).len());
    counts.add(NAMES, "forbidden", names::forbidden(types).len());
    counts
}

/// Returns a table of the present figures and the targets.
fn figures(counts: &AllowedCounts, sentences: &BTreeMap<SourceKind, usize>) -> String {
    let mut text = format!("\n{:<13}{:>9}{:>10}{:>9}  target\n", "kind", "findings", "sentences", "percent");
    for kind in SourceKind::ALL {
        let (found, all) = (counts.total(kind.name()), sentences.get(&kind).copied().unwrap_or_default());
        let tenths = if all == 0 { 0 } else { (1000 * found).div_ceil(all) };
        let target = match kind.target_percent() {
            0 => "0 findings".to_owned(),
            percent => format!("below {percent} %"),
        };
        let percent = format!("{}.{} %", tenths / 10, tenths % 10);
        writeln!(text, "{:<13}{found:>9}{all:>10}{percent:>9}  {target}", kind.name()).unwrap();
    }
    let (shared, forbidden) = (counts.get(NAMES, "shared"), counts.get(NAMES, "forbidden"));
    writeln!(text, "type names: {shared} shared, at most {}; {forbidden} forbidden, 0", names::SHARED_TARGET).unwrap();
    text
}

/// Returns the message for an area that has more findings than the committed count.
fn explained(change: &CountChange, findings: &[ProseFinding], types: &DeclaredTypes) -> String {
    let CountChange { kind, area, allowed, found } = change;
    let mut text = format!("\n{kind}, {area}: {found} found, {allowed} allowed. The rules are in STYLE.md.\n");
    if kind == NAMES {
        match area.as_str() {
            "forbidden" => names::forbidden(types).iter().for_each(|it| writeln!(text, "{}: {}", it.1, it.0).unwrap()),
            _ => text.push_str("Give a new type a name that no other type has. SHOW=names prints all.\n"),
        }
        return text;
    }
    let here = findings.iter().filter(|it| it.kind.name() == kind && &it.area == area);
    for it in here.take(SHOWN_MAX) {
        writeln!(text, "{it}").unwrap();
    }
    if *found > SHOWN_MAX {
        writeln!(text, "... SHOW={kind} prints all.").unwrap();
    }
    text
}

/// Returns the findings that `SHOW` selects: by a kind, by the start of a path, or `names`.
fn shown(what: &str, findings: &[ProseFinding], types: &DeclaredTypes) -> String {
    let mut text = String::new();
    if what == NAMES {
        names::shared(types).iter().for_each(|it| writeln!(text, "{}: {}", it.0, it.1.join(" ")).unwrap());
    }
    let asked = findings.iter().filter(|it| it.path.starts_with(what) || it.kind.name() == what);
    asked.for_each(|it| writeln!(text, "{it}").unwrap());
    text
}

#[test]
fn prose_and_names_follow_the_style_guide() {
    let read = repository();
    let (findings, sentences) = findings(&read.passages);
    let found = counts(&findings, &read.types);
    let show = std::env::var("SHOW").map(|it| shown(&it, &findings, &read.types)).unwrap_or_default();
    // Not `eprintln!`: the test harness captures it when the test passes.
    write!(io::stderr(), "{show}{}", figures(&found, &sentences)).unwrap();

    let file = root().join("tests/prose/allowed.toml");
    let committed = fs::read_to_string(&file).ok();
    // Without the file, `RENEW=1` starts from the present counts.
    let allowed = committed.as_deref().map_or_else(|| found.clone(), |it| AllowedCounts::parse(it).unwrap());
    let allowed = if var_os("RENEW").is_some() {
        let moved = if var_os("MOVED").is_some() { TextMoved::Yes } else { TextMoved::No };
        let new = ratchet::renewed(&allowed, &found, moved);
        fs::write(&file, new.text()).unwrap();
        new
    } else {
        assert!(committed.is_some(), "tests/prose/allowed.toml is missing: RENEW=1 cargo test --test prose");
        allowed
    };
    let changes = ratchet::changes(&allowed, &found);
    let rose: String =
        changes.iter().filter(|it| it.found > it.allowed).map(|it| explained(it, &findings, &read.types)).collect();
    assert!(rose.is_empty(), "{rose}");
    let fell: Vec<String> =
        changes.iter().map(|it| format!("{}, {}: {} of {}", it.kind, it.area, it.found, it.allowed)).collect();
    assert!(fell.is_empty(), "less than allowed, well done: RENEW=1 cargo test --test prose\n{}", fell.join("\n"));
}
