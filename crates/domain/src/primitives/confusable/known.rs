//! Known values, and texts that look like one of them.

use std::collections::{BTreeMap, BTreeSet};

use unicode_script::{Script, UnicodeScript as _};

use super::character::is_east_asian;
use super::names::skeleton;

/// Maximum amount of known text. A skeleton takes some 100 nanoseconds for each character, so a page waits for
/// milliseconds.
const BYTES_MAX: usize = 64 * 1024;

/// Minimum length of a word. A single letter is common in lists and sums, and often looks like another: `I`, `l`,
/// `1`.
const WORD_CHARS_MIN: usize = 2;

/// Texts that a reader knows: the previous value, and others of the same key.
#[derive(Clone, Debug, Default)]
pub struct KnownTexts {
    /// Whole texts and their words by skeleton. For each skeleton, the first one is shown.
    by_look: BTreeMap<String, String>,
    exactly: BTreeSet<String>,
    /// The scripts of their letters.
    written_in: BTreeSet<&'static str>,
    bytes: usize,
}

impl KnownTexts {
    /// Adds a text, if the limit is not reached.
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

    /// Returns the known text or word that a part of this text looks like without being equal to it.
    pub fn like(&self, text: &str) -> Option<&str> {
        if self.by_look.is_empty() || text.len() > BYTES_MAX {
            return None;
        }
        // An equal text is the known one, not a look-alike of it.
        let other = |piece: &str| if self.exactly.contains(piece) { None } else { self.by_look.get(&skeleton(piece)) };
        pieces(text).find_map(other).map(String::as_str)
    }

    /// Returns a script that this text uses and no known text uses. Without any known letters, it returns nothing.
    pub fn new_script(&self, text: &str) -> Option<Script> {
        letters(text).find(|it| !self.written_in.is_empty() && !self.written_in.contains(it.short_name()))
    }
}

/// Returns the scripts of a text's letters. Chinese, Japanese and Korean count as one.
fn letters(text: &str) -> impl Iterator<Item = Script> {
    let letters = text.chars().filter(|it| it.is_alphabetic());
    let scripts = letters.map(|it| if is_east_asian(it) { Script::Han } else { it.script() });
    scripts.filter(|it| !matches!(it, Script::Common | Script::Inherited))
}

/// Returns a text, and its words without the signs around them.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split_whitespace().map(|it| it.trim_matches(|it: char| it.is_ascii_punctuation()));
    std::iter::once(text.trim()).chain(words).filter(|it| it.chars().nth(WORD_CHARS_MIN - 1).is_some())
}
