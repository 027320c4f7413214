//! Metrics of a gateway in the Prometheus text format.
//!
//! Each gateway has its own registry, so that several gateways in one process do not share counters. Counters rise when
//! an event happens. Gauges of the database are read and set for each scrape. No label contains a name that an agent
//! chose, because such names would create unlimited series.

mod blocking_work;
mod gauges;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use prometheus::core::Collector;
use prometheus::{
    Encoder as _, Gauge, GaugeVec, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, Opts, Registry, TextEncoder,
};
use serde_json::Value;

pub use blocking_work::BlockingWork;
use countersign_domain::chain::denial::DenialCode;
use countersign_domain::context::EnvelopeCode;
use countersign_domain::delivery::delivery_record::AttemptOutcome;
use countersign_domain::log::event::{Event, EventType};
use countersign_domain::log::insight::CountedEvent;
use countersign_domain::policy::RejectCode;
use countersign_domain::primitives::id::FlowId;
use countersign_domain::primitives::time::Timestamp;
use countersign_domain::reviews::HoldOutcome;
use gauges::GaugeFamilies;
pub use gauges::{CursorGauges, DatabaseGauges, LeaseState, OpenReviewGauges};

/// The limit of flows that are counted by name. The first ones count, because each has about forty series. The other
/// flows share an empty name.
const FLOWS_MAX: usize = 200;

/// Buckets for responses that take a millisecond up to long-polling requests.
const REQUEST_SECS: [f64; 14] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0];

const DECISION_SECS: [f64; 14] = [
    10.0, 30.0, 60.0, 120.0, 300.0, 900.0, 1_800.0, 3_600.0, 7_200.0, 14_400.0, 28_800.0, 86_400.0, 259_200.0,
    604_800.0,
];

/// The code of a proposal over a budget.
const BUDGET: &str = RejectCode::Budget.as_str();

/// The methods that are counted by name. Clients can send others.
const METHODS: [&str; 7] = ["GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH"];

/// Returns the name of a method for metrics and traces.
pub fn known_method(method: &str) -> &'static str {
    METHODS.into_iter().find(|it| *it == method).unwrap_or("other")
}

/// The result of a worker's last run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WorkerResult {
    /// The run succeeded.
    Done,
    Failed,
}

#[derive(Clone, Copy, Debug)]
pub struct RequestMetric<'a> {
    /// The HTTP method of the request.
    pub method: &'a str,
    /// The route pattern, never the path.
    pub route: &'a str,
    pub status: u16,
    pub took: Duration,
}

#[derive(Debug)]
pub struct Metrics {
    registry: Families,
    flows: Mutex<BTreeSet<FlowId>>,
    requests: HistogramVec,
    denials: IntCounterVec,
    boundary: IntCounterVec,
    rollbacks: IntCounterVec,
    chain_failures: IntCounter,
    events: IntCounterVec,
    proposals: IntCounterVec,
    endings: IntCounterVec,
    decisions: HistogramVec,
    attempts: IntCounterVec,
    works: IntCounterVec,
    workers: GaugeVec,
    queued: Gauge,
    clock_behind: Gauge,
    facts: GaugeFamilies,
}

/// Workers that had another name in the release before this one.
const FORMER_WORKER_NAMES: [(&str, &str); 8] = [
    ("prune", "forget"),
    ("rejudge", "judge again"),
    ("expire_leases", "lapse"),
    ("escalate", "notice"),
    ("count_insight", "count"),
    ("last_seen", "sightings"),
    ("export_log", "copy"),
    ("mail", "letters"),
];

