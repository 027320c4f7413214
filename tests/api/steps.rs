//! Tests steps. A step name has one effect, for every retry, on every head and at any time. A rejected step has a
//! limited number of attempts. On both databases.

use std::time::Duration;

use countersign_domain::identity::account::MachineRole;
use countersign_domain::reviews::VoteVerdict;
use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::amendments::activates;
use crate::gateway::{ApiResponse, POLICY, TestGateway, person, token};
use crate::rules::{ApiScenario, codes};

on_both! {
    step_has_one_effect_for_every_retry_on_every_head(super::POLICY),
    completed_step_has_no_other_effect(super::POLICY),
    attempts_of_a_rejected_step_are_limited(super::bounded()),
    held_step_waits_for_its_decision(super::POLICY),
    concurrent_step_on_two_gateways_has_one_effect(super::POLICY),
    a_step_may_be_a_rollback_a_join_or_a_question(super::POLICY),
    proposal_that_superseded_a_held_step_is_the_step(super::POLICY),
    a_step_that_a_write_overtook_is_tried_again(super::POLICY),
    audit_checks_the_attempts_of_steps(super::bounded()),
}

fn bounded() -> String {
    format!("{POLICY}\n[steps]\nattempts = 2\n")
}

async fn steps(g: &TestGateway, thread: &Value, parent: &Value, step: &str, patch: Value) -> ApiResponse {
    as_token(g, &g.planner, thread, json!({"parent": parent, "step": step, "patch": patch})).await
}

async fn as_token(g: &TestGateway, token: &str, thread: &Value, mut ask: Value) -> ApiResponse {
    ask["node"] = json!("planner");
    g.post(&format!("/v1/threads/{}/transitions", thread["thread"].as_str().unwrap()), token, ask).await
}

async fn version(g: &TestGateway, thread: &Value) -> u64 {
    let id = thread["thread"].as_str().unwrap().try_into().unwrap();
    g.service.threads.overview(&id).await.unwrap().thread.head.version
}

fn action(what: &str) -> Value {
    json!({"requested_action": what})
}

async fn step_has_one_effect_for_every_retry_on_every_head(scene: ApiScenario) {
    let g = &scene.gateway;
    let thread = g.thread().await;
    let first = steps(g, &thread, &thread["transition"], "s1", action("update_email")).await.expect(201);
    let twin = token(&g.service, "planner-two", MachineRole::Agent, &["planner"]).await;
    g.pass(Duration::from_secs(30 * 24 * 3600));
    while g.service.core.prune_responses().await.unwrap() > 0 {}
    for parent in [&thread["transition"], &first["transition"]] {
        let again = steps(g, &thread, parent, "s1", action("update_email")).await.expect(201);
        assert_eq!(again, first, "the same answer");
        let ask = json!({"parent": parent, "step": "s1", "patch": action("update_email"), "rationale": "again"});
        assert_eq!(as_token(g, &twin, &thread, ask).await.expect(201), first, "whoever asks for the node");
    }
    let on = &first["transition"];
    let next = steps(g, &thread, on, "s2", action("none")).await.expect(201);
    assert_eq!(steps(g, &thread, &next["transition"], "s1", action("update_email")).await.expect(201), first);
    assert_eq!(version(g, &thread).await, 2);
    // The same name at another node or in another thread is another step, and so is another name.
    let other = g.thread().await;
    let elsewhere = steps(g, &other, &other["transition"], "s1", action("update_email")).await.expect(201);
    assert_ne!(elsewhere["transition"], first["transition"]);
    let path = format!("/v1/threads/{}/transitions", thread["thread"].as_str().unwrap());
    let parsed =
        json!({"node": "input_parser", "parent": next["transition"], "step": "s1", "patch": {"raw_text": "x"}});
    g.post(&path, &g.parser, parsed).await.expect(201);
    scene.passes_an_audit().await;
}

async fn completed_step_has_no_other_effect(scene: ApiScenario) {
    let g = &scene.gateway;
    let thread = g.thread().await;
    let first = steps(g, &thread, &thread["transition"], "s1", action("update_email")).await.expect(201);
    for parent in [&thread["transition"], &first["transition"]] {
        let reused = steps(g, &thread, parent, "s1", action("refund")).await;
        assert_eq!((reused.status, reused.code()), (409, "step_reused"), "{}", reused.body);
        assert_eq!(reused.body["transition"], first["transition"], "what it has done");
        assert_eq!(reused.body["checkpoint"], json!({"version": 1, "transition": first["transition"]}));
    }
    let anew = json!({"parent": first["transition"], "step": "s1", "patch": action("update_email"), "attempt": 2});
    assert_eq!(as_token(g, &g.planner, &thread, anew).await.code(), "step_reused");
    let ask = json!({"parent": thread["transition"], "step": "not a name", "patch": {}});
    assert_eq!(as_token(g, &g.planner, &thread, ask).await.code(), "malformed");
    assert_eq!(version(g, &thread).await, 1);
    scene.passes_an_audit().await;
}

