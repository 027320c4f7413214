//! The page of one version.

use askama::Template;

use crate::pages::shared::layout::{DigestText, PageLayout, TimestampView, Tone};
use crate::pages::shared::proof_rows::OpeningRow;
use crate::pages::shared::safe_text::{SafeLine, SafeText};
use crate::pages::shared::tool_call::ToolCallView;
use crate::pages::shared::widgets::GateView;
use crate::pages::shared::widgets::HoldReasonView;
use crate::pages::shared::widgets::RequesterView;

/// `GET /threads/{thread}/versions/{version}`.
#[derive(Template, Clone, Debug)]
#[template(path = "version.html")]
pub struct VersionPage {
    pub shell: PageLayout,
    pub thread: SafeLine,
    pub title: Option<SafeLine>,
    pub flow: SafeLine,
    pub version: u64,
    pub head: u64,
    /// Label of the transition type: "proposed by".
    pub step: String,
    pub node: Option<SafeLine>,
    /// The requester: a token with its owner, or a person.
    pub by: Option<RequesterView>,
    pub proposed: TimestampView,
    pub committed: TimestampView,
    pub gate: GateView,
    /// Reasons for the approval, or the reasons that observe mode recorded.
    pub reasons: Vec<HoldReasonView>,
    pub warnings: Vec<HoldReasonView>,
    pub call: Option<ToolCallView>,
    /// Usage that the agent reports.
    pub usage: Option<SafeLine>,
    pub rationale: Option<SafeText>,
    /// Differences from the version before.
    pub rows: Vec<OpeningRow>,
    /// Receipt and writes, oldest first.
    pub became: Vec<VersionEventRow>,
    pub checks: Vec<VersionCheckRow>,
    /// The signed statement in canonical form.
    pub statement: SafeLine,
    pub digest: DigestText,
    pub entry: SafeLine,
    pub kid: SafeLine,
    pub rollback: Option<RollbackForm>,
    pub compare: Vec<CompareLink>,
}

#[derive(Clone, Debug)]
pub struct RollbackForm {
    pub action: String,
    pub csrf: String,
    /// Head at the time of the page.
    pub head: String,
    pub attempt: String,
    /// Nodes that can request the rollback.
    pub nodes: Vec<SafeLine>,
}

/// The receipt or a write of a version.
#[derive(Clone, Debug)]
pub struct VersionEventRow {
    pub tone: Tone,
    pub words: SafeLine,
    pub at: Option<TimestampView>,
}

#[derive(Clone, Debug)]
pub struct VersionCheckRow {
    pub words: &'static str,
    /// A limitation of the check.
    pub but: Option<String>,
}

/// A link that compares two versions.
#[derive(Clone, Debug)]
pub struct CompareLink {
    pub url: String,
    /// Label: "with the head, version 9".
    pub words: String,
}
