//! A thread's chain, the newest version first.

use askama::Template;

use crate::web::pages::shared::headline::HeadlineChange;
use crate::web::pages::shared::layout::{DigestText, PageLayout, TimestampView, Tone};
use crate::web::pages::shared::safe_text::SafeLine;
use crate::web::pages::shared::widgets::GateView;
use crate::web::pages::shared::widgets::HoldOutcomeView;
use crate::web::pages::shared::widgets::RequesterView;

/// `GET /threads/{thread}`.
#[derive(Template, Clone, Debug)]
#[template(path = "thread.html")]
pub struct ThreadPage {
    pub shell: PageLayout,
    pub thread: SafeLine,
    pub title: Option<SafeLine>,
    pub flow: SafeLine,
    pub on_behalf_of: Option<SafeLine>,
    /// The page of the run that it is, if it is one.
    pub episode_url: Option<String>,
    /// The thread that it is a branch of, if it is one.
    pub origin: Option<OriginRow>,
    /// The branches that were made of it, the last first.
    pub branches: Vec<BranchRow>,
    /// The page with those that were made before, if there are any.
    pub earlier_branches_url: Option<String>,
    pub status: ThreadStatusView,
    /// Whether its head may be written: "The head owes an approval: it cannot be written without a receipt."
    pub standing: String,
    pub head: u64,
    pub entries: Vec<EntryRow>,
    /// Reviews that led to no entry, and such.
    pub ended: Vec<EndedReviewRow>,
    /// The next page, if there is one.
    pub older_url: Option<String>,
}

/// What a branch is a branch of.
#[derive(Clone, Debug)]
pub struct OriginRow {
    /// What the branch is called.
    pub name: SafeLine,
    /// The thread that was forked.
    pub thread: SafeLine,
    pub thread_url: String,
    /// Which version of it was forked.
    pub version: u64,
    /// The page of that version.
    pub version_url: String,
}

#[derive(Clone, Debug)]
pub struct BranchRow {
    pub name: SafeLine,
    pub url: String,
    /// Of which version it was made.
    pub version: u64,
    /// The page of that version.
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
    /// Waits for the review at this address.
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
    /// What kind of step it was, with its node: "created", "proposed by planner".
    pub step: String,
    pub node: Option<SafeLine>,
    pub gate: GateView,
    /// Who asked, if that is known.
    pub by: Option<RequesterView>,
    pub changed: Vec<HeadlineChange>,
    /// How many more changed than are listed.
    pub more_changed: usize,
    pub digest: DigestText,
    pub at: TimestampView,
    /// What became of its receipt or write: "written by database_writer, fence 4".
    pub write: Option<WriteStatusView>,
}

/// What became of a receipt or a write.
#[derive(Clone, Debug)]
pub struct WriteStatusView {
    pub tone: Tone,
    pub words: SafeLine,
}

/// A review that led to no entry.
#[derive(Clone, Debug)]
pub struct EndedReviewRow {
    pub url: String,
    pub headline: crate::web::pages::shared::headline::Headline,
    pub outcome: HoldOutcomeView,
    pub at: TimestampView,
}
