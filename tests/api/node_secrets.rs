//! Tests the HMACs of envelopes: who gets a node's secret, how long it is valid, and which HMACs are refused. On both
//! databases.

use std::collections::BTreeSet;

use countersign_domain::context::{Envelope, EnvelopeCode, ExpectedEnvelope, NodeSecrets, NodeSecretsView, check};
use countersign_domain::identity::account::MachineRole;
use countersign_domain::keys::PublicKeys;
use countersign_domain::primitives::id::{NodeId, ThreadId};
use countersign_domain::primitives::time::Timestamp;

use countersign_service::identity::accounts::NewToken;
use serde_json::{Value, json};

use crate::gateway::{ApiResponse, POLICY, TestGateway, owned_token, source};
use crate::rules::ApiScenario;

on_both! {
    requested_hmac_is_beside_the_signature(super::policy()),
    secret_is_given_only_to_the_agent_of_its_node(super::policy()),
    access_to_a_secret_is_logged_without_the_secret(super::policy()),
    secret_is_valid_until_the_end_of_the_overlap(super::policy()),
    forged_or_moved_hmac_is_refused(super::policy()),
    required_hmac_cannot_be_left_out(super::policy()),
    canonically_equal_envelope_has_a_valid_hmac(super::policy()),
    two_gateways_on_one_database_return_the_same_secret(super::policy()),
}

const SECRET: &str = "/v1/flows/payments/nodes/planner/envelope-secret";
const DAY_MILLIS: i64 = 24 * 3600 * 1000;

fn policy() -> String {
    POLICY.to_owned()
}

/// Sets the clock to noon, so that no period begins or ends during a test.
fn at_noon(g: &TestGateway) {
    let into_the_day = g.service.core.now().millis().rem_euclid(DAY_MILLIS);
    g.clock.set_millis(DAY_MILLIS + DAY_MILLIS / 2 - into_the_day);
}

async fn thread(g: &TestGateway, text: &str) -> Value {
    let state = json!({"raw_text": text, "requested_action": "none", "target_user_id": 17,
        "payment": {"amount": 10.5, "card": "4111111111111111"}});
    g.post("/v1/threads", &g.host, json!({"flow": "payments", "state": state})).await.expect(201)
}

async fn bearing(g: &TestGateway, thread: &Value) -> Value {
    let path = format!("/v1/threads/{}/envelope?node=planner&hmac=true", thread["thread"].as_str().unwrap());
    g.get(&path, &g.planner).await.expect(200)
}

async fn verify(g: &TestGateway, envelope: &Value) -> ApiResponse {
    g.post("/v1/envelopes/verify", &g.planner, json!({"envelope": envelope, "require_hmac": true})).await
}

async fn given(g: &TestGateway, path: &str, token: &str) -> NodeSecretsView {
    serde_json::from_value(g.get(path, token).await.expect(200)).unwrap()
}

/// Verifies by the published keys and the node's secrets, without the gateway.
async fn offline(g: &TestGateway, envelope: &Value, shown: &NodeSecretsView) -> Result<(), EnvelopeCode> {
    let jwks: Value =
        g.http.get(format!("{}/.well-known/jwks.json", g.url)).send().await.unwrap().json().await.unwrap();
    let keys = PublicKeys::from_jwks(&jwks).unwrap();
    let secrets = NodeSecrets::read(shown, g.service.core.now()).unwrap();
    let envelope: Envelope = serde_json::from_value(envelope.clone()).unwrap();
    check(&envelope, &ExpectedEnvelope { secrets: Some(&secrets), ..ExpectedEnvelope::by(&keys) }).map(drop)
}

/// Returns the same view with an HMAC that a holder of these secrets can make.
fn forged(envelope: &Value, shown: &NodeSecretsView, (thread, node): (&str, &str), now: Timestamp) -> Value {
    let (thread, node) = (ThreadId::try_from(thread).unwrap(), NodeId::try_from(node).unwrap());
    let bare: Envelope = serde_json::from_value(envelope.clone()).unwrap();
    json!(NodeSecrets::read(shown, now).unwrap().beside(bare, &thread, &node))
}

