//! Several reviews decided at once: what each is about, why some cannot be, and what became of each.

use askama::Template;

use crate::web::pages::reviews::review_view::Rationale;
use crate::web::pages::shared::headline::Headline;
use crate::web::pages::shared::layout::{DigestText, PageLayout, TimestampView, Tone};
use crate::web::pages::shared::proof_rows::OpeningRow;
use crate::web::pages::shared::proof_rows::WriterReads;
use crate::web::pages::shared::safe_text::{SafeLine, SafeText};
use crate::web::pages::shared::widgets::RequesterView;
use crate::web::pages::shared::widgets::Urgency;
use crate::web::pages::shared::widgets::{CommentRequirement, HoldReasonView, ToolCallView, VerdictView};

/// Answers the ticks: what is decided is what this page shows.
#[derive(Template, Clone, Debug)]
#[template(path = "several.html")]
pub struct BulkDecisionPage {
    pub shell: PageLayout,
    /// The session's CSRF token.
    pub csrf: String,
    /// Which page this is; part of what its nonces are for.
    pub sheet: String,
    pub flow: SafeLine,
    /// The policy of all of them.
    pub policy: DigestText,
    /// Why all of them are held.
    pub reasons: Vec<HoldReasonView>,
    pub rows: Vec<BulkReviewRow>,
    /// What was ticked and is not among them.
    pub left_out: Vec<ExcludedReviewRow>,
    /// Whether a comment must be given.
    pub comment: CommentRequirement,
    /// What was typed, when the page comes again.
    pub typed: SafeText,
    /// Why the page comes again.
    pub problem: Option<String>,
    /// What follows where a vote is the last that is needed.
    pub consequence: String,
}

#[derive(Clone, Debug)]
pub struct BulkReviewRow {
    /// Review, stage, digest and one-time nonce, as the form sends them.
    pub token: String,
    pub url: String,
    pub headline: Headline,
    pub thread: SafeLine,
    /// What the host calls the thread.
    pub title: Option<SafeLine>,
    /// For whom the thread works, if the host said.
    pub on_behalf_of: Option<SafeLine>,
    pub asked_by: Option<RequesterView>,
    pub digest: DigestText,
    /// "1 more from finance".
    pub needs: String,
    pub deadline: TimestampView,
    pub urgency: Urgency,
    /// Everything that differs, protected keys first.
    pub rows: Vec<OpeningRow>,
    /// What each writer node would read.
    pub writers: Vec<WriterReads>,
    /// The tool that the agent calls along with it.
    pub call: Option<ToolCallView>,
    /// What the agent says it used.
    pub usage: Option<SafeLine>,
    pub warnings: Vec<HoldReasonView>,
    /// What the agent says of it.
    pub rationale: Option<Rationale>,
}

/// One that is not among them.
#[derive(Clone, Debug)]
pub struct ExcludedReviewRow {
    pub url: String,
    pub headline: Headline,
    pub thread: SafeLine,
    pub why: String,
}

/// Answers ticks that cannot be decided at once.
#[derive(Template, Clone, Debug)]
#[template(path = "several_apart.html")]
pub struct BulkGroupsPage {
    pub shell: PageLayout,
    /// The session's CSRF token.
    pub csrf: String,
    pub problem: String,
    /// Those that are alike, to go on with.
    pub groups: Vec<Vec<BulkGroupRow>>,
    /// What cannot be decided at once at all.
    pub left_out: Vec<ExcludedReviewRow>,
}

/// One of those that are alike.
#[derive(Clone, Debug)]
pub struct BulkGroupRow {
    /// The review's id, as the form sends it.
    pub review: String,
    pub url: String,
    pub headline: Headline,
    pub flow: SafeLine,
    pub thread: SafeLine,
}

/// What became of each vote.
#[derive(Template, Clone, Debug)]
#[template(path = "several_told.html")]
pub struct BulkResultPage {
    pub shell: PageLayout,
    pub verdict: VerdictView,
    pub counted: usize,
    pub rows: Vec<BulkResultRow>,
    /// What was typed, if some of it was not counted.
    pub unsent: Option<SafeText>,
}

#[derive(Clone, Debug)]
pub struct BulkResultRow {
    pub url: String,
    pub headline: Headline,
    pub thread: SafeLine,
    pub word: &'static str,
    pub tone: Tone,
    pub words: String,
    /// Who decided it, if somebody did.
    pub by: Vec<SafeLine>,
    /// When it ended, if it did.
    pub at: Option<TimestampView>,
}

impl BulkResultPage {
    pub fn title(&self) -> String {
        match (self.counted, self.rows.len()) {
            (1, 1) => "Your vote is counted".to_owned(),
            (counted, all) if counted == all => format!("All {all} votes are counted"),
            (0, _) => "None of your votes was counted".to_owned(),
            (counted, all) => format!("{counted} of your {all} votes are counted"),
        }
    }
}
