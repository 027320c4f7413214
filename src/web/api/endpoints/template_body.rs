//! What is sent by a template, as it is asked for.

use serde::Deserialize;
use serde_json::Value;
use utoipa::ToSchema;

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
