//! The origin of a request for the MCP tools. Browsers state it, so a page of another site is refused, also if DNS rebinding
//! leads its requests to the gateway.

use actix_web::http::header::{HeaderMap, HeaderValue, ORIGIN};
use countersign_service::error::Error;
use url::{Host, Url};

/// Checks each `Origin` header of a request. Programs send none.
pub fn check(own: &str, headers: &HeaderMap) -> Result<(), Error> {
    if headers.get_all(ORIGIN).all(|it| is_allowed(own, it)) {
        return Ok(());
    }
    Err(Error::Forbidden(
        "only pages of the gateway and of localhost may call this address. Use the gateway's public URL, or send no `Origin`",
    ))
}

fn is_allowed(own: &str, origin: &HeaderValue) -> bool {
    let Ok(origin) = origin.to_str() else { return false };
    origin == own || Url::parse(origin).is_ok_and(|it| is_localhost(it.host()))
}

/// Returns true for localhost. A page that is not on this computer has no such origin.
fn is_localhost(host: Option<Host<&str>>) -> bool {
    match host {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}
