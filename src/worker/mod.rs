//! Background workers: work that is due because time passed. Correctness never depends on them, because every
//! read treats a passed deadline as passed.
//!
//! Each worker is one function that does all work that is due now. Tests call it directly, and the supervisor
//! repeats it until the gateway stops.

pub mod archive;
pub mod clock;
pub mod count_insight;
pub mod deliver;
pub mod escalate;
pub mod expire;
pub mod expire_leases;
pub mod export_log;
pub mod last_seen;
pub mod mail;
pub mod prune;
pub mod rejudge;
pub mod sequence;

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use countersign_adapters::log_sink::LogExportTarget;
use countersign_adapters::mail::Mailer;
use countersign_adapters::metrics::WorkerResult;
use countersign_service::Service;
use countersign_service::error::{Error, Result};
use futures_util::FutureExt as _;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use archive::Archiver;
use clock::ClockWatch;
use deliver::DeliveryWorker;

pub struct Workers {
    stop: watch::Sender<bool>,
    loops: Vec<JoinHandle<()>>,
    interval: Duration,
    sender: Arc<DeliveryWorker>,
}

/// How long a stopping gateway waits for the responses to its last requests.
const LAST_ANSWERS: Duration = Duration::from_secs(2);

impl Workers {
    /// Starts all workers. Each runs at once and then at every interval.
    pub fn start(service: &Arc<Service>, interval: Duration) -> Self {
        let (stop, stopping) = watch::channel(false);
        let rounds = |name| WorkerLoop { name, interval, wakes: WakeTrigger::AtIntervals, stopping: stopping.clone() };
        let sequence = WorkerLoop { wakes: WakeTrigger::AfterCommits, ..rounds("sequence") };
        let sender = Arc::new(DeliveryWorker::new(service));
        let sends = Arc::clone(&sender);
        let deliver = WorkerLoop { wakes: WakeTrigger::AfterCommits, ..rounds("deliver") };
        let archiver = Arc::new(Archiver::default());
        let watch = Arc::new(ClockWatch::default());
        let loops = vec![
            tokio::spawn(rounds("archive").repeat(Arc::clone(service), move |it| {
                let archiver = Arc::clone(&archiver);
                async move { archiver.run_once(&it).await }
            })),
            tokio::spawn(rounds("clock").repeat(Arc::clone(service), move |it| {
                let watch = Arc::clone(&watch);
                async move { watch.run_once(&it).await }
            })),
            tokio::spawn(deliver.repeat(Arc::clone(service), move |_| {
                let sends = Arc::clone(&sends);
                async move { sends.round().await }
            })),
            tokio::spawn(rounds("prune").repeat(Arc::clone(service), |it| async move { prune::run_once(&it).await })),
            tokio::spawn(rounds("expire").repeat(Arc::clone(service), |it| async move { expire::run_once(&it).await })),
            tokio::spawn(
                rounds("rejudge").repeat(Arc::clone(service), |it| async move { rejudge::run_once(&it).await }),
            ),
            tokio::spawn(
                rounds("expire_leases")
                    .repeat(Arc::clone(service), |it| async move { expire_leases::run_once(&it).await }),
            ),
            tokio::spawn(
                rounds("escalate").repeat(Arc::clone(service), |it| async move { escalate::run_once(&it).await }),
            ),
            tokio::spawn(sequence.repeat(Arc::clone(service), |it| async move { sequence::run_once(&it).await })),
            tokio::spawn(
                rounds("count_insight")
                    .repeat(Arc::clone(service), |it| async move { count_insight::run_once(&it).await }),
            ),
            tokio::spawn(
                rounds("last_seen").repeat(Arc::clone(service), |it| async move { last_seen::run_once(&it).await }),
            ),
        ];
        Self { stop, loops, interval, sender }
    }

    /// Adds the worker for the log export.
    #[must_use]
    pub fn copying(mut self, service: &Arc<Service>, to: &LogExportTarget) -> Self {
        let (interval, stopping, to) = (self.interval, self.stop.subscribe(), to.clone());
        let round = WorkerLoop { name: "export_log", interval, wakes: WakeTrigger::AfterCommits, stopping };
        self.loops.push(tokio::spawn(round.repeat(Arc::clone(service), move |it| {
            let to = to.clone();
            async move { export_log::run_once(&it, &to).await }
        })));
        self
    }

    pub fn count(&self) -> usize {
        self.loops.len()
    }

