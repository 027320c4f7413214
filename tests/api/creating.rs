//! Tests the names and links that a host may set for a new thread.

use std::collections::BTreeSet;

use countersign_domain::identity::account::MachineRole;
use serde_json::{Value, json};

use crate::gateway::{ApiResponse, POLICY, TestGateway, source, spawn_gateway};
use crate::roles::other_flows;

fn state() -> Value {
    json!({"requested_action": "none", "target_user_id": 17})
}

async fn create(g: &TestGateway, token: &str, flow: &str, name: &str) -> ApiResponse {
    g.post("/v1/threads", token, json!({"flow": flow, "thread": name, "state": state()})).await
}

/// Returns a response without its request ID.
fn told(answer: ApiResponse) -> (u16, Value) {
    let mut body = answer.body;
    body.as_object_mut().unwrap().remove("request_id");
    (answer.status, body)
}

#[tokio::test]
async fn private_name_is_neither_taken_nor_found_by_a_host_of_another_flow() {
    let g = spawn_gateway().await;
    let refunds = POLICY.replace("flow = \"payments\"", "flow = \"refunds\"");
    g.service
        .policy_changes
        .activate_policy(&"tests".try_into().unwrap(), None, source(&refunds), BTreeSet::new())
        .await
        .unwrap();
    let other = other_flows(&g, "other-host", MachineRole::Host, &[]).await;
    let name = "flow:payments:order-17";
    let before = told(create(&g, &other, "refunds", name).await);
    assert_eq!((before.0, before.1["code"].as_str()), (400, Some("malformed")), "{}", before.1);
    create(&g, &g.host, "payments", name).await.expect(201);
    assert_eq!(told(create(&g, &other, "refunds", name).await), before, "it is told the same whether it exists or not");
    create(&g, &other, "refunds", "flow:refunds:order-17").await.expect(201);
    create(&g, &g.host, "payments", name).await.expect(201);
    for wrong in ["flow:order-17", "flow:refunds:order-18", "flow:payments:a:b"] {
        assert_eq!(create(&g, &g.host, "payments", wrong).await.status, 400, "{wrong}");
    }
}

#[tokio::test]
async fn link_that_is_no_web_address_is_refused() {
    let g = spawn_gateway().await;
    let with = async |links: Value| {
        let body = json!({"flow": "payments", "state": state(), "context": {"links": links}});
        g.post("/v1/threads", &g.host, body).await
    };
    with(json!(["https://desk.example/17", "http://desk.example/18"])).await.expect(201);
    for link in ["javascript:alert(1)", "data:text/html,x", "file:///etc/passwd", "/17", "desk.example"] {
        let refused = with(json!(["https://desk.example/17", link])).await;
        assert_eq!((refused.status, refused.code()), (400, "malformed"), "{link}");
        assert_eq!(refused.body["errors"][0]["pointer"], "/context/links/1", "{link}: {}", refused.body);
    }
}
