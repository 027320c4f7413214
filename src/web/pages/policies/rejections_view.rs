//! What the policy turned away.

use askama::Template;

use crate::web::pages::shared::layout::{Hash, Moment, Shell};
use crate::web::pages::shared::safe_text::{Json, Line, Path};

/// `GET /rejections`.
#[derive(Template, Clone, Debug)]
#[template(path = "rejections.html")]
pub struct RejectionsPage {
    /// The frame.
    pub shell: Shell,
    /// The latest first.
    pub rows: Vec<RejectedRow>,
    /// The next page, if there is one.
    pub older_url: Option<String>,
}

/// One attempt.
#[derive(Clone, Debug)]
pub struct RejectedRow {
    /// As which node.
    pub node: Line,
    /// Its flow.
    pub flow: Line,
    /// Its thread.
    pub thread: Line,
    /// The thread's page.
    pub thread_url: String,
    /// The token that tried.
    pub principal: Line,
    /// Why it was turned away.
    pub errors: Vec<ErrorRow>,
    /// Violations beyond those listed.
    pub more_errors: usize,
    /// The patch's hash.
    pub patch: Hash,
    /// Its beginning.
    pub excerpt: Json,
    /// When.
    pub at: Moment,
}

/// One violation.
#[derive(Clone, Debug)]
pub struct ErrorRow {
    /// The rejection's code.
    pub code: Line,
    /// Where, unless it is about the whole.
    pub path: Option<Path>,
    /// What is wrong.
    pub detail: Line,
}
