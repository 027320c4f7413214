//! An episode: one run of agents as a list of events, and the artefacts that follow from it.
//!
//! Everything but the events is a projection: the plan, the state, the summary and the manifest are made from them by
//! pure functions, so that whoever has the events can make them again and compare. `docs/specs/episodes.md` says which
//! published contract is followed where, and why.

pub mod artefacts;
pub mod finding;
pub mod goal;
pub mod imported;
pub mod manifest;
pub mod plan;
pub mod posted;
mod projector;
pub mod record;
pub mod state;
pub mod told;
pub mod verify;

#[cfg(test)]
mod samples;

use super::described::words;

/// What the artefacts say of themselves, in the root of `state.json`.
pub const VERSION: &str = "1.0";
/// The contract that `state.json` keeps.
pub const STATE_SCHEMA_VERSION: &str = "1.0.0";

/// A file of the folder, by the name that it always has.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Artefact {
    /// The timeline; everything else follows from it.
    Events,
    /// What was learned, as a timeline of its own.
    Learn,
    /// The state as it is projected from the events.
    State,
    /// The run in numbers; of a finished run alone.
    Summary,
    /// That the run is over, and how; of a finished run alone.
    Final,
    /// Hashes and sizes of all others; of a finished run alone.
    Manifest,
}

impl utoipa::PartialSchema for Artefact {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
        words(Self::ALL.map(Self::file))
    }
}

impl utoipa::ToSchema for Artefact {}

impl Artefact {
    /// Every one.
    pub const ALL: [Self; 6] = [Self::Events, Self::Learn, Self::State, Self::Summary, Self::Final, Self::Manifest];

    /// Its name in the folder.
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

    /// Its kind in the manifest.
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

    /// The one of that name.
    pub fn of_file(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.file() == name)
    }

    /// Whether only a finished run has it.
    pub const fn is_of_finished_runs(self) -> bool {
        matches!(self, Self::Summary | Self::Final | Self::Manifest)
    }
}
