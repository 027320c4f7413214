//! HTTP client for URLs that users configure: webhooks, agent servers and chats. No other module connects to such URLs.
//!
//! Protects against SSRF:
//! - A request to an address that is not public fails unless its network is in `webhooks.allow_networks`.
//! - Redirects are not followed.
//! - No proxy is used, because a proxy could connect to an address that was not checked.
//! - The response is limited in size and in time.

mod response;
mod ssrf_guard;
mod url_check;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

pub use countersign_domain::delivery::failure::FailureCode;
use countersign_domain::platform::trace_parent::TraceParent;
use countersign_domain::primitives::secret::Secret;
pub use reqwest::Method;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, redirect, retry};
use url::Url;

use crate::clock::{Clock as _, SystemClock};
use crate::network::Network;
use crate::tls;
use ssrf_guard::{AddressScope, DnsResolver, SsrfGuard};
use url_check::{AddressScopes, UrlScheme};
pub use url_check::{URL_BYTES_MAX, UrlRejected};

/// The stored part of a response body: enough to see the receiver's own error message.
pub const ANSWER_KEPT_MAX: usize = 2 * 1024;
/// The part of a body that is read. A body that is read to its end leaves the connection reusable.
const ANSWER_READ_MAX: usize = 64 * 1024;
/// The limit on response headers. Normal receivers send far fewer.
const ANSWER_HEADERS_MAX: usize = 64;
/// The idle limit. Many receivers close idle connections after five seconds, and a request at that moment would be
/// lost.
const IDLE_MAX: Duration = Duration::from_secs(4);
/// The number of idle connections that stay open per receiver.
const IDLE_PER_HOST_MAX: usize = 8;
/// The `User-Agent` header.
const USER_AGENT: &str = concat!("Countersign/", env!("CARGO_PKG_VERSION"));

/// Headers that control framing and connections. Only this module sets them.
const OWN_HEADERS: [&str; 16] = [
    "accept-encoding",
    "connection",
    "content-length",
    "expect",
    "host",
    "keep-alive",
    "proxy-authorization",
    "proxy-connection",
    "range",
    "referer",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "user-agent",
    "via",
];

/// The allowed destinations and the time limit.
#[derive(Clone, Debug)]
pub struct HttpClientSettings {
    /// Private networks that can be reached nevertheless.
    pub allowed: Vec<Network>,
    /// Whether public addresses can be reached over plain HTTP.
    pub plain_http: bool,
    /// The limit for the whole request: connect, TLS handshake, send, and read the response.
    pub timeout: Duration,
}

