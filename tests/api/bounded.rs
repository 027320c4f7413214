//! Tests that all sessions and all links of one person can be ended at once.

use std::collections::BTreeSet;
use std::time::Duration;

use countersign_domain::identity::account::{Account, PersonRole, Session};

use countersign_service::error::Error;
use countersign_service::identity::accounts::NewAccount;
use countersign_service::identity::administration::LINKS_MAX;
use countersign_service::identity::revocation::{SESSIONS_MAX, SignInAccess};
use countersign_store::RowFilter;
use countersign_store::record::{ListBounds, RecordReader, Stored};
use countersign_store::sqlite::{SqliteOptions, SqliteStore};

use crate::gateway::{TestGateway, spawn_gateway};

const PASSWORD: &str = "correct horse battery";
const ANOTHER: &str = "staple battery horse";

async fn open_sessions(g: &TestGateway) -> Vec<Session> {
    g.service.identity.sessions_of(&g.alice.id).await.unwrap()
}

/// Signs Alice in this many times. Returns the browser sessions, the oldest first.
async fn signed_in(g: &TestGateway, times: usize) -> Vec<String> {
    let mut browsers = Vec::new();
    for _ in 0..times {
        // No two sessions begin at the same moment, so that one of them is the oldest.
        g.pass(Duration::from_millis(1));
        let link = g.service.identity.sign_in_link(&g.alice.id).await.unwrap();
        browsers.push(g.service.identity.use_sign_in_link(&link).await.unwrap().1);
    }
    browsers
}

#[tokio::test]
async fn session_above_the_limit_ends_the_oldest_session() {
    let g = spawn_gateway().await;
    let browsers = signed_in(&g, SESSIONS_MAX).await;
    assert_eq!(open_sessions(&g).await.len(), SESSIONS_MAX);
    assert!(g.service.identity.session_of(&browsers[0]).await.is_ok(), "nobody is signed out who need not be");
    let more = signed_in(&g, 2).await;
    assert_eq!(open_sessions(&g).await.len(), SESSIONS_MAX);
    for (browser, open) in browsers[..3].iter().zip([false, false, true]).chain([(&more[0], true), (&more[1], true)]) {
        assert_eq!(g.service.identity.session_of(browser).await.is_ok(), open);
    }
    g.service.identity.set_admission("alice", SignInAccess::Barred).await.unwrap();
    assert!(open_sessions(&g).await.is_empty());
    g.service.identity.set_admission("alice", SignInAccess::Open).await.unwrap();
    for browser in browsers.iter().chain(&more) {
        assert!(matches!(g.service.identity.session_of(browser).await, Err(Error::Unauthenticated)));
    }
    assert_eq!(crate::people::findings(&g).await, [""; 0]);
}

#[tokio::test]
async fn two_concurrent_sign_ins_at_the_session_limit_succeed() {
    let g = spawn_gateway().await;
    signed_in(&g, SESSIONS_MAX).await;
    let came = futures_util::future::join_all((0..4).map(|_| signed_in(&g, 1))).await;
    for browser in came.concat() {
        assert!(g.service.identity.session_of(&browser).await.is_ok());
    }
    signed_in(&g, 1).await;
    assert_eq!(
        open_sessions(&g).await.len(),
        SESSIONS_MAX,
        "who came at once leave no more behind than one who came alone"
    );
}

#[tokio::test]
async fn ended_session_stays_ended() {
    let g = spawn_gateway().await;
    let (me, _) = g.service.identity.sign_in("alice", PASSWORD.to_owned()).await.unwrap();
    let until = me.session.record.expires_at;
    g.service.identity.sign_out(&me).await.unwrap();
    let store = SqliteStore::open(g.folder.path().join("countersign.db"), SqliteOptions::default()).unwrap();
    let keys = g.service.core.keys().unwrap();
    let reader = RecordReader { store: &store, key: keys.row() };
    let session: Session = reader.get(me.session.record.id.as_str()).await.unwrap().unwrap().record;
    assert!(session.ended && session.expires_at < until);
}

#[tokio::test]
async fn open_links_of_an_administrator_are_limited() {
    let g = spawn_gateway().await;
    let gus = crate::people::admin(&g, "gus").await;
    let named = |name: String| NewAccount { name, role: PersonRole::Reviewer, groups: BTreeSet::new() };
    for at in 0..LINKS_MAX {
        g.service.identity.invite(&gus, &named(format!("person-{at}"))).await.unwrap();
    }
    for refused in [
        g.service.identity.invite(&gus, &named("ana".to_owned())).await,
        g.service.identity.reset_link(&gus, &g.alice.id).await,
    ] {
        let refused = refused.unwrap_err();
        assert!(matches!(refused, Error::WrongState(why) if why.contains("withdraw some")), "{refused:?}");
    }
    let hal = crate::people::admin(&g, "hal").await;
    g.service.identity.invite(&hal, &named("ana".to_owned())).await.unwrap();
    let open = g.service.identity.open_links().await.unwrap();
    let first = open.iter().find(|it| it.purpose.made_by().unwrap().name == "gus").unwrap();
    g.service.identity.withdraw_link(&gus, &first.id).await.unwrap();
    g.service.identity.reset_link(&gus, &g.alice.id).await.unwrap();
    let (me, _) = g.service.identity.sign_in("gus", PASSWORD.to_owned()).await.unwrap();
    g.service.identity.change_password(&me, PASSWORD.to_owned(), ANOTHER.to_owned()).await.unwrap();
    assert_eq!(g.service.identity.open_links().await.unwrap().len(), 1, "all of one's own, and nobody else's");
}

#[tokio::test]
async fn list_is_read_up_to_its_bounds_and_says_whether_it_is_complete() {
    let g = spawn_gateway().await;
    let store = SqliteStore::open(g.folder.path().join("countersign.db"), SqliteOptions::default()).unwrap();
    let keys = g.service.core.keys().unwrap();
    let reader = RecordReader { store: &store, key: keys.row() };
    let id = |it: Stored<Account>| Some(it.record.id);
    let all = reader.select(RowFilter::All, None, ListBounds::pages(1), id).await.unwrap();
    assert!(all.is_complete && all.items.len() >= 2, "{all:?}");
    for pages_max in 0..=all.items.len() {
        let bounds = ListBounds { page_rows: 1, pages_max };
        let some = reader.select(RowFilter::All, None, bounds, id).await.unwrap();
        // A full last page does not show that it is the last.
        assert!(!some.is_complete && some.items == all.items[..pages_max], "{some:?}");
    }
    let bounds = ListBounds { page_rows: 1, pages_max: all.items.len() + 1 };
    assert!(reader.select(RowFilter::All, None, bounds, id).await.unwrap().is_complete);
}
