//! Tests the envelope that a node gets before it calls a model: cut to the token limit, signed and checked before use.
//! On both databases.

use countersign_domain::context::{Encoding, Envelope, EnvelopeCode, ExpectedEnvelope, check};
use countersign_domain::json::canonical::canonical;
use countersign_domain::keys::PublicKeys;
use serde_json::{Value, json};

use crate::amendments::activates;
use crate::gateway::{ApiResponse, TestGateway};
use crate::rules::{ApiScenario, codes};

on_both_in_full! {
    envelope_is_valid_until_the_head_moves(super::given("")),
    envelope_drops_keys_by_priority_and_never_required_keys(super::given("max_tokens = 40\npriority = [\"raw_text\"]\nrequires = [\"target_user_id\"]")),
    missing_required_key_prevents_an_envelope(super::given("max_tokens = 10\nrequires = [\"raw_text\"]")),
    changed_or_foreign_envelope_is_refused(super::given("")),
    envelope_has_only_values_that_its_node_reads(super::given("")),
    view_that_breaks_its_schema_is_not_returned(super::given(super::RECEIVES)),
    envelope_names_no_path_below_a_redacted_value(super::hidden_and_read()),
    value_cut_by_the_token_limit_fails_the_schema(super::given(&format!("max_tokens = 30\n{}", super::RECEIVES))),
    later_policy_changes_the_envelope_schema(super::given("")),
    response_without_a_change_has_the_current_head(super::given("requires = [\"raw_text\"]")),
    policy_sets_the_token_encoding(format!("{}\n[context]\nencoding = \"cl100k_base\"\n", super::given(""))),
}

/// The planner's schema: no amount of 13, which no test pays, and a text with a full stop at its end.
const RECEIVES: &str = r#"
[nodes.planner.receives]
required = ["raw_text"]
[nodes.planner.receives.properties.raw_text]
type = "string"
pattern = "[.]$"
[nodes.planner.receives.properties.requested_action]
[nodes.planner.receives.properties.target_user_id]
type = "integer"
[nodes.planner.receives.properties.payment.properties.amount]
not.const = 13
"#;

/// Returns a policy whose planner reads a card that is redacted, and receives no card with a number of 13.
fn hidden_and_read() -> String {
    let whole = "\"raw_text\", \"requested_action\", \"target_user_id\", \"payment.amount\"";
    let reads = given("").replacen(&format!("reads = [{whole}]"), &format!("reads = [{whole}, \"payment.card\"]"), 1);
    let reads = reads.replacen("schema = \"payments.schema.json\"\n", "", 1);
    let receives = "\n[nodes.planner.receives]\nadditionalProperties = true\n\
        [nodes.planner.receives.properties.payment.properties.card.properties.number]\nnot.const = 13\n";
    format!("{reads}{receives}")
}

/// Returns the payments policy with options for its planner's envelope.
fn given(more: &str) -> String {
    let rollback = format!("rollback = true\n{more}\n");
    crate::gateway::POLICY.replacen("rollback = true\n", &rollback, 1)
}

async fn thread(g: &TestGateway, text: &str) -> Value {
    let state = json!({"raw_text": text, "requested_action": "none", "target_user_id": 17,
        "payment": {"amount": 10, "card": "4111111111111111"}});
    g.post("/v1/threads", &g.host, json!({"flow": "payments", "state": state})).await.expect(201)
}

async fn envelope(g: &TestGateway, thread: &Value) -> ApiResponse {
    let path = format!("/v1/threads/{}/envelope?node=planner", thread["thread"].as_str().unwrap());
    g.get(&path, &g.planner).await
}

async fn verify(g: &TestGateway, envelope: &Value) -> ApiResponse {
    g.post("/v1/envelopes/verify", &g.planner, json!({"envelope": envelope, "node": "planner"})).await
}

/// Returns the number of events.
async fn told_so_far(g: &TestGateway) -> u64 {
    g.service.log.sequence().await.unwrap();
    g.service.log.log_length().await.unwrap()
}

fn offline(keys: &PublicKeys, envelope: &Value) -> Result<u64, EnvelopeCode> {
    let envelope: Envelope = serde_json::from_value(envelope.clone()).unwrap();
    let expected = ExpectedEnvelope { issuer: keys.issuer(), ..ExpectedEnvelope::by(keys) };
    check(&envelope, &expected).map(|it| it.version)
}

async fn published(g: &TestGateway) -> PublicKeys {
    let jwks: Value =
        g.http.get(format!("{}/.well-known/jwks.json", g.url)).send().await.unwrap().json().await.unwrap();
    PublicKeys::from_jwks(&jwks).unwrap()
}

