//! Streams of events (`text/event-stream`): who holds one, how many there may be, and when each ends.

use std::fmt::Write as _;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use actix_web::http::header;
use actix_web::web::Bytes;
use actix_web::{HttpRequest, HttpResponse};
use futures_util::stream;
use serde_json::Value;
use tokio::sync::watch;

use super::quota::{CallerQuota, QuotaPermit};
use crate::service::error::{Error, Result};

/// Streams in all: each holds a connection and looks at the store for every batch that it tells.
const STREAMS_MAX: usize = 1_000;

/// Streams of one asker: a person's browsers, or the processes that share a token.
const STREAMS_OF_ONE_MAX: usize = 16;

/// Nothing happening is told this often, so that whoever went away is noticed, as is whoever may not listen any more.
pub const BEAT: Duration = Duration::from_secs(15);

/// How soon a client that lost its stream asks again.
const RETRY_MILLIS: u32 = 2_000;

/// Every stream that is open.
#[derive(Clone)]
pub struct EventStreams {
    seats: CallerQuota,
    closing: Arc<watch::Sender<bool>>,
}

/// The right to one open stream, given back when it ends.
pub struct StreamPermit {
    streams: EventStreams,
    _seat: QuotaPermit,
}

impl Default for EventStreams {
    fn default() -> Self {
        Self { seats: CallerQuota::new(STREAMS_OF_ONE_MAX, STREAMS_MAX), closing: Arc::default() }
    }
}

/// What a stream tells at one time, and where to go on.
#[derive(Debug, PartialEq, Eq)]
pub struct EventStreamChunk {
    /// Frames; none is a sign of life.
    pub frames: String,
    /// The place up to which everything was told.
    pub reach: u64,
}

pub trait EventSource: 'static {
    /// Waits for what comes after a place, at most for a [`BEAT`]. Whoever may not listen any more is refused before
    /// anything is told.
    fn next(&self, after: u64) -> impl Future<Output = Result<EventStreamChunk>>;
}

impl EventStreams {
    /// One more stream of this asker.
    pub fn take(&self, asker: &str) -> Result<StreamPermit> {
        if *self.closing.borrow() {
            return Err(Error::TooMany);
        }
        let seat = self.seats.take(asker).ok_or(Error::TooMany)?;
        Ok(StreamPermit { streams: self.clone(), _seat: seat })
    }

    /// Ends every stream, now and from now on: whoever shuts down does not wait for those who only listen.
    pub fn close(&self) {
        self.closing.send_replace(true);
    }

    /// Returns once the gateway ends; whoever waits for something else then stops waiting.
    pub async fn closed(&self) {
        // It cannot fail while `self` keeps the sender.
        let _ = self.closing.subscribe().wait_for(|it| *it).await;
    }
}

/// Whether a stream is asked for, and not a page.
pub fn is_wanted(request: &HttpRequest) -> bool {
    let accepted = request.headers().get_all(header::ACCEPT).filter_map(|it| it.to_str().ok());
    accepted.flat_map(|it| it.split(',')).any(|it| {
        let kind = it.split(';').next().unwrap_or_default();
        kind.trim().eq_ignore_ascii_case("text/event-stream")
    })
}

/// Where a client that had a stream before goes on: what it saw last, which counts more than what its address says.
pub fn last_seen(request: &HttpRequest) -> Result<Option<u64>> {
    let Some(value) = request.headers().get("last-event-id") else { return Ok(None) };
    let place = value.to_str().ok().and_then(|it| it.trim().parse().ok());
    place
        .map(Some)
        .ok_or_else(|| Error::invalid("", "Last-Event-ID is the id of an event of this stream, a whole number"))
}

/// One frame. Canonical JSON has no line ends, so its data is one line.
pub fn frame(id: u64, event: Option<&str>, data: &Value) -> String {
    let mut frame = format!("id: {id}\n");
    if let Some(event) = event {
        // Writing to a String does not fail.
        let _ = writeln!(frame, "event: {event}");
    }
    frame + &format!("data: {data}\n\n")
}

/// A stream from a place on, until its asker goes, may not listen any more, or the gateway ends.
pub fn answer(listener: StreamPermit, after: u64, source: impl EventSource) -> HttpResponse {
    // An id without data moves a client's place and is no event to it.
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
                    let life = if frames.is_empty() { format!("id: {reach}\n\n") } else { frames };
                    Some((life, (None, reach, listener, source)))
                }
                Err(error) => {
                    tracing::debug!(error = &error as &dyn std::error::Error, "a stream ends");
                    None
                }
            }
        });
    let told = futures_util::StreamExt::map(told, |it| Ok::<_, std::convert::Infallible>(Bytes::from(it)));
    HttpResponse::Ok()
        .insert_header((header::CONTENT_TYPE, "text/event-stream"))
        .insert_header((header::CACHE_CONTROL, "no-store"))
        // Whoever compresses or buffers keeps what happened now for later.
        .insert_header((header::CONTENT_ENCODING, "identity"))
        .insert_header(("x-accel-buffering", "no"))
        .streaming(told)
}

#[cfg(test)]
mod tests;
