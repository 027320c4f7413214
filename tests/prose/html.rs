//! The visible text of a template: what is between tags, and the attributes that a person reads or hears.

use std::sync::LazyLock;

use regex::Regex;

use crate::text::CODE;

/// Returns the passages with the line, from 1, where each begins.
///
/// Control statements of the template end a passage: a test cannot know which branch a page takes.
pub fn passages(text: &str) -> Vec<(usize, String)> {
    static NO_TEXT: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"(?s)\{#.*?#\}|<!--.*?-->|<script\b.*?</script>|<style\b.*?</style>|<svg\b.*?</svg>").unwrap()
    });
    static CONTROL: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"(?s)\{%.*?%\}").unwrap());
    static VALUE: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"(?s)\{\{.*?\}\}|<code\b[^>]*>.*?</code>|<kbd\b.*?</kbd>").unwrap());
    static READ: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r#"(?s)\s(?:aria-label|aria-description|alt|title|placeholder|label|content)="([^"]*)""#).unwrap()
    });
    static INLINE: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"(?s)</?(a|abbr|b|bdi|em|i|small|span|strong|time|u|wbr)(\s[^>]*)?>").unwrap());
    static TAG: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"(?s)<[^>]*>").unwrap());

    let text = blank(&NO_TEXT, text, "\u{1}");
    let text = blank(&CONTROL, &text, "\u{1}");
    let text = blank(&VALUE, &text, CODE);
    let line = |at: usize| 1 + text[..at].matches('\n').count();
    let mut found: Vec<(usize, String)> = READ
        .captures_iter(&text)
        .filter_map(|it| it.get(1))
        .map(|it| (line(it.start()), it.as_str().to_owned()))
        .collect();
    let shown = blank(&TAG, &blank(&INLINE, &text, ""), "\u{1}");
    let mut at = 1;
    for piece in shown.split('\u{1}') {
        let leading = piece.len() - piece.trim_start().len();
        found.push((at + piece[..leading].matches('\n').count(), piece.trim().to_owned()));
        at += piece.matches('\n').count();
    }
    let entities = |it: String| it.replace("&nbsp;", " ").replace("&amp;", "&").replace("&hellip;", "\u{2026}");
    let found = found.into_iter().map(|(line, text)| (line, entities(text).replace('\u{1}', " ")));
    found.filter(|it| it.1.contains(char::is_alphabetic)).collect()
}

/// Replaces what matches, and keeps its line breaks.
fn blank(pattern: &Regex, text: &str, with: &str) -> String {
    let new = |found: &regex::Captures<'_>| format!("{with}{}", "\n".repeat(found[0].matches('\n').count()));
    pattern.replace_all(text, new).into_owned()
}
