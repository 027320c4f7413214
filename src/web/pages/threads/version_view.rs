//! One version of a thread.

use askama::Template;

use crate::web::pages::shared::layout::{DigestText, PageLayout, TimestampView, Tone};
use crate::web::pages::shared::proof_rows::OpeningRow;
use crate::web::pages::shared::safe_text::{SafeLine, SafeText};
use crate::web::pages::shared::widgets::GateView;
use crate::web::pages::shared::widgets::RequesterView;
use crate::web::pages::shared::widgets::{HoldReasonView, ToolCallView};

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
    /// What kind of step it was: "proposed by".
    pub step: String,
    pub node: Option<SafeLine>,
    /// Who asked: the token and who answers for it, or the person.
    pub by: Option<RequesterView>,
    pub proposed: TimestampView,
    pub committed: TimestampView,
    pub gate: GateView,
    /// Why people were, or would have been, asked.
    pub reasons: Vec<HoldReasonView>,
    pub warnings: Vec<HoldReasonView>,
    /// The tool that was called along with it.
    pub call: Option<ToolCallView>,
    /// What the agent says it used.
    pub usage: Option<SafeLine>,
    pub rationale: Option<SafeText>,
    /// What differs from the version before.
    pub rows: Vec<OpeningRow>,
    /// What became of it: receipt and writes, the first thing first.
    pub became: Vec<VersionEventRow>,
    /// What this page's load checked.
    pub checks: Vec<VersionCheckRow>,
    /// What is signed, as it is hashed.
    pub statement: SafeLine,
    pub digest: DigestText,
    pub entry: SafeLine,
    pub kid: SafeLine,
    /// The form that asks for its state again.
    pub rollback: Option<RollbackForm>,
    /// What two versions can be compared with it.
    pub compare: Vec<CompareLink>,
}

/// Asks for a version's state again.
#[derive(Clone, Debug)]
pub struct RollbackForm {
    pub action: String,
    pub csrf: String,
    /// The head that the page saw.
    pub head: String,
    pub attempt: String,
    /// As which nodes it can be asked for.
    pub nodes: Vec<SafeLine>,
}

/// One thing that became of a version.
#[derive(Clone, Debug)]
pub struct VersionEventRow {
    pub tone: Tone,
    pub words: SafeLine,
    pub at: Option<TimestampView>,
}

#[derive(Clone, Debug)]
pub struct VersionCheckRow {
    pub words: &'static str,
    /// What about it is less than it could be.
    pub but: Option<String>,
}

/// A way to two versions beside each other.
#[derive(Clone, Debug)]
pub struct CompareLink {
    pub url: String,
    /// In words: "with the head, version 9".
    pub words: String,
}
