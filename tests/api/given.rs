//! Tests the context tokens of nodes: the gateway counts them, and the policy's budgets limit them. On both databases.

use countersign_domain::context::Encoding;
use countersign_domain::json::canonical::canonical;
use countersign_domain::primitives::id::NodeId;
use countersign_domain::reviews::VoteVerdict;
use countersign_domain::threads::thread::Thread;
use countersign_domain::threads::usage::UsageAmount;
use serde_json::{Value, json};

use crate::gateway::{ApiResponse, POLICY, TestGateway};
use crate::rules::{ApiScenario, codes};

on_both_in_full! {
    context_tokens_are_counted_in_hundreds_up_to_the_limit(super::bounded("thread", 700, "")),
    envelope_is_counted_instead_of_the_whole_view(super::bounded("thread", 300, "max_tokens = 60\nrequires = [\"target_user_id\"]")),
    node_without_a_valid_envelope_is_counted_by_its_whole_view(super::bounded("thread", 500, "max_tokens = 60\nrequires = [\"payment.amount\"]")),
    node_limit_counts_and_shows_only_the_nodes_own_tokens(super::bounded("node", 500, "")),
    only_committed_changes_are_counted_and_approved_ones_once(super::bounded("thread", 100_000, "")),
    repeated_step_is_counted_once(super::bounded("thread", 100_000, "")),
    rollback_neither_adds_nor_returns_tokens(super::bounded("thread", 100_000, "")),
    token_limit_can_require_approval(super::bounded("thread", 300, "").replacen("context_tokens = 300", "context_tokens = 300\nthen = \"hold\"", 1)),
    tokens_are_not_counted_without_a_limit(super::POLICY),
    replay_counts_tokens_that_the_active_policy_did_not(super::POLICY),
    audit_finds_a_changed_token_count(super::bounded("thread", 100_000, "")),
}

/// Returns the payments policy with a limit, and with options for its planner's envelope.
fn bounded(of: &str, tokens: u64, planner: &str) -> String {
    let budget = format!("[budgets.{of}]\ncontext_tokens = {tokens}\n\n[approval]\n");
    let policy = POLICY.replacen("[approval]\n", &budget, 1);
    policy.replacen("rollback = true\n", &format!("rollback = true\n{planner}\n"), 1)
}

/// Creates a thread whose text has about 240 tokens.
async fn thread(g: &TestGateway) -> Value {
    let state = json!({"raw_text": "word ".repeat(240), "requested_action": "none", "target_user_id": 17,
        "payment": {"amount": 10, "card": "4111111111111111"}});
    g.post("/v1/threads", &g.host, json!({"flow": "payments", "state": state})).await.expect(201)
}

/// Returns the token count of a node's view of the head, rounded up to hundreds.
async fn given(g: &TestGateway, thread: &Value, (token, node): (&str, &str)) -> u64 {
    let path = format!("/v1/threads/{}/state?node={node}", thread["thread"].as_str().unwrap());
    let view = g.get(&path, token).await.expect(200)["state"].clone();
    Encoding::O200kBase.count(&canonical(&view)).div_ceil(100) * 100
}

async fn proposes(g: &TestGateway, thread: &Value, parent: &Value, action: &str) -> ApiResponse {
    g.propose(&thread["thread"], parent, (&g.planner, "planner"), json!({"requested_action": action})).await
}

async fn total(g: &TestGateway, thread: &Value) -> Value {
    let path = format!("/v1/threads/{}", thread["thread"].as_str().unwrap());
    g.get(&path, &g.host).await.expect(200)["spent"]["context_tokens"].clone()
}

async fn context_tokens_are_counted_in_hundreds_up_to_the_limit(scene: ApiScenario) {
    let g = &scene.gateway;
    let thread = thread(g).await;
    assert_eq!(given(g, &thread, (&g.planner, "planner")).await, 300);
    let one = proposes(g, &thread, &thread["transition"], "update_email").await.expect(201);
    assert_eq!(total(g, &thread).await, 300);
    let two = proposes(g, &thread, &one["transition"], "none").await.expect(201);
    assert_eq!(total(g, &thread).await, 600);
    let over = proposes(g, &thread, &two["transition"], "update_email").await;
    assert_eq!((over.status, codes(&over)), (422, vec!["budget"]));
    let detail = "the thread exceeds its context token limit";
    assert_eq!(over.body["errors"][0]["detail"], detail, "no number is told");
    assert_eq!(total(g, &thread).await, 600, "what is rejected does not count");
    // The parser reads only the text. A node that is given less has the same limit of the thread.
    let parsers =
        g.propose(&thread["thread"], &two["transition"], (&g.parser, "input_parser"), json!({"raw_text": "x"}));
    assert_eq!(codes(&parsers.await), ["budget"]);
    scene.passes_an_audit().await;
}

