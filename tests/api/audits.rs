//! Tests audits beside a busy gateway. Its concurrent changes are no findings, and real errors are.

use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use countersign_domain::chain::hash::Digest;
use countersign_domain::identity::account::Token;
use countersign_domain::json::patch::PatchFormat;
use countersign_domain::primitives::id::ThreadId;
use countersign_domain::threads::thread::Thread;
use countersign_domain::threads::usage::Usage;

use async_trait::async_trait;
use countersign::worker::archive::Archiver;
use countersign_service::Service;
use countersign_service::proposals::outcome::ProposalOutcome;
use countersign_service::proposals::request::{Proposal, ProposalKind};
use countersign_store::ScanPage;
use countersign_store::record::Stored;
use countersign_store::row::Table;
use serde_json::{Value, json};

use crate::gateway::{POLICY, archives_in};
use crate::over::{StoreInterceptor, StoreOperation};
use crate::retention::grown;
use crate::rules::ApiScenario;

on_both! {
    a_chain_that_grows_while_an_audit_reads_is_no_finding(super::POLICY),
    audit_finds_errors_while_another_thread_grows(super::POLICY),
    a_lease_that_ends_while_an_audit_reads_is_no_finding(super::POLICY),
    restore_during_an_audit_is_no_finding(format!("{}\n[retain]\nversions = 10\n", super::POLICY)),
}

/// Runs an action while a scan of the audit waits.
fn meanwhile<T: Send>(work: impl Future<Output = T> + Send) -> T {
    let run = || tokio::runtime::Runtime::new().unwrap().block_on(work);
    std::thread::scope(|scope| scope.spawn(run).join().unwrap())
}

/// A thread grows whenever threads were read and all that belongs to them was not.
struct GrowingThreadStore {
    service: Service,
    token: Stored<Token>,
    thread: ThreadId,
    head: Mutex<Digest>,
    walks: AtomicUsize,
}

impl GrowingThreadStore {
    async fn of(scene: &ApiScenario, thread: &Value) -> Self {
        let service = scene.another().await;
        let token = service.identity.token_of(&scene.gateway.parser).await.unwrap();
        let head = Mutex::new(thread["transition"].as_str().unwrap().parse().unwrap());
        Self { service, token, thread: id(thread), head, walks: AtomicUsize::new(0) }
    }

    async fn grows(&self, parent: Digest) -> Digest {
        let proposal = Proposal {
            thread: self.thread.clone(),
            parent,
            node: "input_parser".try_into().unwrap(),
            ask: ProposalKind::Patch {
                format: PatchFormat::Merge,
                patch: json!({"raw_text": format!("after {parent}")}),
            },
            attempt: 1,
            rationale: None,
            tool: None,
            usage: Usage::default(),
            step: None,
        };
        let answer = self.service.proposals.propose(&self.token, &proposal).await;
        let Ok(ProposalOutcome::Committed { transition, .. }) = answer else { panic!() };
        while self.service.log.sequence().await.unwrap() > 0 {}
        transition
    }
}

#[async_trait]
impl StoreInterceptor for GrowingThreadStore {
    async fn asked(&self, what: StoreOperation<'_>) {
        if what == StoreOperation::Walk {
            self.walks.fetch_add(1, Ordering::SeqCst);
        }
    }

    fn met(&self, page: &ScanPage) {
        if matches!(page, ScanPage::Rows(rows) if rows[0].table == Table::Threads) {
            let mut head = self.head.lock().unwrap();
            *head = meanwhile(self.grows(*head));
        }
    }
}

fn id(thread: &Value) -> ThreadId {
    thread["thread"].as_str().unwrap().try_into().unwrap()
}

async fn a_chain_that_grows_while_an_audit_reads_is_no_finding(scene: ApiScenario) {
    let thread = scene.gateway.thread().await;
    let store = scene.watched(GrowingThreadStore::of(&scene, &thread).await);
    assert_eq!(scene.found_in(&*store, scene.gateway.service.core.now()).await, [""; 0]);
    let head = scene.gateway.service.threads.overview(&id(&thread)).await.unwrap().thread.head;
    assert_eq!((head.version, head.transition), (1, *store.watching.head.lock().unwrap()), "it has grown");
    scene.passes_an_audit().await;
}

async fn audit_finds_errors_while_another_thread_grows(scene: ApiScenario) {
    let g = &scene.gateway;
    let (grows, wrong) = (g.thread().await, g.thread().await);
    let of = id(&wrong);
    scene.retells::<Thread>(of.as_str(), |it| Thread { written_version: 1, ..it }).await;
    let store = scene.watched(GrowingThreadStore::of(&scene, &grows).await);
    let found = scene.found_in(&*store, g.service.core.now()).await;
    assert_eq!(found, [format!("threads {of}: the last written version of the thread differs from its chain")]);
    assert_eq!(store.watching.walks.load(Ordering::SeqCst), 1, "and needs no second look");
}

async fn a_lease_that_ends_while_an_audit_reads_is_no_finding(scene: ApiScenario) {
    let g = &scene.gateway;
    let thread = g.thread().await;
    let held = g.held(&thread).await;
    let decision = g.approved(&held).await;
    g.verify(&thread["thread"], &held["transition"], &decision["receipt"], "w1").await.expect(200);
    let begun = g.service.core.now();
    g.pass(Duration::from_secs(3600));
    g.service.threads.log_expired_lease(&id(&thread)).await.unwrap();
    assert_eq!(g.service.threads.overview(&id(&thread)).await.unwrap().thread.unresolved.len(), 1);
    assert_eq!(scene.found_in(scene.store(), begun).await, [""; 0]);
}

/// Restores a thread's archives after the audit has read everything except the files.
struct RestoringStore {
    service: Service,
    thread: ThreadId,
    done: AtomicBool,
    walks: Arc<AtomicUsize>,
}

#[async_trait]
impl StoreInterceptor for RestoringStore {
    async fn asked(&self, what: StoreOperation<'_>) {
        if what == StoreOperation::Walk {
            self.walks.fetch_add(1, Ordering::SeqCst);
        }
    }

    fn met(&self, page: &ScanPage) {
        if matches!(page, ScanPage::Labels(_)) && !self.done.swap(true, Ordering::SeqCst) {
            let by = "tests".try_into().unwrap();
            let restored = meanwhile(self.service.archive.restore_archives(&by, &self.thread));
            assert!(restored.unwrap() > 0);
        }
    }
}

async fn restore_during_an_audit_is_no_finding(scene: ApiScenario) {
    let g = &scene.gateway;
    let (thread, _) = grown(g, 60).await;
    assert!(Archiver::default().run_once(&g.service).await.unwrap() > 0);
    let service = scene.another().await.archiving_in(archives_in(g.folder.path()));
    let (walks, thread) = (Arc::new(AtomicUsize::new(0)), thread.as_str().unwrap().try_into().unwrap());
    let putting = RestoringStore { service, thread, done: AtomicBool::new(false), walks: walks.clone() };
    let store = scene.watched(putting);
    assert_eq!(scene.found_in(&*store, g.service.core.now()).await, [""; 0]);
    assert_eq!(walks.load(Ordering::SeqCst), 2, "it looked again, since a file had gone");
    scene.passes_an_audit().await;
}
