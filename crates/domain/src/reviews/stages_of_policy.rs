//! The approval stages that a policy defines for its reviews.

use super::{ApprovalStage, ConfirmationMethod, PasskeyRequirement};
use crate::policy::{CommentRule, ConfirmationRule, PasskeyRule, Policy, PolicyStage};

/// Returns the approval stages of a policy.
pub fn stages_of(policy: &Policy) -> Vec<ApprovalStage> {
    policy.approval().stages().iter().map(stage_of).collect()
}

/// Returns one stage of a policy.
pub fn stage_of(stage: &PolicyStage) -> ApprovalStage {
    ApprovalStage {
        groups: stage.groups().clone(),
        need: stage.need(),
        comment_required: stage.comment() == CommentRule::Required,
        passkey: match stage.passkey() {
            PasskeyRule::Optional => PasskeyRequirement::Nothing {},
            PasskeyRule::Within(time) => PasskeyRequirement::Within { secs: time.as_secs() },
            PasskeyRule::Signs => PasskeyRequirement::Signature {},
        },
        confirm: match stage.confirm() {
            ConfirmationRule::Pressed => ConfirmationMethod::Pressing,
            ConfirmationRule::Typed => ConfirmationMethod::Typing,
        },
    }
}
