//! Tool calls: the tool that an agent reports with a request.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::usage::InvalidUsage;
use crate::chain::commitment::Salt;
use crate::chain::hash::{Digest, Tag};
use crate::json::canonical::canonical;
use crate::json::pointer::Pointer;
use crate::json::size::{LEAVES_MAX, STATE_DEPTH_CEILING, SizeExceeded, StateLimits};
use crate::keys::ThreadSecret;
use crate::primitives::id::{ProposalId, ToolName};

/// The size limit of arguments. Reviewers and all rules read them.
pub const ARGUMENTS_BYTES_MAX: usize = 1024 * 1024;

/// The limits of arguments. Each leaf is named by its whole pointer, as in a state, so their number is limited too.
const LIMITS: StateLimits =
    StateLimits { bytes_max: ARGUMENTS_BYTES_MAX, leaves_max: LEAVES_MAX, depth_max: STATE_DEPTH_CEILING };

/// A tool call. The gateway does not execute it. It decides whether the agent may.
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
            return Err(wrong(root, "`tool` must be an object with `name` and `arguments`"));
        };
        // Reviewers see only these members, so an additional one is refused.
        if let Some(key) = members.keys().find(|it| !matches!(it.as_str(), "name" | "arguments")) {
            return Err(wrong(root.child(key), "unknown member: a tool has only `name` and `arguments`"));
        }
        let name = members.get("name").and_then(Value::as_str).and_then(|it| ToolName::try_from(it).ok());
        let name = name.ok_or_else(|| wrong(root.child("name"), "`name` must be the name of a tool"))?;
        let Some(Value::Object(arguments)) = members.get("arguments") else {
            return Err(wrong(root.child("arguments"), "`arguments` must be an object; send `{}` without arguments"));
        };
        Self::new(name, arguments.clone())
    }

    /// Returns the call if its arguments are within the limits.
    pub fn new(name: ToolName, arguments: Map<String, Value>) -> Result<Self, InvalidUsage> {
        let wrong =
            |exceeded| InvalidUsage { pointer: Pointer::root().child("arguments"), detail: too_large(exceeded) };
        // The canonical length does not depend on the client's whitespace.
        LIMITS.check(&Value::Object(arguments.clone())).map_err(wrong)?;
        Ok(Self { name, arguments })
    }

    /// Returns the part of a request's identity that describes the tool call.
    pub fn identity(&self) -> Value {
        json!({"name": self.name, "arguments": self.arguments})
    }

    /// Returns the salt of the commitment to a proposal's arguments.
    pub fn salt(secret: &ThreadSecret, proposal: &ProposalId) -> Salt {
        // The salt of a leaf is derived from `[pointer, proposal]`. No pointer is `arguments`, so the salts differ.
        secret.hmac(canonical(&json!(["arguments", proposal])).as_bytes())
    }

    /// Returns the statement's form: the name, and a salted commitment to the arguments. Readers of a statement may not
    /// be allowed to read the arguments of one node.
    pub fn stated(&self, secret: &ThreadSecret, proposal: &ProposalId) -> Value {
        let salt = Self::salt(secret, proposal);
        let arguments = canonical(&Value::Object(self.arguments.clone()));
        json!({"name": self.name, "arguments": Digest::of(Tag::Arguments, &[&salt, arguments.as_bytes()])})
    }
}

const fn too_large(exceeded: SizeExceeded) -> &'static str {
    match exceeded {
        SizeExceeded::Bytes => {
            "`arguments` is longer than 1 MiB of canonical JSON; split the call, or pass the path of a file"
        }
        SizeExceeded::Leaves => "`arguments` has more than 10,000 values; split the call, or pass the path of a file",
        SizeExceeded::Pointers => "`arguments` has too many values below long keys; shorten the keys",
        SizeExceeded::Depth => "`arguments` has too many arrays and objects within each other; flatten it",
    }
}

#[cfg(test)]
mod tests;
