//! Sanitizes texts of other authors, so that no character can hide, reorder or imitate text.

use std::fmt::Write as _;

use unicode_normalization::char::is_combining_mark;
use unicode_script::Script;

use super::confusable::{KnownTexts, findings};

/// Combining marks on one base character that a living language uses. More marks paint over the text around them.
const COMBINING_RUN_MAX: usize = 3;

/// Characters of a known value that are shown next to a look-alike.
const KNOWN_CHARS_SHOWN: usize = 64;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TextSegment<'a> {
    /// Shown unchanged (and still to be escaped for HTML).
    Text(&'a str),
    /// Shown by its number, because it is invisible or changes how its neighbors look.
    Escape(char),
}

/// Warning for readers of a text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TextWarning {
    /// Number of invisible characters, which are shown by their number.
    Invisible(usize),
    /// Parts of it run from right to left.
    RightToLeft,
    /// One of its words mixes letters of scripts that no language mixes.
    MixedScripts(Script, Script),
    /// Characters that pass for ASCII: the first one, its reading, and the number of others.
    LooksLike(char, String, usize),
    /// It looks like a known value but differs from it.
    LooksLikeKnown(String),
    /// It has letters of a script that no known value uses.
    NewScript(Script),
}

impl TextWarning {
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Invisible(_) => "invisible",
            Self::RightToLeft => "right_to_left",
            Self::MixedScripts(..) => "mixed_scripts",
            Self::LooksLike(..) => "looks_like_ascii",
            Self::LooksLikeKnown(_) => "looks_like_known",
            Self::NewScript(_) => "new_script",
        }
    }

    pub fn words(&self) -> String {
        match self {
            Self::Invisible(1) => "1 invisible character".to_owned(),
            Self::Invisible(count) => format!("{count} invisible characters"),
            Self::RightToLeft => "contains right-to-left text".to_owned(),
            Self::MixedScripts(one, other) => format!("mixes {} and {} letters", called(*one), called(*other)),
            Self::LooksLike(it, reads, 0) => format!("U+{:04X} looks like {reads}", u32::from(*it)),
            Self::LooksLike(it, reads, more) => {
                format!("U+{:04X} looks like {reads}, and {more} more look like others", u32::from(*it))
            }
            Self::NewScript(script) => {
                format!("has {} letters, unlike the known values", called(*script))
            }
            Self::LooksLikeKnown(known) => {
                // The known value can be text of another author, so it is sanitized, too.
                let known: String = printed_line(known).chars().take(KNOWN_CHARS_SHOWN).collect();
                format!("looks like \u{201c}{known}\u{201d} but is a different text")
            }
        }
    }
}

/// Returns the name of a script in a sentence.
fn called(script: Script) -> String {
    script.full_name().replace('_', " ")
}

/// Splits a text into parts that can be shown and characters that must be shown by their number. Line feeds stay in
/// the text. For a single line, use [`inert_line`].
pub fn inert(text: &str) -> Vec<TextSegment<'_>> {
    segments(text, |character| character != '\n' && is_treacherous(character))
}

/// Does the same as [`inert`], with line feeds shown by their number, too.
pub fn inert_line(text: &str) -> Vec<TextSegment<'_>> {
    segments(text, is_treacherous)
}

/// Returns a text for a terminal or a file. Harmless characters stay, and every other character is written like
/// `⟨U+202E⟩`. Line feeds stay.
pub fn printed(text: &str) -> String {
    written(inert(text), |out, it| {
        // Writing to memory cannot fail.
        let _ = write!(out, "⟨U+{:04X}⟩", u32::from(it));
    })
}

/// Returns a text on one line. A line feed is written by its number, too, so that no text can start a new line.
pub fn printed_line(text: &str) -> String {
    written(inert_line(text), |out, it| {
        let _ = write!(out, "⟨U+{:04X}⟩", u32::from(it));
    })
}

/// Returns JSON with every harmful character of its texts escaped. The value stays the same. Outside of texts, JSON
/// has no such characters except line feeds.
pub fn json(text: &str) -> String {
    written(inert(text), |out, it| {
        // JSON escapes a character beyond U+FFFF as two surrogates.
        for unit in it.encode_utf16(&mut [0; 2]) {
            let _ = write!(out, "\\u{unit:04x}");
        }
    })
}

fn written(segments: Vec<TextSegment<'_>>, escape: impl Fn(&mut String, char)) -> String {
    let mut out = String::new();
    for segment in segments {
        match segment {
            TextSegment::Text(text) => out.push_str(text),
            TextSegment::Escape(it) => escape(&mut out, it),
        }
    }
    out
}

