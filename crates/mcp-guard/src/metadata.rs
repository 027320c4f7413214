//! The metadata of requests (`_meta`), by which clients of version 2026-07-28 declare what they support.

use serde_json::{Map, Value};

/// The name of the extension for tasks.
pub const TASKS: &str = "io.modelcontextprotocol/tasks";

/// The first version of the protocol with the extension. The tasks of version 2025-11-25 are another protocol.
const TASKS_SINCE: &str = "2026";

/// The metadata of the protocol, which reaches the server. Reviewers see no metadata, so no other metadata does.
const MEMBERS: [&str; 5] = [
    "progressToken",
    "io.modelcontextprotocol/protocolVersion",
    "io.modelcontextprotocol/clientInfo",
    "io.modelcontextprotocol/logLevel",
    CLIENT_CAPABILITIES,
];

const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// Returns a member in the form that the protocol gives it, or `None` for another form: reviewers do not see what it says.
fn in_form(member: &str, value: &Value) -> Option<Value> {
    match (member, value) {
        (CLIENT_CAPABILITIES, Value::Object(_)) => Some(value.clone()),
        ("progressToken", _) if value.is_string() || value.is_i64() || value.is_u64() => Some(value.clone()),
        ("io.modelcontextprotocol/clientInfo", Value::Object(info)) => {
            let texts = info.iter().filter(|it| it.1.is_string());
            Some(texts.map(|(name, text)| (name.clone(), text.clone())).collect())
        }
        ("io.modelcontextprotocol/protocolVersion" | "io.modelcontextprotocol/logLevel", Value::String(_)) => {
            Some(value.clone())
        }
        _ => None,
    }
}

/// Returns the metadata that reaches the server. Without the extension for tasks, the server cannot answer a call before
/// the call ends. Its outcome would be missed.
pub fn forwarded(sent: Option<&Value>) -> Map<String, Value> {
    let mut meta: Map<_, _> =
        MEMBERS.iter().filter_map(|it| Some(((*it).to_owned(), in_form(it, sent?.get(*it)?)?))).collect();
    if let Some(Value::Object(extensions)) = meta.get_mut(CLIENT_CAPABILITIES).and_then(|it| it.get_mut("extensions")) {
        extensions.remove(TASKS);
    }
    meta
}

/// Returns whether the client of a request supports tasks. It says so in each request.
pub fn declares_tasks(params: &Map<String, Value>) -> bool {
    let meta = |name: &str| params.get("_meta")?.get(format!("io.modelcontextprotocol/{name}"));
    let is_new = meta("protocolVersion").and_then(Value::as_str).is_some_and(|it| it >= TASKS_SINCE);
    is_new && meta("clientCapabilities").is_some_and(|it| it["extensions"][TASKS].is_object())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn metadata_in_another_form_does_not_reach_the_server() {
        let info = json!({"name": "client", "version": "1", "more": {"run": "rm"}});
        let sent = json!({"progressToken": {"run": "rm"}, "io.modelcontextprotocol/clientInfo": info,
            "io.modelcontextprotocol/logLevel": ["x"], CLIENT_CAPABILITIES: {"extensions": {TASKS: {}, "a/b": {}}}});
        let expected = json!({"io.modelcontextprotocol/clientInfo": {"name": "client", "version": "1"},
            CLIENT_CAPABILITIES: {"extensions": {"a/b": {}}}});
        assert_eq!(Value::Object(forwarded(Some(&sent))), expected);
        assert_eq!(forwarded(Some(&json!({"progressToken": 7}))).len(), 1);
    }

    #[test]
    fn only_a_client_that_declares_the_extension_has_tasks() {
        let declared = json!({"extensions": {TASKS: {}}});
        let params = |version: &str, capabilities: &Value| json!({"_meta": {"io.modelcontextprotocol/protocolVersion": version, CLIENT_CAPABILITIES: capabilities}});
        for (params, expected) in [
            (params("2026-07-28", &declared), true),
            (params("2025-11-25", &declared), false),
            (params("2026-07-28", &json!({"extensions": {TASKS: true}})), false),
            (params("2026-07-28", &json!({"tasks": {}})), false),
            (json!({}), false),
        ] {
            assert_eq!(declares_tasks(params.as_object().unwrap()), expected, "{params}");
        }
    }
}
