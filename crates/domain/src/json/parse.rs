//! The strict parser. It rejects every text that two parsers could read differently, and reports the position.
//!
//! It is written by hand because it needs the text of a number, the offset of a key and the pointer of an error,
//! which `serde_json` does not provide. Pointers are built only while an error travels up, so that reading is as fast
//! as with `serde_json`.

use std::collections::BTreeSet;

use serde_json::map::{Entry, Map};
use serde_json::{Number, Value};
use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::is_nfc;

use super::number;
use super::pointer::Pointer;
use crate::primitives::named_enum::named_enum;

mod text;

#[cfg(test)]
mod tests;

/// Default limit of a document in bytes, which fits the largest state.
pub const BYTES_MAX: usize = 1024 * 1024;

/// Default limit of a document's levels.
pub const DEPTH_MAX: usize = 64;

/// Maximum of levels for every configuration. Reading, comparing and freeing a value recurses, and the stack of a
/// thread is finite.
pub const DEPTH_CEILING: usize = 256;

/// Number of digits that always form an `i64` below 2^53.
const INTEGER_DIGITS_SHORT: usize = 15;

/// Limits of a document.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ParseLimits {
    /// Bytes of text.
    pub bytes_max: usize,
    /// Nested containers. A scalar adds none. Never more than [`DEPTH_CEILING`].
    pub depth_max: usize,
}

impl Default for ParseLimits {
    fn default() -> Self {
        Self { bytes_max: BYTES_MAX, depth_max: DEPTH_MAX }
    }
}

named_enum! {
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum JsonCode {
        Empty = "empty",
        Syntax = "syntax",
        /// Two keys of one object are equal, at least after NFC.
        DuplicateKey = "duplicate_key",
        NotANumber = "not_a_number",
        /// The decimal value of the number differs from its shortest double.
        NumberNotExact = "number_not_exact",
        /// Too many nested containers.
        TooDeep = "too_deep",
        /// Too many bytes.
        TooLarge = "too_large",
        /// Not UTF-8, or half of a surrogate pair.
        Encoding = "encoding",
    }
}

impl JsonCode {
    /// Returns a fixed sentence for the sender. It never quotes the document.
    pub const fn detail(self) -> &'static str {
        match self {
            Self::Empty => "there is no JSON value",
            Self::Syntax => "this is not JSON",
            Self::DuplicateKey => "two keys of one object are equal, or are after Unicode normalisation (NFC)",
            Self::NotANumber => "NaN and infinities are not JSON; send null or a string",
            Self::NumberNotExact => "a double cannot say this number back; send it as a string",
            Self::TooDeep => "too many arrays and objects within each other",
            Self::TooLarge => "the text is longer than allowed",
            Self::Encoding => "the text is not valid UTF-8, or has half of a surrogate pair",
        }
    }
}

/// An error with its code, the path of the value, and the byte position if there is one.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{}", code.detail())]
pub struct JsonError {
    pub code: JsonCode,
    /// Path of the value that was being read. For a duplicate key, the path of that member.
    pub pointer: Pointer,
    /// Byte position at which reading stopped. For a number, a key or an escape, its first byte.
    pub offset: Option<usize>,
}

/// Reads one JSON value, and nothing else.
pub fn parse(text: &[u8], limits: &ParseLimits) -> Result<Value, JsonError> {
    // The length comes first, because it is the only check that does not read the text.
    if text.len() > limits.bytes_max {
        return Err(JsonError { code: JsonCode::TooLarge, pointer: Pointer::root(), offset: None });
    }
    match std::str::from_utf8(text) {
        Ok(text) => Parser::new(text, limits).document(),
        Err(error) => {
            let (before, _) = text.split_at(error.valid_up_to());
            let before = std::str::from_utf8(before).expect("it is valid up to there");
            Err(not_utf8(before, limits))
        }
    }
}

/// Returns the error of a text that is UTF-8 only up to the end of `before`. An earlier error takes precedence.
fn not_utf8(before: &str, limits: &ParseLimits) -> JsonError {
    let offset = before.len();
    match Parser::new(before, limits).document() {
        // The first mistake in the text is reported, whatever kind it has.
        Err(error) if error.offset.is_some_and(|at| at < offset) => error,
        Err(error) => JsonError { code: JsonCode::Encoding, pointer: error.pointer, offset: Some(offset) },
        Ok(_) => JsonError { code: JsonCode::Encoding, pointer: Pointer::root(), offset: Some(offset) },
    }
}

