//! Edits: a reviewer's rewrite of what is held. It supersedes what the agent asked for, is judged as if its node had
//! asked, and always held: others than its editor decide.

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use serde_json::Value;

use super::rejudge::RejudgeOutcome;
use super::vote::check_open;
use crate::domain::chain::hash::Digest;
use crate::domain::chain::statement::TransitionType;
use crate::domain::identity::account::{Account, Token};
use crate::domain::identity::party::Party;
use crate::domain::json::diff::{diff, leaves};
use crate::domain::json::patch::Patch;
use crate::domain::json::pointer::{Pointer, array_index};
use crate::domain::keys::Keys;
use crate::domain::policy::{JudgedReason, Judgement, Policy, Redactor, Violation};
use crate::domain::primitives::id::{AccountId, ReviewId};
use crate::domain::reviews::edit::{EDITS_MAX, EditRejected, ReviewEdit, edited};
use crate::domain::reviews::{Hold, HoldState, VoteRejected, can_be_approved};
use crate::domain::threads::transition::{HoldEndReason, Transition};
use crate::domain::threads::usage::Usage;
use crate::service::error::{Error, Result};
use crate::service::platform::retry::retrying;
use crate::service::proposals::context::ProposalContext;
use crate::service::proposals::proposer::Proposer;
use crate::service::proposals::request::{Proposal, ProposalKind, RATIONALE_CHARS_MAX};
use crate::service::threads::commit::authors_with;
use crate::service::threads::hold::{add_hold, stages_of};
use crate::service::threads::provenance::TraceStart;
use crate::service::threads::statement::JudgedEffect;
use crate::service::{Service, ThreadContext};
use crate::store::record::Stored;

#[derive(Clone, PartialEq, Debug)]
pub struct EditRequest {
    pub transition: Digest,
    pub edit: ReviewEdit,
    pub why: String,
}

#[derive(Clone, Debug)]
pub enum EditResult {
    /// People are asked about it instead.
    Held(ReviewId),
    /// The policy rejects it: everything stays as it was. Places end where something hidden begins.
    Rejected(Vec<Violation>),
}

const HIDDEN: &str = "it is about something hidden, which stays as it is";
const NOT_EDITABLE: &str = "only a change that an agent proposed can be rewritten";
const TOO_MANY: &str = "it was rewritten as often as may be; decide it, or let the agent ask again";
const NO_AGENT: &str = "the token of the agent that asked was revoked, so nothing is asked in its name any more";
const NOBODY: &str = "nobody would be left who could approve it";

impl Service {
    /// Puts a rewrite in the place of what is held.
    pub async fn rewrite(&self, editor: &AccountId, review: &ReviewId, ask: &EditRequest) -> Result<EditResult> {
        let late = |error: Error| if error.is_too_late() { VoteRejected::Expired.into() } else { error };
        let length = ask.why.trim().chars().count();
        if length == 0 || length > RATIONALE_CHARS_MAX {
            return Err(Error::invalid("/why", format!("say why, in at most {RATIONALE_CHARS_MAX} characters")));
        }
        retrying!(self.rewrite_once(editor, review, ask)).map_err(late)
    }

    async fn rewrite_once(&self, editor: &AccountId, review: &ReviewId, ask: &EditRequest) -> Result<EditResult> {
        let (keys, now) = (self.keys()?, self.now());
        let person: Stored<Account> = self.fetch(&keys, editor.as_str()).await?.ok_or(Error::Unauthenticated)?;
        let hold: Stored<Hold> = self.need(&keys, review.as_str(), "review").await?;
        let thread = self.thread(&keys, &hold.record.thread).await?;
        let standing = self.standing(&keys, thread).await?;
        check_open(&standing, &hold.record, now)?;
        if now >= hold.record.expires_at {
            return Err(VoteRejected::Expired.into());
        }
        if ask.transition != hold.record.transition {
            return Err(VoteRejected::Digest.into());
        }
        let transition = self.transition(&keys, hold.record.transition).await?;
        hold.record.may_rewrite(&person.record, transition.editor.as_ref(), now).map_err(VoteRejected::from)?;
        if self.rejudge(&keys, &standing, &hold).await? != RejudgeOutcome::Kept {
            return Err(VoteRejected::PolicyChanged.into());
        }
        self.check_rewritable(&keys, &transition).await?;
        let token = self.fetch::<Token>(&keys, hold.record.proposer.as_str()).await?;
        let token = token.filter(|it| !it.record.revoked).ok_or(Error::WrongState(NO_AGENT))?;
        self.rewrite_as(&keys, &standing, &hold, (&person, &token, &transition), ask).await
    }

