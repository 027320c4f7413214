//! Rules for the view that a node receives.

use crate::context::InputSchema;
use crate::json::pointer::Pointer;

#[derive(Debug, Default)]
pub(super) struct ContextRules {
    pub(super) max_tokens: Option<u64>,
    /// Paths that are dropped last, the most important first.
    pub(super) priority: Vec<Pointer>,
    pub(super) requires: Vec<Pointer>,
    pub(super) receives: Option<InputSchema>,
}
