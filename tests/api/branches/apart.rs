//! Tests that branches and joins do not get around read rights and approval. On both databases.

use countersign_domain::reviews::VoteVerdict;
use serde_json::{Value, json};

use crate::gateway::{ApiResponse, TestGateway};
use crate::rules::{ApiScenario, codes};

on_both_in_full! {
    correct_guess_of_an_unreadable_value_is_not_joined(super::guessing()),
    join_settles_only_values_that_its_node_reads(super::guessing()),
    change_held_by_a_rule_is_rejected_on_a_branch_and_held_on_the_thread(super::asking()),
    held_join_that_a_new_policy_rejects_is_set_aside(super::keyed()),
}

const APPROVAL: &str = r#"
[nodes.planner]
reads = ["$"]
writes = ["$"]
fork = true

[approval]
ttl = "24h"

[[approval.stages]]
groups = ["reviewers"]
need = 1
"#;

fn guessing() -> String {
    let node = r#"
[nodes.input_parser]
reads = ["question", "list.*.seen"]
writes = ["question", "pin", "plan", "list.*.seen"]
fork = true
"#;
    format!("flow = \"payments\"\ntrust_initial = true\nprotected = [\"plan\"]\n{node}{APPROVAL}")
}

fn asking() -> String {
    let rules = r#"
[[rules]]
when = "node == 'input_parser'"
then = "hold"
reason = "whatever the parser says is looked at"

[nodes.input_parser]
reads = ["question"]
writes = ["question"]
fork = true
"#;
    let tools = "writes = [\"$\"]\ntools = [\"refund\"]\n";
    format!("flow = \"payments\"\ntrust_initial = true\n{rules}{}", APPROVAL.replace("writes = [\"$\"]\n", tools))
}

fn keyed() -> String {
    let keys = "\n[transitions.keyed_arrays.\"list\"]\nkey = \"id\"\n";
    format!("flow = \"payments\"\ntrust_initial = true\nprotected = [\"plan\"]\n{keys}{APPROVAL}")
}

struct BranchThread<'g> {
    g: &'g TestGateway,
    id: Value,
    head: Value,
}

impl<'g> BranchThread<'g> {
    async fn new(g: &'g TestGateway, state: Value) -> Self {
        let made = g.post("/v1/threads", &g.host, json!({"flow": "payments", "state": state})).await.expect(201);
        Self { g, id: made["thread"].clone(), head: made["transition"].clone() }
    }

    fn path(&self, what: &str) -> String {
        format!("/v1/threads/{}/{what}", self.id.as_str().unwrap())
    }

    async fn fork(&self, (token, node): (&str, &str), name: &str) -> Value {
        let body = json!({"node": node, "branches": [name]});
        self.g.post(&self.path("forks"), token, body).await.expect(201)["branches"][0].clone()
    }

    /// Forks a branch and proposes the patch on it.
    async fn branch(&self, by: (&str, &str), name: &str, patch: Value) -> ApiResponse {
        let branch = self.fork(by, name).await;
        self.g.propose(&branch["thread"], &branch["transition"], by, patch).await
    }

    async fn join(&self, (token, node): (&str, &str), names: &[&str], more: Value) -> ApiResponse {
        let mut body = json!({"node": node, "parent": self.head, "branches": names, "strategy": "union"});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.g.post(&self.path("joins"), token, body).await
    }

    async fn status(&self) -> Value {
        self.g.get(self.path("").trim_end_matches('/'), &self.g.host).await.expect(200)["status"].clone()
    }
}

/// Returns the status and the error, without the names of this one request.
fn said(answer: &ApiResponse) -> (u16, Value, Value) {
    (answer.status, answer.body["code"].clone(), answer.body["errors"].clone())
}

async fn correct_guess_of_an_unreadable_value_is_not_joined(scene: ApiScenario) {
    let g = &scene.gateway;
    let (parser, planner) = ((g.parser.as_str(), "input_parser"), (g.planner.as_str(), "planner"));
    for place in ["pin", "plan"] {
        let thread = BranchThread::new(g, json!({"question": "who", "pin": "4711", "plan": "4711", "list": []})).await;
        let mut answers = Vec::new();
        for (name, guess) in [("wrong", "0000"), ("right", "4711")] {
            thread.branch(parser, name, json!({place: guess})).await.expect(201);
            answers.push(said(&thread.join(parser, &[name], json!({})).await));
        }
        assert_eq!(answers[0], answers[1], "{place}: who may not read it learns nothing by it");
        assert_eq!((answers[0].0, &answers[0].2[0]["code"]), (422, &json!("read_not_allowed")), "{answers:?}");
        // A node that may read the value can join it. A protected value requires approval even if nothing differs, as
        // on the thread itself.
        let joined = thread.join(planner, &["right"], json!({})).await;
        assert_eq!(joined.status, if place == "plan" { 202 } else { 201 }, "{:#}", joined.body);
    }
    scene.passes_an_audit().await;
}

