//! `Idempotency-Key`: a POST that is sent again has one effect and one answer: on both databases.

mod watched;

use std::sync::Arc;
use std::time::Duration;

use countersign_domain::identity::account::MachineRole;

use countersign::worker::{deliver, prune};
use countersign_service::audit::audit;
use countersign_store::row::Table;
use countersign_store::{RowFilter, Store as _};
use countersign_web::api::openapi::KEYLESS;
use countersign_web::auth::permissions::TABLE;
use futures_util::future::join_all;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::amendments::guarded;
use crate::gateway::{SCHEMA, TestGateway, person, token};
use crate::interrupts::asked;
use watched::{IdempotencyScenario, InjectedFault};

/// The planner makes branches as well.
fn forking() -> String {
    guarded(1).replacen("rollback = true\n", "rollback = true\nfork = true\n", 1)
}

on_both! {
    in IdempotencyScenario;
    repeated_request_gets_the_same_bytes(crate::gateway::POLICY),
    twenty_at_once_under_one_key_have_one_effect(crate::gateway::POLICY),
    twenty_at_once_on_two_gateways_have_one_effect(crate::gateway::POLICY),
    concurrent_request_with_the_same_key_is_refused(crate::gateway::POLICY),
    a_crash_leaves_both_the_effect_and_its_answer_or_neither(crate::gateway::POLICY),
    idempotency_key_belongs_to_one_token_and_path(crate::gateway::POLICY),
    failed_response_is_not_stored(crate::gateway::POLICY),
    every_post_stores_its_answer_in_the_transaction_of_its_effect(super::forking()),
    expired_idempotency_key_can_be_used_again(crate::gateway::POLICY),
    response_without_effect_is_not_stored_for_every_key(crate::attacks::policy_with("protected = [", "protected = [\"raw_text\", ")),
}

/// A response, byte for byte, and whether its header marks it as repeated.
#[derive(Clone, PartialEq, Eq, Debug)]
struct ExactResponse {
    status: StatusCode,
    body: String,
    again: bool,
}

impl ExactResponse {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    fn code(&self) -> String {
        self.json()["code"].as_str().unwrap_or_default().to_owned()
    }

    fn as_first(&self) -> (StatusCode, &str) {
        (self.status, &self.body)
    }
}

async fn send(g: &TestGateway, path: &str, token: &str, (key, body): (&str, &Value)) -> ExactResponse {
    let request = g.http.request(Method::POST, format!("{}{path}", g.url)).bearer_auth(token);
    let request = request.header("Idempotency-Key", key).header("content-type", "application/json");
    let response = request.body(body.to_string()).send().await.unwrap();
    let again = response.headers().get("idempotency-replayed").is_some_and(|it| it == "true");
    ExactResponse { status: response.status(), again, body: response.text().await.unwrap() }
}

fn new_thread() -> Value {
    json!({"flow": "payments", "state": {"requested_action": "none", "target_user_id": 17}})
}

/// Returns the number of events of this type in the log.
async fn told(g: &TestGateway, kind: &str) -> usize {
    while g.service.log.sequence().await.unwrap() > 0 {}
    let all = g.get("/v1/events?limit=500", &g.auditor).await.expect(200);
    all["events"].as_array().unwrap().iter().filter(|it| it["type"] == kind).count()
}

async fn passes_an_audit(scene: &IdempotencyScenario) {
    let keys = scene.gateway.service.core.keys().unwrap();
    let report = audit(&*scene.store, &keys, scene.gateway.service.core.now()).await.unwrap();
    assert!(report.findings.is_empty(), "{:?}", report.findings);
}

