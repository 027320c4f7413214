//! Where people and machines reach the gateway.

use std::fmt;

/// What a mistake is answered with.
pub(super) const EXPECTED: &str = "a URL with https:// and a host, without a path (http:// only for localhost)";

/// An origin: scheme, host and port.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PublicUrl {
    origin: String,
    secure: bool,
}

impl PublicUrl {
    /// Reads an origin. Plain HTTP to another machine would carry passwords in the clear.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let url = reqwest::Url::parse(text).ok()?;
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

    /// This machine, by the name that browsers treat as a secure place (passkeys work there).
    pub fn local(port: u16) -> Self {
        Self { origin: format!("http://localhost:{port}"), secure: false }
    }

    /// The origin, without a slash at its end.
    pub fn as_str(&self) -> &str {
        &self.origin
    }

    /// True if it is https, and cookies may be bound to it.
    pub fn is_secure(&self) -> bool {
        self.secure
    }
}

impl fmt::Display for PublicUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.origin)
    }
}
