//! The page of a thread: its chain, branches and ended reviews.

use askama::Template;

use crate::pages::shared::headline::HeadlineChange;
use crate::pages::shared::layout::{DigestText, PageLayout, TimestampView, Tone};
use crate::pages::shared::safe_text::SafeLine;
use crate::pages::shared::tool_call::ToolCallMention;
use crate::pages::shared::widgets::GateView;
use crate::pages::shared::widgets::HoldOutcomeView;
use crate::pages::shared::widgets::RequesterView;

/// `GET /threads/{thread}`.
#[derive(Template, Clone, Debug)]
#[template(path = "thread.html")]
pub struct ThreadPage {
    pub shell: PageLayout,
    pub thread: SafeLine,
    pub title: Option<SafeLine>,
    pub flow: SafeLine,
    pub on_behalf_of: Option<SafeLine>,
    /// URL of the episode, if the thread is an agent run.
    pub episode_url: Option<String>,
    /// The forked thread, if this thread is a branch.
    pub origin: Option<OriginRow>,
    /// Branches of this thread, newest first.
    pub branches: Vec<BranchRow>,
    /// URL of the earlier branches.
    pub earlier_branches_url: Option<String>,
    pub status: ThreadStatusView,
    /// Whether the head can be written: "Its head can be written without approval."
    pub standing: String,
    pub head: u64,
    pub entries: Vec<EntryRow>,
    /// Reviews without a commit.
    pub ended: Vec<EndedReviewRow>,
    pub older_url: Option<String>,
}

/// The thread and version from which a branch was forked.
#[derive(Clone, Debug)]
pub struct OriginRow {
    /// Name of the branch.
    pub name: SafeLine,
    pub thread: SafeLine,
    pub thread_url: String,
    pub version: u64,
    pub version_url: String,
}

#[derive(Clone, Debug)]
pub struct BranchRow {
    pub name: SafeLine,
    pub url: String,
    /// The forked version.
    pub version: u64,
    pub version_url: String,
    pub became: BranchStatusView,
}

#[derive(Clone, Debug)]
pub struct BranchStatusView {
    pub words: String,
    pub tone: Tone,
    pub url: Option<String>,
}

#[derive(Clone, Debug)]
pub enum ThreadStatusView {
    Open,
    /// URL of the pending review.
    Held(String),
    Writing,
    Closed,
}

impl ThreadStatusView {
    pub const fn words(&self) -> &'static str {
        match self {
            Self::Open => "Open",
            Self::Held(_) => "Waiting for approval",
            Self::Writing => "Being written",
            Self::Closed => "Closed",
        }
    }

    pub const fn tone(&self) -> Tone {
        match self {
            Self::Open | Self::Closed => Tone::Plain,
            Self::Held(_) | Self::Writing => Tone::Care,
        }
    }
}

#[derive(Clone, Debug)]
pub struct EntryRow {
    pub url: String,
    pub version: u64,
    /// Label of the transition type: "created by the host", "proposed by".
    pub step: String,
    pub node: Option<SafeLine>,
    pub gate: GateView,
    /// The requester, if known.
    pub by: Option<RequesterView>,
    pub changed: Vec<HeadlineChange>,
    pub call: Option<ToolCallMention>,
    /// Number of changes beyond the listed ones.
    pub more_changed: usize,
    pub digest: DigestText,
    pub at: TimestampView,
    /// Status of the write: "written, recorded as version 4".
    pub write: Option<WriteStatusView>,
}

#[derive(Clone, Debug)]
pub struct WriteStatusView {
    pub tone: Tone,
    pub words: SafeLine,
}

#[derive(Clone, Debug)]
pub struct EndedReviewRow {
    pub url: String,
    pub headline: crate::pages::shared::headline::Headline,
    pub outcome: HoldOutcomeView,
    pub at: TimestampView,
}
