//! Bodies: strict JSON, and only the members that a call takes.

use actix_web::web::Bytes;
use serde::de::DeserializeOwned;

use crate::domain::json::parse::{Limits, parse};
use crate::service::error::{Error, Result};
use crate::web::app::App;

/// A body as what a call takes. An empty body is `{}`, for calls that need nothing.
pub fn read<T: DeserializeOwned>(app: &App, bytes: &Bytes) -> Result<T> {
    let limits = Limits { bytes_max: app.edge.body_bytes_max, depth_max: app.edge.depth_max };
    let text: &[u8] = if bytes.is_empty() { b"{}" } else { bytes };
    let value = parse(text, &limits)?;
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
