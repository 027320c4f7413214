//! Labels of events for pages. An event without a label is shown by its wire name.

/// Prefixes of event names, with the label of each group.
pub const KINDS: [(&str, &str); 11] = [
    ("thread", "Threads"),
    ("transition", "Transitions"),
    ("review", "Reviews"),
    ("receipt", "Receipts"),
    ("write", "Writes"),
    ("policy", "Policies"),
    ("episode", "Episodes"),
    ("interrupt", "Interrupts"),
    ("key", "Keys"),
    ("endpoint", "Endpoints"),
    ("access", "Access"),
];

const WORDS: [(&str, &str); 80] = [
    ("thread.created", "Thread created"),
    ("thread.closed", "Thread closed"),
    ("thread.reopened", "Thread reopened"),
    ("thread.forked", "Branches created"),
    ("thread.archived", "Old versions archived"),
    ("thread.restored", "Archived versions restored"),
    ("thread.erased", "Archived values erased"),
    ("transition.committed", "Version committed"),
    ("transition.held", "Proposal held for approval"),
    ("transition.rejected", "Proposal rejected"),
    ("transition.approved", "Proposal approved"),
    ("transition.denied", "Proposal denied"),
    ("transition.expired", "Proposal expired without a decision"),
    ("transition.cancelled", "Proposal cancelled"),
    ("transition.superseded", "Proposal superseded"),
    ("review.vote", "Vote on a review"),
    ("review.withdrawn", "Vote withdrawn"),
    ("review.commented", "Comment on a review"),
    ("review.revealed", "Redacted value revealed"),
    ("review.extended", "Review deadline extended"),
    ("review.reminded", "Reviewers reminded"),
    ("review.escalated", "Review escalated to more reviewers"),
    ("receipt.issued", "Receipt issued"),
    ("receipt.revoked", "Receipt revoked"),
    ("write.reserved", "Write authorized"),
    ("write.confirmed", "Write confirmed"),
    ("write.aborted", "Write aborted"),
    ("write.failed", "Call failed"),
    ("write.lapsed", "Write lease expired, outcome unknown"),
    ("write.resolved", "Write resolved by an administrator"),
    ("policy.proposed", "Policy change requested"),
    ("policy.vote", "Vote on a policy change request"),
    ("policy.ended", "Policy change request ended"),
    ("policy.activated", "Policy activated"),
    ("episode.event", "Episode event from an agent"),
    ("episode.imported", "Episode imported"),
    ("interrupt.received", "Interrupt received from a host"),
    ("interrupt.posted", "Signed post accepted from a host"),
    ("interrupt.vote", "Vote on an interrupt"),
    ("interrupt.approved", "Interrupt approved"),
    ("interrupt.denied", "Interrupt denied"),
    ("interrupt.expired", "Interrupt expired without a decision"),
    ("interrupt.superseded", "Interrupt superseded"),
    ("envelope.refused", "Envelope refused"),
    ("key.rotated", "Keys rotated"),
    ("endpoint.disabled", "Endpoint disabled after failed deliveries"),
    ("endpoint.recovered", "Endpoint recovered"),
    ("access.endpoint_added", "Endpoint added"),
    ("access.endpoint_changed", "Endpoint changed"),
    ("access.endpoint_secret_made", "Endpoint secret rotated"),
    ("access.endpoint_removed", "Endpoint removed"),
    ("access.account_added", "Account added"),
    ("access.account_changed", "Role or groups of an account changed"),
    ("access.account_disabled", "Account disabled"),
    ("access.account_enabled", "Account enabled"),
    ("access.token_added", "Token added"),
    ("access.post_secret_made", "Signing secret created for posts of a host"),
    ("access.envelope_secret_given", "Envelope secret issued to a node"),
    ("access.token_revoked", "Token revoked"),
    ("access.setup_link_made", "Set-up link created"),
    ("access.setup_link_used", "Set-up link used"),
    ("access.invited", "Person invited"),
    ("access.reset_link_made", "Password reset link created"),
    ("access.link_withdrawn", "One-time link withdrawn"),
    ("access.password_reset", "Password reset by link"),
    ("access.password_changed", "Password changed"),
    ("access.passkey_added", "Passkey added"),
    ("access.passkey_removed", "Passkey removed"),
    ("access.passkey_refused", "Passkey refused"),
    ("access.provider_asked", "Sign-in at the identity provider started"),
    ("access.sign_in_slowed", "Failed sign-ins slowed down"),
    ("access.unlocked", "Sign-in unlocked by an administrator"),
    ("access.signed_in", "Signed in"),
    ("access.sign_in_failed", "Failed sign-in"),
    ("access.delegated", "Delegation created"),
    ("access.delegation_ended", "Delegation ended early"),
    ("access.signed_out", "Signed out"),
    ("access.halted", "Flows halted"),
    ("access.halt_lifting", "Halt lift requested"),
    ("access.halt_lifted", "Halt lifted"),
];

/// Returns the label of an event.
pub fn of(name: &'static str) -> &'static str {
    // The wire name is the fallback, because an audit log must show every event.
    WORDS.iter().find(|it| it.0 == name).map_or(name, |it| it.1)
}

#[cfg(test)]
mod tests {
    use countersign_domain::log::event::EventType;

    use super::of;

    #[test]
    fn every_event_has_a_label() {
        for kind in EventType::ALL {
            assert_ne!(of(kind.name()), kind.name());
        }
    }
}
