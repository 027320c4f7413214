//! Tests the Rust client against a gateway: a write is verified, confirmed once, and bound to its request.

use std::collections::BTreeMap;

use countersign_client::{
    CallStatus, CallToApprove, Client, ClientError, OutcomeName, PublicKeys, RequestSharing, Secret,
    ToolApprovalStatus, ToolState, WriteRequest,
};
use countersign_domain::identity::account::MachineRole;
use serde_json::{Value, json};

use crate::gateway::{POLICY, TestGateway, source, token};
use crate::rules::ApiScenario;

on_both! {
    writer_writes_once,
    denied_write_has_the_code_of_the_gateway,
    answer_signed_by_another_gateway_is_refused,
    approval_of_a_call_is_used_once,
}

fn policy() -> String {
    POLICY.to_owned()
}

fn client(g: &TestGateway, token: &str) -> Client {
    Client::new(&g.url.parse().unwrap(), &Secret::new(token.to_owned())).unwrap()
}

/// An approved write of the flow `payments`.
async fn approved(g: &TestGateway) -> WriteRequest {
    let thread = g.thread().await;
    let held = g.held(&thread).await;
    let receipt = g.approved(&held).await["receipt"].as_str().unwrap().to_owned();
    let text = |it: &Value| it.as_str().unwrap().to_owned();
    WriteRequest {
        thread: text(&thread["thread"]).as_str().try_into().unwrap(),
        transition: text(&held["transition"]).try_into().unwrap(),
        receipt: Some(receipt),
        write_id: "job-1".to_owned().try_into().unwrap(),
        expect: BTreeMap::from([("/target_user_id".try_into().unwrap(), json!(42))]),
    }
}

async fn writer_writes_once(scene: ApiScenario) {
    let g = &scene.gateway;
    let (write, it) = (approved(g).await, client(g, &g.writer));
    let keys = it.keys().await.unwrap();
    let verified = it.verify(&write, Some(&keys)).await.unwrap();
    assert_eq!((&verified.view["target_user_id"], verified.replayed), (&json!(42), false));
    let again = it.verify(&write, Some(&keys)).await.unwrap();
    assert!(again.replayed && again.verification == verified.verification);
    let ended = it.confirm(&verified.write_id, &json!({"result_ref": "row 1"})).await.unwrap();
    assert_eq!((ended.outcome, ended.result_refused), (OutcomeName::Confirmed, false));
    let other = WriteRequest { write_id: "job-2".to_owned().try_into().unwrap(), ..write };
    assert_eq!(it.verify(&other, Some(&keys)).await.unwrap_err().code(), "not_head");
    scene.passes_an_audit().await;
}

async fn denied_write_has_the_code_of_the_gateway(scene: ApiScenario) {
    let g = &scene.gateway;
    let (write, it) = (approved(g).await, client(g, &g.writer));
    let other =
        WriteRequest { expect: BTreeMap::from([("/target_user_id".try_into().unwrap(), json!(17))]), ..write.clone() };
    let refused = it.verify(&other, None).await.unwrap_err();
    assert!(
        matches!(&refused, ClientError::Refused { status: 403, code, .. } if code == "expectation_failed"),
        "{refused}"
    );
    let missing = WriteRequest { receipt: None, ..write.clone() };
    assert_eq!(it.verify(&missing, None).await.unwrap_err().code(), "receipt_missing");
    let spoiled = WriteRequest { receipt: Some("a.b.c".to_owned()), ..write.clone() };
    assert_eq!(it.verify(&spoiled, None).await.unwrap_err().code(), "receipt_malformed");
    assert_eq!(client(g, "cs_unknown").verify(&write, None).await.unwrap_err().code(), "unauthenticated");
    it.verify(&write, None).await.unwrap();
    let aborted = it.abort(&write.write_id, "the target is locked").await.unwrap();
    assert_eq!(aborted.outcome, OutcomeName::Aborted);
}

async fn answer_signed_by_another_gateway_is_refused(scene: ApiScenario) {
    let g = &scene.gateway;
    let (write, it) = (approved(g).await, client(g, &g.writer));
    let other = ApiScenario::on_sqlite(POLICY).await;
    let pinned: PublicKeys = client(&other.gateway, &other.gateway.writer).keys().await.unwrap();
    let refused = it.verify(&write, Some(&pinned)).await.unwrap_err();
    assert_eq!(refused.code(), "unknown_key");
}

async fn approval_of_a_call_is_used_once(scene: ApiScenario) {
    let policy = source(&crate::approval_requests::policy());
    let g = &scene.gateway;
    g.service
        .policy_changes
        .activate_policy(&"tests".try_into().unwrap(), None, policy, Default::default())
        .await
        .unwrap();
    let it = client(g, &token(&g.service, "bot", MachineRole::Instance, &["agent"]).await);
    let arguments = json!({"q": "Nordwind", "limit": 10.0}).as_object().unwrap().clone();
    let call = CallToApprove {
        tool: "search",
        server: None,
        arguments: &arguments,
        timeout: "10m",
        reasoning: Some("the order is late"),
        definition: ToolState::Unchanged,
    };
    let keys = it.keys().await.unwrap();
    let asked = it.ask("k1", &call, RequestSharing::ByKey).await.unwrap();
    assert_eq!((asked.status, asked.is_new), (ToolApprovalStatus::Approved, true));
    let other = json!({"q": "Eva"}).as_object().unwrap().clone();
    let differs = CallToApprove { arguments: &other, ..call.clone() };
    assert_eq!(it.ask("k1", &differs, RequestSharing::ByKey).await.unwrap_err().code(), "idempotency_conflict");
    let used = it.consume(&asked.id, &call, "c1", Some(&keys)).await.unwrap();
    assert!(used.request.consumption.is_some() && !used.lease().is_zero());
    assert_eq!(it.consume(&asked.id, &call, "c2", Some(&keys)).await.unwrap_err().code(), "already_consumed");
    let ended = it.report(&asked.id, CallStatus::Succeeded, Some("done")).await.unwrap();
    assert!(ended.consumption.unwrap().outcome.is_some_and(|it| it.status == CallStatus::Succeeded));
    assert_eq!(it.cancel(&asked.id).await.unwrap_err().code(), "already_terminal");
}
