//! Patches: the changes that a node requests, in one of three forms.
//!
//! A patch is read once, with every check that does not need the state. Its paths can then be listed without applying
//! it, so a request cannot probe values that its node may not read.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::pointer::Pointer;
use super::size::{POINTER_BYTES_MAX, SizeExceeded, StateLimits, ValueSize};

mod apply;
mod named_leaves;
mod operation;
mod touched_paths;

pub use named_leaves::{NamedChange, NamedLeaf};
use operation::Operation;
pub use operation::OperationError;
pub use touched_paths::{PathEffect, TouchedPath};

use crate::primitives::named_enum::named_json_enum;

#[cfg(test)]
mod tests;

/// Maximum number of operations of a JSON Patch. A node changes only a few values. Each operation on an array may
/// shift all of it, so the limit is far below the number of leaves.
pub const OPERATIONS_MAX: usize = 1_000;

named_json_enum! {
    /// The format of a patch.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
    #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
    #[cfg_attr(feature = "openapi", schema(as = PatchFormat))]
    pub enum PatchFormat {
        /// Top-level keys to new values, as graph nodes return them; null sets null.
        #[default]
        Merge = "merge",
        /// RFC 7396; null deletes.
        MergePatch = "merge-patch",
        /// RFC 6902.
        JsonPatch = "json-patch",
    }
}

#[derive(Clone, PartialEq, Debug)]
pub struct Patch(PatchBody);

#[derive(Clone, PartialEq, Debug)]
enum PatchBody {
    Merge(Map<String, Value>),
    MergePatch(Map<String, Value>),
    JsonPatch(Vec<Operation>),
}

/// Why a patch was rejected. Codes and texts contain no values.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PatchError {
    /// A merge form is an object.
    #[error("a patch of this format is a JSON object")]
    NotAnObject,
    /// A JSON Patch is an array.
    #[error("a JSON Patch is an array of operations")]
    NotAnArray,
    /// More than [`OPERATIONS_MAX`].
    #[error("a JSON Patch has at most {OPERATIONS_MAX} operations")]
    TooManyOperations,
    /// An operation that RFC 6902 does not allow.
    #[error("{why}")]
    Malformed { pointer: Pointer, why: OperationError },
    /// The operation needs a value at the path, or a container for it.
    #[error("the operation needs a value that does not exist")]
    NotFound { operation: usize, pointer: Pointer },
    /// The last token of the path is not an index of the array.
    #[error("the path does not name an item of that array")]
    BadIndex { operation: usize, pointer: Pointer },
    /// A `test` found another value.
    #[error("a test operation found another value")]
    TestFailed { operation: usize, pointer: Pointer },
    /// A `move` would put a value below itself.
    #[error("a value cannot be moved below itself")]
    MovedIntoItself { operation: usize, pointer: Pointer },
    /// A state is always an object.
    #[error("a state is a JSON object, and stays one")]
    StateNotAnObject {
        /// Index of the operation, for a JSON Patch.
        operation: Option<usize>,
    },
    /// The state would be too large, or the patch would copy too much.
    #[error("{reason}")]
    TooBig { reason: SizeExceeded },
}

impl PatchError {
    /// Returns the code in responses.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::NotAnObject => "patch_not_an_object",
            Self::NotAnArray => "patch_not_an_array",
            Self::TooManyOperations => "patch_too_many_operations",
            Self::Malformed { .. } => "patch_malformed",
            Self::NotFound { .. } => "patch_path_not_found",
            Self::BadIndex { .. } => "patch_bad_index",
            Self::TestFailed { .. } => "patch_test_failed",
            Self::MovedIntoItself { .. } => "patch_moved_into_itself",
            Self::StateNotAnObject { .. } => "patch_state_not_an_object",
            Self::TooBig { reason } => reason.code(),
        }
    }

    /// Returns the path of the error: in the patch if the patch is malformed, otherwise in the state. The root means
    /// the whole document.
    pub fn pointer(&self) -> Pointer {
        match self {
            Self::Malformed { pointer, .. }
            | Self::NotFound { pointer, .. }
            | Self::BadIndex { pointer, .. }
            | Self::TestFailed { pointer, .. }
            | Self::MovedIntoItself { pointer, .. } => pointer.clone(),
            Self::NotAnObject
            | Self::NotAnArray
            | Self::TooManyOperations
            | Self::StateNotAnObject { .. }
            | Self::TooBig { .. } => Pointer::root(),
        }
    }
}

