//! The replay page.

use askama::Template;

use crate::pages::policies::rejections_view::ErrorRow;
use crate::pages::policies::what_if_view::FlowChoice;
use crate::pages::shared::layout::{PageLayout, TimestampView, Tone};
use crate::pages::shared::safe_text::SafeLine;

/// The form and the result of a replay.
#[derive(Template, Clone, Debug)]
#[template(path = "replays.html")]
pub struct ReplaysPage {
    pub shell: PageLayout,
    pub flows: Vec<FlowChoice>,
    /// The typed policy.
    pub policy: String,
    /// Error of the form.
    pub problem: Option<String>,
    pub told: Option<ReplaySummary>,
    pub csrf: String,
}

/// The result of a replay.
#[derive(Clone, Debug)]
pub struct ReplaySummary {
    pub tone: Tone,
    /// "12 proposals: 1 would end differently."
    pub words: String,
    /// Proposals with another outcome, and proposals that cannot be evaluated.
    pub rows: Vec<ReplayRow>,
    pub next: Option<SafeLine>,
}

/// A proposal with another outcome, or one that cannot be evaluated.
#[derive(Clone, Debug)]
pub struct ReplayRow {
    pub node: SafeLine,
    pub thread: SafeLine,
    pub thread_url: String,
    pub version: u64,
    pub was: &'static str,
    pub was_codes: Vec<SafeLine>,
    pub would_be: ReplayResultView,
    pub at: TimestampView,
}

/// The outcome of a proposal under the other policy.
#[derive(Clone, Debug)]
pub enum ReplayResultView {
    Be {
        tone: Tone,
        words: &'static str,
        reasons: Vec<SafeLine>,
        errors: Vec<ErrorRow>,
        /// Number of errors beyond the listed ones.
        more: usize,
    },
    /// The reason why the proposal cannot be evaluated.
    Unknown(&'static str),
}
