//! What administrators say of an endpoint's kind.

use crate::domain::endpoint::{EndpointKind, PayloadVersion};
use crate::service::error::{Error, Result};

/// A graph's name or an assistant's id, with room to spare.
const ASSISTANT_CHARS_MAX: usize = 128;

/// The kind that an administrator asks for, with what it takes.
#[derive(Clone, Debug, Default)]
pub enum NewKind {
    /// Events, signed by Standard Webhooks.
    #[default]
    Webhook,
    /// How reviews ended, to the runs of a LangGraph server.
    LangGraph {
        /// What runs there.
        assistant: String,
    },
}

impl NewKind {
    /// As it is kept.
    pub(super) fn kept(&self) -> Result<EndpointKind> {
        match self {
            Self::Webhook => Ok(EndpointKind::Webhook { payload: PayloadVersion::V1 }),
            Self::LangGraph { assistant } => {
                let printable = assistant.chars().all(|it| !it.is_control() && !it.is_whitespace());
                if !printable || assistant.is_empty() || assistant.chars().count() > ASSISTANT_CHARS_MAX {
                    let detail = "the name of a graph there or the id of an assistant: 1 to 128 characters, none blank";
                    return Err(Error::invalid("/assistant", detail));
                }
                Ok(EndpointKind::LangGraph { assistant: assistant.clone() })
            }
        }
    }
}
