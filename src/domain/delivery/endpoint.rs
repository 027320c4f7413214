//! Endpoints: where events are sent, which of them, and how far each has been served.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

pub use super::endpoint_kind::{EndpointAddressError, EndpointKind, KindName, PayloadVersion, UnknownEndpointKind};
use super::signature::EndpointSecrets;
use crate::domain::json::canonical::canonical;
use crate::domain::keys::EncryptedValue;
use crate::domain::log::event::{Event, EventType};
use crate::domain::primitives::id::{EndpointId, FlowId, PrincipalId};
use crate::domain::primitives::time::Timestamp;

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Endpoint {
    pub id: EndpointId,
    pub name: String,
    pub kind: EndpointKind,
    /// Where to. Such addresses often hold a secret, so the database has them hidden.
    pub url: EncryptedValue,
    /// What others may see of the address: scheme and host.
    pub origin: String,
    pub events: BTreeSet<EventPattern>,
    /// Of which flows; none named: of every one, and events that belong to none. What resumes names them.
    pub flows: BTreeSet<FlowId>,
    /// Whether a thread's events are sent one after another, each only when the one before has ended.
    pub ordered: bool,
    /// Headers of its own, their values hidden.
    pub headers: BTreeMap<String, EncryptedValue>,
    /// What its deliveries are signed with.
    pub secrets: EndpointSecrets,
    pub state: EndpointState,
    pub created_at: Timestamp,
    pub created_by: PrincipalId,
}

/// Whether an endpoint is served.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case", deny_unknown_fields)]
pub enum EndpointState {
    Enabled {},
    /// Nothing is sent until somebody enables it; or, if nobody switched it off, until something that was sent by hand
    /// arrives.
    Disabled {
        at: Timestamp,
        why: DisabledReason,
    },
    /// It is over. The row stays, so that what was sent can be read.
    Removed {
        at: Timestamp,
    },
}

/// Why an endpoint is not served.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DisabledReason {
    /// It answered 410.
    Gone,
    /// Nothing arrived for [`FAILING_MAX`].
    Failing,
    /// An administrator said so.
    ByHand,
}

impl DisabledReason {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Gone => "gone",
            Self::Failing => "failing",
            Self::ByHand => "by_hand",
        }
    }
}

/// After so long without one success nobody is there any more.
pub const FAILING_MAX: Duration = Duration::from_secs(5 * 24 * 3600);

/// Each is served by a task of its own, with one request of its own under way.
pub const ENDPOINTS_MAX: usize = 200;

/// An event's whole name, or all that begin so.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct EventPattern(String);

/// Not the name of any event.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("no event is called so; name one, or a family as `review.*`, or `*` for all")]
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
        let family = text.strip_suffix('*').is_none_or(|it| it.is_empty() || it.ends_with('.'));
        let pattern = Self(text);
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
    /// Whether it is told of this event.
    pub fn is_subscribed_to(&self, event: &Event) -> bool {
        let flow = self.flows.is_empty() || event.flow.as_ref().is_some_and(|it| self.flows.contains(it));
        flow && self.kind.concerns(event.kind) && self.events.iter().any(|it| it.fits(event.kind.name()))
    }

    /// Over all of it. Its events repeat this, so that a row that was altered or put back can be told.
    pub fn hash(&self) -> String {
        let value = serde_json::to_value(self).expect("an endpoint is a plain struct with text keys");
        let hash = Sha256::digest(canonical(&value).as_bytes());
        hash.iter().map(|it| format!("{it:02x}")).collect()
    }

    /// Whether anything is sent without being asked for.
    pub const fn is_served(&self) -> bool {
        matches!(self.state, EndpointState::Enabled {})
    }

    pub const fn is_removed(&self) -> bool {
        matches!(self.state, EndpointState::Removed { .. })
    }
}

/// How far in the log an endpoint was served. Everything up to there was sent, waits in a row of its own, or is of no
/// interest to it; what lies beyond was not looked at. So nothing is lost that was ever committed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeliveryPosition {
    pub endpoint: EndpointId,
    /// The last place in the log that needs no looking at.
    pub reached: u64,
    /// Since when nothing has arrived, if the last attempt failed.
    pub failing_since: Option<Timestamp>,
    /// When something last arrived.
    pub arrived_at: Option<Timestamp>,
    /// When something last failed.
    pub failed_at: Option<Timestamp>,
}

impl DeliveryPosition {
    /// One that begins after a place in the log.
    pub const fn new(endpoint: EndpointId, reached: u64) -> Self {
        Self { endpoint, reached, failing_since: None, arrived_at: None, failed_at: None }
    }

    pub fn note(&mut self, arrived: bool, at: Timestamp) {
        if arrived {
            self.failing_since = None;
            self.arrived_at = Some(at);
        } else {
            self.failing_since = self.failing_since.or(Some(at));
            self.failed_at = Some(at);
        }
    }

    /// Whether nobody has been there for too long.
    pub fn is_given_up(&self, now: Timestamp) -> bool {
        self.failing_since.is_some_and(|it| it.until(now) >= FAILING_MAX)
    }
}
