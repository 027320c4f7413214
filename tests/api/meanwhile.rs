//! A second gateway on the same database, while something happens between what it decides and what it commits.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use countersign::clock::SystemClock;
use countersign::keyring::Keyring;
use countersign::service::Service;
use countersign::store::change::Change;
use countersign::store::sqlite::{SqliteOptions, SqliteStore};
use countersign::store::{Store, StoreError};
use futures_util::future::BoxFuture;

use crate::gateway::{Gateway, MovedClock, settings};
use crate::over::{Over, Watching};

/// What happens in between.
pub type Happening = Box<dyn FnOnce() -> BoxFuture<'static, ()> + Send>;

/// What happens before the next commit.
#[derive(Default)]
pub struct Interrupted(Mutex<Option<Happening>>);

impl Interrupted {
    pub fn by(&self, happening: Happening) {
        *self.0.lock().unwrap() = Some(happening);
    }

    pub fn is_over(&self) -> bool {
        self.0.lock().unwrap().is_none()
    }
}

#[async_trait]
impl Watching for Interrupted {
    async fn commit(&self, inner: &dyn Store, change: Change) -> Result<(), StoreError> {
        let happening = self.0.lock().unwrap().take();
        if let Some(happening) = happening {
            happening().await;
        }
        inner.commit(change).await
    }
}

/// A second gateway, on a store on which something can happen.
pub async fn second_gateway(g: &Gateway) -> (Arc<Over<Interrupted>>, Service) {
    let folder = g.folder.path();
    let options = SqliteOptions { clock_offset: g.clock.clone(), ..SqliteOptions::default() };
    let inner = SqliteStore::open(folder.join("countersign.db"), options).unwrap();
    let store = Over::new(Arc::new(inner), Interrupted::default());
    let keyring = Keyring::open_or_create(&folder.join("keyring.json"), None, &SystemClock).unwrap();
    let clock = Arc::new(MovedClock(g.clock.clone()));
    let second = Service::open(store.clone(), keyring, clock, settings(&g.url)).await.unwrap();
    (store, second)
}
