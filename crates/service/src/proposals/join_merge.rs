//! Joins: gathers the changes of branches and merges them into one proposal on their thread.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use countersign_domain::chain::statement::TransitionType;
use countersign_domain::json::pointer::Pointer;
use countersign_domain::keys::Keys;
use countersign_domain::policy::{Policy, Violation, unread};
use countersign_domain::primitives::id::{BranchName, NodeId};
use countersign_domain::threads::branch::{Branch, JoinStatement, JoinedBranch, Strategy};
use countersign_domain::threads::join::{BranchState, JoinOptions, JoinRejected, changed, join};
use countersign_domain::threads::join_carryover::{JoinCarryover, ThreadContributions};
use countersign_domain::threads::thread::{Checkpoint, Thread};
use serde_json::Value;

use super::join_request::{GatheredBranches, JoinProposal, JoinSource};
use super::request::{Proposal, ProposalKind};
use crate::error::{Error, Result};
use crate::platform::fair_queue::QueuePermit;
use crate::proposals::Proposals;
use crate::threads::version::Version;

/// Conflicts in one response.
const CONFLICTS_TOLD_MAX: usize = 100;

const CERTAIN: f64 = 1_000_000.0;

/// The merged state, and the paths that the branches changed.
pub(crate) struct MergedBranches {
    pub(crate) after: Value,
    pub(crate) changed: Vec<Pointer>,
    found: Arc<GatheredBranches>,
}

impl MergedBranches {
    /// Returns what the branches add to their thread in addition to the merged state, such as their authors and
    /// usage.
    pub(crate) fn carried(&self) -> &JoinCarryover {
        &self.found.carried
    }
}

