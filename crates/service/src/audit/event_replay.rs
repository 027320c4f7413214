//! Rebuilds the expected content of a thread's rows from its events.

use std::collections::{BTreeMap, BTreeSet};

use countersign_domain::log::event::{Event, EventLink, EventType};
use countersign_domain::primitives::time::Timestamp;
use serde_json::Value;

/// A review, rebuilt from its events.
#[derive(Debug, Default)]
pub(super) struct HoldEvents<'a> {
    pub(super) held: Option<&'a Event>,
    /// Votes and withdrawals, in order.
    pub(super) ballots: Vec<&'a Event>,
    pub(super) comments: Vec<&'a Event>,
    pub(super) notices: Vec<&'a Event>,
    pub(super) extensions: Vec<&'a Event>,
    pub(super) reveals: Vec<&'a Event>,
    pub(super) end: Option<&'a Event>,
}

/// A receipt, rebuilt from its events.
#[derive(Debug, Default)]
pub(super) struct ReceiptEvents<'a> {
    pub(super) issued: Option<&'a Event>,
    pub(super) revoked: Option<&'a Event>,
}

/// A write, rebuilt from its events.
#[derive(Debug, Default)]
pub(super) struct WriteEvents<'a> {
    pub(super) reserved: Option<&'a Event>,
    pub(super) lapsed: bool,
    pub(super) end: Option<&'a Event>,
}

/// A receipt that was revoked while some version was the head.
#[derive(Debug)]
pub(super) struct RevokedReceipt<'a> {
    pub(super) receipt: &'a str,
    /// Whether no writer had been authorized on that head before.
    pub(super) unused: bool,
    /// Whether the head rested on the revoked approval from then on. Older events do not record it.
    pub(super) owed: Option<bool>,
}

/// A thread, rebuilt from its events.
#[derive(Debug, Default)]
pub(super) struct ThreadEvents<'a> {
    pub(super) last: Option<EventLink>,
    /// Latest time of all events.
    pub(super) until: Option<Timestamp>,
    pub(super) created: Option<&'a str>,
    /// Version and digest of each commit after version 0.
    pub(super) committed: Vec<(u64, &'a str)>,
    /// Warnings of rules in the events. Null if there were none.
    pub(super) warned: BTreeMap<&'a str, &'a Value>,
    pub(super) holds: BTreeMap<&'a str, HoldEvents<'a>>,
    pub(super) receipts: BTreeMap<&'a str, ReceiptEvents<'a>>,
    /// Revoked receipts by the version that was the head at that time.
    pub(super) taken_back: BTreeMap<u64, Vec<RevokedReceipt<'a>>>,
    /// Last version for which a writer was authorized.
    authorized_version: Option<u64>,
    /// Key: principal and write id, as in the ids of the rows.
    pub(super) writes: BTreeMap<String, WriteEvents<'a>>,
    pub(super) rejections: BTreeMap<&'a str, &'a Event>,
    pub(super) forked: Vec<&'a Event>,
    pub(super) closed: Option<&'a Event>,
    /// Events that archived, restored or erased versions, each with the last version of the thread at that time.
    pub(super) retained: Vec<(&'a Event, u64)>,
}

/// Returns a text in the data of an event, or an empty text.
pub(super) fn said<'a>(event: &'a Event, name: &str) -> &'a str {
    event.data.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// Returns a number in the data of an event.
pub(super) fn number(event: &Event, name: &str) -> Option<u64> {
    event.data.get(name).and_then(Value::as_u64)
}

impl<'a> ThreadEvents<'a> {
    /// Rebuilds a thread from its events.
    pub(super) fn of(events: &[&'a Event]) -> Self {
        // Rows are sorted by id, and only their numbers give the order within the thread.
        let by_number: BTreeMap<u64, &Event> = events.iter().filter_map(|it| Some((it.seq?, *it))).collect();
        let mut story = Self::default();
        for event in by_number.values() {
            story.apply(event);
        }
        story.last = by_number.values().next_back().and_then(|it| it.link());
        story.until = by_number.values().map(|it| it.at).max();
        story
    }

    fn apply(&mut self, event: &'a Event) {
        match event.kind {
            EventType::ThreadCreated => self.created = Some(said(event, "transition")),
            EventType::ThreadForked => self.forked.push(event),
            EventType::ThreadClosed => self.closed = Some(event),
            EventType::ThreadReopened => self.closed = None,
            EventType::ThreadArchived | EventType::ThreadErased | EventType::ThreadRestored => {
                self.retained.push((event, self.committed.last().map_or(0, |it| it.0)));
            }
            EventType::TransitionCommitted => {
                self.committed.push((number(event, "version").unwrap_or_default(), said(event, "transition")));
                self.warned.insert(said(event, "transition"), event.data.get("warnings").unwrap_or(&Value::Null));
            }
            EventType::TransitionRejected => {
                self.rejections.insert(said(event, "identity"), event);
            }
            EventType::ReceiptIssued => self.receipts.entry(said(event, "receipt")).or_default().issued = Some(event),
            EventType::ReceiptRevoked => {
                let (receipt, head) = (said(event, "receipt"), self.committed.last().map_or(0, |it| it.0));
                let unused = self.authorized_version != Some(head);
                let owed = event.data.get("owed").and_then(Value::as_bool);
                self.taken_back.entry(head).or_default().push(RevokedReceipt { receipt, unused, owed });
                self.receipts.entry(receipt).or_default().revoked = Some(event);
            }
            EventType::WriteReserved => {
                self.authorized_version = number(event, "version");
                self.write(event, "by").reserved = Some(event);
            }
            EventType::WriteLapsed => self.write(event, "by").lapsed = true,
            EventType::WriteConfirmed | EventType::WriteAborted | EventType::WriteFailed => {
                self.write(event, "by").end = Some(event)
            }
            EventType::WriteResolved => self.write(event, "of").end = Some(event),
            _ => self.apply_review_event(event),
        }
    }

    /// Other audit modules read the events that belong to no thread.
    fn apply_review_event(&mut self, event: &'a Event) {
        match event.kind {
            EventType::TransitionHeld => self.hold(event).held = Some(event),
            EventType::ReviewVote | EventType::ReviewWithdrawn => self.hold(event).ballots.push(event),
            EventType::ReviewCommented => self.hold(event).comments.push(event),
            EventType::ReviewReminded | EventType::ReviewEscalated => self.hold(event).notices.push(event),
            EventType::ReviewExtended => self.hold(event).extensions.push(event),
            EventType::ReviewRevealed => self.hold(event).reveals.push(event),
            EventType::TransitionApproved
            | EventType::TransitionDenied
            | EventType::TransitionExpired
            | EventType::TransitionCancelled
            | EventType::TransitionSuperseded => self.hold(event).end = Some(event),
            _ => {}
        }
    }

    fn hold(&mut self, event: &'a Event) -> &mut HoldEvents<'a> {
        self.holds.entry(said(event, "review")).or_default()
    }

    fn write(&mut self, event: &'a Event, whose: &str) -> &mut WriteEvents<'a> {
        self.writes.entry(format!("{}/{}", said(event, whose), said(event, "write_id"))).or_default()
    }

    /// Returns the writes whose lease expired and that have no outcome since then.
    pub(super) fn unresolved(&self) -> BTreeSet<&str> {
        self.writes.iter().filter(|(_, it)| it.lapsed && it.end.is_none()).map(|(id, _)| id.as_str()).collect()
    }
}
