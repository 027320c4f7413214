//! Tests runs of an agent server that wait for a decision. Each resumes once with its own decision, or not at all.

use std::time::Duration;

use countersign_domain::identity::account::{Account, MachineRole};
use countersign_domain::primitives::id::InterruptId;
use countersign_domain::reviews::{Ballot, VoteVerdict};

use countersign::worker::{deliver, expire, sequence};
use serde_json::{Value, json};

use super::agents::{AgentServer, INTERRUPT, THREAD, thread};
use super::scene::{WebhookScenario, path};
use crate::gateway::{ballot, token};

on_both! {
    run_resumes_once_even_if_its_decision_is_sent_again,
    a_run_that_was_resumed_before_a_crash_is_not_resumed_after_it,
    run_that_waits_for_another_decision_is_not_resumed,
    server_that_answers_200_to_everything_is_not_resumed,
    malformed_thread_status_resumes_nothing_and_is_not_stored,
    denial_and_expiry_are_sent_as_such,
    decision_is_sent_to_the_run_that_waits_for_its_digest,
    decision_that_no_run_can_wait_for_is_skipped,
}

/// The next attempt is due after this time, including jitter.
const FIRST_RETRY: Duration = Duration::from_secs(7);

pub fn digest() -> Value {
    json!("d".repeat(64))
}

pub fn asked() -> Value {
    json!({"kind": "state_transition_review", "transition_digest": digest(), "interrupt_id": INTERRUPT,
        "changed_keys": ["target_user_id"], "redacted_diff": {"target_user_id": {"before": 17, "after": 42}},
        "thread_ref": THREAD})
}

/// An interrupt that a host posts.
pub async fn posted(s: &WebhookScenario, ask: Value) -> Value {
    s.g.post("/v1/interrupts", &s.g.host, ask).await.expect(202)
}

pub async fn votes(s: &WebhookScenario, who: &Account, taken: &Value, verdict: VoteVerdict) {
    let id: InterruptId = taken["id"].as_str().unwrap().try_into().unwrap();
    let ballot =
        Ballot { comment: Some("as agreed".to_owned()), ..ballot(&json!({"transition": taken["digest"]}), verdict) };
    s.g.service.interrupts.vote_on_interrupt(&who.id, &id, &ballot, None).await.unwrap();
}

/// Returns the interrupt as the host sees it.
pub async fn told(s: &WebhookScenario, taken: &Value) -> Value {
    s.g.get(&format!("/v1/interrupts/{}", taken["id"].as_str().unwrap()), &s.g.host).await.expect(200)
}

pub async fn resumes(s: &WebhookScenario, url: &str) -> Value {
    let ask = json!({"name": "agents", "kind": "langgraph", "url": url, "assistant": "agent", "flows": ["payments"],
        "headers": {"x-api-key": "k3y-in-header"}});
    s.g.post("/v1/endpoints", &s.g.admin, ask).await.expect(201)
}

/// Returns the result of each attempt of the only delivery, and the delivery's state.
async fn seen(s: &WebhookScenario, endpoint: &Value) -> (Vec<Value>, Value) {
    let deliveries = s.deliveries(endpoint).await;
    assert_eq!(deliveries.len(), 1, "{deliveries:#?}");
    let attempts = deliveries[0]["attempts"].as_array().unwrap();
    (attempts.iter().map(|it| it["looked"].clone()).collect(), deliveries[0]["state"].clone())
}

async fn approved(s: &WebhookScenario) -> Value {
    let taken = posted(s, asked()).await;
    votes(s, &s.g.alice, &taken, VoteVerdict::Approve).await;
    taken
}

