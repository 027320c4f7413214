//! How each version came to be committed, and what the thread owes since.

use serde_json::Value;

use super::AuditRun;
use super::chain::ReplayedVersion;
use super::event_replay::ThreadEvents;
use crate::domain::chain::entry::{CommitGate, Entry};
use crate::domain::json::size::StateLimits;
use crate::domain::policy::{ApprovalScope, Policy, judge_initial};
use crate::domain::primitives::id::ThreadId;
use crate::domain::reviews::HoldState;
use crate::domain::threads::thread::WriteKey;
use crate::domain::threads::transition::{Transition, TransitionOutcome};
use crate::domain::writes::write::WriteState;
use crate::store::records::{version_id, write_row_id};
use crate::store::row::Table;

impl AuditRun<'_> {
    /// The gate names what opened it, and that says the same.
    pub(super) fn check_gate(&mut self, entry: &Entry, transition: &Transition, token: &str) {
        let id = transition.digest;
        let kept = transition.outcome.entry() == Some(token);
        self.expect(kept, Table::Transitions, id, "it is in the chain, and its outcome is not that entry");
        let opened = match &entry.gate {
            CommitGate::Auto {} => matches!(transition.outcome, TransitionOutcome::Committed { .. }),
            CommitGate::Observed {} => matches!(transition.outcome, TransitionOutcome::Observed { .. }),
            CommitGate::Approved { review, receipt } => {
                let hold = self.all.holds.get(review.as_str()).map(|it| &it.record);
                let ended = hold.is_some_and(|it| {
                    let state = &it.state;
                    it.transition == entry.transition
                        && matches!(state, HoldState::Approved { receipt: jti, version, .. } if jti == receipt && *version == entry.version)
                });
                let outcome = &transition.outcome;
                let same = matches!(outcome, TransitionOutcome::Approved { review: r, receipt: j, .. } if r == review && j == receipt);
                let issued =
                    self.all.receipts.get(receipt.as_str()).is_some_and(|it| it.record.transition == entry.transition);
                ended && same && issued
            }
            CommitGate::Written { write_id, receipt } => {
                let principal = transition.statement.principal.clone();
                let key = WriteKey { principal, write_id: write_id.clone() };
                let write = self.all.writes.get(&write_row_id(&key)).map(|it| &it.record);
                write.is_some_and(|it| {
                    let state = &it.state;
                    it.receipt == *receipt
                        && Some(it.transition) == entry.parent
                        && transition.statement.write_id.as_ref() == Some(write_id)
                        && matches!(state, WriteState::Confirmed { version, transition, .. } if *version == entry.version && *transition == entry.transition)
                })
            }
        };
        let place = version_id(&entry.thread, entry.version);
        self.expect(opened, Table::Entries, place, "what its gate names does not say the same");
    }

    /// Rows that no thread's replay comes by.
    pub(super) fn check_orphan_rows(&mut self) {
        let known = |thread: &str| self.all.threads.contains_key(thread);
        let mut strays: Vec<(Table, String)> = Vec::new();
        let mut collect = |table: Table, id: &String, thread: &str| {
            if !known(thread) {
                strays.push((table, id.clone()));
            }
        };
        self.all.entries.iter().for_each(|(id, it)| collect(Table::Entries, id, it.record.thread.as_str()));
        self.all.states.iter().for_each(|(id, it)| collect(Table::States, id, it.record.thread.as_str()));
        self.all.archives.iter().for_each(|(id, it)| collect(Table::Archives, id, it.record.thread.as_str()));
        self.all.holds.iter().for_each(|(id, it)| collect(Table::Holds, id, it.record.thread.as_str()));
        self.all.receipts.iter().for_each(|(id, it)| collect(Table::Receipts, id, it.record.thread.as_str()));
        self.all.writes.iter().for_each(|(id, it)| collect(Table::Writes, id, it.record.thread.as_str()));
        self.all.rejections.iter().for_each(|(id, it)| collect(Table::Rejections, id, it.record.thread.as_str()));
        self.all
            .transitions
            .iter()
            .for_each(|(id, it)| collect(Table::Transitions, id, it.record.statement.thread.as_str()));
        for (table, id) in strays {
            self.note(table, id, "it belongs to a thread that is not there");
        }
        for (id, stored) in &self.all.transitions {
            let transition = &stored.record;
            self.check_transition(transition);
            let statement = &transition.statement;
            let place = self.all.entries.get(&version_id(&statement.thread, statement.version));
            let there = place.is_some_and(|it| it.record.transition == transition.digest);
            let fits = there == transition.is_committed();
            self.expect(fits, Table::Transitions, id, "its outcome and the chain disagree on whether it was committed");
        }
    }
    /// `owes` is never lost on the way, and appears only where something gives rise to it.
    pub(super) fn check_owes(
        &mut self,
        entry: &Entry,
        (transition, story): (&Transition, &ThreadEvents<'_>),
        (state, at): (Option<&Value>, Option<&ReplayedVersion>),
    ) {
        let Some(policy) = self.policies.get(&entry.policy) else { return };
        let before = at.map(|it| &it.entry);
        // A branch owes what the head owes that it begins with.
        let origin = transition.statement.fork.as_ref().and_then(|it| self.entry_at(&it.thread, it.version));
        let taken_back = match &transition.statement.fork {
            Some(of) if self.has_taken_back(&of.thread) => RevocationState::Perhaps,
            _ => RevocationState::of(story, (entry, before)),
        };
        let branches_owe = transition.carried.as_deref().is_some_and(|it| it.owes);
        // Of what a branch begins with, only its own thread's replay knows.
        let others = at.map_or(transition.statement.fork.is_some(), |it| !it.lineage.is_empty());
        let rests = CommitBasis { on: before.or(origin.as_ref()), taken_back, others, branches_owe };
        let holds = owes_fits(policy, (entry, state), rests);
        self.expect(
            holds,
            Table::Entries,
            version_id(&entry.thread, entry.version),
            "what it owes does not follow from its chain",
        );
    }

    /// Whether any receipt of a thread was taken back.
    fn has_taken_back(&self, thread: &ThreadId) -> bool {
        self.all.receipts.values().any(|it| it.record.thread == *thread && it.record.revoked.is_some())
    }
}

