//! Tests that no request of an agent can read values that the agent may not read. Two threads differ only in those
//! values. They get the same requests and must answer alike, except for random values.

use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::gateway::{ApiResponse, POLICY, TestGateway, spawn_with_policy};

/// One more node, which writes a key that it may not read.
const BLIND: &str = "[nodes.blind]\nreads = [\"raw_text\"]\nwrites = [\"raw_text\", \"result_ref\", \"payment.card\", \"execution_permissions\"]\n\n[approval]";

/// One of two worlds that look alike to the agent.
struct OracleWorld {
    g: TestGateway,
    token: String,
}

struct OracleThread<'a> {
    g: &'a TestGateway,
    token: &'a str,
    thread: Value,
}

impl OracleWorld {
    async fn new() -> Self {
        let policy = POLICY.replace("[approval]", BLIND).replace("\"execution_permissions\", ", "");
        let g = spawn_with_policy(&policy).await;
        let role = countersign_domain::identity::account::MachineRole::Agent;
        let token = crate::gateway::token(&g.service, "blind", role, &["blind"]).await;
        Self { g, token }
    }

    /// Creates a thread whose state has this value and the values that the agent may read.
    async fn place(&self, hidden: &Value) -> OracleThread<'_> {
        let mut state = json!({"requested_action": "none", "target_user_id": 17, "raw_text": "hello"});
        for (key, value) in hidden.as_object().unwrap() {
            state[key] = value.clone();
        }
        let g = &self.g;
        let thread = g.post("/v1/threads", &g.host, json!({"flow": "payments", "state": state})).await.expect(201);
        OracleThread { g, token: &self.token, thread }
    }
}

impl OracleThread<'_> {
    async fn ask(&self, format: &str, patch: &Value) -> ApiResponse {
        let path = format!("/v1/threads/{}/transitions", self.thread["thread"].as_str().unwrap());
        let body = json!({"node": "blind", "parent": self.thread["transition"], "patch": patch, "format": format});
        self.g.post(&path, self.token, body).await
    }

    /// Returns everything that the agent can learn from a request, without random values.
    async fn learns(&self, format: &str, patch: &Value) -> Value {
        let answer = self.ask(format, patch).await;
        let mut learnt = json!({
            "status": answer.status, "code": answer.body["code"], "errors": answer.body["errors"], "detail": answer.body["detail"],
            "outcome": answer.body["outcome"], "changed": answer.body["changed"], "reasons": answer.body["reasons"], "diff": answer.body["diff"],
        });
        if let Some(digest) = answer.body["transition"].as_str() {
            let told = self.g.get(&format!("/v1/transitions/{digest}"), self.token).await.expect(200);
            learnt["told"] =
                json!({"status": told["status"], "diff": told["diff"], "length": told["statement"].to_string().len()});
            learnt["told"]["moved"] = json!(told["statement"]["from"] != told["statement"]["to"]);
        }
        let path = format!("/v1/threads/{}/state?node=blind", self.thread["thread"].as_str().unwrap());
        learnt["state"] = self.g.get(&path, self.token).await.expect(200)["state"].clone();
        learnt
    }
}

/// Returns pairs of states that differ only in values that the agent may not read.
fn worlds() -> Vec<(Value, Value)> {
    vec![
        (json!({"result_ref": "secret"}), json!({"result_ref": "guess"})),
        (json!({"result_ref": "secret"}), json!({})),
        (
            json!({"payment": {"card": "guess", "amount": 10}}),
            json!({"payment": {"card": "4111111111111111", "amount": 10}}),
        ),
        (json!({"payment": {"card": "guess"}}), json!({})),
        (json!({"payment": {}}), json!({})),
        (json!({"payment": {"amount": 1}}), json!({"payment": {"amount": 99}})),
        (
            json!({"execution_permissions": {"write_scope": "self"}}),
            json!({"execution_permissions": {"write_scope": "none"}}),
        ),
        (json!({"execution_permissions": {"write_scope": "self"}}), json!({"execution_permissions": {}})),
        (json!({"execution_permissions": {"write_scope": "self"}}), json!({})),
    ]
}

/// Returns every request that might distinguish the two states.
fn questions() -> Vec<(&'static str, Value)> {
    let step = |op: &str, path: &str| json!([{"op": op, "path": path, "value": "guess"}]);
    vec![
        ("merge", json!({"result_ref": "guess"})),
        ("merge", json!({"payment": {"card": "guess"}})),
        ("merge", json!({"execution_permissions": {"write_scope": "self"}})),
        ("merge", json!({"execution_permissions": {}})),
        ("merge", json!({"requested_action": "none"})),
        ("merge", json!({"target_user_id": 17})),
        ("merge", json!({"raw_text": "hello"})),
        ("merge-patch", json!({"result_ref": "guess"})),
        ("merge-patch", json!({"result_ref": null})),
        ("merge-patch", json!({"payment": {"card": "guess"}})),
        ("merge-patch", json!({"payment": {"card": null}})),
        ("merge-patch", json!({"payment": {}})),
        ("merge-patch", json!({"payment": null})),
        ("merge-patch", json!({"execution_permissions": {}})),
        ("merge-patch", json!({"execution_permissions": {"write_scope": "self"}})),
        ("merge-patch", json!({"execution_permissions": {"write_scope": null}})),
        ("merge-patch", json!({"execution_permissions": null})),
        ("merge-patch", json!({"raw_text": "hello", "result_ref": null})),
        ("json-patch", step("add", "/result_ref")),
        ("json-patch", step("replace", "/result_ref")),
        ("json-patch", step("test", "/result_ref")),
        ("json-patch", step("add", "/payment/card")),
        ("json-patch", step("test", "/payment/card")),
        ("json-patch", json!([{"op": "remove", "path": "/result_ref"}])),
        ("json-patch", json!([{"op": "remove", "path": "/payment/card"}])),
        ("json-patch", json!([{"op": "copy", "from": "/result_ref", "path": "/raw_text"}])),
        ("json-patch", json!([{"op": "move", "from": "/payment/card", "path": "/raw_text"}])),
        ("json-patch", json!([{"op": "add", "path": "/execution_permissions", "value": {"write_scope": "self"}}])),
        ("json-patch", json!([{"op": "add", "path": "/execution_permissions/write_scope", "value": "self"}])),
    ]
}

#[tokio::test]
async fn two_states_that_look_alike_answer_alike() {
    let mut told = Vec::new();
    let world = OracleWorld::new().await;
    for (one, two) in worlds() {
        // Each request goes to its own pair of threads, so that no answer depends on an earlier one. All are sent at
        // once.
        let ask = async |(format, patch): (&'static str, Value)| {
            let (left, right) = (world.place(&one).await, world.place(&two).await);
            let (a, b) = (left.learns(format, &patch).await, right.learns(format, &patch).await);
            (a != b).then(|| format!("{format} {patch} tells {one} from {two}:\n  {a}\n  {b}"))
        };
        told.extend(join_all(questions().into_iter().map(ask)).await.into_iter().flatten());
    }
    assert!(told.is_empty(), "{} questions tell:\n{}", told.len(), told.join("\n"));
}
