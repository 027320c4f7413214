//! What pages, webhooks, events and errors show: nothing at or below what the policy hides.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Redactor;
use crate::domain::json::diff::{LeafChange, leaves};
use crate::domain::json::pointer::Pointer;
use crate::domain::policy::model::Policy;
use crate::domain::primitives::id::NodeId;
use crate::domain::threads::tool_call::Tool;

use crate::domain::policy::view::project;

/// A change, with redaction applied.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(untagged, deny_unknown_fields)]
pub enum RedactedChange {
    /// A redacted value at or below the pointer changed.
    Hidden {
        /// The JSON Pointer where the redacted part begins. Names below it are not shown.
        pointer: Pointer,
        /// Always true. It distinguishes the two forms.
        #[schema(value_type = bool)]
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
    Value::deserialize(deserializer).map(Some)
}

/// The effect on the changed leaves of a redacted value.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum RedactedChangeKind {
    /// All of them are new.
    Added,
    /// All of them are gone.
    Removed,
    /// Anything else.
    Changed,
}

/// A leaf of a state as strangers may see it.
#[derive(Clone, PartialEq, Debug)]
pub enum RedactedLeaf {
    /// Something hidden stands at or below the pointer.
    Hidden {
        /// Where the hidden part begins.
        pointer: Pointer,
    },
    /// A leaf that is not hidden.
    Shown {
        /// The JSON Pointer of the value.
        pointer: Pointer,
        value: Value,
    },
}

/// The changes without anything hidden. Changes below one hidden prefix become one line.
pub fn redacted(hiding: &Redactor<'_>, changes: &[LeafChange]) -> Vec<RedactedChange> {
    redacted_by(std::slice::from_ref(hiding), changes)
}

/// The same, without what any of them hides.
pub fn redacted_by(hidings: &[Redactor<'_>], changes: &[LeafChange]) -> Vec<RedactedChange> {
    let mut lines: Vec<RedactedChange> = Vec::with_capacity(changes.len());
    for change in changes {
        let cuts = hidings.iter().filter(|it| it.hides(&change.pointer)).map(|it| it.cut(&change.pointer));
        let Some(cut) = cuts.min_by_key(|it| it.as_str().len()) else {
            let LeafChange { pointer, before, after } = change.clone();
            lines.push(RedactedChange::Shown { pointer, before, after });
            continue;
        };
        let this = match (&change.before, &change.after) {
            (None, _) => RedactedChangeKind::Added,
            (_, None) => RedactedChangeKind::Removed,
            _ => RedactedChangeKind::Changed,
        };
        // Changes come in the order of the tree, so what belongs to one prefix stands together.
        match lines.last_mut() {
            Some(RedactedChange::Hidden { pointer, effect, .. }) if *pointer == cut => {
                if *effect != this {
                    *effect = RedactedChangeKind::Changed;
                }
            }
            _ => lines.push(RedactedChange::Hidden { pointer: cut, hidden: ConstTrue, effect: this }),
        }
    }
    lines
}

/// What `node` will read, leaf by leaf, for people to see before they approve.
pub fn readable_leaves(
    (policy, hidings): (&Policy, &[Redactor<'_>]),
    node: &NodeId,
    state: &Value,
) -> Vec<RedactedLeaf> {
    shown(hidings, &project(policy, node, state))
}

/// The arguments of a tool, leaf by leaf, without what `[tools] hide` covers, what is hidden in the states beside it, and
/// what the detectors find.
pub fn shown_arguments(hiding: &Redactor<'_>, tool: &Tool) -> Vec<RedactedLeaf> {
    shown_arguments_by(std::slice::from_ref(hiding), tool)
}

/// The same, without what any of them hides.
pub fn shown_arguments_by(hidings: &[Redactor<'_>], tool: &Tool) -> Vec<RedactedLeaf> {
    let arguments = Value::Object(tool.arguments.clone());
    let hidings: Vec<Redactor<'_>> = hidings.iter().map(|it| it.of_arguments(&arguments)).collect();
    shown(&hidings, &arguments)
}

/// A value that somebody else wrote, leaf by leaf, without what any of them hides in it.
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
        if lines.last() != Some(&line) {
            lines.push(line);
        }
    }
    lines
}