/// Whether an approval that the head before rested on had been taken back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum RevocationState {
    No,
    /// One was, of a version below, or when a writer had been let through: whether it counts depends on more than this.
    Perhaps,
    /// Its own, while it was unused.
    Yes,
}

impl RevocationState {
    /// What a thread's events tell of the head that an entry came on top of. What a writer was let through with is not undone
    /// by what was taken back meanwhile.
    fn of(story: &ThreadEvents<'_>, (entry, before): (&Entry, Option<&Entry>)) -> Self {
        let written = matches!(entry.gate, CommitGate::Written { .. });
        let taken = before.and_then(|it| Some((it, story.taken_back.get(&it.version)?)));
        let own = |entry: &Entry, jti: &str| matches!(&entry.gate, CommitGate::Approved { receipt, .. } if receipt.as_str() == jti);
        match taken {
            None => Self::No,
            Some((before, all)) => match all.last().and_then(|it| it.owed) {
                Some(owed) if owed && !written => Self::Yes,
                Some(_) => Self::No,
                None if all.iter().any(|it| it.unused && own(before, it.receipt)) => Self::Yes,
                None => Self::Perhaps,
            },
        }
    }
}

/// What an entry came on top of, as far as it bears on what is owed.
struct CommitBasis<'a> {
    on: Option<&'a Entry>,
    /// Whether an approval that it rested on had been taken back.
    taken_back: RevocationState,
    /// Whether other policies than its own admitted something below it.
    others: bool,
    /// Whether branches that were joined owe.
    branches_owe: bool,
}

/// Whether `owes` follows: from what was owed before, from the gate, from version 0, from an approval that was taken back,
/// or from a policy that was not accepted any more, the parent's or one below it.
fn owes_fits(policy: &Policy, (entry, state): (&Entry, Option<&Value>), rests: CommitBasis<'_>) -> bool {
    let CommitBasis { on, taken_back, others, branches_owe } = rests;
    let Some(before) = on else {
        // Bounds may have been wider then; what is beyond today's cannot be judged again.
        let judged = state.and_then(|it| judge_initial(policy, it, &StateLimits::default()).ok());
        return judged.is_none_or(|it| it.owes() == entry.owes);
    };
    let approved = matches!(entry.gate, CommitGate::Approved { .. });
    let gated = approved || matches!(entry.gate, CommitGate::Observed {});
    let other_policy = before.policy != entry.policy;
    let owed = before.owes || branches_owe || taken_back == RevocationState::Yes;
    // Under `commit` what was observed did not owe once: chains of then are as they were signed.
    let observed = [entry, before].iter().any(|it| matches!(it.gate, CommitGate::Observed {}));
    let may_owe = other_policy || others || observed || taken_back == RevocationState::Perhaps;
    match policy.approval().covers() {
        ApprovalScope::Write if owed || gated => entry.owes,
        ApprovalScope::Commit if approved => !entry.owes,
        ApprovalScope::Commit if owed => entry.owes,
        ApprovalScope::Write | ApprovalScope::Commit => !entry.owes || may_owe,
    }
}
