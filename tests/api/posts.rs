//! Posts that a host signs by Standard Webhooks instead of showing its token: on both databases, signed by the public
//! library for Python.

use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use countersign_domain::identity::account::MachineRole;
use countersign_domain::operations::halt::Halt;
use countersign_domain::primitives::id::TokenId;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use countersign_adapters::clock::ClockOffset;
use countersign_service::error::Error;
use countersign_service::operations::halt::HaltScope;
use countersign_store::sqlite::SqliteStore;
use countersign_web::limits::rate_limit::RateLimiter;
use futures_util::future::join_all;
use hmac::{Hmac, KeyInit as _, Mac as _};
use reqwest::header::{HeaderMap, HeaderName};
use serde_json::{Value, json};
use sha2::Sha256;

use crate::gateway::{ApiResponse, POLICY, TestGateway, spawn_bounded, token};
use crate::interrupts::asked;
use crate::python;
use crate::rules::ApiScenario;
use crate::sqlite::unsynced;

on_both! {
    post_signed_by_the_public_library_is_accepted(crate::gateway::POLICY),
    repeated_post_gets_the_same_answer_and_its_id_is_not_reused(crate::gateway::POLICY),
    signature_of_another_party_is_refused(crate::gateway::POLICY),
    stale_or_future_post_is_refused(crate::gateway::POLICY),
    a_revoked_token_signs_nothing_and_a_new_secret_takes_the_place_of_the_old(crate::gateway::POLICY),
    only_one_of_many_identical_concurrent_posts_is_recorded(crate::gateway::POLICY),
    invalid_source_is_refused_beside_a_token_too(crate::gateway::POLICY),
    replayed_post_uses_no_idempotency_key_of_the_host(crate::gateway::POLICY),
}

/// A host that signs: its token's id and its secret.
struct SigningHost {
    id: TokenId,
    secret: String,
}

impl SigningHost {
    async fn of(g: &TestGateway, text: &str) -> Self {
        let id = g.service.identity.token_of(text).await.unwrap().record.id;
        let (_, secret) = g.service.interrupts.make_post_secret(&id).await.unwrap();
        Self { id, secret: secret.expose().clone() }
    }

    /// Returns a signature made without the library.
    fn signs(&self, id: &str, timestamp: &str, body: &str) -> String {
        let key = STANDARD.decode(self.secret.strip_prefix("whsec_").unwrap()).unwrap();
        let mac = Hmac::<Sha256>::new_from_slice(&key).unwrap().chain_update(format!("{id}.{timestamp}.{body}"));
        format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
    }

    fn post(&self, g: &TestGateway, id: &str, body: &str) -> UnsentPost {
        let timestamp = g.service.core.now().seconds().to_string();
        let signature = self.signs(id, &timestamp, body);
        let (id, body) = (id.to_owned(), body.to_owned());
        UnsentPost { source: self.id.to_string(), id, timestamp, signature, body }
    }
}

/// A post before it is sent.
#[derive(Clone)]
struct UnsentPost {
    source: String,
    id: String,
    timestamp: String,
    signature: String,
    body: String,
}

impl UnsentPost {
    async fn sent(&self, g: &TestGateway) -> ApiResponse {
        self.sent_beside(g, &[]).await
    }

