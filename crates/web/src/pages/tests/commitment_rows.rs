//! A second implementation of the commitments, so that the script of the pages is not compared with itself.

use std::fmt::Write as _;

use base64::Engine as _;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

pub fn hash(tag: &str, parts: &[&[u8]]) -> String {
    let mut hasher = Sha256::new();
    hasher.update(tag.as_bytes());
    hasher.update([0]);
    parts.iter().for_each(|part| hasher.update(part));
    let mut text = "sha256:".to_owned();
    hasher.finalize().iter().for_each(|byte| write!(text, "{byte:02x}").unwrap());
    text
}

/// `serde_json` sorts keys by their bytes and escapes as RFC 8785 does; the samples hold no number
/// that it would write in another way.
pub fn canonical(value: &Value) -> String {
    value.to_string()
}

/// The unchanged parts of a tree that a page shows.
pub struct TreeExcerpt<'a> {
    pub hidden: &'a [&'a str],
    pub wanted: &'a [&'a str],
}

fn covers(list: &[&str], at: &str) -> bool {
    list.iter().any(|it| at == *it || at.starts_with(&format!("{it}/")))
}

pub fn touches(list: &[&str], at: &str) -> bool {
    covers(list, at) || list.iter().any(|it| at.is_empty() || it.starts_with(&format!("{at}/")))
}

pub struct TreeCommitment {
    pub root: String,
    pub opened: Value,
}

/// Commits to `value`. An older proposal has set the leaves that are also in `before`.
pub fn half(
    value: &Value,
    before: Option<&Value>,
    other: Option<&Value>,
    at: &str,
    view: &TreeExcerpt<'_>,
) -> TreeCommitment {
    let child = |key: &str| format!("{at}/{}", key.replace('~', "~0").replace('/', "~1"));
    let (root, opened) = match value {
        Value::Object(members) if !members.is_empty() => {
            let halves: Vec<(&String, TreeCommitment)> = members
                .iter()
                .map(|(key, it)| {
                    let step = |parent: Option<&'_ Value>| parent.and_then(|it| it.as_object()?.get(key).cloned());
                    (key, half(it, step(before).as_ref(), step(other).as_ref(), &child(key), view))
                })
                .collect();
            let roots: Value = halves
                .iter()
                .map(|(key, it)| ((*key).clone(), json!(it.root)))
                .collect::<serde_json::Map<_, _>>()
                .into();
            let opened: serde_json::Map<String, Value> =
                halves.into_iter().map(|(key, it)| (key.clone(), it.opened)).collect();
            (hash("countersign.object.v1", &[canonical(&roots).as_bytes()]), json!({ "object": opened }))
        }
        Value::Array(items) if !items.is_empty() => {
            let halves: Vec<TreeCommitment> = items
                .iter()
                .enumerate()
                .map(|(i, it)| {
                    let step = |parent: Option<&'_ Value>| parent.and_then(|it| it.as_array()?.get(i).cloned());
                    half(it, step(before).as_ref(), step(other).as_ref(), &child(&i.to_string()), view)
                })
                .collect();
            let roots: Value = halves.iter().map(|it| json!(it.root)).collect();
            let opened: Vec<Value> = halves.into_iter().map(|it| it.opened).collect();
            (hash("countersign.array.v1", &[canonical(&roots).as_bytes()]), json!({ "array": opened }))
        }
        leaf => {
            let origin = if before == Some(leaf) { "older" } else { "this" };
            let salt = Sha256::digest(format!("{at}\n{origin}"));
            let root = hash("countersign.leaf.v1", &[&salt, canonical(leaf).as_bytes()]);
            let salt = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(salt);
            (root, json!({ "value": leaf, "salt": salt }))
        }
    };
    let shown = !covers(view.hidden, at) && (other != Some(value) || touches(view.wanted, at));
    let opened = if shown { opened } else { json!(root) };
    TreeCommitment { root, opened }
}
