//! Tests that callers without permission, and callers during a halt, cannot write.

use countersign_domain::identity::account::MachineRole;
use countersign_domain::primitives::id::TokenId;
use serde_json::{Value, json};

use super::{AttackScenario, approve, cases, policy_with};
use crate::gateway::{POLICY, token};

async fn close(scene: &AttackScenario, action: &str) {
    let path = format!("/v1/threads/{}/{action}", scene.case.id().as_str().unwrap());
    scene.g.post(&path, &scene.g.admin, json!({"reason": "an exercise"})).await.expect(200);
}

cases! {
    halted_flow_allows_no_write: "halted", Before, |s| {
        s.halt("payments", false, true).await;
        s.case.ask("spoiled")
    };
    halt_of_all_flows_allows_no_write: "halted", Before, |s| {
        s.halt("all", false, true).await;
        s.case.ask("spoiled")
    };
    a_halt_of_all_is_not_lifted_by_a_flow: "halted", Before, |s| {
        s.halt("all", false, true).await;
        s.halt("payments", false, false).await;
        s.case.ask("spoiled")
    };
    a_reservation_is_not_repeated_past_a_halt: "halted", Before, |s| {
        let ask = s.case.ask("spoiled");
        s.g.post("/v1/verify", &s.g.writer, ask.clone()).await.expect(200);
        s.halt("payments", false, true).await;
        ask
    };
    closed_thread_allows_no_write: "closed", Before, |s| {
        close(s, "closing").await;
        s.case.ask("spoiled")
    };
    unknown_thread_allows_no_write: "unknown_thread", Same, |s| {
        let mut ask = s.case.ask("spoiled");
        ask["thread"] = json!("no-such-thread");
        ask
    };
    a_member_more_is_refused: "malformed", Same, |s| {
        let mut ask = s.case.ask("spoiled");
        ask["force"] = json!(true);
        ask
    };
    a_member_less_is_refused: "malformed", Same, |s| {
        let mut ask = s.case.ask("spoiled");
        ask.as_object_mut().unwrap().remove("write_id");
        ask
    };
    a_write_id_with_a_slash_is_refused: "malformed", Same, |s| s.case.ask("a/b");
    an_expectation_that_is_no_pointer_is_refused: "malformed", Same, |s| {
        let mut ask = s.case.ask("spoiled");
        ask["expect"] = json!({"target_user_id": 42});
        ask
    };
    an_ask_that_is_an_array_is_refused: "malformed", Same, |s| {
        let ask = s.case.ask("spoiled");
        json!({"thread": ask["thread"], "transition": [ask["transition"]], "write_id": "spoiled"})
    };
}

