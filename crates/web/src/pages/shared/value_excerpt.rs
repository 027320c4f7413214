//! Excerpts of long arguments: the beginning, the end, the length and the SHA-256 digest of a value.

use countersign_domain::json::canonical::canonical;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::safe_text::{SafeJson, SafeJsonPart, thousands};

/// Characters of a value that a page shows as a whole.
const VALUE_CHARS_MAX: usize = 4_096;

/// Characters that an excerpt shows of the beginning.
const START_CHARS: usize = 600;

/// Characters that an excerpt shows of the end. An attacker may hide the harm there.
const END_CHARS: usize = 300;

/// The shown parts of a long value.
#[derive(Clone, Debug)]
pub struct ValueExcerpt {
    pub start: SafeJsonPart,
    pub end: SafeJsonPart,
    /// The number of characters between the two parts.
    pub left_out: String,
    /// The number of characters of the value.
    pub chars: String,
    /// SHA-256 of the text, or of the canonical JSON of another value. Only a reader of the whole value gets it.
    pub digest: String,
    pub is_text: bool,
}

impl ValueExcerpt {
    /// Characters that every excerpt shows.
    pub const CHARS: usize = START_CHARS + END_CHARS;

    /// Returns the excerpt of a value, or `None` if the page shows the whole value.
    pub fn of(value: &SafeJson) -> Option<Self> {
        let text = value.text();
        let is_text = text.is_some();
        let whole = text.unwrap_or_else(|| value.canonical().to_owned());
        let count = whole.chars().count();
        if count <= VALUE_CHARS_MAX {
            return None;
        }
        let at = |chars: usize| whole.char_indices().nth(chars).map_or(whole.len(), |(at, _)| at);
        // Each part of a text is written as a JSON text of its own, so no escape sequence is cut.
        let part = |it: &str| if is_text { canonical(&Value::from(it)) } else { it.to_owned() };
        let (start, end) = (part(&whole[..at(START_CHARS)]), part(&whole[at(count - END_CHARS)..]));
        // A quote at the gap would look like the end of the value.
        let (start, end) = if is_text { (&start[..start.len() - 1], &end[1..]) } else { (&*start, &*end) };
        Some(Self {
            start: SafeJsonPart::new(start),
            end: SafeJsonPart::new(end),
            left_out: thousands(count - Self::CHARS),
            chars: thousands(count),
            digest: Sha256::digest(whole.as_bytes()).iter().map(|it| format!("{it:02x}")).collect(),
            is_text,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_value_has_its_beginning_end_length_and_digest() {
        let text = format!("START\n{}END", "\u{e9}".repeat(10_000));
        let excerpt = |text: &str| ValueExcerpt::of(&SafeJson::new(canonical(&Value::from(text))));
        assert!(excerpt(&"x".repeat(VALUE_CHARS_MAX)).is_none());
        let excerpt = excerpt(&text).unwrap();
        assert!(excerpt.start.to_string().starts_with("&#34;START<span class=\"esc\">\\n</span>"));
        assert!(!excerpt.start.to_string().ends_with("&#34;") && excerpt.end.to_string().starts_with('é'));
        assert!(excerpt.end.to_string().ends_with("END&#34;") && !excerpt.end.to_string().contains("<details"));
        assert_eq!((excerpt.chars.as_str(), excerpt.left_out.as_str(), excerpt.is_text), ("10,009", "9,109", true));
        assert_eq!(excerpt.digest, Sha256::digest(text).iter().map(|it| format!("{it:02x}")).collect::<String>());
    }
}
