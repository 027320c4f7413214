//! Records events in the commit that makes them true. Events of a thread have sequence numbers without gaps.

use countersign_adapters::random;
use countersign_domain::log::event::{Event, EventType};
use countersign_domain::primitives::id::{EventId, FlowId};
use countersign_domain::primitives::time::Timestamp;
use countersign_domain::threads::thread::Thread;
use countersign_store::change::Draft;
use countersign_store::records::UnsequencedEvent;
use serde_json::Value;

use super::trace_context;
use crate::error::Result;

fn event_id(now: Timestamp) -> EventId {
    EventId::try_from(random::uuid_v7(now).to_string()).expect("a UUID is a name")
}

/// Adds the next event of a thread to the change, and its number to the thread row that the change writes.
pub(crate) fn append_thread_event(
    draft: &mut Draft<'_>,
    thread: &mut Thread,
    now: Timestamp,
    kind: EventType,
    data: Value,
) -> Result<()> {
    let last = thread.last_event;
    let event = Event {
        id: event_id(now),
        kind,
        at: now,
        flow: Some(thread.flow.clone()),
        thread: Some(thread.id.clone()),
        seq: Some(last.map_or(1, |link| link.seq + 1)),
        previous: last.map(|link| link.hash),
        data,
    };
    // The hash chain of the thread: the next event contains the hash of this one.
    thread.last_event = event.link();
    put(draft, &event)
}

pub(crate) fn outside(
    draft: &mut Draft<'_>,
    flow: Option<&FlowId>,
    now: Timestamp,
    kind: EventType,
    data: Value,
) -> Result<()> {
    let flow = flow.cloned();
    put(draft, &Event { id: event_id(now), kind, at: now, flow, thread: None, seq: None, previous: None, data })
}

fn put(draft: &mut Draft<'_>, event: &Event) -> Result<()> {
    draft.insert(event)?;
    // The sequencer finds new events through these rows, because the log position is unknown at the commit.
    draft.insert(&UnsequencedEvent { event: event.id.clone(), trace: trace_context::trace() })?;
    Ok(())
}
