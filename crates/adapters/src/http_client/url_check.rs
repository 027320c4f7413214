//! Checks URLs that users enter. A literal address is checked here and again before each request. The addresses of a
//! host name are checked when the client connects.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use url::{Host, Url};

use super::ssrf_guard::AddressScope;

/// The limit for URLs. Longer ones are not in use, and the log of attempts shows the URL of each request.
pub const URL_BYTES_MAX: usize = 2048;

/// The name of the loopback interface. Subdomains of it lead to the same address.
const OWN_NAME: &str = "localhost";

/// The reason that a URL is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum UrlRejected {
    #[error("the URL exceeds {URL_BYTES_MAX} bytes")]
    TooLong,
    #[error("this is not a URL: enter https:// and a host")]
    NotAnAddress,
    #[error("the URL must begin with https://")]
    Scheme,
    /// The request would be unencrypted.
    #[error("the URL must begin with https://. Plain http:// is only allowed to networks in `webhooks.allow_networks`")]
    PlainHttp,
    /// The URL contains credentials.
    #[error("the URL must not contain a user name or a password: use a header instead")]
    UserInfo,
    /// The URL has a fragment.
    #[error("the URL must not have a fragment (`#`): HTTP never sends it")]
    Fragment,
    #[error("port 0 is invalid: use a port from 1 to 65535")]
    Port,
    /// The address is private or reserved.
    #[error("this address is private or reserved. An operator can allow its network in `webhooks.allow_networks`")]
    Inside,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum UrlScheme {
    Tls,
    Plain,
}

#[derive(Clone, Debug)]
pub(super) struct AddressScopes {
    pub(super) tls: AddressScope,
    pub(super) plain: AddressScope,
}

impl AddressScopes {
    /// Parses and checks a URL.
    pub(super) fn read(&self, text: &str) -> Result<Url, UrlRejected> {
        if text.len() > URL_BYTES_MAX {
            return Err(UrlRejected::TooLong);
        }
        // The URL standard silently drops tabs and line ends and turns backslashes into slashes. Such a URL is refused
        // as a mistake or an attack.
        if text.bytes().any(|it| it.is_ascii_control() || it == b' ' || it == b'\\') {
            return Err(UrlRejected::NotAnAddress);
        }
        let url = Url::parse(text).map_err(|_| UrlRejected::NotAnAddress)?;
        self.way(&url)?;
        Ok(url)
    }

    /// Returns the client for a URL, if it is allowed. Parsing has normalized every spelling of a literal address.
    pub(super) fn way(&self, url: &Url) -> Result<UrlScheme, UrlRejected> {
        let (way, reach) = match url.scheme() {
            "https" => (UrlScheme::Tls, &self.tls),
            "http" => (UrlScheme::Plain, &self.plain),
            _ => return Err(UrlRejected::Scheme),
        };
        if url.as_str().len() > URL_BYTES_MAX {
            return Err(UrlRejected::TooLong);
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(UrlRejected::UserInfo);
        }
        if url.fragment().is_some() {
            return Err(UrlRejected::Fragment);
        }
        // Receivers can listen on any port. The protection is the check of the address, not of the port.
        if url.port() == Some(0) {
            return Err(UrlRejected::Port);
        }
        if reach.is_empty() {
            return Err(UrlRejected::PlainHttp);
        }
        let within = match url.host().ok_or(UrlRejected::NotAnAddress)? {
            Host::Ipv4(address) => reach.holds(address.into()),
            Host::Ipv6(address) => reach.holds(address.into()),
            Host::Domain(name) if is_own(name) => {
                let own: [IpAddr; 2] = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
                own.into_iter().any(|it| reach.holds(it))
            }
            Host::Domain(_) => true,
        };
        match (within, way, &self.plain) {
            (true, way, _) => Ok(way),
            (false, UrlScheme::Plain, AddressScope::Only(_)) => Err(UrlRejected::PlainHttp),
            (false, ..) => Err(UrlRejected::Inside),
        }
    }
}

fn is_own(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    name.strip_suffix(OWN_NAME).is_some_and(|it| it.is_empty() || it.ends_with('.'))
}
