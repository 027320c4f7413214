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
    pub shell: PageLayout,
    /// What there is to choose from.
    pub flows: Vec<FlowChoice>,
    /// The policy as it was typed.
    pub policy: String,
    /// What could not be read of it.
    pub problem: Option<String>,
    pub told: Option<ReplaySummary>,
    /// The session's CSRF token.
    pub csrf: String,
}

/// Some proposals, held against the policy.
#[derive(Clone, Debug)]
pub struct ReplaySummary {
    pub tone: Tone,
    /// "Of 12 proposals, 1 would end differently."
    pub words: String,
    /// Those that would end otherwise, and those of which it cannot be told.
    pub rows: Vec<ReplayRow>,
    pub next: Option<SafeLine>,
}

/// A proposal that would end otherwise, or of which it cannot be told.
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

/// What would become of a proposal.
#[derive(Clone, Debug)]
pub enum ReplayResultView {
    Be {
        tone: Tone,
        words: &'static str,
        reasons: Vec<SafeLine>,
        /// Why it would be rejected.
        errors: Vec<ErrorRow>,
        /// Errors beyond those listed.
        more: usize,
    },
    /// It cannot be told, for this reason.
    Unknown(&'static str),
}
