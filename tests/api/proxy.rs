//! Tests a gateway behind a proxy: which clients it answers, and which forwarded addresses it trusts.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use actix_web::dev::ServiceResponse;
use actix_web::test::{TestRequest, call_service, init_service, read_body, read_body_json};
use countersign::cli::serve::{ClockPolicy, RunningGateway};
use countersign::config::{Config, Flags};
use countersign_adapters::network::Network;
use countersign_web::client_ip::TrustedProxies;
use countersign_web::server::site;
use countersign_web::state::AppState;
use serde_json::Value;

use crate::gateway::{SIGN_INS, TestGateway, edge, spawn_gateway};

const PROXY: &str = "10.0.0.7:40000";

/// The gateway's pages and calls, with that proxy named.
fn behind(g: &TestGateway, proxy: &str) -> AppState {
    let peers = TrustedProxies::new(vec![Network::parse(proxy).unwrap()]);
    AppState::new(Arc::clone(&g.service), Arc::new(edge(&g.url, peers)))
}

fn from(peer: &str) -> TestRequest {
    TestRequest::default().peer_addr(peer.parse::<SocketAddr>().unwrap())
}

#[actix_web::test]
async fn request_past_the_proxy_is_misdirected() {
    let g = spawn_gateway().await;
    let site = init_service(site(behind(&g, "10.0.0.7"))).await;
    let thread = format!("/v1/threads/{}", g.thread().await["thread"].as_str().unwrap());
    for peer in ["10.0.0.8:1", "203.0.113.5:1", "[2001:db8::1]:1", "[::ffff:10.0.0.8]:1"] {
        for path in ["/livez", "/sign-in", "/", &thread, "/.well-known/jwks.json", "/nowhere"] {
            let bearer = ("authorization", format!("Bearer {}", g.host));
            // The forwarded address in the request changes nothing.
            let request = from(peer).uri(path).insert_header(bearer).insert_header(("x-forwarded-for", "127.0.0.1"));
            let answer = call_service(&site, request.to_request()).await;
            assert_eq!(answer.status(), 421, "{peer} {path}");
            assert!(answer.headers().contains_key("x-request-id"), "{peer} {path}");
            let problem: Value = read_body_json(answer).await;
            assert_eq!(problem["code"], "misdirected", "{peer} {path}");
        }
    }
    for peer in [PROXY, "[::ffff:10.0.0.7]:1", "127.0.0.1:1", "[::1]:1", "[::ffff:127.0.0.1]:1"] {
        let answer = call_service(&site, from(peer).uri("/livez").to_request()).await;
        assert_eq!(answer.status(), 200, "{peer}");
    }
}

/// Sends a wrong password for alice with this forwarded address. Returns the status.
async fn guess(ask: &impl AsyncFn(TestRequest) -> ServiceResponse, peer: &str, forwarded: &str) -> u16 {
    let page = ask(from(peer).uri("/sign-in")).await;
    let cookie = page.response().cookies().next().unwrap().into_owned();
    let html = String::from_utf8(read_body(page).await.to_vec()).unwrap();
    let csrf = html.split_once("name=\"csrf\" value=\"").unwrap().1.split_once('"').unwrap().0.to_owned();
    let name = another_name();
    let form = [("csrf", csrf.as_str()), ("username", &name), ("password", "not the one"), ("next", "/")];
    let request = from(peer).method(actix_web::http::Method::POST).uri("/sign-in").cookie(cookie).set_form(form);
    let request = request.insert_header(("sec-fetch-site", "same-origin"));
    ask(request.insert_header(("x-forwarded-for", forwarded))).await.status().as_u16()
}

/// An address may have this many times the failed sign-ins of one account.
const ADDRESS_SHARE: u32 = 5;
const TRIES: u32 = ADDRESS_SHARE * SIGN_INS;

/// Returns a name without failed sign-ins, since the test is about the limit of the address.
fn another_name() -> String {
    static NAMES: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    format!("name-{}", NAMES.fetch_add(1, std::sync::atomic::Ordering::Relaxed))
}

