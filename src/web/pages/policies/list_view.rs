//! Which policies judge, and which wait for people.

use askama::Template;

use crate::web::pages::shared::layout::{DigestText, PageLayout, TimestampView, Tone};
use crate::web::pages::shared::safe_text::SafeLine;

/// `GET /policies`.
#[derive(Template, Clone, Debug)]
#[template(path = "policies.html")]
pub struct PoliciesPage {
    /// The frame.
    pub shell: PageLayout,
    /// Every flow, by name.
    pub flows: Vec<FlowCard>,
}

/// One flow and what judges it.
#[derive(Clone, Debug)]
pub struct FlowCard {
    /// The flow.
    pub name: SafeLine,
    /// What the active policy does: "Enforced", "Observed only".
    pub mode: &'static str,
    /// The active policy.
    pub policy: DigestText,
    /// Since when.
    pub since: TimestampView,
    /// Who activated it.
    pub by: SafeLine,
    /// Older policies whose heads may still be written.
    pub accepts: Vec<DigestText>,
    /// Its text, line by line.
    pub text: Vec<SafeLine>,
    /// The last amendments, the latest first.
    pub amendments: Vec<PolicyChangeRow>,
}

/// An amendment in a list.
#[derive(Clone, Debug)]
pub struct PolicyChangeRow {
    /// Its page.
    pub url: String,
    /// Its flow.
    pub flow: SafeLine,
    /// The policy it would activate.
    pub policy: DigestText,
    /// Who proposed it.
    pub proposer: SafeLine,
    /// How it stands.
    pub words: &'static str,
    /// How that is meant.
    pub tone: Tone,
    /// When it ends, or ended.
    pub at: TimestampView,
}
