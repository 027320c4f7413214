//! Other values for each leaf of a row's body.

use serde_json::{Value, json};

/// Words of enums, for where no made-up text is read.
pub const WORDS: &[&str] = &[
    "auditor",
    "reviewer",
    "approve",
    "deny",
    "match",
    "mismatch",
    "rollback",
    "create",
    "propose",
    "merge-patch",
    "merge",
    "used",
    "unused",
    "revoked",
    "denied",
    "expired",
    "cancelled",
    "open",
    "reserved",
    "thread.closed",
    "thread.created",
    "sign_in",
    "set_up",
    "aborted",
    "committed",
    "held",
    "full",
    "written",
];

/// Returns other values for this value.
pub fn others(value: &Value) -> Vec<Value> {
    let texts = || WORDS.iter().map(|it| json!(it));
    let digest = format!("sha256:{}", "0".repeat(64));
    match value {
        Value::Null => vec![json!("zz"), json!(digest), json!("2026-11-21T01:36:40.123Z"), json!(7), json!(true)],
        Value::Bool(it) => vec![json!(!it)],
        Value::Number(it) => vec![json!(it.as_i64().map_or(7, |it| it + 1)), json!(0)],
        Value::String(text) => {
            let middle = text.len() / 2;
            let flip = |at: usize| {
                let other = if text[at..].starts_with('0') { "1" } else { "0" };
                format!("{}{other}{}", &text[..at], &text[at + 1..])
            };
            let mut other = Vec::new();
            if text.ends_with('Z') && text.len() == 24 {
                other.push(json!(flip(22)));
            } else if text.is_ascii() && !text.is_empty() {
                other.push(json!(flip(middle)));
            }
            other.push(json!(format!("{text}x")));
            other.extend(texts());
            other
        }
        Value::Array(items) => {
            let mut other = vec![Value::Null];
            if items.is_empty() {
                other.extend([json!(["zz"]), json!([digest])]);
            } else {
                other.insert(0, json!(items[1..]));
            }
            other
        }
        Value::Object(members) if members.is_empty() => vec![json!({"zz": 1}), json!({"zz": "zz"}), Value::Null],
        Value::Object(_) => vec![Value::Null],
    }
}

/// Every place in a body below its root: as a pointer, and as its shape, in which every item of a list is alike.
pub fn places(value: &Value, pointer: &str, shape: &str, found: &mut Vec<(String, String)>) {
    if !pointer.is_empty() {
        found.push((pointer.to_owned(), shape.to_owned()));
    }
    match value {
        Value::Object(members) => {
            for (key, it) in members {
                let escaped = key.replace('~', "~0").replace('/', "~1");
                places(it, &format!("{pointer}/{escaped}"), &format!("{shape}.{key}"), found);
            }
        }
        Value::Array(items) => {
            for (at, it) in items.iter().enumerate() {
                places(it, &format!("{pointer}/{at}"), &format!("{shape}.*"), found);
            }
        }
        _ => {}
    }
}
