//! Tests instances that a provisioner creates, with the receiver of the public Python package. The receiver is verified
//! before the instance exists, and woken only for its own requests.

use std::path::Path;
use std::time::Duration;

use countersign::worker::{deliver, prune, sequence};
use countersign_domain::identity::account::MachineRole;
use countersign_domain::reviews::VoteVerdict;
use reqwest::Method;
use serde_json::{Value, json};

use crate::aap_adapters::Script;
use crate::approval_requests::{Instance, decides, policy};
use crate::gateway::{TestGateway, token};
use crate::rules::ApiScenario;
use crate::webhooks::receiver::{ReceiverReply, WebhookReceiver};

on_both! {
    receiver_is_verified_and_woken_for_its_own_requests,
    receiver_that_does_not_answer_with_the_challenge_gets_no_instance,
    instance_is_not_woken_after_its_credential_ended,
    malformed_instance_is_refused,
}

async fn provisioner(g: &TestGateway) -> Instance<'_> {
    Instance { g, token: token(&g.service, "platform-bot", MachineRole::Provisioner, &["agent"]).await }
}

/// A provisioner, and the package's receiver.
async fn begin(g: &TestGateway) -> Script {
    let mut script = Script::start("with_receiver.py", &provisioner(g).await, Path::new("")).await;
    script.event("address").await;
    script
}

impl Script {
    async fn does(&mut self, command: &str) -> Value {
        self.send(&json!({"do": command}));
        self.next().await.unwrap()
    }

    /// Asks for a held call as the created instance.
    async fn asks_as(&mut self, run: &str) -> Value {
        self.send(&json!({"do": "ask", "run": run}));
        json!({"id": self.event("created").await["created"]})
    }
}

/// Sends what is due.
async fn send(g: &TestGateway) -> usize {
    sequence::run_once(&g.service).await.unwrap();
    loop {
        let sender = deliver::DeliveryWorker::new(&g.service);
        sender.round().await.unwrap();
        let sent = sender.rest().await.unwrap();
        if sender.stands().await {
            return sent;
        }
    }
}

async fn endpoints(g: &TestGateway) -> usize {
    g.get("/v1/endpoints", &g.auditor).await.expect(200)["endpoints"].as_array().unwrap().len()
}

async fn receiver_is_verified_and_woken_for_its_own_requests(scene: ApiScenario) {
    let g = &scene.gateway;
    let mut script = begin(g).await;
    // The receiver takes longer than the clocks of two gateways may differ.
    script.send(&json!({"do": "provision", "name": "worker-1", "delay": 3}));
    let made = script.next().await.unwrap();
    assert_eq!(made["name"], "worker-1");
    assert!(made["expires_at"].is_string());
    // The same registration is the same instance.
    script.send(&json!({"do": "provision", "name": "worker-1"}));
    assert_eq!(script.next().await.unwrap(), made);
    assert_eq!(endpoints(g).await, 1);

    let own = script.asks_as("run-1").await;
    let other = Instance::new(g, "other").await;
    let others = other.asks_for_refund("k1").await;
    decides(g, &others, VoteVerdict::Approve, None).await;
    assert_eq!(send(g).await, 0, "a request of another instance wakes nobody");
    decides(g, &own, VoteVerdict::Approve, None).await;
    assert_eq!(send(g).await, 1);
    let woken = script.event("woken").await;
    assert_eq!(woken, json!({"woken": own["id"], "run": "run-1", "status": "approved"}));
    scene.passes_an_audit().await;
}

async fn receiver_that_does_not_answer_with_the_challenge_gets_no_instance(scene: ApiScenario) {
    let g = &scene.gateway;
    let mut script = begin(g).await;
    script.does("provision").await;
    for command in ["provision another registration", "provision another secret"] {
        let refused = script.does(command).await;
        assert_eq!(refused["refused"], "WebhookVerificationFailed", "{command}: {refused}");
    }
    // A server that answers 200 to everything has not proved that it has the secret.
    let (it, receiver) = (provisioner(g).await, WebhookReceiver::start().await);
    for reply in [ReceiverReply::Says("200 OK"), ReceiverReply::Quotes("challenge"), ReceiverReply::HangsUp] {
        receiver.now(reply);
        let refused = create(&it, "k1", &delivery(&receiver.url)).await;
        assert_eq!(refused, (422, "webhook_verification_failed".to_owned()));
    }
    assert_eq!(endpoints(g).await, 1);
    let tokens = g.service.identity.tokens().await.unwrap();
    assert_eq!(tokens.iter().filter(|it| it.role == MachineRole::Instance && it.expires_at.is_some()).count(), 1);
}

