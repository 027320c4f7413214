//! Steps: an agent's named action has its effect once, even if it is proposed again on another head. An
//! action without effect has a limited number of attempts.

use countersign_domain::chain::hash::Digest;
use countersign_domain::chain::statement::TransitionType;
use countersign_domain::identity::account::Token;
use countersign_domain::identity::party::Party;
use countersign_domain::json::pointer::Pointer;
use countersign_domain::keys::Keys;
use countersign_domain::policy::{RejectCode, Violation};
use countersign_domain::reviews::{Hold, HoldState};
use countersign_domain::threads::step::{StepAttemptResult, StepRow, content_of};
use countersign_domain::threads::thread::{Checkpoint, Thread};
use countersign_domain::threads::transition::{Transition, TransitionOutcome};
use countersign_store::change::Draft;
use countersign_store::record::Stored;
use countersign_store::records::step_row_id;

use super::context::{ProposalContext, StepAttempt};
use super::request::Proposal;
use crate::error::{Error, Result};
use crate::proposals::Proposals;
use crate::proposals::outcome::ProposalOutcome;

/// How many times a held transition can be superseded. Reviewers can edit it five times in a row, and each
/// activation of a policy may restate it.
const FOLLOWED_MAX: usize = 1_000;

/// The earlier result of a step.
pub(crate) enum PriorStep {
    /// The same request was answered with this outcome.
    Done(Box<ProposalOutcome>),
    /// No result is in force. Contains `None` if the proposal is not a step.
    Open(Option<StepAttempt>),
}

/// Returns the violation for a step without attempts left.
pub(crate) fn step_attempts_exhausted() -> Violation {
    let detail = "the step has used up its attempts";
    Violation::new(RejectCode::AttemptsExhausted, Pointer::root(), detail)
}

impl Proposals {
    /// Returns the earlier result of a proposal's step, or an error if another request with this step name is
    /// in force.
    pub(crate) async fn prior_step(
        &self,
        keys: &Keys,
        token: &Token,
        thread: &Thread,
        proposal: &Proposal,
    ) -> Result<PriorStep> {
        let Some(step) = &proposal.step else { return Ok(PriorStep::Open(None)) };
        let secret = keys.salt().thread_secret(thread.id.as_str());
        let content = content_of(&secret, &proposal.kept());
        let known = self.core.fetch::<StepRow>(keys, &step_row_id(&thread.id, &proposal.node, step)).await?;
        let Some(row) = &known else {
            return Ok(PriorStep::Open(Some(StepAttempt { step: step.clone(), content, known })));
        };
        let own = self.attempts_of_party(keys, token, &row.record).await?;
        // The content is compared by a keyed digest, so the row reveals nothing about it. It is compared only
        // with the party's own requests: a step of another party may set values that this one must not read,
        // and a match would confirm a guess.
        if let Some(transition) = own.into_iter().find(|it| row.record.content(it.digest) == Some(content)) {
            return Ok(PriorStep::Done(Box::new(self.proposal_outcome(keys, transition).await?)));
        }
        match row.record.last_stated() {
            Some(transition) if self.is_in_force(keys, transition).await? => {
                let checkpoint = Checkpoint { version: thread.head.version, transition: thread.head.transition };
                Err(Error::StepReused { transition, checkpoint })
            }
            _ => Ok(PriorStep::Open(Some(StepAttempt { step: step.clone(), content, known }))),
        }
    }

    /// Returns the transitions of a step that a token's party requested, in order. The statement names the requester, so
    /// rows of earlier versions have it too.
    async fn attempts_of_party(&self, keys: &Keys, token: &Token, row: &StepRow) -> Result<Vec<Transition>> {
        let reader = self.identity.reader_with(token).await?;
        let mut own = Vec::new();
        for digest in row.tries.iter().filter_map(StepAttemptResult::transition) {
            let transition = self.threads.stated(keys, digest).await?;
            let author = self.threads.party_of(keys, &transition.statement.principal).await?;
            // A deleted requester could be anyone, so its content is not compared.
            if author != Party::Gone && reader.could_have_written_as(&author) {
                own.push(transition);
            }
        }
        Ok(own)
    }

    /// Returns whether a transition is committed or may still be approved, including edits and restatements
    /// of it.
    async fn is_in_force(&self, keys: &Keys, mut digest: Digest) -> Result<bool> {
        // Bounded, because rows from an edited database could form a circle.
        for _ in 0..FOLLOWED_MAX {
            let Transition { outcome, .. } = self.threads.stated(keys, digest).await?;
            let review = match outcome {
                TransitionOutcome::Committed { .. }
                | TransitionOutcome::Observed { .. }
                | TransitionOutcome::Approved { .. } => return Ok(true),
                TransitionOutcome::Held { review } | TransitionOutcome::Ended { review, .. } => review,
            };
            // The outcome of a transition names its review, but only the review has its current state.
            let hold: Stored<Hold> = self.core.need(keys, review.as_str(), "review").await?;
            let next = match hold.record.state {
                // After its deadline a review has ended, even if no worker has recorded that yet.
                HoldState::Open {} => return Ok(hold.record.is_open(self.core.now())),
                HoldState::Approved { .. } => return Ok(true),
                HoldState::Denied { .. } | HoldState::Expired { .. } | HoldState::Cancelled { .. } => return Ok(false),
                state @ HoldState::Superseded { .. } => self.superseding_review(keys, &state).await?,
            };
            let Some(next) = next else { return Ok(false) };
            digest = next;
        }
        Err(Error::Broken("the replacements of a review"))
    }

    /// Returns the transition under review that replaced a superseded one. A confirmed write may also end a
    /// review. It belongs to another proposal and replaces nothing.
    pub(crate) async fn superseding_review(&self, keys: &Keys, ended: &HoldState) -> Result<Option<Digest>> {
        let HoldState::Superseded { by: Some(next), .. } = ended else { return Ok(None) };
        // A confirmed write ends the review too, but its transition is no proposal that the agent could wait
        // for.
        let asks = self.threads.stated(keys, *next).await?.statement.kind != TransitionType::Confirm;
        Ok(asks.then_some(*next))
    }
}

/// Adds an attempt to the commit that contains its effect, so that neither exists alone. A concurrent second
/// attempt is decided again and finds the first one.
pub(crate) fn record_step_attempt(
    draft: &mut Draft<'_>,
    asking: &ProposalContext<'_>,
    became: Option<Digest>,
) -> Result<()> {
    let Some(StepAttempt { step, content, known }) = asking.trying else { return Ok(()) };
    let content = *content;
    let tried = match became {
        Some(transition) => StepAttemptResult::Stated { content, transition },
        None => StepAttemptResult::Rejected { identity: asking.identity },
    };
    let (thread, node) = (asking.proposal.thread.clone(), asking.proposal.node.clone());
    match known {
        Some(row) => {
            let mut next = row.record.clone();
            next.tries.push(tried);
            draft.replace(row, &next)?;
        }
        None => drop(draft.insert(&StepRow { thread, node, step: step.clone(), tries: vec![tried] })?),
    }
    Ok(())
}
