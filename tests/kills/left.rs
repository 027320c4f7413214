//! What is left after a kill: is all of it there that was acknowledged, and is none of it half done?
//!
//! It looks twice: by the gateway's own audit, and by rules of its own, so that a mistake in one is not the other's.

use std::collections::{BTreeMap, BTreeSet};

use countersign_domain::chain::entry::{CommitGate, Entry};
use countersign_domain::chain::jws::{self, TokenType};
use countersign_domain::keys::{KeyUse, Keys};
use countersign_domain::log::event::{Event, EventType};
use countersign_domain::reviews::{Hold, HoldState};
use countersign_domain::threads::flow::ReceiptRow;
use countersign_domain::threads::thread::{HeadUse, Thread};
use countersign_domain::threads::transition::{ChainRow, Rejection, Transition, TransitionOutcome};
use countersign_domain::writes::write::{Write, WriteState};

use countersign_adapters::clock::{Clock as _, SystemClock};
use countersign_service::audit::audit;
use countersign_store::record::{Record, RecordReader};
use countersign_store::records::write_row_id;
use countersign_store::{Cursor, LIST_ROWS_MAX, RowFilter, Store};

use super::ack::KillAcknowledgement;

/// Returns every defect of the remaining rows. `lost: ` marks an acknowledged change that is missing.
pub async fn look(store: &dyn Store, keys: &Keys, acks: &[KillAcknowledgement]) -> Vec<String> {
    let report = audit(store, keys, SystemClock.now()).await.unwrap();
    let mut wrong: Vec<String> = report.findings.iter().map(|it| format!("audit: {it:?}")).collect();
    let left = RemainingRows::read(RecordReader { store, key: keys.row() }).await;
    for ack in acks {
        if !left.has(ack) {
            wrong.push(format!("lost: {ack:?}"));
        }
    }
    left.check_chains(keys, &mut wrong);
    left.check_events(&mut wrong);
    left.check_decisions(&mut wrong);
    left.check_holds(&mut wrong);
    left.check_writes(&mut wrong);
    wrong
}

/// Every row of a kind, by its id.
pub async fn all<R: Record>(reader: RecordReader<'_>) -> BTreeMap<String, R> {
    let mut rows = BTreeMap::new();
    let mut after: Option<Cursor> = None;
    loop {
        let page = reader.list::<R>(RowFilter::All, after.as_ref(), LIST_ROWS_MAX).await.unwrap();
        let Some(last) = page.last() else { return rows };
        after = Some(Cursor { due: last.record.facets().due, id: last.record.id() });
        rows.extend(page.into_iter().map(|it| (it.record.id(), it.record)));
    }
}

struct RemainingRows {
    threads: BTreeMap<String, Thread>,
    entries: BTreeMap<String, ChainRow>,
    transitions: BTreeMap<String, Transition>,
    rejections: BTreeMap<String, Rejection>,
    holds: BTreeMap<String, Hold>,
    receipts: BTreeMap<String, ReceiptRow>,
    writes: BTreeMap<String, Write>,
    events: BTreeMap<String, Event>,
}

impl RemainingRows {
    async fn read(reader: RecordReader<'_>) -> Self {
        Self {
            threads: all(reader).await,
            entries: all(reader).await,
            transitions: all(reader).await,
            rejections: all(reader).await,
            holds: all(reader).await,
            receipts: all(reader).await,
            writes: all(reader).await,
            events: all(reader).await,
        }
    }

