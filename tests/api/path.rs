//! Tests the main path: propose, approve, verify and write.

use countersign_domain::reviews::VoteVerdict;
use serde_json::{Value, json};

use crate::gateway::spawn_gateway;

#[tokio::test]
async fn a_held_change_is_approved_and_written_exactly_once() {
    let gateway = spawn_gateway().await;
    let thread = gateway.thread().await;
    let held = gateway.held(&thread).await;
    assert_eq!(held["outcome"], "held");
    assert_eq!(gateway.decision(&held).await.expect(202)["status"], "held");

    let decision = gateway.approved(&held).await;
    assert_eq!(decision["approved"], true);
    let (id, transition, receipt) = (&thread["thread"], &held["transition"], &decision["receipt"]);
    let allowed = gateway.verify(id, transition, receipt, "w1").await.expect(200);
    assert_eq!(
        allowed["view"],
        json!({"requested_action": "update_email", "target_user_id": 42, "payment": {"amount": 10}})
    );
    assert_eq!(allowed["replayed"], false);
    assert_eq!(gateway.verify(id, transition, receipt, "w1").await.expect(200)["replayed"], true);
    assert_eq!(gateway.verify(id, transition, receipt, "w2").await.code(), "write_in_progress");

    let confirmed = gateway.confirm("w1").await.expect(200);
    assert_eq!((&confirmed["outcome"], &confirmed["version"]), (&json!("confirmed"), &json!(2)));
    assert_eq!(gateway.confirm("w1").await.expect(200), confirmed);
    assert_eq!(gateway.verify(id, transition, receipt, "w1").await.code(), "already_used");
    assert_eq!(gateway.verify(id, transition, receipt, "w3").await.code(), "not_head");
}

#[tokio::test]
async fn a_harmless_change_commits_by_itself_and_asking_again_gives_the_same_answer() {
    let gateway = spawn_gateway().await;
    let thread = gateway.thread().await;
    let ask = || {
        gateway.propose(
            &thread["thread"],
            &thread["transition"],
            (&gateway.parser, "input_parser"),
            json!({"raw_text": "hello"}),
        )
    };
    let first = ask().await.expect(201);
    assert_eq!((&first["outcome"], &first["changed"]), (&json!("committed"), &json!(["/raw_text"])));
    assert_eq!(ask().await.expect(201), first);
    let other = gateway.propose(
        &thread["thread"],
        &thread["transition"],
        (&gateway.parser, "input_parser"),
        json!({"raw_text": "other"}),
    );
    let moved = other.await;
    assert_eq!((moved.status, moved.code()), (409, "head_moved"));
    assert_eq!(moved.body["head"]["transition"], first["transition"]);
}

#[tokio::test]
async fn an_injected_authority_is_rejected_and_stays_rejected() {
    let gateway = spawn_gateway().await;
    let thread = gateway.thread().await;
    for patch in [json!({"is_admin": true}), json!({"execution_permissions": {"write_scope": "tenant_admin"}})] {
        for _ in 0..2 {
            let answer = gateway
                .propose(&thread["thread"], &thread["transition"], (&gateway.parser, "input_parser"), patch.clone())
                .await;
            assert_eq!((answer.status, answer.code()), (422, "rejected"), "{}", answer.body);
            assert_eq!(answer.body["errors"][0]["code"], "write_not_allowed");
        }
    }
    let state =
        gateway.get(&format!("/v1/threads/{}", thread["thread"].as_str().unwrap()), &gateway.host).await.expect(200);
    assert_eq!((&state["version"], &state["status"]), (&json!(0), &json!("open")));
}

#[tokio::test]
async fn a_denied_change_gives_no_receipt_and_leaves_the_head_as_it_was() {
    let gateway = spawn_gateway().await;
    let thread = gateway.thread().await;
    let held = gateway.held(&thread).await;
    gateway.vote(&gateway.bob, &held, VoteVerdict::Deny).await.unwrap();
    let decision = gateway.decision(&held).await.expect(200);
    assert_eq!((&decision["approved"], &decision["decision"]), (&json!(false), &json!("denied")));
    assert_eq!(decision["receipt"], Value::Null);
    assert_eq!(gateway.verify(&thread["thread"], &held["transition"], &Value::Null, "w1").await.code(), "not_head");
    let again = gateway.verify(&thread["thread"], &thread["transition"], &Value::Null, "w2").await.expect(200);
    assert_eq!(again["view"]["target_user_id"], 17);
}

#[tokio::test]
async fn a_wrong_query_is_answered_to_machines_as_a_problem() {
    let gateway = spawn_gateway().await;
    let answer = gateway.get("/v1/events?x=1", &gateway.auditor).await;
    assert_eq!((answer.status, answer.code()), (400, "malformed"));
}

#[tokio::test]
async fn a_thread_is_made_once_by_its_name_and_not_again_as_another() {
    let g = spawn_gateway().await;
    let state = json!({"requested_action": "none", "target_user_id": 17, "payment": {"amount": 10}});
    let ask = json!({
        "flow": "payments", "thread": "refund-7", "state": state,
        "context": {"title": "Refund 7", "on_behalf_of": "ana", "links": ["https://desk.example/7"]},
    });
    let made = g.post("/v1/threads", &g.host, ask.clone()).await.expect(201);
    assert_eq!(g.post("/v1/threads", &g.host, ask.clone()).await.expect(201), made);
    let mut others = vec![("no context", ask.clone()), ("another title", ask.clone()), ("another state", ask)];
    others[0].1.as_object_mut().unwrap().remove("context");
    others[1].1["context"]["title"] = json!("Refund 8");
    others[2].1["state"]["target_user_id"] = json!(18);
    for (what, other) in others {
        let refused = g.post("/v1/threads", &g.host, other).await;
        assert_eq!((refused.status, refused.code()), (409, "exists"), "{what}: {}", refused.body);
    }
}
