//! Checks how each version was committed, and whether the thread requires another approval since then (`owes`).

use countersign_domain::chain::entry::{CommitGate, Entry};
use countersign_domain::json::size::StateLimits;
use countersign_domain::policy::{ApprovalScope, Policy, judge_initial};
use countersign_domain::primitives::id::ThreadId;
use countersign_domain::reviews::HoldState;
use countersign_domain::threads::thread::WriteKey;
use countersign_domain::threads::transition::{Transition, TransitionOutcome};
use countersign_domain::writes::write::WriteState;
use countersign_store::records::{version_id, write_row_id};
use countersign_store::row::Table;
use serde_json::Value;

use super::AuditRun;
use super::chain::ReplayedVersion;
use super::event_replay::ThreadEvents;

impl AuditRun<'_> {
    /// Checks that the review, the receipt or the write that the gate names matches the entry.
    pub(super) fn check_gate(&mut self, entry: &Entry, transition: &Transition, token: &str) {
        let id = transition.digest;
        let kept = transition.outcome.entry() == Some(token);
        self.expect(kept, Table::Transitions, id, "the transition is in the chain, but its outcome is another entry");
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
        self.expect(opened, Table::Entries, place, "the approval or the write that the entry names does not match it");
    }

    /// Checks the rows that belong to no thread, and the transitions that are not in a chain.
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
            self.note(table, id, "the row belongs to a thread that does not exist");
        }
        for (id, stored) in &self.all.transitions {
            let transition = &stored.record;
            self.check_transition(transition);
            let statement = &transition.statement;
            let place = self.all.entries.get(&version_id(&statement.thread, statement.version));
            // A transition must be in the chain exactly if its outcome is a commit.
            let there = place.is_some_and(|it| it.record.transition == transition.digest);
            let fits = there == transition.is_committed();
            self.expect(
                fits,
                Table::Transitions,
                id,
                "the outcome and the chain disagree on whether the transition was committed",
            );
        }
    }
    /// Checks that `owes` is never lost on the way, and that it appears only for a reason that the rules allow.
    pub(super) fn check_owes(
        &mut self,
        entry: &Entry,
        transition: &Transition,
        story: &ThreadEvents<'_>,
        state: Option<&Value>,
        at: Option<&ReplayedVersion>,
    ) {
        // `check_policies` reports a policy that does not compile.
        let Some(policy) = self.policies.get(&entry.policy) else { return };
        let before = at.map(|it| &it.entry);
        // A branch inherits `owes` from the head that it starts with.
        let origin = transition.statement.fork.as_ref().and_then(|it| self.entry_at(&it.thread, it.version));
        let taken_back = match &transition.statement.fork {
            Some(of) if self.has_taken_back(&of.thread) => RevocationState::Perhaps,
            _ => RevocationState::of(story, entry, before),
        };
        let branches_owe = transition.carried.as_deref().is_some_and(|it| it.owes);
        // Only the replay of the parent thread knows the policies below the start of a branch.
        let others = at.map_or(transition.statement.fork.is_some(), |it| !it.lineage.is_empty());
        let rests = CommitBasis { on: before.or(origin.as_ref()), taken_back, others, branches_owe };
        let holds = owes_fits(policy, entry, state, rests);
        self.expect(
            holds,
            Table::Entries,
            version_id(&entry.thread, entry.version),
            "`owes` of the entry does not follow from its chain",
        );
    }

    /// Returns true if any receipt of the thread was revoked.
    fn has_taken_back(&self, thread: &ThreadId) -> bool {
        self.all.receipts.values().any(|it| it.record.thread == *thread && it.record.revoked.is_some())
    }
}

/// Whether an approval of the head before had been revoked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum RevocationState {
    No,
    /// A receipt of an older version was revoked, or one of this version after a writer was authorized. The effect
    /// depends on more than this.
    Perhaps,
    /// The receipt of this version was revoked while it was unused.
    Yes,
}

impl RevocationState {
    /// Reads from the events of a thread whether the approval of the head below an entry was revoked. A revocation does
    /// not undo a write that was authorized before.
    fn of(story: &ThreadEvents<'_>, entry: &Entry, before: Option<&Entry>) -> Self {
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

/// The parts of the version below an entry that decide `owes`.
struct CommitBasis<'a> {
    on: Option<&'a Entry>,
    /// Whether an approval of that version had been revoked.
    taken_back: RevocationState,
    /// Whether other policies committed versions below it.
    others: bool,
    /// Whether a joined branch has `owes`.
    branches_owe: bool,
}

/// Returns true if `owes` of an entry follows from its cause. Causes are `owes` of the version before, the gate,
/// version 0, a revoked approval, and a policy that is no longer accepted.
fn owes_fits(policy: &Policy, entry: &Entry, state: Option<&Value>, rests: CommitBasis<'_>) -> bool {
    let CommitBasis { on, taken_back, others, branches_owe } = rests;
    let Some(before) = on else {
        // The size limits may have been wider then. A state above today's limits cannot be judged again.
        let judged = state.and_then(|it| judge_initial(policy, it, &StateLimits::default()).ok());
        return judged.is_none_or(|it| it.owes() == entry.owes);
    };
    let approved = matches!(entry.gate, CommitGate::Approved { .. });
    let gated = approved || matches!(entry.gate, CommitGate::Observed {});
    let other_policy = before.policy != entry.policy;
    let owed = before.owes || branches_owe || taken_back == RevocationState::Yes;
    // Earlier versions did not set `owes` under `commit` for versions from observe mode. Chains from that time stay
    // valid.
    let observed = [entry, before].iter().any(|it| matches!(it.gate, CommitGate::Observed {}));
    let may_owe = other_policy || others || observed || taken_back == RevocationState::Perhaps;
    match policy.approval().covers() {
        ApprovalScope::Write if owed || gated => entry.owes,
        ApprovalScope::Commit if approved => !entry.owes,
        ApprovalScope::Commit if owed => entry.owes,
        ApprovalScope::Write | ApprovalScope::Commit => !entry.owes || may_owe,
    }
}
