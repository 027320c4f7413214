//! The page on which a reviewer proposes an edit.

use askama::Template;

use crate::pages::policies::rejections_view::ErrorRow;
use crate::pages::shared::headline::Headline;
use crate::pages::shared::layout::PageLayout;
use crate::pages::shared::safe_text::{SafePath, SafeText};

/// `GET /reviews/{id}/edit`.
#[derive(Template, Clone, Debug)]
#[template(path = "edit.html")]
pub struct EditPage {
    pub shell: PageLayout,
    pub action: String,
    pub review_url: String,
    pub csrf: String,
    /// Digest of the transition that is edited.
    pub digest: String,
    pub headline: Headline,
    pub fields: Vec<EditField>,
    /// Whether redacted values change too.
    pub hidden: bool,
    /// Whether the agent's patch is a JSON Patch. The editor then uses the same format.
    pub steps: bool,
    /// The typed field for more changes, if the form was rejected.
    pub more: SafeText,
    /// The typed reason, if the form was rejected.
    pub why: SafeText,
    /// Violations of the policy by the typed values.
    pub errors: Vec<ErrorRow>,
    /// Why the form was rejected.
    pub problem: Option<String>,
}

#[derive(Clone, Debug)]
pub struct EditField {
    pub path: SafePath,
    pub name: String,
    /// JSON in which invisible characters are escaped.
    pub value: SafeText,
}
