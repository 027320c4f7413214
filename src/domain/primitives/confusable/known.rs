//! Values that are known, and others that look like one of them.

use std::collections::{BTreeMap, BTreeSet};

use unicode_script::{Script, UnicodeScript as _};

use super::character::is_east_asian;
use super::names::skeleton;

/// So much text is remembered. A skeleton takes some 100 nanoseconds for a character: a page waits for milliseconds.
const BYTES_MAX: usize = 64 * 1024;

/// One letter alone is in a list or a sum, and too often like another: `I`, `l`, `1`.
const WORD_CHARS_MIN: usize = 2;

/// Texts that a reader knows: the value before, and others of the same key.
#[derive(Clone, Debug, Default)]
pub struct KnownTexts {
    /// Whole texts and their words, by what they look like. The first one that looks so is shown.
    by_look: BTreeMap<String, String>,
    exactly: BTreeSet<String>,
    /// The scripts of their letters.
    written_in: BTreeSet<&'static str>,
    bytes: usize,
}

impl KnownTexts {
    /// Remembers a text, if there is room left.
    pub fn learn(&mut self, text: &str) {
        self.bytes = self.bytes.saturating_add(text.len());
        if self.bytes > BYTES_MAX {
            return;
        }
        self.written_in.extend(letters(text).map(Script::short_name));
        for piece in pieces(text) {
            self.by_look.entry(skeleton(piece)).or_insert_with(|| piece.to_owned());
            self.exactly.insert(piece.to_owned());
        }
    }

    /// The known text or word that one of this text's looks like without being it.
    pub fn like(&self, text: &str) -> Option<&str> {
        if self.by_look.is_empty() || text.len() > BYTES_MAX {
            return None;
        }
        let other = |piece: &str| if self.exactly.contains(piece) { None } else { self.by_look.get(&skeleton(piece)) };
        pieces(text).find_map(other).map(String::as_str)
    }

    /// A script that this text has letters of and no known text has. Where none has letters, nothing is known.
    pub fn new_script(&self, text: &str) -> Option<Script> {
        letters(text).find(|it| !self.written_in.is_empty() && !self.written_in.contains(it.short_name()))
    }
}

/// The scripts of a text's letters, those of China, Japan and Korea as one.
fn letters(text: &str) -> impl Iterator<Item = Script> {
    let letters = text.chars().filter(|it| it.is_alphabetic());
    let scripts = letters.map(|it| if is_east_asian(it) { Script::Han } else { it.script() });
    scripts.filter(|it| !matches!(it, Script::Common | Script::Inherited))
}

/// A text, and its words without the signs around them.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split_whitespace().map(|it| it.trim_matches(|it: char| it.is_ascii_punctuation()));
    std::iter::once(text.trim()).chain(words).filter(|it| it.chars().nth(WORD_CHARS_MIN - 1).is_some())
}
