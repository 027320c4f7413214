//! The size limit of request bodies. Calls with the arguments of a tool call have a higher one.

use actix_web::HttpRequest;
use countersign_domain::threads::tool_call::ARGUMENTS_BYTES_MAX;

use crate::state::{Capability, EdgeConfig, FromState as _};

/// The calls whose bodies can have the arguments of a tool call.
const CALLS_WITH_ARGUMENTS: [&str; 5] =
    ["/v1/threads/{thread}/transitions", "/aap/v1/requests", "/v1/hooks/claude-code", "/mcp", "/mcp/upstreams/{name}"];

/// The additional bytes for the arguments of a tool call. A client can write each character outside of ASCII as
/// escapes, which are at most three times as long as the canonical form.
const ARGUMENTS_SENT_BYTES_MAX: usize = 3 * ARGUMENTS_BYTES_MAX;

/// Returns the limit of a body with the arguments of a tool call.
pub fn longest(edge: &EdgeConfig) -> usize {
    edge.body_bytes_max + ARGUMENTS_SENT_BYTES_MAX
}

/// Returns the limit of the body of this call.
pub fn bytes_max(request: &HttpRequest) -> usize {
    let edge = Capability::<EdgeConfig>::of(request);
    let is_with_arguments = request.match_pattern().is_some_and(|it| CALLS_WITH_ARGUMENTS.contains(&it.as_str()));
    if is_with_arguments { longest(&edge) } else { edge.body_bytes_max }
}
