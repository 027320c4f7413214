//! Tool calls as reviewers see them.

use std::sync::Arc;

use countersign_domain::chain::commitment::Salt;
use countersign_domain::identity::party::{Author, Party};
use countersign_domain::json::diff::leaves;
use countersign_domain::json::pointer::Pointer;
use countersign_domain::keys::Keys;
use countersign_domain::policy::{Policy, RedactedLeaf, Redactor, ToolDescription, shown_arguments_by};
use countersign_domain::primitives::id::ToolName;
use countersign_domain::threads::tool_call::Tool;
use countersign_domain::threads::transition::Transition;
use serde_json::Value;

use crate::error::{Error, Result};
use crate::threads::Threads;
use crate::threads::redaction::{Redaction, SentCall};

/// A redacted tool call.
pub struct RedactedToolCall {
    pub name: ToolName,
    /// How the policy describes the tool to reviewers.
    pub description: ToolDescription,
    pub arguments: RedactedArguments,
}

/// The arguments of a tool call.
pub enum RedactedArguments {
    /// All arguments, with the salt of their commitment.
    Whole { value: Value, salt: Salt },
    /// The arguments that are not redacted.
    Parts(Vec<RedactedLeaf>),
}

impl RedactedToolCall {
    /// Returns the paths of all values in the arguments, as their readers see them.
    pub fn places(&self) -> Vec<Pointer> {
        let place = |leaf: &RedactedLeaf| match leaf {
            RedactedLeaf::Hidden { pointer } | RedactedLeaf::Shown { pointer, .. } => pointer.clone(),
        };
        match &self.arguments {
            RedactedArguments::Whole { value, .. } => leaves(value).into_iter().map(|(pointer, _)| pointer).collect(),
            RedactedArguments::Parts(parts) => parts.iter().map(place).collect(),
        }
    }
}

/// The policies, redactors and states around a tool call, for one reader.
pub(crate) struct CallContext<'a> {
    pub(crate) reader: &'a Party,
    pub(crate) policies: &'a [Arc<Policy>],
    pub(crate) hidings: &'a [Redactor<'a>],
    pub(crate) states: [&'a Value; 2],
}

impl Threads {
    /// Returns the redacted tool call of a transition between these states.
    pub(crate) fn call_in(
        &self,
        keys: &Keys,
        transition: &Transition,
        sent: Option<&SentCall>,
        context: &CallContext<'_>,
    ) -> Result<Option<RedactedToolCall>> {
        let Some(sent) = sent else { return Ok(None) };
        let CallContext { reader, policies, hidings, states } = context;
        let authors = [&sent.caller];
        let redaction = Redaction::with_redactors((*reader).clone(), policies, hidings, states, Some(sent), authors);
        self.call_of(keys, &redaction, &sent.caller, transition)
    }

    /// Returns the redacted tool call, after a check that it matches the statement.
    pub(crate) fn call_of(
        &self,
        keys: &Keys,
        redaction: &Redaction,
        caller: &Author,
        transition: &Transition,
    ) -> Result<Option<RedactedToolCall>> {
        let Some(tool) = &transition.tool else { return Ok(None) };
        let statement = &transition.statement;
        let secret = self.secret(keys, &statement.thread);
        // The reviewer must see exactly the arguments that the statement commits to.
        if statement.tool.as_ref() != Some(&tool.stated(&secret, &statement.proposal)) {
            return Err(Error::Broken("a tool call does not match its statement"));
        }
        let parts = shown_arguments_by(&redaction.redactors(caller), tool);
        let hidden = parts.iter().any(|it| matches!(it, RedactedLeaf::Hidden { .. }));
        // The salt stays secret beside redacted arguments, because it would make them guessable.
        let arguments = if hidden {
            RedactedArguments::Parts(parts)
        } else {
            let salt = Tool::salt(&secret, &statement.proposal);
            RedactedArguments::Whole { value: Value::Object(tool.arguments.clone()), salt }
        };
        let policy = redaction.policies().iter().find(|it| it.digest() == statement.policy);
        let description = policy.and_then(|it| it.tool_description(&tool.name)).cloned().unwrap_or_default();
        Ok(Some(RedactedToolCall { name: tool.name.clone(), description, arguments }))
    }
}