async fn run_resumes_once_even_if_its_decision_is_sent_again(s: WebhookScenario) {
    let server = AgentServer::start().await;
    server.is("interrupted", &[(INTERRUPT, &digest())]);
    let endpoint = resumes(&s, &server.url).await;
    assert_eq!((&endpoint["kind"], &endpoint["assistant"]), (&json!("langgraph"), &json!("agent")));
    assert!(endpoint["secret"].is_null() && endpoint["public_keys"].is_null(), "nothing is signed: {endpoint}");
    let taken = approved(&s).await;
    s.send().await;
    let (looks, runs) = (server.looks(), server.runs());
    assert_eq!((looks.len(), runs.len()), (1, 1));
    assert_eq!(
        (looks[0].path.clone(), runs[0].path.clone()),
        (format!("/threads/{THREAD}"), format!("/threads/{THREAD}/runs"))
    );
    for it in [&looks[0], &runs[0]] {
        assert_eq!(it.headers["x-api-key"], "k3y-in-header");
    }
    let answered = told(&s, &taken).await;
    assert_eq!((&answered["approved"], &answered["transition_digest"]), (&json!(true), &digest()));
    assert!(answered["answer"].is_string(), "signed");
    let run =
        json!({"assistant_id": "agent", "command": {"resume": {INTERRUPT: answered}}, "multitask_strategy": "reject"});
    assert_eq!(runs[0].json(), run, "what the host is told if it asks, and nothing else");
    let index = s.deliveries(&endpoint).await[0]["delivery"].clone();
    let shown = s.g.get(&path(&endpoint, &format!("/deliveries/{index}")), &s.g.auditor).await.expect(200);
    assert_eq!(serde_json::from_str::<Value>(shown["body"].as_str().unwrap()).unwrap(), run);
    server.is("idle", &[]);
    s.g.post(&path(&endpoint, &format!("/deliveries/{index}/redelivery")), &s.g.admin, json!({})).await.expect(202);
    s.send().await;
    assert_eq!((server.looks().len(), server.runs().len()), (2, 1));
    assert_eq!(seen(&s, &endpoint).await, (vec![json!(null), json!("not_waiting")], json!("delivered")));
    s.is_sound().await;
}

async fn a_run_that_was_resumed_before_a_crash_is_not_resumed_after_it(s: WebhookScenario) {
    let server = AgentServer::start().await;
    server.is("interrupted", &[(INTERRUPT, &digest())]);
    let endpoint = resumes(&s, &server.url).await;
    approved(&s).await;
    sequence::run_once(&s.g.service).await.unwrap();
    server.hangs(true);
    let sender = deliver::DeliveryWorker::new(&s.g.service);
    sender.round().await.unwrap();
    server.until(1).await;
    // A gateway that ends now never learns that the run was begun.
    sender.end(Duration::ZERO).await;
    drop(sender);
    server.hangs(false);
    server.is("busy", &[(INTERRUPT, &digest())]);
    s.send().await;
    assert_eq!(seen(&s, &endpoint).await, (vec![json!("busy")], json!("waiting")));
    // The run waits at its next interrupt, which may have the same ID on such servers.
    server.is("interrupted", &[(INTERRUPT, &json!("e".repeat(64)))]);
    s.g.pass(FIRST_RETRY);
    s.send().await;
    assert_eq!(seen(&s, &endpoint).await, (vec![json!("busy"), json!("another")], json!("delivered")));
    assert_eq!(server.runs().len(), 1);
    s.is_sound().await;
}

