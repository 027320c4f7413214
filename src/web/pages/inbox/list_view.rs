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
    pub next_url: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InboxScope {
    /// What waits, and a little of what was decided.
    Overview,
    Chosen(InboxTabKind),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InboxTabKind {
    Waiting,
    /// What waits for the reader.
    Mine,
    /// What waits and ends soon.
    Soon,
    /// Everything that has ended.
    Past,
    /// What has ended in one way.
    Ended(HoldOutcome),
    Everything,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ActiveMark {
    On,
    Off,
}

#[derive(Clone, Debug)]
pub struct InboxTab {
    pub url: String,
    pub words: &'static str,
    pub mark: ActiveMark,
}

#[derive(Clone, Debug)]
pub struct SearchForm {
    pub typed: SafeText,
    pub show: Vec<InboxFilterOption>,
    pub flows: Vec<InboxFilterOption>,
}

#[derive(Clone, Debug)]
pub struct InboxFilterOption {
    pub value: String,
    pub words: String,
    pub mark: ActiveMark,
}

impl ActiveMark {
    pub const fn is_on(self) -> bool {
        matches!(self, Self::On)
    }
}

impl InboxScope {
    /// Whether it is the inbox as one comes to it.
    pub const fn is_overview(self) -> bool {
        matches!(self, Self::Overview)
    }

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

    pub const fn words(self) -> &'static str {
        match self {
            Self::Waiting => "Waiting",
            Self::Mine => "Waiting for you",
            Self::Soon => "Expiring soon",
            Self::Past => "Ended",
            Self::Ended(HoldOutcome::Approved) => "Approved",
            Self::Ended(HoldOutcome::Denied) => "Denied",
            Self::Ended(HoldOutcome::Expired) => "Expired",
            Self::Ended(HoldOutcome::Cancelled) => "Cancelled",
            Self::Ended(HoldOutcome::Superseded) => "Superseded",
            Self::Everything => "Everything",
        }
    }

    pub fn read(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.word() == word)
    }
}

#[derive(Clone, Debug)]
pub struct WaitingRow {
    /// The review's id, where it may be decided together with others.
    pub tick: Option<String>,
    pub url: String,
    pub headline: Headline,
    pub flow: SafeLine,
    pub thread: SafeLine,
    /// Protected keys that it touches.
    pub protected: Vec<SafePath>,
    /// Why it was held, a phrase each.
    pub reasons: Vec<SafeLine>,
    /// For whom the thread works, if the host said.
    pub on_behalf_of: Option<SafeLine>,
    /// Votes of the stage that is open.
    pub votes: StageVotesView,
    pub deadline: TimestampView,
    /// Whether the deadline is near.
    pub urgency: Urgency,
    /// What the reader is to it, and what to beware of.
    pub badges: Vec<ReviewBadge>,
}

#[derive(Clone, Debug)]
pub struct StageVotesView {
    pub got: u32,
    pub need: u32,
    pub groups: Vec<SafeLine>,
}

#[derive(Clone, Debug)]
pub struct DecidedRow {
    pub url: String,
    pub headline: Headline,
    pub flow: SafeLine,
    pub thread: SafeLine,
    pub outcome: HoldOutcomeView,
    /// By whom: names, or nobody for an expiry.
    pub by: Vec<SafeLine>,
    pub at: TimestampView,
}