async fn envelope_is_valid_until_the_head_moves(scene: ApiScenario) {
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

async fn envelope_drops_keys_by_priority_and_never_required_keys(scene: ApiScenario) {
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

async fn missing_required_key_prevents_an_envelope(scene: ApiScenario) {
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

async fn changed_or_foreign_envelope_is_refused(scene: ApiScenario) {
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

async fn envelope_has_only_values_that_its_node_reads(scene: ApiScenario) {
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

async fn policy_sets_the_token_encoding(scene: ApiScenario) {
    let g = &scene.gateway;
    let thread = thread(g, "Überweisung an Eva, bitte.").await;
    let sealed = envelope(g, &thread).await.expect(200);
    assert_eq!(sealed["tokens"], Encoding::Cl100kBase.count(&canonical(&sealed["payload"])));
    assert_eq!(verify(g, &sealed).await.expect(200)["encoding"], "cl100k_base");
}

async fn view_that_breaks_its_schema_is_not_returned(scene: ApiScenario) {
    let g = &scene.gateway;
    let fits = thread(g, "Pay Eva.").await;
    let sealed = envelope(g, &fits).await.expect(200);
    verify(g, &sealed).await.expect(200);
    let start = async |state: Value| {
        g.post("/v1/threads", &g.host, json!({"flow": "payments", "state": state})).await.expect(201)
    };
    let secret = "4111111111111111";
    let payment = json!({"amount": 13, "card": secret});
    let other = start(
        json!({"raw_text": format!("{secret}."), "requested_action": "none", "target_user_id": 17, "payment": payment}),
    )
    .await;
    let events = told_so_far(g).await;
    let refused = envelope(g, &other).await;
    assert_eq!((refused.status, refused.code(), codes(&refused)), (422, "schema_mismatch", vec!["schema"]));
    assert_eq!(refused.body["errors"][0]["pointer"], "/payment/amount");
    assert!(
        !refused.body.to_string().contains(secret) && !refused.body.to_string().contains("13,"),
        "no value is told"
    );
    assert_eq!(refused.body["checkpoint"], json!({"version": 0, "transition": other["transition"]}));
    assert_eq!(told_so_far(g).await, events + 1, "nothing was changed, and the refusal is told");
    let bare = start(json!({"requested_action": "none", "target_user_id": 17, "payment": {"amount": 1}})).await;
    assert_eq!(envelope(g, &bare).await.body["errors"][0]["pointer"], "/raw_text");
    scene.passes_an_audit().await;
}

async fn value_cut_by_the_token_limit_fails_the_schema(scene: ApiScenario) {
    let g = &scene.gateway;
    let short = thread(g, "Pay Eva.").await;
    envelope(g, &short).await.expect(200);
    // The whole text would be valid. The part that fits has no full stop at its end.
    let long = thread(g, &format!("{}.", "0123456789 ".repeat(50))).await;
    let refused = envelope(g, &long).await;
    assert_eq!((refused.code(), &refused.body["errors"][0]["pointer"]), ("schema_mismatch", &json!("/raw_text")));
}

async fn later_policy_changes_the_envelope_schema(scene: ApiScenario) {
    let g = &scene.gateway;
    let state = json!({"raw_text": "Pay Eva.", "requested_action": "none", "target_user_id": 17,
        "payment": {"amount": 13, "card": "4111111111111111"}});
    let thread = g.post("/v1/threads", &g.host, json!({"flow": "payments", "state": state})).await.expect(201);
    let sealed = envelope(g, &thread).await.expect(200);
    verify(g, &sealed).await.expect(200);
    activates(g, &given(RECEIVES), json!([])).await.expect(200);
    let refused = verify(g, &sealed).await;
    assert_eq!((refused.status, refused.code(), codes(&refused)), (422, "schema_mismatch", vec!["schema"]));
    assert_eq!(refused.body["errors"][0]["pointer"], "/payment/amount");
    assert_eq!(refused.body["checkpoint"]["transition"], thread["transition"]);
}

async fn response_without_a_change_has_the_current_head(scene: ApiScenario) {
    let g = &scene.gateway;
    let thread = thread(g, "Pay Eva.").await;
    let (id, first) = (&thread["thread"], &thread["transition"]);
    let head = |version: u64, transition: &Value| json!({"version": version, "transition": transition});
    // A rejection that is returned again after the head has moved is unchanged.
    let forbidden = json!({"result_ref": "x"});
    let as_planner = (g.planner.as_str(), "planner");
    let rejected = g.propose(id, first, as_planner, forbidden.clone()).await;
    assert_eq!((rejected.code(), &rejected.body["checkpoint"]), ("rejected", &head(0, first)));
    let patch = json!({"requested_action": "update_email"});
    let committed = g.propose(id, first, as_planner, patch.clone()).await.expect(201);
    let again = g.propose(id, first, as_planner, forbidden).await;
    assert_eq!((again.code(), &again.body["checkpoint"]), ("rejected", &head(0, first)));
    let moved = g.propose(id, first, as_planner, json!({"requested_action": "none"})).await;
    let now = head(1, &committed["transition"]);
    assert_eq!((moved.code(), &moved.body["checkpoint"]), ("head_moved", &now));
    assert_eq!(moved.body["head"], moved.body["checkpoint"]);
    let sealed = envelope(g, &thread).await.expect(200);
    let path = format!("/v1/threads/{}/state?node=planner", id.as_str().unwrap());
    let state = g.get(&path, &g.planner).await.expect(200);
    assert_eq!(now, head(state["version"].as_u64().unwrap(), &state["transition"]), "what the node is told anyway");
    g.propose(id, &committed["transition"], as_planner, json!({"requested_action": "none"})).await.expect(201);
    let stale = verify(g, &sealed).await;
    assert_eq!((stale.code(), &stale.body["checkpoint"]["version"]), ("stale", &json!(2)));
    // A caller who may not read the thread is not shown its version.
    let elsewhere = g.get(&path.replace("state", "envelope"), &g.parser).await;
    assert_eq!((elsewhere.status, &elsewhere.body["checkpoint"]), (403, &Value::Null));
}

async fn envelope_names_no_path_below_a_redacted_value(scene: ApiScenario) {
    let g = &scene.gateway;
    let state = json!({"raw_text": "Pay.", "requested_action": "none", "target_user_id": 17,
        "payment": {"amount": 1, "card": {"number": 13}}});
    let thread = g.post("/v1/threads", &g.host, json!({"flow": "payments", "state": state})).await.expect(201);
    let refused = envelope(g, &thread).await;
    assert_eq!((refused.code(), &refused.body["errors"][0]["pointer"]), ("schema_mismatch", &json!("/payment/card")));
}