/// Moves the clock to this time after the next period begins.
async fn into_next_period(g: &TestGateway, after_millis: i64) {
    let rotates_at = given(g, SECRET, &g.planner).await.rotates_at;
    let moved = g.service.core.now().until(rotates_at).as_millis();
    let before = g.clock.applied_to(Timestamp::from_millis(0)).millis();
    g.clock.set_millis(before + i64::try_from(moved).unwrap() + after_millis);
}

async fn requested_hmac_is_beside_the_signature(scene: ApiScenario) {
    let g = &scene.gateway;
    at_noon(g);
    let thread = thread(g, "Überweisung an Eva 🙂").await;
    let sealed = bearing(g, &thread).await;
    let path = format!("/v1/threads/{}/envelope?node=planner", thread["thread"].as_str().unwrap());
    for not_asked in [path.clone(), format!("{path}&hmac=false")] {
        assert_eq!(g.get(&not_asked, &g.planner).await.expect(200).get("hmac"), None, "{not_asked}");
    }
    assert_eq!(g.get(&format!("{path}&hmac=1"), &g.planner).await.status, 400);
    let shown = given(g, SECRET, &g.planner).await;
    assert_eq!((&sealed["hmac"]["alg"], &sealed["hmac"]["epoch"]), (&json!("HS256"), &json!(shown.secrets[0].epoch)));
    assert_eq!(verify(g, &sealed).await.expect(200)["version"], 0);
    assert_eq!(offline(g, &sealed, &shown).await, Ok(()));
    let unasked = g.post("/v1/envelopes/verify", &g.planner, json!({"envelope": sealed})).await;
    unasked.expect(200);
    let by_auditor = g.get(&format!("{path}&hmac=true"), &g.auditor).await.expect(200);
    assert_eq!(offline(g, &by_auditor, &shown).await, Ok(()), "an auditor may hand on what the gateway sealed");
    scene.passes_an_audit().await;
}

async fn secret_is_given_only_to_the_agent_of_its_node(scene: ApiScenario) {
    let g = &scene.gateway;
    at_noon(g);
    let (mine, theirs) = (given(g, SECRET, &g.planner).await, SECRET.replace("planner", "input_parser"));
    let parsers = given(g, &theirs, &g.parser).await;
    assert_ne!(mine.secrets[0].secret, parsers.secrets[0].secret, "each node has its own");
    assert_eq!(mine.secrets[0].epoch, parsers.secrets[0].epoch);
    for (path, token) in [(SECRET, &g.parser), (theirs.as_str(), &g.planner)] {
        let refused = g.get(path, token).await;
        assert_eq!((refused.status, refused.code()), (403, "forbidden"), "{path}");
    }
    for token in [&g.host, &g.writer, &g.auditor, &g.admin, &g.monitor] {
        assert_eq!(g.get(SECRET, token).await.code(), "forbidden");
    }
    // An agent of that name in another flow has another secret, and learns nothing of this one.
    let refunds = source(&POLICY.replace("flow = \"payments\"", "flow = \"refunds\""));
    g.service
        .policy_changes
        .activate_policy(&"tests".try_into().unwrap(), None, refunds, BTreeSet::new())
        .await
        .unwrap();
    let new = NewToken {
        name: "elsewhere".to_owned(),
        role: MachineRole::Agent,
        owner: countersign_service::identity::owner_names::NewOwner::Group("platform".to_owned()),
        flow: Some("refunds".try_into().unwrap()),
        nodes: BTreeSet::from(["planner".try_into().unwrap()]),
    };
    let elsewhere = g.service.identity.add_token(&new).await.unwrap().1;
    let (other, none) = (g.get(SECRET, &elsewhere).await, g.get(&SECRET.replace("payments", "none"), &elsewhere).await);
    assert_eq!((other.status, other.code()), (404, "not_found"));
    assert_eq!((none.status, none.code(), &none.body["detail"]), (404, "not_found", &other.body["detail"]));
    let own = given(g, &SECRET.replace("payments", "refunds"), &elsewhere).await;
    assert_ne!(own.secrets[0].secret, mine.secrets[0].secret);
    let ended = owned_token(&g.service, "ended", MachineRole::Agent, &["planner"], "platform").await;
    given(g, SECRET, &ended).await;
    let id = g.service.identity.token_of(&ended).await.unwrap().record.id;
    g.service.identity.revoke_token(&id).await.unwrap();
    assert_eq!(g.get(SECRET, &ended).await.status, 401);
    scene.passes_an_audit().await;
}

