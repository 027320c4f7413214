//! Runs the webhook receiver of `docs/guides/notifications.md` unchanged.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use serde_json::json;

use super::receiver::WebhookReceiver;
use super::scene::WebhookScenario;

/// Returns the Python block of the page that is a receiver.
fn receiver_of_the_docs() -> &'static str {
    let docs = include_str!("../../../docs/guides/notifications.md");
    let mut blocks = docs.split("```python\n").skip(1).map(|it| it.split("```").next().unwrap());
    blocks.find(|it| it.contains("class Receiver")).unwrap()
}

/// Returns a port below the system's range, so that no other test gets it.
fn port() -> u16 {
    20_000 + u16::try_from(std::process::id() % 10_000).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn documented_receiver_is_short_and_handles_each_event_once() {
    let code = receiver_of_the_docs();
    assert!(code.lines().count() <= 15, "{}", code.lines().count());
    let s = WebhookScenario::on_sqlite().await;
    let url = format!("http://127.0.0.1:{}/", port());
    let ask = json!({"name": "docs", "url": url, "events": ["transition.*"]});
    let endpoint = s.g.post("/v1/endpoints", &s.g.admin, ask).await.expect(201);
    let mut python = Command::new(crate::python::python())
        .args(["-c", code])
        .env("SECRET", endpoint["secret"].as_str().unwrap())
        .env("PORT", port().to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    while tokio::net::TcpStream::connect(("127.0.0.1", port())).await.is_err() {
        assert!(python.try_wait().unwrap().is_none(), "it ended");
        tokio::task::yield_now().await;
    }
    let thread = s.g.thread().await;
    s.g.held(&thread).await;
    s.send().await;
    // A redelivery, which the receiver has already seen, and a message that another key signed.
    let index = s.deliveries(&endpoint).await[0]["delivery"].clone();
    let again = super::scene::path(&endpoint, &format!("/deliveries/{index}/redelivery"));
    s.g.post(&again, &s.g.admin, json!({})).await.expect(202);
    s.send().await;
    let states: Vec<_> =
        s.deliveries(&endpoint).await.iter().map(|it| it["attempts"].as_array().unwrap().len()).collect();
    assert_eq!(states, [2]);
    let mut forged = WebhookReceiver::start().await;
    forged.url = url;
    let other = s.endpoint(&forged, &["thread.closed"]).await;
    let refused = s.g.post(&super::scene::path(&other, "/test"), &s.g.admin, json!({})).await.expect(200);
    assert_eq!(refused["status"], 401, "signed with another secret");
    python.kill().unwrap();
    let said: Vec<String> = BufReader::new(python.stdout.take().unwrap()).lines().map(Result::unwrap).collect();
    python.wait().unwrap();
    assert_eq!(said, [format!("transition.held {}", thread["thread"].as_str().unwrap())]);
}
