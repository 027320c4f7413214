//! Checks endpoints against their events, delivery cursors against the audit log, and deliveries against both.

use countersign_domain::log::event::{Event, EventType};
use countersign_store::records::log_id;
use countersign_store::row::Table;
use serde_json::Value;

use super::AuditRun;
use super::identity::{RowHistories, changed, made, text};

impl AuditRun<'_> {
    pub(super) fn check_endpoints(&mut self, outside: &[&Event]) {
        let mut lives = RowHistories::new();
        let mut last = std::collections::BTreeMap::new();
        let mut told: Vec<&Event> = outside.to_vec();
        // Times do not give the order, because clocks can stop and go back. Events of older versions have no revision
        // and come first.
        told.sort_by_key(|it| (it.data.get("revision").and_then(Value::as_i64), &it.id));
        for event in told {
            let id = text(event, "endpoint");
            match event.kind {
                EventType::EndpointAdded => made(&mut lives, id, event),
                EventType::EndpointChanged
                | EventType::EndpointSecretMade
                | EventType::EndpointRemoved
                | EventType::EndpointDisabled
                | EventType::EndpointRecovered => changed(&mut lives, id),
                _ => continue,
            }
            last.extend(id.map(|it| (it, text(event, "row"))));
        }
        for (id, stored) in &self.all.endpoints {
            let told = last.get(id.as_str()).copied().flatten();
            // The event has the hash of the whole row, so any changed column is found.
            let same = told == Some(stored.record.hash().as_str());
            self.expect(same, Table::Endpoints, id, "the endpoint differs from its last event");
            self.expect_revision(Table::Endpoints, id, stored.revision, lives.get(id.as_str()));
            let lane = self.all.lanes.contains_key(id);
            self.expect(lane, Table::Lanes, id, "the endpoint has no delivery cursor");
        }
        self.expect_all(Table::Endpoints, &lives, &self.all.endpoints.keys().map(String::as_str).collect());
        self.check_lanes();
        self.check_deliveries();
    }

    fn check_lanes(&mut self) {
        for (id, stored) in &self.all.lanes {
            let reached = stored.record.reached;
            self.expect(
                self.all.endpoints.contains_key(id),
                Table::Lanes,
                id,
                "the delivery cursor belongs to no endpoint",
            );
            // A cursor beyond the end would skip events without a trace.
            let there = reached == 0 || self.all.log.contains_key(&log_id(reached));
            self.expect(there, Table::Lanes, id, "the delivery cursor is beyond the end of the audit log");
        }
    }

    fn check_deliveries(&mut self) {
        for (id, stored) in &self.all.deliveries {
            let delivery = &stored.record;
            let endpoint = self.all.endpoints.contains_key(delivery.endpoint.as_str());
            self.expect(endpoint, Table::Deliveries, id, "the delivery belongs to no endpoint");
            let placed = self.all.log.get(&log_id(delivery.index));
            let event = self.all.events.get(delivery.event.as_str());
            let same = placed.is_some_and(|it| it.record.event == delivery.event)
                && event.is_some_and(|it| it.record.kind == delivery.kind && it.record.thread == delivery.thread);
            self.expect(
                same,
                Table::Deliveries,
                id,
                "the delivery differs from the event at its position in the audit log",
            );
        }
    }
}
