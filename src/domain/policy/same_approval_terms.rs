//! Whether two policies ask people alike: then what was shown and voted under one stands under the other.

use super::model::{ApprovalPolicy, Policy};

impl Policy {
    /// Whether people are asked on the same terms, shown the same, and sign for the same writers that read the same.
    pub fn has_same_approval_terms(&self, other: &Self) -> bool {
        let reading = |policy: &Self| -> Vec<_> {
            policy.writers().map(|(name, node)| (name.clone(), node.reads().clone())).collect()
        };
        self.terms() == other.terms()
            && self.hidden == other.hidden
            && self.tools.hidden == other.tools.hidden
            && self.detectors == other.detectors
            && self.reveal_to == other.reveal_to
            && reading(self) == reading(other)
    }

    /// How people decide on holds; how they decide on policies is another matter.
    fn terms(&self) -> ApprovalPolicy {
        ApprovalPolicy { amending: None, ..self.approval.clone() }
    }
}
