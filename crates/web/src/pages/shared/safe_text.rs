//! Types for untrusted text, which can only be printed escaped.
//!
//! The script of a page reads values back from the visible text, so each form is reversible. The visible text of a
//! [`SafeJson`] is itself JSON. In a [`SafeLine`] or [`SafeText`] an escape is a separate element, which no text can
//! imitate.

use std::fmt;

use askama::filters::HtmlSafe;
use countersign_domain::primitives::confusable::KnownTexts;
use countersign_domain::primitives::sanitize;
use countersign_domain::primitives::sanitize::{TextSegment, TextWarning};

/// Characters of a value that are shown before the rest is folded: four lines on a phone.
const VALUE_CHARS_SHOWN: usize = 160;

/// Characters of a rationale or comment that are shown before the rest is folded.
const PROSE_CHARS_SHOWN: usize = 600;

/// Characters of a value that fit into a sentence.
const SENTENCE_CHARS_MAX: usize = 48;

/// One line of untrusted text: a name, a key, a title.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct SafeLine(String);

/// Untrusted text with line breaks: a rationale, a comment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SafeText(String);

/// Canonical JSON text of a value, and a warning if it looks like a known text at its path.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SafeJson(String, Option<TextWarning>);

/// A part of a canonical JSON text. It is never folded, because a fold offers to show all of its text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SafeJsonPart(String);

/// A path in the state. It is given as a JSON Pointer and shown as in policies (`payment.amount`) if both mean the
/// same.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct SafePath(String);

/// Label of the root.
const ROOT_WORDS: &str = "(the whole state)";

impl SafeLine {
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns plain text for titles and attributes.
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

    pub fn is_ascii(&self) -> bool {
        self.0.is_ascii()
    }

    /// Returns warnings about misleading characters.
    pub fn warnings(&self) -> Vec<TextWarning> {
        sanitize::warnings(&self.0)
    }
}

impl SafeText {
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns warnings about misleading characters.
    pub fn warnings(&self) -> Vec<TextWarning> {
        sanitize::warnings(&self.0)
    }

    /// Returns the unchanged text for a form field. Templates escape it for HTML, but invisible characters stay.
    pub fn raw(&self) -> &str {
        &self.0
    }
}

impl SafeJson {
    /// Takes the canonical JSON text of a value.
    pub fn new(canonical: impl Into<String>) -> Self {
        Self(canonical.into(), None)
    }

    /// Returns the text if the value is a text.
    pub fn text(&self) -> Option<String> {
        serde_json::from_str(&self.0).ok()
    }

    /// Marks a text that looks like a known text but differs, or that uses another script than the known texts.
    pub fn compare(&mut self, known: &KnownTexts) {
        if let (None, Some(text)) = (&self.1, self.text()) {
            self.1 = sanitize::warnings_beside(&text, known);
        }
    }

    /// Returns the canonical JSON text.
    pub fn canonical(&self) -> &str {
        &self.0
    }

    /// Whether the value fits a headline.
    pub fn is_short(&self) -> bool {
        self.0.chars().count() <= SENTENCE_CHARS_MAX
    }

    /// Returns the number of characters.
    pub fn chars(&self) -> String {
        thousands(self.0.chars().count())
    }

    /// Returns warnings about misleading characters.
    pub fn warnings(&self) -> Vec<TextWarning> {
        // The letter of an escape such as `\n` must not make a Cyrillic word look like mixed scripts.
        let plain = split_escapes(&self.0).filter(|it| !it.starts_with('\\')).collect::<Vec<_>>().join(" ");
        sanitize::warnings(&plain).into_iter().chain(self.1.clone()).collect()
    }
}

impl SafeJsonPart {
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl SafePath {
    /// Takes a JSON Pointer.
    pub fn new(pointer: impl Into<String>) -> Self {
        Self(pointer.into())
    }

    pub fn pointer(&self) -> &str {
        &self.0
    }

    /// Whether the path fits a sentence.
    pub fn is_short(&self) -> bool {
        self.shown().chars().count() <= SENTENCE_CHARS_MAX
    }

    /// Returns the form value: the pointer, or its JSON text if it has invisible characters, which a browser might
    /// change.
    pub fn sent(&self) -> String {
        let plain = !sanitize::inert_line(&self.0).iter().any(|it| matches!(it, TextSegment::Escape(_)));
        // A form field cannot carry every character unchanged, so an unusual path is sent as a JSON string.
        if plain { self.0.clone() } else { sanitize::json(&serde_json::Value::from(self.0.as_str()).to_string()) }
    }

    /// Uses dots only if every key is a plain word, so that the path can be read back to the same pointer.
    fn shown(&self) -> String {
        let plain =
            |key: &str| !key.is_empty() && key.chars().all(|it| it.is_ascii_alphanumeric() || "_-".contains(it));
        match self.0.strip_prefix('/') {
            None => ROOT_WORDS.to_owned(),
            // Dots are easier to read, but only plain keys make the replacement unambiguous.
            Some(keys) if keys.split('/').all(plain) => keys.replace('/', "."),
            Some(_) => self.0.clone(),
        }
    }

    /// Returns plain text for titles and attributes.
    pub fn plain(&self) -> String {
        SafeLine(self.shown()).plain()
    }

    /// Returns warnings about misleading characters in the keys.
    pub fn warnings(&self) -> Vec<TextWarning> {
        sanitize::warnings(&self.0)
    }
}

/// Splits a canonical text into escape sequences and the text between them.
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

/// Returns a number with commas between its thousands.
pub fn thousands(count: usize) -> String {
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
            // The text can also occur inside an attribute, so both kinds of quotes are escaped.
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

/// Writes invisible characters as JSON escapes, so that the visible text is still JSON.
fn write_json(out: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    for piece in split_escapes(text) {
        match piece {
            // Quotes and backslashes are common and harmless, so only other escapes are marked.
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

/// Writes the start of a long text, with a control that shows its length and opens the whole text.
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

impl fmt::Display for SafeJsonPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_json(f, &self.0)
    }
}

impl fmt::Display for SafePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for segment in sanitize::inert_line(&self.shown()) {
            match segment {
                TextSegment::Text(text) => text.split_inclusive(['.', '/', '_']).try_for_each(|part| {
                    write_escaped(f, part)?;
                    // A long path must break after a separator, because a break inside a key is hard to read on a
                    // phone.
                    if part.ends_with(['.', '/', '_']) { f.write_str("<wbr>") } else { Ok(()) }
                })?,
                escape => write_by_number(f, &[escape])?,
            }
        }
        Ok(())
    }
}

// Askama must not escape these types again, because `Display` already does.
impl HtmlSafe for SafeLine {}
impl HtmlSafe for SafeText {}
impl HtmlSafe for SafeJson {}
impl HtmlSafe for SafeJsonPart {}
impl HtmlSafe for SafePath {}

#[cfg(test)]
mod tests;
