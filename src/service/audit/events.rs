//! Events: dense and hash-linked in each thread, each in the log or waiting for it, and the log dense.

use std::collections::BTreeMap;

use super::AuditRun;
use crate::domain::log::event::Event;
use crate::domain::primitives::id::ThreadId;
use crate::store::row::Table;

impl AuditRun<'_> {
    pub(super) fn check_events(&mut self) {
        self.check_links();
        self.check_coverage();
        self.check_log();
    }

    /// Each thread's events from 1 without a gap, each naming the hash of the one before.
    fn check_links(&mut self) {
        let mut by_thread: BTreeMap<&ThreadId, Vec<&Event>> = BTreeMap::new();
        for stored in self.all.events.values() {
            let event = &stored.record;
            self.expect(stored.revision == 1, Table::Events, &event.id, "an event is never replaced");
            match (&event.thread, event.seq) {
                (Some(thread), Some(_)) => by_thread.entry(thread).or_default().push(event),
                (None, None) => {}
                _ => self.note(Table::Events, &event.id, "it has a thread without a number, or the reverse"),
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
                    format!("number {says} stands where {expected} is missing"),
                );
                let linked = event.previous == previous;
                self.expect(linked, Table::Events, &event.id, "it does not name the hash of the event before it");
                previous = Some(event.hash());
            }
            let known = self.all.threads.contains_key(thread.as_str());
            self.expect(known, Table::Threads, thread, "it has events, and its row is gone");
        }
    }

    /// Every event is in the log or waits for it, and not both.
    fn check_coverage(&mut self) {
        let placed: BTreeMap<&str, u64> =
            self.all.log.values().map(|it| (it.record.event.as_str(), it.record.index)).collect();
        for id in self.all.events.keys() {
            match (placed.contains_key(id.as_str()), self.all.outbox.contains_key(id)) {
                (true, false) | (false, true) => {}
                (true, true) => self.note(Table::Outbox, id, "it waits for a place that it has"),
                (false, false) => self.note(Table::Outbox, id, "an event neither waits for its place nor has one"),
            }
        }
        for id in self.all.outbox.keys() {
            let known = self.all.events.contains_key(id);
            self.expect(known, Table::Events, id, "an event that waits for its place is gone");
        }
    }

    /// The log from 1 without a gap, each place with the hash of its event, each thread in its own order.
    fn check_log(&mut self) {
        let mut reached: BTreeMap<&ThreadId, u64> = BTreeMap::new();
        for (expected, (id, stored)) in (1u64..).zip(&self.all.log) {
            let row = &stored.record;
            let dense = row.index == expected;
            self.expect(dense, Table::Log, id, format!("place {expected} is missing before it"));
            self.expect(stored.revision == 1, Table::Log, id, "a place is never replaced");
            let Some(event) = self.all.events.get(row.event.as_str()) else {
                self.note(Table::Events, &row.event, "an event that has a place in the log is gone");
                continue;
            };
            self.expect(event.record.hash() == row.hash, Table::Log, id, "its hash is not its event's");
            if let (Some(thread), Some(seq)) = (&event.record.thread, event.record.seq) {
                let before = reached.insert(thread, seq).unwrap_or_default();
                self.expect(seq == before + 1, Table::Log, id, "its thread's events are not in their order");
            }
        }
    }
}
