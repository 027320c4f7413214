//! What waits, and what was decided lately.

use askama::Template;

use crate::domain::reviews::HoldOutcome;
use crate::web::pages::interrupts::view::InterruptRow;
use crate::web::pages::policies::list_view::PolicyChangeRow;
use crate::web::pages::shared::headline::Headline;
use crate::web::pages::shared::layout::{PageLayout, TimestampView};
use crate::web::pages::shared::safe_text::{SafeLine, SafePath, SafeText};
use crate::web::pages::shared::widgets::{HoldOutcomeView, ReviewBadge, Urgency};

/// `GET /`.
#[derive(Template, Clone, Debug)]
#[template(path = "inbox.html")]
pub struct InboxPage {
    /// The frame.
    pub shell: PageLayout,
    /// Whether it is the inbox as one comes to it.
    pub scope: InboxScope,
    /// The lists that people go to most.
    pub tabs: Vec<InboxTab>,
    /// The form that finds others.
    pub form: SearchForm,
    /// The CSRF token of the form that decides several at once, where there are several.
    pub deciding_several: Option<String>,
    /// Open holds, the one with the nearest deadline first unless something was searched for.
    pub waiting: Vec<WaitingRow>,
    /// Policies that wait for the reader's approval.
    pub policies: Vec<PolicyChangeRow>,
    /// What hosts ask people about, the nearest deadline first.
    pub interrupts: Vec<InterruptRow>,
    /// Where their first are, if these come later.
    pub interrupts_first: Option<String>,
    /// Where those are that come after these.
    pub interrupts_next: Option<String>,
    /// What has ended, the newest first.
    pub decided: Vec<DecidedRow>,
    /// The page before this one.
    pub previous_url: Option<String>,
    /// The page after it.
    pub next_url: Option<String>,
}

/// What the page lists.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InboxScope {
    /// What waits, and a little of what was decided.
    Overview,
    /// What was chosen.
    Chosen(InboxTabKind),
}

/// What can be chosen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InboxTabKind {
    /// Everything that waits.
    Waiting,
    /// What waits for the reader.
    Mine,
    /// What waits and ends soon.
    Soon,
    /// Everything that has ended.
    Past,
    /// What has ended in one way.
    Ended(HoldOutcome),
    /// All of it.
    Everything,
}

/// Whether it is the one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ActiveMark {
    /// It is.
    On,
    /// It is not.
    Off,
}

/// A list to go to.
#[derive(Clone, Debug)]
pub struct InboxTab {
    /// Where it is.
    pub url: String,
    /// What it lists.
    pub words: &'static str,
    /// Whether it is this page.
    pub mark: ActiveMark,
}

/// What finds others.
#[derive(Clone, Debug)]
pub struct SearchForm {
    /// What was typed.
    pub typed: SafeText,
    /// States to choose from.
    pub show: Vec<InboxFilterOption>,
    /// Flows to choose from.
    pub flows: Vec<InboxFilterOption>,
}

/// One of several.
#[derive(Clone, Debug)]
pub struct InboxFilterOption {
    /// As it is sent.
    pub value: String,
    /// As it is read.
    pub words: String,
    /// Whether it is chosen.
    pub mark: ActiveMark,
}

impl ActiveMark {
    /// Whether it is the one.
    pub const fn is_on(self) -> bool {
        matches!(self, Self::On)
    }
}

impl InboxScope {
    /// Whether it is the inbox as one comes to it.
    pub const fn is_overview(self) -> bool {
        matches!(self, Self::Overview)
    }

    /// Over the list.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Overview => InboxTabKind::Waiting.words(),
            Self::Chosen(show) => show.words(),
        }
    }
}

impl InboxTabKind {
    /// All, as they are offered.
    pub const ALL: [Self; 10] = [
        Self::Waiting,
        Self::Mine,
        Self::Soon,
        Self::Past,
        Self::Ended(HoldOutcome::Approved),
        Self::Ended(HoldOutcome::Denied),
        Self::Ended(HoldOutcome::Expired),
        Self::Ended(HoldOutcome::Cancelled),
        Self::Ended(HoldOutcome::Superseded),
        Self::Everything,
    ];

    /// As addresses have it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Mine => "mine",
            Self::Soon => "soon",
            Self::Past => "past",
            Self::Ended(ending) => ending.word(),
            Self::Everything => "everything",
        }
    }

    /// As people read it.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Waiting => "Waiting",
            Self::Mine => "Yours to decide",
            Self::Soon => "Expiring soon",
            Self::Past => "Past",
            Self::Ended(HoldOutcome::Approved) => "Approved",
            Self::Ended(HoldOutcome::Denied) => "Denied",
            Self::Ended(HoldOutcome::Expired) => "Expired",
            Self::Ended(HoldOutcome::Cancelled) => "Cancelled",
            Self::Ended(HoldOutcome::Superseded) => "Superseded",
            Self::Everything => "Everything",
        }
    }

    /// The one of that word.
    pub fn read(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.word() == word)
    }
}

/// An open hold.
#[derive(Clone, Debug)]
pub struct WaitingRow {
    /// The review's id, where it may be decided together with others.
    pub tick: Option<String>,
    /// The review's page.
    pub url: String,
    /// The change in words.
    pub headline: Headline,
    /// Its flow.
    pub flow: SafeLine,
    /// Its thread.
    pub thread: SafeLine,
    /// Protected keys that it touches.
    pub protected: Vec<SafePath>,
    /// Why it was held, a phrase each.
    pub reasons: Vec<SafeLine>,
    /// For whom the thread works, if the host said.
    pub on_behalf_of: Option<SafeLine>,
    /// Votes of the stage that is open.
    pub votes: StageVotesView,
    /// When it ends by itself.
    pub deadline: TimestampView,
    /// Whether the deadline is near.
    pub urgency: Urgency,
    /// What the reader is to it, and what to beware of.
    pub badges: Vec<ReviewBadge>,
}

/// How far a stage is.
#[derive(Clone, Debug)]
pub struct StageVotesView {
    /// Approvals so far.
    pub got: u32,
    /// Approvals needed.
    pub need: u32,
    /// From which groups.
    pub groups: Vec<SafeLine>,
}

/// A hold that has ended.
#[derive(Clone, Debug)]
pub struct DecidedRow {
    /// The review's page.
    pub url: String,
    /// The change in words.
    pub headline: Headline,
    /// Its flow.
    pub flow: SafeLine,
    /// Its thread.
    pub thread: SafeLine,
    /// How it ended.
    pub outcome: HoldOutcomeView,
    /// By whom: names, or nobody for an expiry.
    pub by: Vec<SafeLine>,
    /// When.
    pub at: TimestampView,
}
