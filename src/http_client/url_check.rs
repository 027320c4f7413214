//! What may be typed in as an address to send to. A literal address is looked at here, and again before each send; what
//! a name leads to is looked at when it is connected to.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use url::{Host, Url};

use super::ssrf_guard::AddressScope;

/// Longer ones are not found in the wild, and each attempt's request is shown with its address.
pub const URL_BYTES_MAX: usize = 2048;

/// The name that every system knows for itself, and those below it.
const OWN_NAME: &str = "localhost";

/// Why nothing is sent to an address, as it is spelled.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum UrlRejected {
    #[error("an address has {URL_BYTES_MAX} bytes at most")]
    TooLong,
    #[error("this is no address: it begins with https:// and a host")]
    NotAnAddress,
    #[error("an address begins with https://")]
    Scheme,
    /// It would be sent in the clear.
    #[error("an address begins with https://; http:// is for the networks in `webhooks.allow_networks`")]
    PlainHttp,
    /// It has a name or a password in it.
    #[error("an address has no user name and no password in it: send a header instead")]
    UserInfo,
    /// It has a part that is never sent.
    #[error("an address has no part behind a `#`: that is never sent")]
    Fragment,
    #[error("port 0 is no port")]
    Port,
    /// It leads to where nothing is sent to.
    #[error("this address is private or reserved; an operator may allow its network in `webhooks.allow_networks`")]
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
    /// Reads what somebody typed.
    pub(super) fn read(&self, text: &str) -> Result<Url, UrlRejected> {
        if text.len() > URL_BYTES_MAX {
            return Err(UrlRejected::TooLong);
        }
        // The standard drops tabs and line ends without a word, and turns backslashes around. Nobody means these.
        if text.bytes().any(|it| it.is_ascii_control() || it == b' ' || it == b'\\') {
            return Err(UrlRejected::NotAnAddress);
        }
        let url = Url::parse(text).map_err(|_| UrlRejected::NotAnAddress)?;
        self.way(&url)?;
        Ok(url)
    }

    /// By which way something goes to an address, if by any. Every spelling of a literal address is one by now.
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
        // Receivers listen where they like. What protects others is who they are, not which of their ports it is.
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
