//! A thread's chain, the newest version first.

use askama::Template;

use crate::web::pages::shared::headline::HeadChange;
use crate::web::pages::shared::layout::{Hash, Moment, Shell, Tone};
use crate::web::pages::shared::safe_text::Line;
use crate::web::pages::shared::widgets::Asker;
use crate::web::pages::shared::widgets::Gate;
use crate::web::pages::shared::widgets::Outcome;

/// `GET /threads/{thread}`.
#[derive(Template, Clone, Debug)]
#[template(path = "thread.html")]
pub struct ThreadPage {
    /// The frame.
    pub shell: Shell,
    /// Its id.
    pub thread: Line,
    /// What the host calls it.
    pub title: Option<Line>,
    /// Its flow.
    pub flow: Line,
    /// For whom it works.
    pub on_behalf_of: Option<Line>,
    /// The page of the run that it is, if it is one.
    pub episode_url: Option<String>,
    /// The thread that it is a branch of, if it is one.
    pub origin: Option<OriginRow>,
    /// The branches that were made of it, the last first.
    pub branches: Vec<BranchRow>,
    /// The page with those that were made before, if there are any.
    pub earlier_branches_url: Option<String>,
    /// Where it stands.
    pub status: ThreadStatus,
    /// Whether its head may be written: "The head owes an approval: it cannot be written without a receipt."
    pub standing: String,
    /// Its last version.
    pub head: u64,
    /// Its entries.
    pub entries: Vec<EntryRow>,
    /// Reviews that led to no entry, and such.
    pub ended: Vec<EndedRow>,
    /// The next page, if there is one.
    pub older_url: Option<String>,
}

/// What a branch is a branch of.
#[derive(Clone, Debug)]
pub struct OriginRow {
    /// What the branch is called.
    pub name: Line,
    /// The thread that was forked.
    pub thread: Line,
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
    pub name: Line,
    /// Its page.
    pub url: String,
    /// Of which version it was made.
    pub version: u64,
    /// The page of that version.
    pub version_url: String,
    /// What became of it.
    pub became: Became,
}

/// What became of a branch.
#[derive(Clone, Debug)]
pub struct Became {
    /// In words.
    pub words: String,
    /// How it is meant.
    pub tone: Tone,
    /// Where that can be read.
    pub url: Option<String>,
}

/// Where a thread stands.
#[derive(Clone, Debug)]
pub enum ThreadStatus {
    /// Takes proposals.
    Open,
    /// Waits for the review at this address.
    Held(String),
    /// A writer holds its head.
    Writing,
    /// Takes nothing any more.
    Closed,
}

impl ThreadStatus {
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
    pub node: Option<Line>,
    /// How it got in.
    pub gate: Gate,
    /// Who asked, if that is known.
    pub by: Option<Asker>,
    /// What changed.
    pub changed: Vec<HeadChange>,
    /// How many more changed than are listed.
    pub more_changed: usize,
    /// Its digest.
    pub digest: Hash,
    /// When it was committed.
    pub at: Moment,
    /// What became of its receipt or write: "written by database_writer, fence 4".
    pub write: Option<Write>,
}

/// What became of a receipt or a write.
#[derive(Clone, Debug)]
pub struct Write {
    /// How it is meant.
    pub tone: Tone,
    /// In words.
    pub words: Line,
}

/// A review that led to no entry.
#[derive(Clone, Debug)]
pub struct EndedRow {
    /// The review's page.
    pub url: String,
    /// What was asked for.
    pub headline: crate::web::pages::shared::headline::Headline,
    /// How it ended.
    pub outcome: Outcome,
    /// When.
    pub at: Moment,
}