    fn has(&self, ack: &KillAcknowledgement) -> bool {
        let in_chain = |thread: &str, version: u64, transition: &str| {
            self.entries.values().any(|it| {
                it.thread.as_str() == thread && it.version == version && it.transition.to_string() == transition
            })
        };
        let is =
            |review: &str, state: fn(&HoldState) -> bool| self.holds.get(review).is_some_and(|it| state(&it.state));
        match ack {
            KillAcknowledgement::Made { thread, transition } => in_chain(thread, 0, transition),
            KillAcknowledgement::Committed { thread, version, transition } => in_chain(thread, *version, transition),
            KillAcknowledgement::Rejected { thread } => self.rejections.values().any(|it| it.thread.as_str() == thread),
            KillAcknowledgement::Held { review, transition, .. } => {
                self.holds.get(review).is_some_and(|it| it.transition.to_string() == *transition)
            }
            KillAcknowledgement::Voted { review, reviewer } => {
                self.holds.get(review).is_some_and(|it| it.votes.iter().any(|vote| vote.reviewer.as_str() == reviewer))
            }
            KillAcknowledgement::Approved { review, .. } => is(review, |it| matches!(it, HoldState::Approved { .. })),
            KillAcknowledgement::Denied { review } => is(review, |it| matches!(it, HoldState::Denied { .. })),
            KillAcknowledgement::Cancelled { review } => is(review, |it| matches!(it, HoldState::Cancelled { .. })),
            KillAcknowledgement::Receipt { transition, receipt } => {
                self.receipts.values().any(|it| it.token == *receipt && it.transition.to_string() == *transition)
            }
            KillAcknowledgement::Reserved { write, fence, transition } => {
                self.writes.get(write).is_some_and(|it| it.fence == *fence && it.transition.to_string() == *transition)
            }
            KillAcknowledgement::Confirmed { write, version, transition } => self.writes.get(write).is_some_and(|it| {
                matches!(it.state, WriteState::Confirmed { version: as_version, .. } if as_version == *version)
                    && in_chain(it.thread.as_str(), *version, transition)
            }),
            KillAcknowledgement::Aborted { write } => {
                self.writes.get(write).is_some_and(|it| matches!(it.state, WriteState::Aborted { .. }))
            }
            KillAcknowledgement::AtPoint | KillAcknowledgement::Trouble { .. } => true,
        }
    }

    /// Each thread's versions are dense from 0 to its head, each signed, each naming the one before.
    fn check_chains(&self, keys: &Keys, wrong: &mut Vec<String>) {
        let mut chains: BTreeMap<&str, Vec<(&ChainRow, Entry)>> = BTreeMap::new();
        for row in self.entries.values() {
            let read = jws::read::<Entry>(&row.entry, TokenType::Entry).unwrap();
            let key = keys.trusted().public(KeyUse::Chain, read.kid()).unwrap();
            let entry = read.verify(key).unwrap();
            chains.entry(row.thread.as_str()).or_default().push((row, entry));
        }
        for (id, thread) in &self.threads {
            let chain = chains.remove(id.as_str()).unwrap_or_default();
            let mut parent = None;
            for (at, (row, entry)) in chain.iter().enumerate() {
                let at = at as u64;
                if row.version != at
                    || entry.version != at
                    || entry.parent != parent
                    || entry.transition != row.transition
                {
                    wrong.push(format!("the chain of {id} is broken at version {at}"));
                }
                if !self.transitions.contains_key(&entry.transition.to_string()) {
                    wrong.push(format!("version {at} of {id} has no transition"));
                }
                parent = Some(entry.transition);
            }
            if Some(thread.head.transition) != parent || thread.head.version + 1 != chain.len() as u64 {
                wrong.push(format!("the head of {id} is not the end of its chain"));
            }
        }
        wrong.extend(chains.keys().map(|id| format!("a chain without its thread: {id}")));
    }

    /// Each thread's events are dense from 1, linked by hash, up to the one its row names.
    fn check_events(&self, wrong: &mut Vec<String>) {
        let mut stories: BTreeMap<&str, BTreeMap<u64, &Event>> = BTreeMap::new();
        for event in self.events.values() {
            if let (Some(thread), Some(seq)) = (&event.thread, event.seq) {
                stories.entry(thread.as_str()).or_default().insert(seq, event);
            }
        }
        for (id, thread) in &self.threads {
            let mut last = None;
            for (seq, event) in stories.remove(id.as_str()).unwrap_or_default() {
                let before = last.map(|it: countersign_domain::log::event::EventLink| (it.seq, it.hash));
                if (before.map_or(1, |it| it.0 + 1), before.map(|it| it.1)) != (seq, event.previous) {
                    wrong.push(format!("event {seq} of {id} does not follow on the one before"));
                }
                last = event.link();
            }
            if thread.last_event != last {
                wrong.push(format!("the last event of {id} is not the one its row names"));
            }
        }
        wrong.extend(stories.keys().map(|id| format!("events of no thread: {id}")));
    }

    fn told(&self, kind: EventType, member: &str) -> BTreeMap<String, usize> {
        let mut told = BTreeMap::new();
        for event in self.events.values().filter(|it| it.kind == kind) {
            *told.entry(event.data[member].as_str().unwrap_or_default().to_owned()).or_insert(0) += 1;
        }
        told
    }

