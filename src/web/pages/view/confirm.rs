//! The second look before a vote counts, bound to the digest that was shown.

use askama::Template;

use super::headline::Headline;
use super::review::{Verdict, WriteDoubt};
use super::shell::{Hash, Moment, Shell};
use super::text::{Line, Prose};

/// Answers the first submit of a decision; its own submit carries `confirmed=yes`.
#[derive(Template, Clone, Debug)]
#[template(path = "confirm.html")]
pub struct ConfirmPage {
    /// The frame.
    pub shell: Shell,
    /// The review's page, to go back to.
    pub review_url: String,
    /// Where the form goes: `/reviews/{id}/decision`.
    pub action: String,
    /// The session's CSRF token.
    pub csrf: String,
    /// The digest that the vote is bound to.
    pub digest: Hash,
    /// The one-time nonce.
    pub nonce: String,
    /// The stage voted in.
    pub stage: String,
    /// What the vote says.
    pub verdict: Verdict,
    /// The change in words.
    pub headline: Headline,
    /// Its flow.
    pub flow: Line,
    /// Its thread.
    pub thread: Line,
    /// When it ends by itself.
    pub deadline: Moment,
    /// What follows: "With your vote 2 of 2 from finance have approved; a receipt is issued at once."
    pub consequence: String,
    /// The comment as typed, sent again unchanged.
    pub comment: Prose,
    /// What the review's page reported of its own check, sent again unchanged.
    pub browser_check: String,
    /// Whether an earlier write may have happened, which was ticked as known.
    pub doubt: WriteDoubt,
}