/// The reason that no client can be created.
#[derive(Debug, thiserror::Error)]
pub enum HttpClientError {
    #[error("the outgoing HTTP client cannot be set up")]
    Client(#[source] reqwest::Error),
}

/// Sends requests. Clones share their connections.
#[derive(Clone)]
pub struct HttpClient {
    reaches: Arc<AddressScopes>,
    tls: Client,
    plain: Client,
}

/// A request to send. The URL can be a secret, so this type has no `Debug`.
pub struct OutboundRequest {
    pub url: Url,
    pub headers: Vec<(String, Secret<String>)>,
    pub body: Vec<u8>,
}

/// The header of W3C Trace Context with the trace and the parent span.
pub const TRACEPARENT: &str = "traceparent";

impl OutboundRequest {
    /// Adds the trace of the event, if the event has one.
    #[must_use]
    pub fn traced(mut self, trace: Option<&TraceParent>) -> Self {
        self.headers.extend(trace.map(|it| (TRACEPARENT.to_owned(), Secret::new(it.as_str().to_owned()))));
        self
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum HttpOutcome {
    /// The receiver responded, with any status.
    Answered(BoundedResponse),
    Failed(HttpFailure),
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BoundedResponse {
    pub status: u16,
    /// The delay that the receiver requested.
    pub retry_after: Option<Duration>,
    /// The beginning of the body, or the whole body.
    pub body: Vec<u8>,
    /// Whether the body continues after the stored part.
    pub cut: bool,
    pub took: Duration,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HttpFailure {
    pub why: FailureCode,
    /// The time until the failure was known.
    pub took: Duration,
}

/// Returns true if users can set this header on a configured URL.
pub fn admits_header(name: &str, value: &str) -> bool {
    header_pair(name, value).is_some()
}

impl HttpClient {
    pub fn new(settings: HttpClientSettings) -> Result<Self, HttpClientError> {
        Self::between(
            ClientOverrides { look_up: ssrf_guard::system(), authorities: Vec::new(), idle_max: IDLE_MAX },
            settings,
        )
    }

    fn between(edges: ClientOverrides, settings: HttpClientSettings) -> Result<Self, HttpClientError> {
        tls::ready();
        let allowed: Arc<[Network]> = settings.allowed.into();
        let plain = match settings.plain_http {
            // The scope for public addresses over HTTP exists only if the configuration allows it.
            true => AddressScope::PublicAnd(allowed.clone()),
            false => AddressScope::Only(allowed.clone()),
        };
        let reaches = AddressScopes { tls: AddressScope::PublicAnd(allowed), plain };
        let ready = |reach: &AddressScope| {
            let resolver = SsrfGuard { look_up: edges.look_up.clone(), reach: reach.clone() };
            prepared(settings.timeout).dns_resolver(resolver).pool_idle_timeout(edges.idle_max)
        };
        // Plain HTTP needs no certificates, so the client loads none.
        let plain = ready(&reaches.plain).tls_certs_only([]).build().map_err(HttpClientError::Client)?;
        let tls = ready(&reaches.tls).https_only(true).tls_certs_merge(edges.authorities.clone()).build();
        let tls = tls.or_else(|_| {
            tracing::warn!("the system has no trusted CA certificates, so https requests will fail: install the CA certificates of the system");
            // The client is built without CAs, so that the gateway starts and each https request fails with its own
            // error.
            ready(&reaches.tls).https_only(true).tls_certs_only([]).build().map_err(HttpClientError::Client)
        })?;
        Ok(Self { reaches: Arc::new(reaches), tls, plain })
    }

    /// Parses a URL that a user enters. A private or reserved address is refused at once. A host name is checked at
    /// each connection, because its addresses can change.
    pub fn admits(&self, url: &str) -> Result<Url, UrlRejected> {
        self.reaches.read(url)
    }

    /// Sends a request and returns its outcome.
    pub async fn post(&self, parcel: &OutboundRequest) -> HttpOutcome {
        let bounds = response::BodyLimits { kept_bytes: ANSWER_KEPT_MAX, read_bytes: ANSWER_READ_MAX };
        let (url, headers, body) = (&parcel.url, &parcel.headers, Some(parcel.body.clone()));
        self.ask(HttpRequest { method: Method::POST, url, headers, body }, bounds).await
    }

    /// Requests at most `bytes_max` bytes of a resource. A longer body is cut.
    pub async fn get(&self, url: &Url, headers: &[(String, Secret<String>)], bytes_max: usize) -> HttpOutcome {
        let bounds = response::BodyLimits { kept_bytes: bytes_max, read_bytes: bytes_max };
        self.ask(HttpRequest { method: Method::GET, url, headers, body: None }, bounds).await
    }

    /// Sends a request and returns its response while it is still being received. `timeout` limits the whole response.
    pub async fn stream(&self, request: HttpRequest<'_>, timeout: Duration) -> Result<ResponseStream, FailureCode> {
        self.prepare(request)?.timeout(timeout).send().await.map(ResponseStream).map_err(|it| response::meaning(&it))
    }

    async fn ask(&self, request: HttpRequest<'_>, bounds: response::BodyLimits) -> HttpOutcome {
        let began = SystemClock.instant();
        let outcome = self.try_ask(request, bounds).await;
        let took = SystemClock.instant().saturating_duration_since(began);
        match outcome {
            Ok(said) => HttpOutcome::Answered(BoundedResponse {
                status: said.status,
                retry_after: said.retry_after,
                body: said.body.kept,
                cut: said.body.cut,
                took,
            }),
            Err(why) => HttpOutcome::Failed(HttpFailure { why, took }),
        }
    }

    async fn try_ask(
        &self,
        request: HttpRequest<'_>,
        bounds: response::BodyLimits,
    ) -> Result<RawHttpResponse, FailureCode> {
        let response = self.prepare(request)?.send().await.map_err(|it| response::meaning(&it))?;
        let status = response.status().as_u16();
        let retry_after = response::retry_after(response.headers(), SystemClock.now());
        let body = response::read(response, bounds).await.map_err(|it| response::meaning(&it))?;
        Ok(RawHttpResponse { status, retry_after, body })
    }

    /// Returns a request to an allowed address.
    fn prepare(&self, request: HttpRequest<'_>) -> Result<reqwest::RequestBuilder, FailureCode> {
        // A literal address is not resolved, so the resolver's check does not apply. It is checked here for each
        // request.
        let client = match self.reaches.way(request.url).map_err(|_| FailureCode::Refused)? {
            UrlScheme::Tls => &self.tls,
            UrlScheme::Plain => &self.plain,
        };
        let mut headers = HeaderMap::new();
        for (name, value) in request.headers {
            // The header was checked when it was saved, but an older version may have accepted it.
            let (name, value) = header_pair(name, value.expose()).ok_or(FailureCode::Unsendable)?;
            headers.append(name, value);
        }
        let mut builder = client.request(request.method, request.url.clone()).headers(headers);
        if let Some(body) = request.body {
            builder = builder.body(body);
        }
        Ok(builder)
    }
}

/// The dependencies of a client: the system's, or those of a test.
struct ClientOverrides {
    look_up: DnsResolver,
    /// Trusted CAs in addition to the system's.
    authorities: Vec<reqwest::Certificate>,
    idle_max: Duration,
}

/// A request with any method.
pub struct HttpRequest<'a> {
    pub method: Method,
    pub url: &'a Url,
    pub headers: &'a [(String, Secret<String>)],
    pub body: Option<Vec<u8>>,
}

/// A response that is being received.
pub struct ResponseStream(reqwest::Response);

impl ResponseStream {
    pub fn status(&self) -> u16 {
        self.0.status().as_u16()
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.0.headers().get(name)?.to_str().ok()
    }

    /// Returns the next piece of the body.
    pub async fn chunk(&mut self) -> Result<Option<bytes::Bytes>, FailureCode> {
        self.0.chunk().await.map_err(|it| response::meaning(&it))
    }

    /// Returns the whole body, or `None` if it is longer than the limit.
    pub async fn whole(mut self, bytes_max: usize) -> Result<Option<Vec<u8>>, FailureCode> {
        let mut body = Vec::new();
        while let Some(piece) = self.chunk().await? {
            if body.len() + piece.len() > bytes_max {
                return Ok(None);
            }
            body.extend_from_slice(&piece);
        }
        Ok(Some(body))
    }
}

struct RawHttpResponse {
    status: u16,
    retry_after: Option<Duration>,
    body: response::BoundedBody,
}

fn prepared(timeout: Duration) -> reqwest::ClientBuilder {
    Client::builder()
        .user_agent(USER_AGENT)
        // A redirect could lead to an address that was not checked.
        .redirect(redirect::Policy::none())
        // The URL can contain a secret, which the header would repeat.
        .referer(false)
        // A proxy from the environment would connect to addresses that were not checked.
        .no_proxy()
        // The delivery worker decides about retries and counts them.
        .retry(retry::never())
        .timeout(timeout)
        // Streams have a longer limit for the whole response, and not for this.
        .connect_timeout(timeout)
        // A small compressed response must not expand to a large one (decompression bomb).
        .no_gzip()
        .no_brotli()
        .no_zstd()
        .no_deflate()
        // HTTP/2 would need limits of its own, and receivers of webhooks do not need it.
        .http1_only()
        .http1_max_headers(ANSWER_HEADERS_MAX)
        .pool_max_idle_per_host(IDLE_PER_HOST_MAX)
}

fn header_pair(name: &str, value: &str) -> Option<(HeaderName, HeaderValue)> {
    let name = HeaderName::try_from(name).ok().filter(|it| !OWN_HEADERS.contains(&it.as_str()))?;
    // The mark keeps the value out of debug output.
    let mut value = HeaderValue::try_from(value).ok()?;
    value.set_sensitive(true);
    Some((name, value))
}
