//! The connection to a gateway.

use std::time::Duration;

use countersign_domain::primitives::secret::Secret;
use countersign_domain::primitives::time::Timestamp;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::redirect;
use rustls::crypto::ring;
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

impl Client {
    /// Prepares the calls to a gateway, such as `https://gate.example`. The token is sent to this address only.
    pub fn new(gateway: &Url, token: &Secret<String>) -> Result<Self, ClientError> {
        // An error means that the provider is already set.
        let _ = ring::default_provider().install_default();
        let mut bearer = HeaderValue::from_str(&format!("Bearer {}", token.expose()))
            .map_err(|_| ClientError::SetUp("the token has characters that no token has"))?;
        // A sensitive header is not printed in debug output, so the token cannot reach a log.
        bearer.set_sensitive(true);
        let json = HeaderValue::from_static("application/json");
        let headers = HeaderMap::from_iter([(AUTHORIZATION, bearer), (CONTENT_TYPE, json.clone()), (ACCEPT, json)]);
        // A redirect would send the token to another host.
        let mut http = reqwest::Client::builder().default_headers(headers).redirect(redirect::Policy::none());
        if matches!(gateway.host_str(), Some("localhost" | "127.0.0.1" | "[::1]")) {
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

/// Returns the time of the local clock.
#[expect(clippy::disallowed_methods, reason = "the client's one source of time, for the end of a lease")]
pub fn now() -> Timestamp {
    Timestamp::from_millis(chrono::Utc::now().timestamp_millis())
}