    async fn rewrite_as(
        &self,
        keys: &Keys,
        standing: &ThreadContext,
        hold: &Stored<Hold>,
        (person, token, transition): (&Stored<Account>, &Stored<Token>, &Transition),
        ask: &EditRequest,
    ) -> Result<EditResult> {
        let head = self.head(keys, &standing.thread.record).await?;
        let policy = self.policy(keys, standing.flow.record.policy).await?;
        let proposed = transition.delta.apply(&head.state).map_err(|_| Error::Broken("a transition's effect"))?;
        let hiding = self.hiding_for_edit(keys, person, (&policy, transition), (&head.state, &proposed), ask).await?;
        if ask.edit.places(transition.format).iter().any(|it| meets_hidden(&hiding, [&head.state, &proposed], it)) {
            return Err(Error::WrongState(HIDDEN));
        }
        let patch = edited(transition.format, &transition.patch, &ask.edit)?;
        self.check_unseen(transition, (&head.state, &proposed, &patch), &hiding)?;
        let statement = &transition.statement;
        let usage = statement.usage.as_ref().map_or(Some(Usage::default()), |it| Usage::read(it).ok());
        let proposal = Proposal {
            thread: statement.thread.clone(),
            node: hold.record.node.clone(),
            parent: head.entry.transition,
            ask: ProposalKind::Edit { format: transition.format, patch, supersedes: transition.digest },
            attempt: 0,
            rationale: Some(ask.why.clone()),
            tool: transition.tool.clone(),
            usage: usage.ok_or(Error::Broken("what a statement says was used"))?,
            step: None,
        };
        let by = Proposer::Editor(person, token);
        let Some((proposal, identity)) = self.next_attempt(keys, by, proposal).await? else {
            return Err(Error::WrongState(TOO_MANY));
        };
        let (proposal, trying) = (&proposal, None);
        let (head, policy, given) = (&head, &policy, OnceLock::new());
        let asking = ProposalContext { keys, by, proposal, identity, standing, head, policy, trying, given };
        match self.judge_proposal(&asking).await? {
            Judgement::Hold { after, named, reasons, warnings, .. } => {
                let effected = JudgedEffect { after, named: named.into_iter().collect(), warnings };
                self.ask_instead(&asking, hold, (effected, reasons)).await
            }
            Judgement::Reject { violations } => Ok(EditResult::Rejected(hiding.violations(violations))),
            Judgement::Commit { .. } => Err(Error::Broken("an edit is always held")),
        }
    }

    /// What the editor may not touch. Leaves and names that they chose themselves are not compared with redacted values, or a
    /// refusal would answer a guess.
    async fn hiding_for_edit<'p>(
        &self,
        keys: &Keys,
        person: &Stored<Account>,
        (policy, transition): (&'p Arc<Policy>, &Transition),
        (before, after): (&Value, &Value),
        ask: &EditRequest,
    ) -> Result<Redactor<'p>> {
        let sides = [TraceStart::before(transition, before), TraceStart::After { transition, before, after }];
        let (reader, tools) = (Party::from(&person.record), [transition.tool.as_ref()]);
        let hidings = self.redactors_for(keys, &reader, std::slice::from_ref(policy), sides, &tools).await?;
        let hiding = hidings.into_iter().next().ok_or(Error::Broken("a policy"))?;
        Ok(hiding.sparing(ask.edit.places(transition.format)))
    }

    /// Only what an agent proposed is rewritten, and not for ever.
    async fn check_rewritable(&self, keys: &Keys, transition: &Transition) -> Result<()> {
        let mut of = transition.clone();
        for _ in 0..EDITS_MAX {
            match (of.statement.kind, of.statement.supersedes) {
                (TransitionType::Propose, _) => return Ok(()),
                (TransitionType::Edit, Some(before)) => of = self.transition(keys, before).await?,
                _ => return Err(Error::WrongState(NOT_EDITABLE)),
            }
        }
        Err(Error::WrongState(TOO_MANY))
    }

    /// What the editor cannot see comes out as it was proposed, whatever they named.
    fn check_unseen(
        &self,
        transition: &Transition,
        (before, proposed, patch): (&Value, &Value, &Value),
        hiding: &Redactor<'_>,
    ) -> Result<()> {
        // What does not apply is for the judgement to say.
        let Ok(read) = Patch::read(transition.format, patch.clone()) else { return Ok(()) };
        let Ok(after) = read.apply(before, self.limits()) else { return Ok(()) };
        let moved = diff(proposed, &after).into_iter().any(|it| hiding.hides(&it.pointer));
        if moved { Err(Error::WrongState(HIDDEN)) } else { Ok(()) }
    }

    /// In one transaction: the old hold ends, and a new one asks others about the rewrite.
    async fn ask_instead(
        &self,
        asking: &ProposalContext<'_>,
        hold: &Stored<Hold>,
        (effected, reasons): (JudgedEffect, Vec<JudgedReason>),
    ) -> Result<EditResult> {
        let Some(person) = asking.by.editor() else { return Err(Error::Broken("an edit without an editor")) };
        let mut excluded: BTreeSet<String> = hold.record.excluded.clone();
        excluded.extend(authors_with(&asking.standing.thread.record, asking.by.author(), &asking.proposal.ask));
        excluded.insert(person.record.id.to_string());
        let people = self.accounts_all(asking.keys).await?;
        if !can_be_approved(&stages_of(asking.policy), &excluded, &people) {
            return Err(Error::WrongState(NOBODY));
        }
        let now = self.now();
        let step = self.create_statement(asking, effected, now).await?;
        let mut draft = asking.draft(now);
        draft.before(hold.record.expires_at);
        let mut thread = asking.standing.thread.record.clone();
        let by = Some(step.transition.digest);
        let end = (HoldState::Superseded { at: now, by, policy: None }, HoldEndReason::Superseded, now);
        self.add_hold_end(&mut draft, asking.keys, &mut thread, hold, end).await?;
        // What counts is what the agent asked for: it learns nothing of the rewrite from its remaining attempts.
        let (_, next) = add_hold(&mut draft, &mut thread, asking, step, (reasons, excluded, hold.record.effect, now))?;
        draft.replace(&asking.standing.thread, &thread)?;
        self.commit(draft.finish()).await?;
        Ok(EditResult::Held(next.id))
    }
}

/// Whether a place is hidden, or has something hidden in it or beside it in its list: what is put into a list moves
/// the others. Asked of the place alone and never of the value that would stand there: a guess is not answered.
fn meets_hidden(hiding: &Redactor<'_>, states: [&Value; 2], place: &Pointer) -> bool {
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
