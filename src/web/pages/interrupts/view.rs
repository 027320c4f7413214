//! What a host asks people about: its own words, who is asked, and the decision.

use askama::Template;

use crate::web::pages::shared::confirm::Signing;
use crate::web::pages::shared::decision_form::{Deciding, Seats};
use crate::web::pages::shared::layout::{Hash, Moment, Shell, Tone};
use crate::web::pages::shared::safe_text::{Json, Line, Path, Prose};
use crate::web::pages::shared::widgets::{TimelineItem, Verdict};

/// `GET /interrupts/{interrupt}`.
#[derive(Template, Clone, Debug)]
#[template(path = "interrupt.html")]
pub struct InterruptPage {
    /// The frame.
    pub shell: Shell,
    /// What was refused, above everything.
    pub problem: Option<String>,
    /// Whose word all of it is.
    pub host: Line,
    /// The flow whose people are asked.
    pub flow: Line,
    /// How it stands.
    pub words: &'static str,
    /// How that is meant.
    pub tone: Tone,
    /// What that means.
    pub standing: String,
    /// What the host says.
    pub said: Said,
    /// When it ends by itself, if it has not.
    pub deadline: Option<Moment>,
    /// What people vote on.
    pub digest: Hash,
    /// The policy by which people are asked.
    pub policy: Hash,
    /// Whose approval is needed.
    pub stages: Vec<Seats>,
    /// What happened so far.
    pub timeline: Vec<TimelineItem>,
    /// What the visitor can do about it.
    pub deciding: Deciding,
}

/// What a host says: none of it is the gateway's own.
#[derive(Clone, Debug)]
pub struct Said {
    /// In a line.
    pub title: Option<Line>,
    /// Why people are asked.
    pub reason: Option<Prose>,
    /// Its own thread.
    pub thread: Option<Line>,
    /// What its framework calls the interrupt.
    pub interrupt_id: Line,
    /// Its own digest of the step.
    pub digest: Line,
    /// Which try it is, where it is not the first.
    pub attempt: Option<u32>,
    /// The keys that the step changes.
    pub keys: Vec<Line>,
    /// What the step changes.
    pub diff: Vec<Part>,
}

/// One value of what a host says.
#[derive(Clone, Debug)]
pub struct Part {
    /// Where it stands.
    pub path: Path,
    /// What stands there; nothing where it is hidden.
    pub value: Option<Json>,
}

/// Answers the first submit of a decision; its own submit carries `confirmed=yes`.
#[derive(Template, Clone, Debug)]
#[template(path = "interrupt_confirm.html")]
pub struct InterruptConfirmPage {
    /// The frame.
    pub shell: Shell,
    /// The interrupt's page, to go back to.
    pub interrupt_url: String,
    /// Where the form goes.
    pub action: String,
    /// The session's CSRF token.
    pub csrf: String,
    /// What is voted on.
    pub digest: Hash,
    /// The one-time nonce.
    pub nonce: String,
    /// The stage voted in.
    pub stage: u32,
    /// What the vote says.
    pub verdict: Verdict,
    /// Whose word all of it is.
    pub host: Line,
    /// The flow.
    pub flow: Line,
    /// What the host says.
    pub said: Said,
    /// When it ends by itself.
    pub deadline: Moment,
    /// What follows.
    pub consequence: String,
    /// The same in one word, which the form says back: if others have voted meanwhile, it is asked again.
    pub expects: &'static str,
    /// The comment as typed, sent again unchanged.
    pub comment: Prose,
    /// What a passkey may or must sign.
    pub signing: Signing,
    /// What has to be typed, if something.
    pub typing: Option<String>,
    /// Why the page comes again.
    pub problem: Option<String>,
}

/// An interrupt in a list.
#[derive(Clone, Debug)]
pub struct InterruptRow {
    /// Its page.
    pub url: String,
    /// Whose word it is.
    pub host: Line,
    /// Its flow.
    pub flow: Line,
    /// What the host says of it.
    pub title: Option<Line>,
    /// The host's own digest.
    pub digest: Line,
    /// The keys that it says change, the first few.
    pub keys: Vec<Line>,
    /// How many more there are.
    pub more: usize,
    /// Whether it waits for the reader, or why not.
    pub badge: crate::web::pages::shared::widgets::Badge,
    /// When it ends by itself.
    pub deadline: Moment,
}
