//! Something happens between a decision and the transaction that makes it true: the store looks again.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use countersign::clock::SystemClock;
use countersign::domain::flow::Halt;
use countersign::domain::time::Timestamp;
use countersign::keyring::Keyring;
use countersign::service::Service;
use countersign::service::stops::Scope;
use countersign::service::verify::VerifyAsk;
use countersign::store::change::Change;
use countersign::store::label::{Label, Labelled};
use countersign::store::row::{Row, Table};
use countersign::store::sqlite::{SqliteOptions, SqliteStore};
use countersign::store::{Cursor, Direction, Filter, SequencerLock, Store, StoreError};

use super::{BoxFuture, Scene};
use crate::gateway::{MovedClock, POLICY, settings};

type Happening = Box<dyn FnOnce() -> BoxFuture<'static, ()> + Send>;

/// A store on which something happens before the next commit.
struct Interrupted {
    inner: SqliteStore,
    before: Mutex<Option<Happening>>,
}

#[async_trait]
impl Store for Interrupted {
    async fn commit(&self, change: Change) -> Result<(), StoreError> {
        let happening = self.before.lock().unwrap().take();
        if let Some(happening) = happening {
            happening().await;
        }
        self.inner.commit(change).await
    }
    async fn get(&self, table: Table, id: &str) -> Result<Option<Row>, StoreError> {
        self.inner.get(table, id).await
    }
    async fn get_by_alias(&self, table: Table, alias: &str) -> Result<Option<Row>, StoreError> {
        self.inner.get_by_alias(table, alias).await
    }
    async fn get_many(&self, table: Table, ids: &[String]) -> Result<Vec<Row>, StoreError> {
        self.inner.get_many(table, ids).await
    }
    async fn list(
        &self,
        table: Table,
        filter: Filter<'_>,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Vec<Row>, StoreError> {
        self.inner.list(table, filter, after, limit).await
    }
    async fn labelled(
        &self,
        table: Table,
        word: &str,
        direction: Direction,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Vec<Labelled>, StoreError> {
        self.inner.labelled(table, word, direction, after, limit).await
    }
    async fn labels(&self, after: Option<&Label>, limit: u32) -> Result<Vec<Label>, StoreError> {
        self.inner.labels(after, limit).await
    }
    async fn by_alias_prefix(&self, table: Table, prefix: &str, limit: u32) -> Result<Vec<Row>, StoreError> {
        self.inner.by_alias_prefix(table, prefix, limit).await
    }
    async fn last_of(&self, table: Table, owner: &str) -> Result<Option<Row>, StoreError> {
        self.inner.last_of(table, owner).await
    }
    async fn now(&self) -> Result<Timestamp, StoreError> {
        self.inner.now().await
    }
    async fn sequencer_lock(&self) -> Result<Option<Box<dyn SequencerLock>>, StoreError> {
        self.inner.sequencer_lock().await
    }
    async fn changed(&self, patience: Duration) {
        self.inner.changed(patience).await;
    }
}

/// Verifies on a second gateway, while this happens between its decision and its commit; whether it let through.
async fn lets_through(scene: &Scene, happening: Happening) -> bool {
    let folder = scene.g.folder.path();
    let options = SqliteOptions { clock_offset: scene.g.clock.clone(), ..SqliteOptions::default() };
    let inner = SqliteStore::open(folder.join("countersign.db"), options).unwrap();
    let store = Arc::new(Interrupted { inner, before: Mutex::new(None) });
    let keyring = Keyring::open_or_create(&folder.join("keyring.json"), None, &SystemClock).unwrap();
    let clock = Arc::new(MovedClock(scene.g.clock.clone()));
    let second = Service::open(store.clone(), keyring, clock, settings(&scene.g.url)).await.unwrap();
    let token = second.token_of(&scene.g.writer).await.unwrap();
    let case = &scene.case;
    let ask = VerifyAsk {
        thread: case.id().as_str().unwrap().try_into().unwrap(),
        transition: case.held["transition"].as_str().unwrap().try_into().unwrap(),
        receipt: Some(case.receipt().to_owned()),
        write_id: "w1".try_into().unwrap(),
        expect: Vec::new(),
    };
    *store.before.lock().unwrap() = Some(happening);
    let allowed = second.verify(&token, &ask).await.is_ok();
    assert!(store.before.lock().unwrap().is_none(), "it was decided without a commit");
    allowed
}

fn halts(scene: &Scene, scope: Scope) -> Happening {
    let service = Arc::clone(&scene.g.service);
    Box::new(move || {
        Box::pin(async move {
            let halt = Halt { proposing: false, verifying: true, reason: "now".to_owned() };
            service.set_halt(&"tests".try_into().unwrap(), &scope, &halt).await.unwrap();
        })
    })
}

#[tokio::test]
async fn nothing_between_lets_through() {
    let scene = Scene::new(POLICY).await;
    assert!(lets_through(&scene, Box::new(|| Box::pin(async {}))).await);
}

#[tokio::test]
async fn a_halt_of_the_flow_between_decision_and_commit_counts() {
    let scene = Scene::new(POLICY).await;
    let halt = halts(&scene, Scope::Flow("payments".try_into().unwrap()));
    assert!(!lets_through(&scene, halt).await);
}

#[tokio::test]
async fn a_halt_of_all_between_decision_and_commit_counts() {
    let scene = Scene::new(POLICY).await;
    let halt = halts(&scene, Scope::All);
    assert!(!lets_through(&scene, halt).await);
}

#[tokio::test]
async fn a_policy_activated_between_decision_and_commit_counts() {
    let scene = Scene::new(POLICY).await;
    let service = Arc::clone(&scene.g.service);
    let other = crate::gateway::source(&super::policy_with("24h", "12h"));
    let activates: Happening = Box::new(move || {
        Box::pin(async move {
            let by = "tests".try_into().unwrap();
            service.activate_policy(&by, None, other, Default::default()).await.unwrap();
        })
    });
    assert!(!lets_through(&scene, activates).await);
}

#[tokio::test]
async fn a_token_revoked_between_decision_and_commit_counts() {
    let scene = Scene::new(POLICY).await;
    let service = Arc::clone(&scene.g.service);
    let id = service.token_of(&scene.g.writer).await.unwrap().record.id;
    let revokes: Happening = Box::new(move || Box::pin(async move { service.revoke_token(&id).await.unwrap() }));
    assert!(!lets_through(&scene, revokes).await);
}

#[tokio::test]
async fn a_receipt_revoked_between_decision_and_commit_counts() {
    let scene = Scene::new(POLICY).await;
    let service = Arc::clone(&scene.g.service);
    let jti = scene.case.decision["nonce"].as_str().unwrap().try_into().unwrap();
    let revokes: Happening = Box::new(move || {
        Box::pin(async move {
            let by = countersign::service::receipts::Revoker::Admin("tests".try_into().unwrap());
            service.revoke_receipt(&by, &jti, "now").await.unwrap();
        })
    });
    assert!(!lets_through(&scene, revokes).await);
}

#[tokio::test]
async fn a_receipt_that_expires_between_decision_and_commit_is_expired() {
    let scene = Scene::new(POLICY).await;
    let expiry = super::forge::take_apart(scene.case.receipt()).claims["exp"].as_i64().unwrap() * 1000;
    // Half a second before; then one second passes, by which the clocks of gateway and store may well differ.
    let so_far = scene.g.service.now().millis();
    scene.g.clock.set_millis(expiry - 500 - so_far);
    let clock = scene.g.clock.clone();
    let passes: Happening = Box::new(move || Box::pin(async move { clock.set_millis(expiry + 500 - so_far) }));
    assert!(!lets_through(&scene, passes).await);
    assert_eq!(scene.write(&scene.case.ask("w2")).await.code(), "expired");
    assert_eq!(scene.rows_all(), 0);
}