async fn access_to_a_secret_is_logged_without_the_secret(scene: ApiScenario) {
    let g = &scene.gateway;
    at_noon(g);
    let thread = thread(g, "Pay Eva.").await;
    let url = format!("{}{SECRET}", g.url);
    let answer = g.http.get(url).bearer_auth(&g.planner).send().await.unwrap();
    assert_eq!(answer.headers()["cache-control"], "no-store");
    let shown: NodeSecretsView = answer.json().await.unwrap();
    let sealed = bearing(g, &thread).await;
    let mut spoiled = sealed.clone();
    spoiled["hmac"]["value"] = json!("A".repeat(43));
    let refused = verify(g, &spoiled).await.body.to_string();
    g.service.log.sequence().await.unwrap();
    let events = g.get("/v1/events", &g.auditor).await.expect(200);
    let told: Vec<&Value> = events["events"].as_array().unwrap().iter().collect();
    let told: Vec<_> = told.into_iter().filter(|it| it["type"] == "access.envelope_secret_given").collect();
    let token = g.service.identity.token_of(&g.planner).await.unwrap().record.id;
    assert_eq!(told.len(), 1, "{events}");
    assert_eq!(told[0]["data"], json!({"token": token, "node": "planner", "epoch": shown.secrets[0].epoch}));
    assert_eq!(told[0]["flow"], "payments");
    for secret in &shown.secrets {
        let text = secret.secret.expose().trim_start_matches("envsec_");
        assert!(!events.to_string().contains(text) && !refused.contains(text) && !sealed.to_string().contains(text));
        for suffix in ["", "-wal"] {
            // PostgreSQL has no such file, and the same code writes the rows there.
            let path = g.folder.path().join(format!("countersign.db{suffix}"));
            let bytes = std::fs::read(path).unwrap_or_default();
            assert!(!bytes.windows(text.len()).any(|it| it == text.as_bytes()), "it is in no row");
        }
    }
    scene.passes_an_audit().await;
}

async fn secret_is_valid_until_the_end_of_the_overlap(scene: ApiScenario) {
    let g = &scene.gateway;
    at_noon(g);
    let thread = thread(g, "Pay Eva.").await;
    let (sealed, first) = (bearing(g, &thread).await, given(g, SECRET, &g.planner).await);
    into_next_period(g, 30 * 60 * 1000).await;
    verify(g, &sealed).await.expect(200);
    assert_eq!(offline(g, &sealed, &first).await, Ok(()));
    let both = given(g, SECRET, &g.planner).await;
    let secrets = |shown: &NodeSecretsView| -> Vec<_> { shown.secrets.iter().map(|it| it.secret.clone()).collect() };
    assert_eq!(both.secrets.len(), 2);
    assert_eq!(secrets(&both)[1], secrets(&first)[0], "the one before");
    assert_ne!(secrets(&both)[0], secrets(&first)[0], "it has changed");
    let anew = bearing(g, &thread).await;
    assert_eq!(anew["hmac"]["epoch"], json!(both.secrets[0].epoch), "what is made is made with the current one");
    verify(g, &anew).await.expect(200);
    assert_eq!(offline(g, &anew, &first).await, Err(EnvelopeCode::HmacExpired), "whoever kept an answer asks again");
    let before = g.clock.applied_to(Timestamp::from_millis(0)).millis();
    g.clock.set_millis(before + 31 * 60 * 1000);
    let expired = verify(g, &sealed).await;
    assert_eq!((expired.status, expired.code()), (422, "hmac_expired"));
    assert_eq!(offline(g, &sealed, &both).await, Err(EnvelopeCode::HmacExpired), "by the clock of whoever kept it");
    assert_eq!(given(g, SECRET, &g.planner).await.secrets.len(), 1);
    verify(g, &anew).await.expect(200);
    g.clock.set_millis(before + 2 * DAY_MILLIS);
    assert_eq!(verify(g, &anew).await.code(), "hmac_expired");
}

