//! Pages for a decision about several reviews: the reviews, the groups that need separate decisions, and the results.

use askama::Template;

use crate::pages::reviews::review_view::Rationale;
use crate::pages::shared::headline::Headline;
use crate::pages::shared::layout::{DigestText, PageLayout, TimestampView, Tone};
use crate::pages::shared::proof_rows::OpeningRow;
use crate::pages::shared::proof_rows::WriterReads;
use crate::pages::shared::safe_text::{SafeLine, SafeText};
use crate::pages::shared::tool_call::ToolCallView;
use crate::pages::shared::widgets::RequesterView;
use crate::pages::shared::widgets::Urgency;
use crate::pages::shared::widgets::{CommentRequirement, HoldReasonView, VerdictView};

/// The page on which selected reviews are decided. Only the reviews on this page are decided.
#[derive(Template, Clone, Debug)]
#[template(path = "several.html")]
pub struct BulkDecisionPage {
    pub shell: PageLayout,
    pub csrf: String,
    /// Random name of this page, to which its nonces are bound.
    pub sheet: String,
    pub flow: SafeLine,
    pub policy: DigestText,
    pub reasons: Vec<HoldReasonView>,
    pub rows: Vec<BulkReviewRow>,
    /// Selected reviews that cannot be decided here.
    pub left_out: Vec<ExcludedReviewRow>,
    pub comment: CommentRequirement,
    /// The typed comment, if the form was rejected.
    pub typed: SafeText,
    /// Why the form was rejected.
    pub problem: Option<String>,
    /// The effect of the last required vote.
    pub consequence: String,
}

#[derive(Clone, Debug)]
pub struct BulkReviewRow {
    /// Review, stage, digest and one-time nonce, as the form sends them.
    pub token: String,
    pub url: String,
    pub headline: Headline,
    pub thread: SafeLine,
    /// Title that the host application gave to the thread.
    pub title: Option<SafeLine>,
    /// The beneficiary of the thread, as the host application reported it.
    pub on_behalf_of: Option<SafeLine>,
    pub asked_by: Option<RequesterView>,
    pub digest: DigestText,
    /// "1 more from finance".
    pub needs: String,
    pub deadline: TimestampView,
    pub urgency: Urgency,
    /// All changed values, protected keys first.
    pub rows: Vec<OpeningRow>,
    pub writers: Vec<WriterReads>,
    pub call: Option<ToolCallView>,
    /// Usage that the agent reports.
    pub usage: Option<SafeLine>,
    pub warnings: Vec<HoldReasonView>,
    pub rationale: Option<Rationale>,
}

/// A selected review that cannot be decided with the others.
#[derive(Clone, Debug)]
pub struct ExcludedReviewRow {
    pub url: String,
    pub headline: Headline,
    pub thread: SafeLine,
    pub why: String,
}

/// The page for selected reviews that cannot be decided together.
#[derive(Template, Clone, Debug)]
#[template(path = "several_apart.html")]
pub struct BulkGroupsPage {
    pub shell: PageLayout,
    pub csrf: String,
    pub problem: String,
    /// Groups of similar reviews, each of which can be decided together.
    pub groups: Vec<Vec<BulkGroupRow>>,
    /// Reviews that must be decided on their own pages.
    pub left_out: Vec<ExcludedReviewRow>,
}

#[derive(Clone, Debug)]
pub struct BulkGroupRow {
    /// Review id.
    pub review: String,
    pub url: String,
    pub headline: Headline,
    pub flow: SafeLine,
    pub thread: SafeLine,
}

/// The result page with one row for each vote.
#[derive(Template, Clone, Debug)]
#[template(path = "several_told.html")]
pub struct BulkResultPage {
    pub shell: PageLayout,
    pub verdict: VerdictView,
    pub counted: usize,
    pub rows: Vec<BulkResultRow>,
    /// The typed comment, if a vote was not counted.
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
    /// Names of the deciding voters, if the review has ended.
    pub by: Vec<SafeLine>,
    /// Time of the end of the review, if it has ended.
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
