//! Tests that secrets are not in the database, in answers or in requests.

use countersign_domain::delivery::retry_schedule::DELAYS;

use countersign::worker::{deliver, sequence};
use reqwest::Method;
use serde_json::{Value, json};

use super::receiver::{ReceiverReply, WebhookReceiver, WebhookRequest};
use super::scene::{WebhookScenario, path};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn database_has_no_plain_secret_address_or_header() {
    let s = WebhookScenario::on_sqlite().await;
    let receiver = WebhookReceiver::start().await;
    let ask = json!({"name": "ops", "url": format!("{}?key=s3cret-in-url", receiver.url),
        "headers": {"authorization": "Bearer t0ken-in-header"}});
    let endpoint = s.g.post("/v1/endpoints", &s.g.admin, ask).await.expect(201);
    let look = json!({"url": format!("{}?key=s3cret-in-look", receiver.url), "pointer": "", "waiting": 1});
    let ask = json!({"name": "host", "kind": "resume", "url": receiver.url, "flows": ["payments"],
        "template": {"body": 1, "look": look}});
    s.g.post("/v1/endpoints", &s.g.admin, ask).await.expect(201);
    for (token, is_told) in [(&s.g.admin, true), (&s.g.auditor, false)] {
        let all = s.g.get("/v1/endpoints", token).await.expect(200).to_string();
        let one = s.g.get(&path(&endpoint, ""), token).await.expect(200).to_string();
        let told = [all.contains("s3cret-in-url"), all.contains("s3cret-in-look"), one.contains("s3cret-in-url")];
        assert_eq!(told, [is_told; 3], "{all} {one}");
        assert!(one.contains("\"origin\":\"http://127.0.0.1:"), "{one}");
    }
    s.g.thread().await;
    s.send().await;
    let got = receiver.got().pop().unwrap();
    assert_eq!(got.headers["authorization"], "Bearer t0ken-in-header", "it is sent");
    let mut bytes = Vec::new();
    for suffix in ["", "-wal"] {
        bytes.extend(std::fs::read(s.g.folder.path().join(format!("countersign.db{suffix}"))).unwrap());
    }
    let held = |text: &str| bytes.windows(text.len()).any(|it| it == text.as_bytes());
    assert!(held(endpoint["id"].as_str().unwrap()), "the rows are there");
    let secret = endpoint["secret"].as_str().unwrap().trim_start_matches("whsec_").trim_end_matches('=');
    for text in ["s3cret-in-url", "t0ken-in-header", "s3cret-in-look", secret] {
        assert!(!held(text), "{text}");
    }
    let told = s.g.get(&path(&endpoint, ""), &s.g.admin).await.expect(200).to_string();
    assert!(!told.contains("t0ken") && !told.contains(secret), "a secret is shown once: {told}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn moved_endpoint_requires_its_headers_again() {
    let s = WebhookScenario::on_sqlite().await;
    let (receiver, elsewhere) = (WebhookReceiver::start().await, WebhookReceiver::start().await);
    let ask = json!({"name": "ops", "url": receiver.url, "headers": {"authorization": "Bearer t0ken-in-header"}});
    let endpoint = s.g.post("/v1/endpoints", &s.g.admin, ask).await.expect(201);
    let change = async |edit: Value| s.g.send(Method::PATCH, &path(&endpoint, ""), &s.g.admin, Some(edit)).await;
    let sends = async || {
        s.g.post(&path(&endpoint, "/test"), &s.g.admin, json!({})).await.expect(200);
    };
    let refused = change(json!({"url": elsewhere.url, "name": "mine"})).await;
    assert_eq!((refused.status, refused.code()), (400, "malformed"), "{:#}", refused.body);
    assert_eq!(refused.body["errors"][0]["pointer"], "/headers");
    sends().await;
    assert_eq!((receiver.got().len(), elsewhere.got().len()), (1, 0), "nothing was changed");
    change(json!({"url": format!("{}/other", receiver.url.trim_end_matches('/'))})).await.expect(200);
    sends().await;
    assert_eq!(receiver.got()[1].headers["authorization"], "Bearer t0ken-in-header", "it is the same receiver");
    change(json!({"url": elsewhere.url, "headers": {"x-own": "mine"}})).await.expect(200);
    sends().await;
    let [got] = elsewhere.got().try_into().unwrap();
    assert!(got.headers["x-own"] == "mine" && !got.headers.contains_key("authorization"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn secrets_that_a_receiver_repeats_are_redacted_in_its_answer() {
    let s = WebhookScenario::on_sqlite().await;
    let receiver = WebhookReceiver::start().await;
    let ask = json!({"name": "ops", "url": format!("{}?key=s3cret-in-url", receiver.url),
        "headers": {"authorization": "Bearer t0ken-in-header"}});
    let endpoint = s.g.post("/v1/endpoints", &s.g.admin, ask).await.expect(201);
    // The gateway stores 2048 bytes of an answer. The test has the secrets whole, and cut at every position of one of
    // them.
    for after in [0, 2036, 2040, 2044, 2000, 2010, 2020] {
        receiver.now(ReceiverReply::Repeats(after));
        let tried = s.g.post(&path(&endpoint, "/test"), &s.g.admin, json!({})).await.expect(200);
        let answer = tried["answer"].as_str().unwrap();
        assert!(after > 0 || answer.matches("[hidden]").count() == 2, "{answer}");
        assert!(!answer.contains("s3cr") && !answer.contains(" t0k"), "{after}: {answer}");
    }
    receiver.now(ReceiverReply::Repeats(0));
    s.g.thread().await;
    s.send().await;
    let told = s.g.get(&path(&endpoint, "/deliveries"), &s.g.auditor).await.expect(200).to_string();
    assert!(told.contains("[hidden]") && !told.contains("s3cret") && !told.contains("t0ken"), "{told}");
}

/// A chat service can repeat an unknown key in its error message.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn secret_part_of_an_address_is_redacted() {
    let s = WebhookScenario::on_sqlite().await;
    let receiver = WebhookReceiver::start().await;
    let url = format!("{}/T0AB/s3cret-in-path?key=s3cret%20in%20value", receiver.url.trim_end_matches('/'));
    let endpoint = s.g.post("/v1/endpoints", &s.g.admin, json!({"name": "ops", "url": url})).await.expect(201);
    for (said, kept) in [
        ("no hook s3cret-in-path here", "no hook [hidden] here"),
        ("key: 's3cret in value'", "key: '[hidden]'"),
        ("key=s3cret%20in%20value!", "key=[hidden]!"),
        ("no T0AB", "no T0AB"),
    ] {
        receiver.now(ReceiverReply::Quotes(said));
        let tried = s.g.post(&path(&endpoint, "/test"), &s.g.admin, json!({})).await.expect(200);
        assert_eq!(tried["answer"], kept);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn endpoint_moved_during_a_delivery_gets_nothing_more_at_its_old_address() {
    let s = WebhookScenario::on_sqlite().await;
    let (before, after) = (WebhookReceiver::start().await, WebhookReceiver::start().await);
    let ask = json!({"name": "ops", "url": format!("{}?key=s3cret-in-url", before.url), "events": ["thread.created"],
        "headers": {"authorization": "Bearer t0ken-in-header"}});
    let endpoint = s.g.post("/v1/endpoints", &s.g.admin, ask).await.expect(201);
    before.now(ReceiverReply::Hangs);
    let sender = deliver::DeliveryWorker::new(&s.g.service);
    let made = async |count: usize| {
        for _ in 0..count {
            s.g.thread().await;
        }
        sequence::run_once(&s.g.service).await.unwrap();
        sender.round().await.unwrap();
    };
    made(3).await;
    before.until(3).await;
    let moved = json!({"url": after.url, "headers": {"x-own": "mine"}});
    s.g.send(Method::PATCH, &path(&endpoint, ""), &s.g.admin, Some(moved)).await.expect(200);
    before.now(ReceiverReply::Repeats(0));
    sender.rest().await.unwrap();
    // The same sender continues with its cached delivery cursor.
    made(1).await;
    sender.rest().await.unwrap();
    s.g.pass(DELAYS[1] * 2);
    made(0).await;
    sender.rest().await.unwrap();
    assert_eq!((before.got().len(), after.got().len()), (3, 4), "what is new, and what failed where it was");
    let own = |it: &WebhookRequest| it.headers["x-own"] == "mine" && !it.headers.contains_key("authorization");
    assert!(after.got().iter().all(own));
    let told = s.g.get(&path(&endpoint, "/deliveries"), &s.g.auditor).await.expect(200).to_string();
    assert!(told.contains("[hidden]") && !told.contains("s3cret") && !told.contains("t0ken"), "{told}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redacted_value_is_in_no_body() {
    let s = WebhookScenario::on_sqlite().await;
    let receiver = WebhookReceiver::start().await;
    s.endpoint(&receiver, &["*"]).await;
    let thread = s.g.thread().await;
    let path = format!("/v1/threads/{}/closing", thread["thread"].as_str().unwrap());
    s.g.post(&path, &s.g.admin, json!({"reason": "the card is 4111111111111111"})).await.expect(200);
    s.send().await;
    let bodies: Vec<String> = receiver.got().into_iter().map(|it| it.body).collect();
    assert!(bodies.iter().any(|it| it.contains("the card is")), "{bodies:?}");
    assert!(bodies.iter().all(|it| !it.contains("4111111111111111")), "{bodies:?}");
}
