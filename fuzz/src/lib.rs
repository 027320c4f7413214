//! What must hold for every input, whoever made it: one module for each fuzz target.
//!
//! `tests/fuzz.rs` includes this file, so that the same functions run in `./test`, without libFuzzer.

pub mod differences;
pub mod episodes;
pub mod joins;
pub mod json;
pub mod judgements;
pub mod patches;
pub mod places;
pub mod policies;

use countersign_domain::json::parse::{ParseLimits, parse};
use serde_json::Value;

/// A line that stands between two parts of an input.
const BETWEEN: &[u8] = b"\n---\n";

/// The parts of an input that takes several.
fn parts(text: &[u8]) -> Vec<&[u8]> {
    let (mut parts, mut rest) = (Vec::new(), text);
    while let Some(at) = rest.windows(BETWEEN.len()).position(|it| it == BETWEEN) {
        parts.push(&rest[..at]);
        rest = &rest[at + BETWEEN.len()..];
    }
    parts.push(rest);
    parts
}

/// A part as a value; most inputs of a fuzzer have none.
fn value(part: Option<&&[u8]>) -> Option<Value> {
    parse(part?, &ParseLimits::default()).ok()
}
