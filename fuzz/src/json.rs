//! The strict parser, the canonical form, sizes and leaves.

use countersign_domain::json::canonical::canonical;
use countersign_domain::json::diff::{leaf_count, leaves};
use countersign_domain::json::number::normalise;
use countersign_domain::json::parse::{JsonCode, JsonError, ParseLimits, parse};
use countersign_domain::json::pointer::Pointer;
use countersign_domain::json::size::ValueSize;
use serde_json::Value;

/// What is read is read as `serde_json` reads it, and stays what it is; what is refused is refused for a reason.
pub fn check(text: &[u8]) {
    let theirs = serde_json::from_slice::<Value>(text);
    match (parse(text, &ParseLimits::default()), theirs) {
        (Ok(value), Ok(mut theirs)) => {
            normalise(&mut theirs);
            assert_eq!(value, theirs, "read otherwise than serde_json reads it");
            accepted(text, &value);
        }
        (Ok(_), Err(error)) => panic!("accepted, and no JSON: {error}"),
        (Err(error), theirs) => refused(text, &error, theirs.is_ok()),
    }
}

fn accepted(text: &[u8], value: &Value) {
    // Numbers grow when they are written out.
    let roomy = ParseLimits { bytes_max: usize::MAX, ..ParseLimits::default() };
    let written = canonical(value);
    let again = parse(written.as_bytes(), &roomy).expect("the canonical form is read");
    assert_eq!(again, *value, "the canonical form means something else");
    assert_eq!(canonical(&again), written, "the canonical form is not the last one");
    assert_eq!(
        TextTokens::in_text(text),
        TextTokens::in_text(written.as_bytes()),
        "a member is lost, or a number is another"
    );
    let size = ValueSize::of(value);
    assert_eq!(size.bytes, written.len());
    assert_eq!(size.leaves, leaf_count(value));
    let places = leaves(value);
    assert_eq!(size.leaves, places.len());
    assert_eq!(size.pointer_bytes, places.iter().map(|(pointer, _)| pointer.as_str().len()).sum::<usize>());
    for (pointer, leaf) in &places {
        assert_eq!(pointer.resolve(value), Some(*leaf), "{pointer}");
    }
    let code = |limits: ParseLimits| parse(text, &limits).map_err(|error| error.code);
    assert_eq!(code(ParseLimits { depth_max: size.depth, ..roomy }).as_ref(), Ok(value));
    if let Some(depth_max) = size.depth.checked_sub(1) {
        assert_eq!(code(ParseLimits { depth_max, ..roomy }), Err(JsonCode::TooDeep));
    }
    assert_eq!(code(ParseLimits { bytes_max: text.len() - 1, ..roomy }), Err(JsonCode::TooLarge));
    let spaced = [b" \n", text, b"\t\r"].concat();
    assert_eq!(parse(&spaced, &roomy).as_ref(), Ok(value), "spaces around it mean something");
    let twice = [text, b" ", text].concat();
    assert!(parse(&twice, &roomy).is_err(), "what stands after a value is read past");
}

/// What a text has outside of its strings, in no order: two equal keys would be one fewer member of the value, and a
/// number that no double says back would be another number.
#[derive(PartialEq, Eq, Debug, Default)]
struct TextTokens {
    members: usize,
    numbers: Vec<DecimalParts>,
}

/// Sign, digits without zeros around them, and the power of ten of the last one.
type DecimalParts = (bool, String, i64);

impl TextTokens {
    fn in_text(text: &[u8]) -> Self {
        let (mut spelled, mut at) = (Self::default(), 0);
        while let Some(byte) = text.get(at) {
            let length = match byte {
                b'"' => string_len(&text[at..]),
                b'-' | b'0'..=b'9' => {
                    let of_a_number = |it: &&u8| matches!(it, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E');
                    let length = text[at..].iter().take_while(of_a_number).count();
                    spelled.numbers.push(decimal(std::str::from_utf8(&text[at..at + length]).expect("ASCII")));
                    length
                }
                byte => {
                    spelled.members += usize::from(*byte == b':');
                    1
                }
            };
            at += length;
        }
        spelled.numbers.sort();
        spelled
    }
}

fn string_len(text: &[u8]) -> usize {
    let mut at = 1;
    while text[at] != b'"' {
        at += if text[at] == b'\\' { 2 } else { 1 };
    }
    at + 1
}

fn decimal(text: &str) -> DecimalParts {
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all = [whole.trim_start_matches('-'), fraction].concat();
    let digits = all.trim_matches('0');
    if digits.is_empty() {
        return (false, String::new(), 0);
    }
    let exponent: i64 = exponent.parse().expect("what is no zero is near one");
    let length = |it: &str| i64::try_from(it.len()).expect("a text of a fuzzer is short");
    let zeros_after = length(&all) - length(all.trim_end_matches('0'));
    (text.starts_with('-'), digits.to_owned(), exponent - length(fraction) + zeros_after)
}

fn refused(text: &[u8], error: &JsonError, is_json: bool) {
    let stricter = matches!(
        error.code,
        JsonCode::DuplicateKey | JsonCode::NumberNotExact | JsonCode::TooDeep | JsonCode::TooLarge
    );
    assert!(stricter || !is_json, "refused, and JSON: {error:?}");
    assert!(error.offset.is_none_or(|at| at <= text.len()), "{error:?}");
    assert_eq!(Pointer::try_from(error.pointer.as_str()).as_ref(), Ok(&error.pointer));
    assert_eq!(error.to_string(), error.code.detail(), "a text of its own could quote what was sent");
}
