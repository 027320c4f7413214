//! Applies patches.

use serde_json::{Map, Value};

use super::PatchError;
use super::operation::Operation;
use crate::json::pointer::{Pointer, array_index};
use crate::json::size::{SizeExceeded, StateLimits, ValueSize};

pub(super) fn merge(members: &Map<String, Value>, request: &Map<String, Value>) -> Map<String, Value> {
    let mut after = members.clone();
    after.extend(request.iter().map(|(key, value)| (key.clone(), value.clone())));
    after
}

pub(super) fn merge_patch(members: &Map<String, Value>, request: &Map<String, Value>) -> Map<String, Value> {
    let mut after = members.clone();
    merge_into(&mut after, request);
    after
}

/// Applies a merge patch (RFC 7396, section 2).
fn merge_into(members: &mut Map<String, Value>, request: &Map<String, Value>) {
    for (key, value) in request {
        match value {
            Value::Null => _ = members.remove(key),
            Value::Object(below) => {
                let place = members.entry(key.as_str()).or_insert(Value::Null);
                // RFC 7396 replaces any other value by an object before it merges.
                if !place.is_object() {
                    *place = Value::Object(Map::new());
                }
                if let Value::Object(members) = place {
                    merge_into(members, below);
                }
            }
            value => _ = members.insert(key.clone(), value.clone()),
        }
    }
}

pub(super) fn json_patch(state: &Value, operations: &[Operation], limits: &StateLimits) -> Result<Value, PatchError> {
    // Operations change a copy, so a failure in the middle leaves the state as it was.
    let mut run = PatchApplication { state: state.clone(), limits, copied: ValueSize::default() };
    for (index, operation) in operations.iter().enumerate() {
        run.operate(operation).map_err(|fault| fault.into_error(index, operation))?;
    }
    Ok(run.state)
}

/// Why an operation failed, without its index.
enum PatchFailure {
    NotFound,
    BadIndex,
    TestFailed,
    MovedIntoItself,
    StateNotAnObject,
    TooBig(SizeExceeded),
}

impl PatchFailure {
    fn into_error(self, operation: usize, failed: &Operation) -> PatchError {
        let pointer = match failed {
            Operation::Add { path, .. }
            | Operation::Remove { path }
            | Operation::Replace { path, .. }
            | Operation::Move { path, .. }
            | Operation::Copy { path, .. }
            | Operation::Test { path, .. } => path.clone(),
        };
        match self {
            Self::NotFound => PatchError::NotFound { operation, pointer },
            Self::BadIndex => PatchError::BadIndex { operation, pointer },
            Self::TestFailed => PatchError::TestFailed { operation, pointer },
            Self::MovedIntoItself => PatchError::MovedIntoItself { operation, pointer },
            Self::StateNotAnObject => PatchError::StateNotAnObject { operation: Some(operation) },
            Self::TooBig(reason) => PatchError::TooBig { reason },
        }
    }
}

struct PatchApplication<'l> {
    state: Value,
    limits: &'l StateLimits,
    copied: ValueSize,
}

impl PatchApplication<'_> {
    fn operate(&mut self, operation: &Operation) -> Result<(), PatchFailure> {
        match operation {
            Operation::Add { path, value } => {
                self.check_depth(path, ValueSize::of(value).depth)?;
                self.add(path, value.clone())
            }
            Operation::Remove { path } => self.take(path).map(drop),
            Operation::Replace { path, value } => {
                self.check_depth(path, ValueSize::of(value).depth)?;
                // RFC 6902 lets `replace` create nothing, unlike `add`.
                let place = path.resolve_mut(&mut self.state).ok_or(PatchFailure::NotFound)?;
                if path.is_root() && !value.is_object() {
                    return Err(PatchFailure::StateNotAnObject);
                }
                *place = value.clone();
                Ok(())
            }
            Operation::Move { from, path } => self.shift(from, path),
            Operation::Copy { from, path } => {
                self.charge(from, path)?;
                let value = from.resolve(&self.state).ok_or(PatchFailure::NotFound)?.clone();
                self.add(path, value)
            }
            Operation::Test { path, value } => match path.resolve(&self.state) {
                None => Err(PatchFailure::NotFound),
                Some(found) if found == value => Ok(()),
                Some(_) => Err(PatchFailure::TestFailed),
            },
        }
    }

    fn shift(&mut self, from: &Pointer, path: &Pointer) -> Result<(), PatchFailure> {
        // The value must exist even though the move changes nothing.
        if from == path {
            return from.resolve(&self.state).map(|_| ()).ok_or(PatchFailure::NotFound);
        }
        // RFC 6902 forbids this, because the target disappears with the value.
        if from.covers(path) {
            return Err(PatchFailure::MovedIntoItself);
        }
        // A value can make the state deeper only if it moves down. Measuring its depth costs as much as a copy.
        if path.tokens().count() > from.tokens().count() {
            self.charge(from, path)?;
        }
        // RFC 6902 resolves the target in the state without the moved value.
        let value = self.take(from)?;
        self.add(path, value)
    }

    /// Counts the copied parts. All copies of a patch together stay within the limits of one state, so that repeated
    /// doubling ends before it is expensive. A normal patch never reaches this limit.
    fn charge(&mut self, from: &Pointer, path: &Pointer) -> Result<(), PatchFailure> {
        let size = ValueSize::of(from.resolve(&self.state).ok_or(PatchFailure::NotFound)?);
        self.copied.bytes += size.bytes;
        self.copied.leaves += size.leaves;
        if self.copied.bytes > self.limits.bytes_max {
            return Err(PatchFailure::TooBig(SizeExceeded::Bytes));
        }
        if self.copied.leaves > self.limits.leaves_max {
            return Err(PatchFailure::TooBig(SizeExceeded::Leaves));
        }
        self.check_depth(path, size.depth)
    }

    /// Checks the depth at every step, because a copy can double it and recursion follows it.
    fn check_depth(&self, path: &Pointer, depth: usize) -> Result<(), PatchFailure> {
        self.limits.check_depth(path.tokens().count() + depth).map_err(PatchFailure::TooBig)
    }

    fn add(&mut self, path: &Pointer, value: Value) -> Result<(), PatchFailure> {
        let Some((parent, token)) = path.split_last() else {
            if !value.is_object() {
                return Err(PatchFailure::StateNotAnObject);
            }
            self.state = value;
            return Ok(());
        };
        match parent.resolve_mut(&mut self.state) {
            Some(Value::Object(members)) => {
                members.insert(token.into_owned(), value);
                Ok(())
            }
            Some(Value::Array(items)) => {
                let index = if token == "-" { Some(items.len()) } else { array_index(&token) };
                let index = index.filter(|it| *it <= items.len()).ok_or(PatchFailure::BadIndex)?;
                items.insert(index, value);
                Ok(())
            }
            _ => Err(PatchFailure::NotFound),
        }
    }

    fn take(&mut self, path: &Pointer) -> Result<Value, PatchFailure> {
        // Removing the root would leave no state.
        let (parent, token) = path.split_last().ok_or(PatchFailure::StateNotAnObject)?;
        match parent.resolve_mut(&mut self.state) {
            Some(Value::Object(members)) => members.remove(token.as_ref()).ok_or(PatchFailure::NotFound),
            // Not `BadIndex`: the request may not learn that the value is an array.
            Some(Value::Array(items)) => {
                let index = array_index(&token).filter(|it| *it < items.len()).ok_or(PatchFailure::NotFound)?;
                Ok(items.remove(index))
            }
            _ => Err(PatchFailure::NotFound),
        }
    }
}
