//! View of the policies page.

use askama::Template;

use crate::pages::shared::findings::FindingRow;
use crate::pages::shared::layout::{DigestText, PageLayout, TimestampView, Tone};
use crate::pages::shared::safe_text::SafeLine;

/// `GET /policies`.
#[derive(Template, Clone, Debug)]
#[template(path = "policies.html")]
pub struct PoliciesPage {
    pub shell: PageLayout,
    pub flows: Vec<FlowCard>,
}

/// One flow and its active policy.
#[derive(Clone, Debug)]
pub struct FlowCard {
    pub name: SafeLine,
    /// Mode of the active policy: "Enforced" or "Observe mode".
    pub mode: &'static str,
    pub policy: DigestText,
    pub since: TimestampView,
    pub by: SafeLine,
    /// Older policies under which a head may still be written.
    pub accepts: Vec<DigestText>,
    pub text: Vec<SafeLine>,
    /// Missing reviewers and tokens, the worst first.
    pub findings: Vec<FindingRow>,
    /// Latest policy change requests, newest first.
    pub amendments: Vec<PolicyChangeRow>,
}

#[derive(Clone, Debug)]
pub struct PolicyChangeRow {
    pub url: String,
    pub flow: SafeLine,
    /// The requested policy.
    pub policy: DigestText,
    pub proposer: SafeLine,
    pub words: &'static str,
    pub tone: Tone,
    pub at: TimestampView,
}
