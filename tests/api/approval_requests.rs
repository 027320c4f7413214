//! Tests approval requests over HTTP: each is used at most once, by its own instance, exactly as it was approved.

use std::collections::BTreeSet;
use std::time::Duration;

use countersign_domain::identity::account::MachineRole;
use countersign_domain::reviews::edit::ReviewEdit;
use countersign_domain::reviews::{ExtensionRequest, VoteVerdict};
use countersign_service::error::Error;
use countersign_service::reviews::edit::EditRequest;
use futures_util::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};

use crate::gateway::{ApiResponse, TestGateway, ballot, source, token};
use crate::rules::ApiScenario;

on_both! {
    allowed_call_is_used_once_and_reported,
    held_call_is_used_after_its_approval_only,
    denied_call_is_never_used,
    call_is_used_by_one_of_many_concurrent_requests,
    request_is_invisible_to_every_other_token,
    approval_is_used_before_its_expiry_only,
    approval_is_not_used_under_a_new_policy,
    outcome_is_recorded_once_and_after_the_use,
    failed_call_uses_its_approval_up,
    call_is_not_repeated_after_its_lease,
    key_belongs_to_one_call,
    cancelled_request_is_not_decided,
    waiting_calls_do_not_block_each_other,
    thread_of_a_request_accepts_nothing_else,
    malformed_request_is_refused,
    review_ends_at_the_timeout_of_its_request,
    review_of_a_call_is_neither_edited_nor_extended,
    revoked_receipt_is_not_used,
    equal_calls_at_once_share_one_review_and_one_uses_its_approval,
    only_an_approval_that_can_be_used_is_shared,
    each_equal_call_that_the_policy_allows_has_a_request_of_its_own,
    call_without_approval_is_asked_three_times_only,
    token_whose_node_left_the_policy_is_told_so,
}

/// A flow in which the agent may read, must ask for refunds, and may delete nothing.
pub fn policy() -> String {
    r#"
flow = "payments"

[nodes.agent]
reads = []
writes = []
writer = true

[tools]
allow = ["search", "refund", "crm:*"]
hide = ["card"]

[[rules]]
name = "refunds"
tools = ["refund", "crm:refund"]
when = "true"
then = "hold"
reason = "A person approves each refund."

[approval]
ttl = "1h"
receipt_ttl = "5m"
write_lease = "1m"

[[approval.stages]]
groups = ["reviewers"]
need = 1
"#
    .to_owned()
}

pub struct Instance<'g> {
    pub g: &'g TestGateway,
    pub token: String,
}

impl<'g> Instance<'g> {
    pub async fn new(g: &'g TestGateway, name: &str) -> Self {
        Self { g, token: token(&g.service, name, MachineRole::Instance, &["agent"]).await }
    }

    pub async fn send(&self, method: Method, path: &str, key: Option<&str>, body: Option<&str>) -> ApiResponse {
        let mut request = self.g.http.request(method.clone(), format!("{}{path}", self.g.url)).bearer_auth(&self.token);
        if let Some(key) = key {
            request = request.header("idempotency-key", key);
        }
        if let Some(body) = body {
            request = request.header("content-type", "application/json").body(body.to_owned());
        }
        let response = request.send().await.unwrap();
        let kind = response.headers().get("content-type").map(|it| it.to_str().unwrap().to_owned());
        let answer = ApiResponse::of(response).await;
        let (kind, path) = (kind.unwrap_or_default(), path.split('?').next().unwrap_or_default());
        crate::description::check(method.as_str(), path, (answer.status, &kind, &answer.body));
        answer
    }

    pub async fn ask(&self, key: &str, body: &Value) -> ApiResponse {
        self.send(Method::POST, "/aap/v1/requests", Some(key), Some(&body.to_string())).await
    }

    /// Asks for a call that shares the requests of equal calls.
    async fn shares(&self, key: &str, body: &Value) -> Value {
        let answer = self.send(Method::POST, "/aap/v1/requests?share=true", Some(key), Some(&body.to_string())).await;
        assert!(matches!(answer.status, 200 | 201), "{:?}", answer.body);
        answer.body
    }

    pub async fn read(&self, id: &Value) -> ApiResponse {
        self.send(Method::GET, &path(id), None, None).await
    }

    async fn consume(&self, id: &Value, key: &str) -> ApiResponse {
        self.send(Method::POST, &format!("{}/consume", path(id)), Some(key), None).await
    }

