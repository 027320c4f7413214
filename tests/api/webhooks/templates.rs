//! Tests decisions that are sent by a template: in an administrator's words, and with no other content.

use countersign_domain::reviews::{Ballot, VoteVerdict};
use reqwest::Method;
use serde_json::{Value, json};

use super::agents::{AgentServer, INTERRUPT, THREAD};
use super::resuming::{asked, digest, posted, told, votes};
use super::scene::{WebhookScenario, path};
use crate::gateway::ballot;

on_both! {
    decision_is_sent_by_the_template_and_signed,
    decision_is_sent_only_while_the_agent_server_waits_for_it,
    value_of_a_host_cannot_change_the_path_or_another_member,
    invalid_template_is_refused_with_its_path_and_name,
    changed_address_is_checked_again,
    test_of_a_template_resumes_nothing,
    redacted_value_is_not_filled_into_a_template,
}

fn template(url: String, template: Value) -> Value {
    json!({"name": "host", "kind": "resume", "url": url, "template": template, "flows": ["payments"],
        "headers": {"x-api-key": "k3y-in-header"}})
}

fn with_look(server: &AgentServer) -> Value {
    let look = json!({"url": format!("{}/tasks/{{interrupt}}?key=s3cret-in-look", server.url), "pointer": "/task/state",
        "waiting": "waiting"});
    template(
        format!("{}/tasks/{{interrupt}}/answer", server.url),
        json!({"body": {"answer": "{answer}"}, "look": look}),
    )
}

async fn added(s: &WebhookScenario, ask: Value) -> Value {
    s.g.post("/v1/endpoints", &s.g.admin, ask).await.expect(201)
}

async fn decided(s: &WebhookScenario, changes: Value) -> Value {
    let mut ask = asked();
    for (name, value) in changes.as_object().unwrap() {
        ask[name] = value.clone();
    }
    let taken = posted(s, ask).await;
    votes(s, &s.g.alice, &taken, VoteVerdict::Approve).await;
    s.send().await;
    told(s, &taken).await
}

async fn last_attempt(s: &WebhookScenario, endpoint: &Value) -> Value {
    s.deliveries(endpoint).await[0]["attempts"].as_array().unwrap().last().unwrap().clone()
}

async fn decision_is_sent_by_the_template_and_signed(s: WebhookScenario) {
    let server = AgentServer::start().await;
    let body = json!({"all": ["{approved}", "{decision}", "{digest}", "{flow}", "{thread}"], "by": {"{interrupt}": "{answer}"}, "n": 1});
    let url = format!("{}/threads/{{thread}}/resume?key=s3cret", server.url);
    let endpoint = added(&s, template(url.clone(), json!({"body": body}))).await;
    assert_eq!((&endpoint["kind"], &endpoint["template"]), (&json!("resume"), &json!({"body": body})));
    assert_eq!(endpoint["url"], url, "as it was typed");
    let answered = decided(&s, json!({})).await;
    let run = server.runs().pop().unwrap();
    assert_eq!(run.path, format!("/threads/{THREAD}/resume?key=s3cret"));
    assert_eq!(
        run.json(),
        json!({"all": [true, "approved", digest(), "payments", THREAD], "by": {INTERRUPT: answered}, "n": 1})
    );
    assert_eq!(run.headers["x-api-key"], "k3y-in-header");
    let webhook = standardwebhooks::Webhook::new(endpoint["secret"].as_str().unwrap()).unwrap();
    let at: i64 = run.headers["webhook-timestamp"].parse().unwrap();
    let signature = webhook.sign(run.id(), at, run.body.as_bytes()).unwrap();
    assert!(run.headers["webhook-signature"].split(' ').any(|it| it == signature));
    let index = s.deliveries(&endpoint).await[0]["delivery"].clone();
    let shown = s.g.get(&path(&endpoint, &format!("/deliveries/{index}")), &s.g.auditor).await.expect(200);
    assert_eq!(shown["body"], run.body);
    // Events that end no review are passed over.
    s.g.thread().await;
    assert_eq!((s.send().await, s.deliveries(&endpoint).await.len()), (0, 1));
    s.is_sound().await;
}

