//! Tests the restore of archives. It excludes concurrent archiving, and it may take a long time.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use countersign_domain::primitives::id::ThreadId;

use async_trait::async_trait;
use countersign_adapters::clock::ClockOffset;
use countersign_store::change::ChangeSet;
use countersign_store::{LeaderLock, LeaderTask, Store, StoreError};

use super::*;
use crate::over::StoreOperation;

on_both! {
    slow_restore_completes(super::retaining("versions = 10")),
    restore_and_archiving_exclude_each_other(super::retaining("versions = 10")),
    restore_stops_when_it_loses_the_leader_lock(super::retaining("versions = 10")),
}

/// Longer than the allowed deviation of a gateway's clock.
const LONG: i64 = 3_000;

async fn restored(service: &Service, thread: &Value) -> Result<usize, Error> {
    let id = ThreadId::try_from(thread.as_str().unwrap()).unwrap();
    service.archive.restore_archives(&"tests".try_into().unwrap(), &id).await
}

/// Moves the clock while archived data is read for the restore.
struct SlowRestoreStore(ClockOffset, AtomicUsize);

#[async_trait]
impl StoreInterceptor for SlowRestoreStore {
    async fn asked(&self, what: StoreOperation<'_>) {
        if what == StoreOperation::Rows(Table::Whereabouts) {
            self.0.set_millis(LONG * i64::try_from(self.1.fetch_add(1, Ordering::SeqCst) + 1).unwrap());
        }
    }
}

async fn slow_restore_completes(scene: ApiScenario) {
    let g = &scene.gateway;
    let (thread, heads) = grown(g, VERSIONS).await;
    let before = told(g, &thread, &heads).await;
    works(g).await;
    let all = archives(&scene).await.len();
    assert!(all > 0);
    let slow = watched(&scene, SlowRestoreStore(g.clock.clone(), AtomicUsize::new(0))).await;
    assert_eq!(restored(&slow, &thread).await.unwrap(), all);
    assert_eq!(told(g, &thread, &heads).await, before);
    scene.passes_an_audit().await;
}

/// Reports whether another gateway could have taken the leader lock at a commit.
#[derive(Default)]
struct LeadershipProbe(std::sync::Arc<AtomicBool>);

#[async_trait]
impl StoreInterceptor for LeadershipProbe {
    async fn commit(&self, inner: &dyn Store, change: ChangeSet) -> Result<(), StoreError> {
        let had = inner.take(LeaderTask::Archiving).await?.is_some();
        self.0.fetch_or(had, Ordering::SeqCst);
        inner.commit(change).await
    }
}

/// Returns whether the leader lock is free.
async fn is_free(scene: &ApiScenario) -> bool {
    match scene.store().take(LeaderTask::Archiving).await.unwrap() {
        Some(duty) => {
            duty.leave().await;
            true
        }
        None => false,
    }
}

async fn restore_and_archiving_exclude_each_other(scene: ApiScenario) {
    let g = &scene.gateway;
    let (thread, _) = grown(g, VERSIONS).await;
    works(g).await;
    let all = archives(&scene).await;
    let duty = scene.store().take(LeaderTask::Archiving).await.unwrap().unwrap();
    let refused = restored(&g.service, &thread).await;
    assert!(matches!(refused, Err(Error::WrongState(_))), "{refused:?}");
    assert_eq!(archives(&scene).await, all);
    assert!(all.iter().all(|it| path(g, it).exists()));
    duty.leave().await;

    let last = path(g, all.last().unwrap());
    let bytes = std::fs::read(&last).unwrap();
    std::fs::remove_file(&last).unwrap();
    let refused = restored(&g.service, &thread).await;
    assert!(matches!(refused, Err(Error::Archive(_))), "{refused:?}");
    assert!(is_free(&scene).await, "what failed has left it");
    std::fs::write(&last, bytes).unwrap();

    let rival = LeadershipProbe::default();
    let had = rival.0.clone();
    let service = watched(&scene, rival).await;
    assert_eq!(restored(&service, &thread).await.unwrap(), all.len());
    assert!(!had.load(Ordering::SeqCst), "somebody else had the duty meanwhile");
    assert!(is_free(&scene).await);
    scene.passes_an_audit().await;
}

/// A leader lock that is lost after a number of checks.
struct ExpiringLeaderLock(Box<dyn LeaderLock>, AtomicUsize);

#[async_trait]
impl LeaderLock for ExpiringLeaderLock {
    fn stands(&self) -> bool {
        self.1.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok()
    }
    async fn leave(self: Box<Self>) {
        self.0.leave().await;
    }
}

struct LosesLeadershipAfter(usize);

#[async_trait]
impl StoreInterceptor for LosesLeadershipAfter {
    async fn take(&self, inner: &dyn Store, duty: LeaderTask) -> Result<Option<Box<dyn LeaderLock>>, StoreError> {
        let taken = inner.take(duty).await?;
        Ok(taken.map(|it| Box::new(ExpiringLeaderLock(it, AtomicUsize::new(self.0))) as Box<dyn LeaderLock>))
    }
}

async fn restore_stops_when_it_loses_the_leader_lock(scene: ApiScenario) {
    let g = &scene.gateway;
    let (thread, _) = grown(g, VERSIONS).await;
    works(g).await;
    let all = archives(&scene).await;
    for (asked, left) in [(0, all.len()), (1, all.len() - 1)] {
        let losing = watched(&scene, LosesLeadershipAfter(asked)).await;
        let refused = restored(&losing, &thread).await;
        assert!(matches!(refused, Err(Error::WrongState(_))), "{refused:?}");
        assert_eq!(archives(&scene).await.len(), left);
        assert!(all.iter().all(|it| path(g, it).exists()), "another may have written it again");
    }
    // The file belongs to the next gateway that archives.
    works(g).await;
    assert_eq!(archives(&scene).await.len(), all.len());
    assert!(all.iter().all(|it| path(g, it).exists()));
    scene.passes_an_audit().await;
}