    async fn report(&self, id: &Value, status: &str) -> ApiResponse {
        let body = json!({"status": status}).to_string();
        self.send(Method::POST, &format!("{}/outcome", path(id)), None, Some(&body)).await
    }

    pub async fn cancel(&self, id: &Value) -> ApiResponse {
        self.send(Method::DELETE, &path(id), None, None).await
    }

    /// Asks for a call that the policy holds.
    pub async fn asks_for_refund(&self, key: &str) -> Value {
        self.ask(key, &call("refund", json!({"amount": 40}))).await.expect(201)
    }

    async fn asks_to_search(&self, key: &str) -> Value {
        self.ask(key, &call("search", json!({"q": "Nordwind"}))).await.expect(201)
    }
}

fn path(id: &Value) -> String {
    format!("/aap/v1/requests/{}", id["id"].as_str().unwrap())
}

fn call(tool: &str, arguments: Value) -> Value {
    json!({"tool": tool, "arguments": arguments, "timeout": "10m", "agent_reasoning": "the order is late", "context": {"call_id": "c-1"}})
}

fn code(answer: &ApiResponse) -> (u16, &str) {
    (answer.status, answer.body["error"]["code"].as_str().unwrap_or_default())
}

/// Returns the review of a request as the answer to its proposal.
pub async fn held(g: &TestGateway, id: &Value) -> Value {
    let thread = format!("request:{}", id["id"].as_str().unwrap());
    let overview = g.service.threads.overview(&thread.as_str().try_into().unwrap()).await.unwrap();
    let review = overview.review.unwrap();
    let facts = g.service.reviews.review(&review, &g.alice).await.unwrap();
    json!({"transition": facts.hold.transition, "review": {"id": review}})
}

/// Returns the call that reviewers of a request see.
pub async fn presented(g: &TestGateway, id: &Value) -> Value {
    let review = held(g, id).await["review"]["id"].as_str().unwrap().try_into().unwrap();
    let call = g.service.reviews.review(&review, &g.alice).await.unwrap().transition.tool.unwrap();
    json!({"tool": call.name, "arguments": call.arguments})
}

pub async fn decides(g: &TestGateway, id: &Value, verdict: VoteVerdict, comment: Option<&str>) {
    let held = held(g, id).await;
    let review = held["review"]["id"].as_str().unwrap().try_into().unwrap();
    let ballot = countersign_domain::reviews::Ballot { comment: comment.map(str::to_owned), ..ballot(&held, verdict) };
    g.service.reviews.vote(&g.alice.id, &review, &ballot, None).await.unwrap();
}

async fn allowed_call_is_used_once_and_reported(scene: ApiScenario) {
    let g = &scene.gateway;
    let it = Instance::new(g, "bot").await;
    let asked = it.asks_to_search("k1").await;
    assert_eq!((&asked["status"], &asked["tool"]), (&json!("approved"), &json!("search")));
    assert_eq!((&asked["arguments"], &asked["context"]), (&json!({"q": "Nordwind"}), &json!({"call_id": "c-1"})));
    assert_eq!(asked["agent_reasoning"], "the order is late");
    let again = it.ask("k1", &call("search", json!({"q": "Nordwind"}))).await.expect(200);
    assert_eq!(again, asked);
    let used = it.consume(&asked, "c1").await.expect(200);
    assert!(used["consumption"]["consumed_at"].is_string() && used["arguments"] == asked["arguments"]);
    assert_eq!(it.consume(&asked, "c1").await.expect(200), used, "the same key within the lease");
    let again = g.http.post(format!("{}{}/consume", g.url, path(&asked))).bearer_auth(&it.token);
    let again = again.header("idempotency-key", "c1").send().await.unwrap();
    assert_eq!(again.headers()["idempotency-replayed"], "true");
    assert_eq!(code(&it.consume(&asked, "c2").await), (409, "already_consumed"));
    let done = it.report(&asked, "succeeded").await.expect(200);
    assert_eq!(done["consumption"]["outcome"]["status"], "succeeded");
    assert_eq!(code(&it.consume(&asked, "c1").await), (409, "already_consumed"), "the call has ended");
    assert_eq!(it.read(&asked).await.expect(200), done);
    scene.passes_an_audit().await;
}

