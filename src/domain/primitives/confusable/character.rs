//! What one character looks like.

use unicode_normalization::char::is_combining_mark;
use unicode_script::{Script, UnicodeScript as _};
use unicode_security::GeneralSecurityProfile as _;

/// What UTS 39 makes of `m`, so that it equals `r` and `n` side by side.
const M: &str = "rn";

/// Signs that separate the parts of an address, a path or a number. Quotes and dashes are not among them: texts have
/// them in many shapes.
const DELIMITERS: &[u8] = b"./\\:@?#&=%;,_+";

/// What a character that is not ASCII is read as, if that is ASCII. A letter that a language uses in its own right is
/// not read as two: `æ` is no `ae`.
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

/// Whether a reading passes for digits beside others: `O` for `0`, `l` for `1`.
pub(super) fn reads_as_digit(reading: &str) -> bool {
    reading.bytes().all(|it| it.is_ascii_digit() || matches!(it, b'O' | b'o' | b'l' | b'i'))
}

/// Whether a character with that reading passes for a sign that separates parts.
pub(super) fn is_delimiter(it: char, reading: &str) -> bool {
    !it.is_alphanumeric() && matches!(reading.as_bytes(), [one] if DELIMITERS.contains(one))
}

/// Whether it is of no script of its own and no language writes words with it, by UTS 39: mathematical and phonetic
/// letters, forms for compatibility.
pub(super) fn is_restricted(it: char) -> bool {
    matches!(it.script(), Script::Latin | Script::Common | Script::Inherited) && !it.identifier_allowed()
}

/// Whether it is an ASCII character in the width of East Asian ones.
pub(super) const fn is_full_width(it: char) -> bool {
    matches!(it, '\u{ff01}'..='\u{ff5e}')
}

/// Whether it is a letter of China, Japan or Korea.
pub(super) fn is_east_asian(it: char) -> bool {
    matches!(it.script(), Script::Han | Script::Hiragana | Script::Katakana | Script::Hangul | Script::Bopomofo)
}

/// Whether it sits on the character before it.
pub(super) fn is_mark(it: char) -> bool {
    is_combining_mark(it)
}
