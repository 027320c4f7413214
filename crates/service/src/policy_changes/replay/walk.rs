//! Walks one thread from its first event, and tracks its state at each proposal. A branch starts from the
//! state of its thread.

use std::collections::BTreeSet;
use std::sync::Arc;

use countersign_domain::chain::hash::Digest;
use countersign_domain::chain::statement::{Statement, TransitionType};
use countersign_domain::keys::Keys;
use countersign_domain::log::event::{Event, EventType};
use countersign_domain::policy::{
    Effort, Policy, RecordedOutcome, ReplayComparison, ReplayOutcome, ReplayUnknownCause,
};
use countersign_domain::primitives::id::{NodeId, ThreadId};
use countersign_domain::threads::join_carryover::JoinCarryover;
use countersign_domain::threads::rejected_request::RejectedRequest;
use countersign_domain::threads::thread::Thread;
use countersign_domain::threads::transition::{Rejection, Transition, TransitionOutcome, ValueLocation};
use countersign_domain::threads::usage::{Totals, Usage};
use countersign_store::records::event_alias;

use super::{ReplayProgress, ReplayedProposal};
use crate::error::{Error, Result};
use crate::policy_changes::PolicyChanges;
use crate::proposals::join_request::JoinProposal;
use crate::proposals::request::{Proposal, ProposalKind};
use crate::threads::version::Version;

/// How many events of a thread are walked. A page that starts in the middle of a thread walks from the first
/// event again, so this limits the work before the first row.
const EVENTS_BACK_MAX: u64 = 10_000;

pub(super) const BROKEN: Error = Error::Broken("an event of a proposal");

/// The policies of a replay, and its caller.
pub(super) struct ReplayContext<'a> {
    pub(super) by: &'a str,
    pub(super) keys: &'a Keys,
    pub(super) candidate: &'a Arc<Policy>,
    pub(super) active: &'a Policy,
}

/// Whether an event is on the requested page, or only precedes it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ReplayEventScope {
    Before,
    Wanted,
}

/// The state of a thread at an event.
#[derive(Default)]
pub(super) struct ReplayState {
    /// The work of the judgements so far.
    pub(super) judged: Effort,
    pub(super) version: u64,
    pub(super) committed_nodes: BTreeSet<NodeId>,
    pub(super) spent: Totals,
    /// The transition that the gateway restated after the activation of another policy. It is not a proposal
    /// of an agent.
    restated: Option<Digest>,
    /// The version that was last loaded.
    pub(super) head: Option<Arc<Version>>,
}

impl ReplayState {
    fn note_restatement(&mut self, event: &Event) {
        if event.kind == EventType::TransitionSuperseded {
            self.restated = named(event, "by").ok();
        }
    }

    fn advance(&mut self, statement: &Statement, carried: Option<&JoinCarryover>, given: Option<u64>) -> Result<()> {
        self.version = statement.version;
        self.committed_nodes.extend(statement.node.clone());
        let spent = std::mem::take(&mut self.spent).counting(statement, given);
        self.spent = spent.ok_or(Error::Broken("the usage of a statement"))?;
        if let Some(carried) = carried {
            self.spent = std::mem::take(&mut self.spent).plus(&carried.spent);
            self.committed_nodes.extend(carried.committed_nodes.iter().cloned());
        }
        Ok(())
    }
}

/// A committed statement, the carryover of a join, and the context tokens of its node.
type CommittedStep = (Statement, Option<Box<JoinCarryover>>, Option<u64>);

/// Returns a digest in the data of an event.
fn named(event: &Event, name: &str) -> Result<Digest> {
    let text = event.data.get(name).and_then(|it| it.as_str()).ok_or(BROKEN)?;
    Digest::try_from(text).map_err(|_| BROKEN)
}

/// A recorded proposal.
pub(super) struct RecordedProposal {
    pub(super) row: ReplayedProposal,
    pub(super) parent: Option<Digest>,
    pub(super) request: Option<RejectedRequest>,
    /// The join that was proposed, with its branches and their versions.
    pub(super) join: Option<Proposal>,
}

impl RecordedProposal {
    fn of_transition(transition: Transition, on: &ReplayState, was: RecordedOutcome) -> Result<Self> {
        let is_join = transition.statement.kind == TransitionType::Join && transition.values == ValueLocation::Here;
        let join = is_join.then(|| Proposal::of(&transition).ok_or(BROKEN)).transpose()?;
        let statement = transition.statement;
        let request = (transition.values == ValueLocation::Here).then(|| RejectedRequest {
            kind: statement.kind,
            format: transition.format,
            content: transition.patch,
            attempt: statement.attempt.unwrap_or(1),
            tool: transition.tool,
            usage: statement.usage,
            step: None,
            join: None,
        });
        let row = ReplayedProposal {
            thread: statement.thread,
            on_version: on.version,
            proposal: transition.identity,
            transition: Some(transition.digest),
            node: statement.node.ok_or(BROKEN)?,
            principal: statement.principal,
            kind: Some(statement.kind),
            at: statement.proposed_at,
            was,
            compared: ReplayComparison::Unknown { why: ReplayUnknownCause::TooFar },
        };
        Ok(Self { row, parent: statement.parent, request, join })
    }

