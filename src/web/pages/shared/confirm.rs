//! The confirm page before a vote is counted. It is bound to the digest that was shown.

use askama::Template;

use super::headline::Headline;
use super::layout::{DigestText, PageLayout, TimestampView};
use super::safe_text::{SafeLine, SafeText};
use super::vote_as::DelegatorRow;
use super::widgets::{VerdictView, WriteUncertainty};
use crate::web::pages::identity::passkeys_view::PasskeyChallengeView;

#[derive(Clone, Debug)]
pub enum PasskeySigningView {
    /// No signature is required, and the account has no passkey.
    NotAsked,
    /// A passkey can sign. The vote also counts without it.
    May(PasskeySignForm),
    Must(PasskeySignForm),
    /// A passkey must sign, and the account has no valid one.
    Impossible,
}

#[derive(Clone, Debug)]
pub struct PasskeySignForm {
    pub asking: PasskeyChallengeView,
    /// Expiry of the signature. It is part of the signed data.
    pub until: String,
}

/// The confirm page. Its form sends `confirmed=yes`.
#[derive(Template, Clone, Debug)]
#[template(path = "confirm.html")]
pub struct ConfirmPage {
    pub shell: PageLayout,
    pub review_url: String,
    pub action: String,
    pub csrf: String,
    pub digest: DigestText,
    pub nonce: String,
    pub stage: String,
    /// The delegator, if the reader votes for another reviewer.
    pub absent: Option<DelegatorRow>,
    pub verdict: VerdictView,
    pub headline: Headline,
    pub flow: SafeLine,
    pub thread: SafeLine,
    pub deadline: TimestampView,
    /// The effect of the vote: "Your vote is counted. The review waits for more votes."
    pub consequence: String,
    /// Code of the effect, which the form sends back. If others have voted since then, the page is shown again.
    pub expects: &'static str,
    pub comment: SafeText,
    /// Result of the script's check on the review page.
    pub browser_check: String,
    /// The unknown outcome of an earlier write, which the reader has accepted.
    pub doubt: WriteUncertainty,
    pub signing: PasskeySigningView,
    /// The digits to type, if the policy requires it.
    pub typing: Option<String>,
    /// Why the form was rejected.
    pub problem: Option<String>,
}

impl PasskeySigningView {
    pub fn form(&self) -> Option<&PasskeySignForm> {
        match self {
            Self::May(form) | Self::Must(form) => Some(form),
            Self::NotAsked | Self::Impossible => None,
        }
    }

    /// Whether the vote is rejected without a signature.
    pub fn must(&self) -> bool {
        matches!(self, Self::Must(_))
    }

    /// Whether a signature is required and impossible.
    pub fn impossible(&self) -> bool {
        matches!(self, Self::Impossible)
    }
}
