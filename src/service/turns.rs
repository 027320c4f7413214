//! Turns: work that takes the processor or the memory for long is done a little at a time, so that whoever asks for much of
//! it waits for it themselves, and nobody else does.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::error::{Error, Result};
use super::proposals::Asked;

/// Joins that are worked on at once: each has up to 32 states in hand, and merging them takes as long as many proposals.
const JOINED_AT_ONCE: usize = 2;

/// States whose tokens are counted at once: a large one takes a second of the processor.
const COUNTED_AT_ONCE: usize = 2;

/// Archives that are in memory at once for whoever reads: a large one takes some hundred megabytes, and seconds.
const UNPACKED_AT_ONCE: usize = 2;

/// What takes turns.
#[derive(Debug)]
pub(super) struct Waiting {
    /// Joins, by who asks.
    joining: Turns,
    /// Counting what nodes are given, by who asks.
    pub(super) counting: Turns,
    /// Reading archives, by whose they are.
    pub(super) unpacking: Turns,
}

impl Default for Waiting {
    fn default() -> Self {
        Self {
            joining: Turns::of(JOINED_AT_ONCE),
            counting: Turns::of(COUNTED_AT_ONCE),
            unpacking: Turns::of(UNPACKED_AT_ONCE),
        }
    }
}

impl Waiting {
    /// Waits until it may be looked at what this asks for, if that takes long.
    pub(super) async fn of(&self, ask: &Asked, by: &str) -> Result<Option<Turn>> {
        match ask {
            Asked::Join(_) => self.joining.take(by).await.map(Some),
            Asked::Patch { .. } | Asked::Edit { .. } | Asked::Reaffirm | Asked::Rollback { .. } => Ok(None),
        }
    }
}

/// Askers that are remembered before those are forgotten who ask for nothing now.
const ASKERS_KEPT: usize = 1_000;

/// Who works, and who waits. Of one asker one thing is done at a time, and of all of them so many: so a thousand requests of
/// one asker keep another's waiting for one of them.
#[derive(Debug)]
pub(super) struct Turns {
    all: Arc<Semaphore>,
    askers: Mutex<HashMap<String, Arc<Semaphore>>>,
}

/// The right to work, until it is dropped.
#[derive(Debug)]
pub(super) struct Turn {
    _of_all: OwnedSemaphorePermit,
    _of_asker: OwnedSemaphorePermit,
}

impl Turns {
    /// So many work at once.
    fn of(at_once: usize) -> Self {
        Self { all: Arc::new(Semaphore::new(at_once)), askers: Mutex::default() }
    }

    /// Waits for the asker's turn.
    pub(super) async fn take(&self, asker: &str) -> Result<Turn> {
        let own = self.asker(asker);
        // Neither is ever closed.
        let of_asker = own.acquire_owned().await.map_err(|_| Error::Busy)?;
        let of_all = Arc::clone(&self.all).acquire_owned().await.map_err(|_| Error::Busy)?;
        Ok(Turn { _of_all: of_all, _of_asker: of_asker })
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
    fn at_once(turns: &Turns, asker: &str) -> Option<Turn> {
        let mut context = Context::from_waker(Waker::noop());
        match pin!(turns.take(asker)).as_mut().poll(&mut context) {
            std::task::Poll::Ready(turn) => turn.ok(),
            std::task::Poll::Pending => None,
        }
    }

    #[test]
    fn one_thing_of_an_asker_is_done_at_a_time_and_so_many_of_all() {
        let turns = Turns::of(2);
        let first = at_once(&turns, "a");
        assert!(first.is_some() && at_once(&turns, "a").is_none());
        let second = at_once(&turns, "b");
        assert!(second.is_some() && at_once(&turns, "c").is_none());
        drop(first);
        assert!(at_once(&turns, "c").is_some() && at_once(&turns, "b").is_none());
    }

    #[test]
    fn whoever_asked_a_thousand_times_is_before_another_once() {
        let turns = Turns::of(1);
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

    #[test]
    fn askers_are_forgotten_once_they_ask_for_nothing() {
        let turns = Turns::of(1);
        let kept = turns.asker("kept");
        (0..ASKERS_KEPT * 3).for_each(|it| drop(turns.asker(&it.to_string())));
        assert!(turns.askers.lock().unwrap().len() <= ASKERS_KEPT + 1);
        assert!(Arc::ptr_eq(&kept, &turns.asker("kept")), "who waits is not forgotten");
    }
}
