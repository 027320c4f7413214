//! What a node is given before a model is called: as much as fits, sealed, and checked before it is used. On both databases.

use countersign::domain::context::{Encoding, Envelope, EnvelopeCode, Expected, check};
use countersign::domain::json::canonical::canonical;
use countersign::domain::keys::PublicKeys;
use serde_json::{Value, json};

use crate::gateway::{Answer, Gateway};
use crate::rules::{Scene, codes};

on_both! {
    a_view_is_sealed_and_believed_until_the_head_moves(super::given("")),
    what_does_not_fit_goes_by_priority_and_what_is_required_never(super::given("max_tokens = 40\npriority = [\"raw_text\"]\nrequires = [\"target_user_id\"]")),
    there_is_no_envelope_without_what_is_required(super::given("max_tokens = 10\nrequires = [\"raw_text\"]")),
    what_was_changed_or_is_of_others_is_not_believed(super::given("")),
    nothing_that_a_node_does_not_read_is_in_it(super::given("")),
    a_policy_says_how_tokens_are_counted(format!("{}\n[context]\nencoding = \"cl100k_base\"\n", super::given(""))),
}

/// The payments policy, with what its planner is given.
fn given(more: &str) -> String {
    let rollback = format!("rollback = true\n{more}\n");
    crate::gateway::POLICY.replacen("rollback = true\n", &rollback, 1)
}

async fn thread(g: &Gateway, text: &str) -> Value {
    let state = json!({"raw_text": text, "requested_action": "none", "target_user_id": 17,
        "payment": {"amount": 10, "card": "4111111111111111"}});
    g.post("/v1/threads", &g.host, json!({"flow": "payments", "state": state})).await.expect(201)
}

async fn envelope(g: &Gateway, thread: &Value) -> Answer {
    let path = format!("/v1/threads/{}/envelope?node=planner", thread["thread"].as_str().unwrap());
    g.get(&path, &g.planner).await
}

async fn verify(g: &Gateway, envelope: &Value) -> Answer {
    g.post("/v1/envelopes/verify", &g.planner, json!({"envelope": envelope, "node": "planner"})).await
}

fn offline(keys: &PublicKeys, envelope: &Value) -> Result<u64, EnvelopeCode> {
    let envelope: Envelope = serde_json::from_value(envelope.clone()).unwrap();
    let expected = Expected { keys, issuer: keys.issuer(), thread: None, node: None, version: None };
    check(&envelope, &expected).map(|it| it.version)
}

async fn published(g: &Gateway) -> PublicKeys {
    let jwks: Value =
        g.http.get(format!("{}/.well-known/jwks.json", g.url)).send().await.unwrap().json().await.unwrap();
    PublicKeys::from_jwks(&jwks).unwrap()
}

async fn a_view_is_sealed_and_believed_until_the_head_moves(scene: Scene) {
    let g = &scene.gateway;
    let thread = thread(g, "Pay Eva.").await;
    let sealed = envelope(g, &thread).await.expect(200);
    let path = format!("/v1/threads/{}/state?node=planner", thread["thread"].as_str().unwrap());
    let state = g.get(&path, &g.planner);
    assert_eq!(sealed["payload"], state.await.expect(200)["state"], "the node's view, whole");
    let tokens = Encoding::O200kBase.count(&canonical(&sealed["payload"]));
    let members = (&sealed["version"], &sealed["transition"], &sealed["tokenBudget"], &sealed["tokens"]);
    assert_eq!(members, (&json!(0), &thread["transition"], &Value::Null, &json!(tokens)));
    let checked = verify(g, &sealed).await.expect(200);
    assert_eq!(
        (&checked["valid"], &checked["thread"], &checked["node"]),
        (&json!(true), &thread["thread"], &json!("planner"))
    );
    assert_eq!(offline(&published(g).await, &sealed), Ok(0));
    let patch = json!({"requested_action": "update_email"});
    g.propose(&thread["thread"], &thread["transition"], (&g.planner, "planner"), patch).await.expect(201);
    let stale = verify(g, &sealed).await;
    assert_eq!((stale.status, stale.code()), (422, "stale"));
    let anew = envelope(g, &thread).await.expect(200);
    assert_eq!(verify(g, &anew).await.expect(200)["version"], 1);
    scene.passes_an_audit().await;
}

