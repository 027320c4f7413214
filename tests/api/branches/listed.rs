//! Tests the list of a thread's branches, and its pages.

use std::collections::BTreeSet;
use std::sync::Arc;

use countersign_adapters::clock::SystemClock;
use countersign_adapters::keyring::Keyring;
use countersign_service::Service;
use countersign_service::branches::list::{BranchStatus, BranchSummary};
use countersign_service::threads::list::ThreadListCursor;
use countersign_store::change::Draft;
use countersign_store::label::{Label, LabelChange};
use countersign_store::sqlite::SqliteStore;

use super::*;
use crate::gateway::{MovedClock, settings};
use crate::sqlite::unsynced;

on_both! {
    every_branch_is_listed_with_its_outcome(super::research("write")),
    foreign_label_lists_no_branch(super::research("write")),
}

fn names(letter: char, count: usize) -> Vec<String> {
    (0..count).map(|it| format!("{letter}{it}")).collect()
}

async fn forks(g: &TestGateway, thread: &Value, names: &[String]) {
    g.pass(Duration::from_secs(1));
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    fork(g, thread, &names).await.expect(201);
}

/// All pages of that length.
async fn listed(g: &TestGateway, thread: &Value, limit: u32) -> Vec<BranchSummary> {
    let (mut all, mut before) = (Vec::new(), None::<ThreadListCursor>);
    loop {
        let row = g.service.threads.overview(&serde_json::from_value(thread.clone()).unwrap()).await.unwrap().thread;
        let page = g.service.branches.list_branches(&row, before.as_ref(), limit).await.unwrap();
        assert!(page.branches.len() <= limit as usize);
        all.extend(page.branches);
        match page.earlier {
            Some(earlier) => before = ThreadListCursor::read(&earlier.token()),
            None => return all,
        }
    }
}

fn became(seen: &[BranchSummary], letter: char) -> BTreeSet<String> {
    seen.iter().filter(|it| it.name.as_str().starts_with(letter)).map(|it| format!("{:?}", it.became)).collect()
}

async fn every_branch_is_listed_with_its_outcome(scene: ApiScenario) {
    let g = &scene.gateway;
    let it = ForkedThread::new(g, &["joined", "left"]).await;
    it.change(g, 0, json!({"question": "a"})).await;
    it.join(g, &["joined"], "union").await.expect(201);
    // More events than a page reads.
    let mut head = now(g, &it.id).await["transition"].clone();
    for at in 0..220 {
        let by = (g.planner.as_str(), "planner");
        head = g.propose(&it.id, &head, by, json!({"question": at})).await.expect(201)["transition"].clone();
    }
    for letter in ['b', 'c', 'd'] {
        forks(g, &it.id, &names(letter, 8)).await;
    }
    let elsewhere = ForkedThread::new(g, &["elsewhere"]).await;
    let own = g.planner.clone();
    let tip = listed(g, &it.id, 100).await.into_iter().find(|it| it.name.as_str() == "d3").unwrap();
    let change = json!({"node": "planner", "parent": first(g, &tip).await, "patch": {"target_user_id": 42}});
    g.post(&format!("/v1/threads/{}/transitions", tip.thread), &own, change).await.expect(201);
    let body = json!({"node": "planner", "parent": head, "branches": ["d3"], "strategy": "union"});
    let held = g.post(&it.path("joins"), &own, body).await.expect(202);

    let seen = listed(g, &it.id, 100).await;
    assert_eq!(seen.len(), 26);
    let names_of: Vec<&str> = seen.iter().map(|it| it.name.as_str()).collect();
    assert_eq!((names_of[..3].to_vec(), names_of[24..].to_vec()), (vec!["d0", "d1", "d2"], vec!["joined", "left"]));
    let of = |name: &str| seen.iter().find(|it| it.name.as_str() == name).unwrap().became.clone();
    assert_eq!((of("joined"), of("left")), (BranchStatus::Joined { version: 1 }, BranchStatus::LeftBehind));
    let review = serde_json::from_value(held["review"]["id"].clone()).unwrap();
    assert_eq!((of("d3"), of("d2")), (BranchStatus::Asked(review), BranchStatus::Open));
    assert_eq!((became(&seen, 'b').len(), of("b0")), (1, BranchStatus::Open));
    for limit in [1, 5, 25] {
        let paged: BTreeSet<String> = listed(g, &it.id, limit).await.iter().map(|it| it.thread.to_string()).collect();
        assert_eq!(paged, seen.iter().map(|it| it.thread.to_string()).collect(), "{limit} at a time");
    }
    assert_eq!(listed(g, &elsewhere.id, 100).await.len(), 1, "of each thread its own");
    g.approved(&held).await;
    let after = listed(g, &it.id, 100).await;
    let joined = |it: &BranchSummary| matches!(it.became, BranchStatus::Joined { .. });
    assert_eq!(after.iter().filter(|it| joined(it)).count(), 2);
    assert_eq!(after.iter().filter(|it| it.became == BranchStatus::LeftBehind).count(), 24);
    scene.passes_an_audit().await;
    let (_, secret) = g.service.identity.sign_in("alice", "correct horse battery".to_owned()).await.unwrap();
    let read = async |path: String| {
        let page = g.http.get(format!("{}{path}", g.url)).header("cookie", format!("countersign={secret}")).send();
        let page = page.await.unwrap();
        (page.status().as_u16(), page.text().await.unwrap())
    };
    let page = format!("/threads/{}", it.id.as_str().unwrap());
    let (status, told) = read(page.clone()).await;
    assert_eq!((status, told.matches("/threads/branch-").count()), (200, 25));
    let onward = told.split("class=\"onward\"><a href=\"").find(|it| it.contains(">Earlier branches<")).unwrap();
    let (status, told) = read(onward.split('#').next().unwrap().replace("&#38;", "&")).await;
    assert_eq!((status, told.matches("/threads/branch-").count(), told.contains("Earlier branches")), (200, 1, false));
    assert_eq!(read(format!("{page}?branches=nonsense")).await.0, 404);
}

