//! What every state must be, whatever its policy says: an object within limits, its keys in one spelling.

use serde_json::Value;
use unicode_normalization::is_nfc;

use super::judgement::{RejectCode, Violation};
use super::view::{ViewScope, project_by};
use crate::domain::json::diff::{LeafChange, leaves};
use crate::domain::json::pointer::Pointer;
use crate::domain::json::size::{POINTER_BYTES_MAX, SizeExceeded, StateLimits, ValueSize};

const NOT_AN_OBJECT: &str = "the state must stay an object";
/// One sentence for bytes, leaves and keys: which of them it is may depend on what an asker cannot see.
const TOO_LARGE: &str = "the state would have more bytes or leaves than it may: remove something, or keep it elsewhere";
const TOO_DEEP: &str = "the state would have more levels than it may: send it flatter";
const NOT_NFC: &str = "a key must be in Unicode normal form C, so that no two keys look alike: normalise it";

/// What one asker cannot see counts in steps of a 64th of the limit (16 KiB, 156 leaves). Otherwise whoever may write
/// something could find the exact size of what it may not read by growing its own part until it is refused.
const HIDDEN_STEPS: usize = 64;

/// What of a state's size may be told to whom.
pub(super) enum StateVisibility<'s, S> {
    /// The asker sent all of it.
    Whole,
    /// An asker who knows a part of it.
    Part(&'s S),
}

/// Checks form, depth and size of a state that a request leads to.
pub(super) fn check<S: ViewScope>(
    (state, size): (&Value, &ValueSize),
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

/// What is said of a state that is no object.
pub(super) const fn not_an_object() -> Violation {
    Violation::new(RejectCode::Schema, Pointer::root(), NOT_AN_OBJECT)
}

/// What is said of a state that is too big.
pub(super) const fn too_big(reason: SizeExceeded) -> Violation {
    match reason {
        SizeExceeded::Depth => Violation::new(RejectCode::TooDeep, Pointer::root(), TOO_DEEP),
        SizeExceeded::Bytes | SizeExceeded::Leaves | SizeExceeded::Pointers => {
            Violation::new(RejectCode::TooLarge, Pointer::root(), TOO_LARGE)
        }
    }
}

fn step(max: usize) -> usize {
    (max / HIDDEN_STEPS).max(1)
}

/// Refuses new keys that are not in NFC. Two keys of one object that are equal after NFC could not be read back;
/// and to refuse only those would tell an asker that such a key exists where it may not look.
pub(super) fn check_keys(changes: &[LeafChange]) -> Vec<Violation> {
    let new = changes.iter().filter(|change| change.after.is_some());
    new.map(|change| &change.pointer).filter(|pointer| is_odd(pointer)).map(odd_key).collect()
}

/// The same for every key of a state. That nearly every state is in order is seen without naming its places.
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
    key.is_ascii() || is_nfc(key)
}

fn is_odd(pointer: &Pointer) -> bool {
    !pointer.tokens().all(|token| is_plain(&token))
}

fn odd_key(pointer: &Pointer) -> Violation {
    Violation::new(RejectCode::Encoding, pointer.clone(), NOT_NFC)
}
