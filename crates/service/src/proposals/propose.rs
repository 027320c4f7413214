//! Commits, holds or rejects a proposal.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use countersign_domain::chain::entry::CommitGate;
use countersign_domain::chain::hash::Digest;
use countersign_domain::identity::account::Token;
use countersign_domain::json::patch::Patch;
use countersign_domain::json::pointer::Pointer;
use countersign_domain::keys::Keys;
use countersign_domain::policy::{JudgedReason, Judgement, RejectCode, Violation, unreadable};
use countersign_domain::primitives::id::NodeId;
use countersign_domain::primitives::time::Timestamp;
use countersign_domain::reviews::StageShortage;
use countersign_domain::threads::flow::Mode;
use countersign_domain::threads::thread::Thread;
use countersign_domain::threads::transition::{Transition, TransitionOutcome};
use countersign_store::change::Draft;
use countersign_store::record::Stored;

use crate::error::{Error, Result};
use crate::platform::core::ThreadContext;
use crate::platform::retry::retrying;
use crate::proposals::Proposals;
use crate::proposals::branch_hold::branch_violation;
use crate::proposals::context::{ProposalContext, identity_of};
use crate::proposals::denied_attempts::{effect_attempts_exhausted, effect_of};
use crate::proposals::hold::hold_reason;
use crate::proposals::judge_queue::{JudgedRequest, JudgingContext, JudgingJob};
use crate::proposals::outcome::{ProposalOutcome, authors_with};
use crate::proposals::proposer::Proposer;
use crate::proposals::reject::{RejectionCause, attempts_exhausted};
use crate::proposals::request::{Proposal, ProposalKind, RATIONALE_CHARS_MAX};
use crate::proposals::steps::{PriorStep, record_step_attempt, step_attempts_exhausted};
use crate::threads::commit::{GatedTransition, TransitionEffect};
use crate::threads::statement::{JudgedEffect, StatedTransition, StatementInput};

impl Proposals {
    /// Commits, holds or rejects a proposal. The same proposal again gets the same response.
    pub async fn propose(&self, token: &Stored<Token>, proposal: &Proposal) -> Result<ProposalOutcome> {
        check_words(proposal)?;
        let proposal = self.in_turn(proposal, token.record.principal().as_str()).await?;
        retrying!(self.propose_once(token, &proposal))
    }

    async fn propose_once(&self, token: &Stored<Token>, proposal: &Proposal) -> Result<ProposalOutcome> {
        let keys = self.core.keys()?;
        let thread = self.core.thread(&keys, &proposal.thread).await?;
        check_proposer(&token.record, &thread.record, &proposal.node)?;
        let by = Proposer::Token(token);
        let identity = identity_of(&keys, by, proposal);
        // Before the head is checked: a repeated proposal gets its response even if the head has moved since.
        if let Some(answer) = self.answered(&keys, &thread.record, proposal, identity).await? {
            return Ok(answer);
        }
        // Steps are checked on every head, because a step has one effect in the whole thread.
        let trying = match self.prior_step(&keys, &token.record, &thread.record, proposal).await? {
            PriorStep::Done(answer) => return Ok(*answer),
            PriorStep::Open(trying) => trying,
        };
        let standing = self.ready(&keys, thread, proposal.parent).await?;
        let head = self.threads.head(&keys, &standing.thread.record).await?;
        let policy = self.policies.policy(&keys, standing.flow.record.policy).await?;
        let proposal = &self.gather_inputs(&keys, &head, &standing.thread.record, proposal.clone()).await?;
        let (standing, trying) = (&standing, trying.as_ref());
        let (keys, head, policy, given) = (&*keys, &head, &policy, OnceLock::new());
        let asking = ProposalContext { keys, by, proposal, identity, standing, head, policy, trying, given };
        if trying.is_some_and(|it| it.is_exhausted(policy.step_attempts())) {
            return self.reject(&asking, RejectionCause::StepOver(step_attempts_exhausted())).await;
        }
        // Checked before the judgement, so that an agent cannot probe the policy without end.
        if policy.on_violation().is_exhausted(standing.violations(&proposal.node)) {
            return self.reject(&asking, RejectionCause::NoTries(attempts_exhausted())).await;
        }
        let is_branch = standing.thread.record.branch.is_some();
        // A branch may be discarded, but a tool call has an effect outside of the gateway.
        if is_branch && proposal.tool.is_some() {
            return self.reject(&asking, RejectionCause::of(vec![branch_violation(RejectCode::ToolNotAllowed)])).await;
        }
        let judged = self.judge_proposal(&asking).await?;
        match judged {
            Judgement::Reject { violations } => self.reject(&asking, RejectionCause::of(violations)).await,
            Judgement::Commit { after, named, warnings, .. } => {
                let effected = JudgedEffect { after, named: named.into_iter().collect(), warnings };
                self.commit_without_approval(&asking, effected, None).await
            }
            Judgement::Hold { after, named, reasons, warnings, .. } => {
                let effected = JudgedEffect { after, named: named.into_iter().collect(), warnings };
                match (asking.policy.mode(), is_branch) {
                    (Mode::Enforce, false) => self.hold_or_reject(&asking, effected, reasons).await,
                    (Mode::Enforce, true) => self.commit_pending_join(&asking, effected, reasons).await,
                    (Mode::Observe, _) => self.commit_without_approval(&asking, effected, Some(reasons)).await,
                }
            }
        }
    }

