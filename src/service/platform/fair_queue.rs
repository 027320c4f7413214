//! Turns: work that takes the processor or the memory for long is done a little at a time, so that whoever asks for much of
//! it waits for it themselves, and nobody else does.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::service::error::{Error, Result};

/// Joins that are worked on at once: each has up to 32 states in hand, and merging them takes as long as many proposals.
const JOINED_AT_ONCE: usize = 2;

/// States whose tokens are counted at once: a large one takes a second of the processor.
const COUNTED_AT_ONCE: usize = 2;

/// Archives and imported runs that are in memory at once for whoever reads: a large one takes some hundred megabytes, and seconds.
const UNPACKED_AT_ONCE: usize = 2;

/// Large states that are rolled forward and committed to their roots at once: each takes the processor for some tenths of a second at
/// most.
const ROLLED_AT_ONCE: usize = 2;

/// Runs that are told at once: a long one is some megabytes of events, and a second of the processor.
const TOLD_AT_ONCE: usize = 2;

/// Judgements that are large, and are decided at once: each takes the processor for some tenths of a second at most.
const JUDGED_AT_ONCE: usize = 2;

/// Dry runs that are done at once, policies that are compiled among them. They wait for each other and not for what is
/// decided: an auditor who tries policies keeps no agent waiting.
const TRIED_AT_ONCE: usize = 2;

#[derive(Debug)]
pub(in crate::service) struct FairQueues {
    pub(in crate::service) joining: FairQueue,
    /// Counting what nodes are given, by who asks.
    pub(in crate::service) counting: FairQueue,
    /// Judging what is large, by who asks.
    pub(in crate::service) judging: FairQueue,
    /// Judging writers' results that are large, by who asks: their writes have happened, and their leases run out.
    pub(in crate::service) confirming: FairQueue,
    /// Compiling policies, and judging what has no effect, by who asks.
    pub(in crate::service) trying: FairQueue,
    /// Telling runs, by who asks.
    pub(in crate::service) telling: FairQueue,
    /// Rolling large states forward, by whose they are.
    pub(in crate::service) rolling: FairQueue,
    /// Reading archives and imported runs, by whose they are.
    pub(in crate::service) unpacking: FairQueue,
}

impl Default for FairQueues {
    fn default() -> Self {
        Self {
            joining: FairQueue::of(JOINED_AT_ONCE),
            counting: FairQueue::of(COUNTED_AT_ONCE),
            judging: FairQueue::of(JUDGED_AT_ONCE),
            confirming: FairQueue::of(JUDGED_AT_ONCE),
            trying: FairQueue::of(TRIED_AT_ONCE),
            telling: FairQueue::of(TOLD_AT_ONCE),
            rolling: FairQueue::of(ROLLED_AT_ONCE),
            unpacking: FairQueue::of(UNPACKED_AT_ONCE),
        }
    }
}

/// Askers that are remembered before those are forgotten who ask for nothing now.
const ASKERS_KEPT: usize = 1_000;

/// Who works, and who waits. Of one asker one thing is done at a time, and of all of them so many: so a thousand requests of
/// one asker keep another's waiting for one of them.
#[derive(Debug)]
pub(in crate::service) struct FairQueue {
    all: Arc<Semaphore>,
    askers: Mutex<HashMap<String, Arc<Semaphore>>>,
}

/// The right to work, until everybody who shares it has dropped it.
#[derive(Clone, Debug)]
pub(in crate::service) struct QueuePermit {
    _permits: Arc<QueuePermits>,
}

#[derive(Debug)]
struct QueuePermits {
    _of_all: OwnedSemaphorePermit,
    _of_asker: OwnedSemaphorePermit,
}

impl QueuePermit {
    /// Does the work where no request waits for it. What was begun goes on to its end, whoever is left to hear of it, and until
    /// then the turn is not over: a caller that hangs up has not made room for the next.
    pub(in crate::service) async fn work<T: Send + 'static>(
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
        tokio::task::spawn_blocking(working).await.map_err(|_| Error::Broken(what))
    }
}

