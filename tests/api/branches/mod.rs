//! Tests branches and their joins: which are held, which are refused, and which values are redacted. On both databases.

use std::time::Duration;

use countersign_domain::chain::entry::Entry;
use countersign_domain::chain::jws::{self, TokenType};
use countersign_domain::identity::account::MachineRole;
use countersign_domain::reviews::{VoteRejected, VoteVerdict};
use countersign_domain::threads::branch::Branch;

use countersign_service::error::Error;
use countersign_service::proposals::rollback::RollbackInput;
use countersign_service::reviews::vote::VoteOutcome;
use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::gateway::{ApiResponse, TestGateway, owned_token, token};
use crate::rules::{ApiScenario, codes};

mod apart;
mod between;
mod decided;
mod exported;
mod given;
mod listed;
mod made;
mod merged;
mod replayed;

fn research(covers: &str) -> String {
    format!(
        r#"flow = "payments"
trust_initial = true
protected = ["target_user_id"]

[join]
confidence = "sure"

[transitions.keyed_arrays."found"]
key = "id"

[nodes.planner]
reads = ["question", "found", "notes", "sure", "target_user_id", "contact"]
writes = ["question", "found", "notes", "sure", "target_user_id", "contact"]
rollback = true
fork = true

[nodes.input_parser]
reads = ["question", "notes"]
writes = ["notes", "aside"]

[nodes.database_writer]
reads = ["question", "found", "notes", "target_user_id"]
writes = ["result_ref"]
writer = true

[approval]
covers = "{covers}"
ttl = "24h"
receipt_ttl = "10m"
write_lease = "30s"

[[approval.stages]]
groups = ["reviewers"]
need = 1

[redaction]
hide = ["contact.mail"]
"#
    )
}

/// Returns a policy by which the parser settles values that are redacted for everyone.
fn hidden_notes() -> String {
    research("write").replacen("[\"contact.mail\"]", "[\"contact.mail\", \"notes.secret\"]", 1)
}

fn budgeted() -> String {
    let budget = "[budgets.thread]\ntokens = 100\nthen = \"hold\"\n\n[approval]\n";
    research("write").replacen("[approval]\n", budget, 1)
}

fn impatient() -> String {
    format!("on_violation = \"retry_once\"\n{}", research("write"))
}

/// A thread with a question, its head, and branches of it by name.
struct ForkedThread {
    id: Value,
    head: Value,
    branches: Vec<Value>,
}

impl ForkedThread {
    async fn new(g: &TestGateway, names: &[&str]) -> Self {
        let state = json!({
            "question": "who", "found": [{"id": "start"}], "notes": {}, "sure": 0.5, "target_user_id": 17,
            "contact": {"mail": "a@b.example", "name": "Eva"},
        });
        let made = g.post("/v1/threads", &g.host, json!({"flow": "payments", "state": state})).await.expect(201);
        let branches = fork(g, &made["thread"], names).await.expect(201)["branches"].as_array().unwrap().clone();
        Self { id: made["thread"].clone(), head: made["transition"].clone(), branches }
    }

    /// The planner's change on a branch.
    async fn change(&self, g: &TestGateway, index: usize, patch: Value) -> Value {
        let branch = &self.branches[index];
        g.propose(&branch["thread"], &branch["transition"], (&g.planner, "planner"), patch).await.expect(201)
    }

    async fn join(&self, g: &TestGateway, names: &[&str], strategy: &str) -> ApiResponse {
        self.join_with(g, json!({"branches": names, "strategy": strategy})).await
    }

    async fn join_with(&self, g: &TestGateway, more: Value) -> ApiResponse {
        let mut body = json!({"node": "planner", "parent": self.head});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        g.post(&self.path("joins"), &g.planner, body).await
    }

    fn path(&self, what: &str) -> String {
        format!("/v1/threads/{}/{what}", self.id.as_str().unwrap())
    }

    async fn state(&self, g: &TestGateway) -> Value {
        state(g, &self.id).await
    }
}

async fn fork(g: &TestGateway, thread: &Value, names: &[&str]) -> ApiResponse {
    let path = format!("/v1/threads/{}/forks", thread.as_str().unwrap());
    g.post(&path, &g.planner, json!({"node": "planner", "branches": names})).await
}

async fn state(g: &TestGateway, thread: &Value) -> Value {
    let path = format!("/v1/threads/{}/state?node=planner", thread.as_str().unwrap());
    g.get(&path, &g.planner).await.expect(200)["state"].clone()
}

async fn now(g: &TestGateway, thread: &Value) -> Value {
    g.get(&format!("/v1/threads/{}", thread.as_str().unwrap()), &g.host).await.expect(200)
}

fn places(answer: &ApiResponse) -> Vec<&str> {
    answer.body["errors"].as_array().unwrap().iter().map(|it| it["pointer"].as_str().unwrap()).collect()
}
