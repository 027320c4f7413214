//! Replays forks and joins. A branch starts with exactly the head that it names. A join contains the changes of its
//! branches and everything that they carry over.

use std::collections::BTreeSet;

use countersign_domain::chain::entry::{CommitGate, Entry};
use countersign_domain::chain::hash::Digest;
use countersign_domain::chain::jws::{self, TokenType};
use countersign_domain::chain::statement::{Statement, TransitionType};
use countersign_domain::policy::{NodePolicy, Policy};
use countersign_domain::primitives::id::ThreadId;
use countersign_domain::threads::branch::{JoinStatement, JoinedBranch};
use countersign_domain::threads::join_carryover::{JoinCarryover, ThreadContributions};
use countersign_domain::threads::rejected_request::{RejectedJoin, RejectedRequest};
use countersign_domain::threads::thread::Thread;
use countersign_domain::threads::transition::{Rejection, StateContent, Transition};
use countersign_store::records::version_id;
use countersign_store::row::Table;
use serde_json::Value;

use super::AuditRun;
use super::event_replay::{ThreadEvents, said};
use super::load::ThreadRows;
use crate::proposals::join_merge::replayed;
use crate::proposals::join_request::JoinProposal;

impl AuditRun<'_> {
    /// Returns the contributions to a thread after one more version, or `None` if they cannot be determined.
    pub(super) fn followed(&mut self, before: ThreadContributions, entry: &Entry) -> Option<ThreadContributions> {
        let transition = &self.all.transitions.get(&entry.transition.to_string())?.record;
        let statement = &transition.statement;
        let owner = self.all.tokens.get(statement.principal.as_str()).map(|it| it.record.owner.clone());
        if let Some(fork) = &statement.fork {
            let mut standing = self.standing_at(&fork.thread, fork.version)?;
            standing.authors.extend(owner);
            return Some(standing);
        }
        let carried = match statement.kind {
            TransitionType::Join => self.carried_by(transition, &before)?,
            _ => JoinCarryover::default(),
        };
        let ThreadContributions { mut authors, mut committed_nodes, spent } = before;
        match &entry.gate {
            // A confirmed write starts a new set of authors.
            CommitGate::Written { .. } => authors.clear(),
            CommitGate::Approved { review, .. } => {
                if let Some(hold) = self.all.holds.get(review.as_str()) {
                    authors.clone_from(&hold.record.excluded);
                }
            }
            CommitGate::Auto {} | CommitGate::Observed {} => {
                authors.extend(owner);
                authors.extend(carried.authors);
            }
        }
        committed_nodes.extend(statement.node.clone());
        committed_nodes.extend(carried.committed_nodes);
        let spent = spent.counting(statement, transition.context_tokens)?.plus(&carried.spent);
        Some(ThreadContributions { authors, committed_nodes, spent })
    }

    /// Returns the contributions to a thread up to a version, computed from its chain.
    fn standing_at(&mut self, thread: &ThreadId, version: u64) -> Option<ThreadContributions> {
        let place = (thread.clone(), version);
        if let Some(known) = self.standings.get(&place) {
            return known.clone();
        }
        // A forged cycle of threads ends here. `check_origin` reports it.
        self.standings.insert(place.clone(), None);
        let mut standing = Some(ThreadContributions::default());
        for at in 0..=version {
            let entry = self.entry_at(thread, at);
            standing = standing.zip(entry).and_then(|(it, entry)| self.followed(it, &entry));
        }
        self.standings.insert(place, standing.clone());
        standing
    }

    /// Computes the carryover of a join from the chains of its branches.
    fn carried_by(&mut self, transition: &Transition, before: &ThreadContributions) -> Option<JoinCarryover> {
        let joining = transition.statement.join.as_ref()?;
        self.carried_from(joining, before)
    }

    fn carried_from(&mut self, joining: &JoinStatement, before: &ThreadContributions) -> Option<JoinCarryover> {
        let mut carried = JoinCarryover::default();
        for branch in &joining.branches {
            let version = self.all.transitions.get(&branch.transition.to_string())?.record.statement.version;
            let standing = self.standing_at(&branch.thread, version)?;
            carried.add(&before.spent, standing, self.entry_at(&branch.thread, version)?.owes);
        }
        Some(carried)
    }

    /// Returns the claims of an entry. The signature is not checked here, because the replay of the entry's own thread
    /// checks it.
    pub(super) fn entry_at(&self, thread: &ThreadId, version: u64) -> Option<Entry> {
        let row = self.all.entries.get(&version_id(thread, version))?;
        Some(jws::read::<Entry>(&row.record.entry, TokenType::Entry).ok()?.claims_unverified().clone())
    }

    /// Returns the state of a version, built from its rows. The replay of its own thread checks that state.
    pub(super) fn state_at(&self, thread: &ThreadId, version: u64) -> Option<Value> {
        let content = |at: u64| Some(&self.all.states.get(&version_id(thread, at))?.record.content);
        let base = match content(version)? {
            StateContent::Full { .. } => version,
            StateContent::Delta { base, .. } => *base,
        };
        let mut state = Value::Null;
        for at in base..=version {
            state = match content(at)? {
                StateContent::Full { state, .. } => state.clone(),
                StateContent::Delta { delta, .. } => delta.apply(&state).ok()?,
            };
        }
        Some(state)
    }

    /// Checks that branches, and no other threads, start with a fork of an existing head and have the state of that
    /// head.
    pub(super) fn check_origin(&mut self, thread: &Thread, transition: &Transition, state: Option<&Value>) {
        let fork = transition.statement.fork.as_ref();
        let same = fork == thread.branch.as_ref();
        self.expect(same, Table::Threads, &thread.id, "the origin of the branch differs from the signed statement");
        let Some(fork) = fork else { return };
        let origin = self.all.threads.get(fork.thread.as_str()).map(|it| &it.record);
        let there = origin.is_some_and(|it| it.branch.is_none() && it.flow == thread.flow && it.id != thread.id)
            && self.entry_at(&fork.thread, fork.version).is_some_and(|it| it.transition == fork.transition)
            // An erased state cannot be compared, but its root is signed.
            && (self.is_erased(&fork.thread, fork.version)
                || state.is_none_or(|it| self.state_at(&fork.thread, fork.version).as_ref() == Some(it)));
        let detail = "the branch does not start with the head that it names";
        self.expect(there, Table::Transitions, transition.digest, detail);
        let policy = self.policies.get(&transition.statement.policy);
        let node = transition.statement.node.as_ref().zip(policy).and_then(|(node, policy)| policy.node(node));
        let may = node.is_some_and(NodePolicy::may_fork);
        self.expect(may, Table::Transitions, transition.digest, "the policy does not allow the node to fork");
    }

    /// Checks that the branches of a thread match its events, and that its row counts the branches of its head.
    pub(super) fn check_branches(&mut self, thread: &Thread, own: &ThreadRows<'_>, story: &ThreadEvents<'_>) {
        let mut told: BTreeSet<[String; 4]> = BTreeSet::new();
        for event in &story.forked {
            let branches = event.data.get("branches").and_then(Value::as_array).into_iter().flatten();
            let text = |it: &Value, name: &str| it.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
            let head = said(event, "transition");
            told.extend(
                branches.map(|it| [text(it, "thread"), text(it, "name"), head.to_owned(), text(it, "transition")]),
            );
        }
        let first =
            |it: &Thread| self.all.entries.get(&version_id(&it.id, 0)).map(|it| it.record.transition.to_string());
        let row = |it: &&Thread| {
            let origin = it.branch.as_ref()?;
            let of = origin.transition.to_string();
            Some([it.id.to_string(), origin.name.to_string(), of, first(it).unwrap_or_default()])
        };
        let rows: BTreeSet<[String; 4]> = own.branches.iter().filter_map(row).collect();
        let id = &thread.id;
        self.expect(told == rows, Table::Threads, id, "the branches of the thread differ from its events");
        let of_head =
            own.branches.iter().filter(|it| it.branch.as_ref().map(|it| it.transition) == Some(thread.head.transition));
        let counted = usize::try_from(thread.branches) == Ok(of_head.count());
        self.expect(
            counted,
            Table::Threads,
            id,
            "the branch count of the thread differs from the branches of its head",
        );
    }

    /// Checks that a join contains the changes of its branches and their carryover, whether or not the join was
    /// committed.
    pub(super) fn check_join(&mut self, transition: &Transition) {
        let statement = &transition.statement;
        let (join, id) = (statement.join.as_ref(), transition.digest);
        if join.is_none() {
            let nothing = transition.carried.is_none();
            self.expect(nothing, Table::Transitions, id, "the transition has a carryover, but is not a join");
            return;
        }
        // A join of erased states cannot be computed again.
        let fits = self.joins_erased(transition) || self.joins(transition).is_some();
        self.expect(fits, Table::Transitions, id, "the join differs from the changes of the branches that it names");
    }

    /// Returns true if a state that the join was made from is erased.
    fn joins_erased(&self, transition: &Transition) -> bool {
        let statement = &transition.statement;
        let tip = |thread: &ThreadId, of: Digest| {
            let tip = self.all.transitions.get(&of.to_string()).map(|it| it.record.statement.version);
            tip.is_some_and(|it| self.is_erased(thread, it))
        };
        let branches = statement.join.iter().flat_map(|it| &it.branches);
        self.is_erased(&statement.thread, statement.version.saturating_sub(1))
            || branches.into_iter().any(|it| tip(&it.thread, it.transition))
    }

    fn joins(&mut self, transition: &Transition) -> Option<()> {
        let statement = &transition.statement;
        let (joining, at) = (statement.join.as_ref()?, statement.version.checked_sub(1)?);
        let before = self.state_at(&statement.thread, at)?;
        let mut states = Vec::new();
        for branch in &joining.branches {
            let tip = self.tip_of(branch, &statement.thread, statement.parent?)?;
            states.push(self.state_at(&branch.thread, tip)?);
        }
        let policy = self.policies.get(&statement.policy)?;
        let after = replayed(policy, &before, &JoinProposal::of(transition)?, joining, &states)?;
        let standing = self.standing_at(&statement.thread, at)?;
        let carried = self.carried_by(transition, &standing)?;
        let same = transition.delta.apply(&before).ok().as_ref() == Some(&after)
            && self.has_carryover_of(joining, transition.carried.as_deref()?, carried, Some(statement.policy));
        same.then_some(())
    }

    /// Returns true if a join has the carryover of its branches. The events do not record which policies were accepted
    /// at that time. `owes` is therefore also valid if a branch was under another policy than the join. A rejected join
    /// stores no policy of its own, so any policy of the flow may have decided it.
    fn has_carryover_of(
        &self,
        joining: &JoinStatement,
        kept: &JoinCarryover,
        made: JoinCarryover,
        own: Option<Digest>,
    ) -> bool {
        let other = |branch: &JoinedBranch| {
            let tip = self.all.transitions.get(&branch.transition.to_string()).map(|it| &it.record.statement);
            let differs = |(digest, policy): (&Digest, &Policy), tip: &Statement| {
                own.is_none_or(|it| it == *digest) && *policy.flow() == tip.flow && *digest != tip.policy
            };
            tip.is_some_and(|tip| self.policies.iter().any(|it| differs(it, tip)))
        };
        // The events do not show whether the policy of the branch was accepted at that time.
        let excused = kept.owes && joining.branches.iter().any(other);
        *kept == JoinCarryover { owes: made.owes || excused, ..made }
    }

    /// Returns the version of a branch that a join names, or `None` if the branch was not made of that head.
    fn tip_of(&self, branch: &JoinedBranch, thread: &ThreadId, parent: Digest) -> Option<u64> {
        let tip = &self.all.transitions.get(&branch.transition.to_string())?.record.statement;
        let first = self.entry_at(&branch.thread, 0)?;
        let origin = self.all.transitions.get(&first.transition.to_string())?.record.statement.fork.as_ref()?;
        let of_head = origin.thread == *thread && origin.transition == parent;
        let tip_there = self.entry_at(&branch.thread, tip.version)?.transition == branch.transition;
        let named = origin.name == branch.name && origin.own_thread() == branch.thread;
        (of_head && tip_there && named).then_some(tip.version)
    }

    /// Returns true if the stored part of a rejected join matches its branches. Every other rejection must have no such
    /// part.
    pub(super) fn is_of_its_branches(&mut self, rejection: &Rejection) -> bool {
        let kept = rejection.request.as_deref().and_then(RejectedRequest::read);
        match kept.map(|it| (it.kind == TransitionType::Join, it.join)) {
            Some((true, Some(join))) => self.could_join(rejection, &join).is_some(),
            Some((is_join, join)) => !is_join && join.is_none(),
            None => true,
        }
    }

    fn could_join(&mut self, rejection: &Rejection, join: &RejectedJoin) -> Option<()> {
        let parent = rejection.parent?;
        let version = self.all.transitions.get(&parent.to_string())?.record.statement.version;
        for branch in &join.joining.branches {
            self.tip_of(branch, &rejection.thread, parent)?;
        }
        let standing = self.standing_at(&rejection.thread, version)?;
        let carried = self.carried_from(&join.joining, &standing)?;
        (join.joining.is_whole(&rejection.thread) && self.has_carryover_of(&join.joining, &join.carried, carried, None))
            .then_some(())
    }
}
