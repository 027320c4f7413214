//! Checks the events: numbered without gaps and hash-linked in each thread, and each either in the audit log or waiting
//! for its position. The audit log must have no gap.

use std::collections::BTreeMap;

use countersign_domain::log::event::Event;
use countersign_domain::primitives::id::ThreadId;
use countersign_store::row::Table;

use super::AuditRun;

impl AuditRun<'_> {
    pub(super) fn check_events(&mut self) {
        self.check_links();
        self.check_coverage();
        self.check_log();
    }

    /// Checks that the events of each thread count from 1 without a gap, and that each names the hash of the one
    /// before.
    fn check_links(&mut self) {
        let mut by_thread: BTreeMap<&ThreadId, Vec<&Event>> = BTreeMap::new();
        for stored in self.all.events.values() {
            let event = &stored.record;
            self.expect(
                stored.revision == 1,
                Table::Events,
                &event.id,
                "the event was replaced, which the gateway never does",
            );
            match (&event.thread, event.seq) {
                (Some(thread), Some(_)) => by_thread.entry(thread).or_default().push(event),
                // Events outside threads are ordered by the audit log alone.
                (None, None) => {}
                _ => self.note(
                    Table::Events,
                    &event.id,
                    "the event has a thread but no number, or a number but no thread",
                ),
            }
        }
        for (thread, mut events) in by_thread {
            events.sort_by_key(|it| it.seq);
            let mut previous = None;
            for (expected, event) in (1..).zip(events) {
                let dense = event.seq == Some(expected);
                let says = event.seq.unwrap_or_default();
                self.expect(
                    dense,
                    Table::Events,
                    &event.id,
                    format!("the event has number {says}, but number {expected} is missing"),
                );
                let linked = event.previous == previous;
                self.expect(
                    linked,
                    Table::Events,
                    &event.id,
                    "the event does not name the hash of the event before it",
                );
                previous = Some(event.hash());
            }
            let known = self.all.threads.contains_key(thread.as_str());
            self.expect(known, Table::Threads, thread, "the row of the thread is missing, but it has events");
        }
    }

    /// Checks that every event is either in the audit log or waits for its position.
    fn check_coverage(&mut self) {
        let placed: BTreeMap<&str, u64> =
            self.all.log.values().map(|it| (it.record.event.as_str(), it.record.index)).collect();
        for id in self.all.events.keys() {
            match (placed.contains_key(id.as_str()), self.all.outbox.contains_key(id)) {
                (true, false) | (false, true) => {}
                (true, true) => {
                    self.note(Table::Outbox, id, "the event is in the audit log, but is still in the outbox")
                }
                (false, false) => {
                    self.note(Table::Outbox, id, "the event is neither in the audit log nor in the outbox")
                }
            }
        }
        for id in self.all.outbox.keys() {
            let known = self.all.events.contains_key(id);
            self.expect(known, Table::Events, id, "the event is missing, but it is in the outbox");
        }
    }

    /// Checks that the audit log counts from 1 without a gap. Each position must have the hash of its event, and the
    /// events of a thread must be in their order.
    fn check_log(&mut self) {
        let mut reached: BTreeMap<&ThreadId, u64> = BTreeMap::new();
        for (expected, (id, stored)) in (1u64..).zip(&self.all.log) {
            let row = &stored.record;
            let dense = row.index == expected;
            self.expect(dense, Table::Log, id, format!("position {expected} of the audit log is missing"));
            self.expect(
                stored.revision == 1,
                Table::Log,
                id,
                "the log position was replaced, which the gateway never does",
            );
            let Some(event) = self.all.events.get(row.event.as_str()) else {
                self.note(Table::Events, &row.event, "the event is missing, but it has a position in the audit log");
                continue;
            };
            self.expect(
                event.record.hash() == row.hash,
                Table::Log,
                id,
                "the hash at the log position differs from its event",
            );
            if let (Some(thread), Some(seq)) = (&event.record.thread, event.record.seq) {
                let before = reached.insert(thread, seq).unwrap_or_default();
                self.expect(
                    seq == before + 1,
                    Table::Log,
                    id,
                    "the events of the thread are out of order in the audit log",
                );
            }
        }
    }
}
