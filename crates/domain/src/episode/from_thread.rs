//! Converts a thread's events into events of an episode. The gateway's own actions come from its audit log and are
//! stored only there.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::agent_event::AgentEvent;
use super::artefacts::PAUSES_TOLD_MAX;
use super::event_line::{EVENTS_MAX, EventRecord, phase};
use super::goal::EpisodeTerms;
use super::state::PROJECTOR;
use crate::json::canonical::canonical;
use crate::log::event::{Event, EventType};
use crate::primitives::time::Timestamp;

/// Members of an event's data that an episode gets: names and numbers, never a value, a reason or a comment. `branches`
/// names those that were made, and `join` those that were joined.
const TOLD: [&str; 12] = [
    "transition",
    "version",
    "node",
    "review",
    "expires_at",
    "write_id",
    "fence",
    "late",
    "outcome",
    "instruction",
    BRANCHES,
    JOIN,
];

/// Branches of a fork or a join, each with its name, thread and head.
const BRANCHES: &str = "branches";
const JOIN: &str = "join";

/// Maximum number of a thread's events in one episode. Each is one line at most. With the projections between them they
/// stay within the reader's limit.
pub const TOLD_MAX: u64 = 49_000;
const _: () = assert!(
    TOLD_MAX as usize + PAUSES_TOLD_MAX + 2 <= EVENTS_MAX,
    "the limits of the writer must fit into the limits of the reader"
);

/// Effect of a pending review on an episode, and of its end.
const PAUSED: &str = "paused";
const RESUMED: &str = "resumed";

/// Builds the start event of an episode.
pub fn started(event: &Event, run: &str, terms: &EpisodeTerms) -> EventRecord {
    let flow = event.flow.as_ref().map(ToString::to_string).unwrap_or_default();
    record(run, event.id.as_str(), event.at, PROJECTOR, phase::START, terms.start(&flow))
}

/// Builds the record of an agent's event.
pub fn said(posted: &AgentEvent) -> EventRecord {
    let (node, phase, payload) = (posted.node.as_str(), posted.phase.as_str(), posted.payload.clone());
    let mut told = record(posted.thread.as_str(), posted.id.as_str(), posted.at, node, phase, payload);
    told.caused_by = posted.caused_by.as_ref().map(ToString::to_string);
    told.evidence_ids.clone_from(&posted.evidence_ids);
    told
}

/// Builds the record of a gateway event, if it concerns the episode.
pub fn done(event: &Event, run: &str) -> Option<EventRecord> {
    let change = match event.kind {
        EventType::TransitionHeld => Some(PAUSED),
        EventType::TransitionApproved
        | EventType::TransitionDenied
        | EventType::TransitionExpired
        | EventType::TransitionCancelled
        | EventType::TransitionSuperseded => Some(RESUMED),
        EventType::TransitionCommitted
        | EventType::TransitionRejected
        | EventType::ReceiptRevoked
        | EventType::WriteReserved
        | EventType::WriteConfirmed
        | EventType::WriteAborted
        | EventType::WriteFailed
        | EventType::WriteLapsed
        | EventType::WriteResolved
        | EventType::ThreadForked
        | EventType::ThreadClosed
        | EventType::ThreadReopened => None,
        _ => return None,
    };
    let member = |name: &&str| Some(((*name).to_owned(), event.data.get(*name)?.clone()));
    // Only listed members are copied, so a new member of an event cannot leak into an export.
    let mut payload: Map<String, Value> = TOLD.iter().filter_map(member).collect();
    if let Some(change) = change {
        payload.insert("run".to_owned(), change.into());
    }
    let mut told = record(run, event.id.as_str(), event.at, PROJECTOR, phase::RUNTIME, payload);
    told.event_type = Some(event.kind.name().to_owned());
    Some(told)
}

fn record(run: &str, id: &str, at: Timestamp, who: &str, phase: &str, payload: Map<String, Value>) -> EventRecord {
    EventRecord {
        agent_id: who.to_owned(),
        caused_by: None,
        episode_id: run.to_owned(),
        event_type: None,
        evidence_ids: Vec::new(),
        id: Some(id.to_owned()),
        payload,
        phase: phase.to_owned(),
        timestamp: at.to_string(),
        previous: None,
    }
}

