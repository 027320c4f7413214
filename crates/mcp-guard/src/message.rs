//! The messages of an MCP client that the guard must understand, and its own responses. Nothing here has an effect.

use std::collections::BTreeSet;

use countersign_domain::json::parse::{DEPTH_CEILING, ParseLimits, parse};
use serde_json::{Map, Value, json};

use crate::approvals::Approval;
use crate::continuations::ContinuedCall;
use crate::json_rpc::{self, MEMBERS};
use crate::metadata;
use crate::review_link::{self, LinkRequest, LinkSupport};
use crate::task_request::{self, TaskRequest};

/// The code for headers that do not match their message.
const HEADER_MISMATCH: i64 = -32020;

/// The limit on a message.
pub const MESSAGE_BYTES_MAX: usize = 8 * 1024 * 1024;

/// A message of the client.
#[derive(Debug, PartialEq)]
pub enum ClientMessage {
    /// A tool call, which needs an approval.
    Call(ToolRequest),
    /// A notification that cancels the request with this id.
    Cancel(Value),
    /// A request about a task of the guard.
    Task(TaskRequest),
    /// Any other message, which passes unchanged.
    Other,
}

/// A `tools/call` request.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolRequest {
    pub id: Value,
    pub name: String,
    pub arguments: Map<String, Value>,
    /// The metadata of the protocol.
    meta: Map<String, Value>,
    /// The answers to an interim result of the server, if the request continues an earlier call.
    pub continued: Option<ContinuedCall>,
    /// How the user can be asked to open the page of the review.
    pub link: LinkSupport,
    /// Whether a call that waits for reviewers can be answered with a task.
    pub has_tasks: bool,
}

/// A message that the guard refuses.
#[derive(Debug, PartialEq, Eq)]
pub struct RefusedMessage {
    /// The id of the request, if it has one.
    pub id: Option<String>,
    pub why: &'static str,
}

/// The members of a tool call's `params`. A task of the server has no outcome when it is answered, so `task` is not one of
/// them.
const CALL_MEMBERS: [&str; 5] = ["name", "arguments", "_meta", "inputResponses", "requestState"];

/// Returns a message of the client in a form that every parser reads alike, on one line.
pub fn rewritten(line: &[u8]) -> Option<Vec<u8>> {
    let limits = ParseLimits { bytes_max: MESSAGE_BYTES_MAX, depth_max: DEPTH_CEILING };
    parse(line, &limits).ok().map(|it| it.to_string().into_bytes())
}

/// Reads a message strictly. Two parsers could read a lax one differently: as a tool call and as another message.
pub fn read(line: &[u8]) -> Result<ClientMessage, RefusedMessage> {
    let limits = ParseLimits { bytes_max: MESSAGE_BYTES_MAX, depth_max: DEPTH_CEILING };
    let refused = |why| RefusedMessage { id: None, why };
    let message = parse(line, &limits).map_err(|_| refused("the message is not strict JSON"))?;
    // A batch could contain a call. Current versions of the protocol have none.
    let Value::Object(message) = message else { return Err(refused("the message is not one JSON object")) };
    // Some servers read names without regard to case, so `METHOD` could be a call.
    if message.keys().any(|it| !MEMBERS.contains(&it.as_str())) {
        return Err(refused("the message has an unknown member"));
    }
    let params = message.get("params");
    if message.get("method").is_some_and(|it| !it.is_string()) {
        return Err(refused("`method` must be a text"));
    }
    match message.get("method").and_then(Value::as_str) {
        Some("tools/call") => tool_request(message).map(ClientMessage::Call),
        // Some servers read this as a call too.
        Some(method) if method.eq_ignore_ascii_case("tools/call") => Err(refused("the method is not `tools/call`")),
        Some(method) if task_request::is_own(method, params) => {
            let id = id_of(&message).ok_or_else(|| refused("a request about a task needs an id"))?;
            Ok(ClientMessage::Task(TaskRequest::of(id, method, params.unwrap_or(&Value::Null))))
        }
        Some("notifications/cancelled") => {
            let id = params.and_then(|it| it.get("requestId"));
            Ok(id.map_or(ClientMessage::Other, |it| ClientMessage::Cancel(it.clone())))
        }
        _ => Ok(ClientMessage::Other),
    }
}

