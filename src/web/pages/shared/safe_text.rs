//! Texts from outside, as types that can only be printed inert.
//!
//! A page's script reads values back from what is visible, so each form is reversible: a
//! [`SafeJson`]'s visible text is itself JSON; in a [`SafeLine`] or [`SafeText`] an escape is an element of
//! its own, which no text can imitate.

use std::fmt;

use askama::filters::HtmlSafe;

use crate::domain::primitives::confusable::KnownTexts;
use crate::domain::primitives::sanitize;
use crate::domain::primitives::sanitize::{TextSegment, TextWarning};

/// Characters of a value that are shown before the rest is folded: four lines on a phone.
const VALUE_CHARS_SHOWN: usize = 160;

/// Characters of a rationale or comment that are shown before the rest is folded.
const PROSE_CHARS_SHOWN: usize = 600;

/// Characters of a value that fit into a sentence.
const SENTENCE_CHARS_MAX: usize = 48;

/// One line somebody else wrote: a name, a key, a title.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct SafeLine(String);

/// Text somebody else wrote, with its line breaks: a rationale, a comment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SafeText(String);

/// A JSON value in its canonical text, and how it differs from the texts that are known where it stands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SafeJson(String, Option<TextWarning>);

/// A place in the state, given as a JSON Pointer, shown as policies write it (`payment.amount`)
/// where that says the same.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct SafePath(String);

/// How the root is called, which has no name of its own.
const ROOT_WORDS: &str = "(the whole state)";

impl SafeLine {
    /// A line, whatever it contains.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// For places that hold text alone, such as a page's title and attributes.
    pub fn plain(&self) -> String {
        let mut plain = String::new();
        for segment in sanitize::inert_line(&self.0) {
            match segment {
                TextSegment::Text(text) => plain.push_str(text),
                TextSegment::Escape(it) => plain.push_str(&format!("[U+{:04X}]", u32::from(it))),
            }
        }
        plain
    }

    /// Whether it is of plain letters, digits and signs only.
    pub fn is_ascii(&self) -> bool {
        self.0.is_ascii()
    }

    /// What a reader should be told about it.
    pub fn warnings(&self) -> Vec<TextWarning> {
        sanitize::warnings(&self.0)
    }
}

impl SafeText {
    /// A text, whatever it contains.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// What a reader should be told about it.
    pub fn warnings(&self) -> Vec<TextWarning> {
        sanitize::warnings(&self.0)
    }

    /// What a form sends again, unchanged. Escaped for HTML like any other text, but not inert.
    pub fn raw(&self) -> &str {
        &self.0
    }
}

impl SafeJson {
    /// A value's canonical text.
    pub fn new(canonical: impl Into<String>) -> Self {
        Self(canonical.into(), None)
    }

    /// The text that it is, if it is one.
    pub fn text(&self) -> Option<String> {
        serde_json::from_str(&self.0).ok()
    }

    /// Marks it where it looks like a known text and is another, or is written in another script than those.
    pub fn compare(&mut self, known: &KnownTexts) {
        if let (None, Some(text)) = (&self.1, self.text()) {
            self.1 = sanitize::warnings_beside(&text, known);
        }
    }

    /// Whether it fits into a sentence.
    pub fn is_short(&self) -> bool {
        self.0.chars().count() <= SENTENCE_CHARS_MAX
    }

    /// How many characters it has.
    pub fn chars(&self) -> String {
        thousands(self.0.chars().count())
    }

    /// What a reader should be told about it.
    pub fn warnings(&self) -> Vec<TextWarning> {
        // `\n` before a Cyrillic word does not make that word a mixed one.
        let plain = split_escapes(&self.0).filter(|it| !it.starts_with('\\')).collect::<Vec<_>>().join(" ");
        sanitize::warnings(&plain).into_iter().chain(self.1.clone()).collect()
    }
}

impl SafePath {
    /// The place that a JSON Pointer names.
    pub fn new(pointer: impl Into<String>) -> Self {
        Self(pointer.into())
    }

    pub fn pointer(&self) -> &str {
        &self.0
    }

    /// What a form calls it: the pointer, or that as JSON where something in it cannot be seen, and a browser might
    /// change it.
    pub fn sent(&self) -> String {
        let plain = !sanitize::inert_line(&self.0).iter().any(|it| matches!(it, TextSegment::Escape(_)));
        if plain { self.0.clone() } else { sanitize::json(&serde_json::Value::from(self.0.as_str()).to_string()) }
    }

    /// Dotted where every key is a plain word, so that it reads back to the same pointer.
    fn shown(&self) -> String {
        let plain =
            |key: &str| !key.is_empty() && key.chars().all(|it| it.is_ascii_alphanumeric() || "_-".contains(it));
        match self.0.strip_prefix('/') {
            None => ROOT_WORDS.to_owned(),
            Some(keys) if keys.split('/').all(plain) => keys.replace('/', "."),
            Some(_) => self.0.clone(),
        }
    }