async fn forged_or_moved_hmac_is_refused(scene: ApiScenario) {
    let g = &scene.gateway;
    at_noon(g);
    let (one, two) = (thread(g, "Pay Eva.").await, thread(g, "Pay Eva.").await);
    let (sealed, other) = (bearing(g, &one).await, bearing(g, &two).await);
    let now = g.service.core.now();
    let mine = given(g, SECRET, &g.planner).await;
    let parsers = given(g, &SECRET.replace("planner", "input_parser"), &g.parser).await;
    let (id, elsewhere) = (one["thread"].as_str().unwrap(), two["thread"].as_str().unwrap());
    assert_eq!(forged(&sealed, &mine, (id, "planner"), now), sealed, "whoever has the secret can make one");
    let with = |name: &str, value: Value| {
        let mut spoiled = sealed.clone();
        spoiled["hmac"][name] = value;
        spoiled
    };
    let mut moved = sealed.clone();
    moved["hmac"] = other["hmac"].clone();
    let tail = sealed["hmac"]["value"].as_str().unwrap();
    let cases = [
        ("another node's secret", forged(&sealed, &parsers, (id, "planner"), now)),
        ("another node's secret, as that node", forged(&sealed, &parsers, (id, "input_parser"), now)),
        ("as another node's view", forged(&sealed, &mine, (id, "input_parser"), now)),
        ("as another thread's view", forged(&sealed, &mine, (elsewhere, "planner"), now)),
        ("that of another thread's envelope", moved),
        ("cut short", with("value", json!(&tail[..40]))),
        ("nothing", with("value", json!(""))),
    ];
    for (name, spoiled) in cases {
        let refused = verify(g, &spoiled).await;
        assert_eq!((refused.status, refused.code()), (422, "hmac_mismatch"), "{name}");
        let unasked = g.post("/v1/envelopes/verify", &g.planner, json!({"envelope": spoiled})).await;
        assert_eq!(unasked.code(), "hmac_mismatch", "{name}: what it bears is looked at unasked");
        assert_eq!(offline(g, &spoiled, &mine).await, Err(EnvelopeCode::HmacMismatch), "{name}");
    }
    // A secret does not make a signature. A changed envelope with a valid HMAC still has an invalid signature.
    let mut changed = sealed.clone();
    changed["payload"]["target_user_id"] = json!(666);
    let changed = forged(&changed, &mine, (id, "planner"), now);
    assert_eq!(verify(g, &changed).await.code(), "envelope_mismatch");
    for epoch in [mine.secrets[0].epoch.0.millis() - 3 * DAY_MILLIS, mine.secrets[0].epoch.0.millis() + DAY_MILLIS, 0] {
        let spoiled = with("epoch", json!(Timestamp::from_millis(epoch)));
        assert_eq!(verify(g, &spoiled).await.code(), "hmac_expired");
    }
    for (name, value) in
        [("alg", json!("none")), ("alg", json!("HS512")), ("epoch", json!("today")), ("more", json!(1))]
    {
        assert_eq!(verify(g, &with(name, value)).await.code(), "malformed", "{name}");
    }
    scene.passes_an_audit().await;
}

