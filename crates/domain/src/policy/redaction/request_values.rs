//! The values that the author of a request knows. These are the values that the author can read, and those that the
//! request sets, moves or copies.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::ComparedValues;
use crate::json::patch::{Patch, PatchFormat};
use crate::json::pointer::Pointer;
use crate::json::size::StateLimits;
use crate::policy::model::Policy;
use crate::policy::view::{distinct_views, project_any};
use crate::threads::tool_call::Tool;

/// Returns the part of a state and of the tool's arguments that the author of a text can read.
pub(super) fn readable<'s, 't>(
    policy: &Policy,
    compared: ComparedValues<'_>,
    state: &'s Value,
    tool: Option<&'t Tool>,
) -> (Cow<'s, Value>, Option<&'t Tool>) {
    match compared {
        ComparedValues::WithEvery => (Cow::Borrowed(state), tool),
        ComparedValues::WithReadable(nodes) => {
            (Cow::Owned(project_any([policy], nodes, state)), tool.filter(|_| !nodes.is_empty()))
        }
    }
}

/// Returns each value that a request sets, as a state that contains nothing else.
pub(super) fn put_by(format: PatchFormat, request: &Value) -> Vec<Value> {
    // A merge patch has the shape of a state, so the patterns apply to it directly.
    let PatchFormat::JsonPatch = format else { return vec![request.clone()] };
    let put = |step: &Value| {
        let path = Pointer::try_from(step.get("path")?.as_str()?).ok()?;
        let tokens: Vec<String> = path.tokens().map(Cow::into_owned).collect();
        let around = |value: Value, key: String| Value::Object(Map::from_iter([(key, value)]));
        Some(tokens.into_iter().rev().fold(step.get("value")?.clone(), around))
    };
    request.as_array().map(|steps| steps.iter().filter_map(put).collect()).unwrap_or_default()
}

/// Returns the results of a request that moves or copies values, on each state that its author can read. A value of
/// the request that ends at a redacted path is redacted in its steps. A request that does not apply, or whose result
/// is too large, has no results.
pub(super) fn moved_by(
    policy: &Policy,
    compared: ComparedValues<'_>,
    state: &Value,
    format: PatchFormat,
    request: &Value,
) -> Vec<Value> {
    // Merge patches can neither move nor copy.
    if format != PatchFormat::JsonPatch {
        return Vec::new();
    }
    let Some(patch) = Patch::read(format, request.clone()).ok().filter(Patch::moves_or_copies) else {
        return Vec::new();
    };
    let known = match compared {
        ComparedValues::WithEvery => vec![Cow::Borrowed(state)],
        // Not the union of the views: a test or an index of the request can depend on what one node does not read.
        ComparedValues::WithReadable(nodes) => {
            distinct_views(policy, nodes, state).into_iter().map(Cow::Owned).collect()
        }
    };
    known.iter().filter_map(|it| patch.apply(it, &StateLimits::default()).ok()).collect()
}

#[cfg(test)]
mod tests;
