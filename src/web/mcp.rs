//! `POST /mcp`: what agents may do here, as tools of the Model Context Protocol.
//!
//! Each message is a request of its own with its own token: there are no sessions, so any gateway answers any of them,
//! and a token that is revoked is revoked at once. The SDK speaks the protocol; what is asked is read strictly before.

mod errors;
mod inputs;
mod tools;

use std::convert::Infallible;
use std::sync::Arc;

use actix_web::http::StatusCode;
use actix_web::http::header::HeaderName;
use actix_web::web::Data;
use actix_web::{HttpRequest, HttpResponse};
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
use super::request_log::RequestId;
use super::state::AppState;
use crate::domain::platform::trace_parent::TraceParent;
use crate::service::error::Error;
use crate::service::platform::trace_context;
use tools::McpTools;

pub type McpHttpService = StreamableHttpService<McpTools, NeverSessionManager>;

/// Who asks, beside the message.
#[derive(Clone)]
struct McpCaller {
    machine: Machine,
    request: RequestId,
    /// Goes along by hand: the SDK answers in a task of its own.
    trace: Option<TraceParent>,
}

/// Who speaks the protocol for this gateway.
pub fn mcp_service(app: AppState) -> McpHttpService {
    // Whoever asks shows a token that no browser adds of its own, so a name that was made to lead here gains nothing; and
    // a body is bounded, like every other, before it gets this far.
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_max_request_body_bytes(app.edge.body_bytes_max)
        .disable_allowed_hosts();
    let tools = McpTools::new(app);
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
/// `isError`, `code` and `next_step`. Invalid messages get 400, and unknown methods 404.
#[utoipa::path(
    post, path = "/mcp", tag = "mcp", request_body = JsonRpcMessage,
    responses(
        (status = 200, description = "The answer. An error of a tool is a tool result", body = Object),
        (status = 202, description = "Accepted. The message needs no answer", body = String, content_type = "text/plain"),
    )
)]
pub async fn answer(post: IdempotentPost, speaker: Data<McpHttpService>) -> Result<HttpResponse, Problem> {
    let IdempotentPost { request, app, token, body: bytes } = post;
    let asker = McpCaller { machine: Machine(token), request: RequestId::of(&request), trace: trace_context::trace() };
    if let Err(error) = json_body::strict(&app, bytes.sent()) {
        let told = errors::unread(&app, &asker, bytes.sent(), &error);
        return match told {
            Some(told) => Ok(HttpResponse::Ok().json(told)),
            None => Err(Problem::of(&request, error)),
        };
    }
    let asked = to_sdk_request(&request, asker, &bytes).map_err(|error| Problem::of(&request, error))?;
    let told = from_sdk_response(speaker.handle(asked).await).await;
    told.ok_or_else(|| Problem::of(&request, Error::invalid("", "this is no message of the Model Context Protocol")))
}

/// The request as the SDK takes it: without the token, and with who was let in by it.
fn to_sdk_request(
    request: &HttpRequest,
    asker: McpCaller,
    bytes: &JsonBytes,
) -> Result<http::Request<Full<bytes::Bytes>>, Error> {
    // By whichever name it was reached, what can be sent in return is the same, and what came has been read as JSON.
    let accepted = "application/json, text/event-stream";
    let mut asked = http::Request::post("/mcp").header("host", "countersign").header("accept", accepted);
    asked = asked.header("content-type", "application/json");
    for (name, value) in request.headers().iter().filter(|(name, _)| is_of_the_protocol(name)) {
        asked = asked.header(name.as_str(), value.as_bytes());
    }
    let body = Full::new(bytes::Bytes::copy_from_slice(bytes.sent()));
    asked.extension(asker).body(body).map_err(|_| Error::invalid("", "its headers cannot be read"))
}

fn is_of_the_protocol(name: &HeaderName) -> bool {
    name.as_str().starts_with("mcp-")
}

/// What the SDK answers: a message, or that none is due. It refuses in plain text what it cannot read.
async fn from_sdk_response(told: http::Response<BoxBody<bytes::Bytes, Infallible>>) -> Option<HttpResponse> {
    let (parts, body) = told.into_parts();
    let Ok(whole) = body.collect().await;
    let mut answer = HttpResponse::build(StatusCode::from_u16(parts.status.as_u16()).ok()?);
    let is_message = parts.headers.get("content-type").is_some_and(|it| it.as_bytes() == b"application/json");
    match parts.status {
        http::StatusCode::ACCEPTED => Some(answer.content_type("text/plain").finish()),
        _ if is_message => Some(answer.content_type("application/json").body(whole.to_bytes())),
        _ => None,
    }
}