    /// With headers that were not signed.
    async fn sent_beside(&self, g: &TestGateway, unsigned: &[(&'static str, &str)]) -> ApiResponse {
        let mut headers = HeaderMap::new();
        headers.insert("webhook-id", self.id.parse().unwrap());
        headers.insert("webhook-timestamp", self.timestamp.parse().unwrap());
        headers.insert("webhook-signature", self.signature.parse().unwrap());
        headers.insert("content-type", "application/json".parse().unwrap());
        headers.extend(unsigned.iter().map(|(name, it)| (HeaderName::from_static(name), it.parse().unwrap())));
        let request = g.http.post(format!("{}/v1/interrupts?source={}", g.url, self.source)).headers(headers);
        ApiResponse::of(request.body(self.body.clone()).send().await.unwrap()).await
    }
}

fn body(digit: &str) -> String {
    let mut body = asked();
    body["transition_digest"] = json!(digit.repeat(64));
    body.to_string()
}

async fn post_signed_by_the_public_library_is_accepted(scene: ApiScenario) {
    let g = &scene.gateway;
    let signer = SigningHost::of(g, &g.host).await;
    let (id, now) = ("msg_2KWPBgLlAfxdpx2AI54pPJ85f4W", g.service.core.now().seconds());
    let said = json!({"secret": signer.secret, "id": id, "timestamp": now, "body": body("d")});
    let signature = python::answered("sign_post.py", &said.to_string());
    let post = UnsentPost { signature, ..signer.post(g, id, &body("d")) };
    let post = UnsentPost { timestamp: now.to_string(), ..post };
    let taken = post.sent(g).await.expect(202);
    let by_token = g.post("/v1/interrupts", &g.host, serde_json::from_str(&body("d")).unwrap()).await.expect(202);
    assert_eq!(by_token, taken, "it is the same interrupt, however it came");
    // The host reads the answer with its token. A signature allows it to post and nothing else.
    let read = g.http.get(format!("{}/v1/interrupts/{}?source={}", g.url, taken["id"].as_str().unwrap(), signer.id));
    let read = read.header("webhook-id", &post.id).header("webhook-timestamp", &post.timestamp);
    let read = read.header("webhook-signature", &post.signature).send().await.unwrap();
    assert_eq!(read.status().as_u16(), 401);
    scene.passes_an_audit().await;
}

async fn repeated_post_gets_the_same_answer_and_its_id_is_not_reused(scene: ApiScenario) {
    let g = &scene.gateway;
    let signer = SigningHost::of(g, &g.host).await;
    let first = signer.post(g, "msg_1", &body("d"));
    let taken = first.sent(g).await.expect(202);
    assert_eq!(first.sent(g).await.expect(202), taken);
    g.pass(Duration::from_secs(3600));
    // A sender that tries again signs again, with the same ID.
    assert_eq!(signer.post(g, "msg_1", &body("d")).sent(g).await.expect(202), taken);
    for other in [body("e"), format!("{} ", body("d"))] {
        let answer = signer.post(g, "msg_1", &other).sent(g).await;
        assert_eq!((answer.status, answer.code()), (422, "webhook_id_reused"));
    }
    // The same content under another ID is the same interrupt, and it uses up that ID too.
    assert_eq!(signer.post(g, "msg_2", &body("d")).sent(g).await.expect(202), taken);
    assert_eq!(signer.post(g, "msg_2", &body("e")).sent(g).await.code(), "webhook_id_reused");
    // A refused request does not use up its name.
    let halt = |proposing| Halt { proposing, verifying: false, reason: "drill".to_owned() };
    g.service.operations.set_halt(&"tests".try_into().unwrap(), &HaltScope::All, &halt(true)).await.unwrap();
    assert_eq!(signer.post(g, "msg_3", &body("e")).sent(g).await.code(), "halted");
    g.service.operations.set_halt(&"tests".try_into().unwrap(), &HaltScope::All, &halt(false)).await.unwrap();
    signer.post(g, "msg_3", &body("f")).sent(g).await.expect(202);
    // Each host has its own IDs.
    let second = SigningHost::of(g, &token(&g.service, "second", MachineRole::Host, &[]).await).await;
    assert_ne!(second.post(g, "msg_1", &body("e")).sent(g).await.expect(202)["id"], taken["id"]);
    scene.passes_an_audit().await;
}

async fn signature_of_another_party_is_refused(scene: ApiScenario) {
    let g = &scene.gateway;
    let signer = SigningHost::of(g, &g.host).await;
    let good = signer.post(g, "msg_1", &body("d"));
    let second = SigningHost::of(g, &token(&g.service, "second", MachineRole::Host, &[]).await).await;
    let unsigning =
        g.service.identity.token_of(&token(&g.service, "third", MachineRole::Host, &[]).await).await.unwrap();
    let agent = g.service.identity.token_of(&g.planner).await.unwrap().record.id;
    assert!(matches!(g.service.interrupts.make_post_secret(&agent).await, Err(Error::WrongState(_))));
    for (what, post) in [
        ("another body", UnsentPost { body: body("e"), ..good.clone() }),
        ("another id", UnsentPost { id: "msg_2".to_owned(), ..good.clone() }),
        ("another host's", second.post(g, "msg_1", &body("d"))),
        ("no signature", UnsentPost { signature: String::new(), ..good.clone() }),
        ("a version that is not known", UnsentPost { signature: good.signature.replace("v1,", "v2,"), ..good.clone() }),
        ("nobody", UnsentPost { source: "nobody".to_owned(), ..good.clone() }),
        ("no token's name", UnsentPost { source: "%20".to_owned(), ..good.clone() }),
        ("one that has no secret", UnsentPost { source: unsigning.record.id.to_string(), ..good.clone() }),
        ("an agent", UnsentPost { source: agent.to_string(), ..good.clone() }),
    ] {
        let post = if what == "another host's" { UnsentPost { source: good.source.clone(), ..post } } else { post };
        let answer = post.sent(g).await;
        assert_eq!((answer.status, answer.code()), (401, "unauthenticated"), "{what}");
    }
    let twice = g.http.post(format!("{}/v1/interrupts?source={}", g.url, good.source)).body(good.body.clone());
    let twice = twice.header("webhook-id", &good.id).header("webhook-timestamp", &good.timestamp);
    let twice = twice.header("webhook-signature", "v1,AAAA").header("webhook-signature", &good.signature);
    assert_eq!(twice.send().await.unwrap().status().as_u16(), 401, "of two headers nobody says which one counts");
    good.sent(g).await.expect(202);
    scene.passes_an_audit().await;
}

async fn stale_or_future_post_is_refused(scene: ApiScenario) {
    let g = &scene.gateway;
    let signer = SigningHost::of(g, &g.host).await;
    let post = signer.post(g, "msg_1", &body("d"));
    g.pass(Duration::from_secs(310));
    let answer = post.sent(g).await;
    assert_eq!((answer.status, answer.code()), (401, "webhook_stale"));
    let ahead = (g.service.core.now().seconds() + 310).to_string();
    let signature = signer.signs("msg_1", &ahead, &body("d"));
    let answer = UnsentPost { timestamp: ahead, signature, ..post.clone() }.sent(g).await;
    assert_eq!((answer.status, answer.code()), (401, "webhook_stale"));
    signer.post(g, "msg_1", &body("d")).sent(g).await.expect(202);
    // A request that was accepted is stale later too, though its answer would be the same.
    assert_eq!(post.sent(g).await.code(), "webhook_stale");
}

async fn a_revoked_token_signs_nothing_and_a_new_secret_takes_the_place_of_the_old(scene: ApiScenario) {
    let g = &scene.gateway;
    let old = SigningHost::of(g, &g.host).await;
    let new = SigningHost::of(g, &g.host).await;
    assert_ne!(old.secret, new.secret);
    old.post(g, "msg_1", &body("d")).sent(g).await.expect(202);
    new.post(g, "msg_2", &body("e")).sent(g).await.expect(202);
    let both = new.post(g, "msg_3", &body("f"));
    let signature = format!("{} {}", old.signs("msg_3", &both.timestamp, &both.body), both.signature);
    UnsentPost { signature, ..both }.sent(g).await.expect(202);
    g.pass(Duration::from_secs(24 * 3600));
    assert_eq!(old.post(g, "msg_4", &body("0")).sent(g).await.code(), "unauthenticated");
    new.post(g, "msg_4", &body("0")).sent(g).await.expect(202);
    scene.passes_an_audit().await;
    g.service.identity.revoke_token(&new.id).await.unwrap();
    for (name, digit) in [("msg_2", "e"), ("msg_5", "1")] {
        assert_eq!(new.post(g, name, &body(digit)).sent(g).await.code(), "unauthenticated");
    }
    assert!(matches!(g.service.interrupts.make_post_secret(&new.id).await, Err(Error::WrongState(_))));
    scene.passes_an_audit().await;
}

async fn invalid_source_is_refused_beside_a_token_too(scene: ApiScenario) {
    let g = &scene.gateway;
    let answer = g.post("/v1/interrupts?source=%C3%97", &g.host, asked()).await;
    assert_eq!((answer.status, answer.code()), (400, "malformed"));
    assert_eq!(answer.body["errors"][0]["pointer"], "/source");
    assert_eq!(g.post("/v1/interrupts", &g.host, asked()).await.status, 202);
}

async fn only_one_of_many_identical_concurrent_posts_is_recorded(scene: ApiScenario) {
    let g = &scene.gateway;
    let signer = SigningHost::of(g, &g.host).await;
    let post = signer.post(g, "msg_1", &body("d"));
    let answers = join_all((0..8).map(|_| post.sent(g))).await;
    let taken: Vec<&Value> = answers.iter().filter(|it| it.status == 202).map(|it| &it.body).collect();
    assert!(!taken.is_empty() && taken.iter().all(|it| *it == taken[0]), "{taken:?}");
    while g.service.log.sequence().await.unwrap() > 0 {}
    let events = g.get("/v1/events", &g.host).await.expect(200);
    let events = events["events"].as_array().unwrap();
    let posted: Vec<&Value> = events.iter().filter(|it| it["type"] == "interrupt.posted").collect();
    assert_eq!(posted.len(), 1);
    assert_eq!(posted[0]["data"].get("body"), None, "a hash of the body would confirm a guess of a redacted value");
    scene.passes_an_audit().await;
}

#[tokio::test]
async fn a_secret_is_made_on_the_command_line_and_is_in_no_row() {
    let g = crate::gateway::spawn_gateway().await;
    let id = g.service.identity.token_of(&g.host).await.unwrap().record.id.to_string();
    let run = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_countersign"));
        let output = command.args(words).arg("--data").arg(g.folder.path()).output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    let (code, secret) = run(&["token", "webhook-secret", &id]);
    let secret = secret.trim_end();
    assert!(code == Some(0) && secret.starts_with("whsec_") && secret.len() == 50, "{code:?}");
    let again: Value = serde_json::from_str(&run(&["token", "webhook-secret", &id, "--json"]).1).unwrap();
    assert_eq!((&again["id"], &again["generation"]), (&json!(id), &json!(2)));
    assert_ne!(again["secret"], secret);
    for file in ["countersign.db", "countersign.db-wal"] {
        let bytes = std::fs::read(g.folder.path().join(file)).unwrap_or_default();
        for secret in [secret, again["secret"].as_str().unwrap()] {
            let bare = secret.strip_prefix("whsec_").unwrap().as_bytes();
            assert!(!bytes.windows(bare.len()).any(|it| it == bare), "{file} has it");
        }
    }
    // A secret that the command line made is valid at once.
    let signer = SigningHost { id: id.as_str().try_into().unwrap(), secret: secret.to_owned() };
    signer.post(&g, "msg_1", &body("d")).sent(&g).await.expect(202);
    assert_eq!(run(&["token", "webhook-secret", "nobody"]).0, Some(1));
}

async fn replayed_post_uses_no_idempotency_key_of_the_host(scene: ApiScenario) {
    let g = &scene.gateway;
    let overheard = SigningHost::of(g, &g.host).await.post(g, "msg_1", &body("d"));
    let taken = overheard.sent(g).await.expect(202);
    let again = overheard.sent_beside(g, &[("idempotency-key", "job-43")]).await;
    assert_eq!(again.expect(202), taken);
    let own = g.http.post(format!("{}/v1/interrupts", g.url)).bearer_auth(&g.host).header("idempotency-key", "job-43");
    let own = own.header("content-type", "application/json").body(body("e")).send().await.unwrap();
    ApiResponse::of(own).await.expect(202);
    scene.passes_an_audit().await;
}

#[tokio::test]
async fn replayed_post_uses_little_of_the_hosts_rate_limit() {
    let (folder, clock) = (tempfile::tempdir().unwrap(), ClockOffset::default());
    let options = unsynced(&clock);
    let store = Arc::new(SqliteStore::open(folder.path().join("countersign.db"), options).unwrap());
    let requests = RateLimiter::new(50, Duration::from_secs(3600));
    let g = spawn_bounded(folder, clock, store, (POLICY, requests)).await;
    let overheard = SigningHost::of(&g, &g.host).await.post(&g, "msg_1", &body("d"));
    let mut answers = Vec::new();
    for _ in 0..60 {
        answers.push(overheard.sent(&g).await.status);
    }
    assert_eq!((answers[0], answers[59]), (202, 429));
    g.post("/v1/interrupts", &g.host, serde_json::from_str(&body("e")).unwrap()).await.expect(202);
}
