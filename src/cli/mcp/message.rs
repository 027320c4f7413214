//! The parts of MCP messages that the pipe needs: HTTP headers, and errors for an unreachable gateway.

use serde::Deserialize;
use serde_json::{Map, Value, json};

/// The first version of the protocol that mirrors arguments into headers.
const WITH_MIRRORED_ARGUMENTS: &str = "2026";

/// The JSON-RPC error code for an unreachable gateway.
const NOT_ASKED: i64 = -32000;

const NOT_READ: i64 = -32700;

/// The part of a message that is parsed here. The gateway parses the whole message.
#[derive(Deserialize)]
pub struct McpMessage {
    /// The request ID. A notification has none.
    pub id: Option<Value>,
    pub method: Option<String>,
    #[serde(default)]
    params: Value,
}

impl McpMessage {
    pub fn read(line: &[u8]) -> Option<Self> {
        // A lenient parser is enough here, because the gateway's strict parser decides about the message.
        serde_json::from_slice(line).ok()
    }

    /// Returns the name of the tool, the URI of the resource or the id of the task, for the `mcp-name` header.
    pub fn name(&self) -> Option<&str> {
        let member = match self.method.as_deref()? {
            "tools/call" | "prompts/get" => "name",
            "resources/read" => "uri",
            "tasks/get" | "tasks/update" | "tasks/cancel" => "taskId",
            _ => return None,
        };
        self.params.get(member)?.as_str()
    }

    /// Returns the arguments of a tool call, since the version of the protocol that mirrors some into headers.
    pub fn arguments(&self) -> Option<&Map<String, Value>> {
        let is_call = self.method.as_deref() == Some("tools/call") && self.version()? >= WITH_MIRRORED_ARGUMENTS;
        self.params.get("arguments").filter(|_| is_call)?.as_object()
    }

    /// Returns the protocol version, if the message contains one.
    pub fn version(&self) -> Option<&str> {
        self.params.get("_meta")?.get("io.modelcontextprotocol/protocolVersion")?.as_str()
    }

    /// Returns the ID of the request that this notification cancels.
    pub fn cancels(&self) -> Option<&Value> {
        (self.method.as_deref() == Some("notifications/cancelled")).then(|| self.params.get("requestId"))?
    }

    /// Returns true for `initialize`, which must finish before other messages are sent.
    pub fn begins(&self) -> bool {
        self.method.as_deref() == Some("initialize")
    }
}

/// Returns the negotiated version in the response to `initialize`.
pub fn agreed_version(answer: &[u8]) -> Option<String> {
    let answer: Value = serde_json::from_slice(answer).ok()?;
    answer.pointer("/result/protocolVersion")?.as_str().map(str::to_owned)
}

/// Returns true for a JSON-RPC message. It is forwarded whatever the HTTP status.
pub fn is_message(answer: &[u8]) -> bool {
    serde_json::from_slice::<Value>(answer).is_ok_and(|it| it.get("jsonrpc").is_some())
}

/// Returns the error for a request without a response from the gateway.
pub fn not_asked(id: &Value, problem: &str, code: Option<&str>) -> String {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": NOT_ASKED, "message": problem, "data": {"code": code}}})
        .to_string()
}

/// Returns the error for a line that cannot be parsed.
pub fn not_read(problem: &str) -> String {
    json!({"jsonrpc": "2.0", "id": null, "error": {"code": NOT_READ, "message": problem}}).to_string()
}