fn tool_request(message: Map<String, Value>) -> Result<ToolRequest, RefusedMessage> {
    let id = id_of(&message);
    let refused = |why| RefusedMessage { id: id.as_ref().map(Value::to_string), why };
    // A call without an id has no response, so its outcome could not be recorded.
    let call_id = id.clone().ok_or_else(|| refused("a tool call needs an id"))?;
    let params =
        message.get("params").and_then(Value::as_object).ok_or_else(|| refused("a tool call needs `params`"))?;
    if params.keys().any(|it| !CALL_MEMBERS.contains(&it.as_str())) {
        let why =
            "`params` of a tool call may have only `name`, `arguments`, `_meta`, `inputResponses` and `requestState`";
        return Err(refused(why));
    }
    let name = params.get("name").and_then(Value::as_str).ok_or_else(|| refused("a tool call needs a `name`"))?;
    let arguments = match params.get("arguments") {
        None => Map::new(),
        Some(Value::Object(arguments)) if has_twins(arguments) => {
            return Err(refused("two names in `arguments` differ only in case, and servers can read them as one"));
        }
        Some(Value::Object(arguments)) => arguments.clone(),
        Some(_) => return Err(refused("`arguments` must be an object")),
    };
    let name = name.to_owned();
    let meta = metadata::forwarded(params.get("_meta"));
    let (responses, state) = (params.get("inputResponses").cloned(), params.get("requestState"));
    let state = match state {
        None => None,
        Some(Value::String(state)) => Some(state.clone()),
        Some(_) => return Err(refused("`requestState` must be a text")),
    };
    let is_continued = (responses.is_some() || state.is_some()) && !state.as_deref().is_some_and(review_link::is_state);
    let continued = is_continued.then_some(ContinuedCall { responses, state });
    let link = LinkSupport::of_call(params);
    let has_tasks = metadata::declares_tasks(params);
    Ok(ToolRequest { id: call_id, name, arguments, meta, continued, link, has_tasks })
}

/// Returns the id of a request. A server may answer 1.0 as 1, so the outcome of such an id could be missed.
fn id_of(message: &Map<String, Value>) -> Option<Value> {
    message.get("id").filter(|it| it.is_string() || it.is_i64() || it.is_u64()).cloned()
}

/// Returns whether two names of an object, at any depth, differ only in case. Some servers read both as one member, so
/// reviewers could see one value and the server use the other.
pub fn has_twins(object: &Map<String, Value>) -> bool {
    // By way of upper case, because `ſ` is an `s` too.
    let names: BTreeSet<String> = object.keys().map(|it| it.to_uppercase().to_lowercase()).collect();
    names.len() < object.len() || object.values().any(contains_twins)
}

fn contains_twins(value: &Value) -> bool {
    match value {
        Value::Object(object) => has_twins(object),
        Value::Array(items) => items.iter().any(contains_twins),
        _ => false,
    }
}

impl ToolRequest {
    /// Returns the approved call of a task, or the call that goes on after a question of the server.
    pub fn of_task(id: Value, task: &TaskRequest, asked: &Approval, continued: Option<ContinuedCall>) -> Self {
        let (name, arguments) = (asked.tool.clone(), asked.arguments.clone());
        Self { id, name, arguments, meta: task.meta.clone(), continued, link: LinkSupport::No, has_tasks: false }
    }

    /// Returns the message with the approved arguments.
    pub fn with(&self, arguments: &Map<String, Value>) -> Vec<u8> {
        let mut params = json!({"name": self.name, "arguments": arguments});
        if !self.meta.is_empty() {
            params["_meta"] = Value::Object(self.meta.clone());
        }
        if let Some(ContinuedCall { responses, state }) = &self.continued {
            for (name, value) in
                [("inputResponses", responses.clone()), ("requestState", state.clone().map(Value::String))]
            {
                if let Some(value) = value {
                    params[name] = value;
                }
            }
        }
        json!({"jsonrpc": "2.0", "id": self.id, "method": "tools/call", "params": params}).to_string().into_bytes()
    }

    /// Returns the response to a call that waits for reviewers.
    pub fn pending(&self, asked: &Approval) -> Vec<u8> {
        if self.has_tasks && !self.link.asks_user(asked) {
            return task_request::created(&self.id, asked);
        }
        let (member, value) = match review_link::request_of(self.link, &self.name, asked) {
            Some(LinkRequest::Error(error)) => ("error", error),
            Some(LinkRequest::Result(result)) => ("result", result),
            None => return self.not_run(&review_link::text_of(asked)),
        };
        json_rpc::response(&self.id, member, value)
    }

    /// Returns a result with the reason why the call did not run. The model reads it.
    pub fn not_run(&self, why: &str) -> Vec<u8> {
        json_rpc::response(&self.id, "result", json_rpc::not_run(why))
    }
}

/// Returns the error for a message that was refused.
pub fn refusal(refused: &RefusedMessage) -> Vec<u8> {
    let id = refused.id.as_deref().and_then(|it| serde_json::from_str::<Value>(it).ok()).unwrap_or(Value::Null);
    let error = json!({"code": -32600, "message": format!("{}; the call was not run", refused.why)});
    json_rpc::response(&id, "error", error)
}

