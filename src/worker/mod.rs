//! Workers: what is done because time passed, not because somebody asked. Correctness never waits for them:
//! whoever reads counts a passed deadline as passed, whether or not a worker saw it.
//!
//! Each worker is one function that does all there is to do now; tests call it by hand. The supervisor calls
//! it again and again until the gateway stops.

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

use futures_util::FutureExt as _;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::config::LogExportTarget;
use crate::mail::Mailer;
use crate::metrics::WorkerResult;
use crate::service::Service;
use crate::service::error::{Error, Result};
use archive::Archiver;
use clock::ClockWatch;
use deliver::DeliveryWorker;

/// The workers of a running gateway.
pub struct Workers {
    stop: watch::Sender<bool>,
    loops: Vec<JoinHandle<()>>,
    interval: Duration,
    sender: Arc<DeliveryWorker>,
}

/// When a gateway stops, what is being sent gets so long to be answered.
const LAST_ANSWERS: Duration = Duration::from_secs(2);

impl Workers {
    /// Starts them all; each looks at once and then at every interval.
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

    /// One more, that copies the log there.
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

    /// One more, that tells people by mail, digests so far apart.
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

    /// Lets each end the run that it is in, and starts none any more.
    pub async fn stop(self) {
        // No receiver is left only if every loop has ended already.
        let _ = self.stop.send(true);
        for it in self.loops {
            if let Err(error) = it.await {
                tracing::error!(%error, "a worker did not end in order");
            }
        }
        self.sender.end(LAST_ANSWERS).await;
    }
}

/// While one commit follows another, what follows from them is done this often: soon enough for who watches, and for
/// many at once.
const PACE: Duration = Duration::from_millis(50);

/// When a worker runs again.
#[derive(Clone, Copy)]
enum WakeTrigger {
    /// At every interval: time makes its work.
    AtIntervals,
    /// After a commit by anybody, and at every interval: commits make its work.
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
            service.metrics().ran(self.name, if outcome.is_ok() { WorkerResult::Done } else { WorkerResult::Failed });
            failing = outcome.is_err();
            tokio::select! {
                () = rest(&service, self.wakes, self.interval) => {}
                // The loop's condition says so too.
                _ = self.stopping.changed() => {}
            }
        }
    }

    /// A worker that keeps failing says so once, and once more when it works again.
    fn note(&self, outcome: &Result<usize>, failing: bool) {
        let worker = self.name;
        match outcome {
            // The store logs an outage of the database itself, once for all that meet it.
            Err(error) if error.is_outage() => {}
            Err(error) if !failing => {
                tracing::error!(
                    worker,
                    error = error as &dyn std::error::Error,
                    "a worker's run failed; it is tried again"
                );
            }
            Err(_) => {}
            Ok(done) if failing => tracing::info!(worker, done, "the worker works again"),
            Ok(0) => {}
            Ok(done) => tracing::debug!(worker, done, "a worker's run"),
        }
    }
}

/// A run, whatever becomes of it. One that panics has failed like another, and is tried again: were it to end its worker, nobody
/// would do that one's work until the gateway is started anew.
async fn tried(run: impl Future<Output = Result<usize>>) -> Result<usize> {
    AssertUnwindSafe(run).catch_unwind().await.unwrap_or(Err(Error::Broken("a worker's run")))
}

async fn rest(service: &Service, wakes: WakeTrigger, interval: Duration) {
    match wakes {
        WakeTrigger::AtIntervals => tokio::time::sleep(interval).await,
        WakeTrigger::AfterCommits => {
            service.changed(interval).await;
            tokio::time::sleep(interval.min(PACE)).await;
        }
    }
}

/// Goes through what is due. One that fails does not keep the others waiting; the first failure is told. An outage of the
/// database ends the run: each of the others would wait for it, too.
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
    async fn a_run_that_panics_has_failed_and_its_worker_runs_again() {
        let runs = AtomicUsize::new(0);
        let run = || async {
            assert!(runs.fetch_add(1, Ordering::Relaxed) > 0, "the first run panics");
            Ok(7)
        };
        assert!(matches!(tried(run()).await, Err(Error::Broken("a worker's run"))));
        assert_eq!(tried(run()).await.unwrap(), 7);
    }
}
