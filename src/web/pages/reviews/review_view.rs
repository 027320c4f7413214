//! A review: the change, why it waits, and the form that decides it.

use askama::Template;

use super::discussion_view::{CommentForm, ExtensionForm, WithdrawalForm};
use super::reveal_view::RevealForm;
use super::revoke_receipt_view::RevocationForm;
use crate::web::pages::shared::headline::Headline;
use crate::web::pages::shared::layout::{DigestText, PageLayout, TimestampView};
use crate::web::pages::shared::proof_rows::{ArrayPointers, WriterReads};
use crate::web::pages::shared::proof_rows::{OpeningRow, UnchangedRow};
use crate::web::pages::shared::safe_text::{SafeJson, SafeLine, SafePath, SafeText};
pub use crate::web::pages::shared::stages::{StageProgress, StageView};
use crate::web::pages::shared::vote_as::{DelegatorRow, VotingSeatLink};
use crate::web::pages::shared::widgets::{
    CommentRequirement, HoldOutcomeView, HoldReasonView, RequesterView, TimelineItem, ToolCallView, Urgency,
    WriteUncertainty,
};

/// `GET /reviews/{id}`.
#[derive(Template, Clone, Debug)]
#[template(path = "review.html")]
pub struct ReviewPage {
    pub shell: PageLayout,
    pub headline: Headline,
    pub standing: ReviewStatusView,
    /// Seconds until its deadline, while it waits.
    pub ends_in: Option<u64>,
    pub flow: SafeLine,
    pub thread: SafeLine,
    pub thread_url: String,
    /// What the host calls the thread.
    pub title: Option<SafeLine>,
    /// For whom the thread works, if the host said.
    pub on_behalf_of: Option<SafeLine>,
    pub asked_by: Option<RequesterView>,
    pub reasons: Vec<HoldReasonView>,
    /// What rules warn of besides.
    pub warnings: Vec<HoldReasonView>,
    /// Earlier denials of the same change.
    pub denied_before: Option<EarlierDenialsView>,
    /// What each writer node would read.
    pub writers: Vec<WriterReads>,
    /// Everything that differs, protected keys first.
    pub rows: Vec<OpeningRow>,
    /// Everything that does not, as far as the opening names it.
    pub unchanged: Vec<UnchangedRow>,
    /// Which places are arrays, before and after.
    pub arrays: ArrayPointers,
    /// The tool that the agent calls along with it.
    pub call: Option<ToolCallView>,
    /// What the agent says it used.
    pub usage: Option<SafeLine>,
    /// What the agent says of it.
    pub rationale: Option<Rationale>,
    /// The stages of the approval, in order.
    pub stages: Vec<StageView>,
    /// What happened, the oldest first.
    pub timeline: Vec<TimelineItem>,
    pub proof: StatementProofView,
    /// The form, or why there is none.
    pub deciding: ReviewDecisionView,
    /// What was typed into a form that nobody can send any more.
    pub unsent: Option<SafeText>,
    /// The form that takes the reader's own vote back, where they have one that counts.
    pub withdrawing: Option<WithdrawalForm>,
    /// Where the reader can rewrite the change, if they may.
    pub edit_url: Option<String>,
    /// Who moved the deadline last, if somebody did.
    pub extended_by: Option<SafeLine>,
    /// The form that moves the deadline, where the reader may.
    pub extending: Option<ExtensionForm>,
    /// The form for a comment without a vote, where the reader may.
    pub commenting: Option<CommentForm>,
    /// The form that takes the receipt back, where the reader may.
    pub revoking: Option<RevocationForm>,
    /// The form that reveals a hidden value, where the reader may.
    pub revealing: Option<RevealForm>,
    /// The hidden value that this very page shows to its reader.
    pub revealed: Option<SafePath>,
}

/// Earlier denials of the same change.
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
        /// By whom; nobody for an expiry.
        by: Vec<SafeLine>,
        at: TimestampView,
        /// What followed: "The receipt was used: database_writer has written.", "Nothing was committed."
        followed: String,
        /// The review that took its place.
        next_url: Option<String>,
    },
}

impl ReviewStatusView {
    /// Whether it can still be decided by somebody.
    pub const fn is_waiting(&self) -> bool {
        matches!(self, Self::Waiting { .. })
    }
}

/// What the agent says of its own proposal.
#[derive(Clone, Debug)]
pub enum Rationale {
    /// All of it; the script compares it with the hash in the statement.
    Whole(SafeText),
    /// With parts taken out by redaction, so its hash cannot be compared.
    Redacted(SafeText),
}

impl Rationale {
    pub const fn text(&self) -> &SafeText {
        match self {
            Self::Whole(text) | Self::Redacted(text) => text,
        }
    }
}

/// What is signed, and what it can be recomputed from.
#[derive(Clone, Debug)]
pub struct StatementProofView {
    pub digest: DigestText,
    /// The statement, member by member.
    pub statement: Vec<StatementRow>,
    /// What the policy is called besides its digest: "payments, activated 1 Nov 2026".
    pub policy: SafeLine,
}

/// A member of the statement.
#[derive(Clone, Debug)]
pub struct StatementRow {
    pub key: String,
    pub value: SafeJson,
}

/// The form, or why there is none.
#[derive(Clone, Debug)]
pub enum ReviewDecisionView {
    Open(Box<DecisionForm>),
    /// The reader may not, and why: "You own the agent that proposed this."
    Closed(String),
    Over,
}

/// The form that decides: `POST` with `csrf`, `digest`, `nonce`, `stage`, `verdict`
/// (`approve` or `deny`), `comment`, `browser_check` and, where asked for, `outcome_unknown=yes`.
#[derive(Clone, Debug)]
pub struct DecisionForm {
    /// `/reviews/{id}/decision`.
    pub action: String,
    /// The session's CSRF token.
    pub csrf: String,
    pub nonce: String,
    pub stage: String,
    /// In whose place, if not in the reader's own.
    pub absent: Option<DelegatorRow>,
    /// The other places in which the reader may vote.
    pub places: Vec<VotingSeatLink>,
    /// Whether a comment must be given.
    pub comment: CommentRequirement,
    /// What was typed, when the page comes again.
    pub typed: SafeText,
    /// Whether an earlier write may have happened.
    pub doubt: WriteUncertainty,
    /// Why the page comes again: "A comment is required. Your vote was not counted."
    pub problem: Option<String>,
}

impl ReviewPage {
    /// Whether anything at all differs.
    pub fn is_empty_change(&self) -> bool {
        self.rows.is_empty()
    }
}
