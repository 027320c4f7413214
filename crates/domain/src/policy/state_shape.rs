//! Checks every state, whatever its policy: it is an object within the limits, and its keys are in NFC.

use serde_json::Value;
use unicode_normalization::is_nfc;

use super::judgement::{RejectCode, Violation};
use super::view::{ViewScope, project_by};
use crate::json::diff::{LeafChange, leaves};
use crate::json::pointer::Pointer;
use crate::json::size::{POINTER_BYTES_MAX, SizeExceeded, StateLimits, ValueSize};

const NOT_AN_OBJECT: &str = "the state must stay an object";
/// One sentence for bytes, leaves and keys. Which limit is exceeded may depend on values that the caller cannot read.
const TOO_LARGE: &str =
    "the state would exceed the limit of bytes or leaves: remove values, or store them outside the state";
const TOO_DEEP: &str = "the state would have too many levels: send a flatter value";
const NOT_NFC: &str = "a key must be in Unicode normal form C: normalize it";

/// The part of the state that a caller cannot read counts in steps of a 64th of the limit (16 KiB, 156 leaves).
/// Otherwise a caller could measure the exact size of the unreadable part by growing its own part until it is
/// rejected.
const HIDDEN_STEPS: usize = 64;

/// How much of a state's size may be revealed to the caller.
pub(super) enum StateVisibility<'s, S> {
    /// The caller sent the whole state.
    Whole,
    /// The caller can read a part of the state.
    Part(&'s S),
}

/// Checks the form, depth and size of the state after a request.
pub(super) fn check<S: ViewScope>(
    state: &Value,
    size: &ValueSize,
    limits: &StateLimits,
    seen: &StateVisibility<'_, S>,
) -> Option<Violation> {
    if !state.is_object() {
        return Some(not_an_object());
    }
    if size.depth > limits.depth_max {
        return Some(too_big(SizeExceeded::Depth));
    }
    let measures = |size: &ValueSize| [size.bytes, size.leaves, size.pointer_bytes];
    let maxima = [limits.bytes_max, limits.leaves_max, POINTER_BYTES_MAX];
    let mut counted = measures(size);
    // The projection of a large state is slow, and rounding matters only near a limit.
    let near = counted.iter().zip(maxima).any(|(all, max)| all.saturating_add(step(max)) > max);
    if let (StateVisibility::Part(scope), true) = (seen, near) {
        let known = measures(&ValueSize::of(&project_by(*scope, state)));
        for ((all, known), max) in counted.iter_mut().zip(known).zip(maxima) {
            *all = known.saturating_add(all.saturating_sub(known).div_ceil(step(max)).saturating_mul(step(max)));
        }
    }
    let over = counted.iter().zip(maxima).any(|(all, max)| *all > max);
    over.then(|| too_big(SizeExceeded::Bytes))
}

/// Returns the violation of a state that is not an object.
pub(super) const fn not_an_object() -> Violation {
    Violation::new(RejectCode::Schema, Pointer::root(), NOT_AN_OBJECT)
}

/// Returns the violation of a state that is too large.
pub(super) const fn too_big(reason: SizeExceeded) -> Violation {
    match reason {
        SizeExceeded::Depth => Violation::new(RejectCode::TooDeep, Pointer::root(), TOO_DEEP),
        SizeExceeded::Bytes | SizeExceeded::Leaves | SizeExceeded::Pointers => {
            Violation::new(RejectCode::TooLarge, Pointer::root(), TOO_LARGE)
        }
    }
}

fn step(max: usize) -> usize {
    // A configured limit below 64 would otherwise give a step of zero, and a division by it.
    (max / HIDDEN_STEPS).max(1)
}

/// Rejects new keys that are not in NFC. Two keys of one object that are equal after NFC could not be read back.
/// Rejecting only such duplicates would reveal a key that the caller cannot read.
pub(super) fn check_keys(changes: &[LeafChange]) -> Vec<Violation> {
    let new = changes.iter().filter(|change| change.after.is_some());
    new.map(|change| &change.pointer).filter(|pointer| is_odd(pointer)).map(odd_key).collect()
}

/// Checks every key of a state. The common case, in which every key is in NFC, builds no pointers.
pub(super) fn check_all_keys(state: &Value) -> Vec<Violation> {
    if keys_are_plain(state) {
        return Vec::new();
    }
    leaves(state).iter().map(|(pointer, _)| pointer).filter(|pointer| is_odd(pointer)).map(odd_key).collect()
}

fn keys_are_plain(value: &Value) -> bool {
    match value {
        Value::Object(members) => members.iter().all(|(key, value)| is_plain(key) && keys_are_plain(value)),
        Value::Array(items) => items.iter().all(keys_are_plain),
        _ => true,
    }
}

fn is_plain(key: &str) -> bool {
    // ASCII texts are always in NFC, and their check is faster.
    key.is_ascii() || is_nfc(key)
}

fn is_odd(pointer: &Pointer) -> bool {
    !pointer.tokens().all(|token| is_plain(&token))
}

fn odd_key(pointer: &Pointer) -> Violation {
    Violation::new(RejectCode::Encoding, pointer.clone(), NOT_NFC)
}