    /// Checks that a thread accepts proposals: it is open, not halted, and on the parent of the proposal. A
    /// review past its deadline is ended first, because correctness must not depend on a worker.
    pub(crate) async fn ready(&self, keys: &Keys, thread: Stored<Thread>, parent: Digest) -> Result<ThreadContext> {
        let thread = self.threads.expire_hold_if_due(keys, thread).await?;
        let mut standing = self.core.standing(keys, thread).await?;
        // The parent of a branch must still be on the head that the branch was made from.
        if let Some(branch) = &standing.thread.record.branch {
            standing.origin = Some(Arc::new(self.threads.origin_of(keys, branch).await?));
        }
        let (record, now) = (&standing.thread.record, self.core.now());
        if record.closed.is_some() {
            return Err(Error::Closed);
        }
        if standing.proposing_halted() {
            return Err(Error::Halted);
        }
        if record.head.transition != parent {
            return Err(Error::HeadMoved { version: record.head.version, transition: record.head.transition });
        }
        // A commit during a write would change the state that the writer has verified.
        if record.live_write(now).is_some() {
            return Err(Error::WriteInProgress);
        }
        // One review at a time: a commit below it would change what reviewers approve.
        match &record.hold {
            Some(review) => Err(Error::ThreadHeld(review.clone())),
            None => Ok(standing),
        }
    }

    pub(crate) async fn judge_proposal(&self, asking: &ProposalContext<'_>) -> Result<Judgement> {
        let ProposalContext { keys, policy, head, proposal, .. } = *asking;
        let asks = match &proposal.ask {
            ProposalKind::Patch { format, patch } | ProposalKind::Edit { format, patch, .. } => {
                match (Patch::read(*format, patch.clone()), &proposal.ask) {
                    (Ok(patch), ProposalKind::Edit { .. }) => JudgedRequest::Edit(patch),
                    (Ok(patch), _) => JudgedRequest::Propose(patch),
                    // A malformed patch is a rejection and counts as an attempt, like any other violation.
                    (Err(error), _) => return Ok(unreadable(error.pointer().clone())),
                }
            }
            ProposalKind::Reaffirm => JudgedRequest::Reaffirm,
            ProposalKind::Rollback { to_version } => {
                // A rollback to the head itself would be a change without an effect.
                if *to_version >= head.entry.version {
                    return Err(Error::invalid(
                        "/to_version",
                        "the version is not before the head. Name an earlier version",
                    ));
                }
                JudgedRequest::Rollback(Arc::new(self.threads.version(keys, &proposal.thread, *to_version).await?))
            }
            ProposalKind::Join(join) => match self.joined(policy, &proposal.node, head, join).await? {
                Ok((merged, turn)) => JudgedRequest::Join(Arc::new(merged), turn),
                Err(unread) => return Ok(Judgement::Reject { violations: vec![unread] }),
            },
        };
        let thread = &asking.standing.thread.record;
        let around = JudgingContext {
            principal: asking.by.judged_as().to_string(),
            owner: asking.by.author().to_owned(),
            committed_nodes: thread.committed_nodes.clone(),
            tool: proposal.tool.clone(),
            tool_has_changed: thread.request.as_ref().is_some_and(|it| it.tool_has_changed),
            usage: proposal.usage,
            spent: Some(thread.spent.clone()),
            context_tokens: self.context_tokens_for(asking).await?,
        };
        let (policy, head, node) = (Arc::clone(policy), Arc::clone(head), proposal.node.clone());
        self.judged(JudgingJob { policy, head, node, asks, around }).await
    }

