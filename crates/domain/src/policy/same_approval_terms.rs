//! Compares the approval terms of two policies. If they are equal, votes under one policy stay valid under the other.

use super::model::{ApprovalPolicy, Policy};

impl Policy {
    /// Returns whether both policies require the same approval, show reviewers the same values, and allow the same
    /// writers with the same reads.
    pub fn has_same_approval_terms(&self, other: &Self) -> bool {
        // Reviewers also see the values that each writer will read, so they are part of the terms.
        let reading = |policy: &Self| -> Vec<_> {
            policy.writers().map(|(name, node)| (name.clone(), node.reads().clone())).collect()
        };
        self.terms() == other.terms()
            && self.hidden == other.hidden
            && self.tools.hidden == other.tools.hidden
            && self.tools.changed == other.tools.changed
            && self.tools.described == other.tools.described
            && self.detectors == other.detectors
            && self.reveal_to == other.reveal_to
            && reading(self) == reading(other)
    }

    /// Returns the terms for reviews. The terms for policy changes are compared elsewhere.
    fn terms(&self) -> ApprovalPolicy {
        ApprovalPolicy { amending: None, ..self.approval.clone() }
    }
}
