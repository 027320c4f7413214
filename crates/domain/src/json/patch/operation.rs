//! Reads the operations of RFC 6902 strictly.

use serde_json::{Map, Value};

use super::{OPERATIONS_MAX, PatchError};
use crate::json::pointer::Pointer;
use crate::json::size::ValueSize;

#[derive(Clone, PartialEq, Debug)]
pub(super) enum Operation {
    Add { path: Pointer, value: Value },
    Remove { path: Pointer },
    Replace { path: Pointer, value: Value },
    Move { from: Pointer, path: Pointer },
    Copy { from: Pointer, path: Pointer },
    Test { path: Pointer, value: Value },
}

/// Why an operation is invalid.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum OperationError {
    #[error("an operation is a JSON object")]
    NotAnObject,
    /// `op` is missing or unknown.
    #[error("op is one of add, remove, replace, move, copy and test")]
    Op,
    /// A member that the operation needs is missing.
    #[error("a member that this operation needs is missing")]
    Missing,
    /// `path` or `from` is not a JSON Pointer.
    #[error("path and from are JSON Pointers")]
    NotAPointer,
    /// A member that the operation does not have. RFC 6902 ignores it. Here it is an error, so that a mistake such as
    /// `form` for `from` is not signed.
    #[error("this operation has no such member")]
    Unknown,
}

pub(super) fn read_all(items: Vec<Value>) -> Result<Vec<Operation>, PatchError> {
    // Checked first, so that a huge list costs no further work.
    if items.len() > OPERATIONS_MAX {
        return Err(PatchError::TooManyOperations);
    }
    let read = |(index, item)| OperationReader::new(index, item)?.operation();
    items.into_iter().enumerate().map(read).collect()
}

impl Operation {
    pub(super) fn value(&self) -> Option<&Value> {
        match self {
            Self::Add { value, .. } | Self::Replace { value, .. } | Self::Test { value, .. } => Some(value),
            Self::Remove { .. } | Self::Move { .. } | Self::Copy { .. } => None,
        }
    }

    /// Returns the total length of the pointers that the operation names.
    pub(super) fn pointer_bytes(&self) -> usize {
        match self {
            Self::Add { path, value } | Self::Replace { path, value } => {
                ValueSize::below(value, path.as_str().len()).pointer_bytes
            }
            // The value of a test is compared but never listed, so only its path counts.
            Self::Remove { path } | Self::Test { path, .. } => path.as_str().len(),
            Self::Move { from, path } | Self::Copy { from, path } => from.as_str().len() + path.as_str().len(),
        }
    }
}

/// Reads the members of one operation, one after the other.
struct OperationReader {
    at: Pointer,
    members: Map<String, Value>,
}

impl OperationReader {
    fn new(index: usize, item: Value) -> Result<Self, PatchError> {
        let at = Pointer::root().index(index);
        match item {
            Value::Object(members) => Ok(Self { at, members }),
            _ => Err(PatchError::Malformed { pointer: at, why: OperationError::NotAnObject }),
        }
    }

    fn operation(mut self) -> Result<Operation, PatchError> {
        // Each known member is taken out, so a remaining member is unknown.
        let op = self.members.remove("op");
        let operation = match op.as_ref().and_then(Value::as_str) {
            Some("add") => Operation::Add { path: self.pointer("path")?, value: self.value()? },
            Some("remove") => Operation::Remove { path: self.pointer("path")? },
            Some("replace") => Operation::Replace { path: self.pointer("path")?, value: self.value()? },
            Some("move") => Operation::Move { from: self.pointer("from")?, path: self.pointer("path")? },
            Some("copy") => Operation::Copy { from: self.pointer("from")?, path: self.pointer("path")? },
            Some("test") => Operation::Test { path: self.pointer("path")?, value: self.value()? },
            _ => return Err(self.malformed("op", OperationError::Op)),
        };
        match self.members.keys().next() {
            Some(key) => Err(self.malformed(key, OperationError::Unknown)),
            None => Ok(operation),
        }
    }

    fn value(&mut self) -> Result<Value, PatchError> {
        self.members.remove("value").ok_or_else(|| self.malformed("value", OperationError::Missing))
    }

    fn pointer(&mut self, member: &str) -> Result<Pointer, PatchError> {
        match self.members.remove(member) {
            Some(Value::String(text)) => {
                Pointer::try_from(text).map_err(|_| self.malformed(member, OperationError::NotAPointer))
            }
            Some(_) => Err(self.malformed(member, OperationError::NotAPointer)),
            None => Err(self.malformed(member, OperationError::Missing)),
        }
    }

    fn malformed(&self, member: &str, why: OperationError) -> PatchError {
        PatchError::Malformed { pointer: self.at.child(member), why }
    }
}