async fn join_settles_only_values_that_its_node_reads(scene: ApiScenario) {
    let g = &scene.gateway;
    let (parser, planner) = ((g.parser.as_str(), "input_parser"), (g.planner.as_str(), "planner"));
    let thread = BranchThread::new(g, json!({"question": "who", "list": [{"seen": 1, "hidden": "S"}]})).await;
    for (name, seen) in [("a", 2), ("b", 3)] {
        let patch = json!({"list": [{"seen": 1, "hidden": "S"}, {"seen": seen}]});
        thread.branch(planner, name, patch).await.expect(201);
    }
    let settle = |hidden: &str, seen: u32| {
        let list = json!([{"seen": 1, "hidden": hidden}, {"seen": seen}]);
        json!({"strategy": "explicit", "resolve": [{"path": "/list", "value": list}]})
    };
    let wrong = said(&thread.join(parser, &["a", "b"], settle("T", 4)).await);
    let right = said(&thread.join(parser, &["a", "b"], settle("S", 5)).await);
    assert_eq!(wrong, right, "what stands there unseen is neither told nor replaced");
    assert_eq!((right.0, &right.2[0]["code"]), (422, &json!("read_not_allowed")));
    thread.join(planner, &["a", "b"], settle("S", 5)).await.expect(201);
    scene.passes_an_audit().await;
}

async fn change_held_by_a_rule_is_rejected_on_a_branch_and_held_on_the_thread(scene: ApiScenario) {
    let g = &scene.gateway;
    let (parser, planner) = ((g.parser.as_str(), "input_parser"), (g.planner.as_str(), "planner"));
    let thread = BranchThread::new(g, json!({"question": "who"})).await;
    let by_rule = thread.branch(parser, "rule", json!({"question": "how"})).await;
    assert_eq!((by_rule.status, codes(&by_rule)), (422, vec!["rule_denied"]), "nobody would ever be asked");
    let branch = thread.fork(planner, "tool").await;
    let call = json!({
        "node": "planner", "parent": branch["transition"], "patch": {},
        "tool": {"name": "refund", "arguments": {"amount": 1}},
    });
    let path = format!("/v1/threads/{}/transitions", branch["thread"].as_str().unwrap());
    let by_tool = g.post(&path, &g.planner, call.clone()).await;
    assert_eq!((by_tool.status, codes(&by_tool)), (422, vec!["tool_not_allowed"]), "a tool has effects of its own");
    let mut on_the_thread = call;
    on_the_thread["parent"] = thread.head.clone();
    g.post(&thread.path("transitions"), &g.planner, on_the_thread).await.expect(201);
    let head = g.get(thread.path("").trim_end_matches('/'), &g.host).await.expect(200)["transition"].clone();
    let held = g.propose(&thread.id, &head, parser, json!({"question": "how"})).await;
    assert_eq!(held.status, 202, "there it is asked");
    scene.passes_an_audit().await;
}

async fn held_join_that_a_new_policy_rejects_is_set_aside(scene: ApiScenario) {
    let g = &scene.gateway;
    let planner = (g.planner.as_str(), "planner");
    let thread = BranchThread::new(g, json!({"list": [{"id": "a"}], "plan": "x"})).await;
    thread.branch(planner, "one", json!({"list": [{"id": "a"}, {"id": "b"}], "plan": "y"})).await.expect(201);
    thread.branch(planner, "two", json!({"list": [{"id": "a"}, {"id": "c"}]})).await.expect(201);
    let held = thread.join(planner, &["one", "two"], json!({})).await.expect(202);
    let policy = keyed().replace("\n[transitions.keyed_arrays.\"list\"]\nkey = \"id\"\n", "");
    let body = json!({"policy": policy, "schemas": {}, "accepts": []});
    g.post("/v1/flows/payments/policies", &g.admin, body).await.expect(200);
    assert!(
        g.vote(&g.alice, &held, VoteVerdict::Deny).await.is_err(),
        "nobody decides on what would be another thing by now"
    );
    countersign::worker::rejudge::run_once(&g.service).await.unwrap();
    assert_eq!(thread.status().await, "open", "the thread goes on");
    assert_eq!(g.decision(&held).await.expect(200)["decision"], "superseded");
    scene.passes_an_audit().await;
}
