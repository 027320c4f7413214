//! Request bodies: strict JSON with only the members of the call.

use std::future::Future;
use std::pin::Pin;

use actix_web::dev::Payload;
use actix_web::{FromRequest, HttpRequest, web};
use countersign_domain::json::parse::{JsonCode, JsonError, ParseLimits, parse};
use countersign_domain::json::pointer::Pointer;
use countersign_service::error::{Error, Result};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::problem::Problem;
use crate::state::EdgeConfig;

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
        let (request, sent) = (request.clone(), web::Bytes::from_request(request, payload));
        Box::pin(async move { sent.await.map(Self).map_err(|error| Problem::of(&request, unread(&error))) })
    }
}

fn unread(error: &actix_web::Error) -> Error {
    let too_large = error.as_response_error().status_code() == actix_web::http::StatusCode::PAYLOAD_TOO_LARGE;
    if too_large {
        return Error::Json(JsonError { code: JsonCode::TooLarge, pointer: Pointer::root(), offset: None });
    }
    Error::invalid("", "the connection ended before the whole body arrived: send the request again")
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
    Ok(parse(text, &ParseLimits { bytes_max: edge.body_bytes_max, depth_max: edge.depth_max })?)
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
