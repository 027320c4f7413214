//! The sequencer: assigns a log position to each event, and reads events by position.

use countersign_domain::identity::account::{MachineRole, Token};
use countersign_domain::keys::Keys;
use countersign_domain::log::event::Event;
use countersign_domain::platform::trace_parent::TraceParent;
use countersign_domain::primitives::id::FlowId;
use serde_json::{Value, json};

use super::withheld_members::remove_unsalted_digests;
use crate::service::error::{Error, Result};
use crate::service::log::Log;
use crate::store::change::Draft;
use crate::store::record::Stored;
use crate::store::records::{LOG, LogRow, UnsequencedEvent, log_id};
use crate::store::{Cursor, LIST_ROWS_MAX, LeaderTask, RowFilter};

/// An event with its position in the log.
#[derive(Clone, Debug)]
pub struct SequencedEvent {
    /// The position. Positions start at 1 without gaps, and cursors consist of them.
    pub index: u64,
    pub event: Event,
    /// The trace context that the event is delivered with.
    pub trace: Option<TraceParent>,
}

/// Events that get their position in one commit.
const SEQUENCED_AT_ONCE: u32 = 250;

/// Pages of waiting events that one run reads to find events whose position is next.
const PAGES_MAX: usize = 40;

impl SequencedEvent {
    /// Returns an event without a trace context, for views that deliver nothing.
    pub const fn untraced(index: u64, event: Event) -> Self {
        Self { index, event, trace: None }
    }

    pub fn told(&self) -> Value {
        let event = &self.event;
        json!({
            "index": self.index, "id": event.id, "type": event.kind, "timestamp": event.at,
            "flow": event.flow, "thread": event.thread, "seq": event.seq, "data": event.data,
        })
    }
}

impl Log {
    /// Assigns positions to waiting events, in the order of each thread. Returns the number of events. The
    /// leader lock allows one sequencer at a time, and the others return 0.
    pub async fn sequence(&self) -> Result<usize> {
        Ok(self.core.run_as_leader(LeaderTask::Sequencing, self.sequence_next()).await?.unwrap_or(0))
    }

    /// Sequences the first page that has a ready event. If an event is missing, events of its thread stay
    /// blocked, events of other threads proceed, and the blocked ones are reported as an error.
    async fn sequence_next(&self) -> Result<usize> {
        let keys = self.core.keys()?;
        let mut after: Option<Cursor> = None;
        for _ in 0..PAGES_MAX {
            let page = self
                .core
                .reader(&keys)
                .list::<UnsequencedEvent>(RowFilter::All, after.as_ref(), SEQUENCED_AT_ONCE)
                .await?;
            let Some(last) = page.last() else { break };
            after = Some(Cursor { due: 0, id: last.record.event.to_string() });
            let placed = self.sequence_page(&keys, &page).await?;
            if placed > 0 {
                return Ok(placed);
            }
        }
        // Events wait and none of the examined ones is ready, so a predecessor is missing.
        if after.is_none() { Ok(0) } else { Err(Error::Broken("the log")) }
    }

    /// Assigns positions to the events of one page that are ready.
    async fn sequence_page(&self, keys: &Keys, waiting: &[Stored<UnsequencedEvent>]) -> Result<usize> {
        let reader = self.core.reader(keys);
        let ids: Vec<String> = waiting.iter().map(|it| it.record.event.to_string()).collect();
        let mut events: Vec<Event> = reader.get_many::<Event>(&ids).await?.into_iter().map(|it| it.record).collect();
        // The id breaks ties, so that the order does not depend on the database.
        events.sort_by(|a, b| (a.at, a.seq, &a.id).cmp(&(b.at, b.seq, &b.id)));
        let ready = self.in_thread_order(keys, events).await?;
        if ready.is_empty() {
            return Ok(0);
        }
        let mut next = self.log_length().await? + 1;
        let mut draft = Draft::new(keys.row(), self.core.now());
        for event in &ready {
            let pending = waiting.iter().find(|it| it.record.event == event.id);
            let trace = pending.and_then(|it| it.record.trace.clone());
            draft.insert(&LogRow { index: next, event: event.id.clone(), hash: event.hash(), trace })?;
            next += 1;
            if let Some(pending) = pending {
                draft.remove(pending);
            }
        }
        self.core.commit(draft.finish()).await?;
        Ok(ready.len())
    }

