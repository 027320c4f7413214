//! Tests the limits on size, depth, rate and number. Each limit has its own code.

use std::sync::Arc;
use std::time::Duration;

use countersign_domain::reviews::HoldState;

use actix_web::test::{TestRequest, call_service, init_service, read_body};
use countersign_adapters::clock::ClockOffset;
use countersign_service::log::browse::{LogAudience, LogFilter};
use countersign_store::sqlite::SqliteStore;
use countersign_web::client_ip::TrustedProxies;
use countersign_web::limits::quota::CallerQuota;
use countersign_web::limits::rate_limit::RateLimiter;
use countersign_web::server::{serve, site};
use countersign_web::state::{AppState, EdgeConfig};
use serde_json::{Value, json};

use crate::attacks::policy_with;
use crate::gateway::{ApiResponse, POLICY, TestGateway, edge, spawn_bounded, spawn_gateway, spawn_with_policy};
use crate::sqlite::unsynced;

async fn asks(g: &TestGateway, thread: &Value, parent: &Value, user: u64) -> ApiResponse {
    g.propose(thread, parent, (&g.planner, "planner"), json!({"target_user_id": user})).await
}

async fn cancel(g: &TestGateway, held: &Value) {
    let path = format!("/v1/transitions/{}/cancellation", held["transition"].as_str().unwrap());
    g.post(&path, &g.planner, json!({"reason": "never mind"})).await.expect(200);
}

#[tokio::test]
async fn reviews_of_a_node_on_one_head_are_limited() {
    let g = spawn_with_policy(&policy_with("ttl = \"24h\"", "ttl = \"24h\"\nattempts = 2")).await;
    let thread = g.thread().await;
    let (id, head) = (&thread["thread"], &thread["transition"]);
    for user in [42, 43] {
        let held = asks(&g, id, head, user).await.expect(202);
        cancel(&g, &held).await;
    }
    let third = asks(&g, id, head, 44).await;
    assert_eq!((third.status, third.code()), (422, "rejected"));
    assert_eq!(third.body["errors"][0]["code"], "attempts_exhausted");
    let again = json!({"node": "planner", "parent": head, "patch": {"target_user_id": 45}, "attempt": 2});
    let again = g.post(&format!("/v1/threads/{}/transitions", id.as_str().unwrap()), &g.planner, again).await;
    assert_eq!(again.body["errors"][0]["code"], "attempts_exhausted", "another attempt of another request");
    let moved = g.propose(id, head, (&g.parser, "input_parser"), json!({"raw_text": "on"})).await.expect(201);
    asks(&g, id, &moved["transition"], 44).await.expect(202);
}

#[tokio::test]
async fn state_above_a_limit_is_refused_with_its_code() {
    let g = spawn_with_policy(&policy_with("schema = \"payments.schema.json\"\n", "")).await;
    let long: serde_json::Map<String, Value> =
        (0..5_000).map(|at| (format!("{at:04}{}", "k".repeat(60)), json!(1))).collect();
    for state in [json!({"many": vec![0; 10_001]}), json!({"k".repeat(4_000): long})] {
        let refused = g.post("/v1/threads", &g.host, json!({"flow": "payments", "state": state})).await;
        assert_eq!(refused.status, 422, "{}", refused.body);
        assert_eq!(refused.body["errors"][0]["code"], "too_large", "{}", refused.body);
    }
    let fits = json!({"flow": "payments", "state": {"many": vec![0; 10_000]}});
    g.post("/v1/threads", &g.host, fits).await.expect(201);
}

#[tokio::test]
async fn body_is_limited_in_length_and_depth() {
    let g = spawn_gateway().await;
    let nested = |levels: usize| format!("{{\"flow\":{}1{}}}", "[".repeat(levels), "]".repeat(levels));
    for (body, status, code) in [
        (format!("\"{}\"", "x".repeat(1024 * 1024)), 413, "too_large"),
        (nested(64), 400, "too_deep"),
        (nested(63), 400, "malformed"),
    ] {
        let request = g.http.post(format!("{}/v1/threads", g.url)).bearer_auth(&g.host);
        let answer = request.header("content-type", "application/json").body(body).send().await.unwrap();
        let answer = ApiResponse::of(answer).await;
        assert_eq!((answer.status, answer.code()), (status, code), "{}", answer.body);
    }
}

#[tokio::test]
async fn rate_limit_applies_to_one_token() {
    let folder = tempfile::tempdir().unwrap();
    let clock = ClockOffset::default();
    let options = unsynced(&clock);
    let store = Arc::new(SqliteStore::open(folder.path().join("countersign.db"), options).unwrap());
    let hourly = RateLimiter::new(3, Duration::from_secs(3600));
    let g = spawn_bounded(folder, clock, store, (POLICY, hourly)).await;
    for _ in 0..3 {
        g.get("/v1/events", &g.auditor).await.expect(200);
    }
    let fourth = g.get("/v1/events", &g.auditor).await;
    assert_eq!((fourth.status, fourth.code()), (429, "too_many_requests"));
    g.get("/v1/events", &g.host).await.expect(200);
    g.pass(Duration::from_secs(3600));
    g.get("/v1/events", &g.auditor).await.expect(200);
}

