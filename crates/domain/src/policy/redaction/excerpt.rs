//! Shows the beginning of a rejected request on a page: sanitized, bounded and redacted.

use serde_json::{Map, Value};

use super::Redactor;
use super::diff::{RedactedLeaf, shown_arguments};
use crate::json::canonical::canonical;
use crate::json::patch::PatchFormat;
use crate::json::pointer::Pointer;
use crate::threads::tool_call::Tool;

/// Maximum length of the stored excerpt of a rejected request.
pub const EXCERPT_CHARS_MAX: usize = 2_000;

/// Replaces a redacted value, and a value whose path cannot be determined.
const HIDDEN: &str = "[hidden]";

/// Marks the end of a shortened text.
const CUT: char = '…';

/// Returns the beginning of the request's canonical text, with redaction applied.
pub fn excerpt(hiding: &Redactor<'_>, format: PatchFormat, request: &Value) -> String {
    // Redaction comes before the cut, because a detector would not recognize half a secret.
    let text = canonical(&shown(hiding, format, request));
    match text.char_indices().nth(EXCERPT_CHARS_MAX) {
        Some((end, _)) => format!("{}{CUT}", &text[..end]),
        None => text,
    }
}

/// Returns whether no part of a request is redacted, so that the gateway may store it unchanged.
pub fn hides_nothing(hiding: &Redactor<'_>, format: PatchFormat, request: &Value, tool: Option<&Tool>) -> bool {
    let hidden = |it: &RedactedLeaf| matches!(it, RedactedLeaf::Hidden { .. });
    let of_tool = tool.is_some_and(|it| shown_arguments(hiding, it).iter().any(hidden));
    !of_tool && shown(hiding, format, request) == *request
}

fn shown(hiding: &Redactor<'_>, format: PatchFormat, request: &Value) -> Value {
    match (format, request) {
        (PatchFormat::JsonPatch, Value::Array(operations)) => {
            Value::Array(operations.iter().map(|it| operation(hiding, it)).collect())
        }
        _ => without_hidden(hiding, request, &Pointer::root()),
    }
}

fn without_hidden(hiding: &Redactor<'_>, value: &Value, at: &Pointer) -> Value {
    if hiding.hides_there(value, at) {
        return Value::from(HIDDEN);
    }
    match value {
        Value::Object(members) => {
            let member = |(key, value): (&String, &Value)| (key.clone(), without_hidden(hiding, value, &at.child(key)));
            Value::Object(members.iter().map(member).collect())
        }
        Value::Array(items) => {
            items.iter().enumerate().map(|(index, it)| without_hidden(hiding, it, &at.index(index))).collect()
        }
        leaf => leaf.clone(),
    }
}

/// Redacts one operation of a JSON Patch. Its path may point nowhere.
fn operation(hiding: &Redactor<'_>, operation: &Value) -> Value {
    // A value that is no operation has no path that could decide about it, so all of it is redacted.
    let Value::Object(members) = operation else { return Value::from(HIDDEN) };
    let place = |name: &str| Pointer::try_from(members.get(name)?.as_str()?).ok();
    let path = place("path");
    let member = |(name, value): (&String, &Value)| {
        let shown = match (name.as_str(), &path) {
            // An invalid patch may contain any value here.
            ("op", _) => without_hidden(hiding, value, &Pointer::root()),
            ("path" | "from", _) => place(name).map_or(Value::from(HIDDEN), |it| hiding.cut(&it).to_string().into()),
            ("value", Some(path)) => without_hidden(hiding, value, path),
            // No path decides about a member that JSON Patch does not define.
            _ => Value::from(HIDDEN),
        };
        (name.clone(), shown)
    };
    Value::Object(members.iter().map(member).collect::<Map<_, _>>())
}

#[cfg(test)]
mod tests;
