//! Which places a rule's reason is about.

use super::model::Policy;

impl Policy {
    /// Returns the paths of the rules that require approval for this reason. Only rules about the change of one path,
    /// and about no tool, have a path.
    pub fn held_paths(&self, reason: &str) -> impl Iterator<Item = &str> {
        self.rules.iter().filter(move |it| it.reason == reason).filter_map(|it| it.held_path())
    }
}