async fn required_hmac_cannot_be_left_out(scene: ApiScenario) {
    let g = &scene.gateway;
    at_noon(g);
    let thread = thread(g, "Pay Eva.").await;
    let sealed = bearing(g, &thread).await;
    let shown = given(g, SECRET, &g.planner).await;
    let mut stripped = sealed.clone();
    stripped.as_object_mut().unwrap().remove("hmac");
    let mut nulled = sealed.clone();
    nulled["hmac"] = Value::Null;
    for bare in [stripped, nulled] {
        let refused = verify(g, &bare).await;
        assert_eq!((refused.status, refused.code()), (422, "hmac_missing"));
        assert_eq!(offline(g, &bare, &shown).await, Err(EnvelopeCode::HmacMissing));
        g.post("/v1/envelopes/verify", &g.planner, json!({"envelope": bare})).await.expect(200);
    }
    let ask = json!({"envelope": sealed, "require_hmac": "yes"});
    assert_eq!(g.post("/v1/envelopes/verify", &g.planner, ask).await.code(), "malformed");
    // The gateway reports an old head as stale only after it has checked the HMAC.
    let patch = json!({"requested_action": "update_email"});
    g.propose(&thread["thread"], &thread["transition"], (&g.planner, "planner"), patch).await.expect(201);
    assert_eq!(verify(g, &sealed).await.code(), "stale");
}

async fn canonically_equal_envelope_has_a_valid_hmac(scene: ApiScenario) {
    let g = &scene.gateway;
    at_noon(g);
    let thread = thread(g, "Zahle Bjo\u{308}rn und Bj\u{f6}rn.").await;
    let sealed = bearing(g, &thread).await;
    let text = json!({"envelope": sealed, "require_hmac": true}).to_string();
    let said = async |text: String| {
        let request = g.http.post(format!("{}/v1/envelopes/verify", g.url)).bearer_auth(&g.planner);
        ApiResponse::of(request.header("content-type", "application/json").body(text).send().await.unwrap()).await
    };
    for same in [
        text.clone(),
        text.replace("10.5", "1.05e1"),
        text.replace("10.5", "10.50"),
        text.replace("\u{f6}", "\\u00f6"),
        text.replace("\"target_user_id\":17", "\"target_user_id\":17.0"),
    ] {
        assert_ne!(same, "");
        said(same).await.expect(200);
    }
    for other in [
        text.replace("\u{f6}", "o\u{308}"),
        text.replace("10.5", "10.500001"),
        text.replace("10.5", "\"10.5\""),
        text.replace("\"target_user_id\":17", "\"target_user_id\":18"),
    ] {
        assert_ne!(other, text);
        assert_eq!(said(other).await.code(), "envelope_mismatch");
    }
    let twice = text.replacen("\"hmac\":{", "\"hmac\":{\"alg\":\"HS256\",", 1);
    assert_eq!(said(twice).await.code(), "duplicate_key");
}

async fn two_gateways_on_one_database_return_the_same_secret(scene: ApiScenario) {
    let g = &scene.gateway;
    at_noon(g);
    let (flow, node) = ("payments".try_into().unwrap(), "planner".try_into().unwrap());
    let shown = given(g, SECRET, &g.planner).await;
    let other = scene.another().await;
    let token = std::sync::Arc::new(other.identity.token_of(&g.planner).await.unwrap());
    let same = other.episodes.node_secrets(&token, &flow, &node).await.unwrap();
    assert_eq!(json!(same), json!(shown));
    // A token that was revoked in between gets no secret.
    other.identity.revoke_token(&token.record.id).await.unwrap();
    assert!(g.service.episodes.node_secrets(&token, &flow, &node).await.is_err());
    scene.passes_an_audit().await;
}