    /// Returns the events whose predecessor in their thread has a position. The predecessor may wait in a
    /// later batch, because another gateway's clock dated it.
    async fn in_thread_order(&self, keys: &Keys, mut events: Vec<Event>) -> Result<Vec<Event>> {
        events.sort_by(|a, b| (&a.thread, a.seq, &a.id).cmp(&(&b.thread, b.seq, &b.id)));
        let mut ready: Vec<Event> = Vec::with_capacity(events.len());
        for event in events {
            let follows = match (&event.thread, event.seq) {
                // The first event of a thread and events outside of threads have no predecessor.
                (Some(_), Some(1)) | (None, _) | (_, None) => true,
                (Some(thread), Some(seq)) => {
                    let here =
                        ready.iter().rev().take_while(|it| it.thread == event.thread).any(|it| it.seq == Some(seq - 1));
                    here || self.has_place(keys, thread, seq - 1).await?
                }
            };
            if follows {
                ready.push(event);
            }
        }
        ready.sort_by(|a, b| (a.at, &a.thread, a.seq, &a.id).cmp(&(b.at, &b.thread, b.seq, &b.id)));
        Ok(stable_by_thread(ready))
    }

    async fn has_place(
        &self,
        keys: &Keys,
        thread: &countersign_domain::primitives::id::ThreadId,
        seq: u64,
    ) -> Result<bool> {
        let alias = crate::store::records::event_alias(thread, seq);
        let Some(event) = self.core.reader(keys).get_by_alias::<Event>(&alias).await? else { return Ok(false) };
        Ok(self.core.reader(keys).get_by_alias::<LogRow>(event.record.id.as_str()).await?.is_some())
    }

    /// Returns how many events have a position.
    pub async fn log_length(&self) -> Result<u64> {
        let keys = self.core.keys()?;
        let last: Option<Stored<LogRow>> = self.core.reader(&keys).last_of(LOG).await?;
        Ok(last.map_or(0, |it| it.record.index))
    }

    /// Returns the events after a position that a token may read: those of its flow, with redacted values
    /// masked. Auditors read everything.
    pub async fn events_for_machine(
        &self,
        token: &Token,
        after: u64,
        limit: u32,
    ) -> Result<(Vec<SequencedEvent>, u64)> {
        if token.role == MachineRole::Auditor {
            return self.events_after(after, None, limit).await;
        }
        let keys = self.core.keys()?;
        let (mut events, next) = self.events_after(after, token.flow.as_ref(), limit).await?;
        let reader = self.identity.reader_with(token).await?;
        for SequencedEvent { event, .. } in &mut events {
            let mut masked = self.masked_event(&keys, event.clone(), &reader).await?;
            remove_unsalted_digests(&mut masked);
            self.remove_digest_of_others(&keys, &mut masked, &reader).await?;
            *event = self.for_machines(&keys, masked).await?;
        }
        Ok((events, next))
    }

    /// Returns the events after a position, of one flow or of all. The second part is the position to
    /// continue from.
    pub async fn events_after(
        &self,
        after: u64,
        flow: Option<&FlowId>,
        limit: u32,
    ) -> Result<(Vec<SequencedEvent>, u64)> {
        let keys = self.core.keys()?;
        let reader = self.core.reader(&keys);
        let cursor = Cursor { due: 0, id: log_id(after) };
        let rows = reader.list::<LogRow>(RowFilter::All, Some(&cursor), limit.min(LIST_ROWS_MAX)).await?;
        let last = rows.last().map_or(after, |it| it.record.index);
        let ids: Vec<String> = rows.iter().map(|it| it.record.event.to_string()).collect();
        let mut events: Vec<Event> = reader.get_many::<Event>(&ids).await?.into_iter().map(|it| it.record).collect();
        events.retain(|event| flow.is_none_or(|it| event.flow.as_ref() == Some(it)));
        let place = |event: Event| {
            let row = rows.iter().find(|it| it.record.event == event.id)?;
            Some(SequencedEvent { index: row.record.index, event, trace: row.record.trace.clone() })
        };
        let mut placed: Vec<SequencedEvent> = events.into_iter().filter_map(place).collect();
        placed.sort_by_key(|it| it.index);
        Ok((placed, last))
    }
}

/// Returns the events by time, and the events of each thread in the order of the thread.
fn stable_by_thread(events: Vec<Event>) -> Vec<Event> {
    use std::collections::BTreeMap;
    use std::collections::VecDeque;
    let mut by_thread: BTreeMap<_, VecDeque<Event>> = BTreeMap::new();
    let order: Vec<_> = events.iter().map(|event| event.thread.clone()).collect();
    for event in events {
        by_thread.entry(event.thread.clone()).or_default().push_back(event);
    }
    for queue in by_thread.values_mut() {
        queue.make_contiguous().sort_by_key(|event| event.seq);
    }
    order.iter().filter_map(|thread| by_thread.get_mut(thread)?.pop_front()).collect()
}