async fn run_that_waits_for_another_decision_is_not_resumed(s: WebhookScenario) {
    let other = "b8445202d41afef489c6c9740c45a62d";
    let (ours, next) = (digest(), json!("e".repeat(64)));
    for (status, waiting, saw, state) in [
        ("idle", vec![], "not_waiting", "delivered"),
        ("error", vec![(INTERRUPT, &ours)], "not_waiting", "delivered"),
        ("interrupted", vec![(other, &next)], "not_waiting", "delivered"),
        ("interrupted", vec![(other, &ours)], "not_waiting", "delivered"),
        ("interrupted", vec![(INTERRUPT, &next)], "another", "delivered"),
        ("interrupted", vec![(INTERRUPT, &Value::Null)], "no_digest", "waiting"),
        ("busy", vec![(INTERRUPT, &ours)], "busy", "waiting"),
    ] {
        let server = AgentServer::start().await;
        server.is(status, &waiting);
        let endpoint = resumes(&s, &server.url).await;
        // The same digest of the same host is the same interrupt, so each case has its own host.
        let host = token(&s.g.service, "host", MachineRole::Host, &[]).await;
        let taken = s.g.post("/v1/interrupts", &host, asked()).await.expect(202);
        votes(&s, &s.g.alice, &taken, VoteVerdict::Approve).await;
        s.send().await;
        assert_eq!(seen(&s, &endpoint).await, (vec![json!(saw)], json!(state)), "{status} {waiting:?}");
        assert_eq!((server.looks().len(), server.runs().len()), (1, 0), "{status} {waiting:?}");
        s.g.send(reqwest::Method::DELETE, &path(&endpoint, ""), &s.g.admin, None).await.expect_status(204);
    }
}

async fn server_that_answers_200_to_everything_is_not_resumed(s: WebhookScenario) {
    let server = AgentServer::start().await;
    let endpoint = resumes(&s, &server.url).await;
    approved(&s).await;
    for body in ["{}", "ok", "", "[]", "true"] {
        server.says("200 OK", body);
        s.send().await;
        s.g.pass(Duration::from_secs(25 * 3600));
    }
    let (saw, state) = seen(&s, &endpoint).await;
    assert_eq!(
        (saw.as_slice(), state),
        (
            [json!("unclear"), json!("unclear"), json!("unclear"), json!("unclear"), json!("unclear")].as_slice(),
            json!("waiting")
        )
    );
    assert_eq!(server.runs().len(), 0);
}

async fn malformed_thread_status_resumes_nothing_and_is_not_stored(s: WebhookScenario) {
    let (server, elsewhere) = (AgentServer::start().await, AgentServer::start().await);
    elsewhere.is("interrupted", &[(INTERRUPT, &digest())]);
    let endpoint = resumes(&s, &server.url).await;
    approved(&s).await;
    let waits = thread("interrupted", &[(INTERRUPT, &digest())]);
    let mut huge = waits.clone();
    huge["values"] = json!("x".repeat(5 * 1024 * 1024));
    let sent_on = format!("307 Temporary Redirect\r\nlocation: {}/threads/{THREAD}", elsewhere.url);
    let mut anothers = waits.clone();
    anothers["thread_id"] = json!("01a200bd-773d-77a9-84a1-0b6417b2a9a2");
    let odd: [(&str, String, &str); 6] = [
        ("200 OK", huge.to_string(), "unclear"),
        ("200 OK", format!("<html>{waits}"), "unclear"),
        ("200 OK", anothers.to_string(), "unclear"),
        (&sent_on, waits.to_string(), "refused"),
        ("404 Not Found", waits.to_string(), "refused"),
        ("401 Unauthorized", waits.to_string(), "refused"),
    ];
    for (status, body, _) in &odd {
        server.says(status, body);
        s.send().await;
        s.g.pass(Duration::from_secs(13 * 3600));
    }
    let (saw, state) = seen(&s, &endpoint).await;
    assert_eq!((saw, state), (odd.iter().map(|it| json!(it.2)).collect(), json!("waiting")));
    assert_eq!((server.runs().len(), elsewhere.looks().len()), (0, 0));
    let kept = s.g.get(&path(&endpoint, "/deliveries"), &s.g.admin).await.expect(200).to_string();
    assert!(!kept.contains("s3cret-in-state") && !kept.contains("xxxx"), "{}", &kept[..kept.len().min(2000)]);
    // The server is correct now, so the run resumes.
    server.is("interrupted", &[(INTERRUPT, &digest())]);
    s.send().await;
    assert_eq!((server.runs().len(), seen(&s, &endpoint).await.1), (1, json!("delivered")));
}

