//! The reasons for an approval that come from the kind of a request.

use super::judgement::ReasonCode;
use crate::json::pointer::Pointer;

/// Result of touching a protected value.
#[derive(Clone, Copy)]
pub(super) enum ProtectedTouchEffect {
    Hold,
    Reject,
}

/// Reasons for an approval that come from the kind of request.
#[derive(Clone, Copy)]
pub(super) struct ApprovalBasis<'a> {
    pub(super) always: &'a [ReasonCode],
    /// The paths that a join changed.
    pub(super) changed: &'a [Pointer],
    pub(super) touched: ProtectedTouchEffect,
}
