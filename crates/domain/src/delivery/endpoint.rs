//! Endpoints that receive events, their subscriptions, and their delivery cursors.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

pub use super::endpoint_kind::{EndpointAddressError, EndpointKind, KindName, PayloadVersion, UnknownEndpointKind};
use super::signature::EndpointSecrets;
use crate::json::canonical::canonical;
use crate::keys::EncryptedValue;
use crate::log::event::{Event, EventType};
use crate::primitives::id::{EndpointId, FlowId, PrincipalId};
use crate::primitives::named_enum::named_json_enum;
use crate::primitives::time::Timestamp;

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Endpoint {
    pub id: EndpointId,
    pub name: String,
    pub kind: EndpointKind,
    /// The address. It is encrypted because such addresses often contain a secret.
    pub url: EncryptedValue,
    /// The public part of the address: scheme and host.
    pub origin: String,
    pub events: BTreeSet<EventPattern>,
    /// The flows whose events it receives. If empty, it receives the events of all flows and events without a flow. An
    /// endpoint that resumes runs must name its flows.
    pub flows: BTreeSet<FlowId>,
    /// Whether the events of a thread are sent in order, each after the previous one has ended.
    pub ordered: bool,
    /// Additional headers with encrypted values.
    pub headers: BTreeMap<String, EncryptedValue>,
    /// The secrets that sign its deliveries.
    pub secrets: EndpointSecrets,
    pub state: EndpointState,
    pub created_at: Timestamp,
    pub created_by: PrincipalId,
}

/// Whether the gateway sends to an endpoint.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case", deny_unknown_fields)]
pub enum EndpointState {
    Enabled {},
    /// Nothing is sent until an administrator enables it. If the gateway disabled it, a successful manual delivery
    /// enables it too.
    Disabled {
        at: Timestamp,
        why: DisabledReason,
    },
    /// Deleted. The row stays, so that past deliveries remain visible.
    Removed {
        at: Timestamp,
    },
}

named_json_enum! {
    /// The reason why an endpoint is disabled.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
    pub enum DisabledReason {
        /// The endpoint answered 410.
        Gone = "gone",
        /// No delivery succeeded for [`FAILING_MAX`].
        Failing = "failing",
        /// An administrator disabled it.
        ByHand = "by_hand",
    }
}

/// After this time without a success the endpoint is disabled.
pub const FAILING_MAX: Duration = Duration::from_secs(5 * 24 * 3600);

/// The limit of endpoints. Each has its own task and one request in flight.
pub const ENDPOINTS_MAX: usize = 200;

/// The name of an event, or a prefix of names.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct EventPattern(String);

/// A pattern that matches no event.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("unknown event: use the name of an event, a family such as `review.*`, or `*` for all events")]
pub struct UnknownEventName;

impl EventPattern {
    pub fn all() -> Self {
        Self("*".to_owned())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn fits(&self, name: &str) -> bool {
        match self.0.strip_suffix('*') {
            Some(family) => name.starts_with(family),
            None => name == self.0,
        }
    }
}

impl TryFrom<String> for EventPattern {
    type Error = UnknownEventName;
    fn try_from(text: String) -> Result<Self, UnknownEventName> {
        // A family ends at a dot, so `rev*` cannot match events that are added later by chance.
        let family = text.strip_suffix('*').is_none_or(|it| it.is_empty() || it.ends_with('.'));
        let pattern = Self(text);
        // A misspelled pattern would never match, so it is refused.
        let known = EventType::ALL.iter().any(|it| pattern.fits(it.name()));
        if family && known { Ok(pattern) } else { Err(UnknownEventName) }
    }
}

impl From<EventPattern> for String {
    fn from(pattern: EventPattern) -> Self {
        pattern.0
    }
}

impl Endpoint {
    /// Checks that it receives this event.
    pub fn is_subscribed_to(&self, event: &Event) -> bool {
        // An endpoint for named flows gets no events without a flow.
        let flow = self.flows.is_empty() || event.flow.as_ref().is_some_and(|it| self.flows.contains(it));
        flow && self.kind.concerns(event.kind) && self.events.iter().any(|it| it.fits(event.kind.name()))
    }

    /// Returns a hash of the whole endpoint. Its events contain the hash, so the audit detects a changed or restored
    /// row.
    pub fn hash(&self) -> String {
        let value = serde_json::to_value(self).expect("an endpoint is a plain struct with text keys");
        // The canonical form makes the hash independent of the order of the fields.
        let hash = Sha256::digest(canonical(&value).as_bytes());
        hash.iter().map(|it| format!("{it:02x}")).collect()
    }

    /// Checks that events are sent automatically.
    pub const fn is_served(&self) -> bool {
        matches!(self.state, EndpointState::Enabled {})
    }

    pub const fn is_removed(&self) -> bool {
        matches!(self.state, EndpointState::Removed { .. })
    }
}

/// The delivery cursor of an endpoint. Each event up to the cursor was sent, has its own row, or is not subscribed.
/// Events after it are not read yet. So no committed event is lost.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeliveryPosition {
    pub endpoint: EndpointId,
    /// The last log position that was read.
    pub reached: u64,
    /// The start of the current series of failures.
    pub failing_since: Option<Timestamp>,
    /// The last success.
    pub arrived_at: Option<Timestamp>,
    /// The last failure.
    pub failed_at: Option<Timestamp>,
}

impl DeliveryPosition {
    /// Returns a cursor that starts after a log position.
    pub const fn new(endpoint: EndpointId, reached: u64) -> Self {
        Self { endpoint, reached, failing_since: None, arrived_at: None, failed_at: None }
    }

    pub fn note(&mut self, arrived: bool, at: Timestamp) {
        if arrived {
            self.failing_since = None;
            self.arrived_at = Some(at);
        } else {
            // The start of the series stays, because the endpoint is disabled by its length.
            self.failing_since = self.failing_since.or(Some(at));
            self.failed_at = Some(at);
        }
    }

    /// Checks that the endpoint failed for too long.
    pub fn is_given_up(&self, now: Timestamp) -> bool {
        self.failing_since.is_some_and(|it| it.until(now) >= FAILING_MAX)
    }
}
