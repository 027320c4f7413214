//! One line of `events.jsonl`.

use chrono::DateTime;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use super::finding::{Code, Finding};
use crate::domain::chain::hash::Digest;
use crate::domain::json::canonical::canonical;
use crate::domain::json::parse::{DEPTH_MAX, Limits, parse};
use crate::domain::primitives::time::Timestamp;

/// Events of one run: what agents may add, what a gateway adds of a thread, and room for other systems' runs. So many short
/// ones, with as much as agents can say twice over, are a file that is still read.
pub const EVENTS_MAX: usize = 50_000;

/// What is read of one line, or of a state. What an agent says has as many levels as any request, and of what is projected
/// some more stand around it; the state of a long run is longer than a request, and never longer than its file.
pub const LIMITS: Limits = Limits { bytes_max: BYTES_MAX, depth_max: DEPTH_MAX + LEVELS_AROUND };
/// Bytes of a whole file: a timeline of the longest is some megabytes.
pub const BYTES_MAX: usize = 64 * 1024 * 1024;
/// `outcomes.metrics` in the payload of a projection, and room for what other systems put around it.
const LEVELS_AROUND: usize = 16;

/// What a run does in an event. The names are the published ones.
pub mod phase {
    /// A run begins.
    pub const START: &str = "start";
    /// What the agents saw.
    pub const OBSERVE: &str = "observe";
    /// What they made of it: beliefs.
    pub const INTERPRET: &str = "interpret";
    /// Advice on what to do.
    pub const INTUITION: &str = "intuition";
    /// A correction of the plan by advice.
    pub const DIRECTION: &str = "direction";
    /// What they mean to do: steps.
    pub const PLAN: &str = "plan";
    /// What they did.
    pub const ACT: &str = "act";
    /// Whether it went as meant.
    pub const REFLECT: &str = "reflect";
    /// What should be done otherwise another time.
    pub const LEARN: &str = "learn";
    /// What they know and note.
    pub const MEMORY: &str = "memory";
    /// The run in numbers.
    pub const INSIGHT: &str = "insight";
    /// What the machinery around them did: judgements, pauses, writes, projections.
    pub const RUNTIME: &str = "runtime";
    /// A run ends.
    pub const TERMINATE: &str = "terminate";
}

/// The runtime event that says what `state.json` said when it was written.
pub const STATE_PROJECTION: &str = "run.state_projection";

/// An event. Members that are not known are left out of what is projected, and stay in the file.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Record {
    /// Who did it.
    pub agent_id: String,
    /// The event that led to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caused_by: Option<String>,
    /// The run that it is of.
    pub episode_id: String,
    /// What kind of thing it is within its phase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_type: Option<String>,
    /// What speaks for it.
    #[serde(default)]
    pub evidence_ids: Vec<String>,
    /// Its name; some events of older runs have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// What it says.
    pub payload: Map<String, Value>,
    /// What the run does in it.
    pub phase: String,
    /// When.
    pub timestamp: String,
    /// The SHA-256 of the line before, null in the first; not there in runs that do not link their events.
    #[serde(rename = "x-previous", default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub previous: Option<Value>,
}

fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

impl Record {
    /// Its line, without the line feed.
    pub fn line(&self) -> String {
        canonical(&serde_json::to_value(self).expect("an event is a plain struct with text keys"))
    }

    /// A text of what it says.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.payload.get(name).and_then(Value::as_str)
    }

    /// Whether it is of that phase.
    pub fn is(&self, phase: &str) -> bool {
        self.phase == phase
    }

    /// Whether it says what `state.json` said.
    pub fn is_projection(&self) -> bool {
        self.is(phase::RUNTIME) && self.event_type.as_deref() == Some(STATE_PROJECTION)
    }
}

/// A line as it was read.
#[derive(Clone, PartialEq, Debug)]
pub struct Line {
    /// What it says.
    pub record: Record,
    /// What the next line links to.
    pub hash: Digest,
}

/// Reads a timeline. What is wrong with a line is told, and the line passed over.
pub fn read(bytes: &[u8], file: &str) -> (Vec<Line>, Vec<Finding>) {
    let (mut lines, mut found) = (Vec::new(), Vec::new());
    if !bytes.is_empty() && !bytes.ends_with(b"\n") {
        found.push(Finding::at(Code::EventsTruncated, file, bytes.split(|it| *it == b'\n').count()));
    }
    let text = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    for (at, line) in text.split(|it| *it == b'\n').enumerate().filter(|_| !bytes.is_empty()) {
        if at == EVENTS_MAX {
            found.push(Finding::at(Code::EventsTooMany, file, at + 1));
            break;
        }
        match record(line) {
            Some(record) => lines.push(Line { record, hash: Digest::of_file(line) }),
            None => found.push(Finding::at(Code::EventMalformed, file, at + 1)),
        }
    }
    (lines, found)
}

fn record(line: &[u8]) -> Option<Record> {
    let record: Record = serde_json::from_value(parse(line, &LIMITS).ok()?).ok()?;
    is_moment(&record.timestamp).then_some(record)
}

/// Whether a text is a moment by RFC 3339. Other systems write other forms of it than ours.
pub fn is_moment(text: &str) -> bool {
    DateTime::parse_from_rfc3339(text).is_ok()
}

/// The moment that a text says, by RFC 3339.
pub fn moment_of(text: &str) -> Option<Timestamp> {
    Some(Timestamp::from_millis(DateTime::parse_from_rfc3339(text).ok()?.timestamp_millis()))
}

/// The milliseconds from one moment to another, where both can be read.
pub fn millis_between(from: &str, to: &str) -> Option<i64> {
    let read = |text| DateTime::parse_from_rfc3339(text).ok().map(|it| it.timestamp_millis());
    read(to)?.checked_sub(read(from)?)
}
