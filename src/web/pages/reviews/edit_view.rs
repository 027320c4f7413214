//! An edit: what a reviewer would rather have than what is held.

use askama::Template;

use crate::web::pages::policies::rejections_view::ErrorRow;
use crate::web::pages::shared::headline::Headline;
use crate::web::pages::shared::layout::PageLayout;
use crate::web::pages::shared::safe_text::{SafePath, SafeText};

/// `GET /reviews/{id}/edit`.
#[derive(Template, Clone, Debug)]
#[template(path = "edit.html")]
pub struct EditPage {
    pub shell: PageLayout,
    pub action: String,
    pub review_url: String,
    /// The session's CSRF token.
    pub csrf: String,
    /// The digest of what is rewritten.
    pub digest: String,
    pub headline: Headline,
    /// The values that would be set.
    pub fields: Vec<EditField>,
    /// Whether something that is hidden changes, too.
    pub hidden: bool,
    /// Whether the agent sent a list of steps, and so may the editor.
    pub steps: bool,
    /// What else was asked for, when the page comes again.
    pub more: SafeText,
    /// Why, when the page comes again.
    pub why: SafeText,
    /// What the policy says of what was typed.
    pub errors: Vec<ErrorRow>,
    /// Why the page comes again.
    pub problem: Option<String>,
}

/// A value that would be set.
#[derive(Clone, Debug)]
pub struct EditField {
    pub path: SafePath,
    pub name: String,
    /// As JSON, with what cannot be seen by its number.
    pub value: SafeText,
}
