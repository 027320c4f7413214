//! Tests the log as a stream. A client gets every event that it may read once and in order, until its access ends.

use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use countersign_domain::identity::account::{MachineRole, PersonRole};
use countersign_domain::reviews::VoteVerdict;

use countersign::worker::sequence;
use countersign_adapters::clock::{ClockOffset, SystemClock};
use countersign_adapters::keyring::Keyring;
use countersign_service::Service;
use countersign_service::identity::accounts::NewAccount;
use countersign_store::Store;
use countersign_store::postgres::PostgresStore;
use countersign_store::sqlite::SqliteStore;
use countersign_web::client_ip::TrustedProxies;
use countersign_web::limits::sse::EventStreams;
use countersign_web::server::serve;
use countersign_web::state::{AppState, EdgeConfig};
use reqwest::Response;
use serde_json::{Value, json};

use crate::gateway::{
    MovedClock, POLICY, TestGateway, edge, settings, spawn_gateway, spawn_on, spawn_with_policy, token,
};
use crate::passwords::hashed;
use crate::sqlite::unsynced;

/// Longer than any step on a busy machine. Only a failing test waits this long.
const PATIENCE: Duration = Duration::from_secs(20);

#[derive(Debug, PartialEq)]
struct Frame {
    id: u64,
    event: Option<String>,
    data: Value,
}

struct StreamClient {
    answer: Response,
    text: String,
}

impl StreamClient {
    async fn at(url: &str, headers: &[(&str, &str)]) -> Self {
        let mut request = reqwest::Client::new().get(url).header("accept", "text/event-stream");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        Self { answer: request.send().await.unwrap(), text: String::new() }
    }

    async fn of(g: &TestGateway, token: &str, after: u64) -> Self {
        let bearer = format!("Bearer {token}");
        Self::at(&format!("{}/v1/events?after={after}", g.url), &[("authorization", &bearer)]).await
    }

    /// The next frame, with or without data; nothing where the stream ends.
    async fn frame(&mut self) -> Option<Frame> {
        loop {
            if let Some((frame, rest)) = self.text.split_once("\n\n") {
                let (frame, rest) = (frame.to_owned(), rest.to_owned());
                self.text = rest;
                let line = |name: &str| frame.lines().find_map(|it| it.strip_prefix(name));
                return Some(Frame {
                    id: line("id: ").unwrap().parse().unwrap(),
                    event: line("event: ").map(str::to_owned),
                    data: line("data: ").map_or(Value::Null, |it| serde_json::from_str(it).unwrap()),
                });
            }
            let chunk = tokio::time::timeout(PATIENCE, self.answer.chunk()).await.expect("something is told");
            self.text += std::str::from_utf8(&chunk.ok()??).unwrap();
        }
    }

    async fn event(&mut self) -> Option<Frame> {
        loop {
            let frame = self.frame().await?;
            if !frame.data.is_null() {
                return Some(frame);
            }
        }
    }
}

async fn page(g: &TestGateway, token: &str) -> Vec<Value> {
    let page = g.get("/v1/events?limit=500", token).await.expect(200);
    page["events"].as_array().unwrap().clone()
}

#[tokio::test]
async fn stream_equals_the_pages_and_resumes_after_the_last_event() {
    let g = spawn_gateway().await;
    let held = g.held(&g.thread().await).await;
    sequence::run_once(&g.service).await.unwrap();
    let before = page(&g, &g.auditor).await;
    let mut listener = StreamClient::of(&g, &g.auditor, 0).await;
    assert_eq!(listener.answer.headers()["content-type"], "text/event-stream");
    let mut told = Vec::new();
    for event in &before {
        let frame = listener.event().await.unwrap();
        assert_eq!((Some(frame.id), frame.event.as_deref()), (event["index"].as_u64(), event["type"].as_str()));
        told.push(frame.data);
    }
    assert_eq!(told, before);
    g.vote(&g.alice, &held, VoteVerdict::Approve).await.unwrap();
    sequence::run_once(&g.service).await.unwrap();
    let after = page(&g, &g.auditor).await.split_off(before.len());
    assert!(after.len() >= 3, "{after:#?}");
    assert_eq!(listener.event().await.unwrap().data, after[0], "told as it happens");
    drop(listener);
    let bearer = format!("Bearer {}", g.auditor);
    let seen = after[0]["index"].to_string();
    let headers = [("authorization", bearer.as_str()), ("last-event-id", seen.as_str())];
    let mut again = StreamClient::at(&format!("{}/v1/events?after=0", g.url), &headers).await;
    for event in &after[1..] {
        assert_eq!(again.event().await.unwrap().data, *event);
    }
}

