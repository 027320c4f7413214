//! One thread, walked from its first event on: what it had come to at each proposal is what its commits before made.

use std::collections::BTreeSet;

use super::{Page, Replayed};
use crate::domain::account::Token;
use crate::domain::branch::Carried;
use crate::domain::chain::hash::Digest;
use crate::domain::chain::statement::{Kind, Statement};
use crate::domain::event::{Event, EventType};
use crate::domain::id::NodeId;
use crate::domain::json::patch::Patch;
use crate::domain::kept::KeptRequest;
use crate::domain::keys::Keys;
use crate::domain::policy::{
    Asker, Became, Circumstances, Compared, Judgement, Policies, Policy, Request, RequestKind, Untold, Was, WouldBe,
    judge_in, unreadable,
};
use crate::domain::thread::Thread;
use crate::domain::transition::{Outcome, Rejection, Transition, Values};
use crate::domain::usage::{Totals, Usage};
use crate::service::Service;
use crate::service::error::{Error, Result};
use crate::service::heads::Version;
use crate::store::records::event_alias;

/// How far into a thread is walked. Going on in the middle of one begins at its first event again, so this bounds
/// what a call reads before its first row.
const EVENTS_BACK_MAX: u64 = 10_000;

const BROKEN: Error = Error::Broken("what an event tells of a proposal");

/// What recorded proposals are tried on.
pub(super) struct Trial<'a> {
    pub(super) keys: &'a Keys,
    pub(super) candidate: &'a Policy,
    pub(super) active: &'a Policy,
}

/// Whether an event is among those that are asked for, or only leads up to them.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Seen {
    Before,
    Wanted,
}

/// What a thread had come to at some event.
#[derive(Default)]
struct Past {
    version: u64,
    committed_nodes: BTreeSet<NodeId>,
    spent: Totals,
    /// What the gateway itself stated anew because another policy was activated: no agent's proposal.
    restated: Option<Digest>,
    /// The version as it was last needed.
    head: Option<Version>,
}

impl Past {
    fn hear(&mut self, event: &Event) {
        if event.kind == EventType::TransitionSuperseded {
            self.restated = named(event, "by").ok();
        }
    }

    fn advance(&mut self, (statement, carried): (&Statement, Option<&Carried>)) -> Result<()> {
        self.version = statement.version;
        self.committed_nodes.extend(statement.node.clone());
        let spent = std::mem::take(&mut self.spent).counting(statement);
        self.spent = spent.ok_or(Error::Broken("what a statement says was used"))?;
        if let Some(carried) = carried {
            self.spent = std::mem::take(&mut self.spent).plus(&carried.spent);
            self.committed_nodes.extend(carried.committed_nodes.iter().cloned());
        }
        Ok(())
    }
}

/// What was committed, and what a join brought along.
type Committed = (Statement, Option<Box<Carried>>);

/// A digest in an event's data.
fn named(event: &Event, name: &str) -> Result<Digest> {
    let text = event.data.get(name).and_then(|it| it.as_str()).ok_or(BROKEN)?;
    Digest::try_from(text).map_err(|_| BROKEN)
}

/// A proposal as it is recorded.
struct Recorded {
    row: Replayed,
    parent: Option<Digest>,
    request: Option<KeptRequest>,
}

impl Recorded {
    fn of_transition(transition: Transition, on: &Past, was: Was) -> Result<Self> {
        let statement = transition.statement;
        let request = (transition.values == Values::Here).then(|| KeptRequest {
            kind: statement.kind,
            format: transition.format,
            content: transition.patch,
            attempt: statement.attempt.unwrap_or(1),
            tool: transition.tool,
            usage: statement.usage,
        });
        let row = Replayed {
            thread: statement.thread,
            on_version: on.version,
            proposal: transition.identity,
            transition: Some(transition.digest),
            node: statement.node.ok_or(BROKEN)?,
            principal: statement.principal,
            kind: Some(statement.kind),
            at: statement.proposed_at,
            was,
            compared: Compared::Unknown { why: Untold::TooFar },
        };
        Ok(Self { row, parent: statement.parent, request })
    }

