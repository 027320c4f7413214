//! Custom headers of endpoint requests: validation and encryption at rest.

use std::collections::BTreeMap;

use countersign_adapters::http_client::{TRACEPARENT, admits_header};
use countersign_adapters::random;
use countersign_domain::delivery::endpoint::Endpoint;
use countersign_domain::keys::{EncryptedValue, Keys};
use countersign_domain::primitives::id::EndpointId;
use countersign_domain::primitives::secret::Secret;

use crate::delivery::target::{CONTENT_TYPE, header_place};
use crate::error::{Error, Result};

/// A receiver that needs more can use its own proxy.
const HEADERS_MAX: usize = 10;

/// Long enough for a token.
const HEADER_BYTES_MAX: usize = 4 * 1024;

/// Returns the headers that stay after an edit. If the scheme, host or port changes, the headers must be given again.
/// Their values are secret, and the editor must not be able to send them to a new server.
pub(super) fn headers_that_stay(before: &Endpoint, next: &Endpoint) -> Result<BTreeMap<String, EncryptedValue>> {
    if before.headers.is_empty() || before.origin == next.origin {
        return Ok(before.headers.clone());
    }
    let detail = "the URL has another scheme, host or port: enter all headers again, or remove them";
    Err(Error::invalid("/headers", detail))
}

pub(super) fn hidden_headers(
    keys: &Keys,
    id: &EndpointId,
    headers: &BTreeMap<String, Secret<String>>,
) -> Result<BTreeMap<String, EncryptedValue>> {
    if headers.len() > HEADERS_MAX {
        return Err(Error::invalid("/headers", "at most 10 headers are allowed"));
    }
    let hide = |(name, value): (&String, &Secret<String>)| {
        let name = name.to_ascii_lowercase();
        // A custom header must not replace one that signs or describes the request.
        let ours = name.starts_with("webhook-") || [CONTENT_TYPE.0, TRACEPARENT].contains(&name.as_str());
        if ours || value.expose().len() > HEADER_BYTES_MAX || !admits_header(&name, value.expose()) {
            return Err(Error::invalid(
                "/headers",
                "a header is not valid, or the gateway sets it itself: use other names and printable values",
            ));
        }
        let hidden = keys.row().hide(&header_place(id, &name), value.expose(), random::bytes());
        Ok((name, hidden))
    };
    headers.iter().map(hide).collect()
}
