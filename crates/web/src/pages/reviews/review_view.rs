//! The review page: the change, the reasons for the approval, and the decision form.

use askama::Template;

use super::discussion_view::{CommentForm, ExtensionForm, WithdrawalForm};
use super::reveal_view::RevealForm;
use super::revoke_receipt_view::RevocationForm;
use crate::pages::shared::headline::Headline;
use crate::pages::shared::layout::{DigestText, PageLayout, TimestampView};
use crate::pages::shared::proof_rows::{ArrayPointers, WriterReads};
use crate::pages::shared::proof_rows::{OpeningRow, UnchangedRow};
use crate::pages::shared::safe_text::{SafeJson, SafeLine, SafePath, SafeText};
pub use crate::pages::shared::stages::{StageProgress, StageView};
use crate::pages::shared::tool_call::ToolCallView;
use crate::pages::shared::vote_as::{DelegatorRow, VotingSeatLink};
use crate::pages::shared::widgets::{
    CommentRequirement, HoldOutcomeView, HoldReasonView, RequesterView, TimelineItem, Urgency, WriteUncertainty,
};

/// `GET /reviews/{id}`.
#[derive(Template, Clone, Debug)]
#[template(path = "review.html")]
pub struct ReviewPage {
    pub shell: PageLayout,
    pub headline: Headline,
    pub standing: ReviewStatusView,
    /// Seconds until the deadline, if the review is open.
    pub ends_in: Option<u64>,
    pub flow: SafeLine,
    pub thread: SafeLine,
    pub thread_url: String,
    /// Title that the host application gave to the thread.
    pub title: Option<SafeLine>,
    /// The beneficiary of the thread, as the host application reported it.
    pub on_behalf_of: Option<SafeLine>,
    pub asked_by: Option<RequesterView>,
    pub reasons: Vec<HoldReasonView>,
    pub warnings: Vec<HoldReasonView>,
    pub denied_before: Option<EarlierDenialsView>,
    pub writers: Vec<WriterReads>,
    /// All changed values, protected keys first.
    pub rows: Vec<OpeningRow>,
    /// Unchanged values and commitments of the opening.
    pub unchanged: Vec<UnchangedRow>,
    pub arrays: ArrayPointers,
    pub call: Option<ToolCallView>,
    /// Usage that the agent reports.
    pub usage: Option<SafeLine>,
    pub rationale: Option<Rationale>,
    pub stages: Vec<StageView>,
    /// Oldest event first.
    pub timeline: Vec<TimelineItem>,
    pub proof: StatementProofView,
    /// The decision form, or the reason why there is none.
    pub deciding: ReviewDecisionView,
    /// The typed comment of a form that can no longer be sent.
    pub unsent: Option<SafeText>,
    /// Present if the reader has a counted vote.
    pub withdrawing: Option<WithdrawalForm>,
    /// Present if the reader may edit the change.
    pub edit_url: Option<String>,
    /// The reviewer who last extended the deadline.
    pub extended_by: Option<SafeLine>,
    /// Present if the reader may extend the deadline.
    pub extending: Option<ExtensionForm>,
    /// Present if the reader may comment.
    pub commenting: Option<CommentForm>,
    /// Present if the reader may revoke the receipt.
    pub revoking: Option<RevocationForm>,
    /// Present if the reader may reveal a value.
    pub revealing: Option<RevealForm>,
    /// Path of the redacted value that this page reveals.
    pub revealed: Option<SafePath>,
}

#[derive(Clone, Debug)]
pub struct EarlierDenialsView {
    /// "3 times in 24 hours".
    pub often: String,
    pub by: SafeLine,
    pub comment: Option<SafeText>,
    /// The last review that denied it.
    pub url: String,
}

#[derive(Clone, Debug)]
pub enum ReviewStatusView {
    Waiting {
        /// "1 more from finance".
        needs: String,
        deadline: TimestampView,
        urgency: Urgency,
    },
    Ended {
        outcome: HoldOutcomeView,
        /// Names of the deciding voters. Empty for an expiry.
        by: Vec<SafeLine>,
        at: TimestampView,
        /// The effect: "The receipt was used: database_writer has written.", "Nothing was committed."
        followed: String,
        /// The review that replaced this one.
        next_url: Option<String>,
    },
}

impl ReviewStatusView {
    pub const fn is_waiting(&self) -> bool {
        matches!(self, Self::Waiting { .. })
    }
}

/// The rationale of the agent for its proposal.
#[derive(Clone, Debug)]
pub enum Rationale {
    /// The whole text. The script compares it with the hash in the statement.
    Whole(SafeText),
    /// A text with redacted parts. Its hash cannot be compared.
    Redacted(SafeText),
}

impl Rationale {
    pub const fn text(&self) -> &SafeText {
        match self {
            Self::Whole(text) | Self::Redacted(text) => text,
        }
    }
}

/// The signed statement and its digest.
#[derive(Clone, Debug)]
pub struct StatementProofView {
    pub digest: DigestText,
    pub statement: Vec<StatementRow>,
    /// Name of the policy's flow.
    pub policy: SafeLine,
}

#[derive(Clone, Debug)]
pub struct StatementRow {
    pub key: String,
    pub value: SafeJson,
}

/// The decision form, or the reason why there is none.
#[derive(Clone, Debug)]
pub enum ReviewDecisionView {
    Open(Box<DecisionForm>),
    /// The reason why the reader cannot decide: "You own the agent that proposed this."
    Closed(String),
    Over,
}

/// The decision form: `POST` with `csrf`, `digest`, `nonce`, `stage`, `verdict`
/// (`approve` or `deny`), `comment`, `browser_check` and, if required, `outcome_unknown=yes`.
#[derive(Clone, Debug)]
pub struct DecisionForm {
    pub action: String,
    pub csrf: String,
    pub nonce: String,
    pub stage: String,
    /// The delegator, if the reader votes for another reviewer.
    pub absent: Option<DelegatorRow>,
    /// The other seats of the reader.
    pub places: Vec<VotingSeatLink>,
    pub comment: CommentRequirement,
    /// The typed comment, if the form was rejected.
    pub typed: SafeText,
    pub doubt: WriteUncertainty,
    /// Why the form was rejected: "A comment is required. Your vote was not counted."
    pub problem: Option<String>,
}

impl ReviewPage {
    /// Whether the section of changes has content. A tool call that changes no value can have none.
    pub const fn has_changes_section(&self) -> bool {
        !self.headline.is_call_only()
            || !self.unchanged.is_empty()
            || self.revealing.is_some()
            || self.rationale.is_some()
    }

    /// Whether the gateway lets the call run only once, so that it knows whether the call has run.
    pub fn runs_once(&self) -> bool {
        self.call.as_ref().is_some_and(|it| it.run_within.is_some())
    }
}
