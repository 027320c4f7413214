//! Kinds of endpoints. Which events are of use to one is said here; what is sent for them, and what counts as their
//! having arrived, in `service::sending::errands`.

use serde::{Deserialize, Serialize};

use crate::domain::event::EventType;

/// What is sent.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum EndpointKind {
    /// Each event as it is, signed by Standard Webhooks.
    Webhook {
        /// Which form the body has.
        payload: PayloadVersion,
    },
}

/// The form of a body. Another comes beside it, never in its place.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum PayloadVersion {
    /// `{type, timestamp, data}`.
    #[default]
    #[serde(rename = "1")]
    V1,
}

/// A kind's name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum KindName {
    /// Events, signed by Standard Webhooks.
    #[default]
    Webhook,
}

/// No endpoint is of this kind.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{0}` is no kind of endpoint; there are {}", KindName::ALL.map(KindName::as_str).join(", "))]
pub struct NoSuchKind(String);

impl KindName {
    /// All of them.
    pub const ALL: [Self; 1] = [Self::Webhook];

    /// The word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Webhook => "webhook",
        }
    }
}

impl TryFrom<&str> for KindName {
    type Error = NoSuchKind;
    fn try_from(text: &str) -> Result<Self, NoSuchKind> {
        Self::ALL.into_iter().find(|it| it.as_str() == text).ok_or_else(|| NoSuchKind(text.to_owned()))
    }
}

impl EndpointKind {
    /// Its name.
    pub const fn name(&self) -> KindName {
        match self {
            Self::Webhook { .. } => KindName::Webhook,
        }
    }

    /// Whether anything is sent for such an event at all. What is not, is passed over.
    pub const fn concerns(&self, _event: EventType) -> bool {
        match self {
            Self::Webhook { .. } => true,
        }
    }

    /// Whether what is sent is signed, so that its receiver needs the secret.
    pub const fn is_signed(&self) -> bool {
        match self {
            Self::Webhook { .. } => true,
        }
    }
}
