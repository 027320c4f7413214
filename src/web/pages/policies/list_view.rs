//! Which policies judge, and which wait for people.

use askama::Template;

use crate::web::pages::shared::layout::{DigestText, PageLayout, TimestampView, Tone};
use crate::web::pages::shared::safe_text::SafeLine;

/// `GET /policies`.
#[derive(Template, Clone, Debug)]
#[template(path = "policies.html")]
pub struct PoliciesPage {
    pub shell: PageLayout,
    pub flows: Vec<FlowCard>,
}

/// One flow and what judges it.
#[derive(Clone, Debug)]
pub struct FlowCard {
    pub name: SafeLine,
    /// What the active policy does: "Enforced", "Observed only".
    pub mode: &'static str,
    pub policy: DigestText,
    pub since: TimestampView,
    pub by: SafeLine,
    /// Older policies whose heads may still be written.
    pub accepts: Vec<DigestText>,
    pub text: Vec<SafeLine>,
    /// The last amendments, the latest first.
    pub amendments: Vec<PolicyChangeRow>,
}

#[derive(Clone, Debug)]
pub struct PolicyChangeRow {
    pub url: String,
    pub flow: SafeLine,
    /// The policy it would activate.
    pub policy: DigestText,
    pub proposer: SafeLine,
    pub words: &'static str,
    pub tone: Tone,
    pub at: TimestampView,
}
