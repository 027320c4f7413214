//! `GET /live`: server-sent events that notify open pages of changes. Each page then loads its own data.

use actix_web::{HttpRequest, HttpResponse, web};
use countersign_domain::log::event::EventType;
use countersign_service::error::{Error, Result};
use countersign_service::identity::session::SignedIn;
use countersign_service::log::Log;
use countersign_service::log::browse::LogAudience;
use countersign_service::log::sequencer::SequencedEvent;
use serde::Deserialize;
use serde_json::json;

use crate::limits::sse;
use crate::limits::sse::{BEAT, EventSource, EventStreamChunk};
use crate::pages::shared::visitor::Visitor;
use crate::state::{Capability, EdgeConfig};

/// Maximum number of events in one message. A client that missed more gets `missed` and reloads.
const BATCH: u32 = 100;

/// Last log position that the page has seen.
#[derive(Debug, Deserialize)]
pub struct LiveQuery {
    after: Option<u64>,
}

/// `GET /live?after=`: streams the thread and type of each new event.
pub async fn show(
    edge: Capability<EdgeConfig>,
    log: Capability<Log>,
    request: HttpRequest,
    visitor: Visitor,
    query: web::Query<LiveQuery>,
) -> Result<HttpResponse> {
    // A browser that opens the address as a page would load without an end.
    if !sse::is_wanted(&request) {
        return Err(Error::NotFound("page"));
    }
    let reach = log.log_length().await?;
    // A browser that reconnects sends the last position it received, which is newer than the address.
    let after = sse::last_seen(&request)?.or(query.after).unwrap_or(reach);
    let signed_in = visitor.0.signed_in;
    // Each open page keeps a connection, so the streams of one account are limited.
    let seat = edge.streams.take(signed_in.account.record.id.as_str())?;
    // A position beyond the log would skip the next events, so it is cut to the length of the log.
    Ok(sse::answer(seat, after.min(reach), PersonEventSource { log, signed_in }))
}

struct PersonEventSource {
    log: Capability<Log>,
    signed_in: SignedIn,
}

impl EventSource for PersonEventSource {
    async fn next(&self, after: u64) -> Result<EventStreamChunk> {
        let log = &self.log;
        let reach = log.wait_for_log(after, BEAT).await?;
        // The session is checked again for each message, so that sign-out or a disabled account ends the stream.
        let person = log.current_session(&self.signed_in).await?;
        // A page that missed many events loads itself once, and needs none of them.
        if reach > after.saturating_add(u64::from(BATCH)) {
            return Ok(EventStreamChunk { frames: sse::frame(reach, None, &json!({"missed": true})), reach });
        }
        let (events, reach) = log.events_after(after, None, BATCH).await?;
        let audience = LogAudience::of(person.account.record.role);
        let told: Vec<_> = events.iter().filter(|it| is_told(audience, it)).map(hint).collect();
        // Events that the reader may not see send no message, so they are not even announced.
        let frames = if told.is_empty() { String::new() } else { sse::frame(reach, None, &json!({"events": told})) };
        Ok(EventStreamChunk { frames, reach })
    }
}

/// Returns whether an audience sees an event. Everyone sees halts. For other events, the rules of the audit log apply.
fn is_told(audience: LogAudience, placed: &SequencedEvent) -> bool {
    let kind = placed.event.kind;
    audience.may_see(kind) || matches!(kind, EventType::Halted | EventType::HaltLifting | EventType::HaltLifted)
}

fn hint(placed: &SequencedEvent) -> serde_json::Value {
    // The hint has no content, because the page loads that with its own permission checks.
    json!({"type": placed.event.kind, "thread": placed.event.thread})
}
