//! Passes the response of a server on while it is being received.

use std::time::Duration;

use countersign_adapters::http_client::ResponseStream;
use serde_json::Value;

use crate::approvals::Approvals;
use crate::exchange::{Exchange, ExchangeClient, HeadSender, PendingRequest, ResponseHead};
use crate::headers;
use crate::message;
use crate::open_calls::CallEnd;
use crate::sse::{EVENT_BYTES_MAX, SseEvent, SseReader};

/// The time limit for one response.
pub const RESPONSE_TIME_MAX: Duration = Duration::from_secs(3600);

/// The interval of heartbeats. A heartbeat keeps the connection open.
const BEAT: Duration = Duration::from_secs(15);

const ENDED_EARLY: &str = "the response of the server ended early";
const TOO_LONG: &str = "the server sent a message of more than 64 MiB";

/// Passes a response on. The outcome of a call is reported before the client gets the result.
pub async fn relay<A: Approvals, C: ExchangeClient>(
    exchange: Exchange<A, C>,
    response: ResponseStream,
    pending: Option<PendingRequest>,
    head: HeadSender,
) {
    exchange.relay(response, pending, head).await;
}

impl<A: Approvals, C: ExchangeClient> Exchange<A, C> {
    async fn relay(self, response: ResponseStream, pending: Option<PendingRequest>, head: HeadSender) {
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
            return self.reply(head, 502, Some(message::error(&id, why))).await;
        }
        let content_type = response.header("content-type").map(str::to_owned);
        let session = response.header(headers::SESSION).map(str::to_owned);
        let session = session.and_then(|it| {
            let mark = self.client.session_mark(&it)?;
            Some(headers::bound(&it, &mark))
        });
        let is_stream = content_type.as_deref().is_some_and(|it| it.starts_with("text/event-stream"));
        if is_stream {
            if head.send(ResponseHead { status, content_type, session }).is_ok() || pending.is_some() {
                self.follow(response, pending).await;
            }
            return;
        }
        let body = match response.whole(EVENT_BYTES_MAX).await {
            Ok(Some(body)) => body,
            Ok(None) => return self.broken(pending, TOO_LONG, head).await,
            Err(_) => return self.broken(pending, ENDED_EARLY, head).await,
        };
        let body = self.seen(body, pending.as_ref()).await;
        self.failed(pending.as_ref(), &format!("the server answered with status {status} and no result")).await;
        let content_type = content_type.filter(|_| !body.is_empty());
        let has_body = content_type.is_some();
        if head.send(ResponseHead { status, content_type, session }).is_ok() && has_body {
            let _ = self.pieces.send(body).await;
        }
    }

    async fn broken(self, pending: Option<PendingRequest>, why: &str, head: HeadSender) {
        // The gateway does not know the outcome.
        if let Some(pending) = &pending {
            self.end(pending);
        }
        let id = pending.map_or(Value::Null, |it| it.id);
        self.reply(head, 502, Some(message::error(&id, why))).await;
    }

    /// Passes a stream of events on, until it ends or its client disconnects.
    async fn follow(self, mut response: ResponseStream, pending: Option<PendingRequest>) {
        let is_call = pending.as_ref().is_some_and(|it| it.is_call);
        let mut reader = SseReader::default();
        loop {
            let piece = tokio::select! {
                piece = response.chunk() => piece,
                () = tokio::time::sleep(BEAT) => {
                    if !is_call && self.client.is_revoked().await {
                        break;
                    }
                    // A comment keeps the connection open.
                    let _ = self.pieces.send(b":\n\n".to_vec()).await;
                    continue;
                }
                () = self.client.shut_down(), if !is_call => break,
                () = self.pieces.closed(), if !is_call || self.headers.disconnect_cancels() => break,
            };
            let Ok(Some(piece)) = piece else { break };
            let Ok(events) = reader.push(&piece) else { break };
            for event in events {
                let text = self.event(event, pending.as_ref()).await;
                // A call goes on to its outcome without its client.
                let _ = self.pieces.send(text).await;
            }
        }
        if let Some(pending) = &pending {
            match self.headers.disconnect_cancels() && self.pieces.is_closed() {
                true => self.failed(Some(pending), "cancelled by the client while the call ran").await,
                // Without its result, the outcome is unknown.
                false => drop(self.end(pending)),
            }
        }
    }

    async fn event(&self, event: SseEvent, pending: Option<&PendingRequest>) -> Vec<u8> {
        match &event.data {
            None => event.without_data(),
            Some(data) if data.is_empty() => event.with_data(data),
            Some(data) => event.with_data(&self.seen(data.clone(), pending).await),
        }
    }

    /// Returns a message of the server as the client sees it, and reports it if it is the outcome of the call.
    async fn seen(&self, message: Vec<u8>, pending: Option<&PendingRequest>) -> Vec<u8> {
        if let Some(pending) = pending
            && let Some(response) = message::response(&message)
            && response.id == pending.id
            && let CallEnd::Sent(sent) = self.end(pending)
        {
            self.guard.report(&sent, &response.result).await;
        }
        self.guard.shown(message).await
    }
}