impl Proposals {
    /// Adds a permit of the fair queue to a join, because it is expensive. Other proposals are unchanged.
    pub(crate) async fn in_turn<'a>(&self, proposal: &'a Proposal, by: &str) -> Result<Cow<'a, Proposal>> {
        let mut proposal = Cow::Borrowed(proposal);
        if matches!(proposal.ask, ProposalKind::Join(_)) {
            let turn = self.core.turns.joining.take(by).await?;
            if let ProposalKind::Join(join) = &mut proposal.to_mut().ask {
                join.turn = Some(turn);
            }
        }
        Ok(proposal)
    }

    /// Adds the current state of its branches to a join. Other proposals are unchanged.
    pub(crate) async fn gather_inputs(
        &self,
        keys: &Keys,
        head: &Version,
        thread: &Thread,
        mut proposal: Proposal,
    ) -> Result<Proposal> {
        let ProposalKind::Join(join) = &mut proposal.ask else { return Ok(proposal) };
        if thread.branch.is_some() {
            return Err(Error::WrongState(
                "A branch cannot be the target of a join. Join into the thread that it was made from",
            ));
        }
        let found = match &join.source {
            JoinSource::Found(_) => return Ok(proposal),
            JoinSource::Named => self.branches_now(keys, head, thread, &join.branches, join.strategy).await?,
            JoinSource::Stated(joining, carried) => {
                self.branches_then(keys, &join.branches, joining.clone(), carried.clone()).await?
            }
        };
        join.source = JoinSource::Found(Arc::new(found));
        Ok(proposal)
    }

    /// Merges the branches of a join on a blocking thread. Returns the merged state with its permit, or the
    /// violation if this node may not join them.
    pub(crate) async fn joined(
        &self,
        policy: &Arc<Policy>,
        node: &NodeId,
        head: &Arc<Version>,
        ask: &JoinProposal,
    ) -> Result<std::result::Result<(MergedBranches, QueuePermit), Violation>> {
        // The permit is taken before the branches are loaded, because their states take memory.
        let turn = ask.turn.clone().ok_or(Error::Broken("a join out of turn"))?;
        let (policy, node, head, ask) = (Arc::clone(policy), node.clone(), Arc::clone(head), ask.clone());
        let merged = turn.work("the merging of branches", move || joined(&policy, &node, &head, &ask)).await??;
        Ok(merged.map(|it| (it, turn)))
    }

    /// Returns the current state of the branches of this head.
    async fn branches_now(
        &self,
        keys: &Keys,
        head: &Version,
        thread: &Thread,
        names: &[BranchName],
        strategy: Strategy,
    ) -> Result<GatheredBranches> {
        let (mut carried, mut states, mut rows) = (JoinCarryover::default(), Vec::new(), Vec::new());
        let (mut branches, mut set) = (Vec::new(), BTreeSet::new());
        let accepted = self.core.flow(keys, &thread.flow).await?.record.accepted();
        for (index, name) in names.iter().enumerate() {
            let (thread_id, transition, version) = (thread.id.clone(), head.entry.transition, head.entry.version);
            let origin = Branch { name: name.clone(), thread: thread_id, transition, version };
            let row = self.core.fetch::<Thread>(keys, origin.own_thread().as_str()).await?;
            let unknown = || Error::invalid(&format!("/branches/{index}"), "no branch of this head has this name");
            let row = row.filter(|it| it.record.branch.as_ref() == Some(&origin)).ok_or_else(unknown)?;
            if row.record.closed.is_some() {
                return Err(Error::Closed);
            }
            let first = self.origin(keys, &row.record, &origin, head).await?;
            let tip = self.threads.head(keys, &row.record).await?;
            set.extend(tip.tree.origins().set_after(&first.statement.proposal));
            let Thread { id, authors, committed_nodes, spent, .. } = row.record.clone();
            // The same rule as for a head of the thread: a version that only a withdrawn policy admitted
            // requires its own approval.
            let stands = accepted.contains(&tip.entry.policy) && row.record.lineage.is_accepted(&accepted);
            let owes = tip.entry.owes || !stands;
            carried.add(&thread.spent, ThreadContributions { authors, committed_nodes, spent }, owes);
            branches.push(JoinedBranch { name: name.clone(), thread: id, transition: tip.entry.transition });
            states.push(tip.state.clone());
            rows.push(row);
        }
        // The statement does not depend on the order of the request.
        branches.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(GatheredBranches { joining: JoinStatement { branches, strategy }, carried, states, set, rows })
    }

    /// Returns version 0 of a branch. Its signature and its state must match this head.
    async fn origin(&self, keys: &Keys, branch: &Thread, origin: &Branch, head: &Version) -> Result<Version> {
        let first = self.threads.version(keys, &branch.id, 0).await?;
        let said = first.statement.kind == TransitionType::Fork && first.statement.fork.as_ref() == Some(origin);
        // A branch from an edited database must not enter the thread.
        let same = first.statement.flow == head.statement.flow && first.state == head.state;
        if said && same { Ok(first) } else { Err(Error::Broken("a branch")) }
    }

    /// Returns the branches at the versions that a statement names.
    async fn branches_then(
        &self,
        keys: &Keys,
        names: &[BranchName],
        joining: JoinStatement,
        carried: JoinCarryover,
    ) -> Result<GatheredBranches> {
        let broken = || Error::Broken("the branches of a join");
        let (mut states, mut set) = (Vec::with_capacity(names.len()), BTreeSet::new());
        for name in names {
            let branch = joining.branches.iter().find(|it| it.name == *name).ok_or_else(broken)?;
            let tip = self.threads.stated(keys, branch.transition).await?.statement;
            let version = self.threads.version(keys, &branch.thread, tip.version).await?;
            if version.entry.transition != branch.transition {
                return Err(broken());
            }
            let first = self.threads.version(keys, &branch.thread, 0).await?;
            set.extend(version.tree.origins().set_after(&first.statement.proposal));
            states.push(version.state);
        }
        Ok(GatheredBranches { joining, carried, states, set, rows: Vec::new() })
    }
}

