//! The audit log, as pages or as a stream of server-sent events.

use actix_web::web::Query;
use actix_web::{HttpRequest, HttpResponse};
use countersign_domain::identity::account::Token;
use countersign_service::Stored;
use countersign_service::error::{Error, Result};
use countersign_service::log::Log;
use countersign_service::log::sequencer::SequencedEvent;
use countersign_service::platform::core::Core;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::auth::extractors::Machine;
use crate::limits::sse;
use crate::limits::sse::{BEAT, EventSource, EventStreamChunk};
use crate::state::{Capability, EdgeConfig, capabilities};

capabilities! {
    /// The capabilities of readers of the audit log.
    pub struct EventCapabilities {
        core: Capability<Core>,
        edge: Capability<EdgeConfig>,
        log: Capability<Log>,
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EventsQuery {
    after: Option<u64>,
    limit: Option<u32>,
}

/// The default page size and the largest one.
const PAGE: (u32, u32) = (100, 500);

/// Positions are JSON numbers, which are exact up to this.
const PLACE_MAX: u64 = (1 << 53) - 1;

/// Events that a stream sends at once.
const BATCH: u32 = 100;

/// Read or follow the audit log.
///
/// Returns 200 with a page of events after a log position. Pass `next` as `after` for the next page. With `Accept:
/// text/event-stream` the response is a stream of server-sent events that continues from `Last-Event-ID`. Returns
/// 429 if the token has too many streams.
#[utoipa::path(
    get, path = "/v1/events", tag = "events",
    params(
        ("after" = Option<u64>, Query, description = "The log position to start after. Without it, the log starts at the beginning"),
        ("limit" = Option<u32>, Query, description = "The page size: 100 by default, at most 500. Streams ignore it"),
        ("Last-Event-ID" = Option<u64>, Header, description = "For a stream: the last `id` that arrived. It has precedence over `after`"),
    ),
    responses((status = 200, description = "A page, or a stream if the client accepts `text/event-stream`", content(
        (super::responses::EventListResponse = "application/json"), (String = "text/event-stream"))))
)]
pub async fn events(
    request: HttpRequest,
    app: EventCapabilities,
    machine: Machine,
    query: Query<EventsQuery>,
) -> Result<HttpResponse> {
    if sse::is_wanted(&request) {
        stream(&request, app, machine, &query).await
    } else {
        page(&request, &app.log, &machine, &query).await
    }
}

async fn page(request: &HttpRequest, log: &Log, machine: &Machine, query: &EventsQuery) -> Result<HttpResponse> {
    // The header is checked for pages too, so that an invalid one is refused everywhere.
    sse::last_seen(request)?;
    // A limit outside the range is adjusted and not refused, because `next` shows the client how far the page reaches.
    let limit = query.limit.unwrap_or(PAGE.0).clamp(1, PAGE.1);
    let after = query.after.unwrap_or(0);
    if after > PLACE_MAX {
        return Err(Error::invalid("/after", "the position exceeds the largest exact JSON number (2^53 - 1)"));
    }
    let (events, next) = log.events_for_machine(&machine.0.record, after, limit).await?;
    let events: Vec<Value> = events.iter().map(event_json).collect();
    Ok(HttpResponse::Ok().json(json!({"events": events, "next": next})))
}

async fn stream(
    request: &HttpRequest,
    app: EventCapabilities,
    machine: Machine,
    query: &EventsQuery,
) -> Result<HttpResponse> {
    if query.limit.is_some() {
        return Err(Error::invalid("/limit", "a stream has no limit: close it to stop"));
    }
    // The header wins over the query, because a reconnecting client repeats the old URL with the newer position.
    let after = sse::last_seen(request)?.or(query.after).unwrap_or(0);
    if after > app.log.log_length().await? {
        return Err(Error::invalid("/after", "the log does not reach this position: start with the `next` of a page"));
    }
    // The seat comes last, so that an invalid request takes none.
    let seat = app.edge.streams.take(machine.0.record.id.as_str())?;
    Ok(sse::answer(seat, after, MachineEventSource { app, token: machine.0 }))
}

struct MachineEventSource {
    app: EventCapabilities,
    token: std::sync::Arc<Stored<Token>>,
}

impl EventSource for MachineEventSource {
    async fn next(&self, after: u64) -> Result<EventStreamChunk> {
        let Self { app, token } = self;
        // The heartbeat detects clients that have disconnected, so no wait is longer.
        let until = app.core.now().plus(BEAT);
        let mut reach = after;
        let events = loop {
            let left = app.core.now().until(until);
            app.log.wait_for_log(reach, left).await?;
            // A stream lives longer than a request, so the token is checked again before each message.
            app.log.token_is_current(token).await?;
            let (events, next) = app.log.events_for_machine(&token.record, reach, BATCH).await?;
            reach = next;
            // A token must not learn from the timing of empty responses that another flow had events. The stream stays
            // silent until its heartbeat.
            if !events.is_empty() || app.core.now() >= until {
                break events;
            }
        };
        let frames = events.iter().map(|it| sse::frame(it.index, Some(it.event.kind.name()), &event_json(it)));
        Ok(EventStreamChunk { frames: frames.collect(), reach })
    }
}

/// Returns an event as JSON.
pub fn event_json(placed: &SequencedEvent) -> Value {
    placed.told()
}
