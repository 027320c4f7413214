//! Views of the pages for endpoints and deliveries.

use askama::Template;

use crate::pages::shared::layout::{PageLayout, TimestampView, Tone};
use crate::pages::shared::safe_text::SafeLine;

/// `GET /endpoints`.
#[derive(Template, Clone, Debug)]
#[template(path = "endpoints.html")]
pub struct EndpointsPage {
    pub shell: PageLayout,
    pub csrf: String,
    /// All endpoints, oldest first.
    pub endpoints: Vec<EndpointRow>,
    /// Whether the reader is an administrator. Auditors see the page without forms.
    pub may_change: bool,
    /// The previous input, when the form is rejected.
    pub typed: EndpointFormInput,
    pub kinds: Vec<&'static str>,
}

/// Fields of the forms that add or change an endpoint.
#[derive(Clone, Debug, Default)]
pub struct EndpointFormInput {
    pub name: String,
    pub kind: String,
    /// Graph or assistant, for a LangGraph server.
    pub assistant: String,
    pub body: String,
    /// Address of the preflight request, for a template.
    pub look_url: String,
    /// JSON Pointer into the preflight answer.
    pub look_pointer: String,
    /// JSON value at the pointer while the receiver is waiting.
    pub look_waiting: String,
    pub url: String,
    /// Event patterns, separated by commas.
    pub events: String,
    /// Flows, separated by commas.
    pub flows: String,
    /// Whether the events of a thread are delivered in order.
    pub ordered: bool,
    /// Whether delivery starts at the first event of the audit log.
    pub from_the_beginning: bool,
}

#[derive(Clone, Debug)]
pub struct EndpointRow {
    pub url: String,
    pub name: SafeLine,
    pub kind: &'static str,
    pub origin: SafeLine,
    pub events: SafeLine,
    pub health: HealthBadge,
    /// Number of events after the delivery cursor.
    pub ahead: u64,
    /// Time of the last successful attempt.
    pub arrived: Option<TimestampView>,
    /// Time of the last failed attempt.
    pub failed: Option<TimestampView>,
}

/// State as a word, with the colour of its badge.
#[derive(Clone, Copy, Debug)]
pub struct HealthBadge {
    pub tone: Tone,
    pub word: &'static str,
}

/// `GET /endpoints/{endpoint}`.
#[derive(Template, Clone, Debug)]
#[template(path = "endpoint.html")]
pub struct EndpointPage {
    pub shell: PageLayout,
    pub csrf: String,
    pub row: EndpointRow,
    /// State of the endpoint in sentences.
    pub standing: Vec<String>,
    pub served: bool,
    pub facts: EndpointFacts,
    /// Whether the reader is an administrator. Auditors see the page without forms.
    pub may_change: bool,
    pub typed: EndpointFormInput,
    pub kinds: Vec<&'static str>,
    pub tabs: Vec<EndpointTab>,
    pub deliveries: Vec<DeliveryRow>,
    pub next_url: Option<String>,
    /// Result of the test event that was just sent.
    pub test: Option<AttemptRow>,
}

#[derive(Clone, Debug)]
pub struct EndpointFacts {
    /// Flows of the endpoint. Empty means all flows.
    pub flows: Vec<SafeLine>,
    /// Whether the events of a thread are delivered in order.
    pub ordered: bool,
    pub payload: SafeLine,
    /// Whether requests are signed.
    pub signed: bool,
    /// Whether requests resume an interrupted run.
    pub resumes: bool,
    /// Lines of the template that an administrator wrote.
    pub template: Vec<SafeLine>,
    /// Names of the custom headers. The values may be secrets, so no page shows them.
    pub headers: Vec<SafeLine>,
    /// Public keys that verify the Ed25519 signatures.
    pub public_keys: Vec<String>,
    /// Creation time of the current secret.
    pub secret_made: TimestampView,
    /// End of the time in which the previous secret also signs.
    pub secret_before: Option<TimestampView>,
    /// Log position of the delivery cursor.
    pub reached: u64,
    pub created: TimestampView,
}

#[derive(Clone, Debug)]
pub struct EndpointTab {
    pub url: String,
    pub label: &'static str,
    pub here: bool,
}

#[derive(Clone, Debug)]
pub struct DeliveryRow {
    pub url: String,
    /// Description of the event.
    pub words: &'static str,
    pub name: &'static str,
    /// Log position of the event.
    pub index: u64,
    /// Thread and its address.
    pub thread: Option<(SafeLine, String)>,
    pub health: HealthBadge,
    pub due: Option<TimestampView>,
    pub last: Option<AttemptRow>,
}

#[derive(Clone, Debug)]
pub struct AttemptRow {
    pub at: TimestampView,
    /// Value of the header `webhook-timestamp`.
    pub seconds: i64,
    pub took_ms: u64,
    pub tone: Tone,
    /// "Answered 500".
    pub words: String,
    pub why: Option<&'static str>,
    /// Lines of the response body.
    pub answer: Vec<SafeLine>,
    /// Whether the response body was truncated.
    pub cut: bool,
}

/// `GET /endpoints/{endpoint}/deliveries/{delivery}`.
#[derive(Template, Clone, Debug)]
#[template(path = "delivery.html")]
pub struct DeliveryPage {
    pub shell: PageLayout,
    pub csrf: String,
    pub endpoint_url: String,
    pub endpoint: SafeLine,
    pub row: DeliveryRow,
    /// Event id, which is also the header `webhook-id`.
    pub event: String,
    /// Whether requests have signature headers.
    pub signed: bool,
    /// Names of the custom headers of the endpoint.
    pub headers: Vec<SafeLine>,
    pub body: Vec<SafeLine>,
    /// Attempts, newest first.
    pub attempts: Vec<AttemptRow>,
    /// Whether the reader may repeat the delivery.
    pub may_change: bool,
}
