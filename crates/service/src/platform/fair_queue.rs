//! The fair queue: limits the concurrency of expensive work. One caller runs one piece of work at a time, so
//! that a caller with many requests delays only itself.

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::error::{Error, Result};

/// Joins at once. Each has up to 32 states in memory, and a merge takes as long as many proposals.
const JOINED_AT_ONCE: usize = 2;

/// States whose tokens are counted at once. A large one takes a second of CPU time.
const COUNTED_AT_ONCE: usize = 2;

/// Archives and imported runs that are in memory at once. A large one takes some hundred megabytes, and
/// seconds.
const UNPACKED_AT_ONCE: usize = 2;

/// Large states that are rolled forward and hashed at once. Each takes some tenths of a second of CPU time at
/// most.
const ROLLED_AT_ONCE: usize = 2;

/// Episodes that are rendered at once. A long one has some megabytes of events and takes a second of CPU
/// time.
const TOLD_AT_ONCE: usize = 2;

/// Large states that are redacted at once. Each takes some hundredths of a second of CPU time, and more if it
/// has many texts that equal redacted values.
const REDACTED_AT_ONCE: usize = 2;

/// Large requests that are judged at once. Each takes some tenths of a second of CPU time at most.
const JUDGED_AT_ONCE: usize = 2;

/// Dry runs and policy compilations at once. They have a queue of their own, so that an auditor who tests
/// policies delays no agent.
const TRIED_AT_ONCE: usize = 2;

#[derive(Debug)]
pub(crate) struct FairQueues {
    pub(crate) joining: FairQueue,
    /// Counting the context tokens of nodes, by caller.
    pub(crate) counting: FairQueue,
    /// Judging large requests, by caller.
    pub(crate) judging: FairQueue,
    /// Judging large results of writers, by caller. The queue is separate because these writes have happened
    /// and their leases run out.
    pub(crate) confirming: FairQueue,
    /// Compiling policies and dry runs, by caller.
    pub(crate) trying: FairQueue,
    /// Redacting large states, by reader. Its work may wait for `telling`, `rolling` and `unpacking`, so no work of
    /// those may wait for it.
    pub(crate) redacting: FairQueue,
    /// Rendering episodes, by caller.
    pub(crate) telling: FairQueue,
    /// Rolling large states forward, by thread.
    pub(crate) rolling: FairQueue,
    /// Reading archives and imported runs, by thread.
    pub(crate) unpacking: FairQueue,
}

impl Default for FairQueues {
    fn default() -> Self {
        Self {
            joining: FairQueue::of(JOINED_AT_ONCE),
            counting: FairQueue::of(COUNTED_AT_ONCE),
            judging: FairQueue::of(JUDGED_AT_ONCE),
            confirming: FairQueue::of(JUDGED_AT_ONCE),
            trying: FairQueue::of(TRIED_AT_ONCE),
            redacting: FairQueue::of(REDACTED_AT_ONCE),
            telling: FairQueue::of(TOLD_AT_ONCE),
            rolling: FairQueue::of(ROLLED_AT_ONCE),
            unpacking: FairQueue::of(UNPACKED_AT_ONCE),
        }
    }
}

/// Callers in memory before idle ones are removed.
const ASKERS_KEPT: usize = 1_000;

/// A semaphore for all callers, and one for each caller. Each caller runs one piece of work at a time, so a
/// thousand requests of one caller delay another caller by at most one of them.
#[derive(Debug)]
pub(crate) struct FairQueue {
    all: Arc<Semaphore>,
    askers: Mutex<HashMap<String, Arc<Semaphore>>>,
}

/// The permission to work. It ends when its last clone is dropped.
#[derive(Clone, Debug)]
pub(crate) struct QueuePermit {
    _permits: Arc<QueuePermits>,
}

#[derive(Debug)]
struct QueuePermits {
    _of_all: OwnedSemaphorePermit,
    _of_asker: OwnedSemaphorePermit,
}

impl QueuePermit {
    /// Runs work on a blocking thread. The work owns a clone of the permit, so a client that disconnects does
    /// not free the slot before the work ends.
    pub(crate) async fn work<T: Send + 'static>(
        &self,
        what: &'static str,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T> {
        let turn = self.clone();
        let working = move || {
            let done = work();
            drop(turn);
            done
        };
        // The task fails only if the work panics or the runtime stops.
        tokio::task::spawn_blocking(working).await.map_err(|_| Error::Broken(what))
    }

    /// Runs a future on a blocking thread. The store has its own threads, so its answers arrive there too.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        what: &'static str,
        future: impl Future<Output = T> + Send + 'static,
    ) -> Result<T> {
        let runtime = Handle::current();
        self.work(what, move || runtime.block_on(future)).await
    }
}

