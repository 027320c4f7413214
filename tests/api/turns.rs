//! Tests the concurrency limits of slow requests: one for each caller and two for all callers together, whatever else
//! is requested.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use countersign_domain::identity::party::Party;
use countersign_domain::primitives::id::{NodeId, PrincipalId, ThreadId};

use async_trait::async_trait;
use countersign::worker::archive::Archiver;
use countersign_adapters::keyring::Keyring;
use countersign_service::Service;
use countersign_service::episodes::envelopes::EnvelopeProof;
use countersign_service::episodes::import::ImportOutcome;
use countersign_store::row::Table;
use countersign_store::sqlite::SqliteStore;
use serde_json::Value;
use tokio::sync::Semaphore;

use crate::gateway::{MovedClock, POLICY, TestGateway, archives_in, settings};
use crate::over::{InterceptedStore, StoreInterceptor, StoreOperation};
use crate::retention::grown;
use crate::rules::ApiScenario;
use crate::sqlite::unsynced;

/// Blocks every reader of a table.
struct BlockingStore {
    at: Table,
    arrived: AtomicUsize,
    go_on: Semaphore,
}

#[async_trait]
impl StoreInterceptor for BlockingStore {
    async fn asked(&self, what: StoreOperation<'_>) {
        if what == StoreOperation::Rows(self.at) {
            self.arrived.fetch_add(1, Ordering::SeqCst);
            self.go_on.acquire().await.unwrap().forget();
        }
    }
}

impl BlockingStore {
    fn arrived(&self) -> usize {
        self.arrived.load(Ordering::SeqCst)
    }
}

/// Starts a second gateway whose reads of this table block.
async fn keeping(g: &TestGateway, at: Table) -> (Arc<InterceptedStore<BlockingStore>>, Arc<Service>) {
    let folder = g.folder.path();
    let options = unsynced(&g.clock);
    let inner = SqliteStore::open(folder.join("countersign.db"), options).unwrap();
    let kept = BlockingStore { at, arrived: AtomicUsize::new(0), go_on: Semaphore::new(0) };
    let store = InterceptedStore::new(Arc::new(inner), kept);
    let keyring = Keyring::open(&folder.join("keyring.json"), None).unwrap();
    let clock = Arc::new(MovedClock(g.clock.clone()));
    let service = Service::open(store.clone(), keyring, clock, settings(&g.url)).await.unwrap();
    (store, Arc::new(service.archiving_in(archives_in(folder))))
}

/// Sends all requests at once. Checks that two arrive at the table and no third, and that all are answered in the end.
async fn two_at_once<T: Send + 'static>(
    store: &InterceptedStore<BlockingStore>,
    asked: Vec<impl Future<Output = T> + Send + 'static>,
) -> Vec<T> {
    so_many_at_once(2, store, asked).await
}

async fn so_many_at_once<T: Send + 'static>(
    many: usize,
    store: &InterceptedStore<BlockingStore>,
    asked: Vec<impl Future<Output = T> + Send + 'static>,
) -> Vec<T> {
    let asked: Vec<_> = asked.into_iter().map(tokio::spawn).collect();
    while store.watching.arrived() < many {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    // Long enough for the other requests to arrive, if no limit stopped them.
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(store.watching.arrived(), many, "one of each asker, and two of all");
    store.watching.go_on.add_permits(1_000);
    let mut answers = Vec::new();
    for it in asked {
        answers.push(it.await.unwrap());
    }
    answers
}

fn named(thread: &Value) -> ThreadId {
    thread.as_str().unwrap().try_into().unwrap()
}

#[tokio::test]
async fn envelopes_are_signed_one_at_a_time_for_each_caller() {
    let scene = ApiScenario::on_sqlite(POLICY).await;
    let thread = named(&scene.gateway.thread().await["thread"]);
    let (store, service) = keeping(&scene.gateway, Table::Threads).await;
    let asked = ["a", "a", "a", "b", "c"].map(|by| {
        let (service, thread) = (Arc::clone(&service), thread.clone());
        async move {
            let (by, node): (PrincipalId, NodeId) = (by.try_into().unwrap(), "planner".try_into().unwrap());
            service.episodes.envelope(&by, &thread, &node, EnvelopeProof::Signature).await.is_ok()
        }
    });
    assert_eq!(two_at_once(&store, asked.into()).await, [true; 5]);
}

#[tokio::test]
async fn runs_are_read_one_at_a_time_for_each_caller() {
    let scene = ApiScenario::on_sqlite(POLICY).await;
    let thread = named(&crate::episodes::begun(&scene.gateway).await["thread"]);
    for (askers, at_once) in [(["a", "a", "a"], 1), (["a", "b", "c"], 2)] {
        let (store, service) = keeping(&scene.gateway, Table::Events).await;
        let asked = askers.map(|by| {
            let (service, thread) = (Arc::clone(&service), thread.clone());
            async move { service.episodes.files_of_run(by, &Party::Receiver, &thread).await.is_ok() }
        });
        assert_eq!(so_many_at_once(at_once, &store, asked.into()).await, [true; 3]);
    }
}

#[tokio::test]
async fn archives_are_unpacked_one_at_a_time_for_each_thread() {
    let scene = ApiScenario::on_sqlite(&format!("{POLICY}\n[retain]\nversions = 10\n")).await;
    let g = &scene.gateway;
    let mut threads = Vec::new();
    for _ in 0..3 {
        threads.push(named(&grown(g, 60).await.0));
    }
    assert!(Archiver::default().run_once(&g.service).await.unwrap() >= 3);
    // These are the reads that locate archived versions, after their file was opened.
    let (store, service) = keeping(g, Table::Whereabouts).await;
    let asked = [0, 0, 0, 1, 2].map(|it: usize| {
        let (service, thread) = (Arc::clone(&service), threads[it].clone());
        async move { service.reviews.chain(&thread, 0, 5).await.map(|it| it.len()).unwrap() }
    });
    assert_eq!(two_at_once(&store, asked.into()).await, [5; 5]);
}

#[tokio::test]
async fn imported_runs_are_loaded_one_at_a_time() {
    let scene = ApiScenario::on_sqlite(POLICY).await;
    let (by, run) = ("tests".try_into().unwrap(), crate::imports::golden());
    let ImportOutcome::Kept(kept, _) = scene.gateway.service.episodes.import_episode(&by, &run, None).await.unwrap()
    else {
        panic!()
    };
    let (store, service) = keeping(&scene.gateway, Table::ImportPieces).await;
    let asked = [(); 3].map(|()| {
        let (service, thread) = (Arc::clone(&service), kept.id.clone());
        async move { service.episodes.imported_run(&thread).await.is_ok() }
    });
    assert_eq!(so_many_at_once(1, &store, asked.into()).await, [true; 3]);
}
