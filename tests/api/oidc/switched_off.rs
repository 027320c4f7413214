//! Tests a gateway whose own accounts are switched off.

use countersign_domain::identity::account::PersonRole;
use countersign_domain::reviews::VoteVerdict;
use countersign_service::error::Error;
use countersign_service::identity::accounts::NewAccount;
use countersign_service::identity::sign_in_config::LocalAccounts;
use countersign_service::identity::sign_in_config::SignInMethods;

use super::faults::{try_once, with_peer};
use super::provider::settings;
use super::{beside, ways};
use crate::gateway::{ballot, spawn_gateway};

const COOKIE: &str = "countersign";
const PASSWORD: &str = "correct horse battery";

#[tokio::test]
async fn without_local_accounts_only_the_provider_signs_in() {
    let (g, peer) = with_peer().await;
    let (_, alices) = g.service.identity.sign_in("alice", PASSWORD.to_owned()).await.unwrap();
    let link = g.service.identity.sign_in_link(&g.alice.id).await.unwrap();
    let (carol, _) = try_once(&g, &peer).await;
    let held = g.held(&g.thread().await).await;
    let strict = beside(&g, ways(settings(&peer.issuer), &g.url, &g.clock, LocalAccounts::Off)).await;
    strict.identity.session_of(carol.cookie(&g.url, COOKIE).unwrap()).await.unwrap();

    let off = |it: &Error| matches!(it, Error::Forbidden(why) if why.contains("are disabled"));
    assert!(off(&strict.identity.sign_in("alice", PASSWORD.to_owned()).await.unwrap_err()));
    assert!(off(&strict.identity.sign_in("nobody", PASSWORD.to_owned()).await.unwrap_err()), "whoever it is");
    assert!(off(&strict.identity.use_sign_in_link(&link).await.unwrap_err()));
    let new = NewAccount { name: "eve".to_owned(), role: PersonRole::Admin, groups: Default::default() };
    assert!(off(&strict.identity.add_account(&new, PASSWORD.to_owned()).await.unwrap_err()));
    let admin = g.service.identity.session_of(&alices).await.unwrap().account;
    assert!(off(&strict.identity.invite(&admin, &new).await.unwrap_err()));
    assert!(off(&strict.identity.reset_link(&admin, &g.bob.id).await.unwrap_err()));
    assert!(strict.identity.set_up_link().await.unwrap().is_none());
    assert!(matches!(strict.identity.session_of(&alices).await, Err(Error::Unauthenticated)), "who was in is out");
    let review = held["review"]["id"].as_str().unwrap().try_into().unwrap();
    let vote = strict.reviews.vote(&g.alice.id, &review, &ballot(&held, VoteVerdict::Approve), None).await;
    assert!(vote.is_err(), "and decides nothing");
}

#[tokio::test]
async fn sessions_of_a_removed_provider_are_refused() {
    let (g, peer) = with_peer().await;
    let (carol, _) = try_once(&g, &peer).await;
    let secret = carol.cookie(&g.url, COOKIE).unwrap();
    for other in [SignInMethods::default(), ways(settings("http://localhost:1"), &g.url, &g.clock, LocalAccounts::On)] {
        let other = beside(&g, other).await;
        assert!(matches!(other.identity.session_of(secret).await, Err(Error::Unauthenticated)));
    }
    g.service.identity.session_of(secret).await.unwrap();
}

#[tokio::test]
async fn without_a_provider_there_is_no_such_page() {
    let g = spawn_gateway().await;
    let mut visitor = super::visitor::HttpBrowser::new();
    assert_eq!(visitor.begin(&g.url, "/").await.status, 404);
    let back = format!("{}/sign-in/oidc/return?state=x&code=y", g.url);
    assert_eq!(visitor.get(&back).await.status, 404);
    let page = visitor.get(&format!("{}/sign-in", g.url)).await;
    assert!(!page.body.contains("/sign-in/oidc"), "{}", page.body);
}
