//! Tool calls as reviewers see them.

use serde_json::Value;

use countersign_domain::chain::commitment::Salt;
use countersign_domain::policy::RedactedLeaf;
use countersign_domain::primitives::id::ToolName;

/// A redacted tool call.
pub struct RedactedToolCall {
    pub name: ToolName,
    pub arguments: RedactedArguments,
}

/// The arguments of a tool call.
pub enum RedactedArguments {
    /// All arguments, with the salt of their commitment.
    Whole { value: Value, salt: Salt },
    /// The arguments that are not redacted.
    Parts(Vec<RedactedLeaf>),
}
