//! Gauges with values from the database, read for each scrape.

use std::collections::BTreeMap;
use std::time::Duration;

use countersign_domain::operations::halt::Halt;
use countersign_domain::primitives::id::{EndpointId, FlowId};
use prometheus::{Gauge, GaugeVec};

use super::{Families, gauge, gauges};

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct OpenReviewGauges {
    pub count: u64,
    /// The age of the oldest pending review.
    pub oldest: Duration,
}

/// The delivery state of an endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CursorGauges {
    /// Events without a delivery attempt.
    pub unsent: u64,
    /// The age of the oldest of them.
    pub unsent_oldest: Duration,
    /// The time since deliveries began to fail, or zero if the last attempt succeeded.
    pub failing: Duration,
    /// Whether the endpoint is disabled until a person enables it again.
    pub disabled: bool,
}

/// Whether the lease of an authorized write is active.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum LeaseState {
    Standing,
    /// The lease expired without a report from its writer.
    Lapsed,
}

/// Values from the database.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct DatabaseGauges {
    pub open: BTreeMap<FlowId, OpenReviewGauges>,
    pub reservations: BTreeMap<(FlowId, LeaseState), u64>,
    /// Active halts, each of one flow or of all.
    pub halts: Vec<(Option<FlowId>, Halt)>,
    pub lanes: BTreeMap<EndpointId, CursorGauges>,
    /// Events without a position in the audit log.
    pub unplaced: u64,
    /// The age of the oldest of them.
    pub unplaced_oldest: Duration,
    /// The number of events with a position in the audit log.
    pub log: u64,
    /// The number of events in the audit log that are not counted yet.
    pub uncounted: u64,
    /// The size of the database, if the database reports it.
    pub database_bytes: Option<u64>,
    /// The number of archives with a file.
    pub archives: u64,
    pub archive_bytes: u64,
}

#[derive(Debug)]
pub(super) struct GaugeFamilies {
    readable: Gauge,
    open: GaugeVec,
    oldest: GaugeVec,
    reservations: GaugeVec,
    halted: GaugeVec,
    unsent: GaugeVec,
    unsent_oldest: GaugeVec,
    failing: GaugeVec,
    disabled: GaugeVec,
    // These have no labels of their own either, so that an unreadable database removes all of them together.
    unplaced: GaugeVec,
    unplaced_oldest: GaugeVec,
    log: GaugeVec,
    uncounted: GaugeVec,
    database_bytes: GaugeVec,
    archives: GaugeVec,
    archive_bytes: GaugeVec,
}

impl GaugeFamilies {
    pub(super) fn new(registry: &Families) -> Self {
        let of = |name, help, labels: &[&str]| gauges(registry, (name, help), labels);
        Self {
            readable: gauge(registry, ("store_readable", "1 if the database could be read for these gauges")),
            open: of("open_reviews", "Pending reviews", &["flow"]),
            oldest: of("open_review_oldest_seconds", "Seconds that the oldest pending review is open", &["flow"]),
            reservations: of(
                "reservations",
                "Authorized writes without a reported outcome, by lease",
                &["flow", "lease"],
            ),
            halted: of("halted", "1 for each active halt, with an empty flow for all flows", &["flow", "what"]),
            unsent: of("endpoint_unsent_events", "Events for the endpoint without a delivery attempt", &["endpoint"]),
            unsent_oldest: of(
                "endpoint_unsent_event_oldest_seconds",
                "Seconds that the oldest unsent event waits",
                &["endpoint"],
            ),
            failing: of("endpoint_failing_seconds", "Seconds since the endpoint began to fail, or 0", &["endpoint"]),
            disabled: of("endpoint_disabled", "1 for a disabled endpoint", &["endpoint"]),
            unplaced: of("unplaced_events", "Events without a position in the audit log", &[]),
            unplaced_oldest: of("unplaced_event_oldest_seconds", "Seconds that the oldest unplaced event waits", &[]),
            log: of("log_events", "Events in the audit log", &[]),
            uncounted: of("uncounted_events", "Events in the audit log that are not counted yet", &[]),
            database_bytes: of("database_bytes", "Size of the database in bytes", &[]),
            archives: of("archives", "Archive files, including those with erased values", &[]),
            archive_bytes: of("archive_bytes", "Total size of the archive files in bytes", &[]),
        }
    }

    /// Sets all gauges. If the database is unreadable they are removed, because old values would be misleading.
    pub(super) fn set<'f>(&self, facts: Option<&'f DatabaseGauges>, named: impl Fn(&'f FlowId) -> &'f str) {
        let families = [
            &self.open,
            &self.oldest,
            &self.reservations,
            &self.halted,
            &self.unsent,
            &self.unsent_oldest,
            &self.failing,
            &self.disabled,
            &self.unplaced,
            &self.unplaced_oldest,
            &self.log,
            &self.uncounted,
            &self.database_bytes,
            &self.archives,
            &self.archive_bytes,
        ];
        families.into_iter().for_each(GaugeVec::reset);
        self.readable.set(if facts.is_some() { 1.0 } else { 0.0 });
        let Some(facts) = facts else { return };
        for (flow, open) in &facts.open {
            let flow = named(flow);
            self.open.with_label_values(&[flow]).add(open.count as f64);
            let oldest = self.oldest.with_label_values(&[flow]);
            oldest.set(oldest.get().max(open.oldest.as_secs_f64()));
        }
        for ((flow, lease), count) in &facts.reservations {
            let lease = match lease {
                LeaseState::Standing => "standing",
                LeaseState::Lapsed => "lapsed",
            };
            self.reservations.with_label_values(&[named(flow), lease]).add(*count as f64);
        }
        for (flow, halt) in &facts.halts {
            let flow = flow.as_ref().map_or("", &named);
            for (what, stopped) in [("proposing", halt.proposing), ("verifying", halt.verifying)] {
                if stopped {
                    self.halted.with_label_values(&[flow, what]).set(1.0);
                }
            }
        }
        for (endpoint, lane) in &facts.lanes {
            let told = [
                (&self.unsent, lane.unsent as f64),
                (&self.unsent_oldest, lane.unsent_oldest.as_secs_f64()),
                (&self.failing, lane.failing.as_secs_f64()),
                (&self.disabled, f64::from(u8::from(lane.disabled))),
            ];
            for (family, value) in told {
                family.with_label_values(&[endpoint.as_str()]).set(value);
            }
        }
        self.set_alone(facts);
    }

    fn set_alone(&self, facts: &DatabaseGauges) {
        if let Some(bytes) = facts.database_bytes {
            self.database_bytes.with_label_values(&[] as &[&str]).set(bytes as f64);
        }
        let alone: [(&GaugeVec, f64); 6] = [
            (&self.unplaced, facts.unplaced as f64),
            (&self.unplaced_oldest, facts.unplaced_oldest.as_secs_f64()),
            (&self.log, facts.log as f64),
            (&self.uncounted, facts.uncounted as f64),
            (&self.archives, facts.archives as f64),
            (&self.archive_bytes, facts.archive_bytes as f64),
        ];
        for (family, value) in alone {
            family.with_label_values(&[] as &[&str]).set(value);
        }
    }
}