async fn decision_is_sent_only_while_the_agent_server_waits_for_it(s: WebhookScenario) {
    let server = AgentServer::start().await;
    server.says("200 OK", "{\"task\":{\"state\":\"waiting\",\"card\":\"s3cret-in-state\"}}");
    let endpoint = added(&s, with_look(&server)).await;
    let answered = decided(&s, json!({})).await;
    let (look, run) = (server.looks().pop().unwrap(), server.runs().pop().unwrap());
    assert_eq!(look.path, format!("/tasks/{INTERRUPT}?key=s3cret-in-look"));
    assert_eq!(look.headers["x-api-key"], "k3y-in-header");
    assert_eq!(run.json(), json!({"answer": answered}));
    let index = s.deliveries(&endpoint).await[0]["delivery"].clone();
    let again = path(&endpoint, &format!("/deliveries/{index}/redelivery"));
    for (status, body, saw, arrived) in [
        ("200 OK", "{\"task\":{\"state\":\"done\"}}", "not_waiting", true),
        ("200 OK", "{\"task\":{}}", "unclear", false),
        ("200 OK", "ok", "unclear", false),
        ("404 Not Found", "{\"task\":{\"state\":\"waiting\"}}", "refused", false),
        ("302 Found\r\nlocation: /tasks/x", "{\"task\":{\"state\":\"waiting\"}}", "refused", false),
    ] {
        server.says(status, body);
        s.g.post(&again, &s.g.admin, json!({})).await.expect(202);
        s.send().await;
        let last = last_attempt(&s, &endpoint).await;
        assert_eq!((&last["looked"], &last["arrived"]), (&json!(saw), &json!(arrived)), "{body}");
    }
    assert_eq!(server.runs().len(), 1);
    let kept = s.g.get(&path(&endpoint, "/deliveries"), &s.g.admin).await.expect(200).to_string();
    assert!(!kept.contains("s3cret"), "{kept}");
    s.is_sound().await;
}

async fn value_of_a_host_cannot_change_the_path_or_another_member(s: WebhookScenario) {
    let server = AgentServer::start().await;
    let body = json!({"approved": "{approved}", "by": "{thread}", "{interrupt}": {"digest": "{digest}"}});
    let endpoint =
        added(&s, template(format!("{}/threads/{{thread}}/resume", server.url), json!({"body": body}))).await;
    let odd = "a/../../admin?x=1#y\"}\u{202e}";
    decided(&s, json!({"thread_ref": odd})).await;
    let run = server.runs().pop().unwrap();
    assert_eq!(run.path, "/threads/a%2F..%2F..%2Fadmin%3Fx%3D1%23y%22%7D%E2%80%AE/resume");
    assert_eq!(run.json(), json!({"approved": true, "by": odd, INTERRUPT: {"digest": digest()}}));
    // A path segment that leads up, or a member name that exists already: nothing is sent.
    for changes in [
        json!({"thread_ref": "..", "transition_digest": "1".repeat(64)}),
        json!({"interrupt_id": "approved", "transition_digest": "2".repeat(64)}),
    ] {
        decided(&s, changes.clone()).await;
        let last = last_attempt(&s, &endpoint).await;
        assert_eq!((&last["failure"], &last["arrived"]), (&json!("unsendable"), &json!(false)), "{changes}");
    }
    // A decision without a thread has no address, and is skipped.
    let before = s.deliveries(&endpoint).await.len();
    let mut ask = asked();
    ask["transition_digest"] = json!("3".repeat(64));
    ask.as_object_mut().unwrap().remove("thread_ref");
    let taken = posted(&s, ask).await;
    votes(&s, &s.g.alice, &taken, VoteVerdict::Approve).await;
    s.send().await;
    assert_eq!((server.runs().len(), s.deliveries(&endpoint).await.len()), (1, before));
}

async fn invalid_template_is_refused_with_its_path_and_name(s: WebhookScenario) {
    let server = AgentServer::start().await;
    let good = with_look(&server);
    let with = |at: &str, value: Value| {
        let mut ask = good.clone();
        *ask.pointer_mut(at).unwrap() = value;
        ask
    };
    let url = |rest: &str| json!(format!("{}{rest}", server.url));
    for (ask, at, says) in [
        (with("/template/body", json!({"a": ["{s3cret}"]})), "/template/body", "`{s3cret}`"),
        (with("/template/body", json!({"{answer}": 1})), "/template/body", "`{answer}`"),
        (with("/template/body", json!("it is {decision}")), "/template/body", "`{decision}`"),
        (with("/url", url("/{nobody}")), "/url", "`{nobody}`"),
        (with("/url", url("/x?t={thread}")), "/url", "path"),
        (with("/url", json!("http://localhost:1/x")), "/url", "endpoint's scheme"),
        (with("/template/look/url", url("/{nobody}")), "/template/look/url", "`{nobody}`"),
        (with("/template/look/url", json!("http://10.0.0.7/x")), "/template/look/url", "allow"),
        (with("/template/look/pointer", json!("task")), "/template/look/pointer", "slash"),
        (with("/template", json!(null)), "/template", "body"),
        (with("/template", json!({"body": 1, "method": "GET"})), "", "method"),
        (with("/kind", json!("webhook")), "/template", "`resume`"),
        (with("/kind", json!("langgraph")), "/template", "`resume`"),
        (with("/flows", json!([])), "/flows", "resumes"),
        (with("/flows", json!(["others"])), "/flows", "exist"),
    ] {
        let refused = s.g.post("/v1/endpoints", &s.g.admin, ask.clone()).await;
        let fault = &refused.body["errors"][0];
        assert_eq!((refused.status, refused.code(), fault["pointer"].as_str()), (400, "malformed", Some(at)), "{ask}");
        assert!(fault["detail"].as_str().unwrap().contains(says), "{fault} {ask}");
    }
    assert_eq!(s.g.get("/v1/endpoints", &s.g.admin).await.expect(200)["endpoints"], json!([]));
}