async fn repeated_request_gets_the_same_bytes(scene: IdempotencyScenario) {
    let g = &scene.gateway;
    let first = send(g, "/v1/threads", &g.host, ("k", &new_thread())).await;
    assert_eq!((first.status, first.again), (StatusCode::CREATED, false), "{}", first.body);
    for _ in 0..3 {
        let again = send(g, "/v1/threads", &g.host, ("k", &new_thread())).await;
        assert_eq!((again.as_first(), again.again), (first.as_first(), true));
    }
    assert_eq!(told(g, "thread.created").await, 1);
    let other = json!({"flow": "payments", "state": {"requested_action": "none", "target_user_id": 18}});
    let refused = send(g, "/v1/threads", &g.host, ("k", &other)).await;
    assert_eq!((refused.status.as_u16(), refused.code().as_str()), (422, "idempotency_key_reused"));
    let another = send(g, "/v1/threads", &g.host, ("l", &new_thread())).await;
    assert_ne!(another.json()["thread"], first.json()["thread"]);
    assert_eq!(told(g, "thread.created").await, 2);
    passes_an_audit(&scene).await;
}

async fn twenty_at_once_under_one_key_have_one_effect(scene: IdempotencyScenario) {
    let g = &scene.gateway;
    let body = new_thread();
    let all = join_all((0..20).map(|_| send(g, "/v1/threads", &g.host, ("race", &body)))).await;
    let made: Vec<_> = all.iter().filter(|it| it.status == StatusCode::CREATED).collect();
    assert!(made.iter().all(|it| it.body == made[0].body), "{made:?}");
    for other in all.iter().filter(|it| it.status != StatusCode::CREATED) {
        assert_eq!((other.status.as_u16(), other.code().as_str()), (409, "request_in_progress"));
    }
    assert_eq!(told(g, "thread.created").await, 1);
}

async fn twenty_at_once_on_two_gateways_have_one_effect(scene: IdempotencyScenario) {
    let (g, other) = (&scene.gateway, scene.another().await);
    let body = new_thread();
    let urls = (0..20).map(|at| if at % 2 == 0 { g.url.as_str() } else { other.as_str() });
    let asks = urls.map(|url| {
        let request = g.http.post(format!("{url}/v1/threads")).bearer_auth(&g.host).header("Idempotency-Key", "race");
        async { request.json(&body).send().await.unwrap() }
    });
    let mut made = Vec::new();
    for response in join_all(asks).await {
        let (status, body) = (response.status().as_u16(), response.text().await.unwrap());
        match status {
            201 => made.push(body),
            _ => assert!(status == 409 && body.contains("request_in_progress"), "{status} {body}"),
        }
    }
    assert!(!made.is_empty() && made.iter().all(|it| *it == made[0]), "{made:?}");
    assert_eq!(told(g, "thread.created").await, 1);
    passes_an_audit(&scene).await;
}

