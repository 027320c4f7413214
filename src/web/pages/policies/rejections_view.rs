//! What the policy turned away.

use askama::Template;

use crate::web::pages::shared::layout::{DigestText, PageLayout, TimestampView};
use crate::web::pages::shared::safe_text::{SafeJson, SafeLine, SafePath};

/// `GET /rejections`.
#[derive(Template, Clone, Debug)]
#[template(path = "rejections.html")]
pub struct RejectionsPage {
    /// The frame.
    pub shell: PageLayout,
    /// The latest first.
    pub rows: Vec<RejectedRow>,
    /// The next page, if there is one.
    pub older_url: Option<String>,
}

/// One attempt.
#[derive(Clone, Debug)]
pub struct RejectedRow {
    /// As which node.
    pub node: SafeLine,
    /// Its flow.
    pub flow: SafeLine,
    /// Its thread.
    pub thread: SafeLine,
    /// The thread's page.
    pub thread_url: String,
    /// The token that tried.
    pub principal: SafeLine,
    /// Why it was turned away.
    pub errors: Vec<ErrorRow>,
    /// Violations beyond those listed.
    pub more_errors: usize,
    /// The patch's hash.
    pub patch: DigestText,
    /// Its beginning.
    pub excerpt: SafeJson,
    /// When.
    pub at: TimestampView,
}

/// One violation.
#[derive(Clone, Debug)]
pub struct ErrorRow {
    /// The rejection's code.
    pub code: SafeLine,
    /// Where, unless it is about the whole.
    pub path: Option<SafePath>,
    /// What is wrong.
    pub detail: SafeLine,
}
