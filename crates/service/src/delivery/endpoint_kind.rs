//! Kinds of endpoints as administrators enter them, and as they are stored.

use std::collections::BTreeSet;

use countersign_adapters::random;
use countersign_domain::delivery::chat::Chat;
use countersign_domain::delivery::endpoint_kind::{EndpointKind, PayloadVersion};
use countersign_domain::delivery::template::{PreflightTemplate, Template, needs_of_address, needs_of_body};
use countersign_domain::json::pointer::Pointer;
use countersign_domain::keys::{EncryptedValue, Keys};
use countersign_domain::primitives::id::EndpointId;
use countersign_domain::primitives::secret::Secret;
use serde_json::Value;
use url::Url;

use crate::delivery::Deliveries;
use crate::delivery::target::{look_place, url_place};
use crate::error::{Error, Result};

/// Long enough for the name of a graph or the id of an assistant.
const ASSISTANT_CHARS_MAX: usize = 128;

/// The requested kind with its settings.
#[derive(Clone, Debug, Default)]
pub enum NewKind {
    /// Events, signed as Standard Webhooks.
    #[default]
    Webhook,
    /// Outcomes of reviews for the runs of a LangGraph server.
    LangGraph { assistant: String },
    /// Outcomes of reviews, built from a template.
    Resume(NewTemplate),
    /// Chat messages about pending reviews.
    Chat(Chat),
}

/// A template from an administrator.
#[derive(Clone, Debug)]
pub struct NewTemplate {
    pub body: Value,
    /// Request that is sent first.
    pub look: Option<NewPreflight>,
}

/// A request from an administrator that is sent before each attempt.
#[derive(Clone, Debug)]
pub struct NewPreflight {
    pub url: Secret<String>,
    pub pointer: String,
    /// Value at the pointer while the decision is awaited.
    pub waiting: Value,
}

/// The error for a new endpoint of an instance.
pub fn created_with_instance() -> Error {
    Error::invalid("/kind", "an endpoint of this kind is created with its instance: use `POST /aap/v1/instances`")
}

impl Deliveries {
    /// Returns the kind in its stored form, if it is valid.
    pub(super) fn kept(&self, keys: &Keys, id: &EndpointId, new: &NewKind) -> Result<EndpointKind> {
        match new {
            NewKind::Webhook => Ok(EndpointKind::Webhook { payload: PayloadVersion::V1 }),
            NewKind::LangGraph { assistant } => {
                let printable = assistant.chars().all(|it| !it.is_control() && !it.is_whitespace());
                if !printable || assistant.is_empty() || assistant.chars().count() > ASSISTANT_CHARS_MAX {
                    let detail =
                        "give the name of a graph or the id of an assistant: 1 to 128 characters without spaces";
                    return Err(Error::invalid("/assistant", detail));
                }
                Ok(EndpointKind::LangGraph { assistant: assistant.clone() })
            }
            NewKind::Resume(NewTemplate { body, look }) => {
                needs_of_body(body).map_err(|it| Error::invalid("/template/body", it.to_string()))?;
                let look = look.as_ref().map(|it| self.kept_look(keys, id, it)).transpose()?;
                // The address decides which values the template needs.
                let template = Template { body: body.clone(), needs: BTreeSet::new(), look };
                Ok(EndpointKind::Resume { template })
            }
            NewKind::Chat(chat) => Ok(EndpointKind::Chat { chat: *chat }),
        }
    }

    fn kept_look(&self, keys: &Keys, id: &EndpointId, new: &NewPreflight) -> Result<PreflightTemplate> {
        let url = self.address_typed("/template/look/url", &new.url)?;
        let needs = needs_of_address(&url).map_err(|it| Error::invalid("/template/look/url", it.to_string()))?;
        let pointer = Pointer::try_from(new.pointer.clone());
        Ok(PreflightTemplate {
            origin: url.origin().ascii_serialization(),
            url: keys.row().hide(&look_place(id), url.as_str(), random::bytes()),
            needs,
            pointer: pointer.map_err(|it| Error::invalid("/template/look/pointer", it.to_string()))?,
            waiting: new.waiting.clone(),
        })
    }

    /// Returns a kind with its encrypted address, and the part of the address that others may see.
    pub(super) fn addressed(
        &self,
        keys: &Keys,
        id: &EndpointId,
        kind: EndpointKind,
        url: &Secret<String>,
    ) -> Result<(EndpointKind, EncryptedValue, String)> {
        let url = self.address_typed("/url", url)?;
        let kind = kind.at(&url).map_err(|it| Error::invalid("/url", it.to_string()))?;
        // The whole address is encrypted, because it often contains a credential.
        let hidden = keys.row().hide(&url_place(id), url.as_str(), random::bytes());
        Ok((kind, hidden, url.origin().ascii_serialization()))
    }

    fn address_typed(&self, pointer: &str, url: &Secret<String>) -> Result<Url> {
        self.outgoing()?.admits(url.expose()).map_err(|it| Error::invalid(pointer, it.to_string()))
    }
}
