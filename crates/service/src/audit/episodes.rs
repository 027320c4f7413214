//! Checks the events that agents added to episodes against the events of the thread.

use countersign_domain::episode::goal::EpisodeEnd;
use countersign_domain::episode::state::RunStatus;
use countersign_domain::log::event::{Event, EventType};
use countersign_domain::threads::thread::Thread;
use countersign_store::records::posted_row_id;
use countersign_store::row::Table;
use serde_json::json;

use super::AuditRun;
use super::load::ThreadRows;
use crate::episodes::record::posted_data;

impl AuditRun<'_> {
    /// Checks that each agent event has its row. The thread row must count them and match the recorded start and end of
    /// the episode.
    pub(super) fn check_episode(&mut self, thread: &Thread, own: &ThreadRows<'_>) {
        let mut events = own.events.clone();
        events.sort_by_key(|it| it.seq);
        let begun = events.iter().find(|it| it.kind == EventType::ThreadCreated);
        let begun = begun.and_then(|it| it.data.get("episode")).cloned();
        let terms = thread.episode.as_ref().map(|it| json!(it.terms.digest()));
        let detail = "the terms of the episode differ from the event that created the thread";
        self.expect(begun == terms, Table::Threads, &thread.id, detail);
        let told: Vec<&Event> = events.into_iter().filter(|it| it.kind == EventType::EpisodeEvent).collect();
        let count = thread.episode.as_ref().map_or(0, |it| it.events);
        let detail = "the thread does not count the agent events of its episode";
        self.expect(count == told.len() as u64, Table::Threads, &thread.id, detail);
        let mut ended = None;
        // Rows are numbered in the order of their events.
        for (event, number) in told.into_iter().zip(1..) {
            let id = posted_row_id(&thread.id, number);
            let Some(stored) = self.all.episode_events.get(&id) else {
                self.note(Table::EpisodeEvents, id, "the row is missing, but an event records it");
                continue;
            };
            let row = &stored.record;
            let same = posted_data(row) == event.data && row.at == event.at && stored.revision == 1;
            self.expect(same, Table::EpisodeEvents, &id, "the row differs from the event that records it");
            if let Some(status) = row.ended_by() {
                ended = Some((status, event));
            }
        }
        let detail = "the end of the episode differs from its events";
        let same = is_ended(thread.episode.as_ref().and_then(|it| it.ended.as_ref()), ended);
        self.expect(same, Table::Threads, &thread.id, detail);
    }

    /// Reports agent events that no thread counts.
    pub(super) fn check_orphan_episode_events(&mut self) {
        let counted = |thread: &str, number: u64| {
            let thread = self.all.threads.get(thread).and_then(|it| it.record.episode.as_ref());
            thread.is_some_and(|it| (1..=it.events).contains(&number))
        };
        let rows = self.all.episode_events.iter().map(|(id, it)| (id, &it.record));
        let strays = rows.filter(|(_, it)| !counted(it.thread.as_str(), it.number));
        for id in strays.map(|(id, _)| id.clone()).collect::<Vec<_>>() {
            self.note(Table::EpisodeEvents, id, "the agent event belongs to no episode that counts it");
        }
    }
}

fn is_ended(says: Option<&EpisodeEnd>, told: Option<(RunStatus, &Event)>) -> bool {
    match (says, told) {
        (None, None) => true,
        (Some(says), Some((status, event))) => {
            says.status == status && says.at == event.at && Some(says.seq) == event.seq
        }
        _ => false,
    }
}