/// An error on its way up. It is boxed, so that results stay as small as a value.
struct ParseFailure {
    code: JsonCode,
    offset: usize,
    /// Tokens from the error up to the root.
    path: Vec<PathSegment>,
}

enum PathSegment {
    Key(String),
    Index(usize),
}

type ParseResult<T> = Result<T, Box<ParseFailure>>;

impl ParseFailure {
    fn new(code: JsonCode, offset: usize) -> Box<Self> {
        Box::new(Self { code, offset, path: Vec::new() })
    }

    #[cold]
    fn below(mut self: Box<Self>, step: PathSegment) -> Box<Self> {
        self.path.push(step);
        self
    }

    fn into_error(self) -> JsonError {
        let pointer = self.path.iter().rev().fold(Pointer::root(), |above, step| match step {
            PathSegment::Key(key) => above.child(key),
            PathSegment::Index(index) => above.index(*index),
        });
        // An empty text has no position to point at.
        let offset = if self.code == JsonCode::Empty { None } else { Some(self.offset) };
        JsonError { code: self.code, pointer, offset }
    }
}

struct Parser<'t> {
    text: &'t str,
    bytes: &'t [u8],
    at: usize,
    depth_max: usize,
}

impl<'t> Parser<'t> {
    fn new(text: &'t str, limits: &ParseLimits) -> Self {
        Self { text, bytes: text.as_bytes(), at: 0, depth_max: limits.depth_max.min(DEPTH_CEILING) }
    }

    fn document(mut self) -> Result<Value, JsonError> {
        if self.skip_space().is_none() {
            return Err(ParseFailure::new(JsonCode::Empty, self.at).into_error());
        }
        let value = self.value(0).map_err(|fault| fault.into_error())?;
        match self.skip_space() {
            None => Ok(value),
            // A second value after the first could be read by one program and ignored by another.
            Some(_) => Err(ParseFailure::new(JsonCode::Syntax, self.at).into_error()),
        }
    }

