//! What the pipe has to know of a message: how it is announced in HTTP, and how it is answered when the gateway is not there.

use serde::Deserialize;
use serde_json::{Value, json};

/// The gateway could not be asked, or is none.
const NOT_ASKED: i64 = -32000;

const NOT_READ: i64 = -32700;

/// As much of a message as is looked at. The gateway reads the rest.
#[derive(Deserialize)]
pub struct McpMessage {
    /// What the answer is known by; a notification has none.
    pub id: Option<Value>,
    pub method: Option<String>,
    #[serde(default)]
    params: Value,
}

impl McpMessage {
    pub fn read(line: &[u8]) -> Option<Self> {
        serde_json::from_slice(line).ok()
    }

    /// What the call is of, as the header says it for those who do not read the body: a tool's name, a resource's address.
    pub fn name(&self) -> Option<&str> {
        let member = match self.method.as_deref()? {
            "tools/call" | "prompts/get" => "name",
            "resources/read" => "uri",
            _ => return None,
        };
        self.params.get(member)?.as_str()
    }

    /// The version of the protocol, where a message says its own.
    pub fn version(&self) -> Option<&str> {
        self.params.get("_meta")?.get("io.modelcontextprotocol/protocolVersion")?.as_str()
    }

    /// The request that is no longer wanted, if this says so.
    pub fn cancels(&self) -> Option<&Value> {
        (self.method.as_deref() == Some("notifications/cancelled")).then(|| self.params.get("requestId"))?
    }

    /// True for the one message that everything later depends on.
    pub fn begins(&self) -> bool {
        self.method.as_deref() == Some("initialize")
    }
}

/// The version that both sides have agreed on, out of the answer to the first message.
pub fn agreed_version(answer: &[u8]) -> Option<String> {
    let answer: Value = serde_json::from_slice(answer).ok()?;
    answer.pointer("/result/protocolVersion")?.as_str().map(str::to_owned)
}

/// True if it is a message: then it is handed on, whatever the status.
pub fn is_message(answer: &[u8]) -> bool {
    serde_json::from_slice::<Value>(answer).is_ok_and(|it| it.get("jsonrpc").is_some())
}

/// What is answered to a request that the gateway did not answer.
pub fn not_asked(id: &Value, problem: &str, code: Option<&str>) -> String {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": NOT_ASKED, "message": problem, "data": {"code": code}}})
        .to_string()
}

/// What is answered to a line that is none.
pub fn not_read(problem: &str) -> String {
    json!({"jsonrpc": "2.0", "id": null, "error": {"code": NOT_READ, "message": problem}}).to_string()
}