async fn envelope_is_counted_instead_of_the_whole_view(scene: ApiScenario) {
    let g = &scene.gateway;
    let thread = thread(g).await;
    let mut head = thread["transition"].clone();
    for action in ["update_email", "none", "update_email"] {
        let path = format!("/v1/threads/{}/envelope?node=planner", thread["thread"].as_str().unwrap());
        assert!(g.get(&path, &g.planner).await.expect(200)["tokens"].as_u64().unwrap() <= 60);
        head = proposes(g, &thread, &head, action).await.expect(201)["transition"].clone();
    }
    assert_eq!(total(g, &thread).await, 300, "100 each, though the view is more");
    assert_eq!(codes(&proposes(g, &thread, &head, "none").await), ["budget"]);
    scene.passes_an_audit().await;
}

async fn node_without_a_valid_envelope_is_counted_by_its_whole_view(scene: ApiScenario) {
    let g = &scene.gateway;
    let state = json!({"raw_text": "word ".repeat(240), "requested_action": "none", "target_user_id": 17});
    let thread = g.post("/v1/threads", &g.host, json!({"flow": "payments", "state": state})).await.expect(201);
    let path = format!("/v1/threads/{}/envelope?node=planner", thread["thread"].as_str().unwrap());
    assert_eq!(g.get(&path, &g.planner).await.code(), "required_missing");
    let one = proposes(g, &thread, &thread["transition"], "update_email").await.expect(201);
    assert_eq!(total(g, &thread).await, 300, "all that it may read, and not its 60 tokens");
    assert_eq!(codes(&proposes(g, &thread, &one["transition"], "none").await), ["budget"]);
    scene.passes_an_audit().await;
}

async fn node_limit_counts_and_shows_only_the_nodes_own_tokens(scene: ApiScenario) {
    let g = &scene.gateway;
    let thread = thread(g).await;
    let one = proposes(g, &thread, &thread["transition"], "update_email").await.expect(201);
    let patch = json!({"raw_text": "word ".repeat(241)});
    let parsed = g.propose(&thread["thread"], &one["transition"], (&g.parser, "input_parser"), patch);
    let parsed = parsed.await.expect(201);
    assert_eq!(total(g, &thread).await, 600);
    let over = proposes(g, &thread, &parsed["transition"], "none").await;
    assert_eq!(codes(&over), ["budget"]);
    assert_eq!(over.body["errors"][0]["detail"], "the node exceeds its context token limit for one thread");
    let path = format!("/v1/threads/{}", thread["thread"].as_str().unwrap());
    assert_eq!(g.get(&path, &g.planner).await.status, 403, "sums are nothing for an agent");
    scene.passes_an_audit().await;
}

async fn only_committed_changes_are_counted_and_approved_ones_once(scene: ApiScenario) {
    let g = &scene.gateway;
    let thread = thread(g).await;
    let bad = g.propose(&thread["thread"], &thread["transition"], (&g.planner, "planner"), json!({"result_ref": "x"}));
    bad.await.expect(422);
    let held = g.held(&thread).await;
    assert_eq!(total(g, &thread).await, Value::Null, "it waits for people");
    g.vote(&g.alice, &held, VoteVerdict::Deny).await.unwrap();
    assert_eq!(total(g, &thread).await, Value::Null, "nothing came of it");
    let patch = json!({"target_user_id": 43});
    let held = g.propose(&thread["thread"], &thread["transition"], (&g.planner, "planner"), patch).await.expect(202);
    g.approved(&held).await;
    assert_eq!(total(g, &thread).await, 300);
    scene.passes_an_audit().await;
}

async fn repeated_step_is_counted_once(scene: ApiScenario) {
    let g = &scene.gateway;
    let thread = thread(g).await;
    let path = format!("/v1/threads/{}/transitions", thread["thread"].as_str().unwrap());
    let ask = json!({"node": "planner", "parent": thread["transition"], "step": "s1",
        "patch": {"requested_action": "update_email"}});
    let first = g.post(&path, &g.planner, ask.clone()).await.expect(201);
    for parent in [&thread["transition"], &first["transition"]] {
        let mut again = ask.clone();
        again["parent"] = parent.clone();
        assert_eq!(g.post(&path, &g.planner, again).await.expect(201), first);
    }
    assert_eq!(proposes(g, &thread, &first["transition"], "none").await.status, 201);
    let same = proposes(g, &thread, &first["transition"], "none").await;
    assert_eq!(same.status, 201, "the same proposal has the same answer");
    assert_eq!(total(g, &thread).await, 600);
    scene.passes_an_audit().await;
}

