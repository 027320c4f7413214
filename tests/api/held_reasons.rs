//! Tests the reasons for a review. No event contains a reason that only reviewers may read, and stored reasons of an
//! earlier release stay valid.

use countersign_domain::reviews::{Hold, HoldReason, VoteVerdict};

use countersign::worker::rejudge;
use countersign_service::reviews::vote::VoteOutcome;
use serde_json::{Value, json};

use crate::gateway::TestGateway;
use crate::rules::ApiScenario;
use crate::under_new_policy::{activate, policy_of};
use crate::webhooks::receiver::WebhookReceiver;

on_both_in_full! {
    reason_for_reviewers_is_in_no_event_that_leaves_the_gateway(super::policy()),
    review_with_the_reason_of_an_earlier_release_keeps_its_votes(super::two_needed()),
}

/// Returns a policy under which the planner may roll back and does not read the limit.
fn policy() -> String {
    r#"
flow = "payments"
trust_initial = true
protected = ["limit"]

[nodes.planner]
reads = ["draft"]
writes = ["draft"]
rollback = true

[nodes.input_parser]
reads = ["limit"]
writes = ["limit"]

[[rules]]
name = "lower limit"
when = "change.path == '/limit' && has(change.after) && change.after < 10"
then = "warn"
reason = "the limit falls below 10"

[[approval.stages]]
groups = ["reviewers"]
"#
    .to_owned()
}

fn two_needed() -> String {
    format!("{}need = 2\n", policy())
}

const ROLLED_BACK: &str = "a rollback to an earlier state requires approval";
const FORMER_OF_THE_LIMIT: &str = "limit is protected: people decide about it";
const OF_THE_LIMIT: &str = "`limit` is protected and requires approval";

/// A rollback that is held, by a node that does not know that the limit differs.
async fn held(g: &TestGateway) -> Value {
    let made = g.post("/v1/threads", &g.host, json!({"flow": "payments", "state": {"limit": 1}})).await.expect(201);
    let raised = g.propose(&made["thread"], &made["transition"], (&g.parser, "input_parser"), json!({"limit": 99}));
    let raised = raised.await.expect(202);
    g.vote(&g.alice, &raised, VoteVerdict::Approve).await.unwrap();
    let path = format!("/v1/threads/{}/rollbacks", made["thread"].as_str().unwrap());
    let ask = json!({"node": "planner", "parent": raised["transition"], "to_version": 0});
    g.post(&path, &g.planner, ask).await.expect(202)
}

fn said(events: &Value, held: &Value) -> Value {
    let events = events["events"].as_array().unwrap();
    let is_held = |it: &&Value| it["type"] == "transition.held" && it["data"]["transition"] == held["transition"];
    events.iter().find(is_held).unwrap()["data"].clone()
}

async fn reason_for_reviewers_is_in_no_event_that_leaves_the_gateway(scene: ApiScenario) {
    let g = &scene.gateway;
    let receiver = WebhookReceiver::start().await;
    let endpoint = json!({"name": "ops", "url": receiver.url, "events": ["transition.held"]});
    g.post("/v1/endpoints", &g.admin, endpoint).await.expect(201);
    let held = held(g).await;
    assert_eq!(held["reasons"].as_array().unwrap().len(), 1, "its proposer is told one: {held}");
    while g.service.log.sequence().await.unwrap() > 0 {}

    let to_auditor = said(&g.get("/v1/events?limit=500", &g.auditor).await.expect(200), &held);
    assert_eq!(to_auditor["reasons"], json!([ROLLED_BACK, OF_THE_LIMIT]));
    assert_eq!(to_auditor["warnings"][0]["detail"], "the limit falls below 10");

    let to_host = said(&g.get("/v1/events?limit=500", &g.host).await.expect(200), &held);
    countersign::worker::deliver::run_once(&g.service).await.unwrap();
    let posted = receiver.got().into_iter().map(|it| it.json()["data"].clone());
    let to_endpoint = posted.into_iter().find(|it| it["transition"] == held["transition"]).unwrap();
    let mut copied = String::new();
    g.service
        .log
        .copy_log(|lines| async {
            copied = lines;
            Ok(())
        })
        .await
        .unwrap();
    let copied: Vec<Value> = copied.lines().map(|it| serde_json::from_str(it).unwrap()).collect();
    let to_collector = said(&json!({"events": copied}), &held);
    for data in [to_host, to_endpoint, to_collector] {
        assert_eq!(data["reasons"], json!([ROLLED_BACK]), "{data}");
        assert!(!data.to_string().contains("limit"), "{data}");
    }
    let path = format!("/v1/transitions/{}", held["transition"].as_str().unwrap());
    assert!(g.get(&path, &g.host).await.expect(200).get("warnings").is_none(), "a host is told none");
    assert_eq!(g.get(&path, &g.auditor).await.expect(200)["warnings"][0]["rule"], "lower limit");
    scene.passes_an_audit().await;
}

async fn review_with_the_reason_of_an_earlier_release_keeps_its_votes(scene: ApiScenario) {
    let g = &scene.gateway;
    let made = g.post("/v1/threads", &g.host, json!({"flow": "payments", "state": {"limit": 1}})).await.expect(201);
    let held = g.propose(&made["thread"], &made["transition"], (&g.parser, "input_parser"), json!({"limit": 99}));
    let held = held.await.expect(202);
    assert_eq!(held["reasons"][0]["text"], OF_THE_LIMIT);
    let former = |mut hold: Hold| {
        hold.reasons = vec![HoldReason { text: FORMER_OF_THE_LIMIT.to_owned(), ..hold.reasons[0].clone() }];
        hold
    };
    scene.retells::<Hold>(held["review"]["id"].as_str().unwrap(), former).await;
    assert_eq!(g.vote(&g.alice, &held, VoteVerdict::Approve).await.unwrap(), VoteOutcome::Waiting);

    let old = policy_of(g, &held["transition"]).await;
    activate(g, &format!("{}\n# As before.\n", two_needed()), &[old]).await;
    assert_eq!(rejudge::run_once(&g.service).await.unwrap(), 1);
    assert_eq!(g.vote(&g.bob, &held, VoteVerdict::Approve).await.unwrap(), VoteOutcome::Approved);
    // The event that opened the review has the current text, so an audit finds the edit of the row and nothing else.
    let findings = scene.findings().await;
    assert!(
        findings.len() == 1 && findings[0].ends_with("the review differs from the event that opened it"),
        "{findings:?}"
    );
}
