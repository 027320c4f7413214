//! Looking at a hidden value.

use crate::web::pages::shared::safe_text::{SafePath, SafeText};

/// Posts `csrf`, `digest`, `pointer` and `reason` to `/reviews/{id}/reveal`.
#[derive(Clone, Debug)]
pub struct RevealForm {
    pub action: String,
    /// The session's CSRF token.
    pub csrf: String,
    pub places: Vec<SafePath>,
    /// The reason as typed, when the page comes again.
    pub typed: SafeText,
    /// Why the page comes again.
    pub problem: Option<String>,
}
