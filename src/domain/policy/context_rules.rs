//! What a policy says of what a node is given.

use crate::domain::context::InputSchema;
use crate::domain::json::pointer::Pointer;

#[derive(Debug, Default)]
pub(super) struct ContextRules {
    pub(super) max_tokens: Option<u64>,
    /// What goes last, the most important first.
    pub(super) priority: Vec<Pointer>,
    pub(super) requires: Vec<Pointer>,
    pub(super) receives: Option<InputSchema>,
}