    fn of_rejection(rejection: Rejection, on: &Past) -> Self {
        let request = rejection.request.as_deref().and_then(KeptRequest::read);
        let row = Replayed {
            thread: rejection.thread,
            on_version: on.version,
            proposal: rejection.identity,
            transition: None,
            node: rejection.node,
            principal: rejection.principal,
            kind: request.as_ref().map(|it| it.kind),
            at: rejection.at,
            was: Was::new(Became::Reject, rejection.errors.into_iter().map(|it| it.code)),
            compared: Compared::Unknown { why: Untold::TooFar },
        };
        Self { row, parent: rejection.parent, request }
    }
}

impl Service {
    /// Tries every proposal of a thread after an event, until the page is full: then after which event to go on.
    pub(super) async fn walk(
        &self,
        trial: &Trial<'_>,
        thread: &Thread,
        after: u64,
        page: &mut Page,
    ) -> Result<Option<u64>> {
        let last = thread.last_event.ok_or(BROKEN)?.seq;
        // What is done on a branch is judged as a whole, by its join.
        if thread.branch.is_some() {
            return Ok(None);
        }
        let mut past = Past::default();
        let first = if after >= EVENTS_BACK_MAX { after.saturating_add(1) } else { 1 };
        for seq in first..=last {
            let seen = if seq > after { Seen::Wanted } else { Seen::Before };
            if seen == Seen::Wanted {
                if page.is_full() {
                    return Ok(Some(seq - 1));
                }
                page.looked += 1;
            }
            let alias = event_alias(&thread.id, seq);
            let event = self.reader(trial.keys).get_by_alias::<Event>(&alias).await?.ok_or(BROKEN)?.record;
            let (recorded, committed) = self.tells(trial, &event, &past, seen).await?;
            past.hear(&event);
            if let Some(mut recorded) = recorded {
                if seq <= EVENTS_BACK_MAX {
                    recorded.row.compared = match self.tried(trial, &mut past, &recorded).await {
                        Err(Error::Erased) => Compared::Unknown { why: Untold::Erased },
                        tried => tried?,
                    };
                }
                page.rows.push(recorded.row);
                // A candidate's rules may take long, and others ask here too.
                tokio::task::yield_now().await;
            }
            if let Some((statement, carried)) = committed {
                past.advance((&statement, carried.as_deref()))?;
            }
        }
        Ok(None)
    }

    /// The proposal that an event is the first to tell of, if it is asked for; and what it tells was committed.
    async fn tells(
        &self,
        trial: &Trial<'_>,
        event: &Event,
        past: &Past,
        seen: Seen,
    ) -> Result<(Option<Recorded>, Option<Committed>)> {
        let keys = trial.keys;
        match event.kind {
            EventType::TransitionCommitted => {
                let transition = self.as_it_is(keys, named(event, "transition")?).await?;
                let (statement, carried) = (transition.statement.clone(), transition.carried.clone());
                let was = match &transition.outcome {
                    Outcome::Committed { .. } => Some(Was::new(Became::Commit, [])),
                    Outcome::Observed { would_hold, .. } => {
                        Some(Was::new(Became::Observe, would_hold.iter().map(|it| it.code.clone())))
                    }
                    // What people approved was told of when they were asked.
                    Outcome::Approved { .. } | Outcome::Held { .. } | Outcome::Ended { .. } => None,
                };
                let was = was.filter(|_| seen == Seen::Wanted && is_proposal(statement.kind));
                let recorded = was.map(|was| Recorded::of_transition(transition, past, was)).transpose()?;
                Ok((recorded, Some((statement, carried))))
            }
            EventType::TransitionHeld if seen == Seen::Wanted => {
                let transition = self.as_it_is(keys, named(event, "transition")?).await?;
                let hold = self.hold_of(keys, transition.digest).await?.ok_or(BROKEN)?.record;
                let was = Was::new(Became::Hold, hold.reasons.into_iter().map(|it| it.code));
                let asked = is_proposal(transition.statement.kind) && past.restated != Some(transition.digest);
                let recorded = asked.then(|| Recorded::of_transition(transition, past, was)).transpose()?;
                Ok((recorded, None))
            }
            EventType::TransitionRejected if seen == Seen::Wanted => {
                let rejection = self.fetch::<Rejection>(keys, &named(event, "identity")?.to_string()).await?;
                Ok((Some(Recorded::of_rejection(rejection.ok_or(BROKEN)?.record, past)), None))
            }
            _ => Ok((None, None)),
        }
    }

