//! Tests archiving while agents change the thread and while another gateway becomes the leader.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use countersign_domain::identity::account::Token;
use countersign_domain::primitives::id::ThreadId;

use async_trait::async_trait;
use countersign_store::change::ChangeSet;
use countersign_store::{LeaderLock, LeaderTask, Store, StoreError};
use tokio::sync::Mutex;

use super::*;
use crate::over::StoreOperation;

on_both! {
    a_thread_that_is_written_to_all_the_time_is_archived(super::retaining("versions = 10\nerase_after_days = 5")),
    a_thread_that_is_written_to_all_the_time_is_erased(super::retaining("versions = 10\nerase_after_days = 5")),
    worker_that_loses_the_leader_lock_changes_nothing_more(super::retaining("versions = 10\nerase_after_days = 5")),
    version_requested_during_an_erasure_is_not_erased(super::retaining("versions = 10\nerase_after_days = 5")),
}

/// Returns the node and the proposal for the nth read.
type ConcurrentRequest = fn(usize) -> (&'static str, ProposalKind);

/// Proposes whenever this table is read, if the number of the read is in the range.
struct ConcurrentProposer {
    at: Table,
    when: Range<usize>,
    times: AtomicUsize,
    service: Service,
    token: Stored<Token>,
    asks: ConcurrentRequest,
    thread: ThreadId,
    head: Mutex<Digest>,
}

#[async_trait]
impl StoreInterceptor for ConcurrentProposer {
    async fn asked(&self, what: StoreOperation<'_>) {
        if what != StoreOperation::Rows(self.at) {
            return;
        }
        let time = self.times.fetch_add(1, Ordering::SeqCst);
        if !self.when.contains(&time) {
            return;
        }
        let mut head = self.head.lock().await;
        let (node, ask) = (self.asks)(time);
        let proposal = Proposal {
            thread: self.thread.clone(),
            parent: *head,
            node: node.try_into().unwrap(),
            ask,
            attempt: 1,
            rationale: None,
            tool: None,
            usage: Usage::default(),
            step: None,
        };
        match self.service.proposals.propose(&self.token, &proposal).await.unwrap() {
            ProposalOutcome::Committed { transition, .. } => *head = transition,
            ProposalOutcome::Held { .. } => {}
            ProposalOutcome::Rejected(refusal) => panic!("{refusal:?}"),
        }
    }
}

fn writes(time: usize) -> (&'static str, ProposalKind) {
    (
        "input_parser",
        ProposalKind::Patch { format: PatchFormat::Merge, patch: json!({"raw_text": format!("meanwhile, {time}")}) },
    )
}

fn wants_it_back(_: usize) -> (&'static str, ProposalKind) {
    ("planner", ProposalKind::Rollback { to_version: 1 })
}

/// Starts a gateway on the same database that proposes at these reads.
async fn beside(
    scene: &ApiScenario,
    (thread, heads): (&Value, &[Value]),
    (at, when): (Table, Range<usize>),
    (asker, asks): (&str, ConcurrentRequest),
) -> Service {
    let busy = ConcurrentProposer {
        at,
        when,
        times: AtomicUsize::new(0),
        service: scene.another().await.archiving_in(archives_in(scene.gateway.folder.path())),
        token: scene.gateway.service.identity.token_of(asker).await.unwrap(),
        asks,
        thread: thread.as_str().unwrap().try_into().unwrap(),
        head: Mutex::new(heads.last().unwrap().as_str().unwrap().parse().unwrap()),
    };
    watched(scene, busy).await
}

async fn a_thread_that_is_written_to_all_the_time_is_archived(scene: ApiScenario) {
    let g = &scene.gateway;
    let (thread, heads) = grown(g, VERSIONS).await;
    let service = beside(&scene, (&thread, &heads), (Table::States, 0..50), (&g.parser, writes)).await;
    assert!(Archiver::default().run_once(&service).await.unwrap() > 0);
    let overview = g.service.threads.overview(&thread.as_str().unwrap().try_into().unwrap()).await.unwrap();
    assert!(overview.thread.head.version > VERSIONS, "it went on meanwhile");
    scene.passes_an_audit().await;
}

async fn a_thread_that_is_written_to_all_the_time_is_erased(scene: ApiScenario) {
    let g = &scene.gateway;
    let (thread, heads) = grown(g, VERSIONS).await;
    works(g).await;
    let all = archives(&scene).await.len();
    g.pass(DAY * 6);
    let service = beside(&scene, (&thread, &heads), (Table::Archives, 0..50), (&g.parser, writes)).await;
    assert!(Archiver::default().run_once(&service).await.unwrap() >= all);
    let kept = archives(&scene).await;
    assert!(kept[..all].iter().all(|it| matches!(it.kept, ArchiveContentState::Erased { .. })), "{kept:?}");
    scene.passes_an_audit().await;
}

async fn version_requested_during_an_erasure_is_not_erased(scene: ApiScenario) {
    let g = &scene.gateway;
    let (thread, heads) = grown(g, VERSIONS).await;
    works(g).await;
    g.pass(DAY * 6);
    // The worker first reads the archive that is being erased, then the next one. No proposal needs it before that.
    let times = (Table::Archives, 1..2);
    let service = beside(&scene, (&thread, &heads), times, (&g.planner, wants_it_back)).await;
    assert_eq!(Archiver::default().run_once(&service).await.unwrap(), 0);
    let overview = g.service.threads.overview(&thread.as_str().unwrap().try_into().unwrap()).await.unwrap();
    assert!(overview.thread.hold.is_some(), "people are asked");
    assert!(archives(&scene).await.iter().all(|it| it.kept.has_values()));
    scene.passes_an_audit().await;
}

/// Keeps the leader lock for a number of checks, and counts the changes after it is lost.
struct LeadershipLossWatcher {
    asked: Arc<AtomicUsize>,
    stands: usize,
    changes: Arc<AtomicUsize>,
    too_late: Arc<AtomicUsize>,
}

struct ShortLeaderLock {
    inner: Box<dyn LeaderLock>,
    asked: Arc<AtomicUsize>,
    stands: usize,
}

#[async_trait]
impl LeaderLock for ShortLeaderLock {
    fn stands(&self) -> bool {
        self.asked.fetch_add(1, Ordering::SeqCst) < self.stands
    }
    async fn leave(self: Box<Self>) {
        self.inner.leave().await;
    }
}

#[async_trait]
impl StoreInterceptor for LeadershipLossWatcher {
    async fn take(&self, inner: &dyn Store, duty: LeaderTask) -> Result<Option<Box<dyn LeaderLock>>, StoreError> {
        let (asked, stands) = (Arc::clone(&self.asked), self.stands);
        let taken = inner.take(duty).await?;
        Ok(taken.map(|inner| Box::new(ShortLeaderLock { inner, asked, stands }) as Box<dyn LeaderLock>))
    }

    async fn commit(&self, inner: &dyn Store, change: ChangeSet) -> Result<(), StoreError> {
        self.changes.fetch_add(1, Ordering::SeqCst);
        if self.asked.load(Ordering::SeqCst) > self.stands {
            self.too_late.fetch_add(1, Ordering::SeqCst);
        }
        inner.commit(change).await
    }
}

/// Returns the number of changes of a run that loses the leader lock after this many checks.
async fn changes(scene: &ApiScenario, stands: usize) -> usize {
    let (changes, too_late) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let asked = Arc::new(AtomicUsize::new(0));
    let losing =
        LeadershipLossWatcher { asked, stands, changes: Arc::clone(&changes), too_late: Arc::clone(&too_late) };
    let service = watched(scene, losing).await;
    changes.store(0, Ordering::SeqCst);
    let lost = Archiver::default().run_once(&service).await;
    assert!(matches!(lost, Err(Error::WrongState(_))), "{lost:?}");
    assert_eq!(too_late.load(Ordering::SeqCst), 0);
    changes.load(Ordering::SeqCst)
}

async fn worker_that_loses_the_leader_lock_changes_nothing_more(scene: ApiScenario) {
    let g = &scene.gateway;
    grown(g, VERSIONS).await;
    grown(g, VERSIONS).await;
    g.pass(DAY * 6);
    assert_eq!(changes(&scene, 0).await, 0, "not a thread is begun");
    assert_eq!(changes(&scene, 1).await, 0, "what takes its time and was lost meanwhile is not done");
    assert!(archives(&scene).await.is_empty());
    assert_eq!(changes(&scene, 2).await, 1);
    assert_eq!(archives(&scene).await.len(), 1);
    for stands in 3..6 {
        assert!(changes(&scene, stands).await < stands);
    }
    works(g).await;
    let all = archives(&scene).await;
    assert!(all.iter().all(|it| matches!(it.kept, ArchiveContentState::Erased { .. })), "{all:?}");
    scene.passes_an_audit().await;
}
