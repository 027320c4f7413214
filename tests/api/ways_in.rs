//! Tests sessions and one-time links: how long they are valid, and for whom.

use std::sync::Arc;
use std::time::Duration;

use countersign_domain::identity::account::{MachineRole, PersonRole};
use countersign_domain::log::event::EventType;

use countersign_adapters::clock::SystemClock;
use countersign_adapters::keyring::Keyring;
use countersign_service::Service;
use countersign_service::audit::audit;
use countersign_service::error::Error;
use countersign_service::identity::accounts::{LINK_TTL, NewAccount};
use countersign_service::identity::revocation::SignInAccess;
use countersign_store::sqlite::{CommitPoint, CommitProbe, SqliteOptions, SqliteStore};
use rusqlite::Connection;

use countersign_web::client_ip::TrustedProxies;
use countersign_web::server::serve;
use countersign_web::state::{AppState, EdgeConfig};

use crate::gateway::{ApiResponse, edge, settings, spawn_gateway, token};

const PASSWORD: &str = "correct horse battery";

#[tokio::test]
async fn session_ends_at_its_time() {
    let g = spawn_gateway().await;
    let (signed_in, secret) = g.service.identity.sign_in("alice", PASSWORD.to_owned()).await.unwrap();
    let session = signed_in.session.record;
    let lifetime = session.created_at.until(session.expires_at);
    g.pass(lifetime.saturating_sub(Duration::from_secs(60)));
    assert_eq!(g.service.identity.session_of(&secret).await.unwrap().session.record, session);
    g.pass(Duration::from_secs(60));
    assert!(matches!(g.service.identity.session_of(&secret).await, Err(Error::Unauthenticated)));
}

#[tokio::test]
async fn sign_in_link_is_valid_once_and_for_an_hour() {
    let g = spawn_gateway().await;
    let used = g.service.identity.sign_in_link(&g.alice.id).await.unwrap();
    g.service.identity.use_sign_in_link(&used).await.unwrap();
    let again = g.service.identity.use_sign_in_link(&used).await;
    assert!(matches!(again, Err(Error::NotFound("link"))), "{again:?}");
    let late = g.service.identity.sign_in_link(&g.alice.id).await.unwrap();
    g.service.identity.link_of(&late).await.unwrap();
    g.pass(LINK_TTL);
    assert!(matches!(g.service.identity.link_of(&late).await, Err(Error::NotFound("link"))));
    let too_late = g.service.identity.use_sign_in_link(&late).await;
    assert!(matches!(too_late, Err(Error::NotFound("link"))), "{too_late:?}");
}

#[tokio::test]
async fn page_of_a_link_names_its_person() {
    let g = spawn_gateway().await;
    let link = g.service.identity.sign_in_link(&g.alice.id).await.unwrap();
    let page = g.http.get(format!("{}/sign-in/{link}", g.url)).send().await.unwrap().text().await.unwrap();
    assert!(page.contains("Sign in as alice") && page.contains("This link is for alice."), "{page}");
}

/// An unknown token and a wrong secret get the same answer.
#[tokio::test]
async fn refused_token_has_its_cause() {
    let g = spawn_gateway().await;
    let ended = token(&g.service, "ended", MachineRole::Host, &[]).await;
    let (id, _) = ended.strip_prefix("cs_").unwrap().split_once('_').unwrap();
    g.service.identity.revoke_token(&id.try_into().unwrap()).await.unwrap();
    let (unknown, wrong) = (format!("Bearer cs_{}_x", "0".repeat(id.len())), format!("{}x", g.host));
    for (header, cause) in [
        (None, "has no token. Send the header"),
        (Some("Basic Og==".to_owned()), "The header `Authorization` has no token"),
        (Some(format!("Bearer {}", &g.host[3..])), "The header `Authorization` has no token"),
        (Some(unknown), "The token is unknown"),
        (Some(format!("Bearer {wrong}")), "The token is unknown"),
        (Some(format!("Bearer cs_{id}_x")), "The token is unknown"),
        (Some(format!("Bearer {ended}")), "was revoked or has expired"),
    ] {
        let mut ask = g.http.get(format!("{}/v1/events", g.url));
        if let Some(header) = &header {
            ask = ask.header("authorization", header);
        }
        let answer = ApiResponse::of(ask.send().await.unwrap()).await;
        assert_eq!((answer.status, answer.code()), (401, "unauthenticated"), "{header:?}");
        assert!(answer.body["detail"].as_str().unwrap().contains(cause), "{header:?}: {}", answer.body);
    }
}

