//! Forwards a request of the client to the server. A tool call is forwarded once it is approved.

use countersign_adapters::http_client::{HttpRequest, Method};
use countersign_domain::delivery::failure::FailureCode;
use serde_json::{Map, Value};
use tokio::sync::Notify;

use crate::approvals::Approvals;
use crate::exchange::{Exchange, ExchangeClient, HeadSender, PendingRequest};
use crate::headers::RequestHeaders;
use crate::json_rpc;
use crate::message::{self, ClientMessage, RefusedMessage, ToolRequest};
use crate::open_calls::CancelledCall;
use crate::relay::RESPONSE_TIME_MAX;
use crate::review_link::{self, LinkSupport};
use crate::task_request;
use crate::tool_guard::CallVerdict;
use crate::tool_list::ToolPins;

/// A request of the client.
pub enum Incoming {
    Message(Box<IncomingMessage>),
    /// A request for the messages of the server.
    Listen,
    /// The end of the session.
    End,
}

/// A message of the client.
pub struct IncomingMessage {
    message: ClientMessage,
    /// The message as it is forwarded.
    line: Vec<u8>,
    /// The id of a request.
    id: Option<Value>,
    /// Whether a session begins whose client can show links.
    begins_with_links: bool,
    /// Whether a client that supports tasks asks for the capabilities of the server.
    discovers_tasks: bool,
}

impl IncomingMessage {
    /// Reads a message, or returns the error for the client.
    pub fn read(body: &[u8], headers: &mut RequestHeaders, pins: &ToolPins) -> Result<Self, Vec<u8>> {
        let mut message = message::read(body).map_err(|it| message::refusal(&it))?;
        if let ClientMessage::Call(request) = &mut message
            && request.link == LinkSupport::No
            && headers.session_links
        {
            request.link = LinkSupport::Error;
        }
        let line = message::rewritten(body).unwrap_or_default();
        let value: Value = serde_json::from_slice(&line).unwrap_or_default();
        let member = |name: &str| value["params"][name].as_str();
        let method = value["method"].as_str();
        let name = match method {
            Some("resources/read") => member("uri"),
            Some("tasks/get" | "tasks/update" | "tasks/cancel") => member("taskId"),
            _ => member("name"),
        };
        if !headers.match_message(method, name) {
            return Err(message::header_mismatch(&value, "`mcp-method` and `mcp-name` must match the message"));
        }
        match &message {
            ClientMessage::Call(request) => {
                let mirrored = pins.mirrored(&request.name);
                if !headers.match_arguments(&mirrored, &request.arguments) {
                    let why = "`mcp-param-…` must match the arguments of the call. List the tools, and call again";
                    return Err(message::header_mismatch(&value, why));
                }
                headers.mirror(&mirrored, &request.arguments);
            }
            ClientMessage::Cancel(_) | ClientMessage::Task(_) | ClientMessage::Other => {
                headers.mirror(&[], &Map::new())
            }
        }
        let id = method.and_then(|_| value.get("id").cloned());
        let begins_with_links = review_link::begins_with_links(&value);
        let discovers_tasks = task_request::is_discovery(&value);
        Ok(Self { message, line, id, begins_with_links, discovers_tasks })
    }
}

impl<A: Approvals, C: ExchangeClient> Exchange<A, C> {
    /// Handles the request. The response goes to `head` and to the body.
    pub async fn run(mut self, incoming: Incoming, head: HeadSender) {
        let IncomingMessage { message, line, id, begins_with_links, discovers_tasks } = match incoming {
            Incoming::Message(message) => *message,
            Incoming::Listen => return self.pass(Method::GET, None, None, head).await,
            Incoming::End => return self.pass(Method::DELETE, None, None, head).await,
        };
        self.headers.session_links |= begins_with_links;
        self.offers_tasks = discovers_tasks;
        let method = Method::POST;
        match message {
            ClientMessage::Call(request) => self.call(request, head).await,
            ClientMessage::Task(request) => self.task(request, head).await,
            ClientMessage::Cancel(cancelled) => match self.upstream.calls.cancel(&self.call_name(&cancelled)) {
                CancelledCall::Waiting => self.reply(head, 202, None).await,
                CancelledCall::NoCall => self.pass(method, Some(line), None, head).await,
                CancelledCall::Sent(sent) => {
                    self.guard.report_failure(&sent.request, "cancelled by the client while the call ran").await;
                    self.pass(method, Some(line), None, head).await;
                }
            },
            ClientMessage::Other => {
                let pending = id.map(|id| PendingRequest { id, is_call: false });
                self.pass(method, Some(line), pending, head).await;
            }
        }
    }

    /// Gets the approval of a call, forwards it, and reports its outcome.
    async fn call(self, request: ToolRequest, mut head: HeadSender) {
        let name = self.call_name(&request.id);
        let Some(stop) = self.upstream.calls.begin(&name) else {
            let why = "another call with this id is not finished";
            let refused = message::refusal(&RefusedMessage { id: Some(request.id.to_string()), why });
            return self.reply(head, 400, Some(refused)).await;
        };
        match self.verdict(&request, &stop, &mut head).await {
            CallVerdict::Run { sent, arguments } => {
                self.upstream.calls.sent(name, sent);
                let line = request.with(&arguments);
                let call = PendingRequest { id: request.id, is_call: true };
                self.pass(Method::POST, Some(line), Some(call), head).await;
            }
            CallVerdict::NotRun(response) => {
                self.upstream.calls.remove(&name);
                self.reply(head, 200, Some(response)).await;
            }
            CallVerdict::Withdrawn => {
                self.upstream.calls.remove(&name);
                let cancelled = json_rpc::error(&request.id, "the call was cancelled and was not run");
                self.reply(head, 200, Some(cancelled)).await;
            }
        }
    }

    async fn verdict(&self, request: &ToolRequest, stop: &Notify, head: &mut HeadSender) -> CallVerdict {
        let decided = self.guard.decide(request, stop);
        if !self.headers.disconnect_cancels() {
            return decided.await;
        }
        tokio::pin!(decided);
        tokio::select! {
            verdict = &mut decided => verdict,
            () = head.closed() => {
                stop.notify_one();
                decided.await
            }
        }
    }

    /// Sends a request to the server and passes its response on.
    pub(crate) async fn pass(
        self,
        method: Method,
        body: Option<Vec<u8>>,
        pending: Option<PendingRequest>,
        mut head: HeadSender,
    ) {
        let headers = self.headers.to_server(self.upstream.secret.as_ref(), body.is_some());
        let request = HttpRequest { method, url: &self.upstream.url, headers: &headers, body };
        let sending = self.upstream.client.stream(request, RESPONSE_TIME_MAX);
        let response = tokio::select! {
            response = sending => response,
            () = self.abandoned(pending.as_ref(), &mut head) => return,
        };
        match response {
            Ok(response) => self.relay(response, pending, head).await,
            Err(why) => self.unreachable(why, pending, head).await,
        }
    }

    async fn unreachable(self, why: FailureCode, pending: Option<PendingRequest>, head: HeadSender) {
        let told = format!("The MCP server did not answer. {}", why.sentence());
        match why.may_have_arrived() {
            true => self.forget(pending.as_ref()),
            // Nothing was sent, so the call did not run.
            false => self.failed(pending.as_ref(), &told).await,
        }
        let id = pending.map_or(Value::Null, |it| it.id);
        self.reply(head, 502, Some(json_rpc::error(&id, &told))).await;
    }
}
