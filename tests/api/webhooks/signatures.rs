//! Tests signatures with the public libraries of Standard Webhooks.

use std::process::Command;

use serde_json::{Value, json};

use super::receiver::{WebhookReceiver, WebhookRequest};
use super::scene::{WebhookScenario, path};

on_both! {
    public_libraries_accept_every_signed_event_and_no_altered_one,
    both_secrets_are_valid_only_during_a_rotation,
}

/// Returns whether each library accepts the delivery with this body and secret.
fn judged(got: &WebhookRequest, secret: &Value, body: &str) -> [bool; 2] {
    let ask = json!({"secret": secret, "headers": got.headers, "body": body}).to_string();
    let python = crate::python::answered("check_webhook.py", &ask);
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/webhooks/check.mjs");
    let modules = crate::npm::modules("webhooks");
    let node = Command::new("node").arg(script).arg(modules).arg(&ask).output().unwrap();
    assert!(node.status.success(), "{}", String::from_utf8_lossy(&node.stderr));
    [python.trim() == "good", String::from_utf8(node.stdout).unwrap().trim() == "good"]
}

/// Returns whether the second signature is by one of the endpoint's public keys.
fn signed_by_key(got: &WebhookRequest, keys: &Value) -> bool {
    let ask = json!({"keys": keys, "headers": got.headers, "body": got.body}).to_string();
    crate::python::answered("check_webhook_key.py", &ask).trim() == "good"
}

async fn public_libraries_accept_every_signed_event_and_no_altered_one(s: WebhookScenario) {
    let receiver = WebhookReceiver::start().await;
    let endpoint = s.endpoint(&receiver, &["transition.*"]).await;
    let thread = s.g.thread().await;
    let held = s.g.held(&thread).await;
    s.g.approved(&held).await;
    assert!(s.send().await >= 3, "{:?}", receiver.kinds());
    assert_eq!(receiver.kinds(), ["transition.held", "transition.committed", "transition.approved"]);
    let got = receiver.sorted();
    let decision = s.g.decision(&held).await.expect(200);
    assert_eq!(got[2].json()["data"]["decision"], decision, "what an agent resumes with, as everywhere");
    for it in &got {
        assert_eq!(judged(it, &endpoint["secret"], &it.body), [true, true], "{it:?}");
        assert!(signed_by_key(it, &endpoint["public_keys"]));
        assert_eq!(judged(it, &endpoint["secret"], &it.body.replace('}', " }")), [false, false]);
    }
    let other = s.endpoint(&receiver, &["*"]).await;
    assert_eq!(judged(&got[0], &other["secret"], &got[0].body), [false, false], "each has a secret of its own");
    s.is_sound().await;
}

async fn both_secrets_are_valid_only_during_a_rotation(s: WebhookScenario) {
    let receiver = WebhookReceiver::start().await;
    let endpoint = s.endpoint(&receiver, &["thread.created"]).await;
    let ask = json!({"overlap_secs": 600});
    let next = s.g.post(&path(&endpoint, "/secret"), &s.g.admin, ask).await.expect(200);
    assert_ne!(next["secret"], endpoint["secret"]);
    s.g.thread().await;
    s.send().await;
    s.g.pass(std::time::Duration::from_secs(601));
    s.g.thread().await;
    s.send().await;
    let [during, after] = <[WebhookRequest; 2]>::try_from(receiver.sorted()).unwrap();
    assert_eq!(during.headers["webhook-signature"].matches("v1,").count(), 2);
    assert_eq!(after.headers["webhook-signature"].matches("v1,").count(), 1);
    let good = |got: &WebhookRequest, secret: &Value| signs(got, secret);
    assert!(good(&during, &endpoint["secret"]) && good(&during, &next["secret"]));
    assert!(!good(&after, &endpoint["secret"]) && good(&after, &next["secret"]));
}

/// Returns whether one of the signatures is by that secret. The libraries also check the time, and the test has moved
/// this gateway's clock.
fn signs(got: &WebhookRequest, secret: &Value) -> bool {
    let webhook = standardwebhooks::Webhook::new(secret.as_str().unwrap()).unwrap();
    let at: i64 = got.headers["webhook-timestamp"].parse().unwrap();
    let signature = webhook.sign(got.id(), at, got.body.as_bytes()).unwrap();
    got.headers["webhook-signature"].split(' ').any(|it| it == signature)
}
