//! A run of agents: what they meant to do, what happened, and what came of it.

use askama::Template;

use crate::web::pages::shared::layout::{PageLayout, TimestampView, Tone};
use crate::web::pages::shared::safe_text::{SafeJson, SafeLine, SafeText};

/// `GET /threads/{thread}/episode`.
#[derive(Template, Clone, Debug)]
#[template(path = "episode.html")]
pub struct EpisodePage {
    pub shell: PageLayout,
    pub thread: SafeLine,
    pub head: EpisodeHeadView,
    pub task: SafeLine,
    pub status: StatusBadge,
    /// What it says that it came to.
    pub summary: Option<SafeText>,
    pub begun: TimestampView,
    /// Who made the plan, and why it is so.
    pub plan: Option<PlanHeader>,
    /// The plan's steps, in order.
    pub steps: Vec<PlanStepRow>,
    pub events: Vec<EpisodeEventRow>,
    /// How many earlier events are not listed.
    pub earlier: usize,
    /// The run in numbers, and what it made.
    pub outcomes: Vec<NamedValueRow>,
    pub files: Vec<FileRow>,
}

#[derive(Clone, Debug)]
pub enum EpisodeHeadView {
    /// A thread of this gateway.
    Own {
        thread_url: String,
        flow: SafeLine,
    },
    Imported(Box<ImportHeader>),
}

/// Of a run that was imported.
#[derive(Clone, Debug)]
pub struct ImportHeader {
    pub episode: SafeLine,
    pub by: SafeLine,
    pub at: TimestampView,
    pub vouched: ImportSignerView,
    /// What could not be told of it.
    pub untold: Vec<UnverifiedRow>,
}

/// Who vouches for an imported run, each with the key that the manifest names.
#[derive(Clone, Debug)]
pub enum ImportSignerView {
    Nobody,
    Unchecked(SafeLine),
    Gateway(SafeLine),
    /// This gateway did, and its key was revoked since.
    Revoked(SafeLine),
    /// Another gateway, whose key was given along.
    Other {
        issuer: SafeLine,
        kid: SafeLine,
    },
}

/// Something that could not be told of a folder.
#[derive(Clone, Debug)]
pub struct UnverifiedRow {
    pub file: SafeLine,
    pub about: Option<SafeLine>,
    pub words: &'static str,
}

/// A word that is never told by its colour alone.
#[derive(Clone, Debug)]
pub struct StatusBadge {
    pub words: &'static str,
    pub tone: Tone,
}

#[derive(Clone, Debug)]
pub struct PlanHeader {
    pub source: SafeLine,
    pub rationale: Option<SafeText>,
}

#[derive(Clone, Debug)]
pub struct PlanStepRow {
    pub description: SafeLine,
    pub kind: SafeLine,
    pub status: StatusBadge,
}

#[derive(Clone, Debug)]
pub struct EpisodeEventRow {
    /// What: in the gateway's words of its own doing, else the phase.
    pub what: SafeLine,
    pub tone: Tone,
    /// Who did it; nobody where it was the gateway.
    pub who: Option<SafeLine>,
    /// The review, if one is concerned.
    pub review_url: Option<String>,
    pub says: Option<SafeJson>,
    pub at: TimestampView,
}

#[derive(Clone, Debug)]
pub struct NamedValueRow {
    pub name: SafeLine,
    pub value: SafeJson,
}

#[derive(Clone, Debug)]
pub struct FileRow {
    pub name: SafeLine,
    pub url: String,
    pub words: &'static str,
}
