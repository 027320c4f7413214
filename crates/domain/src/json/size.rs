//! Measures a value in one pass, before anything is built from it.

use serde_json::Value;

use super::canonical::{string_len, write_canonical};
use super::number::INTEGER_MAX;
use super::parse::{BYTES_MAX, DEPTH_CEILING, DEPTH_MAX};
use super::pointer::token_len;

#[cfg(test)]
mod tests;

/// Default limit of a state's leaves.
pub const LEAVES_MAX: usize = 10_000;

/// Total bytes of the pointers of all leaves. A diff names every leaf in full, so one long key above many leaves
/// costs their product: 1 MiB of text could need 100 GB of pointers. 10,000 leaves may have pointers of 1,600 bytes
/// each.
pub const POINTER_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Maximum of levels for requests and states in every configuration. Rows, deltas, openings and files wrap them and
/// must stay readable. An opening has two levels for each one, and the reader of rows stops at the 128th.
pub const STATE_DEPTH_CEILING: usize = DEPTH_CEILING / 2 - 8;

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ValueSize {
    /// Scalars, `{}` and `[]`.
    pub leaves: usize,
    /// Bytes of the canonical form.
    pub bytes: usize,
    /// Containers within each other.
    pub depth: usize,
    /// Bytes of the pointers of all leaves.
    pub pointer_bytes: usize,
}

/// Limits of a state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StateLimits {
    /// Bytes of the canonical form.
    pub bytes_max: usize,
    pub leaves_max: usize,
    /// Nested containers. Never more than [`STATE_DEPTH_CEILING`].
    pub depth_max: usize,
}

impl Default for StateLimits {
    fn default() -> Self {
        Self { bytes_max: BYTES_MAX, leaves_max: LEAVES_MAX, depth_max: DEPTH_MAX }
    }
}

/// The limit that a state exceeds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SizeExceeded {
    /// The canonical form is too long.
    #[error("the state would be longer than allowed")]
    Bytes,
    /// There are too many leaves.
    #[error("the state would have more leaves than allowed")]
    Leaves,
    /// There are too many nested containers.
    #[error("the state would have too many arrays and objects within each other")]
    Depth,
    /// There are too many leaves below long keys.
    #[error("the state would have too many leaves below long keys")]
    Pointers,
}

impl SizeExceeded {
    /// Returns the code in responses.
    pub const fn code(self) -> &'static str {
        match self {
            Self::Bytes => "state_too_large",
            Self::Leaves => "state_too_many_leaves",
            Self::Depth => "state_too_deep",
            Self::Pointers => "state_keys_too_long",
        }
    }
}

impl StateLimits {
    /// Returns whether a state stays within these.
    pub fn check(&self, state: &Value) -> Result<(), SizeExceeded> {
        self.check_size(&ValueSize::of(state))
    }

    /// Returns whether a state of this size stays within these.
    pub(super) fn check_size(&self, size: &ValueSize) -> Result<(), SizeExceeded> {
        self.check_depth(size.depth)?;
        if size.leaves > self.leaves_max {
            return Err(SizeExceeded::Leaves);
        }
        if size.bytes > self.bytes_max {
            return Err(SizeExceeded::Bytes);
        }
        if size.pointer_bytes > POINTER_BYTES_MAX {
            return Err(SizeExceeded::Pointers);
        }
        Ok(())
    }

    /// Returns whether a state may have so many levels.
    pub(super) fn check_depth(&self, depth: usize) -> Result<(), SizeExceeded> {
        if depth > self.depth_max.min(STATE_DEPTH_CEILING) { Err(SizeExceeded::Depth) } else { Ok(()) }
    }
}

impl ValueSize {
    /// Measures a value whose leaves' pointers begin at it.
    pub fn of(value: &Value) -> Self {
        Self::below(value, 0)
    }

    /// Returns the size of a value below a pointer of the given length in bytes.
    pub(super) fn below(value: &Value, pointer_len: usize) -> Self {
        let mut meter = SizeMeter { size: Self::default(), scratch: Vec::new() };
        meter.size.depth = meter.measure(value, pointer_len);
        meter.size
    }
}

struct SizeMeter {
    size: ValueSize,
    scratch: Vec<u8>,
}

impl SizeMeter {
    /// Adds a value, and gives its depth.
    fn measure(&mut self, value: &Value, pointer_len: usize) -> usize {
        match value {
            Value::Array(items) if !items.is_empty() => {
                // Two brackets, and a comma between any two.
                self.size.bytes += items.len() + 1;
                let mut depth = 0;
                for (index, item) in items.iter().enumerate() {
                    let token_len = 1 + digits(index as u64);
                    depth = depth.max(self.measure(item, pointer_len + token_len));
                }
                depth + 1
            }
            Value::Object(members) if !members.is_empty() => {
                self.size.bytes += members.len() + 1;
                let mut depth = 0;
                for (key, value) in members {
                    self.size.bytes += string_len(key) + 1;
                    depth = depth.max(self.measure(value, pointer_len + token_len(key)));
                }
                depth + 1
            }
            leaf => {
                self.size.leaves += 1;
                self.size.pointer_bytes += pointer_len;
                self.size.bytes += self.leaf_len(leaf);
                // An empty container is a leaf, but it is also a level.
                usize::from(matches!(leaf, Value::Array(_) | Value::Object(_)))
            }
        }
    }

    fn leaf_len(&mut self, leaf: &Value) -> usize {
        match leaf {
            Value::String(string) => string_len(string),
            Value::Array(_) | Value::Object(_) => 2,
            Value::Null | Value::Bool(true) => 4,
            Value::Bool(false) => 5,
            Value::Number(number) => match number.as_i64() {
                Some(integer) if integer.unsigned_abs() <= INTEGER_MAX => integer_len(integer),
                _ => {
                    // The length of a double follows only from its text, which reuses one buffer.
                    self.scratch.clear();
                    write_canonical(leaf, &mut self.scratch);
                    self.scratch.len()
                }
            },
        }
    }
}

/// Returns how long an integer is written.
fn integer_len(integer: i64) -> usize {
    usize::from(integer < 0) + digits(integer.unsigned_abs())
}

fn digits(number: u64) -> usize {
    1 + number.checked_ilog10().unwrap_or(0) as usize
}