    fn of_rejection(rejection: Rejection, on: &ReplayState) -> Self {
        let request = rejection.request.as_deref().and_then(RejectedRequest::read);
        let join = request.as_ref().and_then(|it| rejected_join(&rejection, it));
        let row = ReplayedProposal {
            thread: rejection.thread,
            on_version: on.version,
            proposal: rejection.identity,
            transition: None,
            node: rejection.node,
            principal: rejection.principal,
            kind: request.as_ref().map(|it| it.kind),
            at: rejection.at,
            was: RecordedOutcome::new(ReplayOutcome::Reject, rejection.errors.into_iter().map(|it| it.code)),
            compared: ReplayComparison::Unknown { why: ReplayUnknownCause::TooFar },
        };
        Self { row, parent: rejection.parent, request, join }
    }
}

impl PolicyChanges {
    /// Judges every proposal after an event until the page is full. Returns the event to continue after, or
    /// `None` at the end.
    pub(super) async fn walk(
        &self,
        trial: &ReplayContext<'_>,
        thread: &Thread,
        after: u64,
        page: &mut ReplayProgress,
    ) -> Result<Option<u64>> {
        let last = thread.last_event.ok_or(BROKEN)?.seq;
        let begun = self.initial_replay_state(trial, thread, page).await?;
        // Without a known initial state no proposal of the branch can be judged.
        let known = if begun.is_some() { EVENTS_BACK_MAX } else { 0 };
        let mut past = begun.unwrap_or_default();
        // Beyond the limit nothing is judged, so the state at earlier events is not needed.
        let first = if after >= EVENTS_BACK_MAX { after.saturating_add(1) } else { 1 };
        for seq in first..=last {
            let seen = if seq > after { ReplayEventScope::Wanted } else { ReplayEventScope::Before };
            if seen == ReplayEventScope::Wanted {
                if page.is_full() {
                    return Ok(Some(seq - 1));
                }
                page.looked += 1;
            }
            let event = self.event_of(trial, thread, seq).await?;
            let (recorded, committed) = self.recorded_by(trial, &event, &past, seen).await?;
            past.note_restatement(&event);
            if let Some(mut recorded) = recorded {
                if seq <= known {
                    recorded.row.compared = match self.tried(trial, thread, &mut past, &recorded).await {
                        Err(Error::Erased) => ReplayComparison::Unknown { why: ReplayUnknownCause::Erased },
                        tried => tried?,
                    };
                }
                page.judged = page.judged.and(std::mem::take(&mut past.judged));
                page.rows.push(recorded.row);
                // The rules of a candidate may take long, so other requests get a chance to run.
                tokio::task::yield_now().await;
            }
            if let Some(committed) = committed {
                let given = self.given_under(trial, &thread.id, &past, &committed).await?;
                past.advance(&committed.0, committed.1.as_deref(), given)?;
            }
        }
        Ok(None)
    }

    /// Returns the initial state of a thread. For a branch, it is the state of its thread at the fork, or
    /// `None` if that is too many events away.
    async fn initial_replay_state(
        &self,
        trial: &ReplayContext<'_>,
        thread: &Thread,
        page: &mut ReplayProgress,
    ) -> Result<Option<ReplayState>> {
        let Some(origin) = thread.branch.as_ref().filter(|it| it.version > 0) else {
            return Ok(Some(ReplayState::default()));
        };
        let parent = self.core.thread(trial.keys, &origin.thread).await?.record;
        let last = parent.last_event.ok_or(BROKEN)?.seq.min(EVENTS_BACK_MAX);
        let mut past = ReplayState::default();
        for seq in 1..=last {
            page.led_up += 1;
            let event = self.event_of(trial, &parent, seq).await?;
            let (_, committed) = self.recorded_by(trial, &event, &past, ReplayEventScope::Before).await?;
            let Some(committed) = committed else { continue };
            let given = self.given_under(trial, &parent.id, &past, &committed).await?;
            past.advance(&committed.0, committed.1.as_deref(), given)?;
            if past.version == origin.version {
                // A branch inherits the usage of its thread, but its versions count from 0.
                return Ok(Some(ReplayState { version: 0, ..past }));
            }
        }
        // The fork lies beyond the limit of events, or the chain does not contain it.
        if last == EVENTS_BACK_MAX { Ok(None) } else { Err(BROKEN) }
    }