impl Default for Metrics {
    fn default() -> Self {
        let registry = Families::default();
        let metrics = Self {
            requests: histogram(
                &registry,
                ("request_seconds", "Seconds from a request to the start of its response"),
                &["method", "route", "status"],
                &REQUEST_SECS,
            ),
            denials: counters(&registry, ("verify_denials_total", "Writes that verify denied, by code"), &["code"]),
            boundary: counters(
                &registry,
                ("boundary_refusals_total", "Context envelopes refused, and proposals over a budget, by code"),
                &["code"],
            ),
            rollbacks: counters(&registry, ("rollbacks_total", "Committed rollbacks"), &["flow"]),
            chain_failures: counter(
                &registry,
                ("chain_failures_total", "Requests that found stored data not matching its signature"),
            ),
            events: counters(&registry, ("events_total", "Events that this gateway counted in the log"), &["type"]),
            proposals: counters(
                &registry,
                ("proposals_total", "Proposals, by the outcome that the policy decided"),
                &["flow", "outcome"],
            ),
            endings: counters(
                &registry,
                ("reviews_ended_total", "Closed reviews by how they ended"),
                &["flow", "ending"],
            ),
            decisions: histogram(
                &registry,
                ("decision_seconds", "Seconds from the start of a review to its approval or denial"),
                &["flow", "decision"],
                &DECISION_SECS,
            ),
            attempts: counters(
                &registry,
                ("delivery_attempts_total", "Delivery attempts to endpoints, by outcome"),
                &["outcome"],
            ),
            works: counters(
                &registry,
                ("queued_work_total", "Long tasks that ran outside the request threads, by kind"),
                &["kind"],
            ),
            workers: gauges(&registry, ("worker_failing", "1 if the last run of the worker failed"), &["worker"]),
            queued: gauge(&registry, ("store_queue", "Changes that wait to be written to the database")),
            clock_behind: gauge(
                &registry,
                ("clock_behind_seconds", "Seconds that the clock is behind the newest event, or 0"),
            ),
            facts: GaugeFamilies::new(&registry),
            flows: Mutex::default(),
            registry,
        };
        metrics.begin();
        metrics
    }
}

impl Metrics {
    /// Sets every known series to 0. Without that the first denial would create a series, and a monitoring system would
    /// see no rise.
    fn begin(&self) {
        let build = gauges(&self.registry, ("build_info", "1, with the running version"), &["version"]);
        build.with_label_values(&[env!("CARGO_PKG_VERSION")]).set(1.0);
        for code in DenialCode::ALL {
            self.denials.with_label_values(&[code.as_str()]).reset();
        }
        for code in EnvelopeCode::ALL.iter().map(|it| it.as_str()).chain([BUDGET]) {
            self.boundary.with_label_values(&[code]).reset();
        }
        for work in BlockingWork::ALL {
            self.works.with_label_values(&[work.name()]).reset();
        }
        for outcome in AttemptOutcome::outcomes() {
            self.attempts.with_label_values(&[outcome]).reset();
        }
    }

    /// Counts slow work when it starts.
    pub fn worked(&self, work: BlockingWork) {
        self.works.with_label_values(&[work.name()]).inc();
    }

    /// Counts a delivery attempt.
    pub fn attempted(&self, ended: &AttemptOutcome) {
        self.attempts.with_label_values(&[ended.outcome()]).inc();
    }

    pub fn answered(&self, answer: &RequestMetric<'_>) {
        let method = known_method(answer.method);
        // Each status would make a series for every method and route, so only its class is a label.
        let class = match answer.status / 100 {
            1 => "1xx",
            2 => "2xx",
            3 => "3xx",
            4 => "4xx",
            _ => "5xx",
        };
        self.requests.with_label_values(&[method, answer.route, class]).observe(answer.took.as_secs_f64());
    }

    /// Counts a denied write.
    pub fn denied(&self, code: DenialCode) {
        self.denials.with_label_values(&[code.as_str()]).inc();
    }

    /// Sets the time by which the clock is behind the newest event.
    pub fn clock_behind(&self, by: Duration) {
        self.clock_behind.set(by.as_secs_f64());
    }

    /// Counts an envelope that was not created or not accepted.
    pub fn boundary_refused(&self, code: &'static str) {
        self.boundary.with_label_values(&[code]).inc();
    }

    /// Counts stored data that does not match its signature.
    pub fn chain_failed(&self) {
        self.chain_failures.inc();
    }

    /// Counts an event. Only one gateway counts each event. `opened_at` is the time at which the closed review opened.
    pub fn happened(&self, event: &Event, opened_at: Option<Timestamp>) {
        self.events.with_label_values(&[event.kind.name()]).inc();
        self.at_boundary(event);
        let (Some(fact), Some(flow)) = (CountedEvent::of(event), &event.flow) else { return };
        let flow = self.named(flow);
        let proposed = |outcome: &str| self.proposals.with_label_values(&[flow, outcome]).inc();
        match fact {
            CountedEvent::Committed => proposed("committed"),
            CountedEvent::Observed => proposed("observed"),
            CountedEvent::Rejected => proposed("rejected"),
            CountedEvent::Opened(_) => proposed("held"),
            CountedEvent::Ended(_, ending) => {
                self.endings.with_label_values(&[flow, ending.word()]).inc();
                // A review that ended without a decision would distort the decision times.
                if let (HoldOutcome::Approved | HoldOutcome::Denied, Some(opened_at)) = (ending, opened_at) {
                    let took = opened_at.until(event.at).as_secs_f64();
                    self.decisions.with_label_values(&[flow, ending.word()]).observe(took);
                }
            }
        }
    }