#[tokio::test]
async fn token_of_a_flow_gets_no_events_of_other_flows() {
    let g = spawn_gateway().await;
    let other = POLICY.replace("flow = \"payments\"", "flow = \"refunds\"");
    let by = "tests".try_into().unwrap();
    g.service
        .policy_changes
        .activate_policy(&by, None, crate::gateway::source(&other), Default::default())
        .await
        .unwrap();
    let thread = g.thread().await;
    sequence::run_once(&g.service).await.unwrap();
    let mut listener = StreamClient::of(&g, &g.host, 0).await;
    loop {
        let frame = listener.event().await.unwrap();
        assert_eq!(frame.data["flow"], "payments", "{frame:?}");
        if frame.event.as_deref() == Some("thread.created") {
            assert_eq!(frame.data["thread"], thread["thread"]);
            break;
        }
    }
    for machine in [&g.planner, &g.writer, &g.admin] {
        assert_eq!(StreamClient::of(&g, machine, 0).await.answer.status(), 403);
    }
    assert_eq!(StreamClient::of(&g, "cs_x_y", 0).await.answer.status(), 401);
}

/// Otherwise a client with a token for one flow could see when other flows are active.
#[tokio::test]
async fn events_of_other_flows_send_no_sign_to_a_token_of_one_flow() {
    let g = spawn_gateway().await;
    sequence::run_once(&g.service).await.unwrap();
    let reach = g.service.log.log_length().await.unwrap();
    let mut listener = StreamClient::of(&g, &g.host, reach).await;
    assert_eq!(listener.frame().await.unwrap().id, reach);
    g.service.identity.sign_in("alice", "correct horse battery".to_owned()).await.unwrap();
    sequence::run_once(&g.service).await.unwrap();
    assert!(g.service.log.log_length().await.unwrap() > reach);
    let thread = g.thread().await;
    sequence::run_once(&g.service).await.unwrap();
    let first = listener.frame().await.unwrap();
    assert_eq!((first.event.as_deref(), &first.data["thread"]), (Some("thread.created"), &thread["thread"]));
}

#[tokio::test]
async fn a_stream_ends_before_it_tells_a_revoked_token_anything() {
    let g = spawn_gateway().await;
    let secret = token(&g.service, "second", MachineRole::Auditor, &[]).await;
    sequence::run_once(&g.service).await.unwrap();
    let reach = g.service.log.log_length().await.unwrap();
    let mut listener = StreamClient::of(&g, &secret, reach).await;
    assert_eq!(listener.frame().await.unwrap(), Frame { id: reach, event: None, data: Value::Null });
    let id = secret.split('_').nth(1).unwrap();
    g.service.identity.revoke_token(&id.try_into().unwrap()).await.unwrap();
    sequence::run_once(&g.service).await.unwrap();
    assert_eq!(listener.event().await, None);
}

#[tokio::test]
async fn invalid_start_of_a_stream_is_refused_with_its_path() {
    let g = spawn_gateway().await;
    let bearer = format!("Bearer {}", g.auditor);
    let ask = async |query: &str, seen: Option<&str>| {
        let mut headers = vec![("authorization", bearer.as_str())];
        headers.extend(seen.map(|it| ("last-event-id", it)));
        let answer = StreamClient::at(&format!("{}/v1/events{query}", g.url), &headers).await.answer;
        (answer.status().as_u16(), answer.json::<Value>().await.unwrap())
    };
    for (query, seen, pointer) in [
        ("?after=99999", None, "/after"),
        ("", Some("x"), ""),
        ("", Some("99999"), "/after"),
        ("?limit=5", None, "/limit"),
    ] {
        let (status, body) = ask(query, seen).await;
        assert_eq!((status, &body["code"]), (400, &json!("malformed")), "{query} {seen:?}: {body}");
        assert_eq!(body["errors"][0]["pointer"], pointer, "{query} {seen:?}: {body}");
    }
}

