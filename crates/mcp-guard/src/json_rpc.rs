//! The form of JSON-RPC messages, and the guard's own responses. Nothing here has an effect.

use serde_json::{Value, json};

/// The members of a message.
pub const MEMBERS: [&str; 6] = ["jsonrpc", "id", "method", "params", "result", "error"];

/// Returns a response with a result or an error.
pub fn response(id: &Value, member: &str, value: Value) -> Vec<u8> {
    json!({"jsonrpc": "2.0", "id": id, member: value}).to_string().into_bytes()
}

/// Returns an error response.
pub fn error(id: &Value, why: &str) -> Vec<u8> {
    response(id, "error", error_value(why))
}

/// Returns the error of a response.
pub fn error_value(why: &str) -> Value {
    json!({"code": -32000, "message": why})
}

/// Returns the result of a tool call that did not run, with the reason. The model reads it.
pub fn not_run(why: &str) -> Value {
    json!({"content": [{"type": "text", "text": why}], "isError": true})
}
