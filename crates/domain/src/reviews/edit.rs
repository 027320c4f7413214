//! Edits: a reviewer's changes to an agent's patch, as a patch of the same format.
//!
//! The agent's own patch is rewritten only at paths that the editor may see. All other parts, including redacted
//! values, stay as they are, and the policy still evaluates what the node may send.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::json::patch::{Patch, PatchError, PatchFormat};
use crate::json::pointer::{Pointer, array_index};
use crate::json::size::StateLimits;

#[derive(Clone, PartialEq, Debug, Default)]
pub struct ReviewEdit {
    /// New values, by their paths in the state.
    pub values: BTreeMap<Pointer, Value>,
    /// Additions. For a merge patch: more members (RFC 7396: null removes a member from the request). For a JSON Patch:
    /// more steps.
    pub more: Option<Value>,
}

/// The limit of consecutive edits. After that the reviewers decide, or the agent proposes again.
pub const EDITS_MAX: usize = 5;

/// The reason why an edit cannot be applied to a patch.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum EditRejected {
    /// The edited value is not in the patch.
    #[error("the edit changes a value that the proposal does not set; edit only values of the proposal")]
    NotSet,
    /// The additions do not have the patch's format.
    #[error(
        "the additions do not have the format of the proposal: an object for a merge, or a list of steps for a JSON Patch"
    )]
    Form,
    #[error("the edit changes nothing; change a value or approve the proposal")]
    Same,
}

/// Returns the edited patch.
pub fn edited(format: PatchFormat, patch: &Value, edit: &ReviewEdit) -> Result<Value, EditRejected> {
    let rewritten = match format {
        PatchFormat::Merge | PatchFormat::MergePatch => rewritten(patch.clone(), edit)?,
        PatchFormat::JsonPatch => continued(patch.clone(), edit)?,
    };
    // An edit without a change would open a new review with the same content.
    if rewritten == *patch { Err(EditRejected::Same) } else { Ok(rewritten) }
}

fn rewritten(mut patch: Value, edit: &ReviewEdit) -> Result<Value, EditRejected> {
    for (at, value) in &edit.values {
        // Only values that the agent sets can be edited. Other paths need an addition, which is checked on its own.
        *patch.pointer_mut(at.as_str()).ok_or(EditRejected::NotSet)? = value.clone();
    }
    let Some(more) = &edit.more else { return Ok(patch) };
    let more = Patch::read(PatchFormat::MergePatch, more.clone()).map_err(|_| EditRejected::Form)?;
    let applied: Result<Value, PatchError> = more.apply(&patch, &StateLimits::default());
    applied.map_err(|_| EditRejected::Form)
}

fn continued(mut patch: Value, edit: &ReviewEdit) -> Result<Value, EditRejected> {
    let steps = patch.as_array_mut().ok_or(EditRejected::Form)?;
    for (at, value) in &edit.values {
        let in_array = at.tokens().last().is_some_and(|it| array_index(&it).is_some());
        // `add` sets a member of an object whether or not it exists. In an array it would shift the other items, so an
        // item is replaced.
        let step = if in_array { "replace" } else { "add" };
        steps.push(json!({"op": step, "path": at, "value": value}));
    }
    match &edit.more {
        None => {}
        Some(Value::Array(more)) => steps.extend(more.iter().cloned()),
        Some(_) => return Err(EditRejected::Form),
    }
    Ok(patch)
}

impl ReviewEdit {
    /// Returns all paths in the state that the edit names, whatever it would do there.
    pub fn places(&self, format: PatchFormat) -> Vec<Pointer> {
        let mut places: Vec<Pointer> = self.values.keys().cloned().collect();
        match (format, &self.more) {
            (_, None) => {}
            (PatchFormat::JsonPatch, Some(Value::Array(steps))) => places.extend(steps.iter().flat_map(step_places)),
            (_, Some(Value::Object(members))) => named(members, &Pointer::root(), &mut places),
            // An edit in another format is refused later. Until then the root covers every path that it could mean.
            (_, Some(_)) => places.push(Pointer::root()),
        }
        places
    }
}