async fn concurrent_request_with_the_same_key_is_refused(scene: IdempotencyScenario) {
    let g = &scene.gateway;
    let (here, go_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    scene.store.watching.expect(InjectedFault::Tarries(here.clone(), go_on.clone()));
    let body = new_thread();
    let first = send(g, "/v1/threads", &g.host, ("slow", &body));
    let meanwhile = async {
        here.notified().await;
        let second = send(g, "/v1/threads", &g.host, ("slow", &body)).await;
        go_on.notify_one();
        second
    };
    let (first, second) = tokio::join!(first, meanwhile);
    assert_eq!((second.status.as_u16(), second.code().as_str()), (409, "request_in_progress"));
    assert_eq!(first.status, StatusCode::CREATED);
    assert_eq!(send(g, "/v1/threads", &g.host, ("slow", &body)).await.as_first(), first.as_first());
}

async fn a_crash_leaves_both_the_effect_and_its_answer_or_neither(scene: IdempotencyScenario) {
    let g = &scene.gateway;
    scene.store.watching.expect(InjectedFault::Before);
    let lost = send(g, "/v1/threads", &g.host, ("a", &new_thread())).await;
    assert_eq!(lost.status, StatusCode::INTERNAL_SERVER_ERROR);
    assert!(lost.json()["detail"].as_str().unwrap().contains("may or may not have been carried out"), "{}", lost.body);
    assert_eq!(told(g, "thread.created").await, 0);
    let made = send(g, "/v1/threads", &g.host, ("a", &new_thread())).await;
    assert_eq!((made.status, made.again), (StatusCode::CREATED, false));
    scene.store.watching.expect(InjectedFault::After);
    let unsure = send(g, "/v1/threads", &g.host, ("b", &new_thread())).await;
    assert_eq!((unsure.status, unsure.again), (StatusCode::CREATED, true), "it was written, and it looks");
    assert_eq!(send(g, "/v1/threads", &g.host, ("b", &new_thread())).await, unsure);
    assert_eq!(told(g, "thread.created").await, 2);
}

async fn idempotency_key_belongs_to_one_token_and_path(scene: IdempotencyScenario) {
    let g = &scene.gateway;
    let second = token(&g.service, "another", MachineRole::Host, &[]).await;
    let mine = send(g, "/v1/threads", &g.host, ("k", &new_thread())).await;
    let theirs = send(g, "/v1/threads", &second, ("k", &new_thread())).await;
    assert_eq!((theirs.status, theirs.again), (StatusCode::CREATED, false));
    assert_ne!(mine.json()["thread"], theirs.json()["thread"]);
    // On another path it is another key.
    for thread in [&mine, &theirs].map(|it| it.json()["thread"].clone()) {
        let path = format!("/v1/threads/{}/closing", thread.as_str().unwrap());
        let closed = send(g, &path, &g.admin, ("k", &json!({"reason": "done"}))).await;
        assert_eq!((closed.status, closed.again), (StatusCode::OK, false));
        assert_eq!(closed.json()["thread"], thread);
    }
}

async fn response_without_effect_is_not_stored_for_every_key(scene: IdempotencyScenario) {
    let g = &scene.gateway;
    let thread = g.thread().await;
    let path = format!("/v1/threads/{}/transitions", thread["thread"].as_str().unwrap());
    let long = "a long wish. ".repeat(1_500);
    let ask = json!({"node": "input_parser", "parent": thread["transition"], "patch": {"raw_text": long}});
    let first = send(g, &path, &g.parser, ("k", &ask)).await;
    assert_eq!(first.status, StatusCode::ACCEPTED, "{}", first.body);
    assert!(first.body.len() > long.len(), "it shows the difference");
    for key in 0..20 {
        let again = send(g, &path, &g.parser, (&format!("k{key}"), &ask)).await;
        assert_eq!(again.as_first(), first.as_first(), "{key}");
    }
    let kept = scene.store.list(Table::Answers, RowFilter::All, None, 100).await.unwrap();
    assert!(kept.iter().map(|it| it.body.len()).sum::<usize>() < 3 * long.len(), "{}", kept.len());
    assert!(send(g, &path, &g.parser, ("k", &ask)).await.again, "what had an effect is kept with it");
    passes_an_audit(&scene).await;
}

async fn failed_response_is_not_stored(scene: IdempotencyScenario) {
    let g = &scene.gateway;
    let thread = g.thread().await;
    let path = format!("/v1/threads/{}/transitions", thread["thread"].as_str().unwrap());
    let ask = |patch: Value| json!({"node": "planner", "parent": thread["transition"], "patch": patch});
    scene.store.watching.changes();
    let rejected = send(g, &path, &g.planner, ("k", &ask(json!({"nobodys": 1})))).await;
    assert_eq!((rejected.status.as_u16(), rejected.code().as_str()), (422, "rejected"));
    let unreadable = send(g, &path, &g.planner, ("k", &json!({"node": 1}))).await;
    assert_eq!(unreadable.status.as_u16(), 400);
    assert!(scene.store.watching.changes().iter().flatten().all(|it| *it != Table::Answers));
    let good = send(g, &path, &g.planner, ("k", &ask(json!({"requested_action": "update_email"})))).await;
    assert!(good.status.is_success() && !good.again, "{}", good.body);
}

async fn expired_idempotency_key_can_be_used_again(scene: IdempotencyScenario) {
    let g = &scene.gateway;
    let first = send(g, "/v1/threads", &g.host, ("k", &new_thread())).await;
    g.pass(Duration::from_secs(24 * 3600 - 60));
    assert!(send(g, "/v1/threads", &g.host, ("k", &new_thread())).await.again);
    g.pass(Duration::from_secs(120));
    // The answer is not deleted yet, but it has expired.
    let second = send(g, "/v1/threads", &g.host, ("k", &new_thread())).await;
    assert!(!second.again && second.json()["thread"] != first.json()["thread"]);
    let kept = || scene.store.list(Table::Answers, RowFilter::All, None, 10);
    assert_eq!(kept().await.unwrap().len(), 1);
    assert_eq!(prune::run_once(&g.service).await.unwrap(), 0);
    g.pass(Duration::from_secs(24 * 3600 + 1));
    assert_eq!(prune::run_once(&g.service).await.unwrap(), 1);
    assert!(kept().await.unwrap().is_empty());
}

/// The tables with the effects of a call, written together with its answer.
const EFFECTS: &[Table] = &[Table::Events, Table::Deliveries, Table::Lanes];

/// Every POST route for which a key has a meaning. Each is called once for its effect and once more.
struct RepeatedCalls<'a> {
    scene: &'a IdempotencyScenario,
    called: Vec<&'static str>,
}