async fn what_does_not_fit_goes_by_priority_and_what_is_required_never(scene: Scene) {
    let g = &scene.gateway;
    let thread = thread(g, &"word ".repeat(500)).await;
    let sealed = envelope(g, &thread).await.expect(200);
    assert_eq!(sealed["payload"]["target_user_id"], 17);
    assert_eq!(sealed["tokenBudget"], 40);
    assert!(sealed["tokens"].as_u64().unwrap() <= 40, "{sealed}");
    let gone: Vec<_> = sealed["truncated"].as_array().unwrap().iter().map(|it| (&it["pointer"], &it["how"])).collect();
    let (dropped, cut) = (json!("dropped"), json!("cut"));
    let (amount, text, action) = (json!("/payment"), json!("/raw_text"), json!("/requested_action"));
    assert_eq!(gone, [(&amount, &dropped), (&text, &cut), (&action, &dropped)]);
    assert_eq!(envelope(g, &thread).await.expect(200)["payload"], sealed["payload"], "always the same");
    verify(g, &sealed).await.expect(200);
    scene.passes_an_audit().await;
}

async fn there_is_no_envelope_without_what_is_required(scene: Scene) {
    let g = &scene.gateway;
    let state = json!({"requested_action": "none", "target_user_id": 17});
    let bare = g.post("/v1/threads", &g.host, json!({"flow": "payments", "state": state})).await.expect(201);
    let missing = envelope(g, &bare).await;
    assert_eq!((missing.status, missing.code(), codes(&missing)), (422, "required_missing", vec!["required_missing"]));
    assert_eq!(missing.body["errors"][0]["pointer"], "/raw_text");
    let large = thread(g, &"word ".repeat(50)).await;
    let over = envelope(g, &large).await;
    assert_eq!((over.status, over.code()), (422, "over_budget"));
    scene.passes_an_audit().await;
}

async fn what_was_changed_or_is_of_others_is_not_believed(scene: Scene) {
    let g = &scene.gateway;
    let thread = thread(g, "Pay Eva.").await;
    let sealed = envelope(g, &thread).await.expect(200);
    let keys = published(g).await;
    let spoil = |member: &str, value: Value| {
        let mut spoiled = sealed.clone();
        spoiled[member] = value;
        spoiled
    };
    let mut payload = sealed["payload"].clone();
    payload["target_user_id"] = json!(666);
    for (member, value) in [
        ("payload", payload),
        ("version", json!(7)),
        ("tokenBudget", json!(1_000)),
        ("tokens", json!(1)),
        ("truncated", json!([{"pointer": "/a", "how": "dropped"}])),
        ("timestamp", json!("2026-11-21T01:36:40.123Z")),
        ("transition", json!(format!("sha256:{}", "0".repeat(64)))),
    ] {
        let spoiled = spoil(member, value);
        let refused = verify(g, &spoiled).await;
        assert_eq!((refused.status, refused.code()), (422, "envelope_mismatch"), "{member}");
        assert_eq!(offline(&keys, &spoiled), Err(EnvelopeCode::EnvelopeMismatch), "{member}");
    }
    let entry = spoil("signature", thread["entry"].clone());
    assert_eq!(verify(g, &entry).await.code(), "envelope_malformed", "another token of the same key");
    let ask = json!({"envelope": sealed, "node": "input_parser"});
    assert_eq!(g.post("/v1/envelopes/verify", &g.planner, ask).await.code(), "node_mismatch");
    let ask = json!({"envelope": sealed, "thread": "another"});
    assert_eq!(g.post("/v1/envelopes/verify", &g.planner, ask).await.code(), "thread_mismatch");
    assert_eq!(g.post("/v1/envelopes/verify", &g.planner, json!({"envelope": {}})).await.code(), "malformed");
    scene.passes_an_audit().await;
}

async fn nothing_that_a_node_does_not_read_is_in_it(scene: Scene) {
    let g = &scene.gateway;
    let thread = thread(g, "Pay Eva.").await;
    let text = envelope(g, &thread).await.expect(200).to_string();
    assert!(!text.contains("4111111111111111"), "{text}");
    let path = format!("/v1/threads/{}/envelope?node=planner", thread["thread"].as_str().unwrap());
    assert_eq!(g.get(&path, &g.parser).await.code(), "forbidden", "another node's");
    assert_eq!(g.get(&path, &g.writer).await.code(), "forbidden", "a writer asks by verify");
    let sealed = g.get(&path, &g.auditor).await.expect(200);
    g.post("/v1/envelopes/verify", &g.auditor, json!({"envelope": sealed})).await.expect(200);
    scene.passes_an_audit().await;
}

async fn a_policy_says_how_tokens_are_counted(scene: Scene) {
    let g = &scene.gateway;
    let thread = thread(g, "Überweisung an Eva, bitte.").await;
    let sealed = envelope(g, &thread).await.expect(200);
    assert_eq!(sealed["tokens"], Encoding::Cl100kBase.count(&canonical(&sealed["payload"])));
    assert_eq!(verify(g, &sealed).await.expect(200)["encoding"], "cl100k_base");
}