/// Version 0 of a branch.
async fn first(g: &TestGateway, branch: &BranchSummary) -> Value {
    now(g, &json!(branch.thread)).await["transition"].clone()
}

async fn foreign_label_lists_no_branch(scene: ApiScenario) {
    let g = &scene.gateway;
    let (it, other) = (ForkedThread::new(g, &["a"]).await, ForkedThread::new(g, &["b"]).await);
    let keys = g.service.core.keys().unwrap();
    let other = listed(g, &other.id, 10).await.remove(0);
    let word = format!("branch_of:{}", it.id.as_str().unwrap());
    let label =
        Label { kept_in: "threads".to_owned(), word, due: g.service.core.now().millis(), id: other.thread.to_string() };
    let own = scene.store().labels(None, 1_000).await.unwrap();
    let own = own.into_iter().find(|it| it.id == other.thread.as_str()).unwrap();
    let mut draft = Draft::new(keys.row(), g.service.core.now());
    draft.set(LabelChange::Put(label.clone()));
    scene.store().commit(draft.finish().change).await.unwrap();
    let seen = listed(g, &it.id, 10).await;
    assert_eq!(seen.iter().map(|it| it.name.as_str()).collect::<Vec<_>>(), ["a"]);
    assert_eq!(scene.findings().await.len(), 1, "and an audit names it");
    let mut draft = Draft::new(keys.row(), g.service.core.now());
    draft.set(LabelChange::Remove(label));
    draft.set(LabelChange::Remove(own));
    scene.store().commit(draft.finish().change).await.unwrap();
    let found = scene.findings().await;
    assert_eq!(found.len(), 1, "a branch that is not found is named: {found:?}");
}

#[tokio::test]
async fn branches_of_an_earlier_release_are_listed_after_a_start() {
    let scene = ApiScenario::on_sqlite(&research("write")).await;
    let g = &scene.gateway;
    let it = ForkedThread::new(g, &["a", "b"]).await;
    let path = g.folder.path().join("countersign.db");
    let database = rusqlite::Connection::open(&path).unwrap();
    assert_eq!(database.execute("DELETE FROM labels WHERE kept_in = 'threads'", []).unwrap(), 2);
    assert_eq!(database.execute("UPDATE labels SET due = 1 WHERE kept_in = 'labels'", []).unwrap(), 1);
    assert_eq!(listed(g, &it.id, 10).await, []);
    let options = unsynced(&g.clock);
    let store = Arc::new(SqliteStore::open(&path, options).unwrap());
    let keyring = Keyring::open_or_create(&g.folder.path().join("keyring.json"), None, &SystemClock).unwrap();
    drop(Service::open(store, keyring, Arc::new(MovedClock(g.clock.clone())), settings(&g.url)).await.unwrap());
    assert_eq!(listed(g, &it.id, 10).await.len(), 2);
    scene.passes_an_audit().await;
}