async fn rollback_neither_adds_nor_returns_tokens(scene: ApiScenario) {
    let g = &scene.gateway;
    let thread = thread(g).await;
    let one = proposes(g, &thread, &thread["transition"], "update_email").await.expect(201);
    let path = format!("/v1/threads/{}/rollbacks", thread["thread"].as_str().unwrap());
    let ask = json!({"node": "planner", "parent": one["transition"], "to_version": 0});
    let held = g.post(&path, &g.planner, ask).await.expect(202);
    g.approved(&held).await;
    assert_eq!(total(g, &thread).await, 300);
    let head = held["transition"].clone();
    proposes(g, &thread, &head, "update_email").await.expect(201);
    assert_eq!(total(g, &thread).await, 600);
    scene.passes_an_audit().await;
}

async fn token_limit_can_require_approval(scene: ApiScenario) {
    let g = &scene.gateway;
    let thread = thread(g).await;
    let one = proposes(g, &thread, &thread["transition"], "update_email").await.expect(201);
    let held = proposes(g, &thread, &one["transition"], "none").await.expect(202);
    assert_eq!(held["reasons"][0]["code"], "budget");
    let other = proposes(g, &thread, &one["transition"], "none").await.expect(202);
    assert_eq!(other["transition"], held["transition"]);
    g.approved(&held).await;
    assert_eq!(total(g, &thread).await, 600, "what people let through is counted");
    scene.passes_an_audit().await;
}

async fn tokens_are_not_counted_without_a_limit(scene: ApiScenario) {
    let g = &scene.gateway;
    let thread = thread(g).await;
    proposes(g, &thread, &thread["transition"], "update_email").await.expect(201);
    assert_eq!(total(g, &thread).await, Value::Null);
    scene.passes_an_audit().await;
}

async fn replay_counts_tokens_that_the_active_policy_did_not(scene: ApiScenario) {
    let g = &scene.gateway;
    let thread = thread(g).await;
    let mut head = thread["transition"].clone();
    for action in ["update_email", "none", "update_email"] {
        head = proposes(g, &thread, &head, action).await.expect(201)["transition"].clone();
    }
    let policy = bounded("thread", 700, "");
    let schemas = json!({"payments.schema.json": crate::gateway::SCHEMA});
    let ask = json!({"policy": policy, "schemas": schemas, "limit": 200});
    let answer = g.post("/v1/flows/payments/replays", &g.auditor, ask).await.expect(200);
    let row = |it: &Value| (it["would_be"]["outcome"].clone(), it["would_be"]["codes"].clone());
    let rows: Vec<_> = answer["proposals"].as_array().unwrap().iter().map(row).collect();
    let (commit, reject) = (json!("commit"), json!("reject"));
    let none = json!([]);
    assert_eq!(rows.len(), 3);
    for expected in [(&commit, &none, 2), (&reject, &json!(["budget"]), 1)] {
        let found = rows.iter().filter(|it| (&it.0, &it.1) == (expected.0, expected.1)).count();
        assert_eq!(found, expected.2, "{rows:?}");
    }
    let supposed = |tokens: u64| {
        let state = json!({"raw_text": "word ".repeat(240), "requested_action": "none", "target_user_id": 17,
            "payment": {"amount": 10, "card": "4111111111111111"}});
        json!({"state": state, "node": "planner",
            "patch": {"requested_action": "update_email"}, "policy": policy, "schemas": schemas,
            "totals": {"input_parser": {"context_tokens": tokens}}})
    };
    for (tokens, outcome) in [(400, "commit"), (401, "reject")] {
        let judged = g.post("/v1/flows/payments/judgements", &g.auditor, supposed(tokens)).await.expect(200);
        assert_eq!(judged["outcome"], outcome, "{tokens}: {judged}");
    }
}

async fn audit_finds_a_changed_token_count(scene: ApiScenario) {
    let g = &scene.gateway;
    let thread = thread(g).await;
    let one = proposes(g, &thread, &thread["transition"], "update_email").await.expect(201);
    scene.passes_an_audit().await;
    let id = thread["thread"].as_str().unwrap();
    let planner = NodeId::try_from("planner").unwrap();
    scene
        .retells::<Thread>(id, |it| {
            assert_eq!(it.spent.of_node(&planner), UsageAmount::default().given(300));
            let mut body = json!(it);
            body["spent"]["planner"]["context_tokens"] = json!(200);
            serde_json::from_value(body).unwrap()
        })
        .await;
    assert_eq!(scene.findings().await, [format!("threads {id}: the usage totals of the thread differ from its chain")]);
    let digest = one["transition"].as_str().unwrap();
    for (other, findings) in [(Some(200), 1), (None, 2)] {
        scene
            .retells::<countersign_domain::threads::transition::Transition>(digest, |mut it| {
                it.context_tokens = other;
                it
            })
            .await;
        let found = scene.findings().await;
        let said = format!(
            "transitions {digest}: the context token count of the transition differs from the state that its node could read"
        );
        // A forged total that matches its transition still differs from the node's view.
        assert!(found.contains(&said) && found.len() == findings, "{found:?}");
    }
}
