//! What went wrong, that nothing was lost, and what to do.

use askama::Template;

use super::layout::PageLayout;

/// An error for a person.
#[derive(Template, Clone, Debug)]
#[template(path = "error.html")]
pub struct ErrorPage {
    /// The frame.
    pub shell: PageLayout,
    /// The HTTP status.
    pub status: u16,
    /// What happened: "This review was decided while you were reading."
    pub happened: String,
    /// What it means for what was typed or waits: "Your vote was not counted. Nothing was lost."
    pub kept: String,
    /// What to do.
    pub action: ErrorAction,
    /// What the log calls this request.
    pub request_id: String,
}

/// A link that leads on.
#[derive(Clone, Debug)]
pub struct ErrorAction {
    /// The link's words.
    pub words: String,
    /// Where it leads.
    pub url: String,
}
