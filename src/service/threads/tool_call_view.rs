//! Calls of tools as people may see them.

use serde_json::Value;

use crate::domain::chain::commitment::Salt;
use crate::domain::policy::RedactedLeaf;
use crate::domain::primitives::id::ToolName;

/// A call of a tool as people may see it.
pub struct RedactedToolCall {
    pub name: ToolName,
    pub arguments: RedactedArguments,
}

/// What a tool is called with.
pub enum RedactedArguments {
    /// All of it, and what it was committed to with.
    Whole { value: Value, salt: Salt },
    /// What is not hidden of it.
    Parts(Vec<RedactedLeaf>),
}
