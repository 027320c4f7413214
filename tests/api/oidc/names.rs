//! Tests which account a person gets, whatever name the provider sends.

use countersign_domain::identity::account::{AccountCredential, PersonRole};

use countersign::service::identity::revocation::SignInAccess;
use serde_json::json;

use super::faults::{try_once, with_peer};
use super::{told, whose};

const COOKIE: &str = "countersign";

#[tokio::test]
async fn existing_or_look_alike_name_is_never_taken_over() {
    let (g, peer) = with_peer().await;
    for (name, reason) in [
        ("alice", "name_taken"),
        ("Alice", "name_taken"),
        ("a1ice", "name_taken"),
        ("b0b", "name_taken"),
        ("platform", "name_taken"),
        ("P1atform", "name_taken"),
        ("Reviewers", "name_taken"),
        ("\u{430}lice", "unusable_name"),
        ("alice\u{200b}", "unusable_name"),
        ("", "unusable_name"),
    ] {
        peer.script().claims = json!({"preferred_username": name});
        let (visitor, seen) = try_once(&g, &peer).await;
        assert_eq!(seen.status, 403, "{name:?}");
        assert_eq!(visitor.cookie(&g.url, COOKIE), None);
        assert_eq!(told(&g, "access.sign_in_failed").await.pop().unwrap().data["reason"], reason, "{name:?}");
    }
    peer.script().claims = json!({"preferred_username": null});
    assert_eq!(try_once(&g, &peer).await.1.status, 403);
    peer.script().claims = json!({"preferred_username": "alicia"});
    let (visitor, _) = try_once(&g, &peer).await;
    assert_eq!(whose(&g, visitor.cookie(&g.url, COOKIE).unwrap()).await.name, "alicia");

    peer.script().claims = json!({"sub": "sub-2", "preferred_username": "alicia"});
    assert_eq!(try_once(&g, &peer).await.1.status, 403, "nor is another subject's");
    let (alice, _) = g.service.identity.sign_in("alice", "correct horse battery".to_owned()).await.unwrap();
    assert_eq!(alice.account.record, g.alice, "and hers is as it was");
}

#[tokio::test]
async fn account_stays_with_its_subject_and_keeps_its_name() {
    let (g, peer) = with_peer().await;
    let (visitor, _) = try_once(&g, &peer).await;
    let first = whose(&g, visitor.cookie(&g.url, COOKIE).unwrap()).await;
    peer.script().claims = json!({"preferred_username": "alice"});
    let (visitor, seen) = try_once(&g, &peer).await;
    assert_eq!(seen.status, 303, "a new name there is nothing here");
    assert_eq!(whose(&g, visitor.cookie(&g.url, COOKIE).unwrap()).await, first);
    assert!(matches!(&first.sign_in, AccountCredential::Oidc { subject, .. } if subject == "sub-1"));
    assert!(!first.id.as_str().contains("sub-1"), "its id tells nobody who it is there");
    assert!(g.service.identity.sign_in("carol", String::new()).await.is_err(), "no password opens it");
}

#[tokio::test]
async fn sign_in_and_admin_role_require_configured_groups() {
    let (g, peer) = with_peer().await;
    for groups in [json!(["staff"]), json!([]), json!("admin"), json!({"ops": true}), json!(null), json!([["fin"]])] {
        peer.script().claims = json!({"groups": groups});
        let (_, seen) = try_once(&g, &peer).await;
        assert_eq!(seen.status, 403, "{groups}");
    }
    peer.script().claims = json!({"groups": "ops"});
    let (visitor, _) = try_once(&g, &peer).await;
    assert_eq!(whose(&g, visitor.cookie(&g.url, COOKIE).unwrap()).await.role, PersonRole::Admin);
}

#[tokio::test]
async fn an_account_that_is_disabled_here_stays_out() {
    let (g, peer) = with_peer().await;
    let (visitor, _) = try_once(&g, &peer).await;
    let secret = visitor.cookie(&g.url, COOKIE).unwrap().to_owned();
    g.service.identity.set_admission("carol", SignInAccess::Barred).await.unwrap();
    assert!(g.service.identity.session_of(&secret).await.is_err());
    let (_, seen) = try_once(&g, &peer).await;
    assert_eq!(seen.status, 403);
    assert!(seen.body.contains("Your account is disabled here"), "{}", seen.body);
    g.service.identity.set_admission("carol", SignInAccess::Open).await.unwrap();
    assert_eq!(try_once(&g, &peer).await.1.status, 303);
}

#[tokio::test]
async fn a_session_by_a_provider_is_over_when_its_own_time_is() {
    let (g, peer) = with_peer().await;
    let (visitor, _) = try_once(&g, &peer).await;
    let secret = visitor.cookie(&g.url, COOKIE).unwrap().to_owned();
    let session = g.service.identity.session_of(&secret).await.unwrap().session.record;
    assert_eq!(session.created_at.until(session.expires_at).as_secs(), 1800, "not the hour of other sessions");
    g.pass(std::time::Duration::from_secs(1801));
    assert!(g.service.identity.session_of(&secret).await.is_err());
}
