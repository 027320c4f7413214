use proptest::prelude::*;
use serde_json::{Value, json};

use super::{LEAVES_MAX, POINTER_BYTES_MAX, STATE_DEPTH_CEILING, SizeExceeded, StateLimits, ValueSize};
use crate::json::canonical::canonical;
use crate::json::diff::{leaf_count, leaves};
use crate::json::samples::any_value;

fn nest(depth: usize) -> Value {
    (1..depth).fold(json!({}), |below, _| json!({"a": below}))
}

fn check(state: &Value) -> Result<(), SizeExceeded> {
    StateLimits::default().check(state)
}

#[test]
fn as_many_leaves_as_allowed_and_not_one_more() {
    let state = |count| json!({"a": vec![0; count]});
    assert_eq!(check(&state(LEAVES_MAX)), Ok(()));
    assert_eq!(check(&state(LEAVES_MAX + 1)), Err(SizeExceeded::Leaves));
}

#[test]
fn as_many_bytes_as_allowed_and_not_one_more() {
    let state = |count| json!({"a": "x".repeat(count)});
    assert_eq!(check(&state(1024 * 1024 - 8)), Ok(()));
    assert_eq!(check(&state(1024 * 1024 - 7)), Err(SizeExceeded::Bytes));
}

#[test]
fn as_many_levels_as_allowed_and_not_one_more() {
    assert_eq!(check(&nest(64)), Ok(()));
    assert_eq!(check(&nest(65)), Err(SizeExceeded::Depth));
    let deep = StateLimits { depth_max: usize::MAX, ..StateLimits::default() };
    assert_eq!(deep.check(&nest(STATE_DEPTH_CEILING)), Ok(()));
    assert_eq!(deep.check(&nest(STATE_DEPTH_CEILING + 1)), Err(SizeExceeded::Depth));
}

#[test]
fn a_long_key_above_many_leaves_is_too_much() {
    let state = |key_len| json!({"k".repeat(key_len): vec![0; LEAVES_MAX]});
    assert_eq!(check(&state(1_000)), Ok(()));
    assert_eq!(check(&state(POINTER_BYTES_MAX / LEAVES_MAX)), Err(SizeExceeded::Pointers));
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or(0),
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

proptest! {
    #[test]
    fn the_size_is_what_it_would_come_to(value in any_value()) {
        let value = json!({"a~/": value, "b": vec![Value::Null; 120]});
        let size = ValueSize::of(&value);
        prop_assert_eq!(size.bytes, canonical(&value).len());
        prop_assert_eq!(size.leaves, leaf_count(&value));
        prop_assert_eq!(size.depth, depth(&value));
        prop_assert_eq!(size.pointer_bytes, leaves(&value).iter().map(|(at, _)| at.as_str().len()).sum::<usize>());
    }
}
