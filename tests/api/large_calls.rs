//! Tests tool calls with large arguments: the decision binds all of them, pages show an excerpt, and a redacted value
//! is in no part of it.

use countersign_domain::reviews::VoteVerdict;
use reqwest::Method;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::approval_requests::{Instance, decides, held, policy};
use crate::gateway::TestGateway;
use crate::rules::ApiScenario;

on_both! {
    largest_call_is_reviewed_and_used_with_exactly_its_arguments,
    call_over_the_limit_is_refused,
    only_arguments_have_the_higher_limit,
    redacted_large_value_is_in_no_excerpt_digest_or_download,
    arguments_are_downloaded_by_people_only,
}

const MIB: usize = 1024 * 1024;

/// Characters in the middle of a text, which no page shows.
const MIDDLE: &str = "DELETE FROM customers";

/// Returns arguments of exactly this canonical size. Half of their characters are outside of ASCII.
fn arguments(bytes: usize) -> Value {
    let room = bytes - r#"{"note":""}"#.len() - "BEGIN".len() - MIDDLE.len() - "END".len();
    let part = "é".repeat(room / 4);
    let odd = "x".repeat(room - 2 * part.len());
    json!({"note": format!("BEGIN{part}{MIDDLE}{part}{odd}END")})
}

fn refund(arguments: Value) -> Value {
    json!({"tool": "refund", "arguments": arguments, "timeout": "10m"})
}

/// Returns the JSON text with every character outside of ASCII as an escape, as Python's `json.dumps` writes it.
fn escaped(body: &Value) -> String {
    let escape = |it: char| if it.is_ascii() { it.to_string() } else { format!("\\u{:04x}", u32::from(it)) };
    body.to_string().chars().map(escape).collect()
}

struct ReadPage {
    status: u16,
    headers: reqwest::header::HeaderMap,
    text: String,
}

async fn read_page(g: &TestGateway, cookie: &str, path: &str) -> ReadPage {
    let asked = g.http.get(format!("{}{path}", g.url)).header("cookie", format!("countersign={cookie}"));
    let answer = asked.send().await.unwrap();
    ReadPage { status: answer.status().as_u16(), headers: answer.headers().clone(), text: answer.text().await.unwrap() }
}

async fn signed_in(g: &TestGateway) -> String {
    g.service.identity.sign_in("alice", "correct horse battery".to_owned()).await.unwrap().1
}

async fn review_path(g: &TestGateway, asked: &Value) -> String {
    format!("/reviews/{}", held(g, asked).await["review"]["id"].as_str().unwrap())
}

fn digest(text: &str) -> String {
    Sha256::digest(text).iter().map(|it| format!("{it:02x}")).collect()
}

async fn largest_call_is_reviewed_and_used_with_exactly_its_arguments(scene: ApiScenario) {
    let g = &scene.gateway;
    let it = Instance::new(g, "bot").await;
    let whole = arguments(MIB);
    let body = escaped(&refund(whole.clone()));
    let asked = it.send(Method::POST, "/aap/v1/requests", Some("k1"), Some(&body)).await.expect(201);
    let mut altered = whole.clone();
    altered["note"] = json!(whole["note"].as_str().unwrap().replace(MIDDLE, "DELETE FROM customerz"));
    let conflict = it.ask("k1", &refund(altered)).await;
    assert_eq!((conflict.status, &conflict.body["error"]["code"]), (409, &json!("idempotency_conflict")));

    let (cookie, path) = (signed_in(g).await, review_path(g, &asked).await);
    let page = read_page(g, &cookie, &path).await;
    assert_eq!(page.status, 200);
    assert!(page.text.contains("BEGIN") && page.text.contains("END&#34;"));
    assert!(page.text.contains("This page does not show all arguments.") && !page.text.contains(MIDDLE));
    assert!(page.text.contains(&digest(whole["note"].as_str().unwrap())));
    assert!(page.text.contains(&format!("href=\"{path}/arguments\"")) && page.text.len() < 256 * 1024);
    assert!(read_page(g, &cookie, "/").await.text.len() < 256 * 1024);
    let file = read_page(g, &cookie, &format!("{path}/arguments")).await;
    assert_eq!(serde_json::from_str::<Value>(&file.text).unwrap(), whole);
    assert!(file.headers["content-disposition"].to_str().unwrap().starts_with("attachment;"));
    assert_eq!(
        (&file.headers["x-content-type-options"], &file.headers["cache-control"]),
        (&"nosniff".parse().unwrap(), &"no-store".parse().unwrap())
    );

    decides(g, &asked, VoteVerdict::Approve, None).await;
    let consume = format!("/aap/v1/requests/{}/consume", asked["id"].as_str().unwrap());
    let used = it.send(Method::POST, &consume, Some("c1"), None).await.expect(200);
    assert!(used["arguments"] == whole);
    scene.passes_an_audit().await;
}