fn segments(text: &str, treacherous: impl Fn(char) -> bool) -> Vec<TextSegment<'_>> {
    let mut segments = Vec::new();
    let mut plain_from = 0;
    // A mark at the start of the text has no base character, so it is shown by its number.
    let mut marks = COMBINING_RUN_MAX;
    for (at, character) in text.char_indices() {
        marks = match (is_combining_mark(character), character.is_alphabetic()) {
            (true, _) => marks + 1,
            (false, true) => 0,
            // A combining mark hides, except on an alphabetic character, the character below it.
            (false, false) => COMBINING_RUN_MAX,
        };
        let stray_mark = is_combining_mark(character) && marks > COMBINING_RUN_MAX;
        if stray_mark || treacherous(character) {
            if plain_from < at {
                segments.push(TextSegment::Text(&text[plain_from..at]));
            }
            segments.push(TextSegment::Escape(character));
            plain_from = at + character.len_utf8();
        }
    }
    if plain_from < text.len() {
        segments.push(TextSegment::Text(&text[plain_from..]));
    }
    segments
}

/// Returns whether a character cannot be seen as itself: controls, blanks other than the space, format and
/// default-ignorable characters (bidirectional controls, joiners, tags, variation selectors), private use and
/// noncharacters.
fn is_treacherous(character: char) -> bool {
    let blank = character.is_whitespace() && character != ' ';
    character.is_control()
        || blank
        || matches!(
            u32::from(character),
            0xAD | 0x34F
                | 0x600..=0x605
                | 0x61C
                | 0x6DD
                | 0x70F
                | 0x8E2
                | 0x115F..=0x1160
                | 0x17B4..=0x17B5
                | 0x180B..=0x180F
                | 0x200B..=0x200F
                | 0x202A..=0x202E
                | 0x2060..=0x206F
                | 0x2800
                | 0x3164
                | 0xE000..=0xF8FF
                | 0xFDD0..=0xFDEF
                | 0xFE00..=0xFE0F
                | 0xFEFF
                | 0xFFA0
                | 0xFFF0..=0xFFFC
                | 0x110BD
                | 0x110CD
                | 0x13430..=0x1343F
                | 0x1BCA0..=0x1BCA3
                | 0x1D173..=0x1D17A
                | 0xE0000..=0x10_FFFF
        )
        // The last two code points of every plane are noncharacters.
        || u32::from(character) & 0xFFFE == 0xFFFE
}

fn runs_right_to_left(character: char) -> bool {
    matches!(u32::from(character), 0x590..=0x8FF | 0xFB1D..=0xFDCF | 0xFDF0..=0xFDFF | 0xFE70..=0xFEFC | 0x10800..=0x10FFF | 0x1E800..=0x1EFFF)
}

/// Warning for readers of a text.
pub fn warnings(text: &str) -> Vec<TextWarning> {
    let invisible = inert(text).iter().filter(|it| matches!(it, TextSegment::Escape(_))).count();
    let mut warnings = Vec::new();
    if invisible > 0 {
        warnings.push(TextWarning::Invisible(invisible));
    }
    if text.chars().any(runs_right_to_left) {
        warnings.push(TextWarning::RightToLeft);
    }
    let found = findings(text);
    if let Some((one, other)) = found.mixed {
        warnings.push(TextWarning::MixedScripts(one, other));
    }
    if let Some((first, more)) = found.imitations.split_first() {
        warnings.push(TextWarning::LooksLike(first.character, first.reads.clone(), more.len()));
    }
    warnings
}

/// Returns a warning about a text in comparison with known texts.
pub fn warnings_beside(text: &str, known: &KnownTexts) -> Option<TextWarning> {
    let like = known.like(text).map(|it| TextWarning::LooksLikeKnown(it.to_owned()));
    like.or_else(|| known.new_script(text).map(TextWarning::NewScript))
}

/// Returns the name of a character that is well known for misleading readers.
pub fn name(character: char) -> &'static str {
    match u32::from(character) {
        0x00 => "null",
        0x09 => "tab",
        0x0A => "line feed",
        0x0D => "carriage return",
        0x1B => "escape",
        0xA0 => "no-break space",
        0xAD => "soft hyphen",
        0x200B => "zero width space",
        0x200C => "zero width non-joiner",
        0x200D => "zero width joiner",
        0x200E => "left-to-right mark",
        0x200F => "right-to-left mark",
        0x202A => "left-to-right embedding",
        0x202B => "right-to-left embedding",
        0x202C => "pop directional formatting",
        0x202D => "left-to-right override",
        0x202E => "right-to-left override",
        0x2028 => "line separator",
        0x2029 => "paragraph separator",
        0x2060 => "word joiner",
        0x2066 => "left-to-right isolate",
        0x2067 => "right-to-left isolate",
        0x2068 => "first strong isolate",
        0x2069 => "pop directional isolate",
        0xFE00..=0xFE0F => "variation selector",
        0xFEFF => "byte order mark",
        0xE0000..=0xE007F => "tag character",
        0xE000..=0xF8FF | 0xF_0000..=0x10_FFFF => "private use character",
        _ if character.is_control() => "control character",
        _ if is_combining_mark(character) => "combining mark",
        _ if character.is_whitespace() => "blank",
        _ => "invisible character",
    }
}

#[cfg(test)]
mod tests;
