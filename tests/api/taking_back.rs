//! Tests the revocation of access on the command line. The real binary runs beside a running gateway, and the
//! revocation applies at once.

use std::process::{Command, Output};

use countersign_domain::primitives::id::TokenId;
use countersign_domain::reviews::{Ineligible, VoteRejected, VoteVerdict};

use countersign_service::error::Error;
use reqwest::header::COOKIE;
use serde_json::{Value, json};

use crate::attacks::approve;
use crate::gateway::{TestGateway, spawn_gateway};

const PASSWORD: &str = "correct horse battery";

/// The binary on the gateway's own data, with a line on its standard input.
pub fn line(g: &TestGateway, words: &str, input: &str) -> Output {
    let file = g.folder.path().join("input");
    std::fs::write(&file, input).unwrap();
    Command::new(env!("CARGO_BIN_EXE_countersign"))
        .arg("--data")
        .arg(g.folder.path())
        .args(words.split_whitespace())
        .stdin(std::fs::File::open(&file).unwrap())
        .output()
        .unwrap()
}

/// Returns the output of a command that succeeds.
fn said(g: &TestGateway, words: &str) -> String {
    let output = line(g, words, "");
    assert_eq!(output.status.code(), Some(0), "{words}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn id_of(token: &str) -> TokenId {
    token.strip_prefix("cs_").unwrap().split_once('_').unwrap().0.try_into().unwrap()
}

/// Events of a kind, once each has its place.
async fn events(g: &TestGateway, kind: &str) -> Vec<Value> {
    while g.service.log.sequence().await.unwrap() > 0 {}
    let (placed, _) = g.service.log.events_after(0, None, 1000).await.unwrap();
    let events = placed.into_iter().map(|it| serde_json::to_value(it.event).unwrap());
    events.filter(|it| it["type"] == kind).collect()
}

#[tokio::test]
async fn a_revoked_token_is_unknown_at_once_and_its_revocation_is_one_event() {
    let g = spawn_gateway().await;
    let (first, second) = (approve(&g).await, approve(&g).await);
    // The gateway remembers the writer's token from here on.
    g.post("/v1/verify", &g.writer, first.ask("w-1")).await.expect(200);
    let id = id_of(&g.writer);
    for _ in 0..2 {
        assert_eq!(said(&g, &format!("token revoke {id}")), format!("revoked {id}\n"));
    }
    for (path, body) in [
        ("/v1/verify", first.ask("w-1")),
        ("/v1/verify", second.ask("w-2")),
        ("/v1/writes/w-1/confirm", json!({"result": {}})),
        ("/v1/writes/w-1/abort", json!({"reason": "x"})),
    ] {
        let answer = g.post(path, &g.writer, body).await;
        assert_eq!((answer.status, answer.code()), (401, "unauthenticated"), "{path}: {}", answer.body);
    }
    let path = format!("/v1/threads/{}", second.id().as_str().unwrap());
    assert_eq!(g.get(&path, &g.writer).await.status, 401);
    assert_eq!(g.get(&path, &g.host).await.status, 200, "nobody else's");
    let told = events(&g, "access.token_revoked").await;
    assert_eq!(told.len(), 1);
    assert_eq!(told[0]["data"]["token"], id.as_str());
}

#[tokio::test]
async fn the_list_of_tokens_says_which_are_revoked_and_no_secret() {
    let g = spawn_gateway().await;
    said(&g, &format!("token revoke {}", id_of(&g.parser)));
    let (text, list) = (said(&g, "token list"), said(&g, "token list --json"));
    let list: Value = serde_json::from_str(&list).unwrap();
    let revoked: Vec<&str> = list["tokens"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|it| it["revoked"] == true)
        .map(|it| it["name"].as_str().unwrap())
        .collect();
    assert_eq!(revoked, ["parser"]);
    for token in [&g.host, &g.parser, &g.planner, &g.writer, &g.admin, &g.auditor] {
        let id = id_of(token);
        assert!(text.lines().any(|line| line.starts_with(id.as_str())), "{text}");
        let secret = token.splitn(3, '_').nth(2).unwrap();
        assert!(!text.contains(secret) && !list.to_string().contains(secret));
    }
    assert_eq!(line(&g, "token revoke no-such-token", "").status.code(), Some(1));
}

/// Returns the redirect that the inbox gives to this session cookie, or an empty text if there is none.
async fn led_to(g: &TestGateway, secret: &str) -> String {
    let still = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build().unwrap();
    let answer = still.get(format!("{}/", g.url)).header(COOKIE, format!("countersign={secret}")).send().await.unwrap();
    answer.headers().get("location").map(|it| it.to_str().unwrap().to_owned()).unwrap_or_default()
}

#[tokio::test]
async fn disabling_an_account_ends_its_sessions_permanently() {
    let g = spawn_gateway().await;
    let held = g.held(&g.thread().await).await;
    let (_, before) = g.service.identity.sign_in("alice", PASSWORD.to_owned()).await.unwrap();
    let link = g.service.identity.sign_in_link(&g.alice.id).await.unwrap();
    assert_eq!(led_to(&g, &before).await, "");
    assert_eq!(said(&g, "user disable alice"), "alice is disabled\n");
    assert!(led_to(&g, &before).await.starts_with("/sign-in"));
    let refused = g.service.identity.sign_in("alice", PASSWORD.to_owned()).await;
    assert!(matches!(refused, Err(Error::Unauthenticated)));
    assert!(matches!(g.service.identity.use_sign_in_link(&link).await, Err(Error::Unauthenticated)));
    let refused = g.vote(&g.alice, &held, VoteVerdict::Approve).await;
    assert!(matches!(refused, Err(Error::Vote(VoteRejected::Ineligible(Ineligible::Disabled)))), "{refused:?}");
    assert_eq!(said(&g, "user enable alice"), "alice is enabled\n");
    assert!(led_to(&g, &before).await.starts_with("/sign-in"), "an ended session does not come back");
    let (_, after) = g.service.identity.sign_in("alice", PASSWORD.to_owned()).await.unwrap();
    assert_eq!(led_to(&g, &after).await, "");
    g.vote(&g.alice, &held, VoteVerdict::Approve).await.unwrap();
    for kind in ["access.account_disabled", "access.account_enabled", "access.signed_out"] {
        let told = events(&g, kind).await;
        assert_eq!(told.len(), 1, "{kind}");
        assert_eq!(told[0]["data"]["account"], g.alice.id.as_str(), "{kind}");
    }
    said(&g, "audit");
    assert_eq!(line(&g, "user disable nobody", "").status.code(), Some(1));
}

#[tokio::test]
async fn a_name_that_is_taken_is_refused_and_nothing_of_its_account_changes() {
    let g = spawn_gateway().await;
    let again = line(&g, "user add alice --role admin --group finance --password-stdin", "another password 12\n");
    assert_eq!((again.status.code(), again.stdout.as_slice()), (Some(1), b"".as_slice()));
    let why = String::from_utf8(again.stderr).unwrap();
    assert!(
        why.contains("an account with this name exists already, and it was not changed: choose another name"),
        "{why}"
    );
    let (alice, _) = g.service.identity.sign_in("alice", PASSWORD.to_owned()).await.unwrap();
    assert_eq!(alice.account.record, g.alice);
    let help = said(&g, "user add --help");
    assert!(help.contains("A name that already exists is refused"), "{help}");
}
