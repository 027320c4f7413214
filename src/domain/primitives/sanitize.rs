//! What others wrote, made inert: nothing in it can hide, reorder, or pass for something else.

use std::fmt::Write as _;

use unicode_normalization::char::is_combining_mark;
use unicode_script::Script;

use super::confusable::{KnownTexts, findings};

/// Marks in a row on one base that a living language uses; more of them paint over what is around.
const COMBINING_RUN_MAX: usize = 3;

/// So much of a known value is shown beside another that looks like it.
const KNOWN_CHARS_SHOWN: usize = 64;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TextSegment<'a> {
    /// Shown as it is (still to be escaped for HTML).
    Text(&'a str),
    /// Shown by its number, because it cannot be seen or changes how its neighbours are seen.
    Escape(char),
}

/// What a reader should be told about a text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TextWarning {
    /// So many characters of it cannot be seen, and are shown by their number.
    Invisible(usize),
    /// Parts of it run from right to left.
    RightToLeft,
    /// One of its words mixes letters of scripts that no language mixes.
    MixedScripts(Script, Script),
    /// Characters in it pass for ASCII ones: the first of them, what it is read as, and how many others there are.
    LooksLike(char, String, usize),
    /// It looks like a value that is known, and is another one.
    LooksLikeKnown(String),
    /// It has letters of a script that no known value has letters of.
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
                format!("has {} letters, unlike the values known here", called(*script))
            }
            Self::LooksLikeKnown(known) => {
                let known: String = printed_line(known).chars().take(KNOWN_CHARS_SHOWN).collect();
                format!("looks like \u{201c}{known}\u{201d} but is a different text")
            }
        }
    }
}

/// A script's name in a sentence.
fn called(script: Script) -> String {
    script.full_name().replace('_', " ")
}

/// Splits a text into what can be shown and what must be shown by its number. Line feeds stay in
/// the text; who shows a single line asks [`inert_line`].
pub fn inert(text: &str) -> Vec<TextSegment<'_>> {
    segments(text, |character| character != '\n' && is_treacherous(character))
}

/// As [`inert`], with line feeds shown by their number too.
pub fn inert_line(text: &str) -> Vec<TextSegment<'_>> {
    segments(text, is_treacherous)
}

/// A text for a terminal or a file that people read: what is inert stands as it is, everything else as `⟨U+202E⟩`. Line
/// feeds stay.
pub fn printed(text: &str) -> String {
    written(inert(text), |out, it| {
        let _ = write!(out, "⟨U+{:04X}⟩", u32::from(it));
    })
}

/// The same on one line: a line feed is shown by its number, too, so that no text makes lines of its own.
pub fn printed_line(text: &str) -> String {
    written(inert_line(text), |out, it| {
        let _ = write!(out, "⟨U+{:04X}⟩", u32::from(it));
    })
}

/// JSON with everything in its texts by JSON's own escape that is not inert: the same value, that does nothing to who
/// looks at it. JSON has none of these outside of texts, but for the line feeds of one that is set out.
pub fn json(text: &str) -> String {
    written(inert(text), |out, it| {
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
    let mut marks = COMBINING_RUN_MAX;
    for (at, character) in text.char_indices() {
        marks = match (is_combining_mark(character), character.is_alphabetic()) {
            (true, _) => marks + 1,
            (false, true) => 0,
            // A mark on anything but a letter hides what it sits on.
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

/// Whether a character cannot be seen as itself: controls, blanks other than the space, format and
/// default-ignorable characters (bidirectional controls, joiners, tags, variation selectors),
/// private use and noncharacters.
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
        || u32::from(character) & 0xFFFE == 0xFFFE
}

fn runs_right_to_left(character: char) -> bool {
    matches!(u32::from(character), 0x590..=0x8FF | 0xFB1D..=0xFDCF | 0xFDF0..=0xFDFF | 0xFE70..=0xFEFC | 0x10800..=0x10FFF | 0x1E800..=0x1EFFF)
}

/// What a reader should be told about a text.
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

/// What a reader should be told about a text beside those that are known where it would stand.
pub fn warnings_beside(text: &str, known: &KnownTexts) -> Option<TextWarning> {
    let like = known.like(text).map(|it| TextWarning::LooksLikeKnown(it.to_owned()));
    like.or_else(|| known.new_script(text).map(TextWarning::NewScript))
}

/// The name of a character that misleads often enough for reviewers to have read about it.
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
