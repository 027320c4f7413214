//! The capabilities that handlers receive. A handler can use only those that its signature names.

use std::fmt;
use std::future::{Ready, ready};
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use actix_web::HttpRequest;
use actix_web::web::ServiceConfig;
use countersign_mcp_guard::upstream::McpUpstreams;
use countersign_service::Service;
use countersign_service::approval_requests::ApprovalRequests;
use countersign_service::archive::VersionArchive;
use countersign_service::branches::Branches;
use countersign_service::delivery::Deliveries;
use countersign_service::episodes::Episodes;
use countersign_service::identity::Identity;
use countersign_service::inbox::Inbox;
use countersign_service::interrupts::Interrupts;
use countersign_service::log::Log;
use countersign_service::operations::Operations;
use countersign_service::platform::core::Core;
use countersign_service::policies::Policies;
use countersign_service::policy_changes::PolicyChanges;
use countersign_service::proposals::Proposals;
use countersign_service::reviews::Reviews;
use countersign_service::threads::Threads;
use countersign_service::writes::Writes;

use super::client_ip::TrustedProxies;
use super::limits::quota::CallerQuota;
use super::limits::rate_limit::RateLimiter;
use super::limits::request_body::RequestBodyLimits;
use super::limits::sse::EventStreams;
use crate::metrics_access::MetricsAccess;

/// The gateway from which the server is assembled. Only this module can read its parts.
#[derive(Clone)]
pub struct AppState {
    service: Arc<Service>,
    edge: Arc<EdgeConfig>,
}

/// The state of a request. The type is private, so that a handler cannot extract the whole gateway.
struct RegisteredState(AppState);

impl AppState {
    pub const fn new(service: Arc<Service>, edge: Arc<EdgeConfig>) -> Self {
        Self { service, edge }
    }

    /// Registers the state for the extractors of all routes.
    pub(super) fn register(self, config: &mut ServiceConfig) {
        config.app_data(RegisteredState(self));
    }
}

/// A capability, or a struct of capabilities. A type without an implementation does not compile as an argument of a
/// handler, so no route can lack what it needs.
pub trait FromState: Sized + 'static {
    /// Takes the capabilities when the server is assembled.
    fn from_state(app: &AppState) -> Self;

    /// Takes the capabilities for an extractor or a middleware.
    fn of(request: &HttpRequest) -> Self {
        Self::registered(request).expect("the server registers the state for every route")
    }

    /// Takes the capabilities if the server has registered them. Tests build requests without a server.
    fn registered(request: &HttpRequest) -> Option<Self> {
        request.app_data::<RegisteredState>().map(|it| Self::from_state(&it.0))
    }
}

/// A part of the gateway that all requests share.
pub trait SharedPart: 'static {
    fn part_of(app: &AppState) -> &Arc<Self>;
}

/// A shared part of the gateway, as an argument of a handler.
pub struct Capability<T>(Arc<T>);

impl<T: SharedPart> FromState for Capability<T> {
    fn from_state(app: &AppState) -> Self {
        Self(Arc::clone(T::part_of(app)))
    }
}

impl<T: SharedPart> actix_web::FromRequest for Capability<T> {
    type Error = std::convert::Infallible;
    type Future = Ready<Result<Self, Self::Error>>;

    fn from_request(request: &HttpRequest, _: &mut actix_web::dev::Payload) -> Self::Future {
        ready(Ok(Self::of(request)))
    }
}

impl<T> Deref for Capability<T> {
    type Target = Arc<T>;

    fn deref(&self) -> &Arc<T> {
        &self.0
    }
}

impl<T> Clone for Capability<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

/// `Debug` has only the name, because a part can contain secrets.
impl<T> fmt::Debug for Capability<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(std::any::type_name::<T>())
    }
}

macro_rules! shared_parts {
    ($($part:ident: $type:ty,)*) => {$(
        impl SharedPart for $type {
            fn part_of(app: &AppState) -> &Arc<Self> {
                &app.service.$part
            }
        }
    )*};
}

shared_parts! {
    core: Core,
    policies: Policies,
    identity: Identity,
    threads: Threads,
    archive: VersionArchive,
    proposals: Proposals,
    branches: Branches,
    writes: Writes,
    log: Log,
    reviews: Reviews,
    approval_requests: ApprovalRequests,
    interrupts: Interrupts,
    policy_changes: PolicyChanges,
    inbox: Inbox,
    episodes: Episodes,
    delivery: Deliveries,
    operations: Operations,
}

impl SharedPart for EdgeConfig {
    fn part_of(app: &AppState) -> &Arc<Self> {
        &app.edge
    }
}

/// Defines a struct of capabilities that handlers receive as one argument.
macro_rules! capabilities {
    ($(#[$about:meta])* $pub:vis struct $name:ident { $($field:ident: $type:ty,)* }) => {
        $(#[$about])*
        #[derive(Clone)]
        $pub struct $name {
            $(pub $field: $type,)*
        }

        impl $crate::state::FromState for $name {
            fn from_state(app: &$crate::state::AppState) -> Self {
                Self { $($field: $crate::state::FromState::from_state(app),)* }
            }
        }

        impl actix_web::FromRequest for $name {
            type Error = std::convert::Infallible;
            type Future = std::future::Ready<std::result::Result<Self, Self::Error>>;

            fn from_request(request: &actix_web::HttpRequest, _: &mut actix_web::dev::Payload) -> Self::Future {
                std::future::ready(Ok(<Self as $crate::state::FromState>::of(request)))
            }
        }
    };
}

pub(crate) use capabilities;

/// The settings and limits of the HTTP server.
pub struct EdgeConfig {
    pub body_bytes_max: usize,
    pub depth_max: usize,
    /// The longest wait for a decision.
    pub wait_max: Duration,
    /// Whether the public URL is https. Then cookies have the prefix `__Host-`.
    pub secure: bool,
    /// The end of the names of cookies. Browsers send the cookies of one port to every port of the host.
    pub cookie_suffix: String,
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
    /// The MCP servers behind the gateway.
    pub upstreams: McpUpstreams,
}
