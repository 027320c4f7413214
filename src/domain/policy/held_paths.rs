//! Which places a rule's reason is about.

use super::model::Policy;

impl Policy {
    /// Returns the paths of the rules that hold a change for this reason, of those that are about the change of one path
    /// and about no tool.
    pub fn held_paths(&self, reason: &str) -> impl Iterator<Item = &str> {
        self.rules.iter().filter(move |it| it.reason == reason).filter_map(|it| it.held_path())
    }
}
