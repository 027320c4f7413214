//! Looking at a hidden value.

use crate::web::pages::shared::safe_text::{Path, Prose};

/// Posts `csrf`, `digest`, `pointer` and `reason` to `/reviews/{id}/reveal`.
#[derive(Clone, Debug)]
pub struct RevealForm {
    /// Where it goes.
    pub action: String,
    /// The session's CSRF token.
    pub csrf: String,
    /// What can be looked at.
    pub places: Vec<Path>,
    /// The reason as typed, when the page comes again.
    pub typed: Prose,
    /// Why the page comes again.
    pub problem: Option<String>,
}