async fn held_call_is_used_after_its_approval_only(scene: ApiScenario) {
    let g = &scene.gateway;
    let it = Instance::new(g, "bot").await;
    let body =
        json!({"tool": "refund", "server": "crm", "arguments": {"amount": 40, "card": "4999"}, "timeout": "1h30m"});
    let asked = it.ask("k1", &body).await.expect(201);
    assert_eq!(
        (&asked["status"], &asked["server"], &asked["decision"]),
        (&json!("pending"), &json!("crm"), &Value::Null)
    );
    assert_eq!(asked["arguments"]["card"], "4999", "the sender's own value");
    assert_eq!(code(&it.consume(&asked, "c1").await), (409, "not_approved"));
    decides(g, &asked, VoteVerdict::Approve, Some("call them first")).await;
    let response =
        g.http.get(format!("{}{}?wait=5s", g.url, path(&asked))).bearer_auth(&it.token).send().await.unwrap();
    let receipt = response.headers().get("countersign-receipt").map(|it| it.to_str().unwrap().to_owned());
    assert!(receipt.is_some_and(|it| it.split('.').count() == 3));
    let approved = ApiResponse::of(response).await.expect(200);
    assert_eq!((&approved["status"], &approved["decision"]["note"]), (&json!("approved"), &json!("call them first")));
    let used = it.consume(&asked, "c1").await.expect(200);
    assert_eq!(used["arguments"], body["arguments"]);
    it.report(&asked, "succeeded").await.expect(200);
    scene.passes_an_audit().await;
}

async fn denied_call_is_never_used(scene: ApiScenario) {
    let g = &scene.gateway;
    let it = Instance::new(g, "bot").await;
    let refused = it.ask("k1", &call("delete", json!({"card": "4999"}))).await.expect(201);
    assert_eq!((&refused["status"], &refused["arguments"]["card"]), (&json!("denied"), &json!("4999")));
    assert!(refused["decision"]["note"].as_str().is_some_and(|it| !it.is_empty()));
    let listed = it.ask("k0", &call("remove", json!({"order": 7}))).await.expect(201);
    assert_eq!(it.read(&listed).await.expect(200), listed, "with the reason");
    let asked = it.asks_for_refund("k2").await;
    decides(g, &asked, VoteVerdict::Deny, Some("not this week")).await;
    let denied = it.read(&asked).await.expect(200);
    assert_eq!((&denied["status"], &denied["decision"]["note"]), (&json!("denied"), &json!("not this week")));
    for id in [&refused, &asked] {
        let answer = it.consume(id, "c1").await;
        assert!(matches!(code(&answer), (409, "not_approved") | (404, "not_found")), "{:?}", answer.body);
        assert_ne!(it.report(id, "succeeded").await.status, 200);
    }
    scene.passes_an_audit().await;
}

async fn call_is_used_by_one_of_many_concurrent_requests(scene: ApiScenario) {
    let g = &scene.gateway;
    let it = Instance::new(g, "bot").await;
    let asked = it.asks_to_search("k1").await;
    let keys: Vec<String> = (0..20).map(|it| format!("c{it}")).collect();
    let answers = join_all(keys.iter().map(|key| it.consume(&asked, key))).await;
    assert_eq!(answers.iter().filter(|it| it.status == 200).count(), 1);
    assert!(
        answers
            .iter()
            .filter(|it| it.status != 200)
            .all(|it| code(it) == (409, "already_consumed") || it.status == 503)
    );
    let again = call("search", json!({}));
    let together = join_all((0..20).map(|_| it.ask("k2", &again))).await;
    let ids: BTreeSet<String> = together.iter().filter_map(|it| it.body["id"].as_str().map(str::to_owned)).collect();
    assert_eq!(ids.len(), 1, "one key is one request");
    assert_eq!(together.iter().filter(|it| it.status == 201).count(), 1, "and has one first answer");
    let url = format!("{}{}/consume", g.url, path(&together[0].body));
    let used =
        join_all((0..8).map(|_| g.http.post(&url).bearer_auth(&it.token).header("idempotency-key", "c").send())).await;
    let firsts =
        used.iter().flatten().filter(|it| it.status() == 200 && it.headers().get("idempotency-replayed").is_none());
    assert_eq!(firsts.count(), 1);
    scene.passes_an_audit().await;
}

