//! A second gateway on the same database, and an action that runs between its decision and its commit.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use countersign_adapters::clock::SystemClock;
use countersign_adapters::keyring::Keyring;
use countersign_service::Service;
use countersign_store::change::ChangeSet;
use countersign_store::sqlite::SqliteStore;
use countersign_store::{Store, StoreError};
use futures_util::future::BoxFuture;

use crate::gateway::{MovedClock, TestGateway, settings};
use crate::over::{InterceptedStore, StoreInterceptor};
use crate::sqlite::unsynced;

pub type InterleavedAction = Box<dyn FnOnce() -> BoxFuture<'static, ()> + Send>;

/// Runs an action before the next commit.
#[derive(Default)]
pub struct InterleavedStore(Mutex<Option<InterleavedAction>>);

impl InterleavedStore {
    pub fn by(&self, happening: InterleavedAction) {
        *self.0.lock().unwrap() = Some(happening);
    }

    pub fn is_over(&self) -> bool {
        self.0.lock().unwrap().is_none()
    }
}

#[async_trait]
impl StoreInterceptor for InterleavedStore {
    async fn commit(&self, inner: &dyn Store, change: ChangeSet) -> Result<(), StoreError> {
        let happening = self.0.lock().unwrap().take();
        if let Some(happening) = happening {
            happening().await;
        }
        inner.commit(change).await
    }
}

/// Returns a second gateway whose store can run an action before a commit.
pub async fn second_gateway(g: &TestGateway) -> (Arc<InterceptedStore<InterleavedStore>>, Service) {
    let folder = g.folder.path();
    let options = unsynced(&g.clock);
    let inner = SqliteStore::open(folder.join("countersign.db"), options).unwrap();
    let store = InterceptedStore::new(Arc::new(inner), InterleavedStore::default());
    let keyring = Keyring::open_or_create(&folder.join("keyring.json"), None, &SystemClock).unwrap();
    let clock = Arc::new(MovedClock(g.clock.clone()));
    let second = Service::open(store.clone(), keyring, clock, settings(&g.url)).await.unwrap();
    (store, second)
}
