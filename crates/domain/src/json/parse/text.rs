//! Reads strings: copies runs of characters, resolves escapes, and rejects unpaired surrogates.

use super::{JsonCode, ParseFailure, ParseResult, Parser};

impl Parser<'_> {
    /// Reads the string whose opening quote is the next byte.
    pub(super) fn string(&mut self) -> ParseResult<String> {
        self.at += 1;
        let start = self.at;
        self.at = plain_end(self.bytes, start);
        // Most strings have no escape, so their text is copied at once.
        if self.peek() == Some(b'"') {
            let text = self.text[start..self.at].to_owned();
            self.at += 1;
            return Ok(text);
        }
        self.escaped_string(start)
    }

    /// Reads the rest of a string from its first character that is not plain, at `self.at`.
    fn escaped_string(&mut self, start: usize) -> ParseResult<String> {
        let mut text = self.text[start..self.at].to_owned();
        loop {
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(text);
                }
                Some(b'\\') => text.push(self.escape()?),
                // A control character, or the end of the text.
                _ => return self.fault(JsonCode::Syntax),
            }
            let run = self.at;
            self.at = plain_end(self.bytes, run);
            text.push_str(&self.text[run..self.at]);
        }
    }

    /// Reads an escape sequence. `self.at` is at its backslash.
    fn escape(&mut self) -> ParseResult<char> {
        let start = self.at;
        let letter = self.bytes.get(start + 1).copied();
        self.at += 2;
        Ok(match letter {
            Some(plain @ (b'"' | b'\\' | b'/')) => char::from(plain),
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.unicode_escape(start),
            _ => {
                // The error points at the letter, unless the text ends with the backslash.
                self.at = self.bytes.len().min(start + 1);
                return self.fault(JsonCode::Syntax);
            }
        })
    }

    /// Reads `\uXXXX`, or two of them for a character beyond the first 65,536. `self.at` is after the first `u`.
    fn unicode_escape(&mut self, start: usize) -> ParseResult<char> {
        let lone = || ParseFailure::new(JsonCode::Encoding, start);
        let unit = self.hex4()?;
        if !(0xD800..=0xDFFF).contains(&unit) {
            return char::from_u32(unit).ok_or_else(lone);
        }
        // Half of a surrogate pair is no character, so a Rust string cannot contain it.
        if unit > 0xDBFF || !self.text.as_bytes()[self.at..].starts_with(b"\\u") {
            return Err(lone());
        }
        self.at += 2;
        let low = self.hex4()?;
        if !(0xDC00..=0xDFFF).contains(&low) {
            return Err(lone());
        }
        char::from_u32(0x1_0000 + ((unit - 0xD800) << 10) + (low - 0xDC00)).ok_or_else(lone)
    }

    fn hex4(&mut self) -> ParseResult<u32> {
        let mut unit = 0;
        for _ in 0..4 {
            let Some(digit) = self.peek().and_then(|it| char::from(it).to_digit(16)) else {
                return self.fault(JsonCode::Syntax);
            };
            unit = unit * 16 + digit;
            self.at += 1;
        }
        Ok(unit)
    }
}

/// Returns the end of a run of plain characters: a quote, a backslash, a control character or the end of the text. It
/// checks eight bytes at a time, because most bytes of a document are inside its strings.
fn plain_end(bytes: &[u8], start: usize) -> usize {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    const HIGHS: u64 = u64::from_ne_bytes([0x80; 8]);
    let mut at = start;
    let (words, _) = bytes[start..].as_chunks::<8>();
    for word in words {
        // Little endian on every platform, so the lowest marked bit belongs to the first byte.
        let word = u64::from_le_bytes(*word);
        // The high bit of a byte marks such a byte. A borrow can change only bytes after the first marked one.
        let control = word.wrapping_sub(ONES * 0x20) & !word;
        let quote = word ^ (ONES * u64::from(b'"'));
        let backslash = word ^ (ONES * u64::from(b'\\'));
        let found = control | (quote.wrapping_sub(ONES) & !quote) | (backslash.wrapping_sub(ONES) & !backslash);
        let found = found & HIGHS;
        if found != 0 {
            return at + (found.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    // The last bytes do not fill a word.
    let is_plain = |it: &&u8| !matches!(**it, b'"' | b'\\' | 0..=0x1F);
    at + bytes[at..].iter().take_while(is_plain).count()
}