/// Redacts a value: texts, names of members, and numbers as they are written.
fn masked(value: &Value, mask: &impl Fn(&str) -> String) -> Value {
    match value {
        Value::String(text) => mask(text).into(),
        Value::Number(_) => {
            // A number can be a secret too, such as a card number.
            let (text, shown) = (canonical(value), mask(&canonical(value)));
            if text == shown { value.clone() } else { shown.into() }
        }
        Value::Array(items) => items.iter().map(|it| masked(it, mask)).collect(),
        Value::Object(members) => Value::Object(masked_members(members, mask)),
        Value::Null | Value::Bool(_) => value.clone(),
    }
}

/// Redacts an object. If two names become equal by redaction, a number distinguishes them.
fn masked_members(members: &Map<String, Value>, mask: &impl Fn(&str) -> String) -> Map<String, Value> {
    let mut shown = Map::new();
    for (at, (name, value)) in members.iter().enumerate() {
        let name = Cow::from(mask(name));
        // Two names may become equal after masking, and neither member may be lost.
        let name = if shown.contains_key(&*name) { Cow::from(format!("{name} {at}")) } else { name };
        shown.insert(name.into_owned(), masked(value, mask));
    }
    shown
}

/// Redacts a payload. Every event names the flow of an episode, so that stays. The final status is a checked word, and
/// its absence would reveal that it equals a redacted value.
pub fn masked_payload(phase: &str, payload: &Map<String, Value>, mask: &impl Fn(&str) -> String) -> Map<String, Value> {
    let open = match phase {
        phase::START => "process",
        phase::TERMINATE => "status",
        _ => "",
    };
    let mut shown = masked_members(payload, mask);
    if let Some(value) = payload.get(open) {
        shown.insert(open.to_owned(), value.clone());
    }
    shown
}

/// Redacts only the names of branches in a gateway event. The mask gets the thread of a branch and its name, because the
/// branches of one join may have several authors.
fn masked_names(payload: &Map<String, Value>, mask: &impl Fn(&str, &str) -> String) -> Map<String, Value> {
    let mut shown = payload.clone();
    let named = |branches: Option<&mut Value>| {
        for branch in branches.and_then(Value::as_array_mut).into_iter().flatten() {
            let masked = branch["name"].as_str().map(|it| mask(branch["thread"].as_str().unwrap_or_default(), it));
            if let Some(masked) = masked {
                branch["name"] = masked.into();
            }
        }
    };
    named(shown.get_mut(BRANCHES));
    named(shown.get_mut(JOIN).and_then(|it| it.get_mut(BRANCHES)));
    shown
}

/// Returns the branches that an event names.
pub fn branches_named(record: &EventRecord) -> Vec<&str> {
    let made = record.payload.get(BRANCHES);
    let branches = made.or_else(|| record.payload.get(JOIN)?.get(BRANCHES)).and_then(Value::as_array);
    branches.into_iter().flatten().filter_map(|it| it["name"].as_str()).collect()
}

/// Redacts a record. Names that the gateway chose stay. The payloads of gateway events contain no other texts of agents
/// than the names of branches.
pub fn masked_record(
    mut record: EventRecord,
    mask: &impl Fn(&str) -> String,
    branch_mask: &impl Fn(&str, &str) -> String,
) -> EventRecord {
    record.payload = match record.is(phase::RUNTIME) {
        true => masked_names(&record.payload, branch_mask),
        false => masked_payload(&record.phase, &record.payload, mask),
    };
    record.evidence_ids = record.evidence_ids.iter().map(|it| mask(it)).collect();
    record
}

/// Returns the second of a record that this gateway made.
pub fn second_of(record: &EventRecord) -> u64 {
    let at = Timestamp::parse(&record.timestamp).map_or(0, Timestamp::seconds);
    u64::try_from(at).unwrap_or_default()
}

#[cfg(test)]
mod tests;
