//! What a host asks people about: its own words, who is asked, and the decision.

use askama::Template;

use crate::web::pages::shared::confirm::PasskeySigningView;
use crate::web::pages::shared::decision_form::{DecideFormView, StageProgressView};
use crate::web::pages::shared::layout::{DigestText, PageLayout, TimestampView, Tone};
use crate::web::pages::shared::safe_text::{SafeJson, SafeLine, SafePath, SafeText};
use crate::web::pages::shared::widgets::{TimelineItem, VerdictView};

/// `GET /interrupts/{interrupt}`.
#[derive(Template, Clone, Debug)]
#[template(path = "interrupt.html")]
pub struct InterruptPage {
    pub shell: PageLayout,
    /// What was refused, above everything.
    pub problem: Option<String>,
    pub host: SafeLine,
    /// The flow whose people are asked.
    pub flow: SafeLine,
    pub words: &'static str,
    pub tone: Tone,
    pub standing: String,
    pub said: HostAssertionView,
    /// When it ends by itself, if it has not.
    pub deadline: Option<TimestampView>,
    pub digest: DigestText,
    /// The policy by which people are asked.
    pub policy: DigestText,
    /// Whose approval is needed.
    pub stages: Vec<StageProgressView>,
    pub timeline: Vec<TimelineItem>,
    /// What the visitor can do about it.
    pub deciding: DecideFormView,
}

/// What a host says: none of it is the gateway's own.
#[derive(Clone, Debug)]
pub struct HostAssertionView {
    pub title: Option<SafeLine>,
    pub reason: Option<SafeText>,
    pub thread: Option<SafeLine>,
    /// What its framework calls the interrupt.
    pub interrupt_id: SafeLine,
    /// Its own digest of the step.
    pub digest: SafeLine,
    /// Which try it is, where it is not the first.
    pub attempt: Option<u32>,
    /// The keys that the step changes.
    pub keys: Vec<SafeLine>,
    pub diff: Vec<InterruptValueRow>,
}

/// One value of what a host says.
#[derive(Clone, Debug)]
pub struct InterruptValueRow {
    pub path: SafePath,
    /// What stands there; nothing where it is hidden.
    pub value: Option<SafeJson>,
}

/// Answers the first submit of a decision; its own submit carries `confirmed=yes`.
#[derive(Template, Clone, Debug)]
#[template(path = "interrupt_confirm.html")]
pub struct InterruptConfirmPage {
    pub shell: PageLayout,
    /// The interrupt's page, to go back to.
    pub interrupt_url: String,
    pub action: String,
    /// The session's CSRF token.
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
    /// The same in one word, which the form says back: if others have voted meanwhile, it is asked again.
    pub expects: &'static str,
    /// The comment as typed, sent again unchanged.
    pub comment: SafeText,
    /// What a passkey may or must sign.
    pub signing: PasskeySigningView,
    /// What has to be typed, if something.
    pub typing: Option<String>,
    /// Why the page comes again.
    pub problem: Option<String>,
}

#[derive(Clone, Debug)]
pub struct InterruptRow {
    pub url: String,
    pub host: SafeLine,
    pub flow: SafeLine,
    /// What the host says of it.
    pub title: Option<SafeLine>,
    pub digest: SafeLine,
    /// The keys that it says change, the first few.
    pub keys: Vec<SafeLine>,
    pub more: usize,
    /// Whether it waits for the reader, or why not.
    pub badge: crate::web::pages::shared::widgets::ReviewBadge,
    pub deadline: TimestampView,
}