#[actix_web::test]
async fn password_spraying_is_limited_for_each_client_behind_a_proxy() {
    let g = spawn_gateway().await;
    let site = init_service(site(behind(&g, "10.0.0.7"))).await;
    let ask = async |it: TestRequest| call_service(&site, it.to_request()).await.map_into_boxed_body();
    for _ in 0..TRIES {
        assert_eq!(guess(&ask, PROXY, "203.0.113.5").await, 401);
    }
    for same in ["203.0.113.5", "::ffff:203.0.113.5", "198.51.100.1, 203.0.113.5", "203.0.113.5:4711"] {
        assert_eq!(guess(&ask, PROXY, same).await, 429, "{same}");
    }
    assert_eq!(guess(&ask, PROXY, "203.0.113.6").await, 401, "another client is not held up");
    // An IPv6 client has too many addresses for a limit on each.
    for at in 0..TRIES {
        assert_eq!(guess(&ask, PROXY, &format!("2001:db8:1:2::{at}")).await, 401);
    }
    assert_eq!(guess(&ask, PROXY, "2001:db8:1:2:ffff::1").await, 429);
    assert_eq!(guess(&ask, PROXY, "2001:db8:1:3::1").await, 401, "another network is not held up");
}

#[actix_web::test]
async fn client_that_is_no_configured_proxy_cannot_forge_its_address() {
    let g = spawn_gateway().await;
    let site = init_service(site(behind(&g, "10.0.0.7"))).await;
    let ask = async |it: TestRequest| call_service(&site, it.to_request()).await.map_into_boxed_body();
    for at in 0..TRIES {
        assert_eq!(guess(&ask, "127.0.0.1:1", &format!("203.0.113.{at}")).await, 401);
    }
    assert_eq!(guess(&ask, "127.0.0.1:1", "203.0.113.99").await, 429);
}

/// Sends a wrong password over the network with this forwarded address. Returns the status.
async fn guess_over_http(url: &str, forwarded: &str) -> u16 {
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let page = http.get(format!("{url}/sign-in")).send().await.unwrap();
    let cookie = page.headers()["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned();
    let html = page.text().await.unwrap();
    let csrf = html.split_once("name=\"csrf\" value=\"").unwrap().1.split_once('"').unwrap().0.to_owned();
    let form = format!("csrf={csrf}&username={}&password=wrong&next=%2F", another_name());
    let request = http.post(format!("{url}/sign-in")).header("cookie", cookie).body(form);
    let request = request.header("content-type", "application/x-www-form-urlencoded").header("origin", url);
    request.header("x-forwarded-for", forwarded).send().await.unwrap().status().as_u16()
}

#[tokio::test]
async fn served_gateway_trusts_only_configured_proxies() {
    for (named, another_client) in [("127.0.0.1", 401), ("10.0.0.7", 429)] {
        let folder = tempfile::tempdir().unwrap();
        let variables = [
            ("COUNTERSIGN_DATA", folder.path().to_str().unwrap()),
            ("COUNTERSIGN_TRUSTED_PROXIES", named),
            ("COUNTERSIGN_LIMITS_SIGN_IN_ATTEMPTS", "1"),
        ];
        let config =
            Config::load(&Flags::default(), variables.map(|(name, value)| (name.into(), value.into()))).unwrap();
        let running = RunningGateway::start(&config, TcpListener::bind("127.0.0.1:0").unwrap(), ClockPolicy::Refused)
            .await
            .unwrap();
        let url = running.url.as_str();
        for _ in 0..ADDRESS_SHARE {
            assert_eq!(guess_over_http(url, "203.0.113.5").await, 401, "{named}");
        }
        assert_eq!(guess_over_http(url, "203.0.113.5").await, 429, "{named}");
        assert_eq!(guess_over_http(url, "203.0.113.6").await, another_client, "{named}");
        running.stop().await.unwrap();
    }
}
