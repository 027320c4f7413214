//! What went wrong, that nothing was lost, and what to do.

use askama::Template;

use super::layout::PageLayout;

#[derive(Template, Clone, Debug)]
#[template(path = "error.html")]
pub struct ErrorPage {
    pub shell: PageLayout,
    pub status: u16,
    /// What happened: "This review was decided while you were reading."
    pub happened: String,
    /// What it means for what was typed or waits: "Your vote was not counted. Nothing was lost."
    pub kept: String,
    pub action: ErrorAction,
    /// What the log calls this request.
    pub request_id: String,
}

#[derive(Clone, Debug)]
pub struct ErrorAction {
    pub words: String,
    pub url: String,
}