impl Patch {
    /// Reads a patch. It returns every error that does not depend on the state.
    pub fn read(format: PatchFormat, request: Value) -> Result<Self, PatchError> {
        let form = match (format, request) {
            (PatchFormat::Merge, Value::Object(members)) => PatchBody::Merge(members),
            (PatchFormat::MergePatch, Value::Object(members)) => PatchBody::MergePatch(members),
            // RFC 7396 lets any other value replace the whole document, but a state is always an object.
            (PatchFormat::Merge | PatchFormat::MergePatch, _) => return Err(PatchError::NotAnObject),
            (PatchFormat::JsonPatch, Value::Array(items)) => PatchBody::JsonPatch(operation::read_all(items)?),
            (PatchFormat::JsonPatch, _) => return Err(PatchError::NotAnArray),
        };
        // Checked before the pointers exist, because building them takes the memory that the limit protects.
        if form.pointer_bytes() > POINTER_BYTES_MAX {
            return Err(PatchError::TooBig { reason: SizeExceeded::Pointers });
        }
        Ok(Self(form))
    }

    /// Returns the values that it writes.
    pub fn written(&self) -> Vec<&Value> {
        match &self.0 {
            PatchBody::Merge(members) | PatchBody::MergePatch(members) => members.values().collect(),
            PatchBody::JsonPatch(operations) => operations.iter().filter_map(Operation::value).collect(),
        }
    }

    /// Returns whether it copies values of the state. The new state may then be far larger than the old one and the
    /// patch.
    pub fn copies(&self) -> bool {
        matches!(&self.0, PatchBody::JsonPatch(operations) if operations.iter().any(|it| matches!(it, Operation::Copy { .. })))
    }

    /// Returns whether it moves or copies existing values.
    pub fn moves_or_copies(&self) -> bool {
        let is_taken = |it: &Operation| matches!(it, Operation::Move { .. } | Operation::Copy { .. });
        matches!(&self.0, PatchBody::JsonPatch(operations) if operations.iter().any(is_taken))
    }

    pub const fn format(&self) -> PatchFormat {
        match self.0 {
            PatchBody::Merge(_) => PatchFormat::Merge,
            PatchBody::MergePatch(_) => PatchFormat::MergePatch,
            PatchBody::JsonPatch(_) => PatchFormat::JsonPatch,
        }
    }

    /// Returns the state after the patch. Either the whole patch applies or none of it, and never beyond the limits.
    pub fn apply(&self, state: &Value, limits: &StateLimits) -> Result<Value, PatchError> {
        self.apply_and_measure(state, limits).map(|(after, _)| after)
    }

    /// Applies the patch and measures the result. The caller needs the size anyway, and measuring takes as long as
    /// applying.
    pub fn apply_and_measure(&self, state: &Value, limits: &StateLimits) -> Result<(Value, ValueSize), PatchError> {
        let Value::Object(members) = state else {
            return Err(PatchError::StateNotAnObject { operation: None });
        };
        let after = match &self.0 {
            PatchBody::Merge(request) => Value::Object(apply::merge(members, request)),
            PatchBody::MergePatch(request) => Value::Object(apply::merge_patch(members, request)),
            PatchBody::JsonPatch(operations) => apply::json_patch(state, operations, limits)?,
        };
        // Only the result shows its size, because a short patch can copy large parts of the state.
        let size = ValueSize::of(&after);
        limits.check_size(&size).map_err(|reason| PatchError::TooBig { reason })?;
        Ok((after, size))
    }
}

impl PatchBody {
    /// Returns the total length of the pointers that the patch names. The caller checks it before any pointer is
    /// built.
    fn pointer_bytes(&self) -> usize {
        match self {
            Self::Merge(members) | Self::MergePatch(members) => members
                .iter()
                .map(|(key, value)| ValueSize::below(value, super::pointer::token_len(key)).pointer_bytes)
                .sum(),
            Self::JsonPatch(operations) => operations.iter().map(Operation::pointer_bytes).sum(),
        }
    }
}
