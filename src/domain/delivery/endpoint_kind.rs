//! Kinds of endpoints. Which events are of use to one is said here; what is sent for them, and what counts as their
//! having arrived, in `service::delivery::request`.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use url::Url;

use super::chat;
use super::chat::Chat;
use super::decision_payload::{DecisionPayload, ends_review};
use super::langgraph;
use super::template::{Template, TemplateError};
use crate::domain::log::event::EventType;

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum EndpointKind {
    /// Each event as it is, signed by Standard Webhooks.
    Webhook { payload: PayloadVersion },
    /// How reviews ended, to the runs of a LangGraph server that stopped for them.
    #[serde(rename = "langgraph")]
    LangGraph {
        /// What runs there: a graph's name, or an assistant's id.
        assistant: String,
    },
    /// How reviews ended, by a request that an administrator wrote, signed by Standard Webhooks.
    Resume { template: Template },
    /// That something waits for people, to a chat.
    Chat { chat: Chat },
}

/// The form of a body. Another comes beside it, never in its place.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum PayloadVersion {
    /// `{type, timestamp, data}`.
    #[default]
    #[serde(rename = "1")]
    V1,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum KindName {
    /// Events, signed by Standard Webhooks.
    #[default]
    Webhook,
    /// How reviews ended, to a LangGraph server.
    LangGraph,
    /// How reviews ended, by a template.
    Resume,
    /// That something waits, to Slack.
    Slack,
    /// The same, to Teams.
    Teams,
}

/// No endpoint is of this kind.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{0}` is no kind of endpoint; there are {kinds}", kinds = KindName::ALL.map(KindName::as_str).join(", "))]
pub struct UnknownEndpointKind(String);

/// Why an endpoint of a kind cannot be at an address.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum EndpointAddressError {
    /// It is where something else begins.
    #[error("the address of such a server is its base: it has no part behind a `?`")]
    Query,
    #[error(transparent)]
    Template(#[from] TemplateError),
}

impl KindName {
    pub const ALL: [Self; 5] = [Self::Webhook, Self::LangGraph, Self::Resume, Self::Slack, Self::Teams];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Webhook => "webhook",
            Self::LangGraph => "langgraph",
            Self::Resume => "resume",
            Self::Slack => "slack",
            Self::Teams => "teams",
        }
    }
}

impl TryFrom<&str> for KindName {
    type Error = UnknownEndpointKind;
    fn try_from(text: &str) -> Result<Self, UnknownEndpointKind> {
        Self::ALL.into_iter().find(|it| it.as_str() == text).ok_or_else(|| UnknownEndpointKind(text.to_owned()))
    }
}

impl EndpointKind {
    pub const fn name(&self) -> KindName {
        match self {
            Self::Webhook { .. } => KindName::Webhook,
            Self::LangGraph { .. } => KindName::LangGraph,
            Self::Resume { .. } => KindName::Resume,
            Self::Chat { chat: Chat::Slack } => KindName::Slack,
            Self::Chat { chat: Chat::Teams } => KindName::Teams,
        }
    }

    /// Whether anything is sent for such an event at all. What is not, is passed over.
    pub const fn concerns(&self, event: EventType) -> bool {
        match self {
            Self::Webhook { .. } => true,
            Self::LangGraph { .. } | Self::Resume { .. } => ends_review(event),
            Self::Chat { .. } => chat::tells(event),
        }
    }

    /// For how long what happens is kept back, if it is.
    pub const fn patience(&self) -> Option<Duration> {
        match self {
            Self::Webhook { .. } | Self::LangGraph { .. } | Self::Resume { .. } => None,
            Self::Chat { .. } => Some(chat::patience()),
        }
    }

    /// Whether what is sent is signed, so that its receiver needs the secret.
    pub const fn is_signed(&self) -> bool {
        match self {
            Self::Webhook { .. } | Self::Resume { .. } => true,
            Self::LangGraph { .. } | Self::Chat { .. } => false,
        }
    }

    /// Whether what is sent resumes something, so that it is not tried out by sending, and is of named flows.
    pub const fn resumes(&self) -> bool {
        match self {
            Self::Webhook { .. } | Self::Chat { .. } => false,
            Self::LangGraph { .. } | Self::Resume { .. } => true,
        }
    }

    /// Whether this decision can be told there at all. What cannot, is passed over.
    pub fn reaches(&self, decided: &DecisionPayload) -> bool {
        match self {
            Self::Webhook { .. } => true,
            Self::Chat { .. } => false,
            Self::LangGraph { .. } => langgraph::thread_of(decided).is_some(),
            Self::Resume { template } => template.reaches(decided),
        }
    }

    /// The same at this address, if it can be there.
    pub fn at(self, url: &Url) -> Result<Self, EndpointAddressError> {
        match self {
            Self::Webhook { .. } | Self::Chat { .. } => Ok(self),
            Self::LangGraph { .. } if url.query().is_some() => Err(EndpointAddressError::Query),
            Self::LangGraph { .. } => Ok(self),
            Self::Resume { template } => Ok(Self::Resume { template: template.at(url)? }),
        }
    }
}
