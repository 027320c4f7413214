//! Episode: one run of agents as a list of events, and the files that follow from it.
//!
//! Everything except the events is a projection. Pure functions build the plan, the state, the summary and the manifest
//! from the events, so every holder of the events can rebuild and compare them. `docs/specs/episodes.md` describes the
//! published contract and the differences from it.

pub mod agent_event;
pub mod artefacts;
pub mod event_line;
pub mod finding;
pub mod from_thread;
pub mod goal;
pub mod imported;
pub mod manifest;
pub mod plan;
mod projector;
pub mod state;
pub mod verify;

#[cfg(test)]
mod samples;

use super::primitives::openapi_schema::one_of_words;

/// Format version, in the root of `state.json`.
pub const VERSION: &str = "1.0";
/// Schema version of `state.json`.
pub const STATE_SCHEMA_VERSION: &str = "1.0.0";

/// A file of the folder, by its fixed name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Artefact {
    /// Timeline, from which everything else follows.
    Events,
    /// Learned records, as a timeline of their own.
    Learn,
    /// State as projected from the events.
    State,
    /// The episode in numbers. Only of a finished episode.
    Summary,
    /// End of the episode and its outcome. Only of a finished episode.
    Final,
    /// Hashes and sizes of all other files. Only of a finished episode.
    Manifest,
}

one_of_words!(Artefact, Self::ALL.map(Self::file));

impl Artefact {
    pub const ALL: [Self; 6] = [Self::Events, Self::Learn, Self::State, Self::Summary, Self::Final, Self::Manifest];

    /// Returns the name in the folder.
    pub const fn file(self) -> &'static str {
        match self {
            Self::Events => "events.jsonl",
            Self::Learn => "learn.jsonl",
            Self::State => "state.json",
            Self::Summary => "summary.json",
            Self::Final => "final.json",
            Self::Manifest => "manifest.json",
        }
    }

    /// Returns the kind in the manifest.
    pub const fn kind(self) -> &'static str {
        match self {
            Self::Events => "events",
            Self::Learn => "learn",
            Self::State => "state",
            Self::Summary => "summary",
            Self::Final => "final",
            Self::Manifest => "manifest",
        }
    }

    /// Returns the file of this name.
    pub fn of_file(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.file() == name)
    }

    /// Returns whether only a finished episode has it.
    pub const fn is_of_finished_runs(self) -> bool {
        matches!(self, Self::Summary | Self::Final | Self::Manifest)
    }
}
