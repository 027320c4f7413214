//! Edits: a reviewer's change of a held proposal. The edit supersedes the proposal, is judged as if its node
//! had proposed it, and is always held, because reviewers other than the editor must decide.

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use countersign_domain::chain::hash::Digest;
use countersign_domain::chain::statement::TransitionType;
use countersign_domain::identity::account::{Account, Token};
use countersign_domain::identity::party::Party;
use countersign_domain::json::diff::{diff, leaves};
use countersign_domain::json::patch::Patch;
use countersign_domain::json::pointer::{Pointer, array_index};
use countersign_domain::keys::Keys;
use countersign_domain::policy::{JudgedReason, Judgement, Policy, Redactor, Violation};
use countersign_domain::primitives::id::{AccountId, ReviewId};
use countersign_domain::reviews::edit::{EDITS_MAX, EditRejected, ReviewEdit, edited};
use countersign_domain::reviews::{Hold, HoldState, VoteRejected, can_be_approved, stages_of};
use countersign_domain::threads::transition::{HoldEndReason, Transition};
use countersign_domain::threads::usage::Usage;
use countersign_store::record::Stored;
use serde_json::Value;

use super::rejudge::RejudgeOutcome;
use super::vote::check_open;
use crate::error::{Error, Result};
use crate::platform::core::ThreadContext;
use crate::platform::retry::retrying;
use crate::proposals::context::ProposalContext;
use crate::proposals::hold::{HoldTerms, add_hold};
use crate::proposals::outcome::authors_with;
use crate::proposals::proposer::Proposer;
use crate::proposals::request::{Proposal, ProposalKind, RATIONALE_CHARS_MAX};
use crate::reviews::Reviews;
use crate::threads::hold_end::HoldEnd;
use crate::threads::statement::JudgedEffect;
use crate::threads::transition_view::LoadedTransition;

#[derive(Clone, PartialEq, Debug)]
pub struct EditRequest {
    pub transition: Digest,
    pub edit: ReviewEdit,
    pub why: String,
}

#[derive(Clone, Debug)]
pub enum EditResult {
    /// The edit is held for approval in a new review.
    Held(ReviewId),
    /// The policy rejects the edit, and nothing changed. Paths in the violations end before a redacted name.
    Rejected(Vec<Violation>),
}

const HIDDEN: &str = "the edit touches a redacted value, which cannot be edited";
const NOT_EDITABLE: &str = "only a change that an agent proposed can be edited";
const TOO_MANY: &str =
    "the proposal has reached the limit of edits; vote on it, or wait for a new proposal of the agent";
const NO_AGENT: &str = "the agent's token is revoked, so its proposal cannot be edited; deny the review";
const NOBODY: &str = "no reviewer would be left who could approve the edit";

const CALL_IS_FIXED: &str = "the agent waits for exactly this call, so it cannot be edited; deny it with a comment";

/// A reviewer's edit of a pending proposal, with the rows that it relies on.
#[derive(Clone, Copy)]
struct EditContext<'a> {
    keys: &'a Keys,
    standing: &'a ThreadContext,
    hold: &'a Stored<Hold>,
    person: &'a Stored<Account>,
    /// The agent's token.
    token: &'a Stored<Token>,
    transition: &'a Transition,
    ask: &'a EditRequest,
}

