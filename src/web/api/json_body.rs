//! Bodies: strict JSON, and only the members that a call takes.

use std::future::Future;
use std::pin::Pin;

use actix_web::dev::Payload;
use actix_web::{FromRequest, HttpRequest, web};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::problem::Problem;
use crate::domain::json::parse::{JsonCode, JsonError, ParseLimits, parse};
use crate::domain::json::pointer::Pointer;
use crate::service::error::{Error, Result};
use crate::web::state::AppState;

/// A body as it was sent. One that is too large is refused in the same words as any other JSON.
#[derive(Clone, Debug)]
pub struct JsonBytes(web::Bytes);

impl JsonBytes {
    /// The body, byte for byte.
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
    Error::invalid("", "the body could not be read to its end")
}

/// A body as what a call takes. An empty body is `{}`, for calls that need nothing.
pub fn read<T: DeserializeOwned>(app: &AppState, bytes: &JsonBytes) -> Result<T> {
    shaped(strict(app, if bytes.0.is_empty() { b"{}" } else { &bytes.0 })?)
}

/// JSON that two parties can agree on, within this gateway's bounds.
pub fn strict(app: &AppState, text: &[u8]) -> Result<Value> {
    Ok(parse(text, &ParseLimits { bytes_max: app.edge.body_bytes_max, depth_max: app.edge.depth_max })?)
}

/// JSON as what a call takes.
pub fn shaped<T: DeserializeOwned>(value: Value) -> Result<T> {
    serde_json::from_value(value).map_err(|error| Error::invalid("", shape_words(&error.to_string())))
}

/// What serde says of a wrong shape names members and types; a value in it would be the asker's own, cut short.
fn shape_words(text: &str) -> String {
    const CHARS_MAX: usize = 200;
    text.chars().take(CHARS_MAX).collect()
}

/// A part of a path or a query as what it names.
pub fn name<T>(pointer: &str, text: &str) -> Result<T>
where
    T: for<'a> TryFrom<&'a str>,
{
    T::try_from(text).map_err(|_| Error::invalid(pointer, "this is not a name of that kind"))
}
