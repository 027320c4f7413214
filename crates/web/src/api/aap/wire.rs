//! The objects of the protocol. They have no other members, and none is null.

use countersign_domain::primitives::time::Timestamp;
use countersign_domain::threads::approval_request::CallStatus;
use countersign_service::approval_requests::view::{ApprovalRequestView, RequestDecision};
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// An approval request.
#[derive(Debug, Serialize, ToSchema)]
pub struct ApprovalRequestResponse {
    /// The id.
    #[schema(format = "uuid")]
    pub id: String,
    /// The name of the tool.
    pub tool: String,
    /// The server of the tool, as it was sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub server: Option<String>,
    /// The arguments, as they were sent.
    #[schema(value_type = Object)]
    pub arguments: Map<String, Value>,
    /// The time to wait for a decision, as it was sent.
    pub timeout: String,
    /// The agent's reason for the call, as it was sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub agent_reasoning: Option<String>,
    /// Data of the agent, as it was sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = Option<Object>)]
    pub context: Option<Map<String, Value>>,
    /// `pending`, `approved`, `denied`, `expired` or `cancelled`.
    pub status: &'static str,
    /// The time at which it was created.
    pub created_at: Timestamp,
    /// The time until which it can be decided.
    pub deadline_at: Timestamp,
    /// The decision, once there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub decision: Option<ApprovalRequestDecision>,
    /// The use of the approval, once it is used.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub consumption: Option<ApprovalRequestConsumption>,
}

/// The decision on an approval request.
#[derive(Debug, Serialize, ToSchema)]
pub struct ApprovalRequestDecision {
    /// `approved`, `denied`, `expired` or `cancelled`.
    pub status: &'static str,
    /// The reason, from a reviewer or the policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub note: Option<String>,
    /// The time of the decision.
    pub decided_at: Timestamp,
    /// The time until which an approval can be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub expires_at: Option<Timestamp>,
}

/// The use of an approval.
#[derive(Debug, Serialize, ToSchema)]
pub struct ApprovalRequestConsumption {
    /// The time of the use.
    pub consumed_at: Timestamp,
    /// The outcome, once it is reported.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub outcome: Option<ApprovalRequestOutcome>,
}

/// The outcome of a call.
#[derive(Debug, Serialize, ToSchema)]
pub struct ApprovalRequestOutcome {
    /// `succeeded` or `failed`.
    #[schema(value_type = String)]
    pub status: CallStatus,
    /// The note, as it was sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub note: Option<String>,
    /// The time of the report.
    pub reported_at: Timestamp,
}

impl ApprovalRequestResponse {
    pub fn of(view: &ApprovalRequestView) -> Self {
        Self {
            id: view.id.clone(),
            tool: view.tool().to_owned(),
            server: view.request.server.clone(),
            arguments: view.call.arguments.clone(),
            timeout: view.request.timeout.clone(),
            agent_reasoning: view.reasoning.clone(),
            context: view.request.context.clone(),
            status: view.decision.as_ref().map_or("pending", |it| it.status.as_str()),
            created_at: view.created_at,
            deadline_at: view.request.deadline,
            decision: view.decision.as_ref().map(ApprovalRequestDecision::of),
            consumption: ApprovalRequestConsumption::of(view),
        }
    }
}

impl ApprovalRequestDecision {
    fn of(decision: &RequestDecision) -> Self {
        Self {
            status: decision.status.as_str(),
            note: decision.note.clone(),
            decided_at: decision.at,
            expires_at: decision.expires_at,
        }
    }
}

impl ApprovalRequestConsumption {
    fn of(view: &ApprovalRequestView) -> Option<Self> {
        let outcome = view.request.outcome.as_ref().map(|it| ApprovalRequestOutcome {
            status: it.status,
            note: it.note.clone(),
            reported_at: it.at,
        });
        Some(Self { consumed_at: view.consumed_at?, outcome })
    }
}