/// Returns the paths that a step of a JSON Patch reads or writes. An invalid pointer could mean any path, so it counts
/// as the root.
fn step_places(step: &Value) -> Vec<Pointer> {
    let place = |name: &str| {
        let text = step.get(name)?;
        Some(text.as_str().and_then(|it| Pointer::try_from(it).ok()).unwrap_or_else(Pointer::root))
    };
    // `from` is included because copy and move read a value there.
    [place("path"), place("from")].into_iter().flatten().collect()
}

fn named(members: &Map<String, Value>, above: &Pointer, places: &mut Vec<Pointer>) {
    for (key, value) in members {
        let at = above.child(key);
        match value {
            // An empty object is a value of its own in a merge patch.
            Value::Object(below) if !below.is_empty() => named(below, &at, places),
            _ => places.push(at),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edit(values: &[(&str, Value)], more: Option<Value>) -> ReviewEdit {
        let values = values.iter().map(|(at, value)| (Pointer::try_from(*at).unwrap(), value.clone())).collect();
        ReviewEdit { values, more }
    }

    #[test]
    fn a_merge_object_is_rewritten_in_place_and_the_rest_of_it_stays() {
        let patch = json!({"payment": {"amount": 900, "card": "4111"}, "memo": "x"});
        let asked = edit(&[("/payment/amount", json!(90))], Some(json!({"memo": null, "note": "less"})));
        let expected = json!({"payment": {"amount": 90, "card": "4111"}, "note": "less"});
        for format in [PatchFormat::Merge, PatchFormat::MergePatch] {
            assert_eq!(edited(format, &patch, &asked), Ok(expected.clone()));
        }
    }

    #[test]
    fn json_patch_is_extended() {
        let patch = json!([{"op": "add", "path": "/a", "value": 1}]);
        let more = json!([{"op": "remove", "path": "/b"}]);
        let asked = edit(&[("/a", json!(2)), ("/list/0", json!(3))], Some(more));
        let expected = json!([
            {"op": "add", "path": "/a", "value": 1}, {"op": "add", "path": "/a", "value": 2},
            {"op": "replace", "path": "/list/0", "value": 3}, {"op": "remove", "path": "/b"},
        ]);
        assert_eq!(edited(PatchFormat::JsonPatch, &patch, &asked), Ok(expected));
    }

    #[test]
    fn invalid_edit_is_refused() {
        let patch = json!({"a": 1});
        assert_eq!(edited(PatchFormat::Merge, &patch, &edit(&[("/b", json!(1))], None)), Err(EditRejected::NotSet));
        assert_eq!(edited(PatchFormat::Merge, &patch, &edit(&[], Some(json!([1])))), Err(EditRejected::Form));
        assert_eq!(edited(PatchFormat::JsonPatch, &json!([]), &edit(&[], Some(json!({})))), Err(EditRejected::Form));
        assert_eq!(edited(PatchFormat::Merge, &patch, &edit(&[("/a", json!(1))], None)), Err(EditRejected::Same));
    }

    #[test]
    fn edit_names_every_path_that_it_could_affect() {
        let places = |format, of: &ReviewEdit| of.places(format).iter().map(ToString::to_string).collect::<Vec<_>>();
        let merged = edit(&[("/a", json!(1))], Some(json!({"b": {"c": null, "d": {}}, "e": [1]})));
        assert_eq!(places(PatchFormat::Merge, &merged), ["/a", "/b/c", "/b/d", "/e"]);
        let steps = json!([{"op": "copy", "from": "/x", "path": "/y"}, {"op": "test", "path": 7}]);
        assert_eq!(places(PatchFormat::JsonPatch, &edit(&[], Some(steps))), ["/y", "/x", ""]);
        assert_eq!(places(PatchFormat::Merge, &edit(&[], Some(json!("x")))), [""]);
    }
}
