//! Applies redaction to the changes and values that pages, webhooks, events and errors show.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Redactor;
use crate::json::diff::{LeafChange, leaves};
use crate::json::pointer::Pointer;
use crate::policy::model::Policy;
use crate::primitives::id::NodeId;
use crate::threads::tool_call::Tool;

use crate::policy::view::project;

/// A change, with redaction applied.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(untagged, deny_unknown_fields)]
pub enum RedactedChange {
    /// A redacted value at or below the pointer changed.
    Hidden {
        /// The JSON Pointer where the redacted part begins. Names below it are not shown.
        pointer: Pointer,
        /// Always true. It distinguishes the two forms.
        #[cfg_attr(feature = "openapi", schema(value_type = bool))]
        hidden: ConstTrue,
        /// The effect on the leaves below.
        effect: RedactedChangeKind,
    },
    /// A changed leaf that is not redacted. An absent side is left out. Null is a value.
    Shown {
        /// The JSON Pointer of the value.
        pointer: Pointer,
        /// The value before the change.
        #[serde(skip_serializing_if = "Option::is_none", default, deserialize_with = "present")]
        before: Option<Value>,
        /// The value after the change.
        #[serde(skip_serializing_if = "Option::is_none", default, deserialize_with = "present")]
        after: Option<Value>,
    },
}

/// The constant `true`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(try_from = "bool", into = "bool")]
pub struct ConstTrue;

impl From<ConstTrue> for bool {
    fn from(_: ConstTrue) -> bool {
        true
    }
}

impl TryFrom<bool> for ConstTrue {
    type Error = &'static str;
    fn try_from(value: bool) -> Result<Self, Self::Error> {
        if value { Ok(Self) } else { Err("`hidden` is true or left out") }
    }
}

fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    // By default, serde would read null as an absent side.
    Value::deserialize(deserializer).map(Some)
}

/// The effect on the changed leaves of a redacted value.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum RedactedChangeKind {
    /// All of them are new.
    Added,
    /// All of them are removed.
    Removed,
    /// Anything else. Also if the request set one of them without reading it, even if the value stays the same.
    Changed,
}

/// A leaf of a state, with redaction applied.
#[derive(Clone, PartialEq, Debug)]
pub enum RedactedLeaf {
    /// A redacted value is at or below the pointer.
    Hidden {
        /// Start of the redacted part.
        pointer: Pointer,
    },
    /// A leaf that is not redacted.
    Shown {
        /// The JSON Pointer of the value.
        pointer: Pointer,
        value: Value,
    },
}

/// Returns the changes with redaction applied. Changes below one redacted prefix become one line.
pub fn redacted(hiding: &Redactor<'_>, changes: &[LeafChange]) -> Vec<RedactedChange> {
    redacted_by(std::slice::from_ref(hiding), changes, [])
}

/// Does the same with several redactors. A value is redacted if any of them redacts it.
///
/// A redacted path among `named`, the paths that a request set without reading them, has the same line whether or not
/// its value differs. A missing line would confirm a guess.
pub fn redacted_by<'n>(
    hidings: &[Redactor<'_>],
    changes: &[LeafChange],
    named: impl IntoIterator<Item = &'n Pointer>,
) -> Vec<RedactedChange> {
    let named: BTreeSet<Pointer> = named.into_iter().filter_map(|it| redacted_prefix(hidings, it)).collect();
    let mut lines: Vec<RedactedChange> = Vec::with_capacity(changes.len() + named.len());
    for change in changes {
        let Some(cut) = redacted_prefix(hidings, &change.pointer) else {
            let LeafChange { pointer, before, after } = change.clone();
            lines.push(RedactedChange::Shown { pointer, before, after });
            continue;
        };
        // The line of this path is added below, the same whether or not a value differs.
        if named.contains(&cut) {
            continue;
        }
        let this = match (&change.before, &change.after) {
            (None, _) => RedactedChangeKind::Added,
            (_, None) => RedactedChangeKind::Removed,
            _ => RedactedChangeKind::Changed,
        };
        // Changes are in tree order, so the changes below one prefix are adjacent.
        match lines.last_mut() {
            Some(RedactedChange::Hidden { pointer, effect, .. }) if *pointer == cut => {
                if *effect != this {
                    *effect = RedactedChangeKind::Changed;
                }
            }
            _ => lines.push(RedactedChange::Hidden { pointer: cut, hidden: ConstTrue, effect: this }),
        }
    }
    if !named.is_empty() {
        let effect = RedactedChangeKind::Changed;
        lines.extend(named.into_iter().map(|pointer| RedactedChange::Hidden { pointer, hidden: ConstTrue, effect }));
        // The order does not depend on which values differ either.
        lines.sort_by_cached_key(tree_order);
    }
    lines
}

/// Returns the start of the redacted part of a pointer, if any redactor redacts it.
fn redacted_prefix(hidings: &[Redactor<'_>], pointer: &Pointer) -> Option<Pointer> {
    let cuts = hidings.iter().filter(|it| it.hides(pointer)).map(|it| it.cut(pointer));
    // The shortest path redacts everything that any of the redactors redacts.
    cuts.min_by_key(|it| it.as_str().len())
}

/// Returns a sort key with `/items/2` before `/items/10`.
fn tree_order(change: &RedactedChange) -> Vec<(u64, String)> {
    let (RedactedChange::Hidden { pointer, .. } | RedactedChange::Shown { pointer, .. }) = change;
    pointer.tokens().map(|it| (it.parse().unwrap_or(u64::MAX), it.into_owned())).collect()
}

/// Returns the leaves that `node` will read, for reviewers to check before they approve.
pub fn readable_leaves(policy: &Policy, hidings: &[Redactor<'_>], node: &NodeId, state: &Value) -> Vec<RedactedLeaf> {
    shown(hidings, &project(policy, node, state))
}

/// Returns the arguments of a tool call as leaves. Paths of `[tools] hide`, values that are redacted in the states,
/// and matches of the detectors are redacted.
pub fn shown_arguments(hiding: &Redactor<'_>, tool: &Tool) -> Vec<RedactedLeaf> {
    shown_arguments_by(std::slice::from_ref(hiding), tool)
}

/// Does the same with several redactors. A value is redacted if any of them redacts it.
pub fn shown_arguments_by(hidings: &[Redactor<'_>], tool: &Tool) -> Vec<RedactedLeaf> {
    let arguments = Value::Object(tool.arguments.clone());
    let hidings: Vec<Redactor<'_>> = hidings.iter().map(|it| it.of_arguments(&arguments)).collect();
    shown(&hidings, &arguments)
}

/// Returns the leaves of a value that another author wrote, with the redaction of all redactors.
pub fn shown_leaves(hidings: &[Redactor<'_>], value: &Value) -> Vec<RedactedLeaf> {
    shown(hidings, value)
}

fn shown(hidings: &[Redactor<'_>], value: &Value) -> Vec<RedactedLeaf> {
    let mut lines: Vec<RedactedLeaf> = Vec::new();
    for (pointer, value) in leaves(value) {
        let cuts = hidings.iter().filter(|it| it.hides(&pointer)).map(|it| it.cut(&pointer));
        let Some(cut) = cuts.min_by_key(|it| it.as_str().len()) else {
            lines.push(RedactedLeaf::Shown { pointer, value: value.clone() });
            continue;
        };
        let line = RedactedLeaf::Hidden { pointer: cut };
        // Leaves are in tree order, so the leaves below one prefix are adjacent.
        if lines.last() != Some(&line) {
            lines.push(line);
        }
    }
    lines
}
