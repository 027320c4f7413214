//! A review: the change, why it waits, and the form that decides it.

use askama::Template;

use super::discussion_view::{CommentForm, ExtensionForm, WithdrawalForm};
use super::reveal_view::RevealForm;
use super::revoke_receipt_view::RevocationForm;
use crate::web::pages::shared::headline::Headline;
use crate::web::pages::shared::layout::{Hash, Moment, Shell};
use crate::web::pages::shared::proof_rows::{Arrays, WriterReads};
use crate::web::pages::shared::proof_rows::{Row, UnchangedRow};
use crate::web::pages::shared::safe_text::{Json, Line, Path, Prose};
pub use crate::web::pages::shared::stages::{Progress, Stage};
use crate::web::pages::shared::vote_as::{AbsentRow, OtherPlace};
use crate::web::pages::shared::widgets::{
    Asker, Call, CommentWish, Outcome, Reason, TimelineItem, Urgency, WriteDoubt,
};

/// `GET /reviews/{id}`.
#[derive(Template, Clone, Debug)]
#[template(path = "review.html")]
pub struct ReviewPage {
    /// The frame.
    pub shell: Shell,
    /// The change in words.
    pub headline: Headline,
    /// Where it stands.
    pub standing: Standing,
    /// Seconds until its deadline, while it waits.
    pub ends_in: Option<u64>,
    /// Its flow.
    pub flow: Line,
    /// Its thread.
    pub thread: Line,
    /// The thread's page.
    pub thread_url: String,
    /// What the host calls the thread.
    pub title: Option<Line>,
    /// For whom the thread works, if the host said.
    pub on_behalf_of: Option<Line>,
    /// Who asked for it.
    pub asked_by: Option<Asker>,
    /// Why it was held.
    pub reasons: Vec<Reason>,
    /// What rules warn of besides.
    pub warnings: Vec<Reason>,
    /// Earlier denials of the same change.
    pub denied_before: Option<DeniedBefore>,
    /// What each writer node would read.
    pub writers: Vec<WriterReads>,
    /// Everything that differs, protected keys first.
    pub rows: Vec<Row>,
    /// Everything that does not, as far as the opening names it.
    pub unchanged: Vec<UnchangedRow>,
    /// Which places are arrays, before and after.
    pub arrays: Arrays,
    /// The tool that the agent calls along with it.
    pub call: Option<Call>,
    /// What the agent says it used.
    pub usage: Option<Line>,
    /// What the agent says of it.
    pub rationale: Option<Rationale>,
    /// The stages of the approval, in order.
    pub stages: Vec<Stage>,
    /// What happened, the oldest first.
    pub timeline: Vec<TimelineItem>,
    /// What is signed.
    pub proof: Proof,
    /// The form, or why there is none.
    pub deciding: Deciding,
    /// What was typed into a form that nobody can send any more.
    pub unsent: Option<Prose>,
    /// The form that takes the reader's own vote back, where they have one that counts.
    pub withdrawing: Option<WithdrawalForm>,
    /// Where the reader can rewrite the change, if they may.
    pub edit_url: Option<String>,
    /// Who moved the deadline last, if somebody did.
    pub extended_by: Option<Line>,
    /// The form that moves the deadline, where the reader may.
    pub extending: Option<ExtensionForm>,
    /// The form for a comment without a vote, where the reader may.
    pub commenting: Option<CommentForm>,
    /// The form that takes the receipt back, where the reader may.
    pub revoking: Option<RevocationForm>,
    /// The form that reveals a hidden value, where the reader may.
    pub revealing: Option<RevealForm>,
    /// The hidden value that this very page shows to its reader.
    pub revealed: Option<Path>,
}

/// Earlier denials of the same change.
#[derive(Clone, Debug)]
pub struct DeniedBefore {
    /// "3 times in 24 hours".
    pub often: String,
    /// Who denied it last.
    pub by: Line,
    /// Their comment.
    pub comment: Option<Prose>,
    /// The last review that denied it.
    pub url: String,
}

/// Where a review stands.
#[derive(Clone, Debug)]
pub enum Standing {
    /// It waits.
    Waiting {
        /// "1 more from finance".
        needs: String,
        /// When it ends by itself.
        deadline: Moment,
        /// Whether that is near.
        urgency: Urgency,
    },
    /// It ended.
    Ended {
        /// How.
        outcome: Outcome,
        /// By whom; nobody for an expiry.
        by: Vec<Line>,
        /// When.
        at: Moment,
        /// What followed: "The receipt was used: database_writer has written.", "Nothing was committed."
        followed: String,
        /// The review that took its place.
        next_url: Option<String>,
    },
}

impl Standing {
    /// Whether it can still be decided by somebody.
    pub const fn is_waiting(&self) -> bool {
        matches!(self, Self::Waiting { .. })
    }
}

/// What the agent says of its own proposal.
#[derive(Clone, Debug)]
pub enum Rationale {
    /// All of it; the script compares it with the hash in the statement.
    Whole(Prose),
    /// With parts taken out by redaction, so its hash cannot be compared.
    Redacted(Prose),
}

impl Rationale {
    /// The text.
    pub const fn text(&self) -> &Prose {
        match self {
            Self::Whole(text) | Self::Redacted(text) => text,
        }
    }
}

/// What is signed, and what it can be recomputed from.
#[derive(Clone, Debug)]
pub struct Proof {
    /// The transition's digest.
    pub digest: Hash,
    /// The statement, member by member.
    pub statement: Vec<Fact>,
    /// What the policy is called besides its digest: "payments, activated 1 Nov 2026".
    pub policy: Line,
}

/// A member of the statement.
#[derive(Clone, Debug)]
pub struct Fact {
    /// Its name.
    pub key: String,
    /// Its value.
    pub value: Json,
}

/// The form, or why there is none.
#[derive(Clone, Debug)]
pub enum Deciding {
    /// The reader may vote.
    Open(Box<DecisionForm>),
    /// The reader may not, and why: "You own the agent that proposed this."
    Closed(String),
    /// Nobody may any more.
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
    /// The one-time nonce.
    pub nonce: String,
    /// The stage voted in.
    pub stage: String,
    /// In whose place, if not in the reader's own.
    pub absent: Option<AbsentRow>,
    /// The other places in which the reader may vote.
    pub places: Vec<OtherPlace>,
    /// Whether a comment must be given.
    pub comment: CommentWish,
    /// What was typed, when the page comes again.
    pub typed: Prose,
    /// Whether an earlier write may have happened.
    pub doubt: WriteDoubt,
    /// Why the page comes again: "A comment is required. Your vote was not counted."
    pub problem: Option<String>,
}

impl ReviewPage {
    /// Whether anything at all differs.
    pub fn is_empty_change(&self) -> bool {
        self.rows.is_empty()
    }
}