#[tokio::test]
async fn concurrent_streams_of_a_token_are_limited() {
    let g = spawn_gateway().await;
    let mut listeners = Vec::new();
    let refused = loop {
        let listener = StreamClient::of(&g, &g.auditor, 0).await;
        if listener.answer.status() != 200 {
            break listener;
        }
        listeners.push(listener);
        assert!(listeners.len() < 100, "no bound");
    };
    assert_eq!(refused.answer.status(), 429);
    assert_eq!(StreamClient::of(&g, &g.host, 0).await.answer.status(), 200, "another's are not counted");
    drop(listeners);
    let again = async {
        while StreamClient::of(&g, &g.auditor, 0).await.answer.status() != 200 {
            // The gateway notices that a client has left when it sends an event to it.
            g.thread().await;
            sequence::run_once(&g.service).await.unwrap();
        }
    };
    tokio::time::timeout(PATIENCE, again).await.expect("a seat is given back");
}

/// Starts another gateway on the same data.
async fn beside(g: &TestGateway, store: Arc<dyn Store>) -> (Arc<Service>, String, EventStreams) {
    let keyring = Keyring::open_or_create(&g.folder.path().join("keyring.json"), None, &SystemClock).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://localhost:{}", listener.local_addr().unwrap().port());
    let service = Service::open(store, keyring, Arc::new(MovedClock(g.clock.clone())), settings(&url)).await.unwrap();
    let (service, streams) = (Arc::new(service), EventStreams::default());
    let edge = EdgeConfig { streams: streams.clone(), ..edge(&url, TrustedProxies::default()) };
    let server = serve(AppState::new(service.clone(), Arc::new(edge)), listener, 1, PATIENCE).unwrap();
    tokio::spawn(server);
    (service, url, streams)
}

async fn hears(g: &TestGateway, store: Arc<dyn Store>) {
    let (there, url, _) = beside(g, store).await;
    sequence::run_once(&g.service).await.unwrap();
    let reach = g.service.log.log_length().await.unwrap();
    let bearer = format!("Bearer {}", g.auditor);
    let mut listener = StreamClient::at(&format!("{url}/v1/events?after={reach}"), &[("authorization", &bearer)]).await;
    assert_eq!(listener.frame().await.unwrap().id, reach);
    let thread = g.thread().await;
    // Either gateway may sequence the events.
    sequence::run_once(&there).await.unwrap();
    let frame = listener.event().await.unwrap();
    assert_eq!((frame.id, &frame.data["thread"]), (reach + 1, &thread["thread"]));
}

#[tokio::test]
async fn event_of_one_gateway_reaches_the_stream_of_another() {
    let g = spawn_gateway().await;
    let options = unsynced(&g.clock);
    let store = SqliteStore::open(g.folder.path().join("countersign.db"), options).unwrap();
    hears(&g, Arc::new(store)).await;

    let (clock, address) = (ClockOffset::default(), crate::up_to_date::database().await);
    let open = async || {
        let options = crate::up_to_date::patient(&clock);
        Arc::new(PostgresStore::open(&address, options).await.unwrap())
    };
    let g = spawn_on(tempfile::tempdir().unwrap(), clock.clone(), open().await, POLICY).await;
    hears(&g, open().await).await;
}

#[tokio::test]
async fn shutdown_ends_streams_and_long_polls() {
    let g = spawn_gateway().await;
    let options = unsynced(&g.clock);
    let store = SqliteStore::open(g.folder.path().join("countersign.db"), options).unwrap();
    let (_, url, streams) = beside(&g, Arc::new(store)).await;
    let held = g.held(&g.thread().await).await;
    sequence::run_once(&g.service).await.unwrap();
    let reach = g.service.log.log_length().await.unwrap();
    let bearer = format!("Bearer {}", g.auditor);
    let mut listener = StreamClient::at(&format!("{url}/v1/events?after={reach}"), &[("authorization", &bearer)]).await;
    assert_eq!(listener.frame().await.unwrap().id, reach);
    let decision = format!("{url}/v1/transitions/{}/decision", held["transition"].as_str().unwrap());
    let waiting = g.http.get(decision).bearer_auth(&g.planner).header("prefer", "wait=600").send();
    let closing = async {
        streams.close();
        listener.event().await
    };
    let (waited, ended) = tokio::join!(tokio::time::timeout(PATIENCE, waiting), closing);
    assert_eq!(ended, None);
    assert_eq!(waited.expect("it is answered").unwrap().status(), 202);
}