async fn request_is_invisible_to_every_other_token(scene: ApiScenario) {
    let g = &scene.gateway;
    let it = Instance::new(g, "bot").await;
    let other = Instance::new(g, "other").await;
    let asked = it.asks_to_search("k1").await;
    for answer in [
        other.read(&asked).await,
        other.consume(&asked, "c1").await,
        other.report(&asked, "succeeded").await,
        other.cancel(&asked).await,
    ] {
        assert_eq!(code(&answer), (404, "not_found"));
    }
    let own = other.asks_to_search("k1").await;
    assert_ne!(own["id"], asked["id"], "keys belong to their instance");
    for token in [&g.host, &g.planner, &g.writer, &g.admin, &g.auditor] {
        let stranger = Instance { g, token: token.clone() };
        assert_eq!(stranger.read(&asked).await.status, 403);
    }
    assert_eq!(code(&Instance { g, token: "cs_nobody".to_owned() }.read(&asked).await), (401, "unauthenticated"));
    it.consume(&asked, "c1").await.expect(200);
}

async fn approval_is_used_before_its_expiry_only(scene: ApiScenario) {
    let g = &scene.gateway;
    let it = Instance::new(g, "bot").await;
    let (allowed, asked) = (it.asks_to_search("k1").await, it.asks_for_refund("k2").await);
    decides(g, &asked, VoteVerdict::Approve, None).await;
    g.pass(Duration::from_secs(5 * 60 + 1));
    for id in [&allowed, &asked] {
        assert_eq!(it.read(id).await.expect(200)["status"], "approved");
        assert_eq!(code(&it.consume(id, "c1").await), (409, "approval_expired"));
    }
}

async fn approval_is_not_used_under_a_new_policy(scene: ApiScenario) {
    let g = &scene.gateway;
    let it = Instance::new(g, "bot").await;
    let (allowed, asked, open) =
        (it.asks_to_search("k1").await, it.asks_for_refund("k2").await, it.asks_for_refund("k3").await);
    decides(g, &asked, VoteVerdict::Approve, None).await;
    let stricter = policy().replace("\"search\", ", "");
    let by = "tests".try_into().unwrap();
    g.service.policy_changes.activate_policy(&by, None, source(&stricter), Default::default()).await.unwrap();
    for id in [&allowed, &asked] {
        let answer = it.consume(id, "c1").await;
        assert_eq!(code(&answer), (409, "not_approved"), "{}", answer.body);
        assert!(answer.body["error"]["message"].as_str().unwrap().contains("policy_mismatch"));
    }
    let undecided = it.read(&open).await.expect(200);
    assert_eq!(undecided["status"], "pending");
    // The review is restated under the new policy, and the request follows it.
    let review = held(g, &open).await["review"]["id"].as_str().unwrap().try_into().unwrap();
    g.service.reviews.rejudge_hold(&review).await.unwrap();
    decides(g, &open, VoteVerdict::Approve, None).await;
    it.consume(&open, "c1").await.expect(200);
}

async fn token_whose_node_left_the_policy_is_told_so(scene: ApiScenario) {
    let g = &scene.gateway;
    let it = Instance::new(g, "bot").await;
    let renamed = policy().replace("[nodes.agent]", "[nodes.planner]");
    let by = "tests".try_into().unwrap();
    g.service.policy_changes.activate_policy(&by, None, source(&renamed), Default::default()).await.unwrap();
    let answer = it.ask("k1", &call("search", json!({}))).await;
    assert_eq!(code(&answer), (403, "forbidden"), "{}", answer.body);
    assert!(answer.body["error"]["message"].as_str().unwrap().contains("no node of this token"), "{}", answer.body);
}

async fn outcome_is_recorded_once_and_after_the_use(scene: ApiScenario) {
    let it = Instance::new(&scene.gateway, "bot").await;
    let asked = it.asks_to_search("k1").await;
    assert_eq!(code(&it.report(&asked, "succeeded").await), (409, "not_consumed"));
    it.consume(&asked, "c1").await.expect(200);
    let done = it.report(&asked, "succeeded").await.expect(200);
    assert_eq!(it.report(&asked, "succeeded").await.expect(200), done);
    assert_eq!(code(&it.report(&asked, "failed").await), (409, "outcome_conflict"));
}

