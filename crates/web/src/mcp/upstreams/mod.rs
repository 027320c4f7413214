//! `/mcp/upstreams/NAME`: MCP servers behind the gateway. The credentials of a server stay here, so an agent has no way
//! around the guard.
//!
//! Each HTTP request is forwarded to the server, and its response is passed on while it is being received. Only tool
//! calls and lists of tools are changed, by the guard.

mod approvals;
mod client;

use std::sync::Arc;
use std::time::Duration;

use actix_web::http::StatusCode;
use actix_web::http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use actix_web::web::{Bytes, Path};
use actix_web::{HttpRequest, HttpResponse};
use countersign_adapters::random;
use countersign_mcp_guard::exchange::{Exchange, ResponseHead};
use countersign_mcp_guard::forward::{Incoming, IncomingMessage};
use countersign_mcp_guard::headers::{self, HeadersRefused, RequestHeaders};
use countersign_mcp_guard::json_rpc;
use countersign_mcp_guard::tool_guard::ToolGuard;
use countersign_mcp_guard::upstream::McpUpstream;
use countersign_service::approval_requests::ApprovalRequests;
use countersign_service::error::{Error, Result};
use futures_util::stream;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use self::approvals::ServiceApprovals;
use self::client::GatewayClient;
use super::origin;
use crate::api::idempotency_key::IdempotentPost;
use crate::api::long_poll::LongPoll;
use crate::auth::extractors::Machine;
use crate::limits::sse::StreamPermit;
use crate::request_log::RequestId;
use crate::state::{Capability, EdgeConfig, capabilities};

/// The time for which a call waits for a decision. Many clients give up after 30 seconds.
const WAIT: Duration = Duration::from_secs(25);

capabilities! {
    /// The capabilities of a request to an MCP server.
    pub struct UpstreamCapabilities {
        edge: Capability<EdgeConfig>,
        requests: Capability<ApprovalRequests>,
        waiting: LongPoll,
    }
}

/// Send a message to an MCP server behind the gateway.
///
/// Returns 200 with the response of the server, or 202 if the message needs none. A tool call needs an approval.
/// Without one, the response is a tool result that says why the call did not run. Returns 502 if the server cannot be
/// reached.
#[utoipa::path(
    post, path = "/mcp/upstreams/{name}", tag = "mcp", request_body = super::JsonRpcMessage,
    params(("name" = String, Path, description = "The name of the server", example = "files")),
    responses(
        (status = 200, description = "The response of the server: a message, or a stream of messages", body = Object),
        (status = 202, description = "Accepted. The message needs no response", body = String, content_type = "text/plain"),
    )
)]
pub async fn post(app: UpstreamCapabilities, name: Path<String>, post: IdempotentPost) -> Result<HttpResponse> {
    let caller = UpstreamCaller { machine: Machine(post.token), request: post.request, permit: None };
    let read = |headers: &mut RequestHeaders, upstream: &McpUpstream| {
        let message = IncomingMessage::read(post.body.sent(), headers, &upstream.pins);
        message.map(|it| Incoming::Message(Box::new(it)))
    };
    caller.forward(&app, &name, read).await
}

/// Listen to an MCP server behind the gateway.
///
/// Returns 200 with the messages of the server that belong to no request, as server-sent events.
#[utoipa::path(
    get, path = "/mcp/upstreams/{name}", tag = "mcp",
    params(("name" = String, Path, description = "The name of the server", example = "files")),
    responses((status = 200, description = "The messages of the server", body = String, content_type = "text/event-stream"))
)]
pub async fn listen(
    app: UpstreamCapabilities,
    name: Path<String>,
    machine: Machine,
    request: HttpRequest,
) -> Result<HttpResponse> {
    // Such a stream is open for hours.
    let permit = Some(app.edge.streams.take(machine.0.record.id.as_str())?);
    let caller = UpstreamCaller { machine, request, permit };
    caller.forward(&app, &name, |_, _| Ok(Incoming::Listen)).await
}

/// End a session at an MCP server behind the gateway.
///
/// Returns 200 if the server has ended the session, or another status of the server.
#[utoipa::path(
    delete, path = "/mcp/upstreams/{name}", tag = "mcp",
    params(("name" = String, Path, description = "The name of the server", example = "files")),
    responses((status = 200, description = "The session has ended", body = String, content_type = "text/plain"))
)]
pub async fn end(
    app: UpstreamCapabilities,
    name: Path<String>,
    machine: Machine,
    request: HttpRequest,
) -> Result<HttpResponse> {
    let caller = UpstreamCaller { machine, request, permit: None };
    caller.forward(&app, &name, |_, _| Ok(Incoming::End)).await
}

