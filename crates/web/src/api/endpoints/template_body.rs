//! Request bodies for the templates of `resume` endpoints.

use serde::Deserialize;
use serde_json::Value;
use utoipa::ToSchema;

/// The template of a request. A placeholder is a whole string, such as `"{digest}"`.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TemplateBody {
    /// The body: any JSON.
    pub body: Value,
    /// The status request before sending. The request is sent only while the decision is awaited.
    pub look: Option<PreflightBody>,
}

/// The status request before sending.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PreflightBody {
    /// The address of the status request, on the endpoint's own scheme, host and port.
    pub url: String,
    /// The JSON Pointer of the status in the response.
    pub pointer: String,
    /// The value of the status while the decision is awaited.
    pub waiting: Value,
}
