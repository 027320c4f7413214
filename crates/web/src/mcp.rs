//! `POST /mcp`: the Model Context Protocol, for agents that call tools.
//!
//! Each message is a separate request with its own token. Without sessions any gateway can answer any message, and a
//! revoked token stops working at once. The SDK implements the protocol. The body is parsed strictly before the SDK
//! sees it.

mod errors;
mod inputs;
mod origin;
mod tools;
pub mod upstreams;

use std::convert::Infallible;
use std::sync::Arc;

use actix_web::http::StatusCode;
use actix_web::http::header::HeaderName;
use actix_web::web::Data;
use actix_web::{HttpRequest, HttpResponse};
use countersign_domain::platform::trace_parent::TraceParent;
use countersign_service::error::Error;
use countersign_service::operations::Operations;
use countersign_service::platform::trace_context;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full};
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::Value;
use utoipa::ToSchema;

use super::api::idempotency_key::IdempotentPost;
use super::api::json_body;
use super::api::json_body::JsonBytes;
use super::api::problem::Problem;
use super::auth::extractors::Machine;
use super::body_limit;
use super::request_log::RequestId;
use super::state::{AppState, Capability, EdgeConfig, FromState as _};
use tools::McpTools;

pub type McpHttpService = StreamableHttpService<McpTools, NeverSessionManager>;

/// The caller of a message.
#[derive(Clone)]
struct McpCaller {
    machine: Machine,
    request: RequestId,
    /// The trace context is passed explicitly because the SDK answers in its own task.
    trace: Option<TraceParent>,
}

/// Creates the SDK's service for this gateway.
pub fn mcp_service(app: &AppState) -> McpHttpService {
    // The SDK's host check is off, because a reverse proxy may change the host. `origin` protects against DNS rebinding.
    // The size of the body is limited before this point.
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        // Each call has one answer, so plain JSON is enough and no event stream stays open.
        .with_json_response(true)
        .with_max_request_body_bytes(body_limit::longest(&Capability::<EdgeConfig>::from_state(app)))
        .disable_allowed_hosts();
    let tools = McpTools::from_state(app);
    StreamableHttpService::new(move || Ok(tools.clone()), Arc::new(NeverSessionManager::default()), config)
}

/// A message of JSON-RPC 2.0.
#[derive(ToSchema)]
#[expect(dead_code, reason = "only its schema is used")]
pub struct JsonRpcMessage {
    /// `2.0`
    jsonrpc: String,
    /// The method of the protocol: `tools/list`, `tools/call`.
    method: Option<String>,
    /// The id of the message: a string or an integer. A message without it gets no answer.
    id: Option<Value>,
    /// The parameters of the method.
    #[schema(value_type = Option<Object>)]
    params: Option<Value>,
}

/// Send a Model Context Protocol message.
///
/// Returns 200 with the answer, or 202 if the message needs none. An error of a tool is a tool result with
/// `isError`, `code` and `next_step`. Invalid messages get 400, and unknown methods 404. A browser page of another site
/// gets 403.
#[utoipa::path(
    post, path = "/mcp", tag = "mcp", request_body = JsonRpcMessage,
    responses(
        (status = 200, description = "The answer. An error of a tool is a tool result", body = Object),
        (status = 202, description = "Accepted. The message needs no answer", body = String, content_type = "text/plain"),
    )
)]
pub async fn answer(
    edge: Capability<EdgeConfig>,
    operations: Capability<Operations>,
    post: IdempotentPost,
    speaker: Data<McpHttpService>,
) -> Result<HttpResponse, Problem> {
    // The extractor has authenticated the caller and read the body within its limits.
    let IdempotentPost { request, token, body: bytes, .. } = post;
    origin::check(&edge.origin, request.headers()).map_err(|error| Problem::of(&request, error))?;
    let asker = McpCaller { machine: Machine(token), request: RequestId::of(&request), trace: trace_context::trace() };
    // The SDK's parser accepts duplicate members, so the strict parser runs first.
    if let Err(error) = json_body::strict(&edge, bytes.sent()) {
        // Clients show a tool result to the model but hide a protocol error, so invalid arguments get a tool result.
        let told = errors::unread(&operations, &asker, bytes.sent(), &error);
        return match told {
            Some(told) => Ok(HttpResponse::Ok().json(told)),
            None => Err(Problem::of(&request, error)),
        };
    }
    let asked = to_sdk_request(&request, asker, &bytes).map_err(|error| Problem::of(&request, error))?;
    let told = from_sdk_response(speaker.handle(asked).await).await;
    // The SDK reports an unreadable message as plain text, but each error of the gateway is a problem document.
    told.ok_or_else(|| Problem::of(&request, Error::invalid("", "this is not an MCP message (JSON-RPC 2.0)")))
}

/// Converts the request for the SDK. The token is left out, and the authenticated caller is attached.
fn to_sdk_request(
    request: &HttpRequest,
    asker: McpCaller,
    bytes: &JsonBytes,
) -> Result<http::Request<Full<bytes::Bytes>>, Error> {
    // The headers have fixed values: they have no effect on the result, and the body is already parsed.
    let accepted = "application/json, text/event-stream";
    let mut asked = http::Request::post("/mcp").header("host", "countersign").header("accept", accepted);
    asked = asked.header("content-type", "application/json");
    // Only protocol headers reach the SDK. The token is not one of them.
    for (name, value) in request.headers().iter().filter(|(name, _)| is_of_the_protocol(name)) {
        asked = asked.header(name.as_str(), value.as_bytes());
    }
    // The SDK takes only a whole request, so it gets the bytes and parses them a second time.
    let body = Full::new(bytes::Bytes::copy_from_slice(bytes.sent()));
    asked.extension(asker).body(body).map_err(|_| Error::invalid("", "the request headers are invalid"))
}

fn is_of_the_protocol(name: &HeaderName) -> bool {
    name.as_str().starts_with("mcp-")
}

/// Converts the SDK's response. Returns `None` if the SDK could not read the message, which it reports as plain text.
async fn from_sdk_response(told: http::Response<BoxBody<bytes::Bytes, Infallible>>) -> Option<HttpResponse> {
    let (parts, body) = told.into_parts();
    let Ok(whole) = body.collect().await;
    let mut answer = HttpResponse::build(StatusCode::from_u16(parts.status.as_u16()).ok()?);
    let is_message = parts.headers.get("content-type").is_some_and(|it| it.as_bytes() == b"application/json");
    match parts.status {
        // A notification needs no answer, so the body is empty.
        http::StatusCode::ACCEPTED => Some(answer.content_type("text/plain").finish()),
        _ if is_message => Some(answer.content_type("application/json").body(whole.to_bytes())),
        _ => None,
    }
}