    /// A transition with its values, or without those that are erased.
    async fn as_it_is(&self, keys: &Keys, digest: Digest) -> Result<Transition> {
        let stated = self.stated(keys, digest).await?.record;
        match self.whole(keys, stated.clone()).await {
            Err(Error::Erased) => Ok(stated),
            whole => whole,
        }
    }

    /// What the candidate makes of a proposal, on its head and amid what had come before.
    async fn tried(&self, trial: &Trial<'_>, past: &mut Past, recorded: &Recorded) -> Result<Compared> {
        let Recorded { row, parent: Some(parent), request: Some(request) } = recorded else {
            let erased = recorded.row.transition.is_some();
            return Ok(Compared::Unknown { why: if erased { Untold::Erased } else { Untold::NotKept } });
        };
        let Some(token) = self.fetch::<Token>(trial.keys, row.principal.as_str()).await? else {
            return Ok(Compared::Unknown { why: Untold::NoAsker });
        };
        let head = match past.head.take() {
            Some(head) if head.entry.version == past.version => head,
            _ => self.version(trial.keys, &row.thread, past.version).await?,
        };
        if head.entry.transition != *parent {
            return Err(BROKEN);
        }
        let usage = request.usage.as_ref().map(Usage::read).transpose().map_err(|_| BROKEN)?.unwrap_or_default();
        let asker = Asker {
            principal: row.principal.as_str(),
            owner: &token.record.owner,
            committed_nodes: &past.committed_nodes,
        };
        let around =
            Circumstances { tool: request.tool.as_ref(), usage, spent: Some(&past.spent), ..Circumstances::of(asker) };
        let judgement = self.judged_by(trial, (row, request), &head, &around).await?;
        let policies = Policies { candidate: trial.candidate, active: trial.active };
        let would_be = WouldBe::of(judgement, policies, &head.state, request);
        past.head = Some(head);
        Ok(row.was.compared(would_be))
    }

    async fn judged_by(
        &self,
        trial: &Trial<'_>,
        (row, request): (&Replayed, &KeptRequest),
        head: &Version,
        around: &Circumstances<'_>,
    ) -> Result<Judgement> {
        let judge = |kind| {
            let request = Request { node: &row.node, kind };
            judge_in(trial.candidate, &head.state, &request, around, self.limits())
        };
        Ok(match request.kind {
            Kind::Propose => match Patch::read(request.format, request.content.clone()) {
                Ok(patch) => judge(RequestKind::Propose { patch: &patch }),
                Err(error) => unreadable(error.pointer()),
            },
            Kind::Reaffirm => judge(RequestKind::Reaffirm),
            Kind::Rollback => {
                let to = request.content.get("to_version").and_then(|it| it.as_u64());
                let to = to.filter(|it| *it < head.entry.version).ok_or(BROKEN)?;
                judge(RequestKind::Rollback { to: &self.version(trial.keys, &row.thread, to).await?.state })
            }
            Kind::Create | Kind::Fork | Kind::Edit | Kind::Join | Kind::Confirm => return Err(BROKEN),
        })
    }
}

/// What agents propose. A host's first state, a reviewer's edit and a writer's result are no proposals.
const fn is_proposal(kind: Kind) -> bool {
    matches!(kind, Kind::Propose | Kind::Reaffirm | Kind::Rollback)
}