impl RepeatedCalls<'_> {
    /// The answer of a call that has an effect.
    async fn does(&mut self, route: &'static str, path: &str, token: &str, body: Value) -> Value {
        self.call(route, path, (token, &body), true).await
    }

    async fn call(&mut self, route: &'static str, path: &str, (token, body): (&str, &Value), effect: bool) -> Value {
        let g = &self.scene.gateway;
        self.scene.store.watching.changes();
        let key = format!("key of {path}").replace(' ', "-");
        let first = send(g, path, token, (&key, body)).await;
        assert!(first.status.is_success() && !first.again, "{path}: {} {}", first.status, first.body);
        let changes = self.scene.store.watching.changes();
        let keeping: Vec<_> = changes.iter().filter(|it| it.contains(&Table::Answers)).collect();
        assert_eq!(keeping.len(), 1, "{route}: {changes:?}");
        assert_eq!(keeping[0].iter().any(|it| EFFECTS.contains(it)), effect, "{route}: {changes:?}");
        let again = send(g, path, token, (&key, body)).await;
        assert_eq!((again.as_first(), again.again), (first.as_first(), true), "{route}");
        assert!(self.scene.store.watching.changes().is_empty(), "{route} is done twice");
        self.called.push(route);
        first.json()
    }
}

async fn every_post_stores_its_answer_in_the_transaction_of_its_effect(scene: IdempotencyScenario) {
    let g = &scene.gateway;
    let mut calls = RepeatedCalls { scene: &scene, called: Vec::new() };
    proposals(&mut calls).await;
    ends_of_writes(&mut calls).await;
    episodes(&mut calls).await;
    policies(&mut calls).await;
    endpoints(&mut calls).await;
    calls.does("/v1/interrupts", "/v1/interrupts", &g.host, asked()).await;
    for rule in TABLE.iter().filter(|it| it.method == "POST" && !it.machines.is_empty()) {
        // Approval requests are recognized by their own records, see `approval_requests`.
        let own = rule.route.starts_with("/aap/");
        let known = calls.called.contains(&rule.route) || KEYLESS.contains(&rule.route) || own;
        assert!(known, "{} has not shown that it keeps its answer", rule.route);
    }
    passes_an_audit(&scene).await;
}

