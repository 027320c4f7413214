//! The form that reveals a redacted value.

use crate::pages::shared::safe_text::{SafePath, SafeText};

/// Posts `csrf`, `digest`, `pointer` and `reason` to `/reviews/{id}/reveal`.
#[derive(Clone, Debug)]
pub struct RevealForm {
    pub action: String,
    pub csrf: String,
    pub places: Vec<SafePath>,
    /// The typed reason, if the form was rejected.
    pub typed: SafeText,
    /// Why the form was rejected.
    pub problem: Option<String>,
}
