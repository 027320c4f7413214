//! The connection to a gateway.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use countersign_domain::primitives::secret::Secret;
use countersign_domain::primitives::time::Timestamp;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::redirect;
use rustls::ClientConfig;
use rustls::crypto::ring;
use rustls_platform_verifier::Verifier;
use url::Url;

use crate::error::ClientError;

/// The time limit for a response. It is longer than the longest wait for a decision.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(150);

/// The time limit for connecting.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(10);

/// A token at a gateway. Clones share the connections.
#[derive(Clone)]
pub struct Client {
    pub(crate) http: reqwest::Client,
    base: String,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The connections know the token.
        f.debug_struct("Client").field("base", &self.base).finish_non_exhaustive()
    }
}

impl Client {
    /// Prepares the calls to a gateway, such as `https://gate.example`. The token is sent to this address only.
    pub fn new(gateway: &Url, token: &Secret<String>) -> Result<Self, ClientError> {
        check_address(gateway)?;
        let mut bearer = HeaderValue::from_str(&format!("Bearer {}", token.expose()))
            .map_err(|_| ClientError::SetUp("the token has characters that no token has"))?;
        // A sensitive header is not printed in debug output, so the token cannot reach a log.
        bearer.set_sensitive(true);
        let json = HeaderValue::from_static("application/json");
        let headers = HeaderMap::from_iter([(AUTHORIZATION, bearer), (CONTENT_TYPE, json.clone()), (ACCEPT, json)]);
        // A redirect would send the token to another host.
        let mut http = reqwest::Client::builder().default_headers(headers).redirect(redirect::Policy::none());
        http = http.tls_backend_preconfigured(tls()?);
        if is_here(gateway) {
            // A proxy of the environment must not receive requests to localhost.
            http = http.no_proxy();
        }
        let http = http.timeout(ANSWER_TIME_MAX).connect_timeout(CONNECT_TIME_MAX).build().map_err(|_| {
            ClientError::SetUp("the HTTP client cannot be set up: the system has no trusted CA certificates")
        })?;
        Ok(Self { http, base: gateway.as_str().trim_end_matches('/').to_owned() })
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }
}

/// Returns true for localhost.
fn is_here(gateway: &Url) -> bool {
    matches!(gateway.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"))
}

/// The token is the only credential, so it crosses the network encrypted, and to this address only.
fn check_address(gateway: &Url) -> Result<(), ClientError> {
    let is_plain = gateway.scheme() == "http" && !is_here(gateway);
    let has_more = gateway.query().is_some() || gateway.fragment().is_some();
    let has_user = !gateway.username().is_empty() || gateway.password().is_some();
    if !matches!(gateway.scheme(), "http" | "https") || has_user || has_more {
        return Err(ClientError::SetUp("use an https:// URL without a user name, a password, a query or a fragment"));
    }
    if is_plain {
        Err(ClientError::SetUp("the token would cross the network unencrypted: use https://"))
    } else {
        Ok(())
    }
}

/// Returns a TLS configuration that trusts the system's CAs. It changes nothing for the rest of the process.
fn tls() -> Result<ClientConfig, ClientError> {
    let failed = |_| ClientError::SetUp("TLS cannot be set up: the system has no trusted CA certificates");
    let provider = Arc::new(ring::default_provider());
    let verifier = Verifier::new(Arc::clone(&provider)).map_err(failed)?;
    let builder =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().map_err(failed)?;
    Ok(builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier)).with_no_client_auth())
}

/// Returns the time of the local clock.
#[expect(clippy::disallowed_methods, reason = "the client's one source of time, for the end of a lease")]
pub fn now() -> Timestamp {
    Timestamp::from_millis(chrono::Utc::now().timestamp_millis())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_is_sent_encrypted_and_to_one_address_only() {
        let made = |url: &str| Client::new(&url.parse().unwrap(), &Secret::new("cs_x".to_owned()));
        for refused in
            ["http://gate.example", "https://ada@gate.example", "https://gate.example/?x", "ftp://gate.example"]
        {
            assert!(made(refused).is_err(), "{refused}");
        }
        for good in ["https://gate.example/below", "http://localhost:8480", "http://[::1]:8480"] {
            assert!(!format!("{:?}", made(good).unwrap()).contains("cs_x"), "{good}");
        }
    }
}
