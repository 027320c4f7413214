//! Writes the canonical form (RFC 8785), which is hashed, signed and stored.

use std::io::Write as _;

use serde::Serialize;
use serde_json::{Map, Number, Value};

use super::number::INTEGER_MAX;

#[cfg(test)]
mod tests;

/// Initial capacity for a leaf or a small document.
const CAPACITY: usize = 256;

/// Initial capacity for a signed document.
const SORTED_CAPACITY: usize = 1024;

/// Returns the canonical text of a value.
pub fn canonical(value: &Value) -> String {
    let mut text = Vec::with_capacity(CAPACITY);
    write_canonical(value, &mut text);
    String::from_utf8(text).expect("it is made of strings and ASCII")
}

/// Returns the canonical text of a struct whose members are declared in the order of their names. The struct may
/// contain only texts, booleans and integers. Serde then writes the canonical form directly, without an intermediate
/// value.
pub fn canonical_of_sorted(sorted: &impl Serialize) -> String {
    let mut text = Vec::with_capacity(SORTED_CAPACITY);
    serde_json::to_writer(&mut text, sorted).expect("a plain struct with text keys");
    // The compiler cannot check the order of the fields, so debug builds compare both forms.
    debug_assert_eq!(
        serde_json::to_value(sorted).map(|it| canonical(&it)).ok().as_deref(),
        std::str::from_utf8(&text).ok()
    );
    String::from_utf8(text).expect("serde writes UTF-8")
}

/// Appends the canonical text of a value.
pub fn write_canonical(value: &Value, text: &mut Vec<u8>) {
    match value {
        Value::Null => text.extend_from_slice(b"null"),
        Value::Bool(true) => text.extend_from_slice(b"true"),
        Value::Bool(false) => text.extend_from_slice(b"false"),
        Value::Number(number) => write_number(number, text),
        Value::String(string) => write_string(string, text),
        Value::Array(items) => {
            text.push(b'[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    text.push(b',');
                }
                write_canonical(item, text);
            }
            text.push(b']');
        }
        Value::Object(members) => write_object(members, text),
    }
}

fn write_object(members: &Map<String, Value>, text: &mut Vec<u8>) {
    text.push(b'{');
    // The map is already sorted by byte, so most objects need no second sort.
    if members.keys().any(|key| sorts_differently_in_utf16(key)) {
        let mut sorted: Vec<_> = members.iter().collect();
        sorted.sort_by(|(a, _), (b, _)| a.encode_utf16().cmp(b.encode_utf16()));
        write_members(sorted.into_iter(), text);
    } else {
        write_members(members.iter(), text);
    }
    text.push(b'}');
}

fn write_members<'v>(members: impl Iterator<Item = (&'v String, &'v Value)>, text: &mut Vec<u8>) {
    for (index, (key, value)) in members.enumerate() {
        if index > 0 {
            text.push(b',');
        }
        write_string(key, text);
        text.push(b':');
        write_canonical(value, text);
    }
}

/// RFC 8785 sorts keys by UTF-16 unit, and the map sorts them by byte. The orders differ only for characters that
/// UTF-16 writes as surrogates. Those take four bytes in UTF-8.
fn sorts_differently_in_utf16(key: &str) -> bool {
    key.bytes().any(|it| it >= 0xF0)
}

fn write_number(number: &Number, text: &mut Vec<u8>) {
    // RFC 8785 writes every number as a double, and larger integers are not exact as doubles.
    let integer = number.as_i64().filter(|it| it.unsigned_abs() <= INTEGER_MAX);
    let written = match (integer, number.as_f64()) {
        (Some(integer), _) => write!(text, "{integer}"),
        (None, Some(double)) => text.write_all(ryu_js::Buffer::new().format_finite(double).as_bytes()),
        // Only numbers of arbitrary precision have no double, and that feature is off (a test says so).
        (None, None) => write!(text, "{number}"),
    };
    written.expect("writing to memory cannot fail");
}

/// Appends a string in quotes, escaped by RFC 8785.
pub fn write_string(string: &str, text: &mut Vec<u8>) {
    text.push(b'"');
    let mut rest = string.as_bytes();
    while let Some(at) = rest.iter().position(|it| needs_escape(*it)) {
        text.extend_from_slice(&rest[..at]);
        write_escape(rest[at], text);
        rest = &rest[at + 1..];
    }
    text.extend_from_slice(rest);
    text.push(b'"');
}

const fn needs_escape(byte: u8) -> bool {
    matches!(byte, b'"' | b'\\' | 0..=0x1F)
}

fn write_escape(byte: u8, text: &mut Vec<u8>) {
    // RFC 8785 prescribes lower case.
    const HEX: &[u8; 16] = b"0123456789abcdef";
    // RFC 8785 prescribes the short escape if JSON has one.
    match short_escape(byte) {
        Some(letter) => text.extend_from_slice(&[b'\\', letter]),
        None => {
            let (high, low) = (HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]);
            text.extend_from_slice(&[b'\\', b'u', b'0', b'0', high, low]);
        }
    }
}

const fn short_escape(byte: u8) -> Option<u8> {
    match byte {
        b'"' | b'\\' => Some(byte),
        0x08 => Some(b'b'),
        b'\t' => Some(b't'),
        b'\n' => Some(b'n'),
        0x0C => Some(b'f'),
        b'\r' => Some(b'r'),
        _ => None,
    }
}

/// Returns how long [`write_string`] writes a string.
pub(super) fn string_len(string: &str) -> usize {
    // Without a branch, the compiler checks many bytes at once. Few strings need an escape.
    if !string.bytes().fold(false, |found, it| found | needs_escape(it)) {
        return 2 + string.len();
    }
    let escapes = string.bytes().filter(|it| needs_escape(*it));
    // The character itself is counted below, so only the added characters are summed.
    let extra: usize = escapes.map(|it| if short_escape(it).is_some() { 1 } else { 5 }).sum();
    2 + string.len() + extra
}