#[tokio::test]
async fn concurrent_long_polls_of_a_token_are_limited() {
    let g = spawn_gateway().await;
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://localhost:{}", listener.local_addr().unwrap().port());
    let waits = CallerQuota::new(2, 3);
    let edge = EdgeConfig { waits: waits.clone(), ..edge(&url, TrustedProxies::default()) };
    let app = AppState::new(g.service.clone(), Arc::new(edge));
    tokio::spawn(serve(app, listener, 1, Duration::from_secs(1)).unwrap());
    let held = g.held(&g.thread().await).await;
    let decision = format!("{url}/v1/transitions/{}/decision", held["transition"].as_str().unwrap());
    let asks = |token: &str, wish: &str| g.http.get(&decision).bearer_auth(token).header("prefer", wish.to_owned());

    let long = || tokio::spawn(asks(&g.planner, "wait=600").send());
    let waiting = [long(), long()];
    let both_sit = || waits.take("one").is_some_and(|_third| waits.take("other").is_none());
    let sitting = async {
        while !both_sit() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), sitting).await.expect("both have a seat");
    let third = ApiResponse::of(asks(&g.planner, "wait=600").send().await.unwrap()).await;
    assert_eq!((third.status, third.code()), (429, "too_many_requests"), "{}", third.body);
    for (token, wish) in [(&g.planner, "wait=0"), (&g.parser, "wait=1")] {
        let answer = asks(token, wish).send().await.unwrap();
        assert_eq!(answer.status().as_u16(), 202, "who only asks, and who waits for the first time: {wish}");
    }
    waiting.iter().for_each(tokio::task::JoinHandle::abort);
}

#[tokio::test]
async fn unread_response_bytes_count_for_their_caller() {
    let g = spawn_with_policy(&policy_with("schema = \"payments.schema.json\"\n", "")).await;
    let state = json!({"raw_text": "x".repeat(90_000), "target_user_id": 17});
    let made = g.post("/v1/threads", &g.host, json!({"flow": "payments", "state": state})).await.expect(201);
    let thread = made["thread"].as_str().unwrap();
    let (_, secret) = g.service.identity.sign_in("alice", "correct horse battery".to_owned()).await.unwrap();
    let edge = EdgeConfig { unread: CallerQuota::new(150_000, 1 << 29), ..edge(&g.url, TrustedProxies::default()) };
    let site = init_service(site(AppState::new(g.service.clone(), Arc::new(edge)))).await;
    let ask = async |uri: &str, header: (&'static str, String)| {
        let request = TestRequest::get().uri(uri).peer_addr("127.0.0.1:9".parse().unwrap()).insert_header(header);
        call_service(&site, request.to_request()).await
    };
    let state = format!("/v1/threads/{thread}/state?node=input_parser");
    let others = format!("/v1/threads/{thread}/state?node=planner");
    let page = format!("/threads/{thread}/versions/0");
    let bearer = |token: &str| ("authorization", format!("Bearer {token}"));
    for (uri, header) in [(&state, bearer(&g.parser)), (&page, ("cookie", format!("countersign={secret}")))] {
        let first = ask(uri, header.clone()).await;
        assert_eq!(first.status().as_u16(), 200);
        let second = ask(uri, header.clone()).await;
        assert_eq!(second.status().as_u16(), 429, "{uri}");
        assert_eq!(ask(&others, bearer(&g.planner)).await.status().as_u16(), 200, "another's are not counted");
        assert!(read_body(first).await.len() > 90_000, "and all of it comes");
        let again = ask(uri, header.clone()).await;
        assert_eq!(again.status().as_u16(), 200, "{uri}: what was read is not counted any more");
        drop(again);
        assert_eq!(ask(uri, header).await.status().as_u16(), 200, "{uri}: nor is what was given up");
    }
}

