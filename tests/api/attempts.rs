//! Tests the limit on repeated proposals of a denied change. Attempts count by their effect, on every head.

use std::time::Duration;

use countersign_domain::reviews::{Ballot, Hold, VoteVerdict};
use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::attacks::policy_with;
use crate::gateway::{ApiResponse, TestGateway, ballot, person};
use crate::rules::ApiScenario;

on_both! {
    denied_change_is_not_asked_again_after_the_head_moved(super::policy()),
    other_values_are_another_change(super::policy()),
    harmless_company_does_not_make_it_another_change(super::policy()),
    siblings_in_a_new_container_do_not_make_it_another_change(super::with_tools()),
    company_of_a_tool_call_does_not_make_it_another_change(super::with_tools()),
    harmless_commit_does_not_make_a_rollback_another_change(super::with_tools()),
    expired_and_cancelled_attempts_count_too(super::policy()),
    approved_change_is_no_attempt(super::policy()),
    attempts_count_again_after_the_window(super::policy()),
    attempts_of_other_nodes_and_threads_are_their_own(super::policy()),
    two_gateways_do_not_both_use_the_last_attempt(super::policy()),
    effect_is_stored_as_a_keyed_digest(super::policy()),
    audit_finds_another_effect(super::policy()),
    reviewer_sees_earlier_denials(super::policy()),
}

const HOUR: Duration = Duration::from_secs(3_600);

/// Two attempts in six hours.
fn policy() -> String {
    let limits = "ttl = \"24h\"\nattempts = 2\nattempts_within = \"6h\"";
    // Both nodes may propose the change.
    policy_with("ttl = \"24h\"", limits).replace(
        "reads = [\"raw_text\"]\nwrites = [\"raw_text\"]",
        "reads = [\"$\"]\nwrites = [\"raw_text\", \"target_user_id\"]",
    )
}

/// Returns the same policy without a schema, and with tool calls that a rule holds.
fn with_tools() -> String {
    policy()
        .replace("schema = \"payments.schema.json\"\n", "")
        .replace("\"payment.amount\"]\nwrites = [\"requested_action\"", "\"payment\"]\nwrites = [\"requested_action\"")
        .replace("\"payment.amount\"]\nrollback", "\"payment\", \"raw_text\"]\nrollback")
        .replace(
            "[approval]\n",
            "[[rules]]\nname = \"calls\"\nwhen = \"has(tool.name)\"\nthen = \"hold\"\nreason = \"a call\"\n\n[tools]\nallow = [\"crm.*\"]\n\n[approval]\n",
        )
}

struct AttemptScenario<'a> {
    g: &'a TestGateway,
    thread: Value,
    head: Value,
    moves: u32,
}

impl<'a> AttemptScenario<'a> {
    async fn new(g: &'a TestGateway) -> Self {
        let made = g.thread().await;
        Self { g, thread: made["thread"].clone(), head: made["transition"].clone(), moves: 0 }
    }

    async fn asks(&self, patch: Value) -> ApiResponse {
        let path = format!("/v1/threads/{}/transitions", self.thread.as_str().unwrap());
        let ask = json!({"node": "planner", "parent": self.head, "format": "merge-patch", "patch": patch});
        self.g.post(&path, &self.g.planner, ask).await
    }

    /// A commit that touches nothing protected.
    async fn moves(&mut self) {
        self.moves += 1;
        let patch = json!({"raw_text": format!("harmless {}", self.moves)});
        let moved = self.g.propose(&self.thread, &self.head, (&self.g.parser, "input_parser"), patch).await;
        self.head = moved.expect(201)["transition"].clone();
    }

    async fn is_denied(&mut self, patch: Value) -> Value {
        let held = self.asks(patch).await.expect(202);
        self.g.vote(&self.g.alice, &held, VoteVerdict::Deny).await.unwrap();
        self.moves().await;
        held
    }

    async fn is_refused(&self, patch: Value) {
        let refused = self.asks(patch).await;
        assert_eq!((refused.status, refused.code()), (422, "rejected"), "{}", refused.body);
        assert_eq!(refused.body["errors"][0]["code"], "attempts_exhausted");
        assert_eq!(refused.body["instruction"]["action"], "stop");
        assert!(refused.body["errors"][0]["detail"].as_str().unwrap().contains("attempts_within"));
    }
}

fn user(id: u64) -> Value {
    json!({"target_user_id": id})
}

async fn denied_change_is_not_asked_again_after_the_head_moved(scene: ApiScenario) {
    let mut run = AttemptScenario::new(&scene.gateway).await;
    for _ in 0..2 {
        run.is_denied(user(42)).await;
    }
    for _ in 0..2 {
        run.is_refused(user(42)).await;
        run.moves().await;
    }
    scene.passes_an_audit().await;
}

async fn other_values_are_another_change(scene: ApiScenario) {
    let mut run = AttemptScenario::new(&scene.gateway).await;
    for _ in 0..2 {
        run.is_denied(user(42)).await;
    }
    run.is_denied(user(43)).await;
    run.is_denied(json!({"target_user_id": 42, "payment": {"amount": 11}})).await;
    scene.passes_an_audit().await;
}

