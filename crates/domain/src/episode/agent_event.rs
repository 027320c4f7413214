//! Events that agents add to an episode. The gateway checks size and shape, and never acts on them.

mod schema;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::state::RunStatus;
use crate::chain::hash::{Digest, Tag};
use crate::json::canonical::canonical;
use crate::primitives::id::{EventId, NodeId, PrincipalId, ThreadId};
use crate::primitives::time::Timestamp;

pub use schema::check;

/// Maximum number of events that agents add to one episode, without its end. A page shows all of them, and a file is
/// built of them at once. The end is accepted beyond that, because a full episode could not be finished otherwise.
pub const POSTED_MAX: u64 = 1_000;
/// Maximum size of a payload. People read it, and a document belongs into the state.
pub const PAYLOAD_BYTES_MAX: usize = 16 * 1024;
/// Maximum number of evidence ids of one event.
pub const EVIDENCE_MAX: usize = 20;

/// The phases that an agent can report. The gateway reports the others.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// It observed something.
    Observe,
    /// It interpreted an observation.
    Interpret,
    /// It received advice.
    Intuition,
    /// It changed its plan by advice.
    Direction,
    /// It plans something.
    Plan,
    /// It did something.
    Act,
    /// It reviewed its result.
    Reflect,
    /// It would act differently next time.
    Learn,
    /// It knows or notes something.
    Memory,
    /// It measured something.
    Insight,
    /// It ended.
    Terminate,
}

impl Phase {
    pub const ALL: [Self; 11] = [
        Self::Observe,
        Self::Interpret,
        Self::Intuition,
        Self::Direction,
        Self::Plan,
        Self::Act,
        Self::Reflect,
        Self::Learn,
        Self::Memory,
        Self::Insight,
        Self::Terminate,
    ];

    /// Returns the word in an event.
    pub const fn as_str(self) -> &'static str {
        use super::event_line::phase;
        match self {
            Self::Observe => phase::OBSERVE,
            Self::Interpret => phase::INTERPRET,
            Self::Intuition => phase::INTUITION,
            Self::Direction => phase::DIRECTION,
            Self::Plan => phase::PLAN,
            Self::Act => phase::ACT,
            Self::Reflect => phase::REFLECT,
            Self::Learn => phase::LEARN,
            Self::Memory => phase::MEMORY,
            Self::Insight => phase::INSIGHT,
            Self::Terminate => phase::TERMINATE,
        }
    }
}

/// An event that an agent added, as stored.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentEvent {
    /// Id, which is that of the thread's event about it.
    pub id: EventId,
    pub thread: ThreadId,
    /// Number in the episode, from 1.
    pub number: u64,
    /// Node that the agent acted as.
    pub node: NodeId,
    pub by: PrincipalId,
    pub phase: Phase,
    /// Payload, with the values redacted that were redacted then.
    pub payload: Map<String, Value>,
    pub caused_by: Option<EventId>,
    /// The agent's own ids of its evidence.
    pub evidence_ids: Vec<String>,
    pub at: Timestamp,
}

impl AgentEvent {
    /// Returns the final status, if this event ends the episode.
    pub fn ended_by(&self) -> Option<RunStatus> {
        let said = self.payload.get("status").filter(|_| self.phase == Phase::Terminate)?;
        RunStatus::named(said.as_str()?)
    }

    /// Returns the digest that the audit log names.
    pub fn digest(&self) -> Digest {
        Digest::of(Tag::EpisodeEvent, &[canonical(&json!(self)).as_bytes()])
    }
}