/// Browsers send a cookie to every port of a host.
#[tokio::test]
async fn gateways_of_one_host_have_cookies_of_their_own() {
    let g = spawn_gateway().await;
    let (_, secret) = g.service.identity.sign_in("alice", PASSWORD.to_owned()).await.unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://localhost:{}", listener.local_addr().unwrap().port());
    let edge = EdgeConfig { cookie_suffix: "-8481".to_owned(), ..edge(&url, TrustedProxies::default()) };
    tokio::spawn(serve(AppState::new(g.service.clone(), Arc::new(edge)), listener, 1, Duration::from_secs(1)).unwrap());
    for (cookie, is_signed_in) in [("countersign-8481", true), ("countersign", false), ("countersign-8480", false)] {
        let page = g.http.get(format!("{url}/account")).header("cookie", format!("{cookie}={secret}"));
        let answer = page.send().await.unwrap();
        assert_eq!(answer.url().path() == "/account" && answer.status().is_success(), is_signed_in, "{cookie}");
    }
    let door = g.http.get(format!("{url}/sign-in")).send().await.unwrap();
    let set: Vec<_> = door.headers().get_all("set-cookie").iter().map(|it| it.to_str().unwrap().to_owned()).collect();
    assert!(!set.is_empty() && set.iter().all(|it| it.split('=').next().unwrap().ends_with("-8481")), "{set:?}");
}

#[tokio::test]
async fn a_session_row_put_back_to_before_its_end_lets_no_disabled_account_in() {
    let g = spawn_gateway().await;
    let (_, secret) = g.service.identity.sign_in("alice", PASSWORD.to_owned()).await.unwrap();
    let database = Connection::open(g.folder.path().join("countersign.db")).unwrap();
    database.execute_batch("CREATE TEMP TABLE kept AS SELECT * FROM sessions").unwrap();
    g.service.identity.set_admission("alice", SignInAccess::Barred).await.unwrap();
    database.execute_batch("DELETE FROM sessions; INSERT INTO sessions SELECT * FROM kept").unwrap();
    assert!(matches!(g.service.identity.session_of(&secret).await, Err(Error::Unauthenticated)));
}

#[tokio::test]
async fn correct_password_of_a_disabled_account_is_logged_as_failed() {
    let g = spawn_gateway().await;
    g.service.identity.set_admission("alice", SignInAccess::Barred).await.unwrap();
    let refused = g.service.identity.sign_in("alice", PASSWORD.to_owned()).await;
    assert!(matches!(refused, Err(Error::Unauthenticated)), "{refused:?}");
    while g.service.log.sequence().await.unwrap() > 0 {}
    let (events, _) = g.service.log.events_after(0, None, 1000).await.unwrap();
    assert_eq!(events.iter().filter(|it| it.event.kind == EventType::SignInFailed).count(), 1);
}

/// Two links exist before the first account, as after two starts.
#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "on the writing thread, which has nothing else to do")]
async fn only_one_of_two_concurrent_set_up_links_makes_the_first_account() {
    let folder = tempfile::tempdir().unwrap();
    // A commit is so slow that the second request reads the database before the commit is there.
    let slow = |point| {
        if point == CommitPoint::Locked {
            std::thread::sleep(Duration::from_millis(400))
        }
    };
    let options = SqliteOptions { probe: CommitProbe(slow), ..SqliteOptions::default() };
    let store = Arc::new(SqliteStore::open(folder.path().join("countersign.db"), options).unwrap());
    let keyring = Keyring::open_or_create(&folder.path().join("keyring.json"), None, &SystemClock).unwrap();
    let settings = settings("http://localhost:1");
    let service = Service::open(store.clone(), keyring, Arc::new(SystemClock), settings).await.unwrap();
    let (one, other) = (
        service.identity.set_up_link().await.unwrap().unwrap(),
        service.identity.set_up_link().await.unwrap().unwrap(),
    );
    let new = |name: &str| NewAccount { name: name.to_owned(), role: PersonRole::Admin, groups: Default::default() };
    let (ana, ben) = (new("ana"), new("ben"));
    let (first, second) = tokio::join!(
        service.identity.use_set_up_link(&one, &ana, PASSWORD.to_owned()),
        service.identity.use_set_up_link(&other, &ben, PASSWORD.to_owned()),
    );
    assert_eq!(usize::from(first.is_ok()) + usize::from(second.is_ok()), 1, "{first:?} {second:?}");
    assert_eq!(service.identity.people().await.unwrap().len(), 1);
    for link in [one, other] {
        assert!(
            matches!(service.identity.link_of(&link).await, Err(Error::NotFound("link"))),
            "both are of no use now"
        );
    }
    let report = audit(&*store, &service.core.keys().unwrap(), service.core.now()).await.unwrap();
    assert!(report.findings.is_empty(), "{:?}", report.findings);
}
