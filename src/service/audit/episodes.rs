//! Runs: what agents added to them, against the events that tell of it.

use serde_json::json;

use super::AuditRun;
use super::load::ThreadRows;
use crate::domain::episode::goal::EpisodeEnd;
use crate::domain::episode::state::RunStatus;
use crate::domain::log::event::{Event, EventType};
use crate::domain::threads::thread::Thread;
use crate::service::episodes::posted_data;
use crate::store::records::posted_row_id;
use crate::store::row::Table;

impl AuditRun<'_> {
    /// Every event that tells of an agent's has its row, and the thread counts them, began as it says, and ended as
    /// the last of them says.
    pub(super) fn check_episode(&mut self, thread: &Thread, own: &ThreadRows<'_>) {
        let mut events = own.events.clone();
        events.sort_by_key(|it| it.seq);
        let begun = events.iter().find(|it| it.kind == EventType::ThreadCreated);
        let begun = begun.and_then(|it| it.data.get("episode")).cloned();
        let terms = thread.episode.as_ref().map(|it| json!(it.terms.digest()));
        let detail = "what it says the run was begun with is not what its events say";
        self.expect(begun == terms, Table::Threads, &thread.id, detail);
        let told: Vec<&Event> = events.into_iter().filter(|it| it.kind == EventType::EpisodeEvent).collect();
        let count = thread.episode.as_ref().map_or(0, |it| it.events);
        let detail = "it does not count what agents added to the run";
        self.expect(count == told.len() as u64, Table::Threads, &thread.id, detail);
        let mut ended = None;
        for (event, number) in told.into_iter().zip(1..) {
            let id = posted_row_id(&thread.id, number);
            let Some(stored) = self.all.episode_events.get(&id) else {
                self.note(Table::EpisodeEvents, id, "an event tells of it, and its row is gone");
                continue;
            };
            let row = &stored.record;
            let same = posted_data(row) == event.data && row.at == event.at && stored.revision == 1;
            self.expect(same, Table::EpisodeEvents, &id, "it is not what its event tells of");
            if let Some(status) = row.ended_by() {
                ended = Some((status, event));
            }
        }
        let detail = "how it says the run ended is not what its events say";
        let same = is_ended(thread.episode.as_ref().and_then(|it| it.ended.as_ref()), ended);
        self.expect(same, Table::Threads, &thread.id, detail);
    }

    /// Rows that no thread counts.
    pub(super) fn check_orphan_episode_events(&mut self) {
        let counted = |thread: &str, number: u64| {
            let thread = self.all.threads.get(thread).and_then(|it| it.record.episode.as_ref());
            thread.is_some_and(|it| (1..=it.events).contains(&number))
        };
        let rows = self.all.episode_events.iter().map(|(id, it)| (id, &it.record));
        let strays = rows.filter(|(_, it)| !counted(it.thread.as_str(), it.number));
        for id in strays.map(|(id, _)| id.clone()).collect::<Vec<_>>() {
            self.note(Table::EpisodeEvents, id, "it belongs to no run that counts it");
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
