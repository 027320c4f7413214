//! What another policy would have made of a flow's recorded proposals.

use askama::Template;

use crate::web::pages::policies::rejections_view::ErrorRow;
use crate::web::pages::policies::what_if_view::FlowChoice;
use crate::web::pages::shared::layout::{PageLayout, TimestampView, Tone};
use crate::web::pages::shared::safe_text::SafeLine;

/// `GET /replays`, and what a submit there comes to.
#[derive(Template, Clone, Debug)]
#[template(path = "replays.html")]
pub struct ReplaysPage {
    /// The frame.
    pub shell: PageLayout,
    /// What there is to choose from.
    pub flows: Vec<FlowChoice>,
    /// The policy as it was typed.
    pub policy: String,
    /// What could not be read of it.
    pub problem: Option<String>,
    /// What came of it.
    pub told: Option<ReplaySummary>,
    /// The session's CSRF token.
    pub csrf: String,
}

/// Some proposals, held against the policy.
#[derive(Clone, Debug)]
pub struct ReplaySummary {
    /// How it is meant.
    pub tone: Tone,
    /// "Of 12 proposals 1 would end otherwise."
    pub words: String,
    /// Those that would end otherwise, and those of which it cannot be told.
    pub rows: Vec<ReplayRow>,
    /// Where to go on.
    pub next: Option<SafeLine>,
}

/// A proposal that would end otherwise, or of which it cannot be told.
#[derive(Clone, Debug)]
pub struct ReplayRow {
    /// As which node.
    pub node: SafeLine,
    /// Its thread.
    pub thread: SafeLine,
    /// The thread's page.
    pub thread_url: String,
    /// On which version.
    pub version: u64,
    /// What became of it.
    pub was: &'static str,
    /// The codes that it had.
    pub was_codes: Vec<SafeLine>,
    /// What would become of it.
    pub would_be: ReplayResultView,
    /// When.
    pub at: TimestampView,
}

/// What would become of a proposal.
#[derive(Clone, Debug)]
pub enum ReplayResultView {
    /// This.
    Be {
        /// How it is meant.
        tone: Tone,
        /// "it would be held".
        words: &'static str,
        /// Why it would be held.
        reasons: Vec<SafeLine>,
        /// Why it would be rejected.
        errors: Vec<ErrorRow>,
        /// Errors beyond those listed.
        more: usize,
    },
    /// It cannot be told, for this reason.
    Unknown(&'static str),
}
