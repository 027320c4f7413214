//! A run of agents: what they meant to do, what happened, and what came of it.

use askama::Template;

use crate::web::pages::shared::layout::{PageLayout, TimestampView, Tone};
use crate::web::pages::shared::safe_text::{SafeJson, SafeLine, SafeText};

/// `GET /threads/{thread}/episode`.
#[derive(Template, Clone, Debug)]
#[template(path = "episode.html")]
pub struct EpisodePage {
    /// The frame.
    pub shell: PageLayout,
    /// The thread.
    pub thread: SafeLine,
    /// Where it comes from.
    pub head: EpisodeHeadView,
    /// What the run is for.
    pub task: SafeLine,
    /// How it stands.
    pub status: StatusBadge,
    /// What it says that it came to.
    pub summary: Option<SafeText>,
    /// When it began.
    pub begun: TimestampView,
    /// Who made the plan, and why it is so.
    pub plan: Option<PlanHeader>,
    /// The plan's steps, in order.
    pub steps: Vec<PlanStepRow>,
    /// What happened, in order.
    pub events: Vec<EpisodeEventRow>,
    /// How many earlier events are not listed.
    pub earlier: usize,
    /// The run in numbers, and what it made.
    pub outcomes: Vec<NamedValueRow>,
    /// What can be downloaded.
    pub files: Vec<FileRow>,
}

/// Where a run comes from.
#[derive(Clone, Debug)]
pub enum EpisodeHeadView {
    /// A thread of this gateway.
    Own {
        /// Its page.
        thread_url: String,
        /// Its flow.
        flow: SafeLine,
    },
    /// A folder.
    Imported(Box<ImportHeader>),
}

/// Of a run that was imported.
#[derive(Clone, Debug)]
pub struct ImportHeader {
    /// What it calls itself.
    pub episode: SafeLine,
    /// Who imported it.
    pub by: SafeLine,
    /// When.
    pub at: TimestampView,
    /// Who vouches for it.
    pub vouched: ImportSignerView,
    /// What could not be told of it.
    pub untold: Vec<UnverifiedRow>,
}

/// Who vouches for an imported run, each with the key that the manifest names.
#[derive(Clone, Debug)]
pub enum ImportSignerView {
    /// Nobody.
    Nobody,
    /// Nobody knows who.
    Unchecked(SafeLine),
    /// This gateway.
    Gateway(SafeLine),
    /// This gateway did, and its key was revoked since.
    Revoked(SafeLine),
    /// Another gateway, whose key was given along.
    Other {
        /// What it calls itself.
        issuer: SafeLine,
        /// By which key.
        kid: SafeLine,
    },
}

/// Something that could not be told of a folder.
#[derive(Clone, Debug)]
pub struct UnverifiedRow {
    /// In which file.
    pub file: SafeLine,
    /// About what in it.
    pub about: Option<SafeLine>,
    /// What.
    pub words: &'static str,
}

/// A word that is never told by its colour alone.
#[derive(Clone, Debug)]
pub struct StatusBadge {
    /// The word.
    pub words: &'static str,
    /// How it is meant.
    pub tone: Tone,
}

/// Where a plan comes from.
#[derive(Clone, Debug)]
pub struct PlanHeader {
    /// Who made it.
    pub source: SafeLine,
    /// Why it is so.
    pub rationale: Option<SafeText>,
}

/// A step of the plan.
#[derive(Clone, Debug)]
pub struct PlanStepRow {
    /// What is to be done.
    pub description: SafeLine,
    /// Of which kind it is.
    pub kind: SafeLine,
    /// How far it is.
    pub status: StatusBadge,
}

/// Something that happened.
#[derive(Clone, Debug)]
pub struct EpisodeEventRow {
    /// What: in the gateway's words of its own doing, else the phase.
    pub what: SafeLine,
    /// How it is meant.
    pub tone: Tone,
    /// Who did it; nobody where it was the gateway.
    pub who: Option<SafeLine>,
    /// The review, if one is concerned.
    pub review_url: Option<String>,
    /// What an agent says.
    pub says: Option<SafeJson>,
    /// When.
    pub at: TimestampView,
}

/// A named value.
#[derive(Clone, Debug)]
pub struct NamedValueRow {
    /// Its name.
    pub name: SafeLine,
    /// Its value.
    pub value: SafeJson,
}

/// A file.
#[derive(Clone, Debug)]
pub struct FileRow {
    /// Its name.
    pub name: SafeLine,
    /// Where it is.
    pub url: String,
    /// What it holds.
    pub words: &'static str,
}
