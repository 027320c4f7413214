//! The page after sign-in. It is always a path of this gateway, so that a link cannot redirect to another site.

use serde::Deserialize;

/// No path of this gateway is longer.
const NEXT_CHARS_MAX: usize = 512;

/// A path on this gateway, with its query.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LocalPath(String);

impl LocalPath {
    pub fn inbox() -> Self {
        Self("/".to_owned())
    }

    /// Returns the path, or the inbox if the text is no local path. Browsers read `//` and `/\` as another host, and
    /// drop tabs and line feeds before they parse.
    pub fn of(text: &str) -> Self {
        // Browsers read a backslash like a slash, so it could also lead to another host.
        let plain = |byte: u8| byte.is_ascii_graphic() && byte != b'\\';
        // Browsers read `//` at the start as another host.
        let local = text.starts_with('/') && !text.starts_with("//");
        // A return to a page of the sign-in itself would lead in a circle.
        let leads_on = !text.starts_with("/sign-") && !text.starts_with("/set-up");
        if local && leads_on && text.len() <= NEXT_CHARS_MAX && text.bytes().all(plain) {
            Self(text.to_owned())
        } else {
            Self::inbox()
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the URL of the sign-in page that continues at this path.
    pub fn sign_in(&self) -> String {
        if self.0 == "/" { "/sign-in".to_owned() } else { format!("/sign-in?next={}", encoded(&self.0)) }
    }
}

/// Percent-encodes a text for a query.
pub fn encoded(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                encoded.push(char::from(byte))
            }
            other => encoded.push_str(&format!("%{other:02X}")),
        }
    }
    encoded
}

/// `next`: the page after sign-in, in a query or a form.
#[derive(Deserialize)]
pub struct NextPathQuery {
    #[serde(default)]
    pub(in crate::pages) next: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_path_of_this_gateway_is_gone_on_to() {
        for path in ["/", "/reviews/0192f0c1", "/threads/order:8812?below=4"] {
            assert_eq!(LocalPath::of(path).as_str(), path);
        }
        let elsewhere = [
            "",
            "https://evil.example/",
            "//evil.example",
            "/\\evil.example",
            "/\t/evil.example",
            "/\n/evil.example",
            "javascript:alert(1)",
            "reviews/1",
            "/reviews/ü",
            "/sign-in?next=/sign-in",
            "/sign-out",
        ];
        for path in elsewhere {
            assert_eq!(LocalPath::of(path), LocalPath::inbox(), "{path:?}");
        }
        assert_eq!(LocalPath::of(&format!("/{}", "a".repeat(600))), LocalPath::inbox());
    }

    #[test]
    fn a_path_survives_the_sign_in_page() {
        assert_eq!(LocalPath::of("/threads/a?b=1&c=%2F").sign_in(), "/sign-in?next=/threads/a%3Fb%3D1%26c%3D%252F");
        assert_eq!(LocalPath::inbox().sign_in(), "/sign-in");
    }
}
