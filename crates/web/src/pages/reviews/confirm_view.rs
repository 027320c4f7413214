//! The confirm page before a vote is counted. It is bound to the digest that was shown.

use askama::Template;

use crate::pages::shared::headline::Headline;
use crate::pages::shared::layout::{DigestText, PageLayout, TimestampView};
use crate::pages::shared::passkey_signing::PasskeySigningView;
use crate::pages::shared::safe_text::{SafeLine, SafeText};
use crate::pages::shared::tool_call::ToolCallView;
use crate::pages::shared::vote_as::DelegatorRow;
use crate::pages::shared::widgets::{VerdictView, WriteUncertainty};

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
    pub call: Option<ToolCallView>,
    /// The usage that the agent reports.
    pub usage: Option<SafeLine>,
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
