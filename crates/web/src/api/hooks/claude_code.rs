//! The hooks of Claude Code as JSON: `PreToolUse`, `PostToolUse` and `PostToolUseFailure`.

use countersign_domain::chain::hash::Digest;
use countersign_domain::json::canonical::canonical;
use countersign_domain::platform::idempotency::IdempotencyKey;
use countersign_domain::threads::approval_request::{CallStatus, Submission};
use countersign_service::approval_requests::session_call::{SessionCall, SessionCallEnd};
use countersign_service::approval_requests::view::ApprovalRequestView;
use countersign_service::error::{Error, Result};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use super::decision::HookDecision;

/// The prefix of the names of MCP tools.
const MCP: &str = "mcp__";

/// The separator of a server and its tool in the names of MCP tools.
const SEPARATOR: &[u8] = b"__";

/// The time to wait for a decision. The policy's `ttl` is the maximum.
const TIMEOUT: &str = "30d";

/// The body of `POST /v1/hooks/claude-code`, as Claude Code sends it.
#[derive(Debug, Deserialize, ToSchema)]
pub struct ClaudeCodeHook {
    /// `PreToolUse`, `PostToolUse` or `PostToolUseFailure`.
    #[schema(pattern = "^(PreToolUse|PostToolUse|PostToolUseFailure)$")]
    hook_event_name: String,
    /// The session. A call that waits is found again by the same call in the same session and folder.
    #[schema(min_length = 1, max_length = 256)]
    session_id: String,
    /// The working directory.
    #[serde(default)]
    #[schema(nullable = false, max_length = 4096)]
    cwd: Option<String>,
    /// The name of the tool. The tool of an MCP server is named `mcp__SERVER__TOOL`, and policies know it as
    /// `SERVER:TOOL`.
    #[schema(min_length = 1, max_length = 128)]
    tool_name: String,
    /// The arguments.
    #[schema(value_type = Object)]
    tool_input: Map<String, Value>,
    /// The id of the call.
    #[schema(min_length = 1, max_length = 256)]
    tool_use_id: String,
    /// The result, after a call. Only its digest is recorded.
    #[serde(default)]
    #[schema(value_type = Object)]
    tool_response: Value,
    /// The error, after a failed call. Only its digest is recorded.
    #[serde(default)]
    #[schema(value_type = String)]
    error: Value,
}

/// The answer to a hook of Claude Code.
#[derive(Debug, Default, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClaudeCodeHookResponse {
    /// A message for the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    system_message: Option<String>,
    /// The decision. After a call there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    hook_specific_output: Option<ClaudeCodeDecision>,
}

/// The decision about a tool call of Claude Code.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClaudeCodeDecision {
    /// `PreToolUse`.
    hook_event_name: &'static str,
    /// `allow` or `deny`.
    permission_decision: &'static str,
    /// The reason. Claude sees the reason of a denial, and the user that of an approval.
    permission_decision_reason: String,
    /// The approved arguments, if they differ from those of the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = Option<Object>)]
    updated_input: Option<Map<String, Value>>,
    /// The note of a reviewer, for Claude.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    additional_context: Option<String>,
}

/// The time of a hook.
pub(super) enum HookEvent {
    /// Before the call.
    Before,
    /// After the call, with its outcome.
    After(CallStatus),
}

impl ClaudeCodeHook {
    pub(super) fn event(&self) -> Result<HookEvent> {
        match self.hook_event_name.as_str() {
            "PreToolUse" => Ok(HookEvent::Before),
            "PostToolUse" => Ok(HookEvent::After(CallStatus::Succeeded)),
            "PostToolUseFailure" => Ok(HookEvent::After(CallStatus::Failed)),
            _ => Err(Error::invalid(
                "/hook_event_name",
                "this address answers the hooks PreToolUse, PostToolUse and PostToolUseFailure",
            )),
        }
    }

    /// Returns the call that the hook is about.
    pub(super) fn call(&self) -> Result<SessionCall> {
        let name = tool_of(&self.tool_name)?;
        let mut context = Map::new();
        context.insert("session_id".to_owned(), json!(self.session_id));
        let mut reasoning = format!("Claude Code, session {}", self.session_id);
        if let Some(cwd) = &self.cwd {
            context.insert("cwd".to_owned(), json!(cwd));
            reasoning.push_str(&format!(", in the folder {cwd}"));
        }
        let submission = Submission {
            tool: name.tool.to_owned(),
            server: name.server.map(str::to_owned),
            arguments: self.tool_input.clone(),
            timeout: TIMEOUT.to_owned(),
            agent_reasoning: Some(reasoning),
            context: Some(context),
            tool_has_changed: false,
        };
        Ok(SessionCall { key: self.key()?, submission })
    }

    /// Returns the end of the call, with the digest of its result. The result itself can contain secrets.
    pub(super) fn end(&self, status: CallStatus) -> Result<SessionCallEnd> {
        let (what, value) = match status {
            CallStatus::Succeeded => ("result", &self.tool_response),
            CallStatus::Failed => ("error", &self.error),
        };
        let note = Some(format!("{what} {}", Digest::of_file(canonical(value).as_bytes())));
        Ok(SessionCallEnd { key: self.key()?, arguments: self.tool_input.clone(), status, note })
    }

