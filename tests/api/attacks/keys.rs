//! Tests receipts by keys that do not sign receipts, or that are retired or revoked.

use countersign_domain::keys::{KeyUse, Keys, KeysError};

use countersign_adapters::clock::{Clock as _, SystemClock};
use countersign_adapters::keyring::Keyring;
use serde_json::{Value, json};

use super::forge::{RECEIPT, attackers, header_of, sign, stolen, take_apart, with_receipt};
use super::{AttackScenario, cases};

/// Changes the gateway's keyring as the command line does; the running gateway sees it at once.
fn update(scene: &AttackScenario, change: impl FnOnce(Keys) -> Result<Keys, KeysError>) {
    let path = scene.g.folder.path().join("keyring.json");
    Keyring::open(&path, None).unwrap().update(change).unwrap();
}

fn rotate(scene: &AttackScenario) {
    update(scene, |keys| keys.rotate(KeyUse::Chain, SystemClock.now(), &mut countersign_adapters::random::fill));
}

fn revoke(scene: &AttackScenario, kid: &Value) {
    update(scene, |keys| {
        keys.revoke(kid.as_str().unwrap(), SystemClock.now(), &mut countersign_adapters::random::fill)
    });
}

/// Returns the case's own claims, signed by another key under its own ID.
fn signed_by(scene: &AttackScenario, key: &ed25519_dalek::SigningKey) -> Value {
    let claims = take_apart(scene.case.receipt()).claims;
    with_receipt(scene, sign(&header_of(key, RECEIPT), &claims, key))
}

cases! {
    an_attackers_key_is_unknown: "unknown_key", Same, |s| signed_by(s, &attackers());
    an_attackers_signature_in_the_gateways_name_is_refused: "signature_invalid", Same, |s| {
        let parts = take_apart(s.case.receipt());
        with_receipt(s, sign(&parts.header, &parts.claims, &attackers()))
    };
    the_logs_key_signs_no_receipts: "unknown_key", Same, |s| signed_by(s, &stolen(s, "log", "signing"));
    the_webhooks_key_signs_no_receipts: "unknown_key", Same, |s| signed_by(s, &stolen(s, "webhook", "signing"));
    the_next_key_signs_nothing_yet: "unknown_key", Same, |s| signed_by(s, &stolen(s, "chain", "next"));
    a_retired_key_signs_nothing_freshly: "unknown_key", Same, |s| {
        let old = stolen(s, "chain", "signing");
        rotate(s);
        let mut claims = take_apart(s.case.receipt()).claims;
        claims["exp"] = json!(claims["exp"].as_i64().unwrap() + 3600);
        with_receipt(s, sign(&header_of(&old, RECEIPT), &claims, &old))
    };
    a_retired_key_signs_nothing_for_a_later_head: "unknown_key", Before, |s| {
        let old = stolen(s, "chain", "signing");
        rotate(s);
        let (held, decision) = s.reaffirmed(&s.case.held["transition"].clone()).await;
        let claims = take_apart(decision["receipt"].as_str().unwrap()).claims;
        (s.case.held, s.case.decision) = (held, decision);
        with_receipt(s, sign(&header_of(&old, RECEIPT), &claims, &old))
    };
    a_revoked_key_signs_nothing: "unknown_key", Same, |s| {
        let old = stolen(s, "chain", "signing");
        rotate(s);
        for _ in 0..2 {
            (s.case.held, s.case.decision) = s.reaffirmed(&s.case.held["transition"].clone()).await;
        }
        revoke(s, &header_of(&old, RECEIPT)["kid"]);
        signed_by(s, &old)
    };
    a_head_signed_by_a_revoked_key_is_broken: "chain_broken", Before, |s| {
        let kid = take_apart(s.case.receipt()).header["kid"].clone();
        revoke(s, &kid);
        s.case.ask("spoiled")
    };
    a_head_signed_by_a_key_that_was_retired_and_then_revoked_is_broken: "chain_broken", Before, |s| {
        let kid = take_apart(s.case.receipt()).header["kid"].clone();
        rotate(s);
        revoke(s, &kid);
        s.case.ask("spoiled")
    };
    a_head_signed_by_a_revoked_key_is_broken_though_its_parents_key_is_good: "chain_broken", Before, |s| {
        rotate(s);
        (s.case.held, s.case.decision) = s.reaffirmed(&s.case.held["transition"].clone()).await;
        let kid = take_apart(s.case.receipt()).header["kid"].clone();
        revoke(s, &kid);
        s.case.ask("spoiled")
    };
    a_head_whose_parent_was_signed_by_a_revoked_key_is_broken_though_it_was_checked_before: "chain_broken", Before, |s| {
        let kid = take_apart(s.case.receipt()).header["kid"].clone();
        rotate(s);
        (s.case.held, s.case.decision) = s.reaffirmed(&s.case.held["transition"].clone()).await;
        revoke(s, &kid);
        s.case.ask("spoiled")
    };
}

#[tokio::test]
async fn unchanged_receipt_of_a_retired_key_is_valid() {
    let scene = AttackScenario::new(crate::gateway::POLICY).await;
    rotate(&scene);
    scene.write(&scene.case.ask("w1")).await.expect(200);
    assert_eq!(scene.rows(scene.case.id()), 1);
}
