//! The strict parser, the canonical form, sizes and leaves.

use countersign::domain::json::canonical::canonical;
use countersign::domain::json::diff::{leaf_count, leaves};
use countersign::domain::json::number::normalise;
use countersign::domain::json::parse::{JsonCode, JsonError, Limits, parse};
use countersign::domain::json::pointer::Pointer;
use countersign::domain::json::size::Size;
use serde_json::Value;

/// What is read is read as `serde_json` reads it, and stays what it is; what is refused is refused for a reason.
pub fn check(text: &[u8]) {
    let theirs = serde_json::from_slice::<Value>(text);
    match (parse(text, &Limits::default()), theirs) {
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
    let roomy = Limits { bytes_max: usize::MAX, ..Limits::default() };
    let written = canonical(value);
    let again = parse(written.as_bytes(), &roomy).expect("the canonical form is read");
    assert_eq!(again, *value, "the canonical form means something else");
    assert_eq!(canonical(&again), written, "the canonical form is not the last one");
    let size = Size::of(value);
    assert_eq!(size.bytes, written.len());
    assert_eq!(size.leaves, leaf_count(value));
    let places = leaves(value);
    assert_eq!(size.leaves, places.len());
    assert_eq!(size.pointer_bytes, places.iter().map(|(pointer, _)| pointer.as_str().len()).sum::<usize>());
    for (pointer, leaf) in &places {
        assert_eq!(pointer.resolve(value), Some(*leaf), "{pointer}");
    }
    let code = |limits: Limits| parse(text, &limits).map_err(|error| error.code);
    assert_eq!(code(Limits { depth_max: size.depth, ..roomy }).as_ref(), Ok(value));
    if let Some(depth_max) = size.depth.checked_sub(1) {
        assert_eq!(code(Limits { depth_max, ..roomy }), Err(JsonCode::TooDeep));
    }
    assert_eq!(code(Limits { bytes_max: text.len() - 1, ..roomy }), Err(JsonCode::TooLarge));
    let spaced = [b" \n", text, b"\t\r"].concat();
    assert_eq!(parse(&spaced, &roomy).as_ref(), Ok(value), "spaces around it mean something");
    let twice = [text, b" ", text].concat();
    assert!(parse(&twice, &roomy).is_err(), "what stands after a value is read past");
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
