//! What agents add to a run: judged for size and shape, and inert otherwise.

mod shape;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::state::Status;
use crate::domain::chain::hash::{Digest, Tag};
use crate::domain::id::{EventId, NodeId, PrincipalId, ThreadId};
use crate::domain::json::canonical::canonical;
use crate::domain::time::Timestamp;

pub use shape::check;

/// Events that agents add to one run besides its end. A page shows them all, and an artefact is made of them in one go. What
/// ends a run is taken beyond that: one that is full could not be finished otherwise.
pub const POSTED_MAX: u64 = 1_000;
/// What an event says is read by people: a document belongs into the state.
pub const PAYLOAD_BYTES_MAX: usize = 16 * 1024;
/// Evidence that one event names.
pub const EVIDENCE_MAX: usize = 20;

/// The phase of an event that an agent adds. The gateway adds the other phases.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// It saw something.
    Observe,
    /// It made something of that.
    Interpret,
    /// It was advised.
    Intuition,
    /// It changed its plan by advice.
    Direction,
    /// It means to do something.
    Plan,
    /// It did something.
    Act,
    /// It asked itself how that went.
    Reflect,
    /// It would do something otherwise another time.
    Learn,
    /// It knows or notes something.
    Memory,
    /// It counted something.
    Insight,
    /// It is over.
    Terminate,
}

impl Phase {
    /// Every one.
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

    /// Its word, as events have it.
    pub const fn as_str(self) -> &'static str {
        use super::record::phase;
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

/// An event that an agent added, as it is kept.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Posted {
    /// Its name: the one of the thread's event that tells of it.
    pub id: EventId,
    /// In which run.
    pub thread: ThreadId,
    /// Which of the run's, from 1.
    pub number: u64,
    /// As which node it was said.
    pub node: NodeId,
    /// By which token.
    pub by: PrincipalId,
    /// The phase of the episode.
    pub phase: Phase,
    /// What it says, without what was hidden when it was said.
    pub payload: Map<String, Value>,
    /// The event that led to it.
    pub caused_by: Option<EventId>,
    /// The evidence for the event, in the agent's own names.
    pub evidence_ids: Vec<String>,
    /// When it came.
    pub at: Timestamp,
}

impl Posted {
    /// How the run ended, if this says that it did.
    pub fn ended_by(&self) -> Option<Status> {
        let said = self.payload.get("status").filter(|_| self.phase == Phase::Terminate)?;
        Status::named(said.as_str()?)
    }

    /// What the log says of it.
    pub fn digest(&self) -> Digest {
        Digest::of(Tag::EpisodeEvent, &[canonical(&json!(self)).as_bytes()])
    }
}
