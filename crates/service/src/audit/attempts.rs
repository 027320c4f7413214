//! Recomputes the effect of each review and counts the attempts of its node again.

use countersign_domain::chain::hash::Digest;
use countersign_domain::reviews::Hold;
use countersign_domain::reviews::change_fingerprint::RequestedEffect;
use countersign_domain::threads::thread::Thread;
use countersign_domain::threads::transition::{Transition, ValueLocation};
use countersign_store::row::Table;

use super::AuditRun;
use super::load::ThreadRows;
use crate::proposals::denied_attempts::effect_secret;

impl AuditRun<'_> {
    /// Checks that a review has the effect of its transition, and that its node had an attempt left when the review was
    /// opened. Reviews from versions that did not store effects are skipped.
    pub(super) fn check_attempts(
        &mut self,
        hold: &Hold,
        transition: &Transition,
        thread: &Thread,
        own: &ThreadRows<'_>,
    ) {
        // Reviews of older versions have no stored effect.
        let Some(effect) = hold.effect else { return };
        let rewritten = transition.statement.supersedes.filter(|_| transition.editor.is_some());
        // An edit counts as the request that it rewrites, so both reviews have the same effect.
        if let Some(rewritten) = rewritten {
            let same = own.holds.iter().any(|it| it.transition == rewritten && it.effect == Some(effect));
            self.expect(
                same,
                Table::Holds,
                &hold.id,
                "the effect of the review differs from the request that was rewritten",
            );
            return;
        }
        let expected = self.effects_of(hold, transition, thread);
        // The effect of erased values cannot be computed again.
        let same = expected.is_none_or(|it| it.contains(&effect));
        self.expect(same, Table::Holds, &hold.id, "the effect of the review differs from its transition");
        // `check_policies` reports a policy that does not compile.
        let Some(policy) = self.policies.get(&hold.policy) else { return };
        let approval = policy.approval();
        let since = hold.opened_at.minus(approval.attempts_within());
        let is_attempt = |it: &&&Hold| {
            let ended_at = it.state.ended_at();
            // Only earlier attempts within the period of the policy count.
            it.attempted() == Some(effect) && it.opened_at < hold.opened_at && ended_at.is_some_and(|at| at > since)
        };
        let attempts = own.holds.iter().filter(is_attempt).count();
        let is_within = attempts < approval.attempts() as usize;
        self.expect(is_within, Table::Holds, &hold.id, "the node had no attempt left for this change");
    }

    /// Returns the effect of a transition, with and without the owner of its token, or `None` if its values or those
    /// before it are not in the database. Earlier versions stored every effect without the owner.
    fn effects_of(&self, hold: &Hold, transition: &Transition, thread: &Thread) -> Option<[Digest; 2]> {
        let statement = &transition.statement;
        let at = statement.version.checked_sub(1)?;
        if transition.values != ValueLocation::Here || self.is_erased(&statement.thread, at) {
            return None;
        }
        let before = self.state_at(&statement.thread, at)?;
        let proposer = self.all.tokens.get(hold.proposer.as_str());
        let unowned = RequestedEffect {
            policy: self.policies.get(&statement.policy)?,
            node: &hold.node,
            owner: None,
            kind: statement.kind,
            tool: transition.tool.as_ref(),
            before: &before,
            after: &transition.delta.apply(&before).ok()?,
            named: &transition.named,
            reasons: &hold.reasons,
        };
        let secret = effect_secret(self.keys, thread);
        let owned = RequestedEffect { owner: proposer.map(|it| it.record.owner.as_str()), ..unowned };
        Some([owned.digest(&secret), unowned.digest(&secret)])
    }
}
