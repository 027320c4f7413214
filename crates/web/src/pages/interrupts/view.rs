//! The pages of an interrupt: the unverified request, the stages and the decision.

use askama::Template;

use crate::pages::shared::decision_form::{DecideFormView, StageProgressView};
use crate::pages::shared::layout::{DigestText, PageLayout, TimestampView, Tone};
use crate::pages::shared::passkey_signing::PasskeySigningView;
use crate::pages::shared::safe_text::{SafeJson, SafeLine, SafePath, SafeText};
use crate::pages::shared::widgets::{TimelineItem, VerdictView};

/// `GET /interrupts/{interrupt}`.
#[derive(Template, Clone, Debug)]
#[template(path = "interrupt.html")]
pub struct InterruptPage {
    pub shell: PageLayout,
    /// Error of a rejected form, shown above the page.
    pub problem: Option<String>,
    pub host: SafeLine,
    /// The flow whose reviewers decide.
    pub flow: SafeLine,
    pub words: &'static str,
    pub tone: Tone,
    pub standing: String,
    pub said: HostAssertionView,
    /// Deadline, if the interrupt is open.
    pub deadline: Option<TimestampView>,
    pub digest: DigestText,
    /// The policy that requires the approval.
    pub policy: DigestText,
    pub stages: Vec<StageProgressView>,
    pub timeline: Vec<TimelineItem>,
    pub deciding: DecideFormView,
}

/// The request of a host application. All of it is an unverified claim.
#[derive(Clone, Debug)]
pub struct HostAssertionView {
    pub title: Option<SafeLine>,
    pub reason: Option<SafeText>,
    pub thread: Option<SafeLine>,
    /// Id of the interrupt in the host's framework.
    pub interrupt_id: SafeLine,
    /// The host's digest of the step.
    pub digest: SafeLine,
    /// Number of the attempt, if it is not the first.
    pub attempt: Option<u32>,
    pub keys: Vec<SafeLine>,
    pub diff: Vec<InterruptValueRow>,
}

/// One value of the host's request.
#[derive(Clone, Debug)]
pub struct InterruptValueRow {
    pub path: SafePath,
    /// Empty if the value is redacted.
    pub value: Option<SafeJson>,
}

/// The confirm page. Its form sends `confirmed=yes`.
#[derive(Template, Clone, Debug)]
#[template(path = "interrupt_confirm.html")]
pub struct InterruptConfirmPage {
    pub shell: PageLayout,
    pub interrupt_url: String,
    pub action: String,
    pub csrf: String,
    pub digest: DigestText,
    pub nonce: String,
    pub stage: u32,
    pub verdict: VerdictView,
    pub host: SafeLine,
    pub flow: SafeLine,
    pub said: HostAssertionView,
    pub deadline: TimestampView,
    pub consequence: String,
    /// Code of the effect, which the form sends back. If others have voted since then, the page is shown again.
    pub expects: &'static str,
    pub comment: SafeText,
    pub signing: PasskeySigningView,
    /// The digits to type, if the policy requires it.
    pub typing: Option<String>,
    /// Why the form was rejected.
    pub problem: Option<String>,
}

#[derive(Clone, Debug)]
pub struct InterruptRow {
    pub url: String,
    pub host: SafeLine,
    pub flow: SafeLine,
    /// Title that the host application gave to the interrupt.
    pub title: Option<SafeLine>,
    pub digest: SafeLine,
    /// The first changed keys, as the host application reported them.
    pub keys: Vec<SafeLine>,
    pub more: usize,
    /// Whether the reader can decide, or the reason why not.
    pub badge: crate::pages::shared::widgets::ReviewBadge,
    pub deadline: TimestampView,
}
