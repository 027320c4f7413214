//! Whether two policies ask people alike: then what was shown and voted under one stands under the other.

use super::model::Policy;

impl Policy {
    /// Whether people are asked on the same terms, shown the same, and sign for the same writers that read the same.
    pub fn asks_as(&self, other: &Self) -> bool {
        let reading = |policy: &Self| -> Vec<_> {
            policy.writers().map(|(name, node)| (name.clone(), node.reads().clone())).collect()
        };
        self.approval == other.approval
            && self.hidden == other.hidden
            && self.detectors == other.detectors
            && reading(self) == reading(other)
    }
}
