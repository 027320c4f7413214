//! Tests key changes under a running gateway, and a restored older keyring. On both databases.

use std::fs;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;

use countersign_domain::chain::entry::Entry;
use countersign_domain::chain::jws::{self, TokenType};
use countersign_domain::json::patch::PatchFormat;
use countersign_domain::keys::{KeyUse, Keys, KeysError};

use async_trait::async_trait;
use countersign_adapters::clock::{Clock as _, SystemClock};
use countersign_adapters::keyring::Keyring;
use countersign_service::proposals::outcome::ProposalOutcome;
use countersign_service::proposals::request::{Proposal, ProposalKind};
use countersign_store::row::Table;
use serde_json::{Value, json};

use crate::gateway::{POLICY, TestGateway};
use crate::over::{StoreInterceptor, StoreOperation};
use crate::rules::ApiScenario;

on_both! {
    approval_signed_by_a_revoked_key_is_stopped(super::POLICY),
    slow_proposal_is_signed_by_the_current_key(super::POLICY),
    restored_older_keyring_is_found_from_the_log(super::POLICY),
    restored_older_keyring_does_not_verify_the_newest_entry(super::POLICY),
}

fn place(g: &TestGateway) -> PathBuf {
    g.folder.path().join("keyring.json")
}

/// As the command line does; the running gateway sees it at once.
fn update(path: &std::path::Path, change: impl FnOnce(Keys) -> Result<Keys, KeysError>) {
    Keyring::open(path, None).unwrap().update(change).unwrap();
}

fn rotate(path: &std::path::Path) {
    update(path, |keys| keys.rotate(KeyUse::Chain, SystemClock.now(), &mut countersign_adapters::random::fill));
}

fn revoke(path: &std::path::Path, kid: &str) {
    update(path, |keys| keys.revoke(kid, SystemClock.now(), &mut countersign_adapters::random::fill));
}

fn signing(g: &TestGateway) -> String {
    g.service.core.keys().unwrap().signing(KeyUse::Chain).kid().to_owned()
}

async fn stopped(g: &TestGateway, transition: &Value) -> Value {
    let path = format!("/v1/transitions/{}", transition.as_str().unwrap());
    g.get(&path, &g.planner).await.expect(200).get("stopped").cloned().unwrap_or(Value::Null)
}

async fn approval_signed_by_a_revoked_key_is_stopped(scene: ApiScenario) {
    let g = &scene.gateway;
    let thread = g.thread().await;
    rotate(&place(g));
    let held = g.held(&thread).await;
    g.approved(&held).await;
    assert_eq!(stopped(g, &held["transition"]).await, Value::Null);
    revoke(&place(g), &signing(g));
    assert_eq!(stopped(g, &held["transition"]).await, "chain_broken");
}

/// Rotates the key and revokes the old one while a proposal is in progress.
struct RotatingKeyring(PathBuf, Mutex<bool>);

#[async_trait]
impl StoreInterceptor for RotatingKeyring {
    async fn asked(&self, what: StoreOperation<'_>) {
        if what == StoreOperation::Rows(Table::Rejections) && std::mem::take(&mut *self.1.lock().unwrap()) {
            let old = Keyring::open(&self.0, None).unwrap().current().unwrap();
            rotate(&self.0);
            revoke(&self.0, old.signing(KeyUse::Chain).kid());
        }
    }
}

async fn slow_proposal_is_signed_by_the_current_key(scene: ApiScenario) {
    let g = &scene.gateway;
    // Its head is signed by another key than the one that is revoked.
    let thread = g.thread().await;
    rotate(&place(g));
    let old = signing(g);
    let second = scene.another_watched(RotatingKeyring(place(g), Mutex::new(true))).await;
    let planner = second.identity.token_of(&g.planner).await.unwrap();
    let proposal = Proposal {
        thread: thread["thread"].as_str().unwrap().try_into().unwrap(),
        node: "planner".try_into().unwrap(),
        parent: thread["transition"].as_str().unwrap().try_into().unwrap(),
        ask: ProposalKind::Patch { format: PatchFormat::Merge, patch: json!({"requested_action": "refund"}) },
        attempt: 1,
        rationale: None,
        tool: None,
        usage: Default::default(),
        step: None,
    };
    let answer = second.proposals.propose(&planner, &proposal).await.unwrap();
    let ProposalOutcome::Committed { entry, .. } = answer else { panic!("{answer:?}") };
    let kid = jws::read::<Entry>(&entry, TokenType::Entry).unwrap().kid().to_owned();
    assert_ne!(signing(g), old, "it was turned meanwhile");
    assert_eq!(kid, signing(g));
    scene.passes_an_audit().await;
}

async fn restored_older_keyring_is_found_from_the_log(scene: ApiScenario) {
    let g = &scene.gateway;
    let older = fs::read(place(g)).unwrap();
    let leaked = signing(g);
    revoke(&place(g), &leaked);
    let by = "tests".try_into().unwrap();
    g.service.log.note_keys_changed(&by, KeyUse::Chain, Some(&leaked)).await.unwrap();
    g.pass(Duration::from_secs(60));
    scene.passes_an_audit().await;
    let newer = fs::read(place(g)).unwrap();
    fs::write(place(g), older).unwrap();
    let found = scene.findings().await;
    let named = |words: &str| found.iter().any(|it| it.contains(words));
    assert!(
        named("the keyring does not have this key as revoked")
            && named("the keyring does not have this key as signing"),
        "{found:?}"
    );
    fs::write(place(g), newer).unwrap();
    scene.passes_an_audit().await;
}

async fn restored_older_keyring_does_not_verify_the_newest_entry(scene: ApiScenario) {
    let g = &scene.gateway;
    g.thread().await;
    g.service.log.sequence().await.unwrap();
    let older = fs::read(place(g)).unwrap();
    rotate(&place(g));
    // Entries are signed by the next key after two rotations.
    rotate(&place(g));
    g.thread().await;
    g.service.log.sequence().await.unwrap();
    g.service.log.check_newest_entry().await.unwrap();
    fs::write(place(g), older).unwrap();
    let restarted = scene.another_watched(Unwatched).await;
    assert!(restarted.log.check_newest_entry().await.is_err());
}

struct Unwatched;

#[async_trait]
impl StoreInterceptor for Unwatched {
    async fn asked(&self, _: StoreOperation<'_>) {}
}
