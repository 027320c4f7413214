//! What a policy says of what a node is given.

use crate::domain::context::InputSchema;
use crate::domain::json::pointer::Pointer;

/// What a node is given.
#[derive(Debug, Default)]
pub(super) struct ContextRules {
    /// How many tokens.
    pub(super) max_tokens: Option<u64>,
    /// What goes last, the most important first.
    pub(super) priority: Vec<Pointer>,
    /// What must be there.
    pub(super) requires: Vec<Pointer>,
    /// What it may be.
    pub(super) receives: Option<InputSchema>,
}
