//! Passages and sentences: the shape that every reader gives its text, and the place where a sentence begins.

use std::sync::LazyLock;

use regex::Regex;

use crate::rules::{self, BrokenRule, WORDS_MAX};

/// Replaces code, an interpolated value or an address. It counts as one word.
pub const CODE: &str = "X";

/// The source of a text. Each kind has its own target.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum SourceKind {
    Readme,
    Docs,
    Templates,
    Errors,
    CliHelp,
    Openapi,
    OtherPages,
    DocComments,
    Comments,
    Strings,
    Clients,
}

impl SourceKind {
    pub const ALL: [Self; 11] = [
        Self::Readme,
        Self::Docs,
        Self::Templates,
        Self::Errors,
        Self::CliHelp,
        Self::Openapi,
        Self::OtherPages,
        Self::DocComments,
        Self::Comments,
        Self::Strings,
        Self::Clients,
    ];

    /// The kind's table in `allowed.toml`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Readme => "readme",
            Self::Docs => "docs",
            Self::Templates => "templates",
            Self::Errors => "errors",
            Self::CliHelp => "cli-help",
            Self::Openapi => "openapi",
            Self::OtherPages => "other-pages",
            Self::DocComments => "doc-comments",
            Self::Comments => "comments",
            Self::Strings => "strings",
            Self::Clients => "clients",
        }
    }

    /// The share of sentences, in percent, that may break a rule in the end.
    pub const fn target_percent(self) -> usize {
        match self {
            Self::Readme | Self::Docs | Self::Templates | Self::Errors | Self::CliHelp | Self::Openapi => 0,
            Self::OtherPages | Self::DocComments | Self::Comments | Self::Strings | Self::Clients => 2,
        }
    }
}

/// A paragraph, a list item, a cell, a comment or a string, with its line breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passage {
    pub kind: SourceKind,
    /// The file, or another address of the text.
    pub path: String,
    /// The line where the text begins. 0 if the address has no lines.
    pub line: usize,
    pub text: String,
}

/// A sentence that breaks at least one rule.
#[derive(Debug)]
pub struct ProseFinding {
    pub kind: SourceKind,
    pub area: String,
    pub path: String,
    pub line: usize,
    pub sentence: String,
    pub broken: Vec<BrokenRule>,
}

impl std::fmt::Display for ProseFinding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.path, self.sentence)?,
            line => write!(f, "{}:{line}: {}", self.path, self.sentence)?,
        }
        self.broken.iter().try_for_each(|it| write!(f, "\n    {}; instead: {}", it.rule, it.instead))
    }
}

/// Splits a passage into sentences, each with its line.
pub fn sentences(passage: &Passage) -> Vec<(usize, String)> {
    /// A mark that ends a sentence, quotes and brackets that close after it, and a space.
    static END: LazyLock<Regex> = LazyLock::new(|| Regex::new("[.!?:][\"')\\]*_\u{201d}]*\\s+").unwrap());
    static ABBREVIATION: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"(?i)\b(e\.g|i\.e|vs|cf|no|fig)\.\s+$").unwrap());
    let text = &passage.text;
    let (mut found, mut from) = (Vec::new(), 0);
    let ends = END.find_iter(text).map(|it| it.end()).filter(|end| {
        let opens = |it: char| it.is_uppercase() || "\"'([*_\u{201c}".contains(it) || it.is_ascii_digit();
        text[*end..].starts_with(opens) && !ABBREVIATION.is_match(&text[..*end])
    });
    for end in ends.chain([text.len()]) {
        let piece = &text[from..end];
        let begins = from + (piece.len() - piece.trim_start().len());
        let sentence = piece.split_whitespace().collect::<Vec<_>>().join(" ");
        let sentence = sentence.trim_matches(['*', '_']).to_owned();
        if sentence.contains(char::is_alphabetic) {
            let breaks = text[..begins].matches('\n').count();
            found.push((if passage.line == 0 { 0 } else { passage.line + breaks }, sentence));
        }
        from = end;
    }
    found
}

/// Returns how many sentences a passage has, and those that break a rule.
pub fn check(passage: &Passage, area: &str) -> (usize, Vec<ProseFinding>) {
    // A specification may need a long sentence for an exact condition.
    let limit = (!passage.path.starts_with("docs/specs/")).then_some(WORDS_MAX);
    let all = sentences(passage);
    let count = all.len();
    let finding = |(line, sentence): (usize, String)| {
        let broken = rules::broken(&sentence, limit);
        let (kind, path) = (passage.kind, passage.path.clone());
        (!broken.is_empty()).then(|| ProseFinding { kind, area: area.to_owned(), path, line, sentence, broken })
    };
    (count, all.into_iter().filter_map(finding).collect())
}

/// The folder, and for a page at the root the file, that the ratchet counts by. A file that moves inside it changes nothing.
pub fn area(path: &str) -> String {
    let parts: Vec<&str> = path.split(['/', ' ']).collect();
    match parts.as_slice() {
        ["src" | "crates" | "clients" | "examples", second, ..] => {
            format!("{}/{}", parts[0], second.trim_end_matches(".rs"))
        }
        ["docs", second @ ("specs" | "openapi.json"), ..] => format!("docs/{second}"),
        [first, ..] => (*first).to_owned(),
        [] => String::new(),
    }
}