    /// For places that hold text alone.
    pub fn plain(&self) -> String {
        SafeLine(self.shown()).plain()
    }

    /// What a reader should be told about its keys.
    pub fn warnings(&self) -> Vec<TextWarning> {
        sanitize::warnings(&self.0)
    }
}

/// A canonical text's escape sequences, and what stands between them.
fn split_escapes(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let at = match rest.find('\\') {
            None => rest.len(),
            Some(0) if rest[1..].starts_with('u') => rest.len().min(6),
            Some(0) => rest.len().min(2),
            Some(at) => at,
        };
        let (piece, after) = rest.split_at(at);
        rest = after;
        (!piece.is_empty()).then_some(piece)
    })
}

fn thousands(count: usize) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn write_escaped(out: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    let mut plain_from = 0;
    for (at, byte) in text.bytes().enumerate() {
        let entity = match byte {
            b'&' => "&amp;",
            b'<' => "&lt;",
            b'>' => "&gt;",
            b'"' => "&#34;",
            b'\'' => "&#39;",
            _ => continue,
        };
        out.write_str(&text[plain_from..at])?;
        out.write_str(entity)?;
        plain_from = at + 1;
    }
    out.write_str(&text[plain_from..])
}

fn write_by_number(out: &mut fmt::Formatter<'_>, segments: &[TextSegment<'_>]) -> fmt::Result {
    segments.iter().try_for_each(|segment| match *segment {
        TextSegment::Text(text) => write_escaped(out, text),
        TextSegment::Escape(it) => {
            write!(out, "<span class=\"esc\" title=\"{}\">U+{:04X}</span>", sanitize::name(it), u32::from(it))
        }
    })
}

/// JSON shows what cannot be seen by JSON's own escape, so that what is visible still parses.
fn write_json(out: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    for piece in split_escapes(text) {
        match piece {
            "\\\"" | "\\\\" => write_escaped(out, piece)?,
            escape if escape.starts_with('\\') => write!(out, "<span class=\"esc\">{escape}</span>")?,
            plain => write_json_piece(out, plain)?,
        }
    }
    Ok(())
}

fn write_json_piece(out: &mut fmt::Formatter<'_>, plain: &str) -> fmt::Result {
    for segment in sanitize::inert_line(plain) {
        match segment {
            TextSegment::Text(text) => write_escaped(out, text)?,
            TextSegment::Escape(it) => {
                write!(out, "<span class=\"esc\" title=\"{}\">", sanitize::name(it))?;
                it.encode_utf16(&mut [0; 2]).iter().try_for_each(|unit| write!(out, "\\u{unit:04x}"))?;
                out.write_str("</span>")?;
            }
        }
    }
    Ok(())
}

/// Long texts show their beginning and open to the whole; the fold says how much there is.
fn write_folded(
    out: &mut fmt::Formatter<'_>,
    text: &str,
    chars_shown: usize,
    write: impl Fn(&mut fmt::Formatter<'_>, &str) -> fmt::Result,
) -> fmt::Result {
    let Some((cut, _)) = text.char_indices().nth(chars_shown) else {
        return write(out, text);
    };
    let chars = thousands(text.chars().count());
    out.write_str("<details class=\"fold\"><summary><span class=\"fold-head\">")?;
    write(out, &text[..cut])?;
    write!(out, "…</span><span class=\"fold-more\">Show all {chars} characters</span>")?;
    out.write_str("<span class=\"fold-less\">Show less</span></summary>")?;
    out.write_str("<div class=\"fold-all\" data-whole>")?;
    write(out, text)?;
    out.write_str("</div></details>")
}

impl fmt::Display for SafeLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_by_number(f, &sanitize::inert_line(&self.0))
    }
}

impl fmt::Display for SafeText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_folded(f, &self.0, PROSE_CHARS_SHOWN, |out, text| write_by_number(out, &sanitize::inert(text)))
    }
}

impl fmt::Display for SafeJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_folded(f, &self.0, VALUE_CHARS_SHOWN, write_json)
    }
}

impl fmt::Display for SafePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for segment in sanitize::inert_line(&self.shown()) {
            match segment {
                TextSegment::Text(text) => text.split_inclusive(['.', '/', '_']).try_for_each(|part| {
                    write_escaped(f, part)?;
                    // A long path breaks after a separator rather than inside a word.
                    if part.ends_with(['.', '/', '_']) { f.write_str("<wbr>") } else { Ok(()) }
                })?,
                escape => write_by_number(f, &[escape])?,
            }
        }
        Ok(())
    }
}

// What these print is escaped above: that is their purpose.
impl HtmlSafe for SafeLine {}
impl HtmlSafe for SafeText {}
impl HtmlSafe for SafeJson {}
impl HtmlSafe for SafePath {}

#[cfg(test)]
mod tests;
