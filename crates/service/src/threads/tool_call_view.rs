//! Tool calls as reviewers see them.

use countersign_domain::chain::commitment::Salt;
use countersign_domain::keys::Keys;
use countersign_domain::policy::{RedactedLeaf, Redactor, shown_arguments_by};
use countersign_domain::primitives::id::ToolName;
use countersign_domain::threads::tool_call::Tool;
use countersign_domain::threads::transition::Transition;
use serde_json::Value;

use crate::error::{Error, Result};
use crate::threads::Threads;

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

impl Threads {
    /// Returns the redacted tool call, after a check that it matches the statement.
    pub(crate) fn call_of(
        &self,
        keys: &Keys,
        hidings: &[Redactor<'_>],
        transition: &Transition,
    ) -> Result<Option<RedactedToolCall>> {
        let Some(tool) = &transition.tool else { return Ok(None) };
        let statement = &transition.statement;
        let secret = self.secret(keys, &statement.thread);
        // The reviewer must see exactly the arguments that the statement commits to.
        if statement.tool.as_ref() != Some(&tool.stated(&secret, &statement.proposal)) {
            return Err(Error::Broken("a tool call does not match its statement"));
        }
        let parts = shown_arguments_by(hidings, tool);
        let hidden = parts.iter().any(|it| matches!(it, RedactedLeaf::Hidden { .. }));
        // The salt stays secret beside redacted arguments, because it would make them guessable.
        let arguments = if hidden {
            RedactedArguments::Parts(parts)
        } else {
            let salt = Tool::salt(&secret, &statement.proposal);
            RedactedArguments::Whole { value: Value::Object(tool.arguments.clone()), salt }
        };
        Ok(Some(RedactedToolCall { name: tool.name.clone(), arguments }))
    }
}
