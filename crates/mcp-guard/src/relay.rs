//! Passes the response of a server on while it is being received.

use std::time::Duration;

use countersign_adapters::http_client::ResponseStream;
use serde_json::Value;

use crate::approvals::Approvals;
use crate::exchange::{Exchange, ExchangeClient, HeadSender, PendingRequest, ResponseHead};
use crate::headers;
use crate::json_rpc;
use crate::open_calls::CallEnd;
use crate::server_message;
use crate::sse::{EVENT_BYTES_MAX, SseEvent, SseReader};

/// The time limit for one response.
pub const RESPONSE_TIME_MAX: Duration = Duration::from_secs(3600);

/// The interval of heartbeats. A heartbeat keeps the connection open.
const BEAT: Duration = Duration::from_secs(15);

/// The time in which a client takes a piece of a stream.
const TAKE_TIME_MAX: Duration = Duration::from_secs(60);

const EVENT_STREAM: &str = "text/event-stream";
const JSON: &str = "application/json";
const UNREADABLE: &str = "the response of the server is no message that every client reads alike";
const ENDED_EARLY: &str = "the response of the server ended early";
const TOO_LONG: &str = "the server sent a message of more than 64 MiB";

impl<A: Approvals, C: ExchangeClient> Exchange<A, C> {
    /// Passes a response on. The outcome of a call is reported before the client gets the result.
    pub async fn relay(self, response: ResponseStream, pending: Option<PendingRequest>, mut head: HeadSender) {
        let status = response.status();
        let refused = match status {
            // The client has no credentials for the server, and a new location would be a way around the guard.
            401 | 403 | 407 => Some("The MCP server refused the gateway's credentials."),
            300..=399 => Some("The MCP server has another URL."),
            _ => None,
        };
        if let Some(why) = refused {
            self.failed(pending.as_ref(), why).await;
            let id = pending.map_or(Value::Null, |it| it.id);
            return self.reply(head, 502, Some(json_rpc::error(&id, why))).await;
        }
        let kind = response.header("content-type").unwrap_or_default().to_ascii_lowercase();
        let session = response.header(headers::SESSION).map(str::to_owned);
        let session = session.and_then(|it| Some(self.headers.bound(&it, &self.client.session_mark(&it)?)));
        if kind.starts_with(EVENT_STREAM) {
            let content_type = Some(EVENT_STREAM.to_owned());
            if head.send(ResponseHead { status, content_type, session }).is_ok() || pending.is_some() {
                self.follow(response, pending).await;
            }
            return;
        }
        let whole = tokio::select! {
            whole = response.whole(EVENT_BYTES_MAX) => whole,
            () = self.abandoned(pending.as_ref(), &mut head) => return,
        };
        let body = match whole {
            Ok(Some(body)) => body,
            Ok(None) => return self.broken(pending, 502, TOO_LONG, head).await,
            Err(_) => return self.broken(pending, 502, ENDED_EARLY, head).await,
        };
        if body.is_empty() {
            self.forget(pending.as_ref());
            let _ = head.send(ResponseHead { status, content_type: None, session });
            return;
        }
        let Some(message) = server_message::from_server(&body) else {
            let status = if status >= 400 { status } else { 502 };
            return self.broken(pending, status, UNREADABLE, head).await;
        };
        let body = self.seen(message, pending.as_ref()).await;
        self.forget(pending.as_ref());
        if head.send(ResponseHead { status, content_type: Some(JSON.to_owned()), session }).is_ok() {
            let _ = self.pieces.send(body).await;
        }
    }

    /// Answers a request whose response is no message. The gateway does not know the outcome of a call then.
    async fn broken(self, pending: Option<PendingRequest>, status: u16, why: &str, head: HeadSender) {
        self.forget(pending.as_ref());
        let id = pending.map_or(Value::Null, |it| it.id);
        self.reply(head, status, Some(json_rpc::error(&id, why))).await;
    }

    /// Passes a stream of events on, until it ends or its client disconnects.
    async fn follow(self, mut response: ResponseStream, pending: Option<PendingRequest>) {
        let is_call = pending.as_ref().is_some_and(|it| it.is_call);
        let (mut reader, mut beats) = (SseReader::default(), tokio::time::interval(BEAT));
        beats.tick().await;
        loop {
            let piece = tokio::select! {
                piece = response.chunk() => piece,
                _ = beats.tick() => {
                    if !is_call && self.client.is_revoked().await {
                        break;
                    }
                    self.give(b":\n\n".to_vec()).await;
                    continue;
                }
                () = self.client.shut_down(), if !is_call => break,
                () = self.pieces.closed(), if !is_call || self.headers.disconnect_cancels() => break,
            };
            let Ok(Some(piece)) = piece else { break };
            let Ok(events) = reader.push(&piece) else { break };
            for event in events {
                let text = self.event(&event, pending.as_ref()).await;
                // A call goes on to its outcome without its client.
                if !self.give(text).await && !is_call {
                    return;
                }
            }
        }
        match self.headers.disconnect_cancels() && self.pieces.is_closed() {
            true => self.failed(pending.as_ref(), "cancelled by the client while the call ran").await,
            false => self.forget(pending.as_ref()),
        }
    }

    /// Sends a piece to the client. Returns whether the client took it in time.
    async fn give(&self, piece: Vec<u8>) -> bool {
        !self.pieces.is_closed()
            && tokio::time::timeout(TAKE_TIME_MAX, self.pieces.send(piece)).await.is_ok_and(|it| it.is_ok())
    }

    /// Returns an event as it is passed on.
    async fn event(&self, event: &SseEvent, pending: Option<&PendingRequest>) -> Vec<u8> {
        let message = event.data.as_deref().filter(|it| !it.is_empty()).and_then(server_message::from_server);
        match message {
            Some(message) => event.with_data(&self.seen(message, pending).await),
            None => event.without_data(),
        }
    }

    /// Returns a message of the server as the client sees it, and reports it if it is the outcome of the call.
    async fn seen(&self, mut message: Value, pending: Option<&PendingRequest>) -> Vec<u8> {
        if let Some(pending) = pending
            && let Some(response) = server_message::response(&message)
            && response.id == pending.id
            && let CallEnd::Sent(sent) = self.end(pending)
        {
            self.guard.report(&sent, &response.result).await;
            self.guard.tasks.record(&sent.request, &message, &response.result);
        }
        if self.offers_tasks {
            server_message::offer_tasks(&mut message);
        }
        let shown = self.guard.shown(message).await;
        if let Some(warning) = shown.warning {
            tracing::warn!(server = self.guard.server, "{warning}");
        }
        shown.line
    }
}
