//! Refusals as a model is told them: the problem that every caller is told, and what to do next.

use rmcp::model::{CallToolResult, RequestId as MessageId, ServerJsonRpcMessage, ServerResult};
use serde::Deserialize;
use serde_json::{Value, json};

use super::McpCaller;
use crate::domain::json::parse::JsonError;
use crate::service::error::Error;
use crate::web::api::problem::{ProblemBody, count_broken};
use crate::web::state::AppState;

/// Where a message keeps what a tool is given.
const ARGUMENTS: &str = "/params/arguments";

/// A refusal as the result of a tool: as an error of the protocol no model would read it.
pub fn told(app: &AppState, asker: &McpCaller, error: &Error) -> CallToolResult {
    count_broken(app, error);
    let mut told = json!(ProblemBody::of(error, "/mcp", &asker.request));
    told["next_step"] = json!(next_step(error));
    CallToolResult::structured_error(told)
}

/// Enough of a message to answer it.
#[derive(Deserialize)]
struct McpRequestHeader {
    id: MessageId,
    method: String,
}

/// What a tool is given that is no strict JSON is told as its result; other messages are refused as a whole.
pub fn unread(app: &AppState, asker: &McpCaller, text: &[u8], error: &Error) -> Option<Value> {
    let Error::Json(wrong) = error else { return None };
    let pointer = wrong.pointer.to_string();
    let below = pointer.strip_prefix(ARGUMENTS)?;
    let call: McpRequestHeader =
        serde_json::from_slice(text).ok().filter(|it: &McpRequestHeader| it.method == "tools/call")?;
    let pointer = below.to_owned().try_into().ok()?;
    let told = told(app, asker, &Error::Json(JsonError { pointer, ..wrong.clone() }));
    Some(json!(ServerJsonRpcMessage::response(ServerResult::CallToolResult(told), call.id)))
}

/// What to do about a call whose outcome is unknown.
const OUTCOME_UNKNOWN: &str = "This call may or may not have been carried out. Wait a few seconds and call it again, unchanged: \
    nothing is done twice. If it fails again, tell your user, with the `request_id`.";

/// What somebody can do who reads nothing else.
fn next_step(error: &Error) -> &'static str {
    if error.outcome_is_unknown() { OUTCOME_UNKNOWN } else { step_after(error) }
}

/// What to do after a refusal, or a failure before anything was changed. A new error does not compile until it has its own.
fn step_after(error: &Error) -> &'static str {
    match error {
        Error::HeadMoved { .. } => {
            "The state changed since you read it. Call read_view, look at what is new, and propose again with its \
             `transition` as `parent`."
        }
        Error::StepReused { .. } => "This `step` did something else: look at `transition`, or name it differently.",
        Error::ThreadHeld(_) => {
            "People are deciding on an earlier change of this thread. Tell your user; propose again when that review has \
             ended. If the held change is yours and no longer wanted, call take_back."
        }
        Error::Rejected(_) => {
            "The policy does not allow this. `errors` says what is wrong where. Propose something that obeys it, or tell \
             your user that you may not do it. The same change will be refused again."
        }
        Error::Conflict { .. } => {
            "The branches do not agree at the places in `errors`. Join them by another strategy, or say by `resolve` what \
             is to stand there."
        }
        Error::WriteInProgress => "A writer is at work on this thread. Wait a few seconds and propose again.",
        Error::Halted => "An administrator stopped this flow. Tell your user, and do not try again before they say so.",
        Error::Closed => "This thread is over. Tell your user; only an administrator opens it again.",
        Error::Imported => "This is a run that was imported: it can be read and nothing else. Use another thread.",
        Error::Expired => "The deadline has passed and nobody decided. Ask again with a higher `attempt`.",
        Error::NotFound("tool") => "There is no such tool here; tools/list names those that there are.",
        Error::NotFound(_) => "Check the name. It is not there, or not in the flow that your token is for.",
        Error::Forbidden(_) | Error::NotOfRole { .. } => {
            "Your token may not do that. Use the node that you were given, or tell your user."
        }
        Error::Unauthenticated => "The token is not valid. Tell your user; an administrator gives out tokens.",
        Error::Json(_) | Error::Invalid { .. } => {
            "Correct what `errors` points at, by the tool's input schema, and call it again. Numbers that a double cannot \
             hold are sent as strings."
        }
        Error::TooMany | Error::Busy | Error::Unavailable(_) => "Wait a few seconds and call it again, unchanged.",
        Error::ClockSkew => "The gateway decides nothing until its clock is set right. Tell your user.",
        Error::WrongState(_) | Error::Exists(_) => "Call look_at_hold to see how things stand.",
        Error::Erased => "The values of that version are erased for good. Use a later one.",
        Error::Archive(_) | Error::NoArchives => {
            "That version cannot be read now. Tell your user, with the `request_id`."
        }
        Error::Broken(_)
        | Error::Unwritten(_)
        | Error::Store(_)
        | Error::Copy(_)
        | Error::Mail(_)
        | Error::Keyring(_) => {
            "This is not your mistake and nothing was changed. Tell your user, with the `request_id`."
        }
        Error::NotSealed(_) | Error::Envelope(_) => "Ask for another envelope, or tell your user what `detail` says.",
        Error::Policy(_)
        | Error::Denied(_)
        | Error::NotTaken(_)
        | Error::NotRepeated(_)
        | Error::Vote(_)
        | Error::Passkey(_)
        | Error::Misdirected
        | Error::NotLetIn(_) => "Tell your user what `detail` says.",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::StoreError;

    #[test]
    fn failed_database_does_not_promise_that_nothing_was_changed() {
        let step = |failure| next_step(&Error::from(failure));
        let failed = step(StoreError::Database("x".to_owned()));
        assert!(failed.contains("may or may not") && failed.contains("again, unchanged"), "{failed}");
        assert!(step(StoreError::Unsealed("rows")).contains("nothing was changed"));
    }
}
