//! Counts the tokens of the context that nodes received again, with the policy and the state of that time.

use countersign_domain::threads::transition::Transition;
use countersign_store::row::Table;

use super::AuditRun;

impl AuditRun<'_> {
    /// Checks that the context token count of a transition matches the part of its start state that its node could
    /// read. An erased state cannot be counted again. The replay reports a state that cannot be built.
    pub(super) fn check_context_tokens(&mut self, transition: &Transition) {
        let statement = &transition.statement;
        // `check_policies` reports a policy that does not compile.
        let Some(policy) = self.policies.get(&statement.policy) else { return };
        let node = statement.node.as_ref().filter(|it| statement.kind.is_given_context() && policy.bounds_context(it));
        let expected = match (node, statement.version.checked_sub(1)) {
            (Some(node), Some(at)) => {
                // The state is needed for counting.
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
            "the context token count of the transition differs from the state that its node could read",
        );
    }
}
