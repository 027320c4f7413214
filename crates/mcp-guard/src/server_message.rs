//! The messages of an MCP server, and the results of calls.

use countersign_domain::chain::hash::Digest;
use countersign_domain::json::canonical::canonical;
use serde_json::{Value, json};

use crate::json_rpc::MEMBERS;
use crate::metadata::TASKS;

/// The response of the server to a request.
pub struct ServerResponse {
    pub id: Value,
    pub result: CallResult,
}

/// The result of a call.
#[derive(Debug, PartialEq, Eq)]
pub enum CallResult {
    /// The call has ended.
    Ended {
        succeeded: bool,
        /// The digest of the result, for the record of the outcome.
        digest: String,
    },
    /// The server asks its client for input. The client then sends the call again with this state.
    InputRequired { state: Option<String> },
    /// The call goes on, and its outcome will not be known.
    Unknown,
}

impl CallResult {
    /// Returns whether the call has ended.
    pub const fn is_final(&self) -> bool {
        matches!(self, Self::Ended { .. })
    }
}

/// Reads a message of the server. Returns `None` for a message that clients could read in another way: such a message is
/// not passed on.
pub fn from_server(line: &[u8]) -> Option<Value> {
    let message: Value = serde_json::from_slice(&with_whole_characters(line)).ok()?;
    let members = message.as_object()?;
    // Some clients read names without regard to case.
    let is_twin = |it: &String| it != "tools" && it.to_uppercase() == "TOOLS";
    let has_twins = message.get("result").and_then(Value::as_object).is_some_and(|it| it.keys().any(is_twin));
    (members.keys().all(|it| MEMBERS.contains(&it.as_str())) && !has_twins).then_some(message)
}

/// Adds the extension for tasks to the capabilities of a server, in its response to `server/discover`. The guard has it,
/// for calls that wait for reviewers.
pub fn offer_tasks(message: &mut Value) {
    if message.pointer("/result/supportedVersions").is_some_and(Value::is_array)
        && let Some(Value::Object(capabilities)) = message.pointer_mut("/result/capabilities")
        && let Value::Object(extensions) = capabilities.entry("extensions").or_insert_with(|| json!({}))
    {
        extensions.insert(TASKS.to_owned(), json!({}));
    }
}

/// Returns a message of the server as it is passed on, on one line for every client.
pub fn line_of(message: &Value) -> Vec<u8> {
    let text = message.to_string();
    // JSON allows these characters in texts, and some clients end a line at them.
    let breaks = [('\u{85}', "\\u0085"), ('\u{2028}', "\\u2028"), ('\u{2029}', "\\u2029")];
    breaks.iter().fold(text, |text, (it, escaped)| text.replace(*it, escaped)).into_bytes()
}

/// Replaces halves of characters, which programs in JavaScript can send and most parsers refuse.
fn with_whole_characters(line: &[u8]) -> Vec<u8> {
    let unit = |at: usize| {
        let digits = line.get(at..at + 6)?.strip_prefix(b"\\u")?;
        u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
    };
    let (mut mended, mut at) = (Vec::with_capacity(line.len()), 0);
    while at < line.len() {
        let width = match unit(at) {
            Some(0xd800..=0xdbff) if matches!(unit(at + 6), Some(0xdc00..=0xdfff)) => 12,
            Some(0xd800..=0xdfff) => {
                mended.extend_from_slice(b"\\ufffd");
                at += 6;
                continue;
            }
            // An escaped backslash is no beginning of an escape.
            _ if line[at] == b'\\' => 2,
            _ => 1,
        };
        mended.extend_from_slice(&line[at..line.len().min(at + width)]);
        at += width;
    }
    mended
}

/// Reads a response. Returns `None` for any other message of the server.
pub fn response(message: &Value) -> Option<ServerResponse> {
    let id = message.get("id").filter(|it| !it.is_null() && message.get("method").is_none())?.clone();
    let result = message.get("result");
    let kind = result.and_then(|it| it.get("resultType")).map_or(Some("complete"), Value::as_str);
    let result = match kind {
        Some("complete") => {
            let failed = result.is_none_or(|it| it.get("isError") == Some(&Value::Bool(true)));
            let told = result.or(message.get("error")).unwrap_or(&Value::Null);
            let digest = Digest::of_file(canonical(told).as_bytes()).to_string();
            CallResult::Ended { succeeded: !failed, digest }
        }
        Some("input_required") => {
            let state = result.and_then(|it| it.get("requestState")).and_then(Value::as_str);
            CallResult::InputRequired { state: state.map(str::to_owned) }
        }
        _ => CallResult::Unknown,
    };
    Some(ServerResponse { id, result })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_of_a_server_that_clients_could_read_otherwise_is_not_passed_on() {
        for refused in [
            "[{\"id\":1,\"result\":{\"tools\":[]}}]",
            "\u{feff}{\"id\":1,\"result\":{}}",
            r#"{"id":1,"RESULT":{}}"#,
            r#"{"id":1,"result":{"Tools":[]}}"#,
            r#"{"id":1,"result":{"n":1e999}}"#,
            "x",
        ] {
            assert_eq!(from_server(refused.as_bytes()), None, "{refused}");
        }
        let mended =
            |text: &str| from_server(format!(r#"{{"id":1,"result":"{text}"}}"#).as_bytes()).unwrap()["result"].clone();
        assert_eq!(mended(r"ran \ud83d"), "ran \u{fffd}");
        assert_eq!(mended(r"\ud83d\ude00 \ude00 \\ud83d"), "\u{1f600} \u{fffd} \\ud83d");
        assert_eq!(line_of(&json!("a\u{2028}b")), b"\"a\\u2028b\"");
    }

    #[test]
    fn outcome_of_a_response_is_read() {
        let told = |line: &str| response(&from_server(line.as_bytes())?).map(|it| (it.id, it.result));
        let ended = |line: &str| match told(line) {
            Some((id, CallResult::Ended { succeeded, .. })) => (id == 1, succeeded),
            other => panic!("{other:?}"),
        };
        assert_eq!(ended(r#"{"id":1,"result":{"content":[]}}"#), (true, true));
        assert_eq!(ended(r#"{"id":1,"result":{"resultType":"complete"}}"#), (true, true));
        assert_eq!(ended(r#"{"id":1,"result":{"isError":true}}"#), (true, false));
        assert_eq!(ended(r#"{"id":1,"error":{"code":1}}"#), (true, false));
        let interim = told(r#"{"id":1,"result":{"resultType":"input_required","requestState":"s"}}"#);
        assert_eq!(interim, Some((json!(1), CallResult::InputRequired { state: Some("s".to_owned()) })));
        for kind in ["\"task\"", "7", "null"] {
            let line = format!(r#"{{"id":1,"result":{{"resultType":{kind}}}}}"#);
            assert_eq!(told(&line), Some((json!(1), CallResult::Unknown)), "{line}");
        }
        for other in [r#"{"id":1,"method":"sampling/createMessage"}"#, r#"{"method":"notifications/message"}"#, "x"] {
            assert_eq!(told(other), None, "{other}");
        }
    }
}
