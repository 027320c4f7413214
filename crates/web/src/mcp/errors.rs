//! Errors for models: the problem that every client gets, with the next step.

use countersign_domain::json::parse::JsonError;
use countersign_service::error::{Error, ErrorKind};
use countersign_service::operations::Operations;
use rmcp::model::{CallToolResult, RequestId as MessageId, ServerJsonRpcMessage, ServerResult};
use serde::Deserialize;
use serde_json::{Value, json};

use super::McpCaller;
use crate::api::problem::{ProblemBody, count_broken};

/// The pointer of a tool's arguments in a message.
const ARGUMENTS: &str = "/params/arguments";

/// Returns an error as the result of a tool. Clients do not show protocol errors to the model.
pub fn told(operations: &Operations, asker: &McpCaller, error: &Error) -> CallToolResult {
    count_broken(operations, error);
    let mut told = json!(ProblemBody::of(error, "/mcp", &asker.request));
    told["next_step"] = json!(next_step(error));
    CallToolResult::structured_error(told)
}

/// The part of a message that a response needs.
#[derive(Deserialize)]
struct McpRequestHeader {
    id: MessageId,
    method: String,
}

/// Returns invalid JSON in a tool's arguments as a tool result. Other invalid messages are refused as a whole.
pub fn unread(operations: &Operations, asker: &McpCaller, text: &[u8], error: &Error) -> Option<Value> {
    let Error::Json(wrong) = error else { return None };
    let pointer = wrong.pointer.to_string();
    let below = pointer.strip_prefix(ARGUMENTS)?;
    let call: McpRequestHeader =
        // The lax parser is enough for the id, because the message is refused in any case.
        serde_json::from_slice(text).ok().filter(|it: &McpRequestHeader| it.method == "tools/call")?;
    // The model knows only its own arguments, so the pointer starts there.
    let pointer = below.to_owned().try_into().ok()?;
    let told = told(operations, asker, &Error::Json(JsonError { pointer, ..wrong.clone() }));
    Some(json!(ServerJsonRpcMessage::response(ServerResult::CallToolResult(told), call.id)))
}

/// The next step after a call whose outcome is unknown.
const OUTCOME_UNKNOWN: &str = "This call may or may not have been carried out. Wait a few seconds and call the \
    tool again, unchanged: nothing is done twice. If it fails again, tell your user and give the `request_id`.";

/// Returns the next step. It must be complete, because a model may read nothing else.
fn next_step(error: &Error) -> &'static str {
    if error.outcome_is_unknown() { OUTCOME_UNKNOWN } else { step_after(error) }
}

/// Returns the next step after a refusal, or after a failure that changed nothing.
fn step_after(error: &Error) -> &'static str {
    match error {
        Error::HeadMoved { .. } => {
            "The state changed since you read it. Call read_view, read what changed, and propose again with its \
             `transition` as `parent`."
        }
        Error::StepReused { .. } => "This `step` was used before. Read `transition`, or use another `step`.",
        Error::ThreadHeld(_) => {
            "Reviewers are deciding on an earlier change of this thread. Tell your user, and propose again after that \
             review has ended. If the held change is yours and no longer needed, cancel it with take_back."
        }
        Error::Rejected(_) => {
            "The policy does not allow this. `errors` lists each problem and its path. Propose a change that the \
             policy allows, or tell your user that it is not allowed. The same change would be rejected again."
        }
        Error::Conflict { .. } => {
            "The branches have different values at the paths in `errors`. Join them with another strategy, or set the \
             values in `resolve`."
        }
        Error::WriteInProgress => "A writer is writing this thread. Wait a few seconds and propose again.",
        Error::Halted => "An administrator halted this flow. Tell your user, and repeat the call only if they ask.",
        Error::Closed => "This thread is closed. Tell your user: only an administrator can reopen it.",
        Error::Imported => "This thread is an imported run, which is read-only. Use another thread.",
        Error::Expired => "The deadline passed without a decision. Propose again with a higher `attempt`.",
        Error::NotFound("tool") => "This tool does not exist. Call tools/list for the available tools.",
        Error::NotFound(_) => "Check the name. It does not exist, or belongs to another flow than your token.",
        Error::Forbidden(_) | Error::NotOfRole { .. } => {
            "Your token does not allow this call. Use the node that you were given, or tell your user."
        }
        Error::Unauthenticated | Error::Token(_) => {
            "The token is invalid. Tell your user: an administrator can create a new one."
        }
        Error::Json(_) | Error::Invalid { .. } => {
            "Correct the members that `errors` names, by the tool's input schema, and call the tool again. If a double \
             cannot hold a number exactly, send it as a string."
        }
        Error::TooMany | Error::Busy | Error::Unavailable(_) => "Wait a few seconds and call it again, unchanged.",
        Error::ClockSkew => "The gateway makes no decisions until its clock is correct. Tell your user.",
        Error::WrongState(_) | Error::Exists(_) => "Call look_at_hold to read the current state, then follow `detail`.",
        Error::Erased => "The values of that version are permanently erased. Use a later version.",
        Error::Archive(_) | Error::NoArchives => {
            "That version cannot be read now. Tell your user and give the `request_id`."
        }
        _ if error.kind() == ErrorKind::Failed => {
            "This is not your mistake and nothing was changed. Tell your user and give the `request_id`."
        }
        Error::NotSealed(_) | Error::Envelope(_) => "Request another envelope, or tell your user the text of `detail`.",
        _ => "Tell your user the text of `detail`.",
    }
}

#[cfg(test)]
mod tests {
    use countersign_store::StoreError;

    use super::*;

    #[test]
    fn failed_database_does_not_promise_that_nothing_was_changed() {
        let step = |failure| next_step(&Error::from(failure));
        let failed = step(StoreError::Database("x".to_owned()));
        assert!(failed.contains("may or may not") && failed.contains("again, unchanged"), "{failed}");
        assert!(step(StoreError::Unsealed("rows")).contains("nothing was changed"));
    }
}