async fn attempts_of_a_rejected_step_are_limited(scene: ApiScenario) {
    let g = &scene.gateway;
    let thread = g.thread().await;
    let head = &thread["transition"];
    let wrong = |n: u32| json!({"result_ref": n});
    let first = steps(g, &thread, head, "s1", wrong(1)).await;
    assert_eq!((first.code(), codes(&first)[0]), ("rejected", "write_not_allowed"));
    for _ in 0..3 {
        assert_eq!(steps(g, &thread, head, "s1", wrong(1)).await.body["errors"], first.body["errors"], "asked twice");
    }
    // The same request under another name counts as an attempt of that step.
    for n in [1, 9] {
        assert_eq!(codes(&steps(g, &thread, head, "s0", wrong(n)).await)[0], "write_not_allowed");
    }
    assert_eq!(codes(&steps(g, &thread, head, "s0", action("update_email")).await), ["attempts_exhausted"]);
    let mended = steps(g, &thread, head, "s1", action("update_email")).await.expect(201);
    let on = &mended["transition"];
    for n in [2, 3] {
        assert_eq!(codes(&steps(g, &thread, on, "s2", wrong(n)).await)[0], "write_not_allowed");
    }
    let over = steps(g, &thread, on, "s2", action("refund")).await;
    assert_eq!((over.status, codes(&over)), (422, vec!["attempts_exhausted"]));
    assert_eq!((&over.body["instruction"]["action"], &over.body["checkpoint"]["version"]), (&json!("stop"), &json!(1)));
    // A new head does not give a new attempt.
    let moved = steps(g, &thread, on, "s3", action("none")).await.expect(201);
    assert_eq!(codes(&steps(g, &thread, &moved["transition"], "s2", action("refund")).await), ["attempts_exhausted"]);
    assert_eq!(version(g, &thread).await, 2);
    scene.passes_an_audit().await;
}

async fn held_step_waits_for_its_decision(scene: ApiScenario) {
    let g = &scene.gateway;
    let thread = g.thread().await;
    let head = &thread["transition"];
    let user = |n: u32| json!({"target_user_id": n});
    let held = steps(g, &thread, head, "s1", user(42)).await.expect(202);
    assert_eq!(steps(g, &thread, head, "s1", user(42)).await.expect(202)["review"]["id"], held["review"]["id"]);
    assert_eq!(steps(g, &thread, head, "s1", user(43)).await.code(), "step_reused");
    let ada = person(&g.service, "ada", &["reviewers"]).await;
    g.vote(&ada, &held, VoteVerdict::Deny).await.unwrap();
    let told = steps(g, &thread, head, "s1", user(42)).await.expect(202);
    assert_eq!(told["transition"], held["transition"], "people said no, and that stands");
    // A step without an effect can be proposed differently. An expired review ends even if no worker has seen it.
    let second = steps(g, &thread, head, "s1", user(44)).await.expect(202);
    g.pass(Duration::from_secs(25 * 3600));
    let third = steps(g, &thread, head, "s1", user(45)).await.expect(202);
    assert_ne!(third["transition"], second["transition"]);
    g.vote(&ada, &third, VoteVerdict::Approve).await.unwrap();
    assert_eq!(steps(g, &thread, &third["transition"], "s1", user(46)).await.code(), "step_reused");
    assert_eq!(
        steps(g, &thread, &third["transition"], "s1", user(45)).await.expect(202)["transition"],
        third["transition"]
    );
    assert_eq!(version(g, &thread).await, 1);
    scene.passes_an_audit().await;
}

