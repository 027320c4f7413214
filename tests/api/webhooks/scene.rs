//! A gateway with a flow on either database, and its endpoints.

use std::sync::Arc;

use countersign::worker::{deliver, sequence};
use countersign_adapters::clock::ClockOffset;
use countersign_adapters::keyring::Keyring;
use countersign_service::Service;
use countersign_service::audit::audit;
use countersign_store::postgres::PostgresStore;
use countersign_store::row::Table;
use countersign_store::sqlite::SqliteStore;
use countersign_store::{RowFilter, Store};
use serde_json::{Value, json};

use super::receiver::WebhookReceiver;
use crate::gateway::{MovedClock, POLICY, TestGateway, outgoing, settings, spawn_on};
use crate::sqlite::unsynced;

/// Each on both databases.
macro_rules! on_both {
    ($($name:ident,)*) => {
        mod sqlite {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                super::$name(crate::webhooks::scene::WebhookScenario::on_sqlite().await).await;
            })*
        }
        mod postgres {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                super::$name(crate::webhooks::scene::WebhookScenario::on_postgres().await).await;
            })*
        }
    };
}

pub struct WebhookScenario {
    pub g: TestGateway,
    pub store: Arc<dyn Store>,
}

impl WebhookScenario {
    pub async fn on_sqlite() -> Self {
        let (folder, clock) = (tempfile::tempdir().unwrap(), ClockOffset::default());
        let options = unsynced(&clock);
        let store = SqliteStore::open(folder.path().join("countersign.db"), options).unwrap();
        Self::on(folder, clock, Arc::new(store)).await
    }

    pub async fn on_postgres() -> Self {
        let clock = ClockOffset::default();
        let options = crate::up_to_date::patient(&clock);
        let store = PostgresStore::open(&crate::up_to_date::database().await, options).await.unwrap();
        Self::on(tempfile::tempdir().unwrap(), clock, Arc::new(store)).await
    }

    async fn on(folder: tempfile::TempDir, clock: ClockOffset, store: Arc<dyn Store>) -> Self {
        let g = spawn_on(folder, clock, Arc::clone(&store), POLICY).await;
        sequence::run_once(&g.service).await.unwrap();
        Self { g, store }
    }

    /// Another gateway on the same database.
    pub async fn another(&self) -> Arc<Service> {
        let keyring = Keyring::open(&self.g.folder.path().join("keyring.json"), None).unwrap();
        let clock = Arc::new(MovedClock(self.g.clock.clone()));
        let service = Service::open(Arc::clone(&self.store), keyring, clock, settings(&self.g.url)).await.unwrap();
        Arc::new(service.with_http_client(outgoing()))
    }

    /// Adds an endpoint for these events. Returns it with its secret.
    pub async fn endpoint(&self, receiver: &WebhookReceiver, events: &[&str]) -> Value {
        self.endpoint_with(receiver, json!({"events": events})).await
    }

    pub async fn endpoint_with(&self, receiver: &WebhookReceiver, mut more: Value) -> Value {
        more["name"] = json!("ops");
        more["url"] = json!(receiver.url);
        self.g.post("/v1/endpoints", &self.g.admin, more).await.expect(201)
    }

    pub async fn now(&self, endpoint: &Value) -> Value {
        self.g.get(&path(endpoint, ""), &self.g.auditor).await.expect(200)
    }

    pub async fn deliveries(&self, endpoint: &Value) -> Vec<Value> {
        let page = self.g.get(&path(endpoint, "/deliveries"), &self.g.auditor).await.expect(200);
        page["deliveries"].as_array().unwrap().clone()
    }

    /// Sequences events and sends the due deliveries. A server frees the lock of a closed connection with a delay, so
    /// the previous holder may still have it.
    pub async fn send(&self) -> usize {
        while !self.store.list(Table::Outbox, RowFilter::All, None, 1).await.unwrap().is_empty() {
            sequence::run_once(&self.g.service).await.unwrap();
        }
        loop {
            let sender = deliver::DeliveryWorker::new(&self.g.service);
            sender.round().await.unwrap();
            let sent = sender.rest().await.unwrap();
            if sender.stands().await {
                return sent;
            }
        }
    }

    /// Checks that no row of the database was altered.
    pub async fn is_sound(&self) {
        sequence::run_once(&self.g.service).await.unwrap();
        let report =
            audit(&*self.store, &self.g.service.core.keys().unwrap(), self.g.service.core.now()).await.unwrap();
        assert!(report.findings.is_empty(), "{:?}", report.findings);
    }
}

pub fn path(endpoint: &Value, rest: &str) -> String {
    format!("/v1/endpoints/{}{rest}", endpoint["id"].as_str().unwrap())
}