/// A person's stream reports that there is a new event which this person may read. It ends with the session.
#[tokio::test]
async fn persons_stream_signals_visible_events_until_the_session_ends() {
    let g = spawn_gateway().await;
    let new = NewAccount { name: "olga".to_owned(), role: PersonRole::Auditor, groups: Default::default() };
    g.service.identity.add_account_hashed(&new, &hashed("correct horse battery").await).await.unwrap();
    let listen = async |name: &str, after: u64| {
        let (signed_in, secret) = g.service.identity.sign_in(name, "correct horse battery".to_owned()).await.unwrap();
        let cookie = format!("countersign={secret}");
        (signed_in, StreamClient::at(&format!("{}/live?after={after}", g.url), &[("cookie", &cookie)]).await)
    };
    let held = g.held(&g.thread().await).await;
    let (alice, mut hers) = listen("alice", 0).await;
    let (_, mut olgas) = listen("olga", 0).await;
    sequence::run_once(&g.service).await.unwrap();
    let kinds = |frame: &Frame| -> Vec<String> {
        let events = frame.data["events"].as_array().unwrap().iter();
        events.map(|it| it["type"].as_str().unwrap().to_owned()).collect()
    };
    let (reviewer, auditor) = (hers.event().await.unwrap(), olgas.event().await.unwrap());
    assert!(kinds(&reviewer).contains(&"transition.held".to_owned()), "{reviewer:?}");
    assert!(!kinds(&reviewer).iter().any(|it| it.starts_with("access.")), "{reviewer:?}");
    assert!(kinds(&auditor).iter().any(|it| it.starts_with("access.")), "{auditor:?}");
    let events = reviewer.data["events"].as_array().unwrap();
    for event in events {
        let names: Vec<_> = event.as_object().unwrap().keys().collect();
        assert_eq!(names, ["thread", "type"], "no more than that");
    }
    g.service.identity.sign_out(&alice).await.unwrap();
    g.vote(&g.alice, &held, VoteVerdict::Deny).await.unwrap();
    sequence::run_once(&g.service).await.unwrap();
    assert_eq!(hers.event().await, None);
    assert!(olgas.event().await.is_some());
    let anonymous = g.http.get(format!("{}/live", g.url)).header("accept", "text/event-stream");
    let sent = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build().unwrap();
    let answer = sent.execute(anonymous.build().unwrap()).await.unwrap();
    assert_eq!(answer.status(), 303);
}

/// A comment may quote a redacted value, even if the state does not contain the value any more.
#[tokio::test]
async fn host_gets_redacted_events_and_auditor_gets_all() {
    const CARD: &str = "4111111111111111";
    let writes = POLICY.replace("writes = [\"requested_action\", ", "writes = [\"payment\", ");
    assert_ne!(writes, POLICY);
    let g = spawn_with_policy(&writes).await;
    let mut listener = StreamClient::of(&g, &g.host, 0).await;
    let thread = g.thread().await;
    let patch = json!({"target_user_id": 42, "payment": {"amount": 10, "card": "5500000000000004"}});
    let held = g.propose(&thread["thread"], &thread["transition"], (&g.planner, "planner"), patch).await.expect(202);
    let receipt = g.approved(&held).await["nonce"].as_str().unwrap().to_owned();
    let reason = json!({"reason": format!("it was {CARD}")});
    g.post(&format!("/v1/receipts/{receipt}/revocation"), &g.admin, reason).await.expect(200);
    for what in ["closing", "reopening"] {
        let path = format!("/v1/threads/{}/{what}", thread["thread"].as_str().unwrap());
        g.post(&path, &g.admin, json!({"reason": "it is 5500000000000004"})).await.expect(200);
    }
    while sequence::run_once(&g.service).await.unwrap() > 0 {}
    let (host, auditor) = (page(&g, &g.host).await, page(&g, &g.auditor).await);
    let said = |events: &[Value], word: &str| json!(events).to_string().matches(word).count();
    for (text, card, times) in [("it was ", CARD, 1), ("it is ", "5500000000000004", 2)] {
        assert_eq!((said(&host, text), said(&host, card)), (times, 0), "{host:#?}");
        assert_eq!(said(&auditor, &format!("{text}{card}")), times);
    }
    let mut streamed = Vec::new();
    while streamed.len() < host.len() {
        streamed.push(listener.event().await.unwrap().data);
    }
    assert_eq!(streamed, host);
}
