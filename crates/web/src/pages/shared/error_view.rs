//! The error page.

use askama::Template;

use super::layout::PageLayout;

#[derive(Template, Clone, Debug)]
#[template(path = "error.html")]
pub struct ErrorPage {
    pub shell: PageLayout,
    pub status: u16,
    /// The event: "The thread has changed since you opened the page".
    pub happened: String,
    /// The effect and the next step: "Nothing was changed. Try again in a moment."
    pub kept: String,
    pub action: ErrorAction,
    /// Id of the request in the server log.
    pub request_id: String,
}

#[derive(Clone, Debug)]
pub struct ErrorAction {
    pub words: String,
    pub url: String,
}