async fn failed_call_uses_its_approval_up(scene: ApiScenario) {
    let g = &scene.gateway;
    let it = Instance::new(g, "bot").await;
    let asked = it.asks_to_search("k1").await;
    it.consume(&asked, "c1").await.expect(200);
    let done = it.report(&asked, "failed").await.expect(200);
    assert_eq!(done["consumption"]["outcome"]["status"], "failed");
    for key in ["c1", "c2"] {
        assert_eq!(code(&it.consume(&asked, key).await), (409, "already_consumed"));
    }
    let thread = format!("request:{}", asked["id"].as_str().unwrap());
    let overview = g.service.threads.overview(&thread.as_str().try_into().unwrap()).await.unwrap();
    assert!(overview.thread.closed.is_some(), "the thread of an ended request is closed");
    scene.passes_an_audit().await;
}

async fn call_is_not_repeated_after_its_lease(scene: ApiScenario) {
    let g = &scene.gateway;
    let it = Instance::new(g, "bot").await;
    let asked = it.asks_to_search("k1").await;
    it.consume(&asked, "c1").await.expect(200);
    g.pass(Duration::from_secs(61));
    assert_eq!(code(&it.consume(&asked, "c1").await), (409, "already_consumed"), "the outcome is unknown");
    it.report(&asked, "succeeded").await.expect(200);
    scene.passes_an_audit().await;
}

