//! The approval requests of a gateway, by its client.

use std::time::Duration;

use async_trait::async_trait;
use countersign_adapters::random;
use countersign_client::{
    CallStatus, CallToApprove, Client, ClientError, Consumption, RequestSharing, ToolApproval, ToolApprovalStatus,
    ToolState,
};
use countersign_mcp_guard::approvals::{
    AllowedTools, Approval, ApprovalFailure, ApprovalStatus, ApprovalUse, Approvals, AskedCall, UsedApproval,
};

/// The approval requests of a token at a gateway.
#[derive(Clone)]
pub struct GatewayApprovals(pub Client);

#[async_trait]
impl Approvals for GatewayApprovals {
    async fn ask(&self, key: &str, call: &AskedCall) -> Result<Approval, ApprovalFailure> {
        let asked = CallToApprove {
            tool: &call.tool,
            server: call.server.as_deref(),
            arguments: &call.arguments,
            timeout: call.timeout,
            reasoning: call.change.as_deref(),
            definition: if call.change.is_some() { ToolState::Changed } else { ToolState::Unchanged },
        };
        self.0.ask(key, &asked, RequestSharing::ByCall).await.map(approval).map_err(failure)
    }

    async fn read(&self, id: &str, wait: Duration) -> Result<Approval, ApprovalFailure> {
        self.0.request(id, wait).await.map(approval).map_err(failure)
    }

    async fn consume(&self, of: &Approval) -> Result<UsedApproval, ApprovalFailure> {
        // A key of its own makes the repetition of this one request safe.
        let key = random::uuid_v4().to_string();
        let used = self.0.consume(&of.id, &call(of), &key, None).await.map_err(failure)?;
        Ok(UsedApproval { lease: used.lease(), approval: approval(used.request) })
    }

    async fn report(&self, id: &str, succeeded: bool, note: &str) -> Result<(), ApprovalFailure> {
        let status = if succeeded { CallStatus::Succeeded } else { CallStatus::Failed };
        self.0.report(id, status, Some(note)).await.map(|_| ()).map_err(failure)
    }

    async fn cancel(&self, id: &str) -> Result<(), ApprovalFailure> {
        self.0.cancel(id).await.map(|_| ()).map_err(failure)
    }

    async fn callable(&self, tools: &[String]) -> Result<AllowedTools, ApprovalFailure> {
        let told = self.0.callable_tools(tools).await.map_err(failure)?;
        Ok(AllowedTools { names: told.callable, missing: told.missing, holds_changed: told.changed == "hold" })
    }
}

impl GatewayApprovals {
    /// Checks the connection and the token.
    pub async fn check(&self) -> Result<(), ApprovalFailure> {
        self.callable(&[]).await.map(|_| ())
    }
}

/// Returns the call of a request.
fn call(of: &Approval) -> CallToApprove<'_> {
    CallToApprove {
        tool: &of.tool,
        server: of.server.as_deref(),
        arguments: &of.arguments,
        timeout: "",
        reasoning: None,
        definition: ToolState::Unchanged,
    }
}

fn failure(error: ClientError) -> ApprovalFailure {
    match error {
        ClientError::Refused { status: ..500, code, detail } => ApprovalFailure::Refused { code, message: detail },
        _ => ApprovalFailure::Unavailable,
    }
}

fn approval(request: ToolApproval) -> Approval {
    let ToolApproval { decision, consumption, .. } = request;
    let decided_at = decision.as_ref().map(|it| it.decided_at.clone());
    let used_at = consumption.as_ref().map(|it| match &it.outcome {
        Some(outcome) => outcome.reported_at.clone(),
        None => it.consumed_at.clone(),
    });
    Approval {
        updated_at: used_at.or(decided_at).unwrap_or_else(|| request.created_at.clone()),
        usage: usage(consumption, request.outcome_is_unknown),
        note: decision.and_then(|it| it.note),
        status: match request.status {
            ToolApprovalStatus::Pending => ApprovalStatus::Pending,
            ToolApprovalStatus::Approved => ApprovalStatus::Approved,
            ToolApprovalStatus::Denied => ApprovalStatus::Denied,
            ToolApprovalStatus::Expired => ApprovalStatus::Expired,
            ToolApprovalStatus::Cancelled => ApprovalStatus::Cancelled,
        },
        id: request.id,
        tool: request.tool,
        server: request.server,
        arguments: request.arguments,
        tool_has_changed: request.tool_has_changed,
        reasoning: request.agent_reasoning,
        is_new: request.is_new,
        page: request.page,
        created_at: request.created_at,
    }
}

fn usage(consumption: Option<Consumption>, outcome_is_unknown: bool) -> ApprovalUse {
    match consumption.map(|it| it.outcome) {
        None => ApprovalUse::Unused,
        Some(Some(outcome)) => {
            ApprovalUse::Ended { succeeded: outcome.status == CallStatus::Succeeded, note: outcome.note }
        }
        Some(None) if outcome_is_unknown => ApprovalUse::Unknown,
        Some(None) => ApprovalUse::Used,
    }
}
