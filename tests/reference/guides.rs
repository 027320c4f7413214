//! The commands and configurations in the guides for operators: clap and the configuration accept each of them.

use std::ffi::OsString;
use std::fs;
use std::path::Path;

use countersign::cli::args::Args;
use countersign::config::{Config, ConfigCode, Flags};

const PAGES: [&str; 6] = ["accounts", "audit", "backup", "deploy", "keys", "operate"];

fn page(name: &str) -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("docs/guides/{name}.md"));
    fs::read_to_string(&file).unwrap()
}

/// The fenced blocks of a page, each with its language, and the text outside them.
fn parts(page: &str) -> (Vec<(&str, &str)>, String) {
    let pieces: Vec<&str> = page.split("```").collect();
    let blocks = pieces.iter().skip(1).step_by(2).map(|it| it.split_once('\n').unwrap()).collect();
    (blocks, pieces.iter().step_by(2).copied().collect())
}

/// The words of a command line, up to a pipe or a redirection.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote = None;
    for character in line.chars() {
        match (character, quote) {
            ('|' | '>', None) => break,
            ('"' | '\'', None) => quote = Some(character),
            (it, Some(open)) if it == open => quote = None,
            (it, None) if it.is_whitespace() => words.push(String::new()),
            (it, _) => words.last_mut().unwrap().push(it),
        }
    }
    // A bracket marks what may be left out.
    words.iter().map(|it| it.trim_matches(['[', ']']).to_owned()).filter(|it| !it.is_empty()).collect()
}

/// The calls of the program in a page: lines of its blocks without a language, and code in its text.
fn calls(page: &str) -> Vec<String> {
    let (blocks, text) = parts(page);
    let blocks = blocks.into_iter().filter(|(language, _)| language.trim().is_empty());
    let lines: Vec<String> =
        blocks.flat_map(|(_, it)| it.replace("\\\n", " ").lines().map(str::to_owned).collect::<Vec<_>>()).collect();
    let text = text.replace('\n', " ");
    let inline = text.split('`').skip(1).step_by(2).filter(|it| it.starts_with("countersign ")).map(str::to_owned);
    let starts = ["countersign ", "| countersign ", "exec gate countersign "];
    let of_line = |line: &String| {
        let line = line.trim();
        let at =
            starts.iter().filter_map(|it| line.find(it).filter(|at| *at == 0 || !it.starts_with("countersign"))).next();
        at.map(|at| line[at..].split_once("countersign ").unwrap().1.to_owned())
    };
    let inline = inline.map(|it| it.split_once(' ').unwrap().1.to_owned());
    lines.iter().filter_map(of_line).chain(inline).collect()
}

#[test]
fn every_command_in_the_guides_is_accepted() {
    let mut count = 0;
    for name in PAGES {
        for call in calls(&page(name)) {
            let line = std::iter::once("countersign".to_owned()).chain(words(&call)).map(OsString::from);
            let read = Args::read(line);
            assert!(read.is_ok(), "{name}.md: countersign {call}: {}", read.unwrap_err());
            count += 1;
        }
    }
    assert!(count > 50, "{count}");
}

#[test]
fn every_configuration_in_the_guides_is_accepted() {
    let mut count = 0;
    for name in PAGES {
        let page = page(name);
        for (_, text) in parts(&page).0.into_iter().filter(|(language, _)| *language == "toml") {
            let folder = tempfile::tempdir().unwrap();
            let file = folder.path().join("countersign.toml");
            fs::write(&file, text).unwrap();
            let flags = Flags { config: Some(file), ..Flags::default() };
            // A secret that a page names is not on this host.
            let refused = Config::load(&flags, []).err().filter(|it| it.code != ConfigCode::Unreadable);
            assert!(refused.is_none(), "{name}.md: {refused:?}\n{text}");
            count += 1;
        }
    }
    assert!(count > 2, "{count}");
}
