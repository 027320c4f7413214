//! Which policies judge, and which wait for people.

use askama::Template;

use crate::web::pages::shared::layout::{Hash, Moment, Shell, Tone};
use crate::web::pages::shared::safe_text::Line;

/// `GET /policies`.
#[derive(Template, Clone, Debug)]
#[template(path = "policies.html")]
pub struct PoliciesPage {
    /// The frame.
    pub shell: Shell,
    /// Every flow, by name.
    pub flows: Vec<FlowCard>,
}

/// One flow and what judges it.
#[derive(Clone, Debug)]
pub struct FlowCard {
    /// The flow.
    pub name: Line,
    /// What the active policy does: "Enforced", "Observed only".
    pub mode: &'static str,
    /// The active policy.
    pub policy: Hash,
    /// Since when.
    pub since: Moment,
    /// Who activated it.
    pub by: Line,
    /// Older policies whose heads may still be written.
    pub accepts: Vec<Hash>,
    /// Its text, line by line.
    pub text: Vec<Line>,
    /// The last amendments, the latest first.
    pub amendments: Vec<AmendmentRow>,
}

/// An amendment in a list.
#[derive(Clone, Debug)]
pub struct AmendmentRow {
    /// Its page.
    pub url: String,
    /// Its flow.
    pub flow: Line,
    /// The policy it would activate.
    pub policy: Hash,
    /// Who proposed it.
    pub proposer: Line,
    /// How it stands.
    pub words: &'static str,
    /// How that is meant.
    pub tone: Tone,
    /// When it ends, or ended.
    pub at: Moment,
}
