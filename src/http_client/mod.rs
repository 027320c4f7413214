//! HTTP to addresses that somebody gave us: webhooks, agent servers, chats. The only place that speaks to such.
//!
//! Whoever may name an address must not reach by it what only this machine reaches. So nothing is sent to an address
//! that is not public unless its network is allowed by name; redirects are answers, not orders; no proxy stands between
//! that could be asked to go elsewhere; and of what comes back a bounded part is read, for a bounded time.

mod response;
mod ssrf_guard;
mod url_check;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Method, redirect, retry};
use url::Url;

use crate::clock::{Clock as _, SystemClock};
use crate::config::Network;
pub use crate::domain::delivery::failure::FailureCode;
use crate::domain::platform::trace_parent::TraceParent;
use crate::domain::primitives::secret::Secret;
use crate::tls;
use ssrf_guard::{AddressScope, DnsResolver, SsrfGuard};
use url_check::{AddressScopes, UrlScheme};
pub use url_check::{URL_BYTES_MAX, UrlRejected};

/// Of an answer to what was sent, so much is kept: enough to see what a receiver says of its own failure.
pub const ANSWER_KEPT_MAX: usize = 2 * 1024;
/// So much of it is read, so that the connection can be used again.
const ANSWER_READ_MAX: usize = 64 * 1024;
/// An answer has a few headers; whoever sends more wants something else.
const ANSWER_HEADERS_MAX: usize = 64;
/// Receivers close what is idle, many after five seconds. Whoever sends at that moment sends into nothing.
const IDLE_MAX: Duration = Duration::from_secs(4);
/// As many connections to one receiver are kept open while nothing is sent.
const IDLE_PER_HOST_MAX: usize = 8;
/// What is said about who sends.
const USER_AGENT: &str = concat!("Countersign/", env!("CARGO_PKG_VERSION"));

/// Headers that say how a request is sent and how it ends: they are this room's alone.
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

/// Where things may be sent to, and for how long.
#[derive(Clone, Debug)]
pub struct HttpClientSettings {
    /// Networks that are not public, and allowed nevertheless.
    pub allowed: Vec<Network>,
    /// Whether plain HTTP goes to public addresses, too.
    pub plain_http: bool,
    /// For all of it: connecting, TLS, sending, and the answer to its end.
    pub timeout: Duration,
}

