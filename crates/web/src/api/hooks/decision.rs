//! The decision about a tool call, for the agent's program.

use countersign_service::approval_requests::view::ApprovalRequestView;

pub(super) enum HookDecision {
    /// The approval is used, so the call may run now, once.
    Allow(Box<ApprovalRequestView>),
    /// The call must not run. The text says why, and is for the model.
    Deny(String),
    /// The call must not run yet. The text is for the model, and the address for the user.
    Wait { text: String, page: Option<String> },
}
