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
    /// The frame.
    pub shell: PageLayout,
    /// The thread.
    pub thread: SafeLine,
    /// What the host calls it.
    pub title: Option<SafeLine>,
    /// Its flow.
    pub flow: SafeLine,
    /// Which version.
    pub version: u64,
    /// The thread's last.
    pub head: u64,
    /// What kind of step it was: "proposed by".
    pub step: String,
    /// Its node.
    pub node: Option<SafeLine>,
    /// Who asked: the token and who answers for it, or the person.
    pub by: Option<RequesterView>,
    /// When it was asked for.
    pub proposed: TimestampView,
    /// When it was committed.
    pub committed: TimestampView,
    /// How it got in.
    pub gate: GateView,
    /// Why people were, or would have been, asked.
    pub reasons: Vec<HoldReasonView>,
    /// What rules warned of.
    pub warnings: Vec<HoldReasonView>,
    /// The tool that was called along with it.
    pub call: Option<ToolCallView>,
    /// What the agent says it used.
    pub usage: Option<SafeLine>,
    /// The agent's words.
    pub rationale: Option<SafeText>,
    /// What differs from the version before.
    pub rows: Vec<OpeningRow>,
    /// What became of it: receipt and writes, the first thing first.
    pub became: Vec<VersionEventRow>,
    /// What this page's load checked.
    pub checks: Vec<VersionCheckRow>,
    /// What is signed, as it is hashed.
    pub statement: SafeLine,
    /// The digest.
    pub digest: DigestText,
    /// The signed entry.
    pub entry: SafeLine,
    /// The key that signed it.
    pub kid: SafeLine,
    /// The form that asks for its state again.
    pub rollback: Option<RollbackForm>,
    /// What two versions can be compared with it.
    pub compare: Vec<CompareLink>,
}

/// Asks for a version's state again.
#[derive(Clone, Debug)]
pub struct RollbackForm {
    /// Where it is sent.
    pub action: String,
    /// The session's token.
    pub csrf: String,
    /// The head that the page saw.
    pub head: String,
    /// Which try it is.
    pub attempt: String,
    /// As which nodes it can be asked for.
    pub nodes: Vec<SafeLine>,
}

/// One thing that became of a version.
#[derive(Clone, Debug)]
pub struct VersionEventRow {
    /// How it is meant.
    pub tone: Tone,
    /// In words.
    pub words: SafeLine,
    /// When, if at one moment.
    pub at: Option<TimestampView>,
}

/// A check that was made.
#[derive(Clone, Debug)]
pub struct VersionCheckRow {
    /// In words.
    pub words: &'static str,
    /// What about it is less than it could be.
    pub but: Option<String>,
}

/// A way to two versions beside each other.
#[derive(Clone, Debug)]
pub struct CompareLink {
    /// Where to.
    pub url: String,
    /// In words: "with the head, version 9".
    pub words: String,
}
