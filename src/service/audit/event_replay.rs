//! What a thread's events tell, in the shape of the rows that they should have led to.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::domain::log::event::{Event, EventLink, EventType};
use crate::domain::primitives::time::Timestamp;

/// A hold as its events tell it.
#[derive(Debug, Default)]
pub(super) struct HoldEvents<'a> {
    pub(super) held: Option<&'a Event>,
    /// Votes, and votes taken back, in their order.
    pub(super) ballots: Vec<&'a Event>,
    pub(super) comments: Vec<&'a Event>,
    pub(super) notices: Vec<&'a Event>,
    pub(super) extensions: Vec<&'a Event>,
    pub(super) reveals: Vec<&'a Event>,
    pub(super) end: Option<&'a Event>,
}

/// A receipt as its events tell it.
#[derive(Debug, Default)]
pub(super) struct ReceiptEvents<'a> {
    pub(super) issued: Option<&'a Event>,
    pub(super) revoked: Option<&'a Event>,
}

/// A write as its events tell it.
#[derive(Debug, Default)]
pub(super) struct WriteEvents<'a> {
    pub(super) reserved: Option<&'a Event>,
    pub(super) lapsed: bool,
    pub(super) end: Option<&'a Event>,
}

/// A receipt that was taken back while some version was the head.
#[derive(Debug)]
pub(super) struct RevokedReceipt<'a> {
    pub(super) receipt: &'a str,
    /// Whether no writer had been let through on that head by then.
    pub(super) unused: bool,
    /// Whether the head rested on what was taken back from then on; older events do not say it.
    pub(super) owed: Option<bool>,
}

/// Everything that a thread's events tell.
#[derive(Debug, Default)]
pub(super) struct ThreadEvents<'a> {
    pub(super) last: Option<EventLink>,
    /// The latest moment that any of them was written at.
    pub(super) until: Option<Timestamp>,
    pub(super) created: Option<&'a str>,
    /// Version and digest of each commit after version 0.
    pub(super) committed: Vec<(u64, &'a str)>,
    /// What their events say that rules warned of; null if they did not.
    pub(super) warned: BTreeMap<&'a str, &'a Value>,
    pub(super) holds: BTreeMap<&'a str, HoldEvents<'a>>,
    pub(super) receipts: BTreeMap<&'a str, ReceiptEvents<'a>>,
    /// The receipts that were taken back, by the head of that moment.
    pub(super) taken_back: BTreeMap<u64, Vec<RevokedReceipt<'a>>>,
    /// The last version that a writer was let through on.
    let_through: Option<u64>,
    /// By principal and write id, as rows are named.
    pub(super) writes: BTreeMap<String, WriteEvents<'a>>,
    pub(super) rejections: BTreeMap<&'a str, &'a Event>,
    pub(super) forked: Vec<&'a Event>,
    pub(super) closed: Option<&'a Event>,
    /// What left the database, came back or was erased, and the thread's last version at that time.
    pub(super) retained: Vec<(&'a Event, u64)>,
}

/// A text in an event's data.
pub(super) fn said<'a>(event: &'a Event, name: &str) -> &'a str {
    event.data.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// A number in an event's data.
pub(super) fn number(event: &Event, name: &str) -> Option<u64> {
    event.data.get(name).and_then(Value::as_u64)
}

impl<'a> ThreadEvents<'a> {
    /// The story that a thread's events tell.
    pub(super) fn of(events: &[&'a Event]) -> Self {
        let by_number: BTreeMap<u64, &Event> = events.iter().filter_map(|it| Some((it.seq?, *it))).collect();
        let mut story = Self::default();
        for event in by_number.values() {
            story.tell(event);
        }
        story.last = by_number.values().next_back().and_then(|it| it.link());
        story.until = by_number.values().map(|it| it.at).max();
        story
    }

    fn tell(&mut self, event: &'a Event) {
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
                let unused = self.let_through != Some(head);
                let owed = event.data.get("owed").and_then(Value::as_bool);
                self.taken_back.entry(head).or_default().push(RevokedReceipt { receipt, unused, owed });
                self.receipts.entry(receipt).or_default().revoked = Some(event);
            }
            EventType::WriteReserved => {
                self.let_through = number(event, "version");
                self.write(event, "by").reserved = Some(event);
            }
            EventType::WriteLapsed => self.write(event, "by").lapsed = true,
            EventType::WriteConfirmed | EventType::WriteAborted => self.write(event, "by").end = Some(event),
            EventType::WriteResolved => self.write(event, "of").end = Some(event),
            _ => self.tell_of_a_hold(event),
        }
    }

    /// What is outside of threads is told elsewhere.
    fn tell_of_a_hold(&mut self, event: &'a Event) {
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

    /// The writes that lapsed in the log and have not ended since.
    pub(super) fn unresolved(&self) -> BTreeSet<&str> {
        self.writes.iter().filter(|(_, it)| it.lapsed && it.end.is_none()).map(|(id, _)| id.as_str()).collect()
    }
}
