//! What calls about endpoints are answered, as the description tells it.

use serde_json::Value;
use utoipa::ToSchema;

use crate::domain::delivery::failure::FailureCode;
use crate::domain::delivery::preflight::Saw;
use crate::domain::primitives::id::{EndpointId, EventId, FlowId, PrincipalId, ThreadId};
use crate::domain::primitives::time::Timestamp;

/// An endpoint as it stands.
#[derive(Debug, ToSchema)]
pub struct Endpoint {
    /// Its name here.
    pub id: EndpointId,
    /// What people call it.
    pub name: String,
    /// What is sent: `webhook`, `langgraph`, `resume`, `slack` or `teams`.
    pub kind: String,
    /// Where to; null to who only looks.
    #[schema(required)]
    pub url: Option<String>,
    /// The address without its path.
    pub origin: String,
    /// Which events.
    pub events: Vec<String>,
    /// Of which flows; none: of all.
    pub flows: Vec<FlowId>,
    /// Whether a thread's events follow one another strictly.
    pub ordered: bool,
    /// The names of its own headers.
    pub headers: Vec<String>,
    /// `enabled` or `disabled`.
    pub state: String,
    /// Why it is disabled.
    #[schema(required)]
    pub why: Option<String>,
    /// Since when.
    #[schema(required)]
    pub since: Option<Timestamp>,
    /// How far in the log it was served.
    pub reached: u64,
    /// How many events lie beyond that.
    pub beyond: u64,
    /// Since when nothing arrives.
    #[schema(required)]
    pub failing_since: Option<Timestamp>,
    /// When something arrived last.
    #[schema(required)]
    pub arrived_at: Option<Timestamp>,
    /// When something did not, last.
    #[schema(required)]
    pub failed_at: Option<Timestamp>,
    /// When it was made.
    pub created_at: Timestamp,
    /// By whom.
    pub created_by: PrincipalId,
    /// What the second signature is checked with, now and after the next rotation; where what is sent is signed.
    #[schema(nullable = false)]
    pub public_keys: Option<Vec<String>>,
    /// Since when its secret counts; where what is sent is signed.
    #[schema(nullable = false)]
    pub secret_made_at: Option<Timestamp>,
    /// Until when the secret before signs, too.
    pub secret_before_until: Option<Timestamp>,
    /// The form of the body, of a webhook.
    #[schema(nullable = false)]
    pub payload: Option<String>,
    /// Which graph or assistant, of `langgraph`.
    #[schema(nullable = false)]
    pub assistant: Option<String>,
    /// What is sent, of `resume`.
    #[schema(value_type = Option<Object>, nullable = false)]
    pub template: Option<Value>,
    /// What is sent is signed with this. It is in the answer that makes it, and nowhere else.
    #[schema(nullable = false)]
    pub secret: Option<String>,
}

/// Every endpoint.
#[derive(Debug, ToSchema)]
pub struct EndpointList {
    /// The first made first.
    pub endpoints: Vec<Endpoint>,
}

/// A secret, shown this once.
#[derive(Debug, ToSchema)]
pub struct SecretShown {
    /// By Standard Webhooks.
    #[schema(pattern = "^whsec_")]
    pub secret: String,
    /// Until when the one before signs, too.
    pub before_until: Timestamp,
}

/// How an attempt ended.
#[derive(Debug, ToSchema)]
pub struct AttemptTold {
    /// When.
    pub at: Timestamp,
    /// How long it took.
    pub took_ms: u64,
    /// Whether it is done.
    pub arrived: bool,
    /// What the receiver answered.
    #[schema(nullable = false)]
    pub status: Option<u16>,
    /// The beginning of it.
    #[schema(nullable = false)]
    pub answer: Option<String>,
    /// Whether there was more.
    #[schema(nullable = false)]
    pub answer_cut: Option<bool>,
    /// What was seen before sending.
    #[schema(nullable = false)]
    pub looked: Option<Saw>,
    /// Why there was no answer.
    #[schema(nullable = false)]
    pub failure: Option<FailureCode>,
    /// In words.
    #[schema(nullable = false)]
    pub detail: Option<String>,
}

/// An event to an endpoint.
#[derive(Debug, ToSchema)]
pub struct DeliveryTold {
    /// The event's place in the log, which names the delivery.
    pub delivery: u64,
    /// The event.
    pub event: EventId,
    /// What happened.
    #[schema(rename = "type")]
    pub kind: String,
    /// In which thread.
    #[schema(required)]
    pub thread: Option<ThreadId>,
    /// How it stands.
    pub state: String,
    /// When it is tried next.
    #[schema(required)]
    pub due: Option<Timestamp>,
    /// When it ended.
    #[schema(required)]
    pub ended_at: Option<Timestamp>,
    /// How often it was tried.
    pub tries: u32,
    /// The last attempts.
    pub attempts: Vec<AttemptTold>,
    /// What is sent, where one delivery is asked for.
    #[schema(nullable = false)]
    pub body: Option<String>,
}

/// A page of deliveries.
#[derive(Debug, ToSchema)]
pub struct DeliveryPage {
    /// The last event's first.
    pub deliveries: Vec<DeliveryTold>,
    /// Where the next page begins; null at the end.
    #[schema(required)]
    pub next_page_token: Option<String>,
}

/// How many.
#[derive(Debug, ToSchema)]
pub struct Count {
    /// Deliveries that are sent again, or places of the log that are looked through.
    pub count: u64,
}
