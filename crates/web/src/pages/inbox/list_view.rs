//! The inbox page.

use askama::Template;
use countersign_domain::reviews::HoldOutcome;

use crate::pages::interrupts::view::InterruptRow;
use crate::pages::policies::list_view::PolicyChangeRow;
use crate::pages::shared::headline::Headline;
use crate::pages::shared::layout::{PageLayout, TimestampView};
use crate::pages::shared::safe_text::{SafeLine, SafePath, SafeText};
use crate::pages::shared::widgets::{HoldOutcomeView, ReviewBadge, Urgency};

/// `GET /`.
#[derive(Template, Clone, Debug)]
#[template(path = "inbox.html")]
pub struct InboxPage {
    pub shell: PageLayout,
    pub scope: InboxScope,
    pub tabs: Vec<InboxTab>,
    pub form: SearchForm,
    /// CSRF token of the form that decides several reviews, if the page has several.
    pub deciding_several: Option<String>,
    /// Pending reviews, nearest deadline first unless the page shows a search.
    pub waiting: Vec<WaitingRow>,
    /// Policy change requests that the reader can decide.
    pub policies: Vec<PolicyChangeRow>,
    /// Open interrupts from host applications, nearest deadline first.
    pub interrupts: Vec<InterruptRow>,
    /// URL of the first interrupts, if this page shows later ones.
    pub interrupts_first: Option<String>,
    /// URL of the later interrupts.
    pub interrupts_next: Option<String>,
    /// Ended reviews, newest first.
    pub decided: Vec<DecidedRow>,
    pub previous_url: Option<String>,
    pub next_url: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InboxScope {
    /// Waiting reviews and the most recently ended ones.
    Overview,
    Chosen(InboxTabKind),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InboxTabKind {
    Waiting,
    /// Reviews that the reader can decide.
    Mine,
    /// Reviews that expire soon.
    Soon,
    /// All ended reviews.
    Past,
    /// Ended reviews with one outcome.
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
    /// All filters, in the order of the form.
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
    /// Review id, if the review can be decided together with others.
    pub tick: Option<String>,
    pub url: String,
    pub headline: Headline,
    pub flow: SafeLine,
    pub thread: SafeLine,
    pub protected: Vec<SafePath>,
    /// Reasons for the approval.
    pub reasons: Vec<SafeLine>,
    /// The beneficiary of the thread, as the host application reported it.
    pub on_behalf_of: Option<SafeLine>,
    /// Votes of the open stage.
    pub votes: StageVotesView,
    pub deadline: TimestampView,
    pub urgency: Urgency,
    /// The reader's part in the review, and warnings.
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
    /// Names of the deciding voters. Empty for an expiry.
    pub by: Vec<SafeLine>,
    pub at: TimestampView,
}
