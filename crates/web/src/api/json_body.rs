//! Request bodies: strict JSON with only the members of the call.

use std::future::Future;
use std::pin::Pin;

use actix_web::dev::Payload;
use actix_web::http::header::CONTENT_LENGTH;
use actix_web::{FromRequest, HttpRequest, web};
use countersign_domain::json::parse::{JsonCode, JsonError, ParseLimits, parse};
use countersign_domain::json::pointer::Pointer;
use countersign_service::error::{Error, Result};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::problem::Problem;
use crate::body_limit::{bytes_max, longest};
use crate::state::EdgeConfig;

/// The paths of the arguments of a tool call: in a proposal, in an approval request, in a hook, and in a proposal over
/// MCP.
const ARGUMENTS: [&str; 4] = ["/tool/arguments", "/arguments", "/tool_input", "/params/arguments/tool/arguments"];

/// A request body. If it is too large, the error is a JSON error like the others.
#[derive(Clone, Debug)]
pub struct JsonBytes(web::Bytes);

impl JsonBytes {
    /// Returns the body as it was sent.
    pub fn sent(&self) -> &[u8] {
        &self.0
    }
}

impl FromRequest for JsonBytes {
    type Error = Problem;
    type Future = Pin<Box<dyn Future<Output = std::result::Result<Self, Problem>>>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let (request, sent) = (request.clone(), web::Payload::from_request(request, payload).into_inner());
        Box::pin(async move {
            let bytes_max = bytes_max(&request);
            received(&request, sent, bytes_max).await.map(Self).map_err(|error| Problem::of(&request, error))
        })
    }
}

async fn received(
    request: &HttpRequest,
    sent: actix_web::Result<web::Payload>,
    bytes_max: usize,
) -> Result<web::Bytes> {
    let ended = || Error::invalid("", "the connection ended before the whole body arrived: send the request again");
    let announced = request.headers().get(CONTENT_LENGTH).and_then(|it| it.to_str().ok()?.parse::<usize>().ok());
    if announced.is_some_and(|it| it > bytes_max) {
        return Err(too_large());
    }
    let payload = sent.map_err(|_| ended())?;
    payload.to_bytes_limited(bytes_max).await.map_err(|_| too_large())?.map_err(|_| ended())
}

fn too_large() -> Error {
    Error::Json(JsonError { code: JsonCode::TooLarge, pointer: Pointer::root(), offset: None })
}

/// Parses a body as the call's input. An empty body counts as `{}`, for calls without required members.
pub fn read<T: DeserializeOwned>(edge: &EdgeConfig, bytes: &JsonBytes) -> Result<T> {
    // An empty body counts as an empty object, so that calls with only optional members need no body.
    shaped(strict(edge, if bytes.0.is_empty() { b"{}" } else { &bytes.0 })?)
}

/// Parses strict JSON within the limits of this gateway. Duplicate keys and inexact numbers are refused, because two
/// parsers could read them differently.
pub fn strict(edge: &EdgeConfig, text: &[u8]) -> Result<Value> {
    // One strict parser reads all JSON, so that two parts of the gateway never understand one text differently.
    let value = parse(text, &ParseLimits { bytes_max: longest(edge), depth_max: edge.depth_max })?;
    if text.len() > edge.body_bytes_max && bytes_without_arguments(&value) > edge.body_bytes_max {
        return Err(too_large());
    }
    Ok(value)
}

/// Returns the size of a body without the arguments of its tool call. Only the arguments have the higher limit.
fn bytes_without_arguments(body: &Value) -> usize {
    let arguments = ARGUMENTS.iter().find_map(|it| body.pointer(it));
    body.to_string().len() - arguments.map_or(0, |it| it.to_string().len())
}

/// Converts JSON to the call's input.
pub fn shaped<T: DeserializeOwned>(value: Value) -> Result<T> {
    serde_json::from_value(value).map_err(|error| Error::invalid("", shape_words(&error.to_string())))
}

/// Cuts serde's message about a wrong shape. It can contain a value of the request.
fn shape_words(text: &str) -> String {
    const CHARS_MAX: usize = 200;
    // The message of the parser can quote the client's text, so its length is limited.
    text.chars().take(CHARS_MAX).collect()
}

/// Parses a part of the path or of the query.
pub fn name<T>(pointer: &str, text: &str) -> Result<T>
where
    T: for<'a> TryFrom<&'a str>,
{
    T::try_from(text).map_err(|_| Error::invalid(pointer, "this is not a valid name for this parameter"))
}
