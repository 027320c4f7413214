//! Patches in their three forms, each beside a second implementation: a state, and a request.

use countersign_domain::json::diff::diff;
use countersign_domain::json::patch::{Patch, PatchError, PatchFormat};
use countersign_domain::json::pointer::Pointer;
use countersign_domain::json::size::{StateLimits, ValueSize};
use serde_json::{Map, Value};

/// A patch does what its format's RFC says, within the limits, and nothing where it does not say so.
pub fn check(text: &[u8]) {
    let parts = super::parts(text);
    let (Some(state), Some(request)) = (super::value(parts.first()), super::value(parts.get(1))) else { return };
    for format in [PatchFormat::Merge, PatchFormat::MergePatch, PatchFormat::JsonPatch] {
        if let Ok(patch) = Patch::read(format, request.clone()) {
            applied(&patch, &state, &request);
        }
    }
}

fn applied(patch: &Patch, state: &Value, request: &Value) {
    let limits = StateLimits::default();
    let after = patch.apply(state, &limits);
    assert_eq!(after, patch.apply(state, &limits), "applied twice, it does two things");
    let expected = match (patch.format(), state, request) {
        (PatchFormat::Merge, Value::Object(state), Value::Object(request)) => Some(merged(state, request)),
        (PatchFormat::MergePatch, Value::Object(_), request) => Some(merge_patched(state, request)),
        (PatchFormat::JsonPatch, Value::Object(_), Value::Array(steps)) => json_patched(state, steps),
        _ => None,
    };
    match &after {
        Ok(after) => {
            assert_eq!(expected.as_ref(), Some(after));
            within_limits(patch, state, after);
            only_where_it_says(patch, state, after);
        }
        Err(PatchError::TooBig { .. }) => {}
        Err(error) => assert_eq!(expected, None, "{error:?}"),
    }
}

fn within_limits(patch: &Patch, state: &Value, after: &Value) {
    let size = ValueSize::of(after);
    assert_eq!(StateLimits::default().check(after), Ok(()));
    assert!(after.is_object());
    for tight in [
        StateLimits { bytes_max: size.bytes - 1, ..StateLimits::default() },
        StateLimits { leaves_max: size.leaves - 1, ..StateLimits::default() },
        StateLimits { depth_max: size.depth - 1, ..StateLimits::default() },
    ] {
        assert!(matches!(patch.apply(state, &tight), Err(PatchError::TooBig { .. })), "{tight:?}");
    }
}

/// Whatever differs is at, above or below a place that the request names; where items of a list may move up or down,
/// in that list.
fn only_where_it_says(patch: &Patch, state: &Value, after: &Value) {
    let places = patch.places();
    let says = |it: &Pointer| match (patch.format(), it.parent()) {
        (PatchFormat::JsonPatch, Some(list)) => list,
        _ => it.clone(),
    };
    for change in diff(state, after) {
        let named = places.iter().any(|place| says(&place.pointer).touches(&change.pointer));
        assert!(named, "{change:?}");
    }
}

fn merged(state: &Map<String, Value>, request: &Map<String, Value>) -> Value {
    let mut after = state.clone();
    for (key, value) in request {
        after.insert(key.clone(), value.clone());
    }
    Value::Object(after)
}

/// RFC 7396, section 2, word by word.
fn merge_patched(target: &Value, patch: &Value) -> Value {
    let Value::Object(members) = patch else { return patch.clone() };
    let mut after = target.as_object().cloned().unwrap_or_default();
    for (key, value) in members {
        if value.is_null() {
            after.remove(key);
        } else {
            let below = merge_patched(after.get(key).unwrap_or(&Value::Null), value);
            after.insert(key.clone(), below);
        }
    }
    Value::Object(after)
}

/// RFC 6902 by `serde_json`'s own pointers.
fn json_patched(state: &Value, steps: &[Value]) -> Option<Value> {
    let mut state = state.clone();
    for step in steps {
        let text = |name: &str| step.get(name)?.as_str();
        let path = text("path")?;
        match text("op")? {
            "add" => put(&mut state, path, step.get("value")?.clone())?,
            "remove" => _ = take(&mut state, path)?,
            "replace" => *state.pointer_mut(path)? = step.get("value")?.clone(),
            "move" => {
                let from = text("from")?;
                if path.strip_prefix(from).is_some_and(|it| it.starts_with('/')) {
                    return None;
                }
                let value = state.pointer(from)?.clone();
                if from != path {
                    take(&mut state, from)?;
                    put(&mut state, path, value)?;
                }
            }
            "copy" => {
                let value = state.pointer(text("from")?)?.clone();
                put(&mut state, path, value)?;
            }
            "test" if state.pointer(path)? == step.get("value")? => {}
            _ => return None,
        }
        // A state stays an object.
        state.as_object()?;
    }
    Some(state)
}

fn put(state: &mut Value, path: &str, value: Value) -> Option<()> {
    let Some((parent, token)) = path.rsplit_once('/') else {
        *state = value;
        return Some(());
    };
    let key = token.replace("~1", "/").replace("~0", "~");
    match state.pointer_mut(parent)? {
        Value::Object(members) => _ = members.insert(key, value),
        Value::Array(items) => {
            let at = if key == "-" { items.len() } else { index(&key)? };
            if at > items.len() {
                return None;
            }
            items.insert(at, value);
        }
        _ => return None,
    }
    Some(())
}

fn take(state: &mut Value, path: &str) -> Option<Value> {
    let (parent, token) = path.rsplit_once('/')?;
    let key = token.replace("~1", "/").replace("~0", "~");
    match state.pointer_mut(parent)? {
        Value::Object(members) => members.remove(&key),
        Value::Array(items) => index(&key).filter(|at| *at < items.len()).map(|at| items.remove(at)),
        _ => None,
    }
}

fn index(token: &str) -> Option<usize> {
    let at: usize = token.parse().ok()?;
    (at.to_string() == token).then_some(at)
}