impl FairQueue {
    fn of(at_once: usize) -> Self {
        Self { all: Arc::new(Semaphore::new(at_once)), askers: Mutex::default() }
    }

    /// Waits for the asker's turn.
    pub(in crate::service) async fn take(&self, asker: &str) -> Result<QueuePermit> {
        let own = self.asker(asker);
        // Neither is ever closed.
        let of_asker = own.acquire_owned().await.map_err(|_| Error::Busy)?;
        let of_all = Arc::clone(&self.all).acquire_owned().await.map_err(|_| Error::Busy)?;
        Ok(QueuePermit { _permits: Arc::new(QueuePermits { _of_all: of_all, _of_asker: of_asker }) })
    }

    fn asker(&self, asker: &str) -> Arc<Semaphore> {
        let mut askers = self.askers.lock().unwrap_or_else(PoisonError::into_inner);
        if askers.len() >= ASKERS_KEPT {
            // Whoever waits or works has a share of it.
            askers.retain(|_, it| Arc::strong_count(it) > 1);
        }
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

    /// Whether it is the asker's turn at once.
    fn at_once(turns: &FairQueue, asker: &str) -> Option<QueuePermit> {
        let mut context = Context::from_waker(Waker::noop());
        match pin!(turns.take(asker)).as_mut().poll(&mut context) {
            std::task::Poll::Ready(turn) => turn.ok(),
            std::task::Poll::Pending => None,
        }
    }

    #[test]
    fn one_thing_of_an_asker_is_done_at_a_time_and_so_many_of_all() {
        let turns = FairQueue::of(2);
        let first = at_once(&turns, "a");
        assert!(first.is_some() && at_once(&turns, "a").is_none());
        let second = at_once(&turns, "b");
        assert!(second.is_some() && at_once(&turns, "c").is_none());
        drop(first);
        assert!(at_once(&turns, "c").is_some() && at_once(&turns, "b").is_none());
    }

    #[test]
    fn whoever_asked_a_thousand_times_is_before_another_once() {
        let turns = FairQueue::of(1);
        let working = at_once(&turns, "a");
        let mut context = Context::from_waker(Waker::noop());
        let mut many: Vec<_> = (0..1_000).map(|_| Box::pin(turns.take("a"))).collect();
        many.iter_mut().for_each(|it| assert!(it.as_mut().poll(&mut context).is_pending()));
        let mut other = Box::pin(turns.take("b"));
        assert!(other.as_mut().poll(&mut context).is_pending());
        drop(working);
        // One of the first asker's was asked for before, and stands in line with the other's.
        let next = many.iter_mut().position(|it| it.as_mut().poll(&mut context).is_ready());
        let theirs = other.as_mut().poll(&mut context).is_ready();
        assert!(theirs || next.is_some());
        drop(many);
        assert!(theirs || other.as_mut().poll(&mut context).is_ready(), "the rest of them is not before it");
    }

    #[tokio::test]
    async fn a_turn_lasts_as_long_as_what_was_begun_in_it_whoever_hangs_up() {
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
    async fn work_that_panics_ends_its_turn() {
        let turns = FairQueue::of(1);
        let turn = turns.take("a").await.unwrap();
        let failed = turn.work("a test", || panic!("as asked")).await;
        assert!(matches!(failed, Err(Error::Broken("a test"))));
        drop(turn);
        assert!(at_once(&turns, "b").is_some());
    }

    #[test]
    fn askers_are_forgotten_once_they_ask_for_nothing() {
        let turns = FairQueue::of(1);
        let kept = turns.asker("kept");
        (0..ASKERS_KEPT * 3).for_each(|it| drop(turns.asker(&it.to_string())));
        assert!(turns.askers.lock().unwrap().len() <= ASKERS_KEPT + 1);
        assert!(Arc::ptr_eq(&kept, &turns.asker("kept")), "who waits is not forgotten");
    }
}
