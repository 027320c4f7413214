//! The clients: docstrings of Python and comments of SQL.

use std::sync::LazyLock;

use regex::Regex;

use crate::markdown;
use crate::text::CODE;

/// Returns the docstrings with the line, from 1, where each passage begins.
pub fn docstrings(text: &str) -> Vec<(usize, String)> {
    static DOCSTRING: LazyLock<Regex> = LazyLock::new(|| Regex::new(r#"(?ms)^\s*[rR]?"""(.*?)""""#).unwrap());
    static DOCTEST: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"(?m)^\s*(>>>|\.\.\.) .*$").unwrap());
    let mut found = Vec::new();
    for docstring in DOCSTRING.captures_iter(text) {
        let inside = docstring.get(1).unwrap();
        let before = text[..inside.start()].matches('\n').count();
        let block = DOCTEST.replace_all(inside.as_str(), "");
        found.extend(markdown::passages(&block).into_iter().map(|(line, text)| (before + line, text)));
    }
    found
}

/// Returns the comments that begin with two dashes, with the line where each passage begins.
pub fn sql_comments(text: &str) -> Vec<(usize, String)> {
    let mut block = String::new();
    for line in text.lines() {
        // An indented line of a comment is a command.
        match line.trim_start().strip_prefix("-- ").or_else(|| line.trim_start().strip_prefix("--")) {
            Some(comment) if comment.starts_with("    ") => (),
            Some(comment) => block.push_str(comment),
            None => (),
        }
        block.push('\n');
    }
    markdown::passages(&block).into_iter().map(|(line, text)| (line, text.replace("''", CODE))).collect()
}
