//! Tools: what an agent says it calls along with a request.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::usage::InvalidUsage;
use crate::domain::chain::commitment::Salt;
use crate::domain::chain::hash::{Digest, Tag};
use crate::domain::json::canonical::canonical;
use crate::domain::json::pointer::Pointer;
use crate::domain::keys::ThreadSecret;
use crate::domain::primitives::id::{ProposalId, ToolName};

/// Arguments are looked at by people and by every rule: a document belongs into the state.
pub const ARGUMENTS_BYTES_MAX: usize = 16 * 1024;

/// A call of a tool. The gateway does not call it: it says whether the agent may.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tool {
    pub name: ToolName,
    pub arguments: Map<String, Value>,
}

impl Tool {
    /// Reads `{name, arguments}`.
    pub fn read(value: &Value) -> Result<Self, InvalidUsage> {
        let root = Pointer::root();
        let wrong = |pointer: Pointer, detail| InvalidUsage { pointer, detail };
        let Value::Object(members) = value else {
            return Err(wrong(root, "a tool is an object with `name` and `arguments`"));
        };
        if let Some(key) = members.keys().find(|it| !matches!(it.as_str(), "name" | "arguments")) {
            return Err(wrong(root.child(key), "a tool has `name` and `arguments`, and nothing else"));
        }
        let name = members.get("name").and_then(Value::as_str).and_then(|it| ToolName::try_from(it).ok());
        let name = name.ok_or_else(|| wrong(root.child("name"), "this is not the name of a tool"))?;
        let Some(Value::Object(arguments)) = members.get("arguments") else {
            return Err(wrong(root.child("arguments"), "arguments are an object, `{}` if there are none"));
        };
        if canonical(&members["arguments"]).len() > ARGUMENTS_BYTES_MAX {
            return Err(wrong(root.child("arguments"), "arguments are at most 16 KiB of canonical JSON"));
        }
        Ok(Self { name, arguments: arguments.clone() })
    }

    /// What makes another request call the same.
    pub fn identity(&self) -> Value {
        json!({"name": self.name, "arguments": self.arguments})
    }

    /// The salt under which a proposal's arguments are committed to.
    pub fn salt(secret: &ThreadSecret, proposal: &ProposalId) -> Salt {
        // A leaf's salt is of `[pointer, proposal]`, and no pointer is `arguments`.
        secret.hmac(canonical(&json!(["arguments", proposal])).as_bytes())
    }

    /// As it is stated: its name, and a salted commitment to its arguments. Statements are read by more than may
    /// know what one node sends.
    pub fn stated(&self, secret: &ThreadSecret, proposal: &ProposalId) -> Value {
        let salt = Self::salt(secret, proposal);
        let arguments = canonical(&Value::Object(self.arguments.clone()));
        json!({"name": self.name, "arguments": Digest::of(Tag::Arguments, &[&salt, arguments.as_bytes()])})
    }
}

#[cfg(test)]
mod tests;
