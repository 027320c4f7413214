//! Rust files: doc comments, other comments, the texts of errors, and every other string of several words.

use std::sync::LazyLock;

use regex::Regex;

use crate::markdown;
use crate::source::RustSource;
use crate::text::{CODE, Passage, SourceKind};

/// A shorter string is a label, a key or a part of a sentence.
const STRING_WORDS_MIN: usize = 4;

/// Functions whose strings are the text of an error.
const ERROR_FUNCTIONS: [&str; 6] = ["detail", "detail_of", "texts", "next_step", "hint", "problem"];

/// Files that contain only errors.
const ERROR_FILES: [&str; 5] = ["/error.rs", "/errors.rs", "/problem.rs", "/denial.rs", "/rejection_body.rs"];

/// Reads the comments of a file.
pub fn comments(path: &str, text: &str) -> Vec<Passage> {
    static MARK: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"^\s*(///|//!|//)( |$)").unwrap());
    let (mut found, mut open) = (Vec::new(), None::<(SourceKind, usize, String)>);
    for (at, line) in text.lines().enumerate().chain([(usize::MAX, "")]) {
        let mark = MARK.captures(line);
        let kind = mark.as_ref().map(|it| if &it[1] == "//" { SourceKind::Comments } else { SourceKind::DocComments });
        if let Some((kind, first, block)) = open.take_if(|it| Some(it.0) != kind) {
            let passages = markdown::passages(&block).into_iter();
            found.extend(passages.map(|(line, text)| Passage {
                kind,
                path: path.to_owned(),
                line: first + line,
                text,
            }));
        }
        let Some((mark, kind)) = mark.zip(kind) else { continue };
        let (_, _, block) = open.get_or_insert_with(|| (kind, at, String::new()));
        block.push_str(&line[mark[0].len()..]);
        block.push('\n');
    }
    found
}

/// Reads the strings of a file that is no test.
pub fn strings(path: &str, text: &str) -> Vec<Passage> {
    let source = RustSource::read(text);
    let spans = error_spans(&source);
    let all_errors = ERROR_FILES.iter().any(|it| path.ends_with(it));
    let in_store = path.starts_with("crates/store");
    let mut found = Vec::new();
    for (line, text) in &source.texts {
        let error = all_errors || spans.iter().any(|it| it.contains(line));
        let kind = if error { SourceKind::Errors } else { SourceKind::Strings };
        let text = plain(text);
        let words =
            text.split_whitespace().filter(|it| it.chars().all(|it| it.is_alphabetic() || ",.;:'()".contains(it)));
        // The store's strings are SQL.
        if words.count() >= STRING_WORDS_MIN && (error || !in_store) && !looks_like_code(&text) {
            found.push(Passage { kind, path: path.to_owned(), line: *line, text });
        }
    }
    found
}

fn looks_like_code(text: &str) -> bool {
    const STARTS: [&str; 8] = ["<", "{", "[", "SELECT ", "INSERT ", "UPDATE ", "CREATE ", "DELETE "];
    STARTS.iter().any(|it| text.starts_with(it))
}

/// The lines whose strings are errors: `#[error("…")]` attributes, and the functions that return the text of an error.
fn error_spans(source: &RustSource) -> Vec<std::ops::RangeInclusive<usize>> {
    let functions = source.functions().into_iter().filter(|it| ERROR_FUNCTIONS.contains(&it.0.as_str()));
    let mut spans: Vec<_> = functions.map(|(_, line, lines)| line..=line + lines).collect();
    let code = &source.code;
    for (at, _) in code.match_indices("#[error(") {
        let mut depth = 0_usize;
        let inside = code[at + 1..].chars().take_while(|it| {
            match it {
                '[' => depth += 1,
                ']' => depth -= 1,
                _ => (),
            }
            depth > 0
        });
        let line = 1 + code[..at].matches('\n').count();
        spans.push(line..=line + inside.filter(|it| *it == '\n').count());
    }
    spans
}

/// A string as it is shown: without escapes, and a word in place of each value.
fn plain(text: &str) -> String {
    static CONTINUED: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\\\n\s*").unwrap());
    static VALUE: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\{[^{}]*\}").unwrap());
    let text = CONTINUED.replace_all(text, "\n");
    let text = text.replace("\\n", "\n").replace("\\\"", "\"").replace("\\u{2019}", "'");
    markdown::plain(&VALUE.replace_all(&text, CODE))
}
