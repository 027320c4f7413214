//! One version of a thread.

use askama::Template;

use crate::web::pages::shared::layout::{Hash, Moment, Shell, Tone};
use crate::web::pages::shared::proof_rows::Row;
use crate::web::pages::shared::safe_text::{Line, Prose};
use crate::web::pages::shared::widgets::Asker;
use crate::web::pages::shared::widgets::Gate;
use crate::web::pages::shared::widgets::{Call, Reason};

/// `GET /threads/{thread}/versions/{version}`.
#[derive(Template, Clone, Debug)]
#[template(path = "version.html")]
pub struct VersionPage {
    /// The frame.
    pub shell: Shell,
    /// The thread.
    pub thread: Line,
    /// What the host calls it.
    pub title: Option<Line>,
    /// Its flow.
    pub flow: Line,
    /// Which version.
    pub version: u64,
    /// The thread's last.
    pub head: u64,
    /// What kind of step it was: "proposed by".
    pub step: String,
    /// Its node.
    pub node: Option<Line>,
    /// Who asked: the token and who answers for it, or the person.
    pub by: Option<Asker>,
    /// When it was asked for.
    pub proposed: Moment,
    /// When it was committed.
    pub committed: Moment,
    /// How it got in.
    pub gate: Gate,
    /// Why people were, or would have been, asked.
    pub reasons: Vec<Reason>,
    /// What rules warned of.
    pub warnings: Vec<Reason>,
    /// The tool that was called along with it.
    pub call: Option<Call>,
    /// What the agent says it used.
    pub usage: Option<Line>,
    /// The agent's words.
    pub rationale: Option<Prose>,
    /// What differs from the version before.
    pub rows: Vec<Row>,
    /// What became of it: receipt and writes, the first thing first.
    pub became: Vec<Became>,
    /// What this page's load checked.
    pub checks: Vec<Checked>,
    /// What is signed, as it is hashed.
    pub statement: Line,
    /// The digest.
    pub digest: Hash,
    /// The signed entry.
    pub entry: Line,
    /// The key that signed it.
    pub kid: Line,
    /// The form that asks for its state again.
    pub rollback: Option<RollbackForm>,
    /// What two versions can be compared with it.
    pub compare: Vec<Compare>,
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
    pub nodes: Vec<Line>,
}

/// One thing that became of a version.
#[derive(Clone, Debug)]
pub struct Became {
    /// How it is meant.
    pub tone: Tone,
    /// In words.
    pub words: Line,
    /// When, if at one moment.
    pub at: Option<Moment>,
}

/// A check that was made.
#[derive(Clone, Debug)]
pub struct Checked {
    /// In words.
    pub words: &'static str,
    /// What about it is less than it could be.
    pub but: Option<String>,
}

/// A way to two versions beside each other.
#[derive(Clone, Debug)]
pub struct Compare {
    /// Where to.
    pub url: String,
    /// In words: "with the head, version 9".
    pub words: String,
}
