//! Judges pending reviews again after another policy was activated for the flow.
//!
//! A review is never approved under a policy that no longer judges its flow. Rejudging has three results:
//!
//! - All approval terms are the same, and the review stays open with its votes.
//! - The proposal is restated under the active policy, and reviewers vote again.
//! - The review ends, and the proposer can propose again.
//!
//! A vote rejudges its review first, so correctness does not depend on the worker.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use countersign_domain::chain::hash::Digest;
use countersign_domain::identity::account::Token;
use countersign_domain::keys::Keys;
use countersign_domain::policy::{JudgedReason, Judgement, Policy};
use countersign_domain::policy_changes::change_request::ReplacedPolicy;
use countersign_domain::primitives::id::ReviewId;
use countersign_domain::primitives::time::Timestamp;
use countersign_domain::reviews::{Hold, HoldReason, HoldState};
use countersign_domain::threads::flow::Mode;
use countersign_domain::threads::transition::{HoldEndReason, Rejection, Transition};
use countersign_store::change::Draft;
use countersign_store::record::Stored;

use crate::error::{Error, Result};
use crate::platform::core::ThreadContext;
use crate::platform::retry::retrying;
use crate::proposals::context::{ProposalContext, identity_of};
use crate::proposals::denied_attempts::effect_of;
use crate::proposals::hold::{HoldTerms, add_hold, hold_reason};
use crate::proposals::outcome::authors_with;
use crate::proposals::proposer::Proposer;
use crate::proposals::request::Proposal;
use crate::reviews::Reviews;
use crate::threads::hold_end::HoldEnd;
use crate::threads::statement::JudgedEffect;

/// The result of rejudging a review.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RejudgeOutcome {
    /// The review stays open, with its votes.
    Kept,
    /// The review ended, and a restated one may have replaced it.
    Ended,
}

/// How many further attempt numbers are examined to find an unused one.
const TRIES_MAX: u32 = 100;

/// The judgement of a held proposal by the active policy.
enum RejudgedProposal {
    /// The effect and the approval terms are the same.
    Same,
    /// The proposal requires approval under other terms.
    Hold(JudgedEffect, Vec<JudgedReason>, BTreeSet<String>),
    /// The proposal cannot be reviewed: it would be committed or rejected, or no reviewer could approve it.
    Nobody,
}

impl Reviews {
    /// Returns pending reviews whose policy is no longer the active policy of their flow.
    pub async fn holds_to_rejudge(&self) -> Result<Vec<ReviewId>> {
        let keys = self.core.keys()?;
        let judging = self.policies.active_policy_by_flow(&keys).await?;
        // A review without a flow row is skipped, so that it does not block the others. An audit reports it.
        let of_before = |hold: Hold| {
            let over = judging.get(&hold.flow).filter(|it| it.policy != hold.policy)?;
            (!self.holds_looked.stands(hold.id.as_str(), *over)).then_some(hold.id)
        };
        // Every open review was judged under exactly these policies, so nothing has to be read.
        if self.holds_looked.is_done(&judging) {
            return Ok(Vec::new());
        }
        let found = self.core.select_open(&keys, of_before).await?;
        // A list that was cut says nothing about the rest, so the next pass reads it again.
        if found.items.is_empty() && found.is_complete {
            self.holds_looked.done(judging);
        }
        Ok(found.items)
    }

    /// Judges one review again, if it is still open and its flow is not halted.
    pub async fn rejudge_hold(&self, review: &ReviewId) -> Result<()> {
        retrying!({
            let keys = self.core.keys()?;
            let hold: Stored<Hold> = self.core.need(&keys, review.as_str(), "review").await?;
            let thread = self.core.thread(&keys, &hold.record.thread).await?;
            let standing = self.core.standing(&keys, thread).await?;
            // During a halt nothing new is stated. The review is judged again after the halt, or before the next
            // vote.
            if !hold.record.is_open(self.core.now()) || standing.proposing_halted() {
                return Ok(());
            }
            match self.rejudge(&keys, &standing, &hold).await {
                Err(error) if error.is_too_late() => Ok(()),
                done => done.map(drop),
            }
        })
    }

