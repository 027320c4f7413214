//! Request IDs, the request log, and security headers.

use actix_web::body::MessageBody;
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::header::{CACHE_CONTROL, HeaderName, HeaderValue};
use actix_web::middleware::Next;
use actix_web::{HttpMessage as _, HttpRequest};
use countersign_adapters::metrics::{RequestMetric, known_method};
use countersign_adapters::random;
use countersign_domain::platform::trace_parent::TraceParent;
use countersign_service::operations::Operations;
use countersign_service::platform::core::Core;
use countersign_service::platform::trace_context;

use super::state::{Capability, EdgeConfig, FromState as _, capabilities};

capabilities! {
    struct RequestLogCapabilities {
        core: Capability<Core>,
        edge: Capability<EdgeConfig>,
        operations: Capability<Operations>,
    }
}

#[derive(Clone, Debug)]
pub struct RequestId(String);

const HEADER: HeaderName = HeaderName::from_static("x-request-id");

impl RequestId {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the ID of a request that passed `tag`.
    pub fn of(request: &HttpRequest) -> Self {
        request.extensions().get::<Self>().cloned().unwrap_or(Self("unknown".to_owned()))
    }
}

/// Assigns a request ID, logs the request once after its response, and adds security headers. Paths are logged without
/// query, and one-time links without their secret.
pub async fn tag(
    request: ServiceRequest,
    next: Next<impl MessageBody>,
) -> Result<ServiceResponse<impl MessageBody>, actix_web::Error> {
    // The ID is always new. One from the client could be used to confuse the server log.
    let id = RequestId(random::uuid_v4().simple().to_string());
    request.extensions_mut().insert(id.clone());
    let app = RequestLogCapabilities::of(request.request());
    // The log needs the client's address behind the proxies, not the address of the nearest proxy.
    let client = app.edge.peers.client_of(request.request());
    let begun = app.core.instant();
    let trace = trace_of(request.request());
    let piece = app.core.traces().request(trace.as_ref());
    let mut response = trace_context::within(piece.place().cloned(), next.call(request)).await?;
    // The pattern is logged instead of the path, because paths can contain one-time secrets.
    let pattern = response.request().match_pattern().unwrap_or_else(|| "unmatched".to_owned());
    app.operations.metrics().answered(&RequestMetric {
        method: response.request().method().as_str(),
        route: &pattern,
        status: response.status().as_u16(),
        took: app.core.instant().saturating_duration_since(begun),
    });
    let trace = piece.place().map(|it| it.trace_id().to_owned());
    tracing::info!(
        request_id = id.as_str(),
        trace_id = trace.as_deref(),
        client,
        method = %response.request().method(),
        route = pattern,
        status = response.status().as_u16(),
        "request"
    );
    // Unknown methods are counted as one, because clients could otherwise create unlimited series.
    let method = known_method(response.request().method().as_str());
    piece.answered(method, &pattern, response.status().as_u16());
    let headers = response.headers_mut();
    // The response has the ID, so that a client can name the request when it reports an error.
    if let Ok(value) = HeaderValue::from_str(id.as_str()) {
        headers.insert(HEADER, value);
    }
    let fixed = [
        ("x-content-type-options", "nosniff"),
        // Paths can contain one-time secrets, which must not reach other sites.
        ("referrer-policy", "no-referrer"),
        // A page in a frame of another site could be used for clickjacking.
        ("x-frame-options", "DENY"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
        ("permissions-policy", "camera=(), geolocation=(), microphone=()"),
        ("content-security-policy", CONTENT_SECURITY_POLICY),
    ];
    for (name, value) in fixed {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    // The default prevents that a new route is cached by a proxy or a browser.
    if !headers.contains_key(CACHE_CONTROL) {
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    Ok(response)
}

/// Returns the caller's trace context. A header that occurs twice is ignored.
fn trace_of(request: &HttpRequest) -> Option<TraceParent> {
    let mut said = request.headers().get_all("traceparent");
    // Two headers name two traces, and neither can be trusted, so the request starts its own.
    let only = said.next().filter(|_| said.next().is_none())?;
    TraceParent::read(only.to_str().ok()?)
}

/// No external content, no inline scripts or styles, and no framing.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
    connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'";

#[cfg(test)]
mod tests {
    use super::*;
    use actix_web::test::TestRequest;

    #[test]
    fn duplicate_traceparent_is_ignored() {
        let said = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let once = TestRequest::default().append_header(("traceparent", said));
        assert!(trace_of(&once.to_http_request()).is_some());
        let twice = TestRequest::default().append_header(("traceparent", said)).append_header(("traceparent", said));
        assert!(trace_of(&twice.to_http_request()).is_none());
        assert!(trace_of(&TestRequest::default().to_http_request()).is_none());
    }
}