async fn instance_is_not_woken_after_its_credential_ended(scene: ApiScenario) {
    let g = &scene.gateway;
    let mut script = begin(g).await;
    let made = script.does("provision").await;
    let own = script.asks_as("run-1").await;
    let tokens = g.service.identity.tokens().await.unwrap();
    let ended = tokens.iter().find(|it| it.id.as_str() == made["instance"]).unwrap();
    g.service.identity.revoke_token(&ended.id).await.unwrap();
    decides(g, &own, VoteVerdict::Approve, None).await;
    send(g).await;
    let listed = g.get("/v1/endpoints", &g.auditor).await.expect(200);
    let path = format!("/v1/endpoints/{}/deliveries", listed["endpoints"][0]["id"].as_str().unwrap());
    let sent = g.get(&path, &g.auditor).await.expect(200);
    let attempt = &sent["deliveries"][0]["attempts"][0];
    assert!(attempt.get("status").is_none() && attempt["detail"].is_string(), "{sent}");
    assert_eq!(script.does("ask in vain").await["refused"], "CredentialRefused");
    assert_eq!(endpoints(g).await, 1);
    prune::run_once(&g.service).await.unwrap();
    assert_eq!(endpoints(g).await, 0, "the endpoint of an ended credential is removed");

    // A credential ends by itself.
    let mut script = begin(g).await;
    script.does("provision").await;
    g.pass(Duration::from_secs(30 * 24 * 3600 + 1));
    assert_eq!(endpoints(g).await, 1);
    prune::run_once(&g.service).await.unwrap();
    assert_eq!(endpoints(g).await, 0);
    scene.passes_an_audit().await;
}

fn delivery(url: &str) -> Value {
    json!({"type": "webhook", "url": url, "registration_id": "r-1",
        "signing_secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo="})
}

async fn create(it: &Instance<'_>, key: &str, delivery: &Value) -> (u16, String) {
    let body = json!({"delivery": delivery}).to_string();
    let answer = it.send(Method::POST, "/aap/v1/instances", Some(key), Some(&body)).await;
    (answer.status, answer.body["error"]["code"].as_str().unwrap_or_default().to_owned())
}

async fn malformed_instance_is_refused(scene: ApiScenario) {
    let it = provisioner(&scene.gateway).await;
    let good = delivery("https://receiver.example/hook");
    let with = |member: &str, value: Value| {
        let mut changed = good.clone();
        changed[member] = value;
        changed
    };
    for bad in [
        with("type", json!("email")),
        with("url", json!("ftp://receiver.example")),
        with("url", json!("https://10.0.0.1/hook")),
        with("registration_id", json!("")),
        with("registration_id", json!("with space")),
        with("signing_secret", json!("secret")),
        with("signing_secret", json!("whsec_c2hvcnQ=")),
        with("more", json!(1)),
    ] {
        assert_eq!(create(&it, "k1", &bad).await, (400, "malformed".to_owned()), "{bad}");
    }
    let named = it.send(Method::POST, "/aap/v1/instances", Some("k2"), Some(r#"{"instance_name": "a b"}"#)).await;
    assert_eq!(named.status, 400);
    let keyless = it.send(Method::POST, "/aap/v1/instances", None, Some("{}")).await;
    assert_eq!((keyless.status, &keyless.body["error"]["code"]), (400, &json!("missing_idempotency_key")));
    // Without a receiver, the instance polls.
    let made = it.send(Method::POST, "/aap/v1/instances", Some("k3"), Some("{}")).await.expect(201);
    let instance = Instance { g: &scene.gateway, token: made["credential"]["token"].as_str().unwrap().to_owned() };
    assert_eq!(instance.asks_for_refund("k1").await["status"], "pending");
    // The provisioner itself asks for nothing.
    assert_eq!(it.ask("k1", &json!({})).await.status, 403);
    let changed = it.send(Method::POST, "/aap/v1/instances", Some("k3"), Some(r#"{"instance_name": "b"}"#)).await;
    assert_eq!((changed.status, &changed.body["error"]["code"]), (409, &json!("idempotency_conflict")));
    scene.passes_an_audit().await;
}