    /// Judges a pending review by the active policy of its flow. If the review does not stay open, it has
    /// ended when this returns.
    pub(crate) async fn rejudge(
        &self,
        keys: &Keys,
        standing: &ThreadContext,
        hold: &Stored<Hold>,
    ) -> Result<RejudgeOutcome> {
        let active = standing.flow.record.policy;
        // The votes were cast under the policy that is active, so they stay valid.
        if hold.record.policy == active {
            return Ok(RejudgeOutcome::Kept);
        }
        let policy = self.policies.policy(keys, active).await?;
        let transition = self.threads.transition(keys, hold.record.transition).await?;
        // A revoked token cannot propose, so the gateway does not restate its proposals either.
        let token =
            self.core.fetch::<Token>(keys, hold.record.proposer.as_str()).await?.filter(|it| !it.record.revoked);
        let (Some(token), Some(proposal)) = (token, Proposal::of(&transition)) else {
            return self.end_without_replacement(keys, standing, hold).await;
        };
        let Some((proposal, identity)) = self.next_attempt(keys, Proposer::Token(&token), proposal).await? else {
            return self.end_without_replacement(keys, standing, hold).await;
        };
        let thread = &standing.thread.record;
        let head = self.threads.head(keys, thread).await?;
        let proposal = self.proposals.in_turn(&proposal, thread.id.as_str()).await?.into_owned();
        let proposal = self.proposals.gather_inputs(keys, &head, thread, proposal).await?;
        let (by, proposal) = (Proposer::Token(&token), &proposal);
        let (head, policy, given) = (&head, &policy, OnceLock::new());
        let asking = ProposalContext { keys, by, proposal, identity, standing, head, policy, trying: None, given };
        match self.judge_under_active_policy(&asking, hold, &transition).await? {
            RejudgedProposal::Same => {
                self.holds_looked.keep(hold.record.id.as_str(), ReplacedPolicy::of(&standing.flow.record));
                Ok(RejudgeOutcome::Kept)
            }
            RejudgedProposal::Hold(effected, reasons, authors) => {
                self.restate_hold(&asking, hold, effected, reasons, authors).await
            }
            RejudgedProposal::Nobody => self.end_without_replacement(keys, standing, hold).await,
        }
    }

    async fn judge_under_active_policy(
        &self,
        asking: &ProposalContext<'_>,
        hold: &Stored<Hold>,
        transition: &Transition,
    ) -> Result<RejudgedProposal> {
        let (policy, flow) = (asking.policy, &asking.standing.flow.record);
        let judged = match self.proposals.judge_proposal(asking).await {
            // The branches of the join cannot be merged under this policy.
            Err(Error::Conflict { .. } | Error::Invalid { .. }) if asking.proposal.ask.carried().is_some() => {
                return Ok(RejudgedProposal::Nobody);
            }
            judged => judged?,
        };
        // A change that the active policy would commit or reject must not wait for reviewers.
        let (Judgement::Hold { after, named, reasons, warnings, .. }, Mode::Enforce) = (judged, policy.mode()) else {
            return Ok(RejudgedProposal::Nobody);
        };
        let effected = JudgedEffect { after, named: named.into_iter().collect(), warnings };
        let old = self.policies.policy(asking.keys, hold.record.policy).await?;
        // An earlier release may have worded the stored reasons.
        let stored: Vec<HoldReason> = hold.record.reasons.iter().map(HoldReason::in_current_wording).collect();
        let current: Vec<HoldReason> = reasons.iter().cloned().map(|it| hold_reason(it).in_current_wording()).collect();
        let effect = transition.delta.apply(&asking.head.state).map_err(|_| Error::Broken("a transition's effect"))?;
        // The votes stay valid only if the reviewers would decide on exactly the same facts and terms.
        let same = flow.accepts.contains(&hold.record.policy)
            && current == stored
            && effect == effected.after
            && transition.named == effected.named
            && transition.warnings == effected.warnings
            && policy.has_same_approval_terms(&old);
        if same {
            return Ok(RejudgedProposal::Same);
        }
        let effect = effect_of(asking, &effected, &reasons);
        // A restated review counts as an attempt, so a stricter policy can leave none.
        if is_exhausted(asking) || self.proposals.is_effect_exhausted(asking.keys, policy, effect).await? {
            return Ok(RejudgedProposal::Nobody);
        }
        let authors = authors_with(&asking.standing.thread.record, asking.by.author(), &asking.proposal.ask);
        let unfillable = self.proposals.unfillable_stages(asking.keys, policy, &authors).await?;
        Ok(if unfillable.is_empty() {
            RejudgedProposal::Hold(effected, reasons, authors)
        } else {
            RejudgedProposal::Nobody
        })
    }

