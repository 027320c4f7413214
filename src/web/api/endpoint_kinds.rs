//! Of what kind an endpoint shall be, and what that kind takes.

use serde::Deserialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::endpoints::AddEndpoint;
use crate::domain::endpoint::KindName;
use crate::domain::endpoint::chat::Chat;
use crate::domain::secret::Secret;
use crate::service::error::{Error, Result};
use crate::service::sending::kinds::{NewKind, NewLook, NewTemplate};

/// What is sent by a template. A placeholder is a whole text, as `"{digest}"`.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TemplateBody {
    /// The body, any JSON.
    pub body: Value,
    /// What is looked at before, so that it is only sent while it is waited for.
    pub look: Option<LookBody>,
}

/// What is looked at before something is sent.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LookBody {
    /// Where, at the endpoint's own scheme, host and port.
    pub url: String,
    /// The place in the answer, as a JSON Pointer.
    pub pointer: String,
    /// What stands there as long as the decision is waited for.
    pub waiting: Value,
}

/// The kind that is asked for. What belongs to another one is refused.
pub(super) fn kind(ask: &AddEndpoint) -> Result<NewKind> {
    let name = ask.kind.as_deref().map_or(Ok(KindName::default()), KindName::try_from);
    let name = name.map_err(|error| Error::invalid("/kind", error.to_string()))?;
    let webhook = name == KindName::Webhook;
    if ask.payload.is_some_and(|it| it != 1 || !webhook) {
        return Err(Error::invalid("/payload", "there is one form so far, of webhooks: 1"));
    }
    if ask.assistant.is_some() && name != KindName::LangGraph {
        return Err(Error::invalid("/assistant", "only endpoints of the kind `langgraph` have one"));
    }
    if ask.template.is_some() && name != KindName::Resume {
        return Err(Error::invalid("/template", "only endpoints of the kind `resume` have one"));
    }
    match name {
        KindName::Webhook => Ok(NewKind::Webhook),
        KindName::Slack => Ok(NewKind::Chat(Chat::Slack)),
        KindName::Teams => Ok(NewKind::Chat(Chat::Teams)),
        KindName::LangGraph => Ok(NewKind::LangGraph { assistant: ask.assistant.clone().unwrap_or_default() }),
        KindName::Resume => {
            let template = ask.template.clone();
            let template = template.ok_or_else(|| Error::invalid("/template", "say what is sent: `body`"))?;
            let look =
                template.look.map(|it| NewLook { url: Secret::new(it.url), pointer: it.pointer, waiting: it.waiting });
            Ok(NewKind::Resume(NewTemplate { body: template.body, look }))
        }
    }
}