async fn harmless_company_does_not_make_it_another_change(scene: ApiScenario) {
    let mut run = AttemptScenario::new(&scene.gateway).await;
    for action in ["refund", "update_email"] {
        run.is_denied(json!({"target_user_id": 42, "requested_action": action})).await;
    }
    run.is_refused(json!({"target_user_id": 42, "requested_action": "refund"})).await;
    run.is_refused(user(42)).await;
}

async fn siblings_in_a_new_container_do_not_make_it_another_change(scene: ApiScenario) {
    let g = &scene.gateway;
    let mut run = AttemptScenario::new(g).await;
    let state = json!({"requested_action": "none", "target_user_id": 17, "raw_text": "t", "payment": {}});
    let made = g.post("/v1/threads", &g.host, json!({"flow": "payments", "state": state})).await.expect(201);
    (run.thread, run.head) = (made["thread"].clone(), made["transition"].clone());
    for memo in ["a", "b"] {
        run.is_denied(json!({"payment": {"amount": 5, "memo": memo}})).await;
    }
    run.is_refused(json!({"payment": {"amount": 5, "memo": "c"}})).await;
    scene.passes_an_audit().await;
}

async fn company_of_a_tool_call_does_not_make_it_another_change(scene: ApiScenario) {
    let g = &scene.gateway;
    let mut run = AttemptScenario::new(g).await;
    let path = format!("/v1/threads/{}/transitions", run.thread.as_str().unwrap());
    let calls = async |head: &Value, to: &str, text: &str| {
        let tool = json!({"name": "crm.wire", "arguments": {"to": to}});
        let patch = json!({"raw_text": text});
        let ask = json!({"node": "planner", "parent": head, "patch": patch, "tool": tool});
        g.post(&path, &g.planner, ask).await
    };
    for text in ["a", "b"] {
        let held = calls(&run.head, "eve", text).await.expect(202);
        g.vote(&g.alice, &held, VoteVerdict::Deny).await.unwrap();
        run.moves().await;
    }
    assert_eq!(calls(&run.head, "eve", "c").await.status, 422);
    calls(&run.head, "bob", "c").await.expect(202);
    scene.passes_an_audit().await;
}

async fn harmless_commit_does_not_make_a_rollback_another_change(scene: ApiScenario) {
    let g = &scene.gateway;
    let mut run = AttemptScenario::new(g).await;
    let path = format!("/v1/threads/{}/rollbacks", run.thread.as_str().unwrap());
    let mut asked = Vec::new();
    for member in ["a", "b", "c"] {
        // Each commit touches another place, so each rollback changes other leaves.
        let patch = json!({"raw_text": {member: 1}});
        let moved = g.propose(&run.thread, &run.head, (&g.parser, "input_parser"), patch).await;
        run.head = moved.expect(201)["transition"].clone();
        let back = json!({"to_version": 0, "node": "planner", "parent": run.head});
        let answer = g.post(&path, &g.planner, back).await;
        asked.push(answer.status);
        if answer.status == 202 {
            g.vote(&g.alice, &answer.body, VoteVerdict::Deny).await.unwrap();
        }
    }
    assert_eq!(asked, [202, 202, 422]);
    scene.passes_an_audit().await;
}

async fn expired_and_cancelled_attempts_count_too(scene: ApiScenario) {
    let g = &scene.gateway;
    let mut run = AttemptScenario::new(g).await;
    let held = run.asks(user(42)).await.expect(202);
    let path = format!("/v1/transitions/{}/cancellation", held["transition"].as_str().unwrap());
    g.post(&path, &g.planner, json!({"reason": "again"})).await.expect(200);
    run.moves().await;
    run.asks(user(42)).await.expect(202);
    g.pass(24 * HOUR);
    run.moves().await;
    // The cancellation is out of the window by now, and the deadline passed a moment ago.
    run.asks(user(42)).await.expect(202);
    g.pass(24 * HOUR);
    run.moves().await;
    run.is_denied(user(42)).await;
    run.is_refused(user(42)).await;
    scene.passes_an_audit().await;
}

async fn approved_change_is_no_attempt(scene: ApiScenario) {
    let g = &scene.gateway;
    let mut run = AttemptScenario::new(g).await;
    for id in [42, 43, 42, 43, 42] {
        let held = run.asks(user(id)).await.expect(202);
        g.approved(&held).await;
        run.head = held["transition"].clone();
    }
    scene.passes_an_audit().await;
}

async fn attempts_count_again_after_the_window(scene: ApiScenario) {
    let g = &scene.gateway;
    let mut run = AttemptScenario::new(g).await;
    run.is_denied(user(42)).await;
    g.pass(3 * HOUR);
    run.is_denied(user(42)).await;
    run.is_refused(user(42)).await;
    g.pass(3 * HOUR);
    run.moves().await;
    run.is_denied(user(42)).await;
    run.is_refused(user(42)).await;
    scene.passes_an_audit().await;
}