impl Reviews {
    /// Replaces a held proposal with an edit, which is held for approval.
    pub async fn rewrite(&self, editor: &AccountId, review: &ReviewId, ask: &EditRequest) -> Result<EditResult> {
        // The database's clock decides about the deadline, so the commit can fail after the check below
        // passed.
        let length = ask.why.trim().chars().count();
        if length == 0 || length > RATIONALE_CHARS_MAX {
            return Err(Error::invalid("/why", format!("give a reason of at most {RATIONALE_CHARS_MAX} characters")));
        }
        retrying!({
            let (keys, now) = (self.core.keys()?, self.core.now());
            let person: Stored<Account> =
                self.core.fetch(&keys, editor.as_str()).await?.ok_or(Error::Unauthenticated)?;
            let hold: Stored<Hold> = self.core.need(&keys, review.as_str(), "review").await?;
            let thread = self.core.thread(&keys, &hold.record.thread).await?;
            // The agent runs exactly the call that it asked for, and an edit would be another change.
            if thread.record.request.is_some() {
                return Err(Error::WrongState(CALL_IS_FIXED));
            }
            let standing = self.core.standing(&keys, thread).await?;
            check_open(&standing, &hold.record, now)?;
            if now >= hold.record.expires_at {
                return Err(VoteRejected::Expired.into());
            }
            if ask.transition != hold.record.transition {
                return Err(VoteRejected::Digest.into());
            }
            let transition = self.threads.transition(&keys, hold.record.transition).await?;
            hold.record.may_rewrite(&person.record, transition.editor.as_ref(), now).map_err(VoteRejected::from)?;
            if self.rejudge(&keys, &standing, &hold).await? != RejudgeOutcome::Kept {
                return Err(VoteRejected::PolicyChanged.into());
            }
            self.check_rewritable(&keys, &transition).await?;
            let token = self.core.fetch::<Token>(&keys, hold.record.proposer.as_str()).await?;
            let token = token.filter(|it| !it.record.revoked).ok_or(Error::WrongState(NO_AGENT))?;
            let (keys, standing, hold, person, token, transition) =
                (&*keys, &standing, &hold, &person, &token, &transition);
            self.rewrite_as(EditContext { keys, standing, hold, person, token, transition, ask }).await
        })
        .map_err(Error::expired_if_too_late)
    }

    async fn rewrite_as(&self, edit: EditContext<'_>) -> Result<EditResult> {
        let EditContext { keys, standing, hold, person, token, transition, ask } = edit;
        let head = self.threads.head(keys, &standing.thread.record).await?;
        let policy = self.policies.policy(keys, standing.flow.record.policy).await?;
        let proposed = transition.delta.apply(&head.state).map_err(|_| Error::Broken("a transition's effect"))?;
        let hiding = self.hiding_for_edit(&edit, &policy, &head.state, &proposed).await?;
        if ask.edit.places(transition.format).iter().any(|it| touches_redacted(&hiding, [&head.state, &proposed], it)) {
            return Err(Error::WrongState(HIDDEN));
        }
        let patch = edited(transition.format, &transition.patch, &ask.edit)?;
        self.check_redacted_unchanged(transition, &head.state, &proposed, &patch, &hiding)?;
        let statement = &transition.statement;
        let usage = statement.usage.as_ref().map_or(Some(Usage::default()), |it| Usage::read(it).ok());
        let proposal = Proposal {
            thread: statement.thread.clone(),
            node: hold.record.node.clone(),
            parent: head.entry.transition,
            ask: ProposalKind::Edit { format: transition.format, patch, supersedes: transition.digest },
            // `next_attempt` below finds the first unused number.
            attempt: 0,
            rationale: Some(ask.why.clone()),
            tool: transition.tool.clone(),
            usage: usage.ok_or(Error::Broken("the usage of a statement"))?,
            step: None,
        };
        let by = Proposer::Editor(person, token);
        let Some((proposal, identity)) = self.next_attempt(keys, by, proposal).await? else {
            return Err(Error::WrongState(TOO_MANY));
        };
        let (proposal, trying) = (&proposal, None);
        let (head, policy, given) = (&head, &policy, OnceLock::new());
        let asking = ProposalContext { keys, by, proposal, identity, standing, head, policy, trying, given };
        match self.proposals.judge_proposal(&asking).await? {
            Judgement::Hold { after, named, reasons, warnings, .. } => {
                let effected = JudgedEffect { after, named: named.into_iter().collect(), warnings };
                self.hold_edit(&asking, hold, effected, reasons).await
            }
            Judgement::Reject { violations } => Ok(EditResult::Rejected(hiding.violations(violations))),
            // `JudgedRequest::Edit` never commits without approval.
            Judgement::Commit { .. } => Err(Error::Broken("an edit is always held")),
        }
    }

