//! The headers that an endpoint's requests carry: checked, and encrypted at rest.

use std::collections::BTreeMap;

use super::{CONTENT_TYPE, header_place};
use crate::domain::delivery::endpoint::Endpoint;
use crate::domain::keys::{EncryptedValue, Keys};
use crate::domain::primitives::id::EndpointId;
use crate::domain::primitives::secret::Secret;
use crate::http_client::{TRACEPARENT, admits_header};
use crate::random;
use crate::service::error::{Error, Result};

/// A receiver that wants more has a gateway of its own in front.
const HEADERS_MAX: usize = 10;

/// A token with room to spare.
const HEADER_BYTES_MAX: usize = 4 * 1024;

/// The headers of an endpoint that is changed otherwise. Their values are shown to nobody, so whoever sends them elsewhere
/// says them anew: where they went before, they were meant to be read.
pub(super) fn headers_that_stay(before: &Endpoint, next: &Endpoint) -> Result<BTreeMap<String, EncryptedValue>> {
    if before.headers.is_empty() || before.origin == next.origin {
        return Ok(before.headers.clone());
    }
    let detail = "the address is of another scheme, host or port: say all of its headers anew, or that there are none";
    Err(Error::invalid("/headers", detail))
}

pub(super) fn hidden_headers(
    keys: &Keys,
    id: &EndpointId,
    headers: &BTreeMap<String, Secret<String>>,
) -> Result<BTreeMap<String, EncryptedValue>> {
    if headers.len() > HEADERS_MAX {
        return Err(Error::invalid("/headers", "ten headers at most"));
    }
    let hide = |(name, value): (&String, &Secret<String>)| {
        let name = name.to_ascii_lowercase();
        let ours = name.starts_with("webhook-") || [CONTENT_TYPE.0, TRACEPARENT].contains(&name.as_str());
        if ours || value.expose().len() > HEADER_BYTES_MAX || !admits_header(&name, value.expose()) {
            return Err(Error::invalid("/headers", "one of these headers cannot be sent, or is the gateway's own"));
        }
        let hidden = keys.row().hide(&header_place(id, &name), value.expose(), random::bytes());
        Ok((name, hidden))
    };
    headers.iter().map(hide).collect()
}
