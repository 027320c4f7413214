//! What a gateway counts of itself, in Prometheus' text.
//!
//! Each gateway has a registry of its own, so that several in one process do not count into one another. What it did is
//! counted where it happens; what is so in the database is asked for when somebody looks, and set here all at once. No
//! label holds a name that an agent chose.

mod facts;
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

use crate::domain::chain::denial::DenialCode;
use crate::domain::context::EnvelopeCode;
use crate::domain::endpoint::delivery::Ended;
use crate::domain::event::{Event, EventType};
use crate::domain::id::FlowId;
use crate::domain::insight::Fact;
use crate::domain::policy::RejectCode;
use crate::domain::review::Ending;
use crate::domain::time::Timestamp;
use facts::Gauges;
pub use facts::{Facts, Lane, Lease, Open};

/// Flows that are counted by name, the first ones seen: each is some forty lines for whoever collects. All others are
/// counted together, under an empty name.
const FLOWS_MAX: usize = 200;

/// From what a store answers by itself to what people wait for.
const REQUEST_SECS: [f64; 14] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0];

/// From a glance to a week.
const DECISION_SECS: [f64; 14] = [
    10.0, 30.0, 60.0, 120.0, 300.0, 900.0, 1_800.0, 3_600.0, 7_200.0, 14_400.0, 28_800.0, 86_400.0, 259_200.0,
    604_800.0,
];

/// The code of a proposal beyond a budget.
const BUDGET: &str = RejectCode::Budget.as_str();

/// The methods that are counted by name. Whoever asks may make up others.
const METHODS: [&str; 7] = ["GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH"];

/// A method by the name that it is counted and traced by.
pub fn known_method(method: &str) -> &'static str {
    METHODS.into_iter().find(|it| *it == method).unwrap_or("other")
}

/// How a worker's last run went.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Run {
    /// It did what was to be done.
    Done,
    /// It did not.
    Failed,
}

/// An answer to a request.
#[derive(Clone, Copy, Debug)]
pub struct Answered<'a> {
    /// The method that was asked with.
    pub method: &'a str,
    /// The route as it is registered, never the path.
    pub route: &'a str,
    /// The status.
    pub status: u16,
    /// How long it took.
    pub took: Duration,
}

/// Work that takes long, and is done off the threads that answer requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Work {
    /// A large judgement that is decided.
    Judgement,
    /// A judgement of which nothing comes.
    DryRun,
    /// Compiling a policy that was handed in.
    Policy,
    /// Checking a run that is imported.
    Import,
    /// Checking a large state of an earlier version.
    State,
}

impl Work {
    /// The name that it is counted by.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Judgement => "judgement",
            Self::DryRun => "dry_run",
            Self::Policy => "policy",
            Self::Import => "import",
            Self::State => "state",
        }
    }
}

/// What one gateway counts.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
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
    facts: Gauges,
}

impl Default for Metrics {
    fn default() -> Self {
        let registry = Registry::new();
        let metrics = Self {
            requests: histogram(
                &registry,
                ("request_seconds", "How long requests took until their answer began"),
                &["method", "route", "status"],
                &REQUEST_SECS,
            ),
            denials: counters(&registry, ("verify_denials_total", "Writers not let through, by code"), &["code"]),
            boundary: counters(
                &registry,
                ("boundary_refusals_total", "Envelopes refused, and proposals beyond a budget, by code"),
                &["code"],
            ),
            rollbacks: counters(&registry, ("rollbacks_total", "Committed rollbacks to an earlier version"), &["flow"]),
            chain_failures: counter(
                &registry,
                ("chain_failures_total", "Requests that found what is stored not to be what was signed"),
            ),
            events: counters(&registry, ("events_total", "Events that this gateway counted in the log"), &["type"]),
            proposals: counters(
                &registry,
                ("proposals_total", "Proposals by what the policy made of them"),
                &["flow", "outcome"],
            ),
            endings: counters(&registry, ("reviews_ended_total", "Reviews by how they ended"), &["flow", "ending"]),
            decisions: histogram(
                &registry,
                ("decision_seconds", "How long reviews were open that people decided"),
                &["flow", "decision"],
                &DECISION_SECS,
            ),
            attempts: counters(
                &registry,
                ("delivery_attempts_total", "Attempts to send something to an endpoint, by how they ended"),
                &["outcome"],
            ),
            works: counters(
                &registry,
                (
                    "queued_work_total",
                    "Large judgements, dry runs, policies, imports and large states that waited for their turn, by kind",
                ),
                &["kind"],
            ),
            workers: gauges(&registry, ("worker_failing", "1 for a worker whose last run failed"), &["worker"]),
            queued: gauge(&registry, ("store_queue", "Changes that wait to be written")),
            clock_behind: gauge(
                &registry,
                ("clock_behind_seconds", "How far the clock is behind the newest event; 0 if it is not"),
            ),
            facts: Gauges::new(&registry),
            flows: Mutex::default(),
            registry,
        };
        metrics.begin();
        metrics
    }
}

impl Metrics {
    /// What is known before anything happens. A denial or an outcome that never was is told as 0, so that the first one
    /// is seen as a rise.
    fn begin(&self) {
        let build = gauges(&self.registry, ("build_info", "1, with the version that runs"), &["version"]);
        build.with_label_values(&[env!("CARGO_PKG_VERSION")]).set(1.0);
        for code in DenialCode::ALL {
            self.denials.with_label_values(&[code.as_str()]).reset();
        }
        for code in EnvelopeCode::ALL.iter().map(|it| it.as_str()).chain([BUDGET]) {
            self.boundary.with_label_values(&[code]).reset();
        }
        for work in [Work::Judgement, Work::DryRun, Work::Policy, Work::Import, Work::State] {
            self.works.with_label_values(&[work.name()]).reset();
        }
        for outcome in Ended::outcomes() {
            self.attempts.with_label_values(&[outcome]).reset();
        }
    }