    /// Returns the redaction that the editor must not touch. Leaves and names that the editor chose are not
    /// compared with redacted values, because a refusal would confirm a guess.
    async fn hiding_for_edit<'p>(
        &self,
        edit: &EditContext<'_>,
        policy: &'p Arc<Policy>,
        before: &Value,
        after: &Value,
    ) -> Result<Redactor<'p>> {
        let EditContext { person, transition, ask, .. } = *edit;
        let (before, after, policies) = (before.clone(), after.clone(), vec![Arc::clone(policy)]);
        let loaded = LoadedTransition { transition: transition.clone(), policies, before, after };
        let findings = self.threads.findings_in(loaded, &Party::from(&person.record)).await?;
        let findings = findings.into_iter().next().ok_or(Error::Broken("a policy"))?;
        Ok(Redactor::with_findings(policy, findings).sparing(ask.edit.places(transition.format)))
    }

    /// Checks that an agent made the original proposal, and that the limit of edits is not reached.
    async fn check_rewritable(&self, keys: &Keys, transition: &Transition) -> Result<()> {
        let mut of = transition.clone();
        for _ in 0..EDITS_MAX {
            match (of.statement.kind, of.statement.supersedes) {
                (TransitionType::Propose, _) => return Ok(()),
                (TransitionType::Edit, Some(before)) => of = self.threads.transition(keys, before).await?,
                _ => return Err(Error::WrongState(NOT_EDITABLE)),
            }
        }
        Err(Error::WrongState(TOO_MANY))
    }

    /// Checks that an edit changes no redacted value, whatever paths it names.
    fn check_redacted_unchanged(
        &self,
        transition: &Transition,
        before: &Value,
        proposed: &Value,
        patch: &Value,
        hiding: &Redactor<'_>,
    ) -> Result<()> {
        // The judgement reports a patch that does not apply.
        let Ok(read) = Patch::read(transition.format, patch.clone()) else { return Ok(()) };
        let Ok(after) = read.apply(before, self.core.limits()) else { return Ok(()) };
        let moved = diff(proposed, &after).into_iter().any(|it| hiding.hides(&it.pointer));
        if moved { Err(Error::WrongState(HIDDEN)) } else { Ok(()) }
    }

    /// Ends the old review and opens one for the edit, in one transaction.
    async fn hold_edit(
        &self,
        asking: &ProposalContext<'_>,
        hold: &Stored<Hold>,
        effected: JudgedEffect,
        reasons: Vec<JudgedReason>,
    ) -> Result<EditResult> {
        let Some(person) = asking.by.editor() else { return Err(Error::Broken("an edit without an editor")) };
        let mut excluded: BTreeSet<String> = hold.record.excluded.clone();
        excluded.extend(authors_with(&asking.standing.thread.record, asking.by.author(), &asking.proposal.ask));
        // Separation of duties: the editor is now an author and has no vote on the edit.
        excluded.insert(person.record.id.to_string());
        let people = self.identity.accounts_all(asking.keys).await?;
        if !can_be_approved(&stages_of(asking.policy), &excluded, &people) {
            return Err(Error::WrongState(NOBODY));
        }
        let now = self.core.now();
        let step = self.proposals.create_statement(asking, effected, now).await?;
        let mut draft = asking.draft(now);
        // An edit after the deadline would revive an expired review.
        draft.before(hold.record.expires_at);
        let mut thread = asking.standing.thread.record.clone();
        // The agent follows this digest to the decision on the edit.
        let by = Some(step.transition.digest);
        let state = HoldState::Superseded { at: now, by, policy: None };
        let end = HoldEnd { state, reason: HoldEndReason::Superseded, at: now };
        self.threads.add_hold_end(&mut draft, asking.keys, &mut thread, hold, end).await?;
        // The new review counts as an attempt at the agent's own change. Otherwise the agent could infer the
        // edit from its remaining attempts.
        let terms = HoldTerms { reasons, excluded, effect: hold.record.effect, opened_at: now };
        let (_, next) = add_hold(&mut draft, &mut thread, asking, step, terms)?;
        draft.replace(&asking.standing.thread, &thread)?;
        self.core.commit(draft.finish()).await?;
        Ok(EditResult::Held(next.id))
    }
}

/// Returns whether a path is redacted, or touches a redacted value below it or in the same list, because an
/// insertion moves the other items. It never compares the new value, because the result would confirm a
/// guess.
fn touches_redacted(hiding: &Redactor<'_>, states: [&Value; 2], place: &Pointer) -> bool {
    // `-` appends to a list in JSON Patch.
    let listed = place.tokens().last().is_some_and(|it| it == "-" || array_index(&it).is_some());
    let around = if listed { place.parent().unwrap_or_else(Pointer::root) } else { place.clone() };
    let below = |state: &Value| leaves(state).iter().any(|(at, _)| around.covers(at) && hiding.hides(at));
    hiding.hides(place) || states.into_iter().any(below)
}

impl From<EditRejected> for Error {
    fn from(refused: EditRejected) -> Self {
        Self::invalid("/edit", refused.to_string())
    }
}
