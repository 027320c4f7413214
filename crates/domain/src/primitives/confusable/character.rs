//! Looks up the appearance of one character.

use unicode_normalization::char::is_combining_mark;
use unicode_script::{Script, UnicodeScript as _};
use unicode_security::GeneralSecurityProfile as _;

/// Skeleton of `m` in UTS 39, so that it equals `r` and `n` side by side.
const M: &str = "rn";

/// Signs that separate the parts of an address, a path or a number. Quotes and dashes are not among them: texts have
/// them in many shapes.
const DELIMITERS: &[u8] = b"./\\:@?#&=%;,_+";

/// Returns the ASCII reading of a character that is not ASCII, if it has one. A letter that a language uses in its
/// own right is not read as two letters: `æ` is not `ae`.
pub(super) fn reading(it: char) -> Option<String> {
    let reading: String = unicode_security::skeleton(it.encode_utf8(&mut [0; 4])).collect();
    let visible = !reading.is_empty() && reading.bytes().all(|it| it.is_ascii_graphic());
    if it.is_ascii() || !visible {
        return None;
    }
    match reading.as_str() {
        M => Some("m".to_owned()),
        one if one.len() == 1 => Some(reading),
        _ => is_restricted(it).then_some(reading),
    }
}

/// Returns whether a reading passes for digits beside others: `O` for `0`, `l` for `1`.
pub(super) fn reads_as_digit(reading: &str) -> bool {
    reading.bytes().all(|it| it.is_ascii_digit() || matches!(it, b'O' | b'o' | b'l' | b'i'))
}

/// Returns whether a character with that reading passes for a sign that separates parts.
pub(super) fn is_delimiter(it: char, reading: &str) -> bool {
    !it.is_alphanumeric() && matches!(reading.as_bytes(), [one] if DELIMITERS.contains(one))
}

/// Returns whether UTS 39 restricts the character: it has no script of its own, and no language writes words with it.
/// Examples are mathematical and phonetic letters, and compatibility forms.
pub(super) fn is_restricted(it: char) -> bool {
    matches!(it.script(), Script::Latin | Script::Common | Script::Inherited) && !it.identifier_allowed()
}

/// Returns whether it is an ASCII character in the width of East Asian ones.
pub(super) const fn is_full_width(it: char) -> bool {
    matches!(it, '\u{ff01}'..='\u{ff5e}')
}

/// Returns whether the character is a letter of Chinese, Japanese or Korean.
pub(super) fn is_east_asian(it: char) -> bool {
    matches!(it.script(), Script::Han | Script::Hiragana | Script::Katakana | Script::Hangul | Script::Bopomofo)
}

/// Returns whether it sits on the character before it.
pub(super) fn is_mark(it: char) -> bool {
    is_combining_mark(it)
}
