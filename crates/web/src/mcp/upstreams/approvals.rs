//! The approval requests of this gateway, for the guard.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use countersign_domain::identity::account::Token;
use countersign_domain::platform::idempotency::IdempotencyKey;
use countersign_domain::policy::ChangedTools;
use countersign_domain::primitives::id::ToolName;
use countersign_domain::threads::approval_request::{CallStatus, Submission};
use countersign_mcp_guard::approvals::{
    AllowedTools, Approval, ApprovalFailure, ApprovalStatus, ApprovalUse, Approvals, AskedCall, UsedApproval, lease_of,
};
use countersign_service::Stored;
use countersign_service::approval_requests::ApprovalRequests;
use countersign_service::approval_requests::view::{ApprovalRequestView, RequestStatus};
use countersign_service::error::Error;

use crate::api::long_poll::{LongPoll, poll_until};
use crate::api::problem::Problem;
use crate::request_log::RequestId;
use crate::state::Capability;

/// The approval requests of one token, during one HTTP request.
pub struct ServiceApprovals {
    pub requests: Capability<ApprovalRequests>,
    pub waiting: LongPoll,
    pub token: Arc<Stored<Token>>,
    /// The path and the id of the HTTP request, for the log.
    pub path: String,
    pub request: RequestId,
}

#[async_trait]
impl Approvals for ServiceApprovals {
    async fn ask(&self, key: &str, call: &AskedCall) -> Result<Approval, ApprovalFailure> {
        let submission = Submission {
            tool: call.tool.clone(),
            server: call.server.clone(),
            arguments: call.arguments.clone(),
            timeout: call.timeout.to_owned(),
            agent_reasoning: call.change.clone(),
            context: None,
            tool_has_changed: call.change.is_some(),
        };
        let asked = self.requests.ask_shared(&self.token, &key_of(key), &submission).await;
        let asked = asked.map(|it| Approval { is_new: it.is_new, ..self.approval(&it.view) });
        asked.map_err(|it| self.failure(it))
    }

    async fn read(&self, id: &str, wait: Duration) -> Result<Approval, ApprovalFailure> {
        let (requests, token) = (&self.requests, &self.token);
        if wait.is_zero() {
            return requests.view(token, id).await.map(|it| self.approval(&it)).map_err(|it| self.failure(it));
        }
        let look = || async move { Ok(Some(requests.view(token, id).await?).filter(|it| it.decision.is_some())) };
        let view = match poll_until(&self.waiting, token, wait, look).await {
            Ok(Some(view)) => Ok(view),
            Ok(None) => requests.view(token, id).await,
            Err(error) => Err(error),
        };
        view.map(|it| self.approval(&it)).map_err(|it| self.failure(it))
    }

    async fn consume(&self, approval: &Approval) -> Result<UsedApproval, ApprovalFailure> {
        let used = self.requests.consume_in_guard(&self.token, &approval.id).await.map_err(|it| self.failure(it))?;
        let lease = lease_of(&used.verification).ok_or(ApprovalFailure::Unavailable)?;
        Ok(UsedApproval { approval: self.approval(&used.view), lease })
    }

    async fn report(&self, id: &str, succeeded: bool, note: &str) -> Result<(), ApprovalFailure> {
        let status = if succeeded { CallStatus::Succeeded } else { CallStatus::Failed };
        self.requests.report_in_guard(&self.token, id, status, note.to_owned()).await.map_err(|it| self.failure(it))
    }

    async fn cancel(&self, id: &str) -> Result<(), ApprovalFailure> {
        self.requests.cancel(&self.token, id).await.map(|_| ()).map_err(|it| self.failure(it))
    }

    async fn callable(&self, tools: &[String]) -> Result<AllowedTools, ApprovalFailure> {
        let tools = tools.iter().filter_map(|it| ToolName::try_from(it.clone()).ok()).collect();
        let allowed = self.requests.callable(&self.token, tools).await.map_err(|it| self.failure(it))?;
        let names = allowed.callable.into_iter().map(|it| it.to_string()).collect();
        let missing = allowed.missing.iter().map(ToString::to_string).collect();
        Ok(AllowedTools { names, missing, holds_changed: allowed.changed == ChangedTools::Hold })
    }
}

impl ServiceApprovals {
    fn failure(&self, error: Error) -> ApprovalFailure {
        let told = Problem::at(&self.path, &self.request, error).in_protocol();
        match told.status.is_server_error() {
            true => ApprovalFailure::Unavailable,
            false => ApprovalFailure::Refused { code: told.code, message: told.message },
        }
    }

    fn approval(&self, view: &ApprovalRequestView) -> Approval {
        let decided_at = view.decision.as_ref().map(|it| it.at);
        let updated_at = view.outcome().map(|it| it.at).or(view.consumed_at).or(decided_at);
        Approval {
            id: view.id.clone(),
            tool: view.tool().to_owned(),
            server: view.request.server.clone(),
            status: match view.decision.as_ref().map(|it| it.status) {
                None => ApprovalStatus::Pending,
                Some(RequestStatus::Approved) => ApprovalStatus::Approved,
                Some(RequestStatus::Denied | RequestStatus::SetAside) => ApprovalStatus::Denied,
                Some(RequestStatus::Expired) => ApprovalStatus::Expired,
                Some(RequestStatus::Cancelled) => ApprovalStatus::Cancelled,
            },
            arguments: view.call.arguments.clone(),
            note: view.decision.as_ref().and_then(|it| it.note.clone()),
            tool_has_changed: view.request.tool_has_changed,
            reasoning: view.reasoning.clone(),
            usage: usage(view),
            is_new: false,
            page: self.requests.page(view),
            created_at: view.created_at.to_string(),
            updated_at: updated_at.unwrap_or(view.created_at).to_string(),
        }
    }
}

fn usage(view: &ApprovalRequestView) -> ApprovalUse {
    match (view.outcome(), view.consumed_at) {
        (Some(outcome), _) => {
            ApprovalUse::Ended { succeeded: outcome.status == CallStatus::Succeeded, note: outcome.note.clone() }
        }
        (None, Some(_)) if view.outcome_is_unknown => ApprovalUse::Unknown,
        (None, Some(_)) => ApprovalUse::Used,
        (None, None) => ApprovalUse::Unused,
    }
}

fn key_of(text: &str) -> IdempotencyKey {
    IdempotencyKey::read(text).expect("a UUID is a key")
}