/// Requests that are not strict JSON are denied with 403, so that a client that reads only the status does not write.
#[tokio::test]
async fn request_that_is_not_strict_json_is_denied() {
    let scene = AttackScenario::new(POLICY).await;
    let honest = scene.case.ask("w1").to_string();
    let twice = honest.replacen('{', r#"{"write_id":"w0","#, 1);
    let spoiled = ["", "{}", "null", &honest[..honest.len() - 1], &format!("{honest} x"), &twice, &"[".repeat(100)];
    for text in spoiled {
        let request = scene.g.http.post(format!("{}/v1/verify", scene.g.url)).bearer_auth(&scene.g.writer);
        let answer = crate::gateway::ApiResponse::of(request.body(text.to_owned()).send().await.unwrap()).await;
        assert_eq!((answer.status, answer.code()), (403, "malformed"), "{text}");
    }
    assert_eq!(scene.rows_all(), 0);
    scene.write(&scene.case.ask("w1")).await.expect(200);
    assert_eq!(scene.rows_all(), 1);
}

/// Sends the writer's valid request with every other token.
#[tokio::test]
async fn only_the_writer_of_the_flow_is_allowed() {
    let scene = AttackScenario::new(POLICY).await;
    let ask = scene.case.ask("w1");
    let refunds = POLICY.replace("flow = \"payments\"", "flow = \"refunds\"");
    scene
        .g
        .service
        .policy_changes
        .activate_policy(&"tests".try_into().unwrap(), None, crate::gateway::source(&refunds), Default::default())
        .await
        .unwrap();
    let new = countersign_service::identity::accounts::NewToken {
        name: "refunder".to_owned(),
        role: MachineRole::Writer,
        owner: countersign_service::identity::owner_names::NewOwner::Group("platform".to_owned()),
        flow: Some("refunds".try_into().unwrap()),
        nodes: ["database_writer".try_into().unwrap()].into(),
    };
    let refunder = scene.g.service.identity.add_token(&new).await.unwrap().1;
    let as_planner = token(&scene.g.service, "planner-writer", MachineRole::Writer, &["planner"]).await;
    let as_nobody = token(&scene.g.service, "stranger", MachineRole::Writer, &["no_such_node"]).await;
    let g = &scene.g;
    for other in [&refunder, &as_planner, &as_nobody, &g.host, &g.parser, &g.planner, &g.admin, &g.auditor] {
        let answer = scene.write_as(other, &ask).await;
        assert_eq!((answer.status, answer.code()), (403, "forbidden"), "{}", answer.body);
    }
    // The secret may contain `_` itself.
    let secret = g.writer.splitn(3, '_').last().unwrap();
    let flipped = g.writer.replace(secret, &secret.chars().rev().collect::<String>());
    for stranger in ["", "cs_", "cs_x_y", &g.writer[3..], &flipped, &format!("{}x", g.writer)] {
        let answer = scene.write_as(stranger, &ask).await;
        assert_eq!((answer.status, answer.code()), (401, "unauthenticated"), "{stranger}");
    }
    assert_eq!(scene.rows_all(), 0);
    scene.write(&ask).await.expect(200);
    assert_eq!(scene.rows_all(), 1);
}

#[tokio::test]
async fn a_writer_that_the_receipt_does_not_name_is_refused() {
    let scene = AttackScenario::new(POLICY).await;
    let digest = scene.case.held["transition"].as_str().unwrap();
    let told = scene.g.get(&format!("/v1/transitions/{digest}"), &scene.g.host).await.expect(200);
    let second =
        "[nodes.other_writer]\nreads = [\"target_user_id\"]\nwrites = [\"result_ref\"]\nwriter = true\n\n[approval]";
    scene.activate(&policy_with("[approval]", second), json!([told["statement"]["policy"]])).await;
    let other = token(&scene.g.service, "other", MachineRole::Writer, &["other_writer"]).await;
    let refused = scene.write_as(&other, &scene.case.ask("w1")).await;
    assert_eq!((refused.status, refused.code()), (403, "audience_mismatch"));
    assert_eq!(scene.rows_all(), 0);
    scene.write(&scene.case.ask("w1")).await.expect(200);
    assert_eq!(scene.rows_all(), 1);
}

/// The public part of a token.
fn token_id(text: &str) -> TokenId {
    text.strip_prefix("cs_").unwrap().split('_').next().unwrap().try_into().unwrap()
}

#[tokio::test]
async fn revoked_token_is_refused_even_during_its_lease() {
    let scene = AttackScenario::new(POLICY).await;
    let second = token(&scene.g.service, "second", MachineRole::Writer, &["database_writer"]).await;
    let reserved = scene.case.ask("w1");
    scene.g.post("/v1/verify", &second, reserved.clone()).await.expect(200);
    scene.g.service.identity.revoke_token(&token_id(&second)).await.unwrap();
    let other = approve(&scene.g).await;
    for ask in [reserved, other.ask("w2")] {
        let answer = scene.write_as(&second, &ask).await;
        assert_eq!((answer.status, answer.code()), (401, "unauthenticated"));
    }
    assert_eq!(scene.g.post("/v1/writes/w1/confirm", &second, json!({"result": {}})).await.status, 401);
    assert_eq!(scene.rows_all(), 0);
    scene.write(&other.ask("w2")).await.expect(200);
    assert_eq!(scene.rows_all(), 1);
}

#[tokio::test]
async fn token_revoked_between_read_and_commit_is_refused() {
    // The handler has looked the token up; the transaction that reserves looks again.
    let scene = AttackScenario::new(POLICY).await;
    let second = token(&scene.g.service, "second", MachineRole::Writer, &["database_writer"]).await;
    let stale = scene.g.service.identity.token_of(&second).await.unwrap();
    scene.g.service.identity.revoke_token(&token_id(&second)).await.unwrap();
    let case = &scene.case;
    let ask = countersign_service::writes::verify::VerifyInput {
        thread: case.id().as_str().unwrap().try_into().unwrap(),
        transition: case.held["transition"].as_str().unwrap().try_into().unwrap(),
        receipt: Some(case.receipt().to_owned()),
        write_id: "w1".try_into().unwrap(),
        expect: Vec::new(),
    };
    assert!(scene.g.service.writes.verify(&stale, &ask).await.is_err());
    scene.write(&case.ask("w1")).await.expect(200);
    assert_eq!(scene.rows_all(), 1);
}

#[tokio::test]
async fn lifted_halt_and_reopened_thread_allow_one_write() {
    let scene = AttackScenario::new(POLICY).await;
    scene.halt("payments", true, true).await;
    close(&scene, "closing").await;
    assert_eq!(scene.write(&scene.case.ask("w1")).await.code(), "halted");
    scene.halt("payments", false, false).await;
    assert_eq!(scene.write(&scene.case.ask("w1")).await.code(), "closed");
    close(&scene, "reopening").await;
    let answers: Vec<Value> = [scene.write(&scene.case.ask("w1")).await.expect(200)].into();
    assert_eq!((answers.len(), scene.rows_all()), (1, 1));
}