    /// Returns the same request with the next unused attempt number, because the identity of a proposal is
    /// never reused.
    pub(crate) async fn next_attempt(
        &self,
        keys: &Keys,
        by: Proposer<'_>,
        mut proposal: Proposal,
    ) -> Result<Option<(Proposal, Digest)>> {
        for _ in 0..TRIES_MAX {
            proposal.attempt = proposal.attempt.saturating_add(1);
            let identity = identity_of(keys, by, &proposal);
            let name = identity.to_string();
            let rejected = self.core.fetch::<Rejection>(keys, &name).await?.is_some();
            if !rejected && self.core.reader(keys).get_by_alias::<Transition>(&name).await?.is_none() {
                return Ok(Some((proposal, identity)));
            }
        }
        Ok(None)
    }

    /// Ends the old review and opens one under the active policy, in one transaction.
    async fn restate_hold(
        &self,
        asking: &ProposalContext<'_>,
        hold: &Stored<Hold>,
        effected: JudgedEffect,
        reasons: Vec<JudgedReason>,
        authors: BTreeSet<String>,
    ) -> Result<RejudgeOutcome> {
        let now = self.core.now();
        let effect = effect_of(asking, &effected, &reasons);
        let step = self.proposals.create_statement(asking, effected, now).await?;
        let mut draft = asking.draft(now);
        // After the deadline the review has expired and cannot be replaced.
        draft.before(hold.record.expires_at);
        let mut thread = asking.standing.thread.record.clone();
        // Waiting agents follow this digest to the new review.
        let end = superseded(now, Some(step.transition.digest), asking.policy);
        self.threads.add_hold_end(&mut draft, asking.keys, &mut thread, hold, end).await?;
        let terms = HoldTerms { reasons, excluded: authors, effect, opened_at: now };
        add_hold(&mut draft, &mut thread, asking, step, terms)?;
        draft.replace(&asking.standing.thread, &thread)?;
        self.core.commit(draft.finish()).await?;
        Ok(RejudgeOutcome::Ended)
    }

    /// Ends a review without a replacement. Its proposer can propose again under the active policy.
    async fn end_without_replacement(
        &self,
        keys: &Keys,
        standing: &ThreadContext,
        hold: &Stored<Hold>,
    ) -> Result<RejudgeOutcome> {
        let now = self.core.now();
        let policy = self.policies.policy(keys, standing.flow.record.policy).await?;
        let mut draft = Draft::new(keys.row(), now);
        // The flow may activate another policy at the same time.
        standing.rely(&mut draft);
        draft.before(hold.record.expires_at);
        let mut thread = standing.thread.record.clone();
        self.threads.add_hold_end(&mut draft, keys, &mut thread, hold, superseded(now, None, &policy)).await?;
        draft.replace(&standing.thread, &thread)?;
        self.core.commit(draft.finish()).await?;
        Ok(RejudgeOutcome::Ended)
    }
}

/// Returns whether the node has used up its approval requests or rejections on this head under the active
/// policy. The review that is judged again is not counted.
fn is_exhausted(asking: &ProposalContext<'_>) -> bool {
    let (thread, node) = (&asking.standing.thread.record, &asking.proposal.node);
    let others = thread.holds_opened.get(node).copied().unwrap_or(0).saturating_sub(1);
    let violations = thread.violations.get(node).copied().unwrap_or(0);
    others >= asking.policy.approval().attempts() || asking.policy.on_violation().is_exhausted(violations)
}

fn superseded(now: Timestamp, by: Option<Digest>, policy: &Policy) -> HoldEnd {
    let state = HoldState::Superseded { at: now, by, policy: Some(policy.digest()) };
    HoldEnd { state, reason: HoldEndReason::Superseded, at: now }
}
