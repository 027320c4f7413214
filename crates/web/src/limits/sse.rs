//! Server-sent events (`text/event-stream`): limits on streams, heartbeats and their end.

use std::fmt::Write as _;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use actix_web::http::header;
use actix_web::web::Bytes;
use actix_web::{HttpRequest, HttpResponse};
use countersign_service::error::{Error, Result};
use futures_util::stream;
use serde_json::Value;
use tokio::sync::watch;

use super::quota::{CallerQuota, QuotaPermit};

/// The limit on all streams. Each holds a connection and reads the database for every batch.
const STREAMS_MAX: usize = 1_000;

/// The limit on streams of one caller: a person's browsers, or the processes that share a token.
const STREAMS_OF_ONE_MAX: usize = 16;

/// The heartbeat interval. A heartbeat detects clients that disconnected and callers that were revoked.
pub const BEAT: Duration = Duration::from_secs(15);

/// The delay after which a client reconnects.
const RETRY_MILLIS: u32 = 2_000;

/// The open streams.
#[derive(Clone)]
pub struct EventStreams {
    seats: CallerQuota,
    closing: Arc<watch::Sender<bool>>,
}

/// The permit for one stream. Dropping it frees the permit.
pub struct StreamPermit {
    streams: EventStreams,
    _seat: QuotaPermit,
}

impl Default for EventStreams {
    fn default() -> Self {
        Self { seats: CallerQuota::new(STREAMS_OF_ONE_MAX, STREAMS_MAX), closing: Arc::default() }
    }
}

/// The next part of a stream.
#[derive(Debug, PartialEq, Eq)]
pub struct EventStreamChunk {
    /// The frames. An empty text is a heartbeat.
    pub frames: String,
    /// The log position up to which events were sent.
    pub reach: u64,
}

pub trait EventSource: 'static {
    /// Waits for the events after a position, at most for a [`BEAT`]. Returns an error if the caller has lost its
    /// access.
    fn next(&self, after: u64) -> impl Future<Output = Result<EventStreamChunk>>;
}

impl EventStreams {
    /// Takes a permit for one more stream of this caller.
    pub fn take(&self, asker: &str) -> Result<StreamPermit> {
        // A stream that opens during the shutdown would delay it.
        if *self.closing.borrow() {
            return Err(Error::TooMany);
        }
        // An open stream can occupy a connection for hours, so each caller has a small number of them.
        let seat = self.seats.take(asker).ok_or(Error::TooMany)?;
        Ok(StreamPermit { streams: self.clone(), _seat: seat })
    }

    /// Ends all streams and refuses new ones, so that a shutdown does not wait for them.
    pub fn close(&self) {
        self.closing.send_replace(true);
    }

    /// Returns when the gateway shuts down, so that other waits can end too.
    pub async fn closed(&self) {
        // The sender lives as long as `self`, so this cannot fail.
        let _ = self.closing.subscribe().wait_for(|it| *it).await;
    }
}

/// Returns true if the client accepts a stream.
pub fn is_wanted(request: &HttpRequest) -> bool {
    let accepted = request.headers().get_all(header::ACCEPT).filter_map(|it| it.to_str().ok());
    accepted.flat_map(|it| it.split(',')).any(|it| {
        // A media type can have parameters such as `q=0.9`, which do not change the choice.
        let kind = it.split(';').next().unwrap_or_default();
        kind.trim().eq_ignore_ascii_case("text/event-stream")
    })
}

/// Returns the last event that a reconnecting client received. It has precedence over the query.
pub fn last_seen(request: &HttpRequest) -> Result<Option<u64>> {
    // A first connection has no position, and a client that reconnects sends its last one.
    let Some(value) = request.headers().get("last-event-id") else { return Ok(None) };
    let place = value.to_str().ok().and_then(|it| it.trim().parse().ok());
    place
        .map(Some)
        .ok_or_else(|| Error::invalid("", "Last-Event-ID must be the id of an event of this stream, a whole number"))
}

/// Formats one frame. Canonical JSON contains no line breaks, so the data is one line.
pub fn frame(id: u64, event: Option<&str>, data: &Value) -> String {
    let mut frame = format!("id: {id}\n");
    if let Some(event) = event {
        // Writing to a `String` cannot fail.
        let _ = writeln!(frame, "event: {event}");
    }
    frame + &format!("data: {data}\n\n")
}

/// Returns a stream from a position on. It ends if the client disconnects, loses its access, or the gateway shuts down.
pub fn answer(listener: StreamPermit, after: u64, source: impl EventSource) -> HttpResponse {
    // A frame with an ID and no data sets the client's position without an event.
    let opening = format!("retry: {RETRY_MILLIS}\nid: {after}\n\n");
    let told =
        stream::unfold((Some(opening), after, listener, source), |(opening, after, listener, source)| async move {
            if let Some(opening) = opening {
                return Some((opening, (None, after, listener, source)));
            }
            let told = tokio::select! {
                () = listener.streams.closed() => return None,
                told = source.next(after) => told,
            };
            match told {
                Ok(EventStreamChunk { frames, reach }) => {
                    // A heartbeat carries the position, so that a reconnect does not scan the same events again.
                    let life = if frames.is_empty() { format!("id: {reach}\n\n") } else { frames };
                    Some((life, (None, reach, listener, source)))
                }
                Err(error) => {
                    // Ending without an error lets the client reconnect, and the reconnect gets the error as a
                    // response.
                    tracing::debug!(error = &error as &dyn std::error::Error, "a stream ends");
                    None
                }
            }
        });
    let told = futures_util::StreamExt::map(told, |it| Ok::<_, std::convert::Infallible>(Bytes::from(it)));
    HttpResponse::Ok()
        .insert_header((header::CONTENT_TYPE, "text/event-stream"))
        .insert_header((header::CACHE_CONTROL, "no-store"))
        // Compression and proxy buffering would delay events.
        .insert_header((header::CONTENT_ENCODING, "identity"))
        .insert_header(("x-accel-buffering", "no"))
        .streaming(told)
}

#[cfg(test)]
mod tests;