    /// Commits a transition without approval. In observe mode it records the reasons for which the transition
    /// would have been held.
    pub(crate) async fn commit_without_approval(
        &self,
        asking: &ProposalContext<'_>,
        effected: JudgedEffect,
        would_hold: Option<Vec<JudgedReason>>,
    ) -> Result<ProposalOutcome> {
        let now = self.core.now();
        // The draft depends on every row of the decision, so a concurrent change is decided again.
        self.commit_in(asking.draft(now), now, asking, effected, would_hold).await
    }

    /// Commits a transition with the rest of a change, which depends on every row of the decision.
    pub(crate) async fn commit_in(
        &self,
        mut draft: Draft<'_>,
        now: Timestamp,
        asking: &ProposalContext<'_>,
        effected: JudgedEffect,
        would_hold: Option<Vec<JudgedReason>>,
    ) -> Result<ProposalOutcome> {
        let gate = if would_hold.is_some() { CommitGate::Observed {} } else { CommitGate::Auto {} };
        let step = self.create_statement(asking, effected, now).await?;
        let mut thread = asking.standing.thread.record.clone();
        thread.authors = authors_with(&thread, asking.by.author(), &asking.proposal.ask);
        // Computed before `advance`, which takes the step.
        let effect = TransitionEffect::of(&asking.head.state, &step);
        let advanced = self.threads.advance(
            &mut draft,
            asking.keys,
            asking.base(),
            GatedTransition { step, gate, committed_at: now },
            &mut thread,
        )?;
        let entry = advanced.token.clone();
        let outcome = match would_hold {
            Some(reasons) => {
                TransitionOutcome::Observed { entry, would_hold: reasons.into_iter().map(hold_reason).collect() }
            }
            None => TransitionOutcome::Committed { entry },
        };
        let transition = Transition { outcome, ..effect.transition.clone() };
        // Stored even without approval, so that a repeated proposal finds its response.
        draft.insert(&transition)?;
        record_step_attempt(&mut draft, asking, Some(transition.digest))?;
        draft.replace(&asking.standing.thread, &thread)?;
        let answer = ProposalOutcome::committed(asking.policy, &transition, &effect);
        self.core.store_response(&mut draft, asking.keys, &answer)?;
        self.core.commit(draft.finish()).await?;
        // Cached only after the commit, so that the cache never has a head that does not exist.
        self.threads.cache_head(advanced);
        Ok(answer)
    }

    pub(crate) async fn hold_or_reject(
        &self,
        asking: &ProposalContext<'_>,
        effected: JudgedEffect,
        reasons: Vec<JudgedReason>,
    ) -> Result<ProposalOutcome> {
        let thread = &asking.standing.thread.record;
        let opened = thread.holds_opened.get(&asking.proposal.node).copied().unwrap_or(0);
        // Reviewers have limited attention, so an agent must not flood them with reviews.
        if asking.by.has_tries() && opened >= asking.policy.approval().attempts() {
            let detail = "the node has used up its approval requests on this head";
            return self
                .reject(
                    asking,
                    RejectionCause::NoTries(Violation::new(RejectCode::AttemptsExhausted, Pointer::root(), detail)),
                )
                .await;
        }
        // The limit on repeats of a denied change holds on every head.
        let effect = effect_of(asking, &effected, &reasons);
        if self.is_effect_exhausted(asking.keys, asking.policy, effect).await? {
            return self.reject(asking, RejectionCause::EffectOver(effect_attempts_exhausted())).await;
        }
        let authors = authors_with(thread, asking.by.author(), &asking.proposal.ask);
        let unfillable = self.unfillable_stages(asking.keys, asking.policy, &authors).await?;
        if !unfillable.is_empty() {
            return self.reject(asking, nobody_can_approve(unfillable)).await;
        }
        let step = self.create_statement(asking, effected, self.core.now()).await?;
        self.hold(asking, step, reasons, authors, effect).await
    }