async fn concurrent_step_on_two_gateways_has_one_effect(scene: ApiScenario) {
    let g = &scene.gateway;
    let other = scene.another().await;
    let thread = g.thread().await;
    let token = g.service.identity.token_of(&g.planner).await.unwrap();
    let ask = countersign_web::api::transitions::ProposeRequest {
        node: "planner".try_into().unwrap(),
        parent: thread["transition"].as_str().unwrap().to_owned().try_into().unwrap(),
        patch: action("update_email"),
        format: None,
        reaffirm: false,
        attempt: None,
        tool: None,
        usage: None,
        rationale: None,
        step: Some("s1".try_into().unwrap()),
    };
    let id = thread["thread"].as_str().unwrap().try_into().unwrap();
    let proposal = countersign_web::api::transitions::read_proposal(id, ask).unwrap();
    let ours = join_all((0..8).map(|_| g.service.proposals.propose(&token, &proposal)));
    let theirs = join_all((0..8).map(|_| other.proposals.propose(&token, &proposal)));
    let (ours, theirs) = futures_util::future::join(ours, theirs).await;
    let mut done = 0;
    for answer in ours.into_iter().chain(theirs) {
        match answer {
            Ok(answer) => {
                let told = format!("{answer:?}");
                assert!(told.starts_with("Committed { version: 1,"), "{told}");
                done += 1;
            }
            Err(error) => assert!(matches!(error, countersign_service::error::Error::Busy), "{error:?}"),
        }
    }
    assert!(done > 0);
    let twice = steps(g, &thread, &thread["transition"], "s1", action("update_email")).await.expect(201);
    assert_eq!((&twice["version"], version(g, &thread).await), (&json!(1), 1));
    scene.passes_an_audit().await;
}

async fn a_step_may_be_a_rollback_a_join_or_a_question(scene: ApiScenario) {
    let g = &scene.gateway;
    let thread = g.thread().await;
    let first = steps(g, &thread, &thread["transition"], "s1", action("update_email")).await.expect(201);
    let back = json!({"node": "planner", "parent": first["transition"], "to_version": 0, "step": "back"});
    let path = format!("/v1/threads/{}/rollbacks", thread["thread"].as_str().unwrap());
    let held = g.post(&path, &g.planner, back.clone()).await.expect(202);
    assert_eq!(g.post(&path, &g.planner, back.clone()).await.expect(202)["transition"], held["transition"]);
    let question = json!({"parent": first["transition"], "reaffirm": true, "patch": {}, "step": "back"});
    assert_eq!(as_token(g, &g.planner, &thread, question).await.code(), "step_reused", "of another kind");
    scene.passes_an_audit().await;
}

async fn proposal_that_superseded_a_held_step_is_the_step(scene: ApiScenario) {
    let g = &scene.gateway;
    let thread = g.thread().await;
    let head = &thread["transition"];
    let held = steps(g, &thread, head, "s1", json!({"target_user_id": 42})).await.expect(202);
    activates(g, &POLICY.replacen("ttl = \"24h\"", "ttl = \"12h\"", 1), json!([])).await.expect(200);
    for review in g.service.reviews.holds_to_rejudge().await.unwrap() {
        g.service.reviews.rejudge_hold(&review).await.unwrap();
    }
    let decision = g.decision(&held).await.expect(200);
    assert_eq!(decision["decision"], "superseded");
    assert!(decision["superseded_by"].is_string(), "{decision}");
    let other = steps(g, &thread, head, "s1", json!({"target_user_id": 43})).await;
    assert_eq!((other.code(), &other.body["transition"]), ("step_reused", &held["transition"]));
    scene.passes_an_audit().await;
}

async fn a_step_that_a_write_overtook_is_tried_again(scene: ApiScenario) {
    let g = &scene.gateway;
    let thread = g.thread().await;
    let head = &thread["transition"];
    let held = steps(g, &thread, head, "s1", json!({"target_user_id": 42})).await.expect(202);
    g.verify(&thread["thread"], head, &Value::Null, "w1").await.expect(200);
    let written = g.confirm("w1").await.expect(200);
    assert_eq!(g.decision(&held).await.expect(200)["decision"], "superseded");
    let again = steps(g, &thread, &written["transition"], "s1", json!({"target_user_id": 43})).await.expect(202);
    assert_ne!(again["transition"], held["transition"]);
    scene.passes_an_audit().await;
}

async fn audit_checks_the_attempts_of_steps(scene: ApiScenario) {
    let g = &scene.gateway;
    let thread = g.thread().await;
    steps(g, &thread, &thread["transition"], "s1", json!({"result_ref": 1})).await.expect(422);
    steps(g, &thread, &thread["transition"], "s1", action("update_email")).await.expect(201);
    scene.passes_an_audit().await;
    let tries = scene.forgets_a_try(thread["thread"].as_str().unwrap(), "planner", "s1").await;
    assert_eq!(tries, 2);
    let row = format!("steps {}/planner/s1", thread["thread"].as_str().unwrap());
    let findings =
        ["the attempts of the step differ from its events", "the step was not written once for each attempt"];
    assert_eq!(scene.findings().await, findings.map(|it| format!("{row}: {it}")));
}