/// An authenticated request.
struct UpstreamCaller {
    machine: Machine,
    request: HttpRequest,
    /// The permit for a stream.
    permit: Option<StreamPermit>,
}

impl UpstreamCaller {
    /// Forwards a request to the server. `read` takes its headers, and returns the request or the error for the client.
    async fn forward(
        self,
        app: &UpstreamCapabilities,
        name: &str,
        read: impl FnOnce(&mut RequestHeaders, &McpUpstream) -> std::result::Result<Incoming, Vec<u8>>,
    ) -> Result<HttpResponse> {
        origin::check(&app.edge.origin, self.request.headers())?;
        let upstream = Arc::clone(app.edge.upstreams.get(name).ok_or(Error::NotFound("MCP server"))?);
        let text = |it: &HeaderValue| it.to_str().ok().map(str::to_owned);
        let all: Vec<_> = self.request.headers().iter().map(|it| (it.0.to_string(), text(it.1))).collect();
        let mark = |session: &str| app.requests.session_mark(&self.machine.0.record, name, session).ok();
        let mut headers = match RequestHeaders::read(&all, mark) {
            Ok(headers) => headers,
            Err(HeadersRefused::Malformed(name)) => {
                let why = format!("the header `{name}` must occur once, with visible ASCII characters");
                return Err(Error::invalid("", why));
            }
            // Clients begin a new session then.
            Err(HeadersRefused::OtherSession) => {
                let refused = json_rpc::error(&Value::Null, "the session does not exist");
                return Ok(json(StatusCode::NOT_FOUND, refused));
            }
        };
        match read(&mut headers, &upstream) {
            Ok(incoming) => self.exchange(app, upstream, headers, incoming).await,
            Err(refusal) => Ok(json(StatusCode::BAD_REQUEST, refusal)),
        }
    }

    async fn exchange(
        self,
        app: &UpstreamCapabilities,
        upstream: Arc<McpUpstream>,
        headers: RequestHeaders,
        incoming: Incoming,
    ) -> Result<HttpResponse> {
        let token = Arc::clone(&self.machine.0);
        let approvals = ServiceApprovals {
            requests: app.requests.clone(),
            waiting: app.waiting.clone(),
            token: Arc::clone(&token),
            path: self.request.path().to_owned(),
            request: RequestId::of(&self.request),
        };
        let guard = ToolGuard {
            approvals,
            pins: Arc::clone(&upstream.pins),
            continuations: Arc::clone(&upstream.continuations),
            tasks: Arc::clone(&upstream.tasks),
            server: Some(upstream.name.clone()),
            caller: token.record.id.to_string(),
            wait: WAIT.min(app.edge.wait_max),
        };
        let client = GatewayClient {
            server: upstream.name.clone(),
            token,
            requests: app.requests.clone(),
            waiting: app.waiting.clone(),
            streams: app.edge.streams.clone(),
        };
        let (head, told) = oneshot::channel();
        let (pieces, body) = mpsc::channel(1);
        let alone = random::uuid_v4().to_string();
        let exchange = Exchange { upstream, guard, client, headers, offers_tasks: false, alone, pieces };
        // In a task of its own, a call goes on to its outcome if its client disconnects.
        tokio::spawn(async move {
            let _permit = self.permit;
            exchange.run(incoming, head).await;
        });
        let head = told.await.map_err(|_| Error::Broken("a request to an MCP server"))?;
        streamed(head, body)
    }
}

fn json(status: StatusCode, body: Vec<u8>) -> HttpResponse {
    HttpResponse::build(status).content_type("application/json").body(body)
}

fn streamed(head: ResponseHead, body: mpsc::Receiver<Vec<u8>>) -> Result<HttpResponse> {
    let status = StatusCode::from_u16(head.status).map_err(|_| Error::Broken("the status of an MCP server"))?;
    let mut response = HttpResponse::build(status);
    response.insert_header((CACHE_CONTROL, "no-store"));
    if let Some(session) = head.session {
        response.insert_header((headers::SESSION, session));
    }
    let Some(content_type) = head.content_type else { return Ok(response.finish()) };
    response.insert_header((CONTENT_TYPE, content_type));
    let pieces = stream::unfold(body, |mut body| async move {
        let piece = body.recv().await?;
        Some((Ok::<_, actix_web::Error>(Bytes::from(piece)), body))
    });
    Ok(response.streaming(pieces))
}