/// Why nothing can be sent at all.
#[derive(Debug, thiserror::Error)]
pub enum HttpClientError {
    #[error("HTTP to others cannot be prepared")]
    Client(#[source] reqwest::Error),
}

/// Sends. Clones share their connections.
#[derive(Clone)]
pub struct HttpClient {
    reaches: Arc<AddressScopes>,
    tls: Client,
    plain: Client,
}

/// What is sent. An address may be a secret, so it does not print.
pub struct OutboundRequest {
    pub url: Url,
    pub headers: Vec<(String, Secret<String>)>,
    pub body: Vec<u8>,
}

/// How W3C's Trace Context calls where in a trace a request stands.
pub const TRACEPARENT: &str = "traceparent";

impl OutboundRequest {
    /// In the trace of what it tells, if that has one.
    #[must_use]
    pub fn traced(mut self, trace: Option<&TraceParent>) -> Self {
        self.headers.extend(trace.map(|it| (TRACEPARENT.to_owned(), Secret::new(it.as_str().to_owned()))));
        self
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum HttpOutcome {
    /// They said something, with whatever status.
    Answered(BoundedResponse),
    Failed(HttpFailure),
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BoundedResponse {
    pub status: u16,
    /// For how long they want to be left alone.
    pub retry_after: Option<Duration>,
    /// The beginning of the body, or all of it.
    pub body: Vec<u8>,
    /// Whether there was more of it.
    pub cut: bool,
    pub took: Duration,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HttpFailure {
    pub why: FailureCode,
    /// How long it took until that was clear.
    pub took: Duration,
}

/// True if a header may be added by whoever names an address.
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
            true => AddressScope::PublicAnd(allowed.clone()),
            false => AddressScope::Only(allowed.clone()),
        };
        let reaches = AddressScopes { tls: AddressScope::PublicAnd(allowed), plain };
        let ready = |reach: &AddressScope| {
            let resolver = SsrfGuard { look_up: edges.look_up.clone(), reach: reach.clone() };
            prepared(settings.timeout).dns_resolver(resolver).pool_idle_timeout(edges.idle_max)
        };
        // Without TLS there is no need for anybody's certificates.
        let plain = ready(&reaches.plain).tls_certs_only([]).build().map_err(HttpClientError::Client)?;
        let tls = ready(&reaches.tls).https_only(true).tls_certs_merge(edges.authorities.clone()).build();
        let tls = tls.or_else(|_| {
            tracing::warn!("this machine trusts no authority for certificates: nothing can be sent by https");
            ready(&reaches.tls).https_only(true).tls_certs_only([]).build().map_err(HttpClientError::Client)
        })?;
        Ok(Self { reaches: Arc::new(reaches), tls, plain })
    }

    /// Reads an address that somebody types in. What is private or reserved as it stands there is refused here
    /// already; a name is looked at whenever it is connected to.
    pub fn admits(&self, url: &str) -> Result<Url, UrlRejected> {
        self.reaches.read(url)
    }

    /// Sends, and waits for what becomes of it.
    pub async fn post(&self, parcel: &OutboundRequest) -> HttpOutcome {
        let bounds = response::BodyLimits { kept_bytes: ANSWER_KEPT_MAX, read_bytes: ANSWER_READ_MAX };
        let request = HttpRequestSpec { method: Method::POST, url: &parcel.url, headers: &parcel.headers };
        self.ask(request, Some(parcel.body.clone()), bounds).await
    }

    /// Asks for something that has at most so many bytes; what has more is cut.
    pub async fn get(&self, url: &Url, headers: &[(String, Secret<String>)], bytes_max: usize) -> HttpOutcome {
        let bounds = response::BodyLimits { kept_bytes: bytes_max, read_bytes: bytes_max };
        self.ask(HttpRequestSpec { method: Method::GET, url, headers }, None, bounds).await
    }

    async fn ask(
        &self,
        request: HttpRequestSpec<'_>,
        body: Option<Vec<u8>>,
        bounds: response::BodyLimits,
    ) -> HttpOutcome {
        let began = SystemClock.instant();
        let outcome = self.try_ask(request, body, bounds).await;
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
        request: HttpRequestSpec<'_>,
        body: Option<Vec<u8>>,
        bounds: response::BodyLimits,
    ) -> Result<RawHttpResponse, FailureCode> {
        // A literal address asks no resolver, so it is looked at here, each time.
        let client = match self.reaches.way(request.url).map_err(|_| FailureCode::Refused)? {
            UrlScheme::Tls => &self.tls,
            UrlScheme::Plain => &self.plain,
        };
        let mut headers = HeaderMap::new();
        for (name, value) in request.headers {
            let (name, value) = header_pair(name, value.expose()).ok_or(FailureCode::Unsendable)?;
            headers.append(name, value);
        }
        let mut builder = client.request(request.method, request.url.clone()).headers(headers);
        if let Some(body) = body {
            builder = builder.body(body);
        }
        let response = builder.send().await.map_err(|it| response::meaning(&it))?;
        let status = response.status().as_u16();
        let retry_after = response::retry_after(response.headers(), SystemClock.now());
        let body = response::read(response, bounds).await.map_err(|it| response::meaning(&it))?;
        Ok(RawHttpResponse { status, retry_after, body })
    }
}

/// What is around: the machine's own, or what a test says.
struct ClientOverrides {
    look_up: DnsResolver,
    /// Besides those that the machine trusts.
    authorities: Vec<reqwest::Certificate>,
    idle_max: Duration,
}

struct HttpRequestSpec<'a> {
    method: Method,
    url: &'a Url,
    headers: &'a [(String, Secret<String>)],
}

struct RawHttpResponse {
    status: u16,
    retry_after: Option<Duration>,
    body: response::BoundedBody,
}

fn prepared(timeout: Duration) -> reqwest::ClientBuilder {
    Client::builder()
        .user_agent(USER_AGENT)
        // Whoever is sent to cannot send us on.
        .redirect(redirect::Policy::none())
        .referer(false)
        // A proxy of the environment's would connect for us, to addresses that nobody looked at.
        .no_proxy()
        // Whether something is sent again is decided by whoever counts attempts.
        .retry(retry::never())
        .timeout(timeout)
        // A small answer must not become a large one here.
        .no_gzip()
        .no_brotli()
        .no_zstd()
        .no_deflate()
        .http1_only()
        .http1_max_headers(ANSWER_HEADERS_MAX)
        .pool_max_idle_per_host(IDLE_PER_HOST_MAX)
}

fn header_pair(name: &str, value: &str) -> Option<(HeaderName, HeaderValue)> {
    let name = HeaderName::try_from(name).ok().filter(|it| !OWN_HEADERS.contains(&it.as_str()))?;
    let mut value = HeaderValue::try_from(value).ok()?;
    value.set_sensitive(true);
    Some((name, value))
}