/// Merges the branches of a join, or returns the violation if this node may not join them.
fn joined(
    policy: &Policy,
    node: &NodeId,
    head: &Version,
    ask: &JoinProposal,
) -> Result<std::result::Result<MergedBranches, Violation>> {
    let (found, base) = (ask.found()?, &head.state);
    let mut changed: BTreeSet<Pointer> = changed(base, found.states.iter()).into_iter().collect();
    changed.extend(found.set.iter().cloned());
    let changed: Vec<Pointer> = changed.into_iter().collect();
    let mut seen = changed.clone();
    // A resolution replaces everything at its path, so the node must be allowed to read that path too.
    seen.extend(ask.resolutions.places().cloned());
    let by_confidence = ask.strategy == Strategy::Confidence;
    let no_place =
        || Error::invalid("/strategy", "the policy of the flow has no confidence path. Use another strategy");
    let place = by_confidence.then(|| policy.confidence().ok_or_else(no_place)).transpose()?;
    seen.extend(place.cloned());
    // A node that may not read all changes gets no detail. Even a conflict would reveal whether branches
    // agree.
    if let Some(unread) = unread(policy, node, &seen) {
        return Ok(Err(unread));
    }
    let side = |(index, (name, state))| -> Result<BranchState<'_>> {
        Ok(BranchState { name, state, confidence: confidence(place, state, index)? })
    };
    let sides = ask.branches.iter().zip(&found.states).enumerate().map(side).collect::<Result<Vec<_>>>()?;
    let how = JoinOptions { strategy: ask.strategy, policy, resolutions: &ask.resolutions };
    match join(base, &sides, how) {
        Ok(after) => Ok(Ok(MergedBranches { after, changed, found: Arc::clone(found) })),
        Err(JoinRejected::Conflicts(places)) => {
            // A path below a redacted place could contain redacted names.
            let places: BTreeSet<Pointer> = places.iter().map(|it| policy.cut(it)).collect();
            // The error must not grow with the number of conflicts, which agents control.
            let places = places.into_iter().take(CONFLICTS_TOLD_MAX).collect();
            let checkpoint = Checkpoint { version: head.entry.version, transition: head.entry.transition };
            Err(Error::Conflict { places, checkpoint })
        }
        Err(JoinRejected::NoConflict(_)) => {
            Err(Error::invalid("/resolve", "`resolve` contains a path without a conflict. Remove that path"))
        }
    }
}

/// Returns the confidence of a branch in millionths. Without a confidence path the value is unused.
fn confidence(place: Option<&Pointer>, state: &Value, index: usize) -> Result<u32> {
    // Only the strategy `confidence` compares the number.
    let Some(place) = place else { return Ok(0) };
    let number = place.resolve(state).and_then(Value::as_f64).filter(|it| (0.0..=1.0).contains(it));
    let number = number.ok_or_else(|| {
        let detail = "this branch has no number from 0 to 1 at the confidence path of the policy";
        Error::invalid(&format!("/branches/{index}"), detail)
    })?;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is between 0 and a million")]
    Ok((number * CERTAIN).round() as u32)
}

/// Merges a stored join again, from the states of its branches in the order of its statement.
pub(crate) fn replayed(
    policy: &Policy,
    base: &Value,
    ask: &JoinProposal,
    said: &JoinStatement,
    states: &[Value],
) -> Option<Value> {
    // An audit replays stored joins, so a request that does not match its statement is an error there.
    let names: BTreeSet<&BranchName> = ask.branches.iter().collect();
    let stated: BTreeSet<&BranchName> = said.branches.iter().map(|it| &it.name).collect();
    if names != stated || ask.strategy != said.strategy {
        return None;
    }
    let place = (ask.strategy == Strategy::Confidence).then(|| policy.confidence());
    let place = place.map_or(Some(None), |it| it.map(Some))?;
    let mut sides = Vec::with_capacity(ask.branches.len());
    for (index, name) in ask.branches.iter().enumerate() {
        let at = said.branches.iter().position(|it| it.name == *name)?;
        let state = states.get(at)?;
        sides.push(BranchState { name, state, confidence: confidence(place, state, index).ok()? });
    }
    join(base, &sides, JoinOptions { strategy: ask.strategy, policy, resolutions: &ask.resolutions }).ok()
}