impl FairQueue {
    fn of(at_once: usize) -> Self {
        Self { all: Arc::new(Semaphore::new(at_once)), askers: Mutex::default() }
    }

    /// Waits until this caller may work.
    pub(crate) async fn take(&self, asker: &str) -> Result<QueuePermit> {
        let own = self.asker(asker);
        // Acquiring fails only on a closed semaphore, and neither is ever closed.
        let of_asker = own.acquire_owned().await.map_err(|_| Error::Busy)?;
        // After the caller's own permit, so that a waiting caller occupies no shared slot.
        let of_all = Arc::clone(&self.all).acquire_owned().await.map_err(|_| Error::Busy)?;
        Ok(QueuePermit { _permits: Arc::new(QueuePermits { _of_all: of_all, _of_asker: of_asker }) })
    }

    fn asker(&self, asker: &str) -> Arc<Semaphore> {
        let mut askers = self.askers.lock().unwrap_or_else(PoisonError::into_inner);
        if askers.len() >= ASKERS_KEPT {
            // A caller that works or waits has another reference to its semaphore.
            askers.retain(|_, it| Arc::strong_count(it) > 1);
        }
        // Semaphores are fair: waiting callers get their permits in order.
        let own = askers.entry(asker.to_owned()).or_insert_with(|| Arc::new(Semaphore::new(1)));
        Arc::clone(own)
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future as _;
    use std::pin::pin;
    use std::task::{Context, Waker};

    use super::*;

    /// Returns the permit if the caller may work without waiting.
    fn at_once(turns: &FairQueue, asker: &str) -> Option<QueuePermit> {
        let mut context = Context::from_waker(Waker::noop());
        match pin!(turns.take(asker)).as_mut().poll(&mut context) {
            std::task::Poll::Ready(turn) => turn.ok(),
            std::task::Poll::Pending => None,
        }
    }

    #[test]
    fn one_permit_per_caller_and_a_limit_for_all() {
        let turns = FairQueue::of(2);
        let first = at_once(&turns, "a");
        assert!(first.is_some() && at_once(&turns, "a").is_none());
        let second = at_once(&turns, "b");
        assert!(second.is_some() && at_once(&turns, "c").is_none());
        drop(first);
        assert!(at_once(&turns, "c").is_some() && at_once(&turns, "b").is_none());
    }

    #[test]
    fn thousand_requests_delay_another_caller_once() {
        let turns = FairQueue::of(1);
        let working = at_once(&turns, "a");
        let mut context = Context::from_waker(Waker::noop());
        let mut many: Vec<_> = (0..1_000).map(|_| Box::pin(turns.take("a"))).collect();
        many.iter_mut().for_each(|it| assert!(it.as_mut().poll(&mut context).is_pending()));
        let mut other = Box::pin(turns.take("b"));
        assert!(other.as_mut().poll(&mut context).is_pending());
        drop(working);
        // One request of the first caller was queued earlier, so it may come first.
        let next = many.iter_mut().position(|it| it.as_mut().poll(&mut context).is_ready());
        let theirs = other.as_mut().poll(&mut context).is_ready();
        assert!(theirs || next.is_some());
        drop(many);
        assert!(
            theirs || other.as_mut().poll(&mut context).is_ready(),
            "the other requests of the first caller wait longer"
        );
    }

    #[tokio::test]
    async fn permit_lasts_until_the_work_ends_after_a_disconnect() {
        let turns = FairQueue::of(1);
        let (go_on, told) = std::sync::mpsc::channel::<()>();
        let turn = turns.take("a").await.unwrap();
        let mut asked = Box::pin(turn.work("a test", move || told.recv().is_ok()));
        assert!(asked.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        drop(asked);
        drop(turn);
        let mut next = Box::pin(turns.take("b"));
        assert!(next.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        go_on.send(()).unwrap();
        next.await.unwrap();
    }

    #[tokio::test]
    async fn work_that_panics_releases_its_permit() {
        let turns = FairQueue::of(1);
        let turn = turns.take("a").await.unwrap();
        let failed = turn.work("a test", || panic!("as asked")).await;
        assert!(matches!(failed, Err(Error::Broken("a test"))));
        drop(turn);
        assert!(at_once(&turns, "b").is_some());
    }

    #[test]
    fn idle_callers_are_removed() {
        let turns = FairQueue::of(1);
        let kept = turns.asker("kept");
        (0..ASKERS_KEPT * 3).for_each(|it| drop(turns.asker(&it.to_string())));
        assert!(turns.askers.lock().unwrap().len() <= ASKERS_KEPT + 1);
        assert!(Arc::ptr_eq(&kept, &turns.asker("kept")), "a waiting caller is not removed");
    }
}
