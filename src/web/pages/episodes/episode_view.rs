//! A run of agents: what they meant to do, what happened, and what came of it.

use askama::Template;

use crate::web::pages::shared::layout::{Moment, Shell, Tone};
use crate::web::pages::shared::safe_text::{Json, Line, Prose};

/// `GET /threads/{thread}/episode`.
#[derive(Template, Clone, Debug)]
#[template(path = "episode.html")]
pub struct EpisodePage {
    /// The frame.
    pub shell: Shell,
    /// The thread.
    pub thread: Line,
    /// Where it comes from.
    pub head: Head,
    /// What the run is for.
    pub task: Line,
    /// How it stands.
    pub status: Badge,
    /// What it says that it came to.
    pub summary: Option<Prose>,
    /// When it began.
    pub begun: Moment,
    /// Who made the plan, and why it is so.
    pub plan: Option<PlanHead>,
    /// The plan's steps, in order.
    pub steps: Vec<StepRow>,
    /// What happened, in order.
    pub events: Vec<EventRow>,
    /// How many earlier events are not listed.
    pub earlier: usize,
    /// The run in numbers, and what it made.
    pub outcomes: Vec<Fact>,
    /// What can be downloaded.
    pub files: Vec<FileRow>,
}

/// Where a run comes from.
#[derive(Clone, Debug)]
pub enum Head {
    /// A thread of this gateway.
    Own {
        /// Its page.
        thread_url: String,
        /// Its flow.
        flow: Line,
    },
    /// A folder.
    Imported(Box<ImportHead>),
}

/// Of a run that was imported.
#[derive(Clone, Debug)]
pub struct ImportHead {
    /// What it calls itself.
    pub episode: Line,
    /// Who imported it.
    pub by: Line,
    /// When.
    pub at: Moment,
    /// Who vouches for it.
    pub vouched: Vouched,
    /// What could not be told of it.
    pub untold: Vec<Untold>,
}

/// Who vouches for an imported run, each with the key that the manifest names.
#[derive(Clone, Debug)]
pub enum Vouched {
    /// Nobody.
    Nobody,
    /// Nobody knows who.
    Unchecked(Line),
    /// This gateway.
    Gateway(Line),
    /// This gateway did, and its key was revoked since.
    Revoked(Line),
    /// Another gateway, whose key was given along.
    Other {
        /// What it calls itself.
        issuer: Line,
        /// By which key.
        kid: Line,
    },
}

/// Something that could not be told of a folder.
#[derive(Clone, Debug)]
pub struct Untold {
    /// In which file.
    pub file: Line,
    /// About what in it.
    pub about: Option<Line>,
    /// What.
    pub words: &'static str,
}

/// A word that is never told by its colour alone.
#[derive(Clone, Debug)]
pub struct Badge {
    /// The word.
    pub words: &'static str,
    /// How it is meant.
    pub tone: Tone,
}

/// Where a plan comes from.
#[derive(Clone, Debug)]
pub struct PlanHead {
    /// Who made it.
    pub source: Line,
    /// Why it is so.
    pub rationale: Option<Prose>,
}

/// A step of the plan.
#[derive(Clone, Debug)]
pub struct StepRow {
    /// What is to be done.
    pub description: Line,
    /// Of which kind it is.
    pub kind: Line,
    /// How far it is.
    pub status: Badge,
}

/// Something that happened.
#[derive(Clone, Debug)]
pub struct EventRow {
    /// What: in the gateway's words of its own doing, else the phase.
    pub what: Line,
    /// How it is meant.
    pub tone: Tone,
    /// Who did it; nobody where it was the gateway.
    pub who: Option<Line>,
    /// The review, if one is concerned.
    pub review_url: Option<String>,
    /// What an agent says.
    pub says: Option<Json>,
    /// When.
    pub at: Moment,
}

/// A named value.
#[derive(Clone, Debug)]
pub struct Fact {
    /// Its name.
    pub name: Line,
    /// Its value.
    pub value: Json,
}

/// A file.
#[derive(Clone, Debug)]
pub struct FileRow {
    /// Its name.
    pub name: Line,
    /// Where it is.
    pub url: String,
    /// What it holds.
    pub words: &'static str,
}