async fn proposals(calls: &mut RepeatedCalls<'_>) {
    let g = &calls.scene.gateway;
    let thread = calls.does("/v1/threads", "/v1/threads", &g.host, new_thread()).await;
    let at = |rest: &str| format!("/v1/threads/{}/{rest}", thread["thread"].as_str().unwrap());
    let ask = |parent: &Value, patch: Value| json!({"node": "planner", "parent": parent, "patch": patch});
    let proposes = "/v1/threads/{thread}/transitions";
    let patch = json!({"requested_action": "update_email"});
    let committed = calls.does(proposes, &at("transitions"), &g.planner, ask(&thread["transition"], patch)).await;
    assert_eq!(committed["outcome"], "committed");
    let head = committed["transition"].clone();
    let branches = json!({"node": "planner", "branches": ["left"]});
    calls.does("/v1/threads/{thread}/forks", &at("forks"), &g.planner, branches).await;
    let join = json!({"node": "planner", "parent": head, "branches": ["left"], "strategy": "union"});
    let committed = calls.does("/v1/threads/{thread}/joins", &at("joins"), &g.planner, join).await;
    let back = json!({"node": "planner", "parent": committed["transition"], "to_version": 0});
    let held = calls.does("/v1/threads/{thread}/rollbacks", &at("rollbacks"), &g.planner, back).await;
    assert_eq!(held["outcome"], "held");
    let second = g.thread().await;
    let path = format!("/v1/threads/{}/transitions", second["thread"].as_str().unwrap());
    let held = calls.does(proposes, &path, &g.planner, ask(&second["transition"], json!({"target_user_id": 42}))).await;
    assert_eq!(held["outcome"], "held");
    let path = format!("/v1/transitions/{}/cancellation", held["transition"].as_str().unwrap());
    calls.does("/v1/transitions/{digest}/cancellation", &path, &g.planner, json!({"reason": "no"})).await;
    let reason = json!({"reason": "tidying"});
    calls.does("/v1/threads/{thread}/closing", &at("closing"), &g.admin, reason.clone()).await;
    let reopened = calls.does("/v1/threads/{thread}/reopening", &at("reopening"), &g.admin, reason).await;
    assert_eq!(reopened["status"], "open");
}

/// Something of a run, and its end.
async fn episodes(calls: &mut RepeatedCalls<'_>) {
    let g = &calls.scene.gateway;
    let mut new = new_thread();
    new["episode"] = json!({"goal": {"task": "Change an address"}});
    let thread = calls.does("/v1/threads", "/v1/threads?", &g.host, new).await;
    let path = format!("/v1/threads/{}/episode/events", thread["thread"].as_str().unwrap());
    let event = json!({"node": "planner", "phase": "terminate", "payload": {"status": "ok"}});
    let added = calls.does("/v1/threads/{thread}/episode/events", &path, &g.planner, event).await;
    assert_eq!((&added["number"], &added["left"]), (&json!(1), &json!(999)));
}

async fn ends_of_writes(calls: &mut RepeatedCalls<'_>) {
    let g = &calls.scene.gateway;
    let thread = g.thread().await;
    let held = g.held(&thread).await;
    let receipt = g.approved(&held).await["receipt"].clone();
    g.verify(&thread["thread"], &held["transition"], &receipt, "w1").await.expect(200);
    g.pass(Duration::from_secs(31));
    let name = thread["thread"].as_str().unwrap();
    let by = g.service.identity.token_of(&g.writer).await.unwrap().record.principal();
    let known = json!({"principal": by, "outcome": "not_written", "reason": "asked the ledger"});
    let path = format!("/v1/threads/{name}/lapses/w1/resolution");
    calls.does("/v1/threads/{thread}/lapses/{write_id}/resolution", &path, &g.admin, known).await;
    let other = g.thread().await;
    let held = g.held(&other).await;
    let nonce = g.approved(&held).await["nonce"].clone();
    let path = format!("/v1/receipts/{}/revocation", nonce.as_str().unwrap());
    calls.does("/v1/receipts/{jti}/revocation", &path, &g.admin, json!({"reason": "no"})).await;
}

async fn policies(calls: &mut RepeatedCalls<'_>) {
    let g = &calls.scene.gateway;
    person(&g.service, "carol", &["security"]).await;
    let activates = "/v1/flows/{flow}/policies";
    let ask = |policy: String| json!({"policy": policy, "schemas": {"payments.schema.json": SCHEMA}});
    let next = format!("# Another one.\n{}", guarded(1));
    let waiting = calls.does(activates, "/v1/flows/payments/policies", &g.admin, ask(next.clone())).await;
    let path = format!("/v1/amendments/{}/cancellation", waiting["amendment"].as_str().unwrap());
    let ended = calls.does("/v1/amendments/{amendment}/cancellation", &path, &g.admin, json!({"reason": "no"})).await;
    assert_eq!(ended["state"], "cancelled");
    // A new flow, and its next policy, which requires no approval.
    let other = crate::gateway::POLICY.replace("flow = \"payments\"", "flow = \"payouts\"");
    let first = calls.does(activates, "/v1/flows/payouts/policies", &g.admin, ask(other.clone())).await;
    let again = ask(format!("# Another one.\n{other}"));
    let second = calls.does(activates, "/v1/flows/payouts/policies?", &g.admin, again).await;
    assert_ne!(first["policy"], second["policy"]);
    let supposed = json!({"state": {"requested_action": "none"}, "node": "planner", "patch": {"target_user_id": 1}});
    let path = "/v1/flows/payments/judgements";
    calls.call("/v1/flows/{flow}/judgements", path, (&g.auditor, &supposed), false).await;
    let path = "/v1/flows/payments/replays";
    calls.call("/v1/flows/{flow}/replays", path, (&g.auditor, &ask(next)), false).await;
}