    /// Creates the statement of a transition. It is stored and never created again, so that its signature
    /// stays stable.
    pub(crate) async fn create_statement(
        &self,
        asking: &ProposalContext<'_>,
        effected: JudgedEffect,
        now: Timestamp,
    ) -> Result<StatedTransition> {
        let proposal = asking.proposal;
        let restores = match proposal.ask {
            ProposalKind::Rollback { to_version } => {
                Some(self.threads.version(asking.keys, &proposal.thread, to_version).await?.entry.transition)
            }
            ProposalKind::Patch { .. } | ProposalKind::Edit { .. } | ProposalKind::Reaffirm | ProposalKind::Join(_) => {
                None
            }
        };
        let edits = match (&proposal.ask, asking.by.editor()) {
            (ProposalKind::Edit { supersedes, .. }, Some(editor)) => Some((*supersedes, editor.record.id.clone())),
            _ => None,
        };
        let stating = StatementInput {
            kind: proposal.ask.kind(),
            node: &proposal.node,
            principal: asking.by.principal(),
            attempt: Some(proposal.attempt),
            format: proposal.ask.format(),
            patch: proposal.ask.content(),
            rationale: proposal.rationale.clone(),
            tool: proposal.tool.clone(),
            usage: proposal.usage,
            context_tokens: self.context_tokens_for(asking).await?,
            step: proposal.step.clone(),
            restores,
            edits,
            write_id: None,
            joins: proposal.ask.joins()?,
            identity: asking.identity,
            now,
        };
        Ok(self.threads.state(asking.keys, asking.head, asking.policy, stating, effected))
    }
}

/// Returns the rejection of a change that no reviewer can approve. The proposer gets the groups, which a pending review
/// names too, and never their members.
fn nobody_can_approve(unfillable: Vec<StageShortage>) -> RejectionCause {
    let terms: Vec<String> = unfillable.iter().map(StageShortage::terms).collect();
    let detail = format!(
        "not enough reviewers other than the authors could approve this: {}. Ask an administrator to add reviewers, then propose again with the next `attempt`",
        terms.join(", ")
    );
    let violation = Violation {
        code: RejectCode::NobodyCanApprove,
        pointer: Pointer::root(),
        detail: Cow::Owned(detail),
        rule: None,
    };
    RejectionCause::Nobody(violation, unfillable)
}

/// Checks that a token may propose on a thread as a node.
fn check_proposer(token: &Token, thread: &Thread, node: &NodeId) -> Result<()> {
    // Looks like an unknown thread, so that a token cannot probe the threads of other flows.
    if !token.of_flow(&thread.flow) {
        return Err(Error::NotFound("thread"));
    }
    // Only its own instance proposes on the thread of an approval request, so no other agent can move its head.
    if thread.request.as_ref().is_some_and(|it| it.instance != token.principal()) {
        return Err(Error::NotFound("thread"));
    }
    // The node decides what the caller may read and write, so the token must name it.
    if !token.acts_as(&thread.flow, node) {
        return Err(Error::Forbidden(
            "this token may not act as this node of the thread's flow. Use a node that the token names",
        ));
    }
    Ok(())
}

pub(crate) fn check_words(proposal: &Proposal) -> Result<()> {
    if proposal.attempt == 0 {
        return Err(Error::invalid("/attempt", "the first attempt has the number 1"));
    }
    let Some(rationale) = &proposal.rationale else { return Ok(()) };
    if rationale.trim().is_empty() {
        // The page could not show that an invisible text is what was signed, so no reviewer could decide.
        return Err(Error::invalid("/rationale", "the rationale has no visible text. Leave it out"));
    }
    let long = rationale.chars().count() > RATIONALE_CHARS_MAX;
    if long {
        Err(Error::invalid(
            "/rationale",
            format!("the rationale has more than {RATIONALE_CHARS_MAX} characters. Shorten it"),
        ))
    } else {
        Ok(())
    }
}
