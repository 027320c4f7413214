//! What detectors find, where machines are told.

use countersign::domain::review::Verdict;
use serde_json::json;

use crate::gateway::{POLICY, ballot, spawn_with_policy};

#[tokio::test]
async fn what_detectors_find_is_neither_in_a_redacted_diff_nor_in_a_comment() {
    let detecting = POLICY.replace("hide = [\"payment.card\"]", "detect = [\"email\", \"card_number\"]");
    assert_ne!(detecting, POLICY);
    let g = spawn_with_policy(&detecting).await;
    let thread = g.thread().await;
    let patch = json!({"raw_text": "charge 4111 1111 1111 1111"});
    let asked = g.propose(&thread["thread"], &thread["transition"], (&g.parser, "input_parser"), patch);
    let committed = asked.await.expect(201);
    let path = format!("/v1/transitions/{}", committed["transition"].as_str().unwrap());
    let told = g.get(&path, &g.host).await.expect(200);
    assert_eq!(told["diff"], json!([{"pointer": "/raw_text", "hidden": true, "effect": "added"}]));

    let patch = json!({"target_user_id": 42});
    let asked = g.propose(&thread["thread"], &committed["transition"], (&g.planner, "planner"), patch);
    let held = asked.await.expect(202);
    let mut vote = ballot(&held, Verdict::Approve);
    vote.comment = Some("ana@example.org says yes".to_owned());
    let review = held["review"]["id"].as_str().unwrap().try_into().unwrap();
    g.service.vote(&g.bob.id, &review, &vote).await.unwrap();
    assert_eq!(g.decision(&held).await.expect(200)["comment"], "[email] says yes");
}
