//! The kinds of endpoints and the events that each kind receives. `service::delivery` builds the requests and evaluates
//! the responses.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use url::Url;

use super::chat;
use super::chat::Chat;
use super::decision_payload::{DecisionPayload, ends_review};
use super::instance_receiver::InstanceReceiver;
use super::langgraph;
use super::template::{Template, TemplateError};
use crate::log::event::EventType;
use crate::primitives::named_enum::named_enum;

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum EndpointKind {
    /// All events in full, signed by Standard Webhooks.
    Webhook { payload: PayloadVersion },
    /// Decisions, sent to the waiting runs of a LangGraph server.
    #[serde(rename = "langgraph")]
    LangGraph {
        /// The name of a graph, or the id of an assistant.
        assistant: String,
    },
    /// Decisions, sent by a request template of an administrator and signed by Standard Webhooks.
    Resume { template: Template },
    /// Notifications of pending reviews, sent to a chat.
    Chat { chat: Chat },
    /// Notifications of decided approval requests, sent to the agent instance that asked.
    Instance { receiver: InstanceReceiver },
}

/// The version of the body. A new version is added and never replaces an old one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum PayloadVersion {
    /// `{type, timestamp, data}`.
    #[default]
    #[serde(rename = "1")]
    V1,
}

named_enum! {
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
    pub enum KindName {
        /// Events, signed by Standard Webhooks.
        #[default]
        Webhook = "webhook",
        /// Decisions, to a LangGraph server.
        LangGraph = "langgraph",
        /// Decisions, by a request template.
        Resume = "resume",
        /// Notifications to Slack.
        Slack = "slack",
        /// Notifications to Teams.
        Teams = "teams",
        /// Notifications of decided approval requests, to an agent instance.
        Instance = "instance",
    }
}

/// A name that is no kind of endpoint.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("unknown kind of endpoint `{0}`: use one of {kinds}", kinds = KindName::ALL.map(KindName::as_str).join(", "))]
pub struct UnknownEndpointKind(String);

/// The reason why an address is invalid for a kind of endpoint.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum EndpointAddressError {
    /// The gateway appends paths to the address, so it cannot have a query.
    #[error("the address must be the server's base URL: remove the part after `?`")]
    Query,
    /// The receiver was verified at its address.
    #[error("the address of an instance cannot be changed: create a new instance with `POST /aap/v1/instances`")]
    Verified,
    #[error(transparent)]
    Template(#[from] TemplateError),
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
            Self::Instance { .. } => KindName::Instance,
        }
    }

    /// Checks that an event is sent to this kind. Other events are skipped.
    pub const fn concerns(&self, event: EventType) -> bool {
        match self {
            Self::Webhook { .. } => true,
            Self::LangGraph { .. } | Self::Resume { .. } | Self::Instance { .. } => ends_review(event),
            Self::Chat { .. } => chat::tells(event),
        }
    }

    /// Returns the delay before an event is sent, if this kind has one.
    pub const fn patience(&self) -> Option<Duration> {
        match self {
            Self::Webhook { .. } | Self::LangGraph { .. } | Self::Resume { .. } | Self::Instance { .. } => None,
            Self::Chat { .. } => Some(chat::patience()),
        }
    }

    /// Checks that requests are signed with a secret of the gateway. The receiver then needs it.
    pub const fn is_signed(&self) -> bool {
        match self {
            Self::Webhook { .. } | Self::Resume { .. } => true,
            // An instance chose its secret itself.
            Self::LangGraph { .. } | Self::Chat { .. } | Self::Instance { .. } => false,
        }
    }

    /// Checks that requests resume runs. Such an endpoint must name its flows, and a test sends no decision to it.
    pub const fn resumes(&self) -> bool {
        match self {
            Self::Webhook { .. } | Self::Chat { .. } => false,
            Self::LangGraph { .. } | Self::Resume { .. } | Self::Instance { .. } => true,
        }
    }

    /// Checks that a decision can be sent to this endpoint. Other decisions are skipped.
    pub fn reaches(&self, decided: &DecisionPayload) -> bool {
        match self {
            Self::Webhook { .. } => true,
            // A chat gets notes about pending reviews, and an instance reads the decision itself.
            Self::Chat { .. } | Self::Instance { .. } => false,
            Self::LangGraph { .. } => langgraph::thread_of(decided).is_some(),
            Self::Resume { template } => template.reaches(decided),
        }
    }

    /// Returns the kind for an address, or an error if the address is invalid for it.
    pub fn at(self, url: &Url) -> Result<Self, EndpointAddressError> {
        match self {
            Self::Webhook { .. } | Self::Chat { .. } => Ok(self),
            // The query would end up in the middle of the appended paths.
            Self::LangGraph { .. } if url.query().is_some() => Err(EndpointAddressError::Query),
            Self::LangGraph { .. } => Ok(self),
            Self::Resume { template } => Ok(Self::Resume { template: template.at(url)? }),
            Self::Instance { .. } => Err(EndpointAddressError::Verified),
        }
    }
}