    fn fault<T>(&self, code: JsonCode) -> ParseResult<T> {
        Err(ParseFailure::new(code, self.at))
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    /// Returns the next byte that is not whitespace.
    fn skip_space(&mut self) -> Option<u8> {
        loop {
            match self.peek() {
                // Only these four are whitespace in JSON. Unicode has more.
                Some(b' ' | b'\t' | b'\n' | b'\r') => self.at += 1,
                other => return other,
            }
        }
    }

    /// Reads a value within `depth` containers, after skipping spaces.
    fn value(&mut self, depth: usize) -> ParseResult<Value> {
        match self.skip_space() {
            Some(b'"') => self.string().map(Value::String),
            Some(b'-' | b'0'..=b'9') => self.number().map(Value::Number),
            // The parser recurses, so the depth limit also protects the stack.
            Some(b'{' | b'[') if depth >= self.depth_max => self.fault(JsonCode::TooDeep),
            Some(b'{') => self.object(depth + 1),
            Some(b'[') => self.array(depth + 1),
            Some(b't') => self.word("true", Value::Bool(true)),
            Some(b'f') => self.word("false", Value::Bool(false)),
            Some(b'n') => self.word("null", Value::Null),
            // Other languages write NaN and Infinity here, and the code says how to fix that.
            Some(b'N' | b'I') => self.not_a_number(self.at),
            _ => self.fault(JsonCode::Syntax),
        }
    }

    fn word(&mut self, word: &str, value: Value) -> ParseResult<Value> {
        for expected in word.bytes() {
            if self.peek() != Some(expected) {
                return self.fault(JsonCode::Syntax);
            }
            self.at += 1;
        }
        Ok(value)
    }

    /// Returns `not_a_number` for the words that other languages write for NaN and infinity. Other words are syntax
    /// errors.
    fn not_a_number<T>(&self, start: usize) -> ParseResult<T> {
        let rest = &self.text[self.at..];
        let named = rest.starts_with("NaN") || rest.starts_with("Infinity");
        Err(ParseFailure::new(if named { JsonCode::NotANumber } else { JsonCode::Syntax }, start))
    }

    fn array(&mut self, depth: usize) -> ParseResult<Value> {
        self.at += 1;
        let mut items = Vec::new();
        if self.skip_space() == Some(b']') {
            self.at += 1;
            return Ok(Value::Array(items));
        }
        loop {
            match self.value(depth) {
                Ok(item) => items.push(item),
                Err(fault) => return Err(fault.below(PathSegment::Index(items.len()))),
            }
            match self.skip_space() {
                Some(b',') => self.at += 1,
                Some(b']') => break,
                _ => return self.fault(JsonCode::Syntax),
            }
        }
        self.at += 1;
        Ok(Value::Array(items))
    }

    fn object(&mut self, depth: usize) -> ParseResult<Value> {
        self.at += 1;
        let mut members = Map::new();
        // Two keys that look the same must not both exist, because reviewers could not tell them apart.
        let mut normal_forms = BTreeSet::new();
        if self.skip_space() == Some(b'}') {
            self.at += 1;
            return Ok(Value::Object(members));
        }
        loop {
            if self.skip_space() != Some(b'"') {
                return self.fault(JsonCode::Syntax);
            }
            // The position of the key is reported, not the position after its value.
            let start = self.at;
            let key = self.string()?;
            if normal_form_is_taken(&key, &members, &mut normal_forms) {
                return Err(ParseFailure::new(JsonCode::DuplicateKey, start).below(PathSegment::Key(key)));
            }
            match members.entry(key) {
                Entry::Vacant(slot) => match self.member(depth) {
                    Ok(value) => _ = slot.insert(value),
                    Err(fault) => return Err(fault.below(PathSegment::Key(slot.key().clone()))),
                },
                // Parsers disagree about duplicate keys: some take the first value, others the last.
                Entry::Occupied(slot) => {
                    let step = PathSegment::Key(slot.key().clone());
                    return Err(ParseFailure::new(JsonCode::DuplicateKey, start).below(step));
                }
            }
            match self.skip_space() {
                Some(b',') => self.at += 1,
                Some(b'}') => break,
                _ => return self.fault(JsonCode::Syntax),
            }
        }
        self.at += 1;
        Ok(Value::Object(members))
    }

    fn member(&mut self, depth: usize) -> ParseResult<Value> {
        if self.skip_space() != Some(b':') {
            return self.fault(JsonCode::Syntax);
        }
        self.at += 1;
        self.value(depth)
    }

    fn number(&mut self) -> ParseResult<Number> {
        let start = self.at;
        let negative = self.peek() == Some(b'-');
        if negative {
            self.at += 1;
        }
        let digits_start = self.at;
        let short = self.integer_digits(start)?;
        match self.peek() {
            Some(b'.' | b'e' | b'E') => {}
            // Few digits are always exact, so the slower check is not needed.
            _ if self.at - digits_start <= INTEGER_DIGITS_SHORT => {
                return Ok(Number::from(if negative { -short } else { short }));
            }
            _ => {}
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            self.digits()?;
        }
        number::exact(&self.text[start..self.at]).ok_or_else(|| ParseFailure::new(JsonCode::NumberNotExact, start))
    }

    /// Reads the digits before the decimal point. The returned value is valid only if there are few digits.
    fn integer_digits(&mut self, start: usize) -> ParseResult<i64> {
        match self.peek() {
            Some(b'0') => {
                self.at += 1;
                match self.peek() {
                    // JSON has no leading zeros. Some languages read them as octal.
                    Some(b'0'..=b'9') => self.fault(JsonCode::Syntax),
                    _ => Ok(0),
                }
            }
            Some(b'1'..=b'9') => self.digits(),
            _ => self.not_a_number(start),
        }
    }

    fn digits(&mut self) -> ParseResult<i64> {
        let start = self.at;
        let mut sum = 0_i64;
        while let Some(digit @ b'0'..=b'9') = self.peek() {
            // The sum may wrap, because callers use it only for few digits.
            sum = sum.wrapping_mul(10).wrapping_add(i64::from(digit - b'0'));
            self.at += 1;
        }
        if self.at == start { self.fault(JsonCode::Syntax) } else { Ok(sum) }
    }
}

/// Returns whether a key that is not the same as another is so after NFC. Only keys that are not in NFC themselves
/// have a form to remember, so that next to nothing is computed for the others.
fn normal_form_is_taken(key: &str, members: &Map<String, Value>, normal_forms: &mut BTreeSet<String>) -> bool {
    if !normal_forms.is_empty() && normal_forms.contains(key) {
        return true;
    }
    if key.is_ascii() || is_nfc(key) {
        return false;
    }
    let normal: String = key.nfc().collect();
    members.contains_key(&normal) || !normal_forms.insert(normal)
}
