//! Checks each reservation for a write against its events, its signed answer and its fence.

use countersign_domain::chain::jws::TokenType;
use countersign_domain::chain::receipt::Verification;
use countersign_domain::log::event::EventType;
use countersign_domain::writes::write::{Write, WriteState};
use countersign_store::records::write_row_id;
use countersign_store::row::Table;

use super::AuditRun;
use super::event_replay::{ThreadEvents, WriteEvents, number, said};
use super::load::ThreadRows;

impl AuditRun<'_> {
    pub(super) fn check_writes(&mut self, own: &ThreadRows<'_>, story: &ThreadEvents<'_>) {
        for stored in &own.writes {
            let write = &stored.record;
            let id = &write_row_id(&write.key);
            let told = story.writes.get(id);
            let reserved = told.and_then(|it| it.reserved).is_some_and(|it| {
                said(it, "node") == write.node.as_str()
                    && number(it, "fence") == Some(write.fence)
                    && number(it, "version") == Some(write.version)
                    && said(it, "transition") == write.transition.to_string()
                    && it.at == write.reserved_at
            });
            self.expect(reserved, Table::Writes, id, "the reservation differs from the event that records it");
            self.expect(
                ended_as_told(write, told),
                Table::Writes,
                id,
                "the outcome differs from the one that the events record",
            );
            // A reservation changes only once, when it ends.
            let expected = 1 + i64::from(!write.is_open());
            self.expect(
                stored.revision == expected,
                Table::Writes,
                id,
                "the revision of the row differs from the changes that its events record",
            );
            self.check_answer(id, write);
        }
        for id in story.writes.keys().filter(|it| !self.all.writes.contains_key(*it)).collect::<Vec<_>>() {
            self.note(Table::Writes, id, "the row is missing, but an event records it");
        }
    }

    /// Checks that the signed answer to the writer matches the row.
    fn check_answer(&mut self, id: &str, write: &Write) {
        let claims = self.believed::<Verification>(&write.verification, TokenType::Verification);
        let same = claims.is_some_and(|it| {
            it.sub == write.thread
                && it.aud == write.key.principal
                && it.write_id == write.key.write_id
                && it.fence == write.fence
                && it.transition == write.transition
                && it.version == write.version
                && it.receipt == write.receipt
                && it.enforced == write.enforced
                && it.iat == write.reserved_at.seconds()
                && it.exp == write.lease_expires_at.seconds()
        });
        self.expect(same, Table::Writes, id, "the signed answer differs from the row");
        // A write that used a receipt must use it for the transition that was approved.
        if let Some(jti) = &write.receipt {
            let used = self.all.receipts.get(jti.as_str()).is_some_and(|it| it.record.transition == write.transition);
            self.expect(
                used,
                Table::Receipts,
                jti,
                "a write used the receipt, but it is missing or belongs to another transition",
            );
        }
    }
}

fn ended_as_told(write: &Write, told: Option<&WriteEvents<'_>>) -> bool {
    let end = told.and_then(|it| it.end);
    let late = end.and_then(|it| it.data.get("late")?.as_bool());
    let is = |kind: EventType| end.is_some_and(|it| it.kind == kind);
    match &write.state {
        WriteState::Reserved {} => end.is_none(),
        WriteState::Confirmed { version, .. } => {
            is(EventType::WriteConfirmed)
                && late == Some(false)
                && end.and_then(|it| number(it, "version")) == Some(*version)
        }
        WriteState::Late { .. } => is(EventType::WriteConfirmed) && late == Some(true),
        WriteState::Aborted { .. } => is(EventType::WriteAborted),
        WriteState::Failed { .. } => is(EventType::WriteFailed),
        WriteState::Resolved { .. } => is(EventType::WriteResolved),
    }
}
