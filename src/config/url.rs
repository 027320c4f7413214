//! The gateway's public URL.

use std::fmt;

/// The accepted values, for error messages.
pub(super) const EXPECTED: &str = "a URL with https:// and a host, without a path (http:// only for localhost)";

/// An origin: scheme, host and port.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PublicUrl {
    origin: String,
    secure: bool,
}

impl PublicUrl {
    /// Reads an origin. Plain HTTP is accepted for localhost only, because passwords would cross the network
    /// unencrypted.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let url = reqwest::Url::parse(text).ok()?;
        // The routes begin at the root of the host, so links with a path in front would not work.
        let bare = url.path() == "/"
            && url.query().is_none()
            && url.fragment().is_none()
            && url.username().is_empty()
            && url.password().is_none();
        let secure = match (url.scheme(), url.host_str()?) {
            ("https", _) => true,
            ("http", "localhost" | "127.0.0.1" | "[::1]") => false,
            _ => return None,
        };
        bare.then(|| Self { origin: url.origin().ascii_serialization(), secure })
    }

    /// Returns the URL of localhost. The name is used instead of the address because browsers allow passkeys for it.
    pub fn local(port: u16) -> Self {
        Self { origin: format!("http://localhost:{port}"), secure: false }
    }

    /// Returns the origin, without a trailing slash.
    pub fn as_str(&self) -> &str {
        &self.origin
    }

    /// Returns the port, if the URL names one.
    pub fn port(&self) -> Option<u16> {
        // The colon before a port is the last one, and one of an IPv6 address is followed by a bracket.
        self.origin.rsplit(':').next()?.parse().ok()
    }

    /// Returns true for https. Cookies are then marked `Secure`.
    pub fn is_secure(&self) -> bool {
        self.secure
    }
}

impl fmt::Display for PublicUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.origin)
    }
}