async fn key_belongs_to_one_call(scene: ApiScenario) {
    let it = Instance::new(&scene.gateway, "bot").await;
    let sent = r#"{"tool": "search", "arguments": {"a": 1, "b": "x"}, "timeout": "10m"}"#;
    let create = |body: &'static str| it.send(Method::POST, "/aap/v1/requests", Some("k1"), Some(body));
    let first = create(sent).await.expect(201);
    let same =
        create(r#"{"timeout": "10m", "arguments": {"b": "\u0078", "a": 1.0}, "tool": "search"}"#).await.expect(200);
    assert_eq!(same, first, "the same values in another order and spelling");
    for other in [
        r#"{"tool": "search", "arguments": {"a": 2, "b": "x"}, "timeout": "10m"}"#,
        r#"{"tool": "search", "arguments": {"a": "1", "b": "x"}, "timeout": "10m"}"#,
        r#"{"tool": "search", "arguments": {"a": 1, "b": "x "}, "timeout": "10m"}"#,
        r#"{"tool": "search", "arguments": {"a": 1, "b": "x"}, "timeout": "11m"}"#,
        r#"{"tool": "search", "server": "crm", "arguments": {"a": 1, "b": "x"}, "timeout": "10m"}"#,
        r#"{"tool": "search", "arguments": {"a": 1, "b": "x"}, "timeout": "10m", "context": {}}"#,
        r#"{"tool": "search", "arguments": {"a": 1, "b": "x"}, "timeout": "10m", "agent_reasoning": "y"}"#,
    ] {
        assert_eq!(code(&create(other).await), (409, "idempotency_conflict"), "{other}");
    }
    assert_eq!(it.read(&first).await.expect(200)["arguments"], json!({"a": 1, "b": "x"}));
}

async fn cancelled_request_is_not_decided(scene: ApiScenario) {
    let g = &scene.gateway;
    let it = Instance::new(g, "bot").await;
    let asked = it.asks_for_refund("k1").await;
    let held = held(g, &asked).await;
    let cancelled = it.cancel(&asked).await.expect(200);
    assert_eq!(cancelled["status"], "cancelled");
    assert_eq!(it.cancel(&asked).await.expect(200), cancelled);
    assert!(g.vote(&g.alice, &held, VoteVerdict::Approve).await.is_err());
    assert_eq!(code(&it.consume(&asked, "c1").await), (409, "not_approved"));
    let allowed = it.asks_to_search("k2").await;
    assert_eq!(code(&it.cancel(&allowed).await), (409, "already_terminal"));
    scene.passes_an_audit().await;
}

async fn waiting_calls_do_not_block_each_other(scene: ApiScenario) {
    let it = Instance::new(&scene.gateway, "bot").await;
    let keys: Vec<String> = (0..12).map(|it| format!("k{it}")).collect();
    let ask = async |(number, key): (usize, &String)| {
        if number % 2 == 0 { it.asks_for_refund(key).await } else { it.asks_to_search(key).await }
    };
    let all = join_all(keys.iter().enumerate().map(ask)).await;
    for (number, asked) in all.iter().enumerate() {
        let expected = if number % 2 == 0 { "pending" } else { "approved" };
        assert_eq!(asked["status"], expected);
        if number % 2 == 1 {
            it.consume(asked, "c").await.expect(200);
        }
    }
}

async fn thread_of_a_request_accepts_nothing_else(scene: ApiScenario) {
    let g = &scene.gateway;
    let it = Instance::new(g, "bot").await;
    let asked = it.asks_to_search("k1").await;
    let thread = json!(format!("request:{}", asked["id"].as_str().unwrap()));
    let agent = token(&g.service, "agent", MachineRole::Agent, &["agent"]).await;
    let head = g.get(&format!("/v1/threads/{}", thread.as_str().unwrap()), &g.host).await.expect(200);
    let moved = g.propose(&thread, &head["transition"], (&agent, "agent"), json!({"a": 1})).await;
    assert_eq!(moved.status, 404, "{}", moved.body);
    let taken = json!({"flow": "payments", "state": {}, "thread": "request:0d4f7c7e-58c1-8f0a-9b52-9a3c6d1f2e47"});
    assert_eq!(g.post("/v1/threads", &g.host, taken).await.status, 400);
    let ask = json!({"thread": thread, "transition": head["transition"], "write_id": "w-1"});
    let other = token(&g.service, "other-writer", MachineRole::Writer, &["agent"]).await;
    assert_eq!(g.post("/v1/verify", &other, ask).await.code(), "forbidden", "no writer uses the approval");
    it.consume(&asked, "c1").await.expect(200);
}

async fn malformed_request_is_refused(scene: ApiScenario) {
    let it = Instance::new(&scene.gateway, "bot").await;
    for body in [
        "{}",
        "not json",
        r#"{"tool": "search", "arguments": {}, "arguments": {"a": 1}, "timeout": "10m"}"#,
        r#"{"tool": "search", "arguments": {"a": 1, "a": 2}, "timeout": "10m"}"#,
        r#"{"tool": "search", "arguments": {}, "timeout": "10m", "server": null}"#,
        r#"{"tool": "search", "arguments": {}, "timeout": "10m", "context": null}"#,
        r#"{"tool": "search", "arguments": [], "timeout": "10m"}"#,
        r#"{"tool": "search", "arguments": {}, "timeout": "soon"}"#,
        r#"{"tool": "search", "arguments": {}, "timeout": "31d"}"#,
        r#"{"tool": "", "arguments": {}, "timeout": "10m"}"#,
        r#"{"tool": "search", "arguments": {}, "timeout": "10m", "agent_reasoning": " "}"#,
        r#"{"tool": "search", "arguments": {"a": 0.1e999}, "timeout": "10m"}"#,
        r#"{"tool": "search", "arguments": {}, "timeout": "10m", "more": 1}"#,
        r#"{"tool": "b", "server": "crm:a", "arguments": {}, "timeout": "10m"}"#,
    ] {
        let answer = it.send(Method::POST, "/aap/v1/requests", Some("k1"), Some(body)).await;
        assert_eq!(answer.status, 400, "{body}: {}", answer.body);
        assert!(answer.body["error"]["message"].as_str().is_some_and(|it| !it.is_empty()));
    }
    let body = call("search", json!({})).to_string();
    let keyless = it.send(Method::POST, "/aap/v1/requests", None, Some(&body)).await;
    assert_eq!(code(&keyless), (400, "missing_idempotency_key"));
    let asked = it.asks_to_search("k2").await;
    let keyless = it.send(Method::POST, &format!("{}/consume", path(&asked)), None, None).await;
    assert_eq!(code(&keyless), (400, "missing_idempotency_key"));
    for id in ["x", "0D4F7C7E-58C1-8F0A-9B52-9A3C6D1F2E47", "0d4f7c7e-58c1-8f0a-9b52-9a3c6d1f2e47"] {
        assert_eq!(code(&it.read(&json!({"id": id})).await), (404, "not_found"), "{id}");
    }
}

async fn review_ends_at_the_timeout_of_its_request(scene: ApiScenario) {
    let g = &scene.gateway;
    let it = Instance::new(g, "bot").await;
    let asked = it.ask("k1", &json!({"tool": "refund", "arguments": {}, "timeout": "1m"})).await.expect(201);
    let long = it.ask("k2", &json!({"tool": "refund", "arguments": {}, "timeout": "24h"})).await.expect(201);
    let held = held(g, &asked).await;
    g.pass(Duration::from_secs(61));
    assert!(g.vote(&g.alice, &held, VoteVerdict::Approve).await.is_err());
    assert_eq!(it.read(&asked).await.expect(200)["status"], "expired");
    assert_eq!(it.read(&long).await.expect(200)["status"], "pending");
    g.pass(Duration::from_secs(3600));
    assert_eq!(it.read(&long).await.expect(200)["status"], "expired", "the policy's own limit");
    scene.passes_an_audit().await;
}

async fn review_of_a_call_is_neither_edited_nor_extended(scene: ApiScenario) {
    let g = &scene.gateway;
    let it = Instance::new(g, "bot").await;
    let asked = it.asks_for_refund("k1").await;
    let held = held(g, &asked).await;
    let review = held["review"]["id"].as_str().unwrap().try_into().unwrap();
    let hold = g.service.reviews.review(&review, &g.alice).await.unwrap().hold;
    let (transition, deadline) = (hold.transition, hold.expires_at);
    let until = deadline.plus(Duration::from_secs(60));
    let longer = ExtensionRequest { transition, deadline, until, reason: "the bank is closed".to_owned() };
    let extended = g.service.reviews.extend(&g.alice.id, &review, &longer).await;
    assert!(matches!(extended, Err(Error::WrongState(why)) if why.contains("until this deadline")), "{extended:?}");
    let edit = ReviewEdit { values: Default::default(), more: Some(json!({"x": 1})) };
    let edit = EditRequest { transition, edit, why: "better so".to_owned() };
    let edited = g.service.reviews.rewrite(&g.alice.id, &review, &edit).await;
    assert!(matches!(edited, Err(Error::WrongState(why)) if why.contains("exactly this call")), "{edited:?}");
    assert_eq!(it.read(&asked).await.expect(200)["status"], "pending");
}

async fn revoked_receipt_is_not_used(scene: ApiScenario) {
    let g = &scene.gateway;
    let it = Instance::new(g, "bot").await;
    let asked = it.asks_for_refund("k1").await;
    let held = held(g, &asked).await;
    decides(g, &asked, VoteVerdict::Approve, None).await;
    let decision = g.get(&format!("/v1/transitions/{}/decision", held["transition"].as_str().unwrap()), &g.host).await;
    let jti = decision.expect(200)["nonce"].as_str().unwrap().to_owned();
    g.post(&format!("/v1/receipts/{jti}/revocation"), &g.admin, json!({"reason": "a mistake"})).await.expect(200);
    assert_eq!(code(&it.consume(&asked, "c1").await), (409, "not_approved"));
}

async fn equal_calls_at_once_share_one_review_and_one_uses_its_approval(scene: ApiScenario) {
    let g = &scene.gateway;
    let it = Instance::new(g, "bot").await;
    let other = Instance::new(g, "other").await;
    let refund = call("refund", json!({"amount": 40}));
    let mut ids = Vec::new();
    for round in 0..3 {
        let keys: Vec<String> = (0..12).map(|it| format!("{round}-{it}")).collect();
        let asked = join_all(keys.iter().map(|key| it.shares(key, &refund))).await;
        let shared: BTreeSet<&str> = asked.iter().map(|it| it["id"].as_str().unwrap()).collect();
        assert_eq!(shared.len(), 1, "{shared:?}");
        assert!(!ids.contains(&asked[0]["id"]), "a used approval is shared no more");
        ids.push(asked[0]["id"].clone());
        assert_eq!(it.shares(&keys[0], &refund).await["id"], asked[0]["id"], "the same key again");
        assert_ne!(other.shares("k", &refund).await["id"], asked[0]["id"]);
        assert_ne!(it.shares("k", &call("refund", json!({"amount": 41}))).await["id"], asked[0]["id"]);
        decides(g, &asked[0], VoteVerdict::Approve, None).await;
        assert_eq!(it.shares("late", &refund).await["id"], asked[0]["id"], "the approval is not used yet");
        let used = join_all(keys.iter().map(|key| it.consume(&asked[0], key))).await;
        assert_eq!(used.iter().filter(|it| it.status == 200).count(), 1);
    }
    let unshared = it.ask("k1", &refund).await.expect(201);
    assert_ne!(it.shares("k2", &refund).await["id"], unshared["id"], "other requests are not shared");
    scene.passes_an_audit().await;
}

async fn only_an_approval_that_can_be_used_is_shared(scene: ApiScenario) {
    let g = &scene.gateway;
    let it = Instance::new(g, "bot").await;
    let refund = call("refund", json!({"amount": 40}));
    let denied = it.shares("k1", &refund).await;
    decides(g, &denied, VoteVerdict::Deny, Some("not on a Friday")).await;
    assert_eq!(it.shares("k2", &refund).await["decision"]["note"], "not on a Friday", "until the deadline");
    g.pass(Duration::from_secs(601));
    let expired = it.shares("k3", &refund).await;
    assert_eq!(expired["status"], "pending");
    decides(g, &expired, VoteVerdict::Approve, None).await;
    g.pass(Duration::from_secs(301));
    let revoked = it.shares("k4", &refund).await;
    assert_eq!(revoked["status"], "pending", "the approval has expired");
    let review = held(g, &revoked).await;
    decides(g, &revoked, VoteVerdict::Approve, None).await;
    let decision =
        g.get(&format!("/v1/transitions/{}/decision", review["transition"].as_str().unwrap()), &g.host).await;
    let jti = decision.expect(200)["nonce"].as_str().unwrap().to_owned();
    g.post(&format!("/v1/receipts/{jti}/revocation"), &g.admin, json!({"reason": "a mistake"})).await.expect(200);
    let cancelled = it.shares("k5", &refund).await;
    assert_eq!(cancelled["status"], "pending", "the receipt is revoked");
    it.cancel(&cancelled).await.expect(200);
    let outdated = it.shares("k6", &refund).await;
    assert_eq!(outdated["status"], "pending");
    decides(g, &outdated, VoteVerdict::Approve, None).await;
    let stricter = policy().replace("\"search\", ", "");
    let by = "tests".try_into().unwrap();
    g.service.policy_changes.activate_policy(&by, None, source(&stricter), Default::default()).await.unwrap();
    assert_eq!(it.shares("k7", &refund).await["status"], "pending", "the policy is a new one");
    scene.passes_an_audit().await;
}

async fn each_equal_call_that_the_policy_allows_has_a_request_of_its_own(scene: ApiScenario) {
    let it = Instance::new(&scene.gateway, "bot").await;
    let search = call("search", json!({"q": "Nordwind"}));
    let keys: Vec<String> = (0..8).map(|it| format!("k{it}")).collect();
    let asked = join_all(keys.iter().map(|key| it.shares(key, &search))).await;
    let ids: BTreeSet<&str> = asked.iter().map(|it| it["id"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), 8);
    for (key, asked) in keys.iter().zip(&asked) {
        assert_eq!(it.shares(key, &search).await["id"], asked["id"], "the same key again");
        it.consume(asked, key).await.expect(200);
    }
    scene.passes_an_audit().await;
}

async fn call_without_approval_is_asked_three_times_only(scene: ApiScenario) {
    let g = &scene.gateway;
    let (it, other) = (Instance::new(g, "bot").await, Instance::new(g, "other").await);
    let denied = it.asks_for_refund("k1").await;
    decides(g, &denied, VoteVerdict::Deny, Some("not this week")).await;
    it.cancel(&it.asks_for_refund("k2").await).await.expect(200);
    let third = it.asks_for_refund("k3").await;
    let review = held(g, &third).await["review"]["id"].as_str().unwrap().try_into().unwrap();
    let earlier = g.service.reviews.review(&review, &g.alice).await.unwrap().denied_before.unwrap();
    assert_eq!((earlier.times, earlier.comment.as_deref()), (1, Some("not this week")));
    decides(g, &third, VoteVerdict::Deny, None).await;
    let told = it.ask("k4", &call("refund", json!({"amount": 40}))).await.expect(201);
    assert_eq!(told["status"], "denied");
    assert!(told["decision"]["note"].as_str().unwrap().contains("used up its attempts"), "{told}");
    // Other calls, and those of other instances, are counted by themselves.
    assert_eq!(it.ask("k5", &call("refund", json!({"amount": 41}))).await.expect(201)["status"], "pending");
    assert_eq!(other.asks_for_refund("k1").await["status"], "pending");
    g.pass(Duration::from_secs(25 * 3600));
    assert_eq!(it.asks_for_refund("k6").await["status"], "pending");
    scene.passes_an_audit().await;
}