async fn call_over_the_limit_is_refused(scene: ApiScenario) {
    let it = Instance::new(&scene.gateway, "bot").await;
    let refused = it.ask("k1", &refund(arguments(MIB + 1))).await;
    let error = refused.body["error"]["message"].as_str().unwrap_or_default();
    assert!(
        refused.status == 400 && error.contains("longer than 1 MiB") && error.contains("split the call"),
        "{error}"
    );
    let refused = it.ask("k2", &refund(json!({"ids": vec![0; 10_001]}))).await;
    let error = refused.body["error"]["message"].as_str().unwrap_or_default();
    assert!(refused.status == 400 && error.contains("more than 10,000 values"), "{error}");
}

async fn only_arguments_have_the_higher_limit(scene: ApiScenario) {
    let g = &scene.gateway;
    let it = Instance::new(g, "bot").await;
    let long = "x".repeat(MIB);
    let mut body = refund(json!({}));
    body["agent_reasoning"] = json!(long);
    assert_eq!(it.ask("k1", &body).await.status, 413, "another member");
    let thread =
        g.send(Method::POST, "/v1/threads", &g.host, Some(json!({"flow": "payments", "state": {"a": long}}))).await;
    assert_eq!(thread.status, 413, "another call");
    // A body without an announced length is cut off at the same limit.
    let address = g.url.trim_start_matches("http://");
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = format!(
        "POST /aap/v1/requests HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {}\r\nidempotency-key: k2\r\n\
         content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n",
        it.token
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    // The body has no end, so only the limit can cause the answer.
    let piece = format!("10000\r\n{}\r\n", " ".repeat(0x1_0000));
    for _ in 0..80 {
        if stream.write_all(piece.as_bytes()).await.is_err() {
            break;
        }
    }
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 413");
}

async fn redacted_large_value_is_in_no_excerpt_digest_or_download(scene: ApiScenario) {
    let g = &scene.gateway;
    let it = Instance::new(g, "bot").await;
    let secret = "4929".repeat(64 * 1024);
    let mut whole = arguments(MIB / 2);
    whole["card"] = json!(secret);
    let asked = it.ask("k1", &refund(whole.clone())).await.expect(201);
    let (cookie, path) = (signed_in(g).await, review_path(g, &asked).await);
    for path in [path.clone(), format!("{path}/arguments"), "/".to_owned()] {
        let page = read_page(g, &cookie, &path).await;
        assert!(page.status == 200 && !page.text.contains("49294929"), "{path}");
        for text in [secret.clone(), json!(secret).to_string(), whole.to_string()] {
            assert!(!page.text.contains(&digest(&text)), "{path}");
        }
    }
    let file = read_page(g, &cookie, &format!("{path}/arguments")).await;
    let leaves: Value = serde_json::from_str(&file.text).unwrap();
    assert_eq!(leaves[0], json!({"pointer": "/card", "hidden": true}));
    assert!(leaves[1]["value"] == whole["note"]);
}

async fn arguments_are_downloaded_by_people_only(scene: ApiScenario) {
    let g = &scene.gateway;
    let it = Instance::new(g, "bot").await;
    let asked = it.ask("k1", &refund(arguments(8 * 1024))).await.expect(201);
    let path = format!("{}/arguments", review_path(g, &asked).await);
    let cookie = signed_in(g).await;
    assert_eq!(read_page(g, &cookie, &path).await.status, 200);
    for page in [read_page(g, "other", &path).await, read_page(g, "", &path).await] {
        assert!(!page.text.contains("BEGIN"));
    }
    let answer = g.http.get(format!("{}{path}", g.url)).bearer_auth(&it.token).send().await.unwrap();
    assert!(!answer.text().await.unwrap().contains("BEGIN"));
}