    /// Work began whose turn it was.
    pub fn worked(&self, work: Work) {
        self.works.with_label_values(&[work.name()]).inc();
    }

    /// It was tried to send something.
    pub fn attempted(&self, ended: &Ended) {
        self.attempts.with_label_values(&[ended.outcome()]).inc();
    }

    /// A request was answered.
    pub fn answered(&self, answer: &Answered<'_>) {
        let method = known_method(answer.method);
        let class = match answer.status / 100 {
            1 => "1xx",
            2 => "2xx",
            3 => "3xx",
            4 => "4xx",
            _ => "5xx",
        };
        self.requests.with_label_values(&[method, answer.route, class]).observe(answer.took.as_secs_f64());
    }

    /// A writer was not let through.
    pub fn denied(&self, code: DenialCode) {
        self.denials.with_label_values(&[code.as_str()]).inc();
    }

    /// The clock is so far behind the newest event.
    pub fn clock_behind(&self, by: Duration) {
        self.clock_behind.set(by.as_secs_f64());
    }

    /// Counts an envelope that was not made, or not believed.
    pub fn boundary_refused(&self, code: &'static str) {
        self.boundary.with_label_values(&[code]).inc();
    }

    /// What is stored was found not to be what was signed.
    pub fn chain_failed(&self) {
        self.chain_failures.inc();
    }

    /// An event of the log was counted, by this gateway and no other; and when the review opened that it ends.
    pub fn happened(&self, event: &Event, opened_at: Option<Timestamp>) {
        self.events.with_label_values(&[event.kind.name()]).inc();
        self.at_boundary(event);
        let (Some(fact), Some(flow)) = (Fact::of(event), &event.flow) else { return };
        let flow = self.named(flow);
        let proposed = |outcome: &str| self.proposals.with_label_values(&[flow, outcome]).inc();
        match fact {
            Fact::Committed => proposed("committed"),
            Fact::Observed => proposed("observed"),
            Fact::Rejected => proposed("rejected"),
            Fact::Opened(_) => proposed("held"),
            Fact::Ended(_, ending) => {
                self.endings.with_label_values(&[flow, ending.word()]).inc();
                // What nobody decided says nothing of how long people take to decide.
                if let (Ending::Approved | Ending::Denied, Some(opened_at)) = (ending, opened_at) {
                    let took = opened_at.until(event.at).as_secs_f64();
                    self.decisions.with_label_values(&[flow, ending.word()]).observe(took);
                }
            }
        }
    }

    /// Counts a proposal beyond a budget, and a rollback that was committed.
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

    /// A worker ended a run.
    pub fn ran(&self, worker: &str, run: Run) {
        let failing = match run {
            Run::Done => 0.0,
            Run::Failed => 1.0,
        };
        self.workers.with_label_values(&[worker]).set(failing);
    }

    /// Everything, with what is so in the database as it was found, or the word that it could not be read, and how many
    /// changes wait to be written.
    pub fn text(&self, facts: Option<&Facts>, queued: usize) -> String {
        self.queued.set(queued as f64);
        self.facts.set(facts, |flow| self.named(flow));
        let mut text = Vec::new();
        TextEncoder::new()
            .encode(&self.registry.gather(), &mut text)
            .expect("a registry gathers no family without a sample, and memory takes what is written");
        String::from_utf8(text).expect("what is encoded from texts is text")
    }

    /// The name that a flow is counted by.
    fn named<'f>(&self, flow: &'f FlowId) -> &'f str {
        let mut flows = self.flows.lock().unwrap_or_else(PoisonError::into_inner);
        let room = flows.len() < FLOWS_MAX;
        if flows.contains(flow) || (room && flows.insert(flow.clone())) { flow.as_str() } else { "" }
    }
}

/// A family's name, without what all begin with, and what it is.
type Family = (&'static str, &'static str);

const SOUND: &str = "a family is named as Prometheus asks, and once; a test makes all of them";

fn opts((name, help): Family) -> Opts {
    Opts::new(name, help).namespace("countersign")
}

fn put<C: Collector + Clone + 'static>(registry: &Registry, family: C) -> C {
    registry.register(Box::new(family.clone())).expect(SOUND);
    family
}

fn counter(registry: &Registry, family: Family) -> IntCounter {
    put(registry, IntCounter::with_opts(opts(family)).expect(SOUND))
}

fn counters(registry: &Registry, family: Family, labels: &[&str]) -> IntCounterVec {
    put(registry, IntCounterVec::new(opts(family), labels).expect(SOUND))
}

fn gauge(registry: &Registry, family: Family) -> Gauge {
    put(registry, Gauge::with_opts(opts(family)).expect(SOUND))
}

fn gauges(registry: &Registry, family: Family, labels: &[&str]) -> GaugeVec {
    put(registry, GaugeVec::new(opts(family), labels).expect(SOUND))
}

fn histogram(registry: &Registry, family: Family, labels: &[&str], buckets: &[f64]) -> HistogramVec {
    let opts = HistogramOpts::from(opts(family)).buckets(buckets.to_vec());
    put(registry, HistogramVec::new(opts, labels).expect(SOUND))
}