/// Calls the routes of an endpoint whose address has no listener.
async fn endpoints(calls: &mut RepeatedCalls<'_>) {
    let g = &calls.scene.gateway;
    let ask = json!({"name": "ops", "url": "http://127.0.0.1:9/hook", "after": 0});
    let endpoint = calls.does("/v1/endpoints", "/v1/endpoints", &g.admin, ask).await;
    let at = |rest: &str| format!("/v1/endpoints/{}/{rest}", endpoint["id"].as_str().unwrap());
    let secret = calls.does("/v1/endpoints/{endpoint}/secret", &at("secret"), &g.admin, json!({})).await;
    let rows = calls.scene.store.list(Table::Answers, RowFilter::All, None, 100).await.unwrap();
    for shown in [&endpoint["secret"], &secret["secret"]].map(|it| it.as_str().unwrap()) {
        assert!(shown.starts_with("whsec_") && rows.iter().all(|it| !it.body.contains(shown)));
    }
    let failed = calls.does("/v1/endpoints/{endpoint}/test", &at("test"), &g.admin, json!({})).await;
    assert_eq!(failed["arrived"], false);
    while g.service.log.sequence().await.unwrap() > 0 {}
    let sender = deliver::DeliveryWorker::new(&g.service);
    sender.round().await.unwrap();
    sender.rest().await.unwrap();
    let redelivery = "/v1/endpoints/{endpoint}/deliveries/{delivery}/redelivery";
    calls.does(redelivery, &at("deliveries/1/redelivery"), &g.admin, json!({})).await;
    let many = "/v1/endpoints/{endpoint}/redeliveries";
    let sent = calls.does(many, &at("redeliveries"), &g.admin, json!({"after": 0})).await;
    assert!(sent["count"].as_u64().unwrap() > 0);
}

#[tokio::test]
async fn malformed_idempotency_key_is_refused() {
    let scene = IdempotencyScenario::on_sqlite(crate::gateway::POLICY).await;
    let g = &scene.gateway;
    let long = "k".repeat(256);
    for keys in [vec![""], vec!["two words"], vec![long.as_str()], vec!["one", "two"], vec!["one", "one"]] {
        let request = g.http.post(format!("{}/v1/threads", g.url)).bearer_auth(&g.host).json(&new_thread());
        let request = keys.iter().fold(request, |it, key| it.header("Idempotency-Key", *key));
        let response = request.send().await.unwrap();
        assert_eq!(response.status().as_u16(), 400, "{keys:?}");
        assert!(response.text().await.unwrap().contains("Idempotency-Key"));
    }
    assert_eq!(told(g, "thread.created").await, 0);
    let thread = g.thread().await;
    scene.store.watching.changes();
    for (write, allows) in [("w1", 200), ("w2", 403)] {
        let ask = json!({"thread": thread["thread"], "transition": thread["transition"], "write_id": write});
        let answer = send(g, "/v1/verify", &g.writer, ("not a key", &ask)).await;
        assert_eq!(answer.status.as_u16(), allows, "{}", answer.body);
    }
    for reason in ["one", "two"] {
        let ended = send(g, "/v1/writes/w1/abort", &g.writer, ("k", &json!({"reason": reason}))).await;
        assert!(ended.status.is_success() && !ended.again);
    }
    assert!(scene.store.watching.changes().iter().flatten().all(|it| *it != Table::Answers));
}