    /// Returns the name of the call. Ids are unique in their session.
    fn key(&self) -> Result<IdempotencyKey> {
        for (member, text) in [("/session_id", &self.session_id), ("/tool_use_id", &self.tool_use_id)] {
            if text.is_empty() {
                return Err(Error::invalid(member, "the id must not be empty"));
            }
        }
        let digest = Digest::of_file(canonical(&json!([self.session_id, self.tool_use_id])).as_bytes());
        Ok(IdempotencyKey::read(&format!("claude-code:{digest}")).expect("a digest is visible ASCII"))
    }
}

impl ClaudeCodeHookResponse {
    pub(super) fn of(hook: &ClaudeCodeHook, decision: HookDecision) -> Self {
        match decision {
            HookDecision::Allow(view) => Self::allow(hook, &view),
            HookDecision::Deny(why) => Self::deny(why),
            HookDecision::Wait { text, page } => {
                let system_message =
                    page.map(|it| format!("Countersign: {} waits for approval at {it}", hook.tool_name));
                Self { system_message, ..Self::decided("deny", text) }
            }
        }
    }

    pub(super) fn deny(why: String) -> Self {
        Self::decided("deny", why)
    }

    /// Returns the answer after a call.
    pub(super) fn after(hook: &ClaudeCodeHook, view: &ApprovalRequestView) -> Self {
        let is_altered = view.call.arguments != hook.tool_input;
        let warning = "Countersign: the call ran with other arguments than the approved ones. Look at the other hooks.";
        Self { system_message: is_altered.then(|| warning.to_owned()), hook_specific_output: None }
    }

    fn allow(hook: &ClaudeCodeHook, view: &ApprovalRequestView) -> Self {
        let decision = view.decision.as_ref();
        let by = if decision.is_some_and(|it| it.receipt.is_some()) { "reviewers" } else { "the policy" };
        let mut answer = Self::decided("allow", format!("Approved by {by} for one run."));
        if let Some(output) = &mut answer.hook_specific_output {
            let approved = &view.call.arguments;
            output.updated_input = (*approved != hook.tool_input).then(|| approved.clone());
            output.additional_context =
                decision.and_then(|it| it.note.as_ref()).map(|it| format!("Note of the reviewer who approved: {it}"));
        }
        answer
    }

    fn decided(permission_decision: &'static str, reason: String) -> Self {
        let output = ClaudeCodeDecision {
            hook_event_name: "PreToolUse",
            permission_decision,
            permission_decision_reason: format!("Countersign: {reason}"),
            updated_input: None,
            additional_context: None,
        };
        Self { system_message: None, hook_specific_output: Some(output) }
    }
}

/// A tool's name and its server.
#[derive(PartialEq, Eq, Debug)]
struct ToolOfServer<'n> {
    server: Option<&'n str>,
    tool: &'n str,
}

/// Reads the name of a tool. A name that could mean the tools of two servers is refused.
fn tool_of(name: &str) -> Result<ToolOfServer<'_>> {
    let wrong = |why: &str| Err(Error::invalid("/tool_name", why));
    // Policies write the tool of a server with a colon.
    if name.contains(':') {
        return wrong("the name of a tool must not contain a colon");
    }
    let Some(rest) = name.strip_prefix(MCP) else { return Ok(ToolOfServer { server: None, tool: name }) };
    let mut places = rest.as_bytes().windows(SEPARATOR.len()).enumerate().filter(|(_, it)| *it == SEPARATOR);
    match (places.next(), places.next()) {
        (Some((at, _)), None) if at > 0 && at + SEPARATOR.len() < rest.len() => {
            Ok(ToolOfServer { server: Some(&rest[..at]), tool: &rest[at + SEPARATOR.len()..] })
        }
        (Some(_), Some(_)) => wrong(
            "the name can mean tools of several servers. Rename the server or the tool, so that neither has two \
             underscores in a row nor one at its end or beginning",
        ),
        _ => wrong("the name of an MCP tool must be mcp__SERVER__TOOL"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tool_of_a_server_has_one_reading() {
        let read = |name| tool_of(name).ok().map(|it| (it.server, it.tool));
        assert_eq!(read("Bash"), Some((None, "Bash")));
        assert_eq!(read("mcp__crm__issue_refund"), Some((Some("crm"), "issue_refund")));
        assert_eq!(read("mcp__plugin_a_db__query"), Some((Some("plugin_a_db"), "query")));
        assert_eq!(read("mcp_crm"), Some((None, "mcp_crm")));
        for refused in [
            "crm:issue_refund",
            "mcp__crm:a__b",
            "mcp__a__b__c",
            "mcp__a___b",
            "mcp__a____b",
            "mcp__",
            "mcp__a",
            "mcp__a__",
            "mcp____a",
            "mcp___a__b__",
        ] {
            assert_eq!(read(refused), None, "{refused}");
        }
    }
}
