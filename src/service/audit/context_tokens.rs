//! What nodes were given, counted again: by the policy that judged, on the state that was there.

use super::AuditRun;
use crate::domain::threads::transition::Transition;
use crate::store::row::Table;

impl AuditRun<'_> {
    /// What a transition says that its node was given is what the node could read of the state that it was made on. Where
    /// that state is erased it cannot be counted again; where it cannot be put together, the replay says so.
    pub(super) fn check_context_tokens(&mut self, transition: &Transition) {
        let statement = &transition.statement;
        let Some(policy) = self.policies.get(&statement.policy) else { return };
        let node = statement.node.as_ref().filter(|it| statement.kind.is_given_context() && policy.bounds_context(it));
        let expected = match (node, statement.version.checked_sub(1)) {
            (Some(node), Some(at)) => {
                if self.is_erased(&statement.thread, at) {
                    return;
                }
                let Some(state) = self.state_at(&statement.thread, at) else { return };
                policy.context_tokens(node, &state)
            }
            _ => None,
        };
        let same = transition.context_tokens == expected;
        self.expect(
            same,
            Table::Transitions,
            transition.digest,
            "what it counts that its node was given is not what that was",
        );
    }
}
