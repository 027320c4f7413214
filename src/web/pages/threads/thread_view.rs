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
    /// The frame.
    pub shell: PageLayout,
    /// Its id.
    pub thread: SafeLine,
    /// What the host calls it.
    pub title: Option<SafeLine>,
    /// Its flow.
    pub flow: SafeLine,
    /// For whom it works.
    pub on_behalf_of: Option<SafeLine>,
    /// The page of the run that it is, if it is one.
    pub episode_url: Option<String>,
    /// The thread that it is a branch of, if it is one.
    pub origin: Option<OriginRow>,
    /// The branches that were made of it, the last first.
    pub branches: Vec<BranchRow>,
    /// The page with those that were made before, if there are any.
    pub earlier_branches_url: Option<String>,
    /// Where it stands.
    pub status: ThreadStatusView,
    /// Whether its head may be written: "The head owes an approval: it cannot be written without a receipt."
    pub standing: String,
    /// Its last version.
    pub head: u64,
    /// Its entries.
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
    /// Its page.
    pub thread_url: String,
    /// Which version of it was forked.
    pub version: u64,
    /// The page of that version.
    pub version_url: String,
}

/// A branch of a thread.
#[derive(Clone, Debug)]
pub struct BranchRow {
    /// What it is called.
    pub name: SafeLine,
    /// Its page.
    pub url: String,
    /// Of which version it was made.
    pub version: u64,
    /// The page of that version.
    pub version_url: String,
    /// What became of it.
    pub became: BranchStatusView,
}

/// What became of a branch.
#[derive(Clone, Debug)]
pub struct BranchStatusView {
    /// In words.
    pub words: String,
    /// How it is meant.
    pub tone: Tone,
    /// Where that can be read.
    pub url: Option<String>,
}

/// Where a thread stands.
#[derive(Clone, Debug)]
pub enum ThreadStatusView {
    /// Takes proposals.
    Open,
    /// Waits for the review at this address.
    Held(String),
    /// A writer holds its head.
    Writing,
    /// Takes nothing any more.
    Closed,
}

impl ThreadStatusView {
    /// In words.
    pub const fn words(&self) -> &'static str {
        match self {
            Self::Open => "Open",
            Self::Held(_) => "Waits for a decision",
            Self::Writing => "A writer holds it",
            Self::Closed => "Closed",
        }
    }

    /// How it is meant.
    pub const fn tone(&self) -> Tone {
        match self {
            Self::Open | Self::Closed => Tone::Plain,
            Self::Held(_) | Self::Writing => Tone::Care,
        }
    }
}

/// A version.
#[derive(Clone, Debug)]
pub struct EntryRow {
    /// Its page.
    pub url: String,
    /// Its number.
    pub version: u64,
    /// What kind of step it was, with its node: "created", "proposed by planner".
    pub step: String,
    /// Its node, if it has one.
    pub node: Option<SafeLine>,
    /// How it got in.
    pub gate: GateView,
    /// Who asked, if that is known.
    pub by: Option<RequesterView>,
    /// What changed.
    pub changed: Vec<HeadlineChange>,
    /// How many more changed than are listed.
    pub more_changed: usize,
    /// Its digest.
    pub digest: DigestText,
    /// When it was committed.
    pub at: TimestampView,
    /// What became of its receipt or write: "written by database_writer, fence 4".
    pub write: Option<WriteStatusView>,
}

/// What became of a receipt or a write.
#[derive(Clone, Debug)]
pub struct WriteStatusView {
    /// How it is meant.
    pub tone: Tone,
    /// In words.
    pub words: SafeLine,
}

/// A review that led to no entry.
#[derive(Clone, Debug)]
pub struct EndedReviewRow {
    /// The review's page.
    pub url: String,
    /// What was asked for.
    pub headline: crate::web::pages::shared::headline::Headline,
    /// How it ended.
    pub outcome: HoldOutcomeView,
    /// When.
    pub at: TimestampView,
}
