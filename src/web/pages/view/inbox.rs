//! What waits, and what was decided lately.

use askama::Template;

use super::headline::Headline;
use super::policies::AmendmentRow;
use super::shell::{Moment, Shell, Tone};
use super::text::{Line, Path};

/// `GET /`.
#[derive(Template, Clone, Debug)]
#[template(path = "inbox.html")]
pub struct InboxPage {
    /// The frame.
    pub shell: Shell,
    /// Open holds, the one with the nearest deadline first.
    pub waiting: Vec<WaitingRow>,
    /// Policies that wait for the reader's approval.
    pub policies: Vec<AmendmentRow>,
    /// What was decided lately, the newest first.
    pub decided: Vec<DecidedRow>,
    /// Whether more wait than are listed.
    pub more: More,
}

/// Whether a list is whole.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum More {
    /// It is.
    None,
    /// Others follow.
    Some,
}

impl More {
    /// Whether others follow.
    pub const fn is_some(self) -> bool {
        matches!(self, Self::Some)
    }
}

/// An open hold.
#[derive(Clone, Debug)]
pub struct WaitingRow {
    /// The review's page.
    pub url: String,
    /// The change in words.
    pub headline: Headline,
    /// Its flow.
    pub flow: Line,
    /// Its thread.
    pub thread: Line,
    /// Protected keys that it touches.
    pub protected: Vec<Path>,
    /// Why it was held, a phrase each.
    pub reasons: Vec<Line>,
    /// For whom the thread works, if the host said.
    pub on_behalf_of: Option<Line>,
    /// Votes of the stage that is open.
    pub votes: Votes,
    /// When it ends by itself.
    pub deadline: Moment,
    /// Whether the deadline is near.
    pub urgency: Urgency,
    /// What the reader is to it, and what to beware of.
    pub badges: Vec<Badge>,
}

/// How far a stage is.
#[derive(Clone, Debug)]
pub struct Votes {
    /// Approvals so far.
    pub got: u32,
    /// Approvals needed.
    pub need: u32,
    /// From which groups.
    pub groups: Vec<Line>,
}

/// How near a deadline is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Urgency {
    /// Hours.
    Calm,
    /// Minutes.
    Soon,
}

impl Urgency {
    /// Whether the page says so.
    pub const fn is_soon(self) -> bool {
        matches!(self, Self::Soon)
    }
}

/// A word beside a row.
#[derive(Clone, Debug)]
pub enum Badge {
    /// Waits for the reader's vote.
    Yours,
    /// The reader has voted; others have not.
    Voted,
    /// The reader may not decide, and why: "proposed by your agent".
    CannotDecide(String),
    /// An earlier write of this thread may or may not have happened.
    WriteOutcomeUnknown,
}

impl Badge {
    /// The badge in words.
    pub fn words(&self) -> String {
        match self {
            Self::Yours => "yours".to_owned(),
            Self::Voted => "you voted".to_owned(),
            Self::CannotDecide(why) => format!("you cannot decide: {why}"),
            Self::WriteOutcomeUnknown => "earlier write unknown".to_owned(),
        }
    }

    /// How it is meant.
    pub const fn tone(&self) -> Tone {
        match self {
            Self::Yours => Tone::Good,
            Self::Voted | Self::CannotDecide(_) => Tone::Plain,
            Self::WriteOutcomeUnknown => Tone::Care,
        }
    }
}

/// A hold that has ended.
#[derive(Clone, Debug)]
pub struct DecidedRow {
    /// The review's page.
    pub url: String,
    /// The change in words.
    pub headline: Headline,
    /// Its flow.
    pub flow: Line,
    /// Its thread.
    pub thread: Line,
    /// How it ended.
    pub outcome: super::review::Outcome,
    /// By whom: names, or nobody for an expiry.
    pub by: Vec<Line>,
    /// When.
    pub at: Moment,
}
