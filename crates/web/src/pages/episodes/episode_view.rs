//! View of an episode: plan, timeline, outcomes and files.

use askama::Template;

use crate::pages::shared::layout::{PageLayout, TimestampView, Tone};
use crate::pages::shared::safe_text::{SafeJson, SafeLine, SafeText};

/// `GET /threads/{thread}/episode`.
#[derive(Template, Clone, Debug)]
#[template(path = "episode.html")]
pub struct EpisodePage {
    pub shell: PageLayout,
    pub thread: SafeLine,
    pub head: EpisodeHeadView,
    pub task: SafeLine,
    pub status: StatusBadge,
    /// The agents' own summary, which is an unverified claim.
    pub summary: Option<SafeText>,
    pub begun: TimestampView,
    pub plan: Option<PlanHeader>,
    pub steps: Vec<PlanStepRow>,
    pub events: Vec<EpisodeEventRow>,
    /// Number of earlier events that the page leaves out.
    pub earlier: usize,
    /// Metrics and artifacts.
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

/// Header of an imported episode.
#[derive(Clone, Debug)]
pub struct ImportHeader {
    pub episode: SafeLine,
    pub by: SafeLine,
    pub at: TimestampView,
    pub vouched: ImportSignerView,
    /// Parts that could not be verified.
    pub untold: Vec<UnverifiedRow>,
}

/// Signer of an imported episode, with the key that the manifest names.
#[derive(Clone, Debug)]
pub enum ImportSignerView {
    Nobody,
    Unchecked(SafeLine),
    Gateway(SafeLine),
    /// This gateway, with a key that has been revoked since.
    Revoked(SafeLine),
    /// Another gateway. The importer provided its key.
    Other {
        issuer: SafeLine,
        kid: SafeLine,
    },
}

/// A part of an imported folder that could not be verified.
#[derive(Clone, Debug)]
pub struct UnverifiedRow {
    pub file: SafeLine,
    pub about: Option<SafeLine>,
    pub words: &'static str,
}

/// State in words, so that it does not depend on colour alone.
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
    /// Description of a gateway event, or the phase of an agent's event.
    pub what: SafeLine,
    pub tone: Tone,
    /// The agent. `None` for events of the gateway.
    pub who: Option<SafeLine>,
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