    /// Returns the context tokens of a node, counted by the candidate. If the candidate has no budget for them or the state is erased, it returns the recorded number.
    async fn given_under(
        &self,
        trial: &ReplayContext<'_>,
        thread: &ThreadId,
        past: &ReplayState,
        (statement, _, recorded): &CommittedStep,
    ) -> Result<Option<u64>> {
        let Some(node) = statement.node.as_ref().filter(|it| trial.candidate.bounds_context(it)) else {
            return Ok(*recorded);
        };
        if !statement.kind.is_given_context() {
            return Ok(None);
        }
        match self.threads.version(trial.keys, thread, past.version).await {
            Ok(on) => self.proposals.given(trial.candidate, node, &on.state, thread.as_str()).await,
            Err(Error::Erased) => Ok(*recorded),
            Err(error) => Err(error),
        }
    }

    async fn event_of(&self, trial: &ReplayContext<'_>, thread: &Thread, seq: u64) -> Result<Event> {
        let alias = event_alias(&thread.id, seq);
        Ok(self.core.reader(trial.keys).get_by_alias::<Event>(&alias).await?.ok_or(BROKEN)?.record)
    }

    /// Returns the proposal that an event records first, if it is wanted, and the statement that the event
    /// committed.
    async fn recorded_by(
        &self,
        trial: &ReplayContext<'_>,
        event: &Event,
        past: &ReplayState,
        seen: ReplayEventScope,
    ) -> Result<(Option<RecordedProposal>, Option<CommittedStep>)> {
        let keys = trial.keys;
        match event.kind {
            EventType::TransitionCommitted => {
                let transition = self.stated_with_values(keys, named(event, "transition")?).await?;
                let (statement, carried) = (transition.statement.clone(), transition.carried.clone());
                let given = transition.context_tokens;
                let was = match &transition.outcome {
                    TransitionOutcome::Committed { .. } => Some(RecordedOutcome::new(ReplayOutcome::Commit, [])),
                    TransitionOutcome::Observed { would_hold, .. } => {
                        Some(RecordedOutcome::new(ReplayOutcome::Observe, would_hold.iter().map(|it| it.code.clone())))
                    }
                    // Approved transitions were recorded when they were held for approval.
                    TransitionOutcome::Approved { .. }
                    | TransitionOutcome::Held { .. }
                    | TransitionOutcome::Ended { .. } => None,
                };
                let was = was.filter(|_| seen == ReplayEventScope::Wanted && is_proposal(statement.kind));
                let recorded = was.map(|was| RecordedProposal::of_transition(transition, past, was)).transpose()?;
                Ok((recorded, Some((statement, carried, given))))
            }
            EventType::TransitionHeld if seen == ReplayEventScope::Wanted => {
                let transition = self.stated_with_values(keys, named(event, "transition")?).await?;
                let hold = self.threads.hold_of(keys, transition.digest).await?.ok_or(BROKEN)?.record;
                let was = RecordedOutcome::new(ReplayOutcome::Hold, hold.reasons.into_iter().map(|it| it.code));
                let asked = is_proposal(transition.statement.kind) && past.restated != Some(transition.digest);
                let recorded = asked.then(|| RecordedProposal::of_transition(transition, past, was)).transpose()?;
                Ok((recorded, None))
            }
            EventType::TransitionRejected if seen == ReplayEventScope::Wanted => {
                let rejection = self.core.fetch::<Rejection>(keys, &named(event, "identity")?.to_string()).await?;
                Ok((Some(RecordedProposal::of_rejection(rejection.ok_or(BROKEN)?.record, past)), None))
            }
            _ => Ok((None, None)),
        }
    }

    /// Returns a transition with its values, or without them if they are erased.
    async fn stated_with_values(&self, keys: &Keys, digest: Digest) -> Result<Transition> {
        let stated = self.threads.stated(keys, digest).await?;
        match self.threads.whole(keys, stated.clone()).await {
            Err(Error::Erased) => Ok(stated),
            whole => whole,
        }
    }
}

/// Returns the join of a rejected request, to be judged again on its branches as they were then.
fn rejected_join(rejection: &Rejection, request: &RejectedRequest) -> Option<Proposal> {
    let usage = request.usage.as_ref().map(Usage::read).transpose().ok()?;
    Some(Proposal {
        thread: rejection.thread.clone(),
        node: rejection.node.clone(),
        parent: rejection.parent?,
        ask: ProposalKind::Join(Box::new(JoinProposal::of_kept(request)?)),
        attempt: request.attempt,
        rationale: None,
        tool: None,
        usage: usage.unwrap_or_default(),
        step: None,
    })
}

/// Returns whether agents make this kind of transition. Initial states, forks, edits by reviewers and results
/// of writers are none.
const fn is_proposal(kind: TransitionType) -> bool {
    matches!(kind, TransitionType::Propose | TransitionType::Reaffirm | TransitionType::Rollback | TransitionType::Join)
}