#[tokio::test]
async fn changes_of_a_caller_with_too_many_unread_bytes_are_refused() {
    let g = spawn_with_policy(&policy_with("schema = \"payments.schema.json\"\n", "")).await;
    let state = json!({"raw_text": "x".repeat(90_000), "target_user_id": 17});
    let made = g.post("/v1/threads", &g.host, json!({"flow": "payments", "state": state})).await.expect(201);
    let edge = EdgeConfig { unread: CallerQuota::new(150_000, 1 << 29), ..edge(&g.url, TrustedProxies::default()) };
    let site = init_service(site(AppState::new(g.service.clone(), Arc::new(edge)))).await;
    let ask = async |uri: &str, token: &str, body: &Value| {
        let request = TestRequest::post().uri(uri).peer_addr("127.0.0.1:9".parse().unwrap()).set_json(body);
        call_service(&site, request.insert_header(("authorization", format!("Bearer {token}"))).to_request()).await
    };
    let view = |node: &str| {
        let arguments = json!({"thread": made["thread"], "node": node});
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "read_view", "arguments": arguments}})
    };
    let read = view("input_parser");
    let first = ask("/mcp", &g.parser, &read).await;
    assert_eq!(first.status().as_u16(), 200);
    let change = json!({"node": "input_parser", "parent": made["transition"], "patch": {"raw_text": "short"}});
    let path = format!("/v1/threads/{}/transitions", made["thread"].as_str().unwrap());
    for (uri, body) in [("/mcp", &read), (path.as_str(), &change)] {
        assert_eq!(ask(uri, &g.parser, body).await.status().as_u16(), 429, "{uri}");
    }
    let thread = g.get(path.trim_end_matches("/transitions"), &g.auditor).await.expect(200);
    assert_eq!(thread["version"], 0, "it was not begun");
    assert_eq!(ask("/mcp", &g.planner, &view("planner")).await.status().as_u16(), 200, "another's are not counted");
    assert!(read_body(first).await.len() > 90_000, "and all of it comes");
    assert_eq!(ask(&path, &g.parser, &change).await.status().as_u16(), 201);
}

#[tokio::test]
async fn compressed_request_is_refused() {
    let g = spawn_gateway().await;
    let client = reqwest::Client::new();
    for path in ["/v1/threads", "/v1/interrupts", "/mcp", "/sign-in"] {
        for encoding in ["gzip", "br", "identity, gzip"] {
            let request = client.post(format!("{}{path}", g.url)).header("content-encoding", encoding);
            let answer = request.bearer_auth(&g.host).body("\u{1f}not looked at").send().await.unwrap();
            let status = answer.status().as_u16();
            let text = answer.text().await.unwrap();
            assert!(status == 400 && text.contains("without `Content-Encoding`"), "{path} {encoding}: {status} {text}");
        }
    }
    let plain = client.post(format!("{}/v1/threads", g.url)).header("content-encoding", "identity");
    let body = json!({"flow": "payments", "state": {}, "thread": ""});
    let read = plain.bearer_auth(&g.host).json(&body).send().await.unwrap().text().await.unwrap();
    assert!(!read.contains("Content-Encoding"), "what is not packed is read: {read}");
}

#[tokio::test]
async fn long_reason_is_cut() {
    let g = spawn_gateway().await;
    let thread = g.thread().await;
    let held = asks(&g, &thread["thread"], &thread["transition"], 42).await.expect(202);
    let path = format!("/v1/transitions/{}/cancellation", held["transition"].as_str().unwrap());
    g.post(&path, &g.planner, json!({"reason": "never ".repeat(10_000)})).await.expect(200);
    let review = held["review"]["id"].as_str().unwrap().try_into().unwrap();
    let hold = g.service.reviews.review(&review, &g.alice).await.unwrap().hold;
    let HoldState::Cancelled { reason, .. } = hold.state else { panic!("{hold:?}") };
    assert_eq!(reason.chars().count(), 1_000);
}

#[tokio::test]
async fn rejection_is_not_much_longer_than_its_request() {
    let g = spawn_gateway().await;
    let thread = g.thread().await;
    let places: serde_json::Map<String, Value> = (0..1_000).map(|at| (format!("a{at}"), json!(1))).collect();
    let mut patch = json!({});
    patch["k".repeat(16_000)] = Value::Object(places);
    let ask =
        |attempt: u64| json!({"node": "planner", "parent": thread["transition"], "patch": patch, "attempt": attempt});
    let path = format!("/v1/threads/{}/transitions", thread["thread"].as_str().unwrap());
    let refused = g.post(&path, &g.planner, ask(1)).await;
    assert_eq!(refused.status, 422, "{:.300}", refused.body.to_string());
    let long = refused.body.to_string().len();
    assert!((16_000..1_000_000).contains(&long), "{long}");
}

#[tokio::test]
async fn log_page_from_beyond_the_end_is_the_newest_page() {
    let g = spawn_gateway().await;
    let thread = g.thread().await["thread"].as_str().unwrap().try_into().unwrap();
    while g.service.log.sequence().await.unwrap() > 0 {}
    let length = g.service.log.log_length().await.unwrap();
    for (thread, last) in [(None, length), (Some(thread), 1)] {
        let sought = LogFilter { thread, ..LogFilter::default() };
        for below in [last + 1, last + 2, u64::MAX] {
            let page = g.service.log.log_page(&sought, LogAudience::Overseers, Some(below), 50).await.unwrap();
            assert_eq!(page.lines.len() as u64, last, "below {below}");
        }
    }
}