/// Returns the error for a message whose headers have other values.
pub fn header_mismatch(message: &Value, why: &str) -> Vec<u8> {
    let error = json!({"code": HEADER_MISMATCH, "message": format!("The headers {why}.")});
    json_rpc::response(message.get("id").unwrap_or(&Value::Null), "error", error)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(line: &str) -> ToolRequest {
        match read(line.as_bytes()) {
            Ok(ClientMessage::Call(call)) => call,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn only_a_strict_call_is_a_call() {
        let call =
            call(r#"{"jsonrpc":"2.0","id":1,"method":"tools\/call","params":{"name":"read","arguments":{"a":1}}}"#);
        assert_eq!((call.name.as_str(), &call.arguments["a"]), ("read", &json!(1)));
        for refused in [
            r#"{"id":1,"method":"ping","method":"tools/call","params":{"name":"read"}}"#,
            r#"{"id":1,"method":"tools/call","params":{"name":"read","name":"write"}}"#,
            r#"{"id":1,"method":"tools/call","params":{"name":"read","arguments":{"a":1,"a":2}}}"#,
            r#"[{"id":1,"method":"tools/call","params":{"name":"read"}}]"#,
            r#"{"method":"tools/call","params":{"name":"read"}}"#,
            r#"{"id":null,"method":"tools/call","params":{"name":"read"}}"#,
            r#"{"id":1.5,"method":"tools/call","params":{"name":"read"}}"#,
            r#"{"id":1,"method":"tools/call","params":{"name":"read","arguments":[]}}"#,
            r#"{"id":1,"method":"tools/call"}"#,
            r#"{"id":1,"method":"Tools/Call","params":{"name":"read"}}"#,
            r#"{"id":1,"method":["tools/call"],"params":{"name":"read"}}"#,
            r#"{"id":1,"method":"tools/call","params":{"name":"read","arguments":{"dest":"a","deſt":"b"}}}"#,
            r#"{"id":1,"method":"tools/call","params":{"name":"read","arguments":{"to":"a","TO":"b"}}}"#,
            r#"{"id":1,"method":"tools/call","params":{"name":"read","arguments":{"in":[{"to":"a","To":"b"}]}}}"#,
            r#"{"id":1,"METHOD":"tools/call","params":{"name":"read"}}"#,
            r#"{"id":1,"method":"tools/call","params":{"name":"read","Name":"write"}}"#,
            r#"{"id":1,"method":"tools/call","params":{"name":"read","task":{"ttl":1}}}"#,
            r#"{"id":1,"method":"tools/call","params":{"name":"read","requestState":1}}"#,
            "not json",
            "",
        ] {
            assert!(read(refused.as_bytes()).is_err(), "{refused}");
        }
        for other in [r#"{"method":"tools/list"}"#, r#"{"id":1,"result":{}}"#, r#"{"method":"tools/call2"}"#] {
            assert_eq!(read(other.as_bytes()), Ok(ClientMessage::Other), "{other}");
        }
    }

    #[test]
    fn approved_arguments_replace_the_sent_ones_and_nothing_else_changes() {
        let sent = call(
            r#"{"id":"x","method":"tools/call","params":{"name":"read","arguments":{"a":1},"_meta":{"progressToken":7}}}"#,
        );
        let forwarded: Value = serde_json::from_slice(&sent.with(json!({"a": 2}).as_object().unwrap())).unwrap();
        assert_eq!(forwarded["params"], json!({"name": "read", "arguments": {"a": 2}, "_meta": {"progressToken": 7}}));
        let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28", "other": 1,
            "io.modelcontextprotocol/clientCapabilities": {"extensions": {"io.modelcontextprotocol/tasks": {}, "a/b": {}}}});
        let params = json!({"name": "read", "_meta": meta, "requestState": "s", "inputResponses": {"a": {}}});
        let sent = call(&json!({"id": 1, "method": "tools/call", "params": params}).to_string());
        let forwarded: Value = serde_json::from_slice(&sent.with(&Map::new())).unwrap();
        let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {"extensions": {"a/b": {}}}});
        let expected =
            json!({"name": "read", "arguments": {}, "_meta": meta, "requestState": "s", "inputResponses": {"a": {}}});
        assert_eq!(forwarded["params"], expected);
        let bare = call(r#"{"id":"x","method":"tools/call","params":{"name":"read"}}"#);
        let forwarded: Value = serde_json::from_slice(&bare.with(&Map::new())).unwrap();
        assert_eq!(forwarded["params"], json!({"name": "read", "arguments": {}}));
    }

    #[test]
    fn no_line_break_hides_a_second_message() {
        let hidden = b"{\"method\":\"notifications/x\",\"params\":\r{\"id\":7,\"method\":\"tools/call\"}\r}";
        assert_eq!(read(hidden), Ok(ClientMessage::Other));
        let line = rewritten(hidden).unwrap();
        assert!(!line.contains(&b'\r') && !line.contains(&b'\n'));
    }
}
