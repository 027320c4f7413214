//! The state that every handler can access.

use std::sync::Arc;
use std::time::Duration;

use countersign_service::Service;

use super::client_ip::TrustedProxies;
use super::limits::quota::CallerQuota;
use super::limits::rate_limit::RateLimiter;
use super::limits::request_body::RequestBodyLimits;
use super::limits::sse::EventStreams;
use crate::metrics_access::MetricsAccess;

/// The state that every handler can access.
#[derive(Clone)]
pub struct AppState {
    pub service: Arc<Service>,
    pub edge: Arc<EdgeConfig>,
}

pub struct EdgeConfig {
    pub body_bytes_max: usize,
    pub depth_max: usize,
    /// The longest wait for a decision.
    pub wait_max: Duration,
    /// Whether the public URL is https. Then cookies have the prefix `__Host-`.
    pub secure: bool,
    /// The origin of the pages, which the `Origin` header of a POST must have.
    pub origin: String,
    /// The proxies that are trusted, and the peers that may connect.
    pub peers: TrustedProxies,
    /// The rate limit of each token.
    pub requests: RateLimiter,
    /// The rate limit of each signed post. It is separate, so that an attacker who replays a post does not use up the
    /// host's own limit.
    pub posts: RateLimiter,
    /// The rate limit of sign-ins with the OpenID provider.
    pub elsewhere: RateLimiter,
    /// The rate limit of each person for revealing redacted values.
    pub reveals: RateLimiter,
    /// Who can read the metrics.
    pub metrics: MetricsAccess,
    /// Whether the API reference is available at `/docs`.
    pub docs: bool,
    /// The limits on unfinished request bodies.
    pub hearing: RequestBodyLimits,
    /// The quota for responses that are not read yet.
    pub unread: CallerQuota,
    /// The quota for requests that wait for decisions.
    pub waits: CallerQuota,
    /// The open streams.
    pub streams: EventStreams,
}
