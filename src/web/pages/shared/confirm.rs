//! The second look before a vote counts, bound to the digest that was shown.

use askama::Template;

use super::headline::Headline;
use super::layout::{DigestText, PageLayout, TimestampView};
use super::safe_text::{SafeLine, SafeText};
use super::vote_as::DelegatorRow;
use super::widgets::{VerdictView, WriteUncertainty};
use crate::web::pages::identity::passkeys_view::PasskeyChallengeView;

/// What a passkey may or must sign.
#[derive(Clone, Debug)]
pub enum PasskeySigningView {
    /// Nothing: none is asked for, and the person has none.
    NotAsked,
    /// It may sign; without it the vote counts, too.
    May(PasskeySignForm),
    Must(PasskeySignForm),
    /// It would have to sign, and the person has none that counts here.
    Impossible,
}

#[derive(Clone, Debug)]
pub struct PasskeySignForm {
    pub asking: PasskeyChallengeView,
    /// Until when the signature counts; part of what is signed.
    pub until: String,
}

/// Answers the first submit of a decision; its own submit carries `confirmed=yes`.
#[derive(Template, Clone, Debug)]
#[template(path = "confirm.html")]
pub struct ConfirmPage {
    pub shell: PageLayout,
    /// The review's page, to go back to.
    pub review_url: String,
    /// Where the form goes: `/reviews/{id}/decision`.
    pub action: String,
    /// The session's CSRF token.
    pub csrf: String,
    /// The digest that the vote is bound to.
    pub digest: DigestText,
    pub nonce: String,
    pub stage: String,
    /// In whose place, and by which delegation.
    pub absent: Option<DelegatorRow>,
    pub verdict: VerdictView,
    pub headline: Headline,
    pub flow: SafeLine,
    pub thread: SafeLine,
    pub deadline: TimestampView,
    /// What follows: "With your vote 2 of 2 from finance have approved; a receipt is issued at once."
    pub consequence: String,
    /// The same in one word, which the form says back: if others have voted meanwhile, it is asked again.
    pub expects: &'static str,
    /// The comment as typed, sent again unchanged.
    pub comment: SafeText,
    /// What the review's page reported of its own check, sent again unchanged.
    pub browser_check: String,
    /// Whether an earlier write may have happened, which was ticked as known.
    pub doubt: WriteUncertainty,
    /// What a passkey may or must sign.
    pub signing: PasskeySigningView,
    /// What has to be typed, if something.
    pub typing: Option<String>,
    /// Why the page comes again.
    pub problem: Option<String>,
}

impl PasskeySigningView {
    /// What is signed, if something can be.
    pub fn form(&self) -> Option<&PasskeySignForm> {
        match self {
            Self::May(form) | Self::Must(form) => Some(form),
            Self::NotAsked | Self::Impossible => None,
        }
    }

    /// Whether the vote does not count without.
    pub fn must(&self) -> bool {
        matches!(self, Self::Must(_))
    }

    /// Whether the person cannot give what is asked.
    pub fn impossible(&self) -> bool {
        matches!(self, Self::Impossible)
    }
}
