//! What every handler can reach.

use std::sync::Arc;
use std::time::Duration;

use super::client_ip::TrustedProxies;
use super::limits::quota::CallerQuota;
use super::limits::rate_limit::RateLimiter;
use super::limits::request_body::RequestBodyLimits;
use super::limits::sse::EventStreams;
use crate::config::MetricsAccess;
use crate::service::Service;

/// What every handler can reach.
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
    /// Whether people come over https: then cookies are `__Host-`.
    pub secure: bool,
    /// Where pages are served from: what `Origin` must say on a POST.
    pub origin: String,
    /// Whom it talks to, and whose word it takes for where a request comes from.
    pub peers: TrustedProxies,
    /// Bounds requests of each token.
    pub requests: RateLimiter,
    /// Bounds how fast one signed post is sent again: whoever overhears one takes nothing of what its host may ask.
    pub posts: RateLimiter,
    /// Bounds sign-ins with an OpenID provider.
    pub elsewhere: RateLimiter,
    /// Bounds how fast each person looks at hidden values.
    pub reveals: RateLimiter,
    /// Who reads what the gateway counts of itself.
    pub metrics: MetricsAccess,
    /// Whether the reference of the API is shown at `/docs`.
    pub docs: bool,
    /// What is sent and is not all there yet.
    pub hearing: RequestBodyLimits,
    /// Bytes of answers that are not read yet.
    pub unread: CallerQuota,
    /// Everybody who waits for a decision.
    pub waits: CallerQuota,
    /// Every stream that is open.
    pub streams: EventStreams,
}
