//! One line of `events.jsonl`.

use chrono::DateTime;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use super::finding::{Code, RunFinding};
use crate::chain::hash::Digest;
use crate::json::canonical::canonical;
use crate::json::parse::{DEPTH_MAX, ParseLimits, parse};
use crate::primitives::time::Timestamp;

/// Maximum number of events of one episode: those of agents, those that a gateway adds of a thread, and room for other
/// systems. With agents' content counted twice, such a file is still readable.
pub const EVENTS_MAX: usize = 50_000;

/// Limits of one line or of a state. An agent's content has as many levels as a request, and a projection adds some
/// around it. The state of a long episode is longer than a request, and never longer than its file.
pub const LIMITS: ParseLimits = ParseLimits { bytes_max: BYTES_MAX, depth_max: DEPTH_MAX + LEVELS_AROUND };
/// Maximum size of a file. The longest timeline has some megabytes.
pub const BYTES_MAX: usize = 64 * 1024 * 1024;
/// Levels of `outcomes.metrics` in the payload of a projection, with room for what other systems put around it.
const LEVELS_AROUND: usize = 16;

/// Phases of an event, by their published names.
pub mod phase {
    pub const START: &str = "start";
    pub const OBSERVE: &str = "observe";
    pub const INTERPRET: &str = "interpret";
    pub const INTUITION: &str = "intuition";
    /// A correction of the plan by advice.
    pub const DIRECTION: &str = "direction";
    pub const PLAN: &str = "plan";
    pub const ACT: &str = "act";
    pub const REFLECT: &str = "reflect";
    /// Changes for another time.
    pub const LEARN: &str = "learn";
    pub const MEMORY: &str = "memory";
    pub const INSIGHT: &str = "insight";
    /// Actions of the system around the agents: judgements, pauses, writes, projections.
    pub const RUNTIME: &str = "runtime";
    pub const TERMINATE: &str = "terminate";
}

/// Runtime event with the content of `state.json` when it was written.
pub const STATE_PROJECTION: &str = "run.state_projection";

/// An event. Unknown members stay in the file and are not projected.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct EventRecord {
    pub agent_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caused_by: Option<String>,
    /// Episode that it belongs to.
    pub episode_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_type: Option<String>,
    #[serde(default)]
    pub evidence_ids: Vec<String>,
    /// Id. Some events of older systems have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    pub payload: Map<String, Value>,
    pub phase: String,
    pub timestamp: String,
    /// SHA-256 of the line before, null in the first. Absent in episodes whose events have no links.
    #[serde(rename = "x-previous", default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub previous: Option<Value>,
}

fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

impl EventRecord {
    /// Returns its line, without the line feed.
    pub fn line(&self) -> String {
        canonical(&serde_json::to_value(self).expect("an event is a plain struct with text keys"))
    }

    /// Returns a text of its payload.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.payload.get(name).and_then(Value::as_str)
    }

    /// Returns whether it has that phase.
    pub fn is(&self, phase: &str) -> bool {
        self.phase == phase
    }

    /// Returns whether it is a state projection.
    pub fn is_projection(&self) -> bool {
        self.is(phase::RUNTIME) && self.event_type.as_deref() == Some(STATE_PROJECTION)
    }
}

#[derive(Clone, PartialEq, Debug)]
pub struct EventLine {
    pub record: EventRecord,
    /// Hash that the next line links to.
    pub hash: Digest,
}

/// Reads a timeline. A malformed line is reported and skipped.
pub fn read(bytes: &[u8], file: &str) -> (Vec<EventLine>, Vec<RunFinding>) {
    let (mut lines, mut found) = (Vec::new(), Vec::new());
    // A last line without its line feed may have been cut off.
    if !bytes.is_empty() && !bytes.ends_with(b"\n") {
        found.push(RunFinding::at(Code::EventsTruncated, file, bytes.split(|it| *it == b'\n').count()));
    }
    let text = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    for (at, line) in text.split(|it| *it == b'\n').enumerate().filter(|_| !bytes.is_empty()) {
        // Reading stops here, so a huge file cannot exhaust memory.
        if at == EVENTS_MAX {
            found.push(RunFinding::at(Code::EventsTooMany, file, at + 1));
            break;
        }
        match record(line) {
            // The hash is of the original bytes, because the next line links to them.
            Some(record) => lines.push(EventLine { record, hash: Digest::of_file(line) }),
            None => found.push(RunFinding::at(Code::EventMalformed, file, at + 1)),
        }
    }
    (lines, found)
}

fn record(line: &[u8]) -> Option<EventRecord> {
    let record: EventRecord = serde_json::from_value(parse(line, &LIMITS).ok()?).ok()?;
    is_moment(&record.timestamp).then_some(record)
}

/// Returns whether a text is an RFC 3339 moment. Other systems write other forms of it than ours.
pub fn is_moment(text: &str) -> bool {
    DateTime::parse_from_rfc3339(text).is_ok()
}

/// Returns the RFC 3339 moment of a text.
pub fn moment_of(text: &str) -> Option<Timestamp> {
    Some(Timestamp::from_millis(DateTime::parse_from_rfc3339(text).ok()?.timestamp_millis()))
}

/// Returns the milliseconds between two moments, if both can be read.
pub fn millis_between(from: &str, to: &str) -> Option<i64> {
    let read = |text| DateTime::parse_from_rfc3339(text).ok().map(|it| it.timestamp_millis());
    read(to)?.checked_sub(read(from)?)
}