async fn attempts_of_other_nodes_and_threads_are_their_own(scene: ApiScenario) {
    let g = &scene.gateway;
    let mut run = AttemptScenario::new(g).await;
    for _ in 0..2 {
        run.is_denied(user(42)).await;
    }
    let other = g.propose(&run.thread, &run.head, (&g.parser, "input_parser"), user(42)).await.expect(202);
    g.vote(&g.alice, &other, VoteVerdict::Deny).await.unwrap();
    run.is_refused(user(42)).await;
    AttemptScenario::new(g).await.asks(user(42)).await.expect(202);
}

async fn two_gateways_do_not_both_use_the_last_attempt(scene: ApiScenario) {
    let g = &scene.gateway;
    let mut run = AttemptScenario::new(g).await;
    run.is_denied(user(42)).await;
    let another = scene.another().await;
    let path = format!("/v1/threads/{}/transitions", run.thread.as_str().unwrap());
    let ask = |attempt: u32| {
        let body = json!({"node": "planner", "parent": run.head, "patch": user(42), "attempt": attempt});
        async { g.post(&path, &g.planner, body).await.status }
    };
    let statuses = join_all((1..=6).map(ask)).await;
    assert_eq!(statuses.iter().filter(|it| **it == 202).count(), 1, "{statuses:?}");
    let thread = run.thread.as_str().unwrap().try_into().unwrap();
    let review = another.threads.overview(&thread).await.unwrap().review.unwrap();
    let transition = another.reviews.review(&review, &g.alice).await.unwrap().hold.transition;
    let held = json!({"transition": transition});
    another.reviews.vote(&g.alice.id, &review, &ballot(&held, VoteVerdict::Deny), None).await.unwrap();
    run.moves().await;
    run.is_refused(user(42)).await;
    scene.passes_an_audit().await;
}

async fn effect_is_stored_as_a_keyed_digest(scene: ApiScenario) {
    let g = &scene.gateway;
    let (one, two) = (AttemptScenario::new(g).await, AttemptScenario::new(g).await);
    let effect = async |run: &AttemptScenario<'_>| {
        let held = run.asks(user(42)).await.expect(202);
        let review = held["review"]["id"].as_str().unwrap().try_into().unwrap();
        g.service.reviews.review(&review, &g.alice).await.unwrap().hold.effect.unwrap()
    };
    assert_ne!(effect(&one).await, effect(&two).await, "the same guess gives another digest in each thread");
}

async fn audit_finds_another_effect(scene: ApiScenario) {
    let g = &scene.gateway;
    let run = AttemptScenario::new(g).await;
    let held = run.asks(user(42)).await.expect(202);
    let transition = held["transition"].as_str().unwrap().parse().unwrap();
    let id = held["review"]["id"].as_str().unwrap();
    scene.retells(id, |hold: Hold| Hold { effect: Some(transition), ..hold }).await;
    let findings = scene.findings().await;
    assert!(
        findings.iter().any(|it| it.contains("the effect of the review differs from its transition")),
        "{findings:?}"
    );
}

async fn reviewer_sees_earlier_denials(scene: ApiScenario) {
    let g = &scene.gateway;
    let ben = person(&g.service, "ben", &["reviewers"]).await;
    let mut run = AttemptScenario::new(g).await;
    let page = async |held: &Value| {
        let review = held["review"]["id"].as_str().unwrap().try_into().unwrap();
        g.service.reviews.review(&review, &g.alice).await.unwrap().denied_before
    };
    let held = run.asks(user(42)).await.expect(202);
    assert!(page(&held).await.is_none());
    let words = "user 42 is not the owner, and 4111111111111111 is not their card";
    let denial = Ballot { comment: Some(words.to_owned()), ..ballot(&held, VoteVerdict::Deny) };
    g.service
        .reviews
        .vote(&ben.id, &held["review"]["id"].as_str().unwrap().try_into().unwrap(), &denial, None)
        .await
        .unwrap();
    run.moves().await;
    let again = run.asks(user(42)).await.expect(202);
    let denied = page(&again).await.unwrap();
    assert_eq!((denied.times, denied.name.as_str(), denied.within), (1, "ben", 6 * HOUR));
    assert_eq!(denied.comment.as_deref(), Some("user 42 is not the owner, and [hidden] is not their card"));
    assert!(page(&held).await.is_none(), "nothing was denied before the first review");
    let html = shown(g, &again).await;
    for told in ["Denied before", "once in the 6 h before this review", "ben", "[hidden]"] {
        assert!(html.contains(told), "{told}");
    }
    assert!(!html.contains("4111111111111111"));
}

async fn shown(g: &TestGateway, held: &Value) -> String {
    let (_, secret) = g.service.identity.sign_in("alice", "correct horse battery".to_owned()).await.unwrap();
    let page = g.http.get(format!("{}/reviews/{}", g.url, held["review"]["id"].as_str().unwrap()));
    page.header("cookie", format!("countersign={secret}")).send().await.unwrap().text().await.unwrap()
}