    /// Adds the worker for email notifications. `digests` is the time between two digests.
    #[must_use]
    pub fn telling(mut self, service: &Arc<Service>, mailer: &Mailer, digests: Duration) -> Self {
        let (interval, stopping, mailer) = (self.interval, self.stop.subscribe(), mailer.clone());
        let round = WorkerLoop { name: "mail", interval, wakes: WakeTrigger::AtIntervals, stopping };
        self.loops.push(tokio::spawn(round.repeat(Arc::clone(service), move |it| {
            let mailer = mailer.clone();
            async move { Ok(mail::run_once(&it, &mailer, digests).await?.unwrap_or_default()) }
        })));
        self
    }

    /// Stops all workers after their current run.
    pub async fn stop(self) {
        // Sending fails only if every loop has already ended.
        let _ = self.stop.send(true);
        for it in self.loops {
            if let Err(error) = it.await {
                tracing::error!(%error, "a worker did not end normally");
            }
        }
        self.sender.end(LAST_ANSWERS).await;
    }
}

/// The pause between two runs during a series of commits. It is short for people who watch, and long enough
/// to handle many commits at once.
const PACE: Duration = Duration::from_millis(50);

#[derive(Clone, Copy)]
enum WakeTrigger {
    /// At every interval, for work that time creates.
    AtIntervals,
    /// After every commit and at every interval, for work that commits create.
    AfterCommits,
}

struct WorkerLoop {
    name: &'static str,
    interval: Duration,
    wakes: WakeTrigger,
    stopping: watch::Receiver<bool>,
}

impl WorkerLoop {
    async fn repeat<F: Future<Output = Result<usize>>>(
        mut self,
        service: Arc<Service>,
        run: impl Fn(Arc<Service>) -> F,
    ) {
        let mut failing = false;
        while !*self.stopping.borrow() {
            let outcome = tried(run(Arc::clone(&service))).await;
            self.note(&outcome, failing);
            service
                .operations
                .metrics()
                .ran(self.name, if outcome.is_ok() { WorkerResult::Done } else { WorkerResult::Failed });
            failing = outcome.is_err();
            tokio::select! {
                () = rest(&service, self.wakes, self.interval) => {}
                // The condition of the loop reads the value.
                _ = self.stopping.changed() => {}
            }
        }
    }

    /// Logs the first failure of a worker and its recovery, so that a long failure does not flood the server
    /// log.
    fn note(&self, outcome: &Result<usize>, failing: bool) {
        let worker = self.name;
        match outcome {
            // The store logs an outage of the database once for all workers.
            Err(error) if error.is_outage() => {}
            Err(error) if !failing => {
                tracing::error!(
                    worker,
                    error = error as &dyn std::error::Error,
                    "a worker failed; it runs again at the next interval"
                );
            }
            Err(_) => {}
            Ok(done) if failing => tracing::info!(worker, done, "the worker has recovered"),
            Ok(0) => {}
            Ok(done) => tracing::debug!(worker, done, "a worker has finished a run"),
        }
    }
}

/// Runs a worker and turns a panic into an error. Otherwise a panic would end the worker until the gateway is
/// restarted.
async fn tried(run: impl Future<Output = Result<usize>>) -> Result<usize> {
    AssertUnwindSafe(run).catch_unwind().await.unwrap_or(Err(Error::Broken("a worker's run")))
}

async fn rest(service: &Service, wakes: WakeTrigger, interval: Duration) {
    match wakes {
        WakeTrigger::AtIntervals => tokio::time::sleep(interval).await,
        WakeTrigger::AfterCommits => {
            service.core.changed(interval).await;
            // Collects the commits of this pause into one run.
            tokio::time::sleep(interval.min(PACE)).await;
        }
    }
}

/// Runs a function for each item that is due. A failed item does not stop the others, and the first error is
/// returned. An outage of the database stops the run, because every other item would wait for it too.
async fn each<I, F: Future<Output = Result<()>>>(due: Vec<I>, run: impl Fn(I) -> F) -> Result<usize> {
    let mut failed: Option<Error> = None;
    let mut done = 0;
    for item in due {
        match run(item).await {
            Ok(()) => done += 1,
            Err(error) if error.is_outage() => return Err(error),
            Err(error) => failed = failed.or(Some(error)),
        }
    }
    failed.map_or(Ok(done), Err)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[tokio::test]
    async fn run_that_panics_fails_and_is_repeated() {
        let runs = AtomicUsize::new(0);
        let run = || async {
            assert!(runs.fetch_add(1, Ordering::Relaxed) > 0, "the first run panics");
            Ok(7)
        };
        assert!(matches!(tried(run()).await, Err(Error::Broken("a worker's run"))));
        assert_eq!(tried(run()).await.unwrap(), 7);
    }
}