async fn denial_and_expiry_are_sent_as_such(s: WebhookScenario) {
    let server = AgentServer::start().await;
    resumes(&s, &server.url).await;
    for decision in ["denied", "expired"] {
        let mut ask = asked();
        ask["transition_digest"] = json!(decision.repeat(4));
        server.is("interrupted", &[(INTERRUPT, &ask["transition_digest"])]);
        let taken = posted(&s, ask).await;
        if decision == "denied" {
            votes(&s, &s.g.alice, &taken, VoteVerdict::Deny).await;
        } else {
            s.g.pass(Duration::from_secs(25 * 3600));
            expire::run_once(&s.g.service).await.unwrap();
        }
        s.send().await;
        let run = server.runs().pop().unwrap().json();
        let value = &run["command"]["resume"][INTERRUPT];
        assert_eq!((&value["approved"], &value["decision"]), (&json!(false), &json!(decision)));
        assert_eq!(*value, told(&s, &taken).await);
    }
    assert_eq!(server.runs().len(), 2);
}

async fn decision_is_sent_to_the_run_that_waits_for_its_digest(s: WebhookScenario) {
    let server = AgentServer::start().await;
    let endpoint = resumes(&s, &server.url).await;
    let state = json!({"requested_action": "none", "target_user_id": 17, "payment": {"amount": 10, "card": "4111111111111111"}});
    let ask = json!({"flow": "payments", "thread": THREAD, "state": state});
    let thread = s.g.post("/v1/threads", &s.g.host, ask).await.expect(201);
    let held = s.g.held(&thread).await;
    let other = json!("e".repeat(64));
    server.is("interrupted", &[("b8445202d41afef489c6c9740c45a62d", &other), (INTERRUPT, &held["transition"])]);
    s.send().await;
    assert_eq!((server.looks().len(), s.deliveries(&endpoint).await.len()), (0, 0), "nothing is decided yet");
    let decision = s.g.approved(&held).await;
    s.send().await;
    let run = server.runs().pop().unwrap().json();
    assert_eq!(run["command"]["resume"], json!({INTERRUPT: decision}));
    assert!(!run.to_string().contains("4111111111111111"));
    let index = s.deliveries(&endpoint).await[0]["delivery"].clone();
    let shown = s.g.get(&path(&endpoint, &format!("/deliveries/{index}")), &s.g.auditor).await.expect(200);
    assert!(shown["body"].as_str().unwrap().contains(held["transition"].as_str().unwrap()));
    assert_eq!((server.runs().len(), seen(&s, &endpoint).await.1), (1, json!("delivered")));
    s.is_sound().await;
}

async fn decision_that_no_run_can_wait_for_is_skipped(s: WebhookScenario) {
    let server = AgentServer::start().await;
    let endpoint = resumes(&s, &server.url).await;
    let ask = json!({"flow": "payments", "thread": "order-17", "state": {"requested_action": "none", "target_user_id": 17,
        "payment": {"amount": 10, "card": "4111111111111111"}}});
    let thread = s.g.post("/v1/threads", &s.g.host, ask).await.expect(201);
    s.g.approved(&s.g.held(&thread).await).await;
    for (at, name) in [json!(null), json!("order-17"), json!("..")].into_iter().enumerate() {
        let mut ask = asked();
        ask["transition_digest"] = json!(format!("{at:0>64}"));
        ask["thread_ref"] = name;
        if ask["thread_ref"].is_null() {
            ask.as_object_mut().unwrap().remove("thread_ref");
        }
        let taken = posted(&s, ask).await;
        votes(&s, &s.g.alice, &taken, VoteVerdict::Approve).await;
    }
    assert_eq!(s.send().await, 0);
    assert_eq!((server.looks().len(), s.deliveries(&endpoint).await.len()), (0, 0));
    s.is_sound().await;
}
