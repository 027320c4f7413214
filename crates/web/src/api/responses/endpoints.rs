//! Response schemas of endpoint calls.

use countersign_domain::delivery::failure::FailureCode;
use countersign_domain::delivery::preflight::PreflightResult;
use countersign_domain::primitives::id::{EndpointId, EventId, FlowId, PrincipalId, ThreadId, TokenId};
use countersign_domain::primitives::time::Timestamp;
use serde_json::Value;
use utoipa::ToSchema;

/// An endpoint and its current state.
#[derive(Debug, ToSchema)]
pub struct EndpointResponse {
    /// The unique id of the endpoint.
    pub id: EndpointId,
    /// The name of the endpoint, for people.
    pub name: String,
    /// The kind: `webhook`, `langgraph`, `resume`, `slack`, `teams` or `instance`.
    pub kind: String,
    /// The target address. Null for auditors.
    #[schema(required)]
    pub url: Option<String>,
    /// The scheme, host and port of the address.
    pub origin: String,
    /// The events that the endpoint receives.
    pub events: Vec<String>,
    /// The flows. Empty means all.
    pub flows: Vec<FlowId>,
    /// Whether the events of a thread are sent strictly in order.
    pub ordered: bool,
    /// The names of the additional headers.
    pub headers: Vec<String>,
    /// `enabled` or `disabled`.
    pub state: String,
    /// The reason why the endpoint is disabled.
    #[schema(required)]
    pub why: Option<String>,
    /// The time since which this applies.
    #[schema(required)]
    pub since: Option<Timestamp>,
    /// The log position up to which events were sent.
    pub reached: u64,
    /// The number of later events that are not yet sent.
    pub beyond: u64,
    /// The time since which no delivery succeeds.
    #[schema(required)]
    pub failing_since: Option<Timestamp>,
    /// The time of the last successful delivery.
    #[schema(required)]
    pub arrived_at: Option<Timestamp>,
    /// The time of the last failed attempt.
    #[schema(required)]
    pub failed_at: Option<Timestamp>,
    /// The time of creation.
    pub created_at: Timestamp,
    /// The account or token that did it.
    pub created_by: PrincipalId,
    /// The public keys for the second signature: the current and the next one. Present if deliveries are signed.
    #[schema(nullable = false)]
    pub public_keys: Option<Vec<String>>,
    /// The time of the last rotation of the secret. Present if deliveries are signed.
    #[schema(nullable = false)]
    pub secret_made_at: Option<Timestamp>,
    /// The time until which the previous secret also signs.
    pub secret_before_until: Option<Timestamp>,
    /// For a webhook: the version of the payload format.
    #[schema(nullable = false)]
    pub payload: Option<String>,
    /// For `langgraph`: the graph or assistant.
    #[schema(nullable = false)]
    pub assistant: Option<String>,
    /// For `instance`: the instance that the endpoint belongs to.
    #[schema(value_type = Option<String>, nullable = false)]
    pub instance: Option<TokenId>,
    /// For `resume`: the template of the request.
    #[schema(value_type = Option<Object>, nullable = false)]
    pub template: Option<Value>,
    /// The secret that signs deliveries. It is only in the response that creates it.
    #[schema(nullable = false)]
    pub secret: Option<String>,
}

/// All endpoints.
#[derive(Debug, ToSchema)]
pub struct EndpointListResponse {
    /// The endpoints, oldest first.
    pub endpoints: Vec<EndpointResponse>,
}

/// A secret, shown once.
#[derive(Debug, ToSchema)]
pub struct SecretResponse {
    /// The secret in the form of Standard Webhooks.
    #[schema(pattern = "^whsec_")]
    pub secret: String,
    /// The time until which the previous secret also signs.
    pub before_until: Timestamp,
}

/// The result of an attempt.
#[derive(Debug, ToSchema)]
pub struct DeliveryAttemptResponse {
    /// The time.
    pub at: Timestamp,
    /// The duration of the attempt.
    pub took_ms: u64,
    /// Whether the delivery has succeeded or was given up.
    pub arrived: bool,
    /// The HTTP status of the receiver.
    #[schema(nullable = false)]
    pub status: Option<u16>,
    /// The beginning of the text.
    #[schema(nullable = false)]
    pub answer: Option<String>,
    /// Whether the text was longer.
    #[schema(nullable = false)]
    pub answer_cut: Option<bool>,
    /// The result of the status request before sending.
    #[schema(nullable = false)]
    pub looked: Option<PreflightResult>,
    /// The cause of a missing response.
    #[schema(nullable = false)]
    pub failure: Option<FailureCode>,
    /// The description, in words.
    #[schema(nullable = false)]
    pub detail: Option<String>,
}

/// The delivery of an event to an endpoint.
#[derive(Debug, ToSchema)]
pub struct DeliveryResponse {
    /// The log position of the event, which identifies the delivery.
    pub delivery: u64,
    /// The id of the event.
    pub event: EventId,
    /// The type of the event.
    #[schema(rename = "type")]
    pub kind: String,
    /// The thread of the event.
    #[schema(required)]
    pub thread: Option<ThreadId>,
    /// The state of the delivery.
    pub state: String,
    /// The time of the next attempt.
    #[schema(required)]
    pub due: Option<Timestamp>,
    /// The time at which the delivery ended.
    #[schema(required)]
    pub ended_at: Option<Timestamp>,
    /// The number of attempts.
    pub tries: u32,
    /// The most recent attempts.
    pub attempts: Vec<DeliveryAttemptResponse>,
    /// The request body. Only present if one delivery is read.
    #[schema(nullable = false)]
    pub body: Option<String>,
}

/// One page of deliveries.
#[derive(Debug, ToSchema)]
pub struct DeliveryListResponse {
    /// The deliveries, newest event first.
    pub deliveries: Vec<DeliveryResponse>,
    /// The `page_token` of the next page. Null on the last page.
    #[schema(required)]
    pub next_page_token: Option<String>,
}

/// The number of items.
#[derive(Debug, ToSchema)]
pub struct CountResponse {
    /// The number of deliveries that are sent again, or of log positions that are scanned.
    pub count: u64,
}