    /// Counts a proposal over a budget, and a committed rollback.
    fn at_boundary(&self, event: &Event) {
        let codes = event.data.get("codes").and_then(Value::as_array);
        if event.kind == EventType::TransitionRejected && codes.is_some_and(|it| it.contains(&BUDGET.into())) {
            self.boundary_refused(BUDGET);
        }
        if event.kind == EventType::TransitionCommitted
            && event.data.get("restores").is_some()
            && let Some(flow) = &event.flow
        {
            self.rollbacks.with_label_values(&[self.named(flow)]).inc();
        }
    }

    pub fn ran(&self, worker: &str, run: WorkerResult) {
        let failing = match run {
            WorkerResult::Done => 0.0,
            WorkerResult::Failed => 1.0,
        };
        self.workers.with_label_values(&[worker]).set(failing);
        // An alert on the name of an earlier release would be silent. Remove these after the next release.
        let former = FORMER_WORKER_NAMES.iter().find(|it| it.0 == worker);
        if let Some((_, name)) = former {
            self.workers.with_label_values(&[name]).set(failing);
        }
    }

    /// Returns all metrics as text. `facts` is `None` if the database could not be read. `queued` is the number of
    /// changes that wait to be written.
    pub fn text(&self, facts: Option<&DatabaseGauges>, queued: usize) -> String {
        self.queued.set(queued as f64);
        self.facts.set(facts, |flow| self.named(flow));
        let mut text = Vec::new();
        TextEncoder::new()
            .encode(&self.registry.registry.gather(), &mut text)
            .expect("a registry gathers no family without a sample, and memory takes what is written");
        String::from_utf8(text).expect("what is encoded from texts is text")
    }

    /// Returns every metric family, with or without samples, in the order of their names.
    pub fn described(&self) -> Vec<Described> {
        let mut all = self.registry.described.lock().unwrap_or_else(PoisonError::into_inner).clone();
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all
    }

    /// Returns the label of a flow.
    fn named<'f>(&self, flow: &'f FlowId) -> &'f str {
        let mut flows = self.flows.lock().unwrap_or_else(PoisonError::into_inner);
        let below_limit = flows.len() < FLOWS_MAX;
        if flows.contains(flow) || (below_limit && flows.insert(flow.clone())) { flow.as_str() } else { "" }
    }
}

/// The description of a metric family, from which its reference is generated.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Described {
    pub name: String,
    /// The type: counter, gauge or histogram.
    pub kind: String,
    pub labels: Vec<String>,
    pub help: String,
}

/// The registry, and the description of every family in it: the registry itself omits families without samples.
#[derive(Default, Debug)]
struct Families {
    registry: Registry,
    described: Mutex<Vec<Described>>,
}

/// The name without the common prefix, and the help text.
type MetricFamily = (&'static str, &'static str);

const SOUND: &str = "a family is named as Prometheus asks, and once; a test makes all of them";

fn opts((name, help): MetricFamily) -> Opts {
    Opts::new(name, help).namespace("countersign")
}

fn put<C: Collector + Clone + 'static>(registry: &Families, family: C) -> C {
    registry.registry.register(Box::new(family.clone())).expect(SOUND);
    let labels = family.desc().first().map(|it| it.variable_labels.clone()).unwrap_or_default();
    let described = family.collect().into_iter().map(|it| Described {
        name: it.name().to_owned(),
        kind: format!("{:?}", it.get_field_type()).to_lowercase(),
        labels: labels.clone(),
        help: it.help().to_owned(),
    });
    registry.described.lock().unwrap_or_else(PoisonError::into_inner).extend(described);
    family
}

fn counter(registry: &Families, family: MetricFamily) -> IntCounter {
    put(registry, IntCounter::with_opts(opts(family)).expect(SOUND))
}

fn counters(registry: &Families, family: MetricFamily, labels: &[&str]) -> IntCounterVec {
    put(registry, IntCounterVec::new(opts(family), labels).expect(SOUND))
}

fn gauge(registry: &Families, family: MetricFamily) -> Gauge {
    put(registry, Gauge::with_opts(opts(family)).expect(SOUND))
}

fn gauges(registry: &Families, family: MetricFamily, labels: &[&str]) -> GaugeVec {
    put(registry, GaugeVec::new(opts(family), labels).expect(SOUND))
}

fn histogram(registry: &Families, family: MetricFamily, labels: &[&str], buckets: &[f64]) -> HistogramVec {
    let opts = HistogramOpts::from(opts(family)).buckets(buckets.to_vec());
    put(registry, HistogramVec::new(opts, labels).expect(SOUND))
}
