//! Endpoints, and what is sent to them.

use askama::Template;

use crate::web::pages::shared::layout::{PageLayout, TimestampView, Tone};
use crate::web::pages::shared::safe_text::SafeLine;

/// `GET /endpoints`.
#[derive(Template, Clone, Debug)]
#[template(path = "endpoints.html")]
pub struct EndpointsPage {
    pub shell: PageLayout,
    pub csrf: String,
    /// All of them, the first made first.
    pub endpoints: Vec<EndpointRow>,
    /// Whether the reader may change anything.
    pub may_change: bool,
    /// What was typed, when the page comes again.
    pub typed: EndpointFormInput,
    pub kinds: Vec<&'static str>,
}

/// A form about an endpoint.
#[derive(Clone, Debug, Default)]
pub struct EndpointFormInput {
    pub name: String,
    pub kind: String,
    /// Of a LangGraph server: what runs there.
    pub assistant: String,
    pub body: String,
    /// Of a template: where is looked.
    pub look_url: String,
    /// The place in what is answered there.
    pub look_pointer: String,
    /// What stands there as long as it is waited for.
    pub look_waiting: String,
    pub url: String,
    /// Which events, separated by commas.
    pub events: String,
    /// Of which flows, separated by commas.
    pub flows: String,
    /// Whether a thread's events follow one another.
    pub ordered: bool,
    /// Whether it begins with the log's first event.
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
    /// How many events of the log lie ahead of it.
    pub ahead: u64,
    /// When something last arrived.
    pub arrived: Option<TimestampView>,
    /// When something last failed.
    pub failed: Option<TimestampView>,
}

/// How something is, in a word.
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
    /// How it stands, in sentences.
    pub standing: Vec<String>,
    pub served: bool,
    /// What does not change much.
    pub facts: EndpointFacts,
    /// Whether the reader may change anything.
    pub may_change: bool,
    /// What the form begins with.
    pub typed: EndpointFormInput,
    pub kinds: Vec<&'static str>,
    pub tabs: Vec<EndpointTab>,
    pub deliveries: Vec<DeliveryRow>,
    /// The next page, if there is one.
    pub next_url: Option<String>,
    /// How a test event went that was just sent.
    pub test: Option<AttemptRow>,
}

/// What is known of an endpoint.
#[derive(Clone, Debug)]
pub struct EndpointFacts {
    /// Of which flows; none: of all.
    pub flows: Vec<SafeLine>,
    /// Whether a thread's events follow one another.
    pub ordered: bool,
    pub payload: SafeLine,
    /// Whether what is sent is signed.
    pub signed: bool,
    /// Whether what is sent resumes something.
    pub resumes: bool,
    /// What an administrator wrote to be sent, by lines.
    pub template: Vec<SafeLine>,
    /// The names of its own headers.
    pub headers: Vec<SafeLine>,
    /// What second signatures are checked with.
    pub public_keys: Vec<String>,
    /// Since when the secret exists.
    pub secret_made: TimestampView,
    /// Until when the one before signs, too.
    pub secret_before: Option<TimestampView>,
    /// Up to where in the log it was served.
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
    /// What the event tells, in words.
    pub words: &'static str,
    pub name: &'static str,
    /// The event's place in the log.
    pub index: u64,
    /// Of which thread, and where that is.
    pub thread: Option<(SafeLine, String)>,
    pub health: HealthBadge,
    pub due: Option<TimestampView>,
    pub last: Option<AttemptRow>,
}

#[derive(Clone, Debug)]
pub struct AttemptRow {
    pub at: TimestampView,
    /// `webhook-timestamp`.
    pub seconds: i64,
    pub took_ms: u64,
    pub tone: Tone,
    /// "Answered 500".
    pub words: String,
    pub why: Option<&'static str>,
    /// What they answered, by lines.
    pub answer: Vec<SafeLine>,
    /// Whether there was more of it.
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
    /// The event's id, which is `webhook-id`.
    pub event: String,
    /// Whether what is sent is signed, and has such headers.
    pub signed: bool,
    /// The names of the endpoint's own headers.
    pub headers: Vec<SafeLine>,
    pub body: Vec<SafeLine>,
    /// The attempts, the last first.
    pub attempts: Vec<AttemptRow>,
    /// Whether the reader may send it again.
    pub may_change: bool,
}
