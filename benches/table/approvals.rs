//! Approval requests over HTTP: asked, allowed by the policy, used and reported, beside as many calls of verify.

use std::collections::BTreeSet;
use std::sync::Arc;

use countersign_domain::identity::account::{MachineRole, Token};
use countersign_domain::platform::idempotency::IdempotencyKey;
use countersign_service::identity::accounts::NewToken;
use countersign_service::identity::owner_names::NewOwner;
use serde_json::json;

use super::house::{BenchGateway, BenchStoreKind};
use super::load::{LoadRequest, LoadResult, send};
use super::speed::{TURNS, WriterOrder, requests, verify_requests};
use super::{gateway, line, median};

/// A flow in which every call is allowed.
const POLICY: &str = r#"
flow = "calls"

[nodes.agent]
reads = []
writes = []
writer = true

[tools]
allow = ["search"]

[approval]
[[approval.stages]]
groups = ["reviewers"]
"#;

/// An instance of the flow, with its token as it sends it.
pub async fn instance(house: &BenchGateway) -> (Token, String) {
    let by = "bench".try_into().unwrap();
    let activated = house.service.policy_changes.activate_policy(&by, None, gateway::source(POLICY), BTreeSet::new());
    activated.await.unwrap();
    let new = NewToken {
        name: "instance".to_owned(),
        role: MachineRole::Instance,
        owner: NewOwner::Group("agents".to_owned()),
        flow: Some("calls".try_into().unwrap()),
        nodes: BTreeSet::from(["agent".try_into().unwrap()]),
    };
    house.service.identity.add_token(&new).await.unwrap()
}

pub async fn measure(kind: BenchStoreKind, name: &str) {
    let house = Arc::new(BenchGateway::build(kind).await);
    let (token, text) = instance(&house).await;
    let (mut ratios, mut rates) = (Vec::new(), Vec::new());
    for turn in 0..=TURNS {
        let verified = send(house.port, verify_requests(&house, WriterOrder::Made).await).await;
        let (asks, uses, reports) = steps(&house, &token, &text, turn);
        let steps: [LoadResult; 3] =
            [send(house.port, asks).await, send(house.port, uses).await, send(house.port, reports).await];
        // All three calls of a request, one after the other.
        let rate = 3.0 / steps.iter().map(|it| 1.0 / it.per_second).sum::<f64>();
        if turn > 0 {
            ratios.push(rate / verified.per_second);
            rates.push(steps.map(|it| it.per_second / verified.per_second));
        }
    }
    let step = |at: usize| median(rates.iter().map(|it: &[f64; 3]| it[at]).collect());
    let measured =
        format!("{:.2} (ask {:.2}, consume {:.2}, outcome {:.2})", median(ratios), step(0), step(1), step(2));
    line(&format!("calls of approval requests ÷ calls of verify, {name}"), &measured, "≥ 0.5");
}

/// The three calls of each request of a turn.
fn steps(
    house: &BenchGateway,
    token: &Token,
    text: &str,
    turn: usize,
) -> (Vec<LoadRequest>, Vec<LoadRequest>, Vec<LoadRequest>) {
    let call = |path: String, key: Option<String>, body: String, status: u16| LoadRequest {
        path,
        token: text.to_owned(),
        body,
        status,
        key,
    };
    let (mut asks, mut uses, mut reports) = (Vec::new(), Vec::new(), Vec::new());
    for number in 0..requests() / 3 {
        let key = format!("{turn}-{number}");
        let named = IdempotencyKey::read(&key).unwrap();
        let id = house.service.approval_requests.request_id(token, &named).unwrap();
        let body = json!({"tool": "search", "arguments": {"q": "Nordwind", "number": number}, "timeout": "10m"});
        asks.push(call("/aap/v1/requests".to_owned(), Some(key.clone()), body.to_string(), 201));
        uses.push(call(format!("/aap/v1/requests/{id}/consume"), Some(key), String::new(), 200));
        let outcome = json!({"status": "succeeded"}).to_string();
        reports.push(call(format!("/aap/v1/requests/{id}/outcome"), None, outcome, 200));
    }
    (asks, uses, reports)
}
