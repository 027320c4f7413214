//! View of the rejections page.

use askama::Template;

use crate::pages::shared::layout::{DigestText, PageLayout, TimestampView};
use crate::pages::shared::safe_text::{SafeJson, SafeLine, SafePath};

/// `GET /rejections`.
#[derive(Template, Clone, Debug)]
#[template(path = "rejections.html")]
pub struct RejectionsPage {
    pub shell: PageLayout,
    pub rows: Vec<RejectedRow>,
    pub older_url: Option<String>,
}

#[derive(Clone, Debug)]
pub struct RejectedRow {
    pub node: SafeLine,
    pub flow: SafeLine,
    pub thread: SafeLine,
    pub thread_url: String,
    pub principal: SafeLine,
    pub errors: Vec<ErrorRow>,
    /// Stages that no reviewers could fill, with their members.
    pub unfillable: Vec<SafeLine>,
    /// Number of violations that the row leaves out.
    pub more_errors: usize,
    pub patch: DigestText,
    pub excerpt: SafeJson,
    pub at: TimestampView,
}

#[derive(Clone, Debug)]
pub struct ErrorRow {
    pub code: SafeLine,
    /// Path of the violation. `None` if it concerns the whole proposal.
    pub path: Option<SafePath>,
    pub detail: SafeLine,
}