    /// Checks that reviews, transitions, receipts, entries and events agree on every approval.
    fn check_decisions(&self, wrong: &mut Vec<String>) {
        let holds = self.holds.values().filter_map(|it| match &it.state {
            HoldState::Approved { receipt, .. } => {
                Some((it.transition.to_string(), it.id.to_string(), receipt.to_string()))
            }
            _ => None,
        });
        let holds: BTreeSet<(String, String, String)> = holds.collect();
        let transitions = self.transitions.values().filter_map(|it| match &it.outcome {
            TransitionOutcome::Approved { review, receipt, .. } => {
                Some((it.digest.to_string(), review.to_string(), receipt.to_string()))
            }
            _ => None,
        });
        let entries = self.entries.values().filter_map(|it| {
            let entry = jws::read::<Entry>(&it.entry, TokenType::Entry).unwrap();
            match &entry.claims_unverified().gate {
                CommitGate::Approved { review, receipt } => {
                    Some((it.transition.to_string(), review.to_string(), receipt.to_string()))
                }
                _ => None,
            }
        });
        if transitions.collect::<BTreeSet<_>>() != holds {
            wrong.push("approved holds and approved transitions differ".to_owned());
        }
        if entries.collect::<BTreeSet<_>>() != holds {
            wrong.push("approved holds and the entries that name them differ".to_owned());
        }
        let receipts: BTreeSet<_> =
            self.receipts.values().map(|it| (it.transition.to_string(), it.jti.to_string())).collect();
        if receipts != holds.iter().map(|(transition, _, jti)| (transition.clone(), jti.clone())).collect() {
            wrong.push("approved holds and receipts differ".to_owned());
        }
        let once: BTreeMap<String, usize> = holds.iter().map(|(transition, ..)| (transition.clone(), 1)).collect();
        for kind in [EventType::TransitionApproved, EventType::ReceiptIssued] {
            if self.told(kind, "transition") != once {
                wrong.push(format!("approved holds and the events {kind:?} differ"));
            }
        }
    }

    /// Checks that open reviews and held threads match, and that each review has one `TransitionHeld` event.
    fn check_holds(&self, wrong: &mut Vec<String>) {
        let open = self.holds.values().filter(|it| matches!(it.state, HoldState::Open {}));
        let open: BTreeSet<_> = open.map(|it| (it.thread.to_string(), it.id.to_string())).collect();
        let held =
            self.threads.values().filter_map(|it| it.hold.as_ref().map(|hold| (it.id.to_string(), hold.to_string())));
        if held.collect::<BTreeSet<_>>() != open {
            wrong.push("open holds and held threads differ".to_owned());
        }
        let once: BTreeMap<String, usize> = self.holds.keys().map(|it| (it.clone(), 1)).collect();
        if self.told(EventType::TransitionHeld, "review") != once {
            wrong.push("holds and the events that tell of them differ".to_owned());
        }
    }

    /// Checks that no fencing token (`fence`) and no reserved head repeats, and that reserved heads match open writes.
    fn check_writes(&self, wrong: &mut Vec<String>) {
        let (mut fences, mut heads) = (BTreeSet::new(), BTreeSet::new());
        for write in self.writes.values() {
            if !fences.insert((write.thread.as_str(), write.fence)) {
                wrong.push(format!("fence {} of {} was given twice", write.fence, write.thread));
            }
            // Every head that is written here was approved, and an approved head is given once, whatever comes of it.
            if !heads.insert((write.thread.as_str(), write.version)) {
                wrong.push(format!("version {} of {} was reserved twice", write.version, write.thread));
            }
        }
        let open = self.writes.values().filter(|it| matches!(it.state, WriteState::Reserved {}));
        let open: BTreeSet<String> = open.map(|it| write_row_id(&it.key)).collect();
        let holders = self.threads.values().filter_map(|it| match &it.head.usage {
            HeadUse::Reserved { write, .. } => Some(write_row_id(write)),
            HeadUse::Unused {} | HeadUse::Used {} | HeadUse::Revoked {} => None,
        });
        if holders.collect::<BTreeSet<_>>() != open {
            wrong.push("open writes and reserved heads differ".to_owned());
        }
        let once: BTreeMap<String, usize> = self.writes.values().map(|it| (it.key.write_id.to_string(), 1)).collect();
        if self.told(EventType::WriteReserved, "write_id") != once {
            wrong.push("writes and the events that tell of them differ".to_owned());
        }
    }
}
