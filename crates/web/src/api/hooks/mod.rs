//! Hooks of coding agents. Before a tool call, the agent's program asks for its approval, and the gateway uses the
//! approval before it answers `allow`. After the call, the program reports the outcome.

mod claude_code;
mod decision;

use std::time::Duration;

use actix_web::HttpResponse;
use actix_web::web::Query;
use countersign_domain::identity::account::Token;
use countersign_service::Stored;
use countersign_service::approval_requests::ApprovalRequests;
use countersign_service::approval_requests::session_call::SessionCall;
use countersign_service::approval_requests::view::{ApprovalRequestView, RequestDecision, RequestStatus};
use countersign_service::error::{Error, Result};

pub use claude_code::{ClaudeCodeHook, ClaudeCodeHookResponse};

use self::claude_code::HookEvent;
use self::decision::HookDecision;
use super::aap::WaitQuery;
use super::idempotency_key::IdempotentPost;
use super::long_poll::{LongPoll, poll_until};
use super::problem::Problem;
use crate::state::{Capability, capabilities};

capabilities! {
    /// The capabilities of a hook.
    pub struct Hooks {
        requests: Capability<ApprovalRequests>,
        waiting: LongPoll,
    }
}

/// Decide about a tool call of Claude Code.
///
/// Returns 200 for the HTTP hooks `PreToolUse`, `PostToolUse` and `PostToolUseFailure`. `PreToolUse` asks for the approval
/// of the call, waits for at most `wait` and uses the approval. The `permissionDecision` is `allow` or `deny`, and never
/// `ask` or `defer`. Every error after the authentication is `deny` too, except for a body over the limit. The other hooks report the outcome. The same hook
/// again gets the same answer while the lease of the write is valid. Members that are not described here are ignored.
#[utoipa::path(
    post, path = "/v1/hooks/claude-code", tag = "approval requests", request_body = ClaudeCodeHook,
    params(("wait" = Option<String>, Query, description = "The time to wait for a decision", example = "50s")),
    responses((status = 200, description = "The decision, or an empty object after the call", body = ClaudeCodeHookResponse))
)]
pub async fn claude_code(hooks: Hooks, post: IdempotentPost, query: Query<WaitQuery>) -> Result<HttpResponse> {
    // A hook cannot refuse a call by its status, so every error is a decision. The model can cause one by its input.
    let refused = |error| Problem::of(&post.request, error).message();
    let hook: ClaudeCodeHook = match post.read() {
        Ok(hook) => hook,
        Err(error) => return Ok(HttpResponse::Ok().json(ClaudeCodeHookResponse::deny(refused(error)))),
    };
    let answer = match hook.event()? {
        HookEvent::Before => {
            let decision = match hook.call() {
                Ok(call) => decide(&hooks, &post.token, &call, &query).await,
                Err(wrong) => Err(wrong),
            };
            ClaudeCodeHookResponse::of(&hook, decision.unwrap_or_else(|error| HookDecision::Deny(refused(error))))
        }
        HookEvent::After(status) => {
            let view = hooks.requests.report_in_session(&post.token, &hook.end(status)?).await?;
            ClaudeCodeHookResponse::after(&hook, &view)
        }
    };
    Ok(HttpResponse::Ok().json(answer))
}

/// Asks for the approval of a call, waits for it, and uses it.
async fn decide(hooks: &Hooks, token: &Stored<Token>, call: &SessionCall, query: &WaitQuery) -> Result<HookDecision> {
    let wait = query.wished()?;
    let mut view = hooks.requests.ask_in_session(token, call).await?;
    if view.decision.is_none()
        && let Some(decided) = wait_for(hooks, token, &view.id, wait).await?
    {
        view = decided;
    }
    match &view.decision {
        Some(decision) if decision.status == RequestStatus::Approved => {
            let used = hooks.requests.consume_in_session(token, &view.id, &call.key).await?;
            Ok(HookDecision::Allow(Box::new(used.view)))
        }
        Some(decision) => Ok(HookDecision::Deny(refusal(decision))),
        None => {
            let page = hooks.requests.page(&view);
            let at = page.as_ref().map(|it| format!(" at {it}")).unwrap_or_default();
            let text = format!(
                "This call waits for the approval of a reviewer{at}. It has not run. Call the tool again later with \
                 exactly the same input. The gateway then finds this request. Do not try to reach the same effect in \
                 another way."
            );
            Ok(HookDecision::Wait { text, page })
        }
    }
}

/// Waits for a decision. Without a free seat the call is answered at once, as one that still waits.
async fn wait_for(
    hooks: &Hooks,
    token: &Stored<Token>,
    id: &str,
    wait: Duration,
) -> Result<Option<ApprovalRequestView>> {
    let requests = &hooks.requests;
    let look = || async move { Ok(Some(requests.view(token, id).await?).filter(|it| it.decision.is_some())) };
    match poll_until(&hooks.waiting, token, wait, look).await {
        Err(Error::TooMany) => Ok(None),
        other => other,
    }
}

/// Returns the reason of a denial, for the model.
fn refusal(decision: &RequestDecision) -> String {
    let note = decision.note.as_deref().map(|it| format!(" Reason: {it}")).unwrap_or_default();
    match decision.status {
        RequestStatus::Denied if decision.transition.is_some() => format!(
            "A reviewer denied this call.{note} It has not run. Do not try to reach the same effect in another way."
        ),
        RequestStatus::Expired => {
            "No reviewer decided in time. The call has not run. Call again to ask again.".to_owned()
        }
        RequestStatus::Cancelled => "The request was cancelled. The call has not run.".to_owned(),
        RequestStatus::SetAside => format!("The call was not decided.{note} It has not run."),
        RequestStatus::Approved | RequestStatus::Denied => {
            format!("The policy denied this call.{note} It has not run.")
        }
    }
}