async fn changed_address_is_checked_again(s: WebhookScenario) {
    let (server, other) = (AgentServer::start().await, AgentServer::start().await);
    let looks = added(&s, with_look(&server)).await;
    let plain = added(&s, template(format!("{}/x", server.url), json!({"body": "{decision}"}))).await;
    let change = async |endpoint: &Value, url: String| {
        let edit = json!({"url": url, "headers": {"x-api-key": "an0ther"}});
        s.g.send(Method::PATCH, &path(endpoint, ""), &s.g.admin, Some(edit)).await
    };
    assert_eq!(change(&looks, format!("{}/x", other.url)).await.status, 400, "its look is elsewhere");
    assert_eq!(change(&plain, format!("{}/{{nobody}}", other.url)).await.status, 400);
    change(&plain, format!("{}/{{thread}}", other.url)).await.expect(200);
    let all = s.g.send(Method::PATCH, &path(&plain, ""), &s.g.admin, Some(json!({"flows": []}))).await;
    assert_eq!((all.status, all.body["errors"][0]["pointer"].as_str()), (400, Some("/flows")));
    server.says("200 OK", "{\"task\":{\"state\":\"done\"}}");
    decided(&s, json!({})).await;
    assert_eq!(other.runs().pop().unwrap().path, format!("/{THREAD}"));
    assert_eq!((server.looks().len(), server.runs().len()), (1, 0));
}

async fn test_of_a_template_resumes_nothing(s: WebhookScenario) {
    let server = AgentServer::start().await;
    let looks = added(&s, with_look(&server)).await;
    let plain = added(&s, template(format!("{}/x", server.url), json!({"body": 1}))).await;
    for state in ["waiting", "done"] {
        server.says("200 OK", &json!({"task": {"state": state}}).to_string());
        let tried = s.g.post(&path(&looks, "/test"), &s.g.admin, json!({})).await.expect(200);
        assert_eq!((&tried["looked"], &tried["arrived"]), (&json!("there"), &json!(true)));
    }
    let refused = s.g.post(&path(&plain, "/test"), &s.g.admin, json!({})).await;
    assert_eq!((refused.status, refused.code()), (409, "wrong_state"));
    assert_eq!(server.runs().len(), 0);
}

async fn redacted_value_is_not_filled_into_a_template(s: WebhookScenario) {
    let server = AgentServer::start().await;
    let body = json!({"thread": "{thread}", "answer": "{answer}", "digest": "{digest}"});
    added(&s, template(format!("{}/x", server.url), json!({"body": body}))).await;
    let card = "4111111111111111";
    let mut ask = asked();
    ask["redacted_diff"] = json!({"payment": {"card": {"before": null, "after": card}}});
    ask["thread_ref"] = json!(format!("order-of-{card}"));
    let taken = posted(&s, ask).await;
    let ballot = Ballot {
        comment: Some(format!("it is {card}")),
        ..ballot(&json!({"transition": taken["digest"]}), VoteVerdict::Approve)
    };
    let id = taken["id"].as_str().unwrap().try_into().unwrap();
    s.g.service.interrupts.vote_on_interrupt(&s.g.alice.id, &id, &ballot, None).await.unwrap();
    s.send().await;
    let run = server.runs().pop().unwrap();
    assert_eq!((&run.json()["digest"], &run.json()["thread"]), (&digest(), &Value::Null));
    assert!(run.json()["answer"]["comment"].as_str().unwrap().starts_with("it is "), "{}", run.body);
    assert!(!run.body.contains(card), "{}", run.body);
}
