//! One exchange of messages with a server: a request of the client, and its response.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use crate::approvals::Approvals;
use crate::headers::RequestHeaders;
use crate::open_calls::CallEnd;
use crate::tool_guard::ToolGuard;
use crate::upstream::McpUpstream;

/// The client of an exchange, as the gateway knows it.
#[async_trait]
pub trait ExchangeClient: Send + Sync {
    /// Returns the mark that binds a session to this client.
    fn session_mark(&self, session: &str) -> Option<String>;

    /// Returns whether the client has lost its access.
    async fn is_revoked(&self) -> bool;

    /// Returns when the gateway shuts down.
    async fn shut_down(&self);
}

/// One exchange of messages with a server.
pub struct Exchange<A, C> {
    pub upstream: Arc<McpUpstream>,
    pub guard: ToolGuard<A>,
    pub client: C,
    pub headers: RequestHeaders,
    /// Whether the response has the capabilities of the server, for a client that supports tasks.
    pub offers_tasks: bool,
    /// Names the calls of this exchange if there is no session.
    pub alone: String,
    /// The body of the response.
    pub pieces: mpsc::Sender<Vec<u8>>,
}

/// The status and headers of a response.
#[derive(Debug)]
pub struct ResponseHead {
    pub status: u16,
    pub content_type: Option<String>,
    pub session: Option<String>,
}

/// Takes the status and headers of the response.
pub type HeadSender = oneshot::Sender<ResponseHead>;

/// A request of the client that the server has.
pub struct PendingRequest {
    pub id: Value,
    /// Whether the request is a call with a used approval.
    pub is_call: bool,
}

impl<A: Approvals, C: ExchangeClient> Exchange<A, C> {
    /// Sends a whole response to the client.
    pub async fn reply(self, head: HeadSender, status: u16, body: Option<Vec<u8>>) {
        self.answer(head, status, body).await;
    }

    /// Sends a whole response to the client, before the exchange goes on.
    pub async fn answer(&self, head: HeadSender, status: u16, body: Option<Vec<u8>>) {
        let content_type = body.as_ref().map(|_| "application/json".to_owned());
        if head.send(ResponseHead { status, content_type, session: None }).is_ok()
            && let Some(body) = body
        {
            let _ = self.pieces.send(body).await;
        }
    }

    /// Reports that a call failed. It may have had a part of its effect.
    pub async fn failed(&self, pending: Option<&PendingRequest>, why: &str) {
        if let Some(pending) = pending
            && let CallEnd::Sent(sent) = self.end(pending)
        {
            self.guard.report_failure(&sent.request, why).await;
        }
    }

    /// Ends a call without an outcome. The gateway records it as unknown after the lease.
    pub fn forget(&self, pending: Option<&PendingRequest>) {
        if let Some(pending) = pending {
            self.end(pending);
        }
    }

    /// Returns when the client of a request disconnects, or the gateway shuts down. A call goes on without its client.
    pub async fn abandoned(&self, pending: Option<&PendingRequest>, head: &mut HeadSender) {
        if pending.is_some_and(|it| it.is_call) {
            return std::future::pending().await;
        }
        tokio::select! {
            () = head.closed() => {}
            () = self.client.shut_down() => {}
        }
    }

    /// Ends a call. Its outcome is reported once, also if the client cancels it at the same time.
    pub fn end(&self, pending: &PendingRequest) -> CallEnd {
        match pending.is_call {
            true => self.upstream.calls.end(&self.call_name(&pending.id)),
            false => CallEnd::NoCall,
        }
    }

    /// Returns the name of a call. Ids are unique in a session only.
    pub fn call_name(&self, id: &Value) -> String {
        let session = self.headers.session.as_deref();
        format!("{} {} {id}", self.guard.caller, session.unwrap_or(&self.alone))
    }
}
