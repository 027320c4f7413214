//! Outcomes of requests. Every server here listens on 127.0.0.1, and the forbidden addresses are 127.0.0.1 or ::1.

use std::process::Command;
use std::time::Duration;

use reqwest::dns::Resolve as _;

use super::peer::{AUTHORITY, PeerServer, with_certificate};
use super::*;
use crate::http_client::ssrf_guard::SsrfGuard;

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
const OK_AND_BYE: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok";

fn here() -> HttpClient {
    outgoing(settings(&["127.0.0.1"]))
}

/// A client with a short time limit, for responses that never end.
fn impatient() -> HttpClient {
    outgoing(HttpClientSettings { timeout: Duration::from_millis(300), ..settings(&["127.0.0.1"]) })
}

/// Returns the outcome of a request, and fails the test if the request ignores its limits.
async fn in_time(outgoing: &HttpClient, url: &str) -> HttpOutcome {
    tokio::time::timeout(AMPLE, outgoing.post(&parcel(url))).await.expect("it ends")
}

/// Runs the other tasks of this thread, so that a reusable connection is back in the pool.
async fn settled() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn request_arrives_unchanged_with_the_user_agent() {
    let peer = PeerServer::saying(OK).await;
    let mut parcel = parcel(&peer.url());
    parcel.headers.push(("X-Team".to_owned(), Secret::new("payments".to_owned())));
    let answer = answered(here().post(&parcel).await);
    assert_eq!((answer.status, answer.body.as_slice(), answer.cut), (200, b"ok".as_slice(), false));
    let sent = peer.requests().remove(0);
    assert!(sent.starts_with("POST /hook HTTP/1.1\r\n") && sent.ends_with("\r\n\r\n{}"), "{sent}");
    assert!(sent.contains("x-team: payments\r\n") && sent.contains(&format!("user-agent: {USER_AGENT}\r\n")), "{sent}");
    assert!(!sent.contains("referer") && !sent.contains("accept-encoding"), "{sent}");
}

#[tokio::test]
async fn private_literal_address_is_refused_in_every_spelling() {
    let peer = PeerServer::saying(OK).await;
    let outgoing = outgoing(HttpClientSettings { plain_http: true, ..settings(&["::1"]) });
    for host in ["127.0.0.1", "127.1", "2130706433", "0x7f.1", "0177.0.0.1", "127.0.0.1.", "%3127.0.0.1", "１２７.1"]
    {
        let url = format!("http://{host}:{}/", peer.port());
        assert_eq!(why(outgoing.post(&parcel(&url)).await), FailureCode::Refused, "{url}");
        assert_eq!(why(outgoing.get(&Url::parse(&url).unwrap(), &[], 10).await), FailureCode::Refused, "{url}");
    }
    let mapped = format!("http://[::ffff:127.0.0.1]:{}/", peer.port());
    assert_eq!(why(outgoing.post(&parcel(&mapped)).await), FailureCode::Refused);
    assert_eq!(peer.connections(), 0);
}

#[tokio::test]
async fn name_that_resolves_to_a_private_address_is_refused() {
    let peer = PeerServer::saying(OK).await;
    for answers in [&["127.0.0.1"][..], &["::1", "127.0.0.1"], &["::ffff:127.0.0.1"], &["127.0.0.1", "::1"]] {
        let open = HttpClientSettings { plain_http: true, ..settings(&["::1"]) };
        let outgoing = outgoing_by(names(&[answers]).0, open);
        for scheme in ["http", "https"] {
            let url = format!("{scheme}://hooks.example:{}/", peer.port());
            assert!(outgoing.admits(&url).is_ok());
            assert_eq!(why(outgoing.post(&parcel(&url)).await), FailureCode::Refused, "{scheme} {answers:?}");
        }
    }
    assert_eq!(peer.connections(), 0);
}

#[tokio::test]
async fn connection_uses_the_checked_address() {
    let peer = PeerServer::saying(OK_AND_BYE).await;
    let (look_up, asked) = names(&[&["127.0.0.1"], &["::1"]]);
    let outgoing = outgoing_by(look_up, settings(&["127.0.0.1"]));
    let parcel = parcel(&format!("http://hooks.example:{}/", peer.port()));
    // A second lookup would have returned another address.
    assert_eq!(answered(outgoing.post(&parcel).await).status, 200);
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    // The next connection makes the next lookup.
    assert_eq!(why(outgoing.post(&parcel).await), FailureCode::Refused);
    assert_eq!((asked.load(Ordering::SeqCst), peer.connections()), (2, 1));
}

#[tokio::test]
async fn open_connection_is_reused_without_a_lookup() {
    let peer = PeerServer::saying(OK).await;
    let (look_up, asked) = names(&[&["127.0.0.1"], &["::1"]]);
    let outgoing = outgoing_by(look_up, settings(&["127.0.0.1"]));
    let parcel = parcel(&format!("http://hooks.example:{}/", peer.port()));
    for _ in 0..3 {
        assert_eq!(answered(outgoing.post(&parcel).await).status, 200);
        settled().await;
    }
    assert_eq!((asked.load(Ordering::SeqCst), peer.connections()), (1, 1));
}

#[tokio::test]
async fn plain_http_reaches_allowed_networks_only() {
    let resolves = |reach: AddressScope, address: &'static str| async move {
        let guarded = SsrfGuard { look_up: names(&[&[address]]).0, reach };
        guarded.resolve("hooks.example".parse().unwrap()).await.is_ok()
    };
    let named: Arc<[Network]> = networks(&["10.0.0.0/8"]).into();
    assert!(resolves(AddressScope::Only(named.clone()), "10.0.0.1").await);
    assert!(!resolves(AddressScope::Only(named.clone()), "93.184.216.34").await);
    assert!(resolves(AddressScope::PublicAnd(named.clone()), "93.184.216.34").await);
    assert!(!resolves(AddressScope::PublicAnd(named), "192.168.0.1").await);
    // The clients have different scopes.
    let reaches = here().reaches;
    assert_eq!(reaches.plain, AddressScope::Only(networks(&["127.0.0.1"]).into()));
    assert_eq!(reaches.tls, AddressScope::PublicAnd(networks(&["127.0.0.1"]).into()));
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let target = PeerServer::saying(OK).await;
    for status in [301, 302, 303, 307, 308] {
        let answer = format!("HTTP/1.1 {status} X\r\nlocation: {}\r\ncontent-length: 0\r\n\r\n", target.url());
        let peer = PeerServer::saying(answer).await;
        assert_eq!(answered(here().post(&parcel(&peer.url())).await).status, status);
        assert_eq!(answered(here().get(&Url::parse(&peer.url()).unwrap(), &[], 10).await).status, status);
    }
    assert_eq!(target.connections(), 0);
}

#[tokio::test]
async fn cookies_are_not_stored() {
    let answer = "HTTP/1.1 200 OK\r\nset-cookie: a=b\r\ncontent-length: 0\r\n\r\n";
    let peer = PeerServer::saying(answer).await;
    let outgoing = here();
    for _ in 0..2 {
        answered(outgoing.post(&parcel(&peer.url())).await);
    }
    assert!(peer.requests().iter().all(|it| !it.contains("cookie")));
}

#[tokio::test]
async fn no_proxy_of_the_environment_is_asked() {
    /// The variable is set in the process that the test starts, which is this program again.
    const INSIDE: &str = "TEST_BEHIND_A_PROXY";
    let peer = PeerServer::saying(OK).await;
    if std::env::var_os(INSIDE).is_some() {
        return assert_eq!(answered(here().post(&parcel(&peer.url())).await).body, b"ok");
    }
    let proxy = format!("http://{}", peer.address);
    let test = concat!(module_path!(), "::no_proxy_of_the_environment_is_asked");
    let (_, test) = test.split_once("::").unwrap();
    let again = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test])
        .envs([(INSIDE, "1"), ("http_proxy", &proxy), ("HTTP_PROXY", &proxy), ("ALL_PROXY", &proxy)])
        .env_remove("no_proxy")
        .env_remove("NO_PROXY")
        .output()
        .unwrap();
    assert!(again.status.success() && String::from_utf8_lossy(&again.stdout).contains("1 passed"), "{again:?}");
    assert_eq!(peer.connections(), 0);
}

#[tokio::test]
async fn an_endless_answer_is_cut() {
    let endless = |head: &'static str, chunk: Vec<u8>| {
        PeerServer::doing(move |mut stream| {
            let chunk = chunk.clone();
            async move {
                stream.request().await;
                stream.say(head.as_bytes()).await;
                while stream.say(&chunk).await {}
            }
        })
    };
    let plain = endless("HTTP/1.1 200 OK\r\n\r\n", vec![b'x'; 1000]).await;
    let chunked = endless("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", b"3\r\nxxx\r\n".repeat(100)).await;
    let promised = endless("HTTP/1.1 500 X\r\ncontent-length: 99999999999\r\n\r\n", vec![b'x'; 1000]).await;
    for (peer, status) in [(plain, 200), (chunked, 200), (promised, 500)] {
        let answer = answered(here().post(&parcel(&peer.url())).await);
        assert_eq!((answer.status, answer.body.len(), answer.cut), (status, ANSWER_KEPT_MAX, true));
    }
}

#[tokio::test]
async fn long_response_is_cut_and_the_connection_reused() {
    let body = "x".repeat(ANSWER_READ_MAX);
    let peer = PeerServer::saying(format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len())).await;
    let outgoing = here();
    for _ in 0..2 {
        let answer = answered(outgoing.post(&parcel(&peer.url())).await);
        assert_eq!((answer.body.len(), answer.cut), (ANSWER_KEPT_MAX, true));
        settled().await;
    }
    assert_eq!(peer.connections(), 1);
}

#[tokio::test]
async fn fetched_body_is_complete_or_marked_as_cut() {
    let peer = PeerServer::saying(OK).await;
    let url = Url::parse(&peer.url()).unwrap();
    for (bytes_max, body, cut) in [(2, "ok", false), (3, "ok", false), (1, "o", true), (0, "", true)] {
        let answer = answered(here().get(&url, &[], bytes_max).await);
        assert_eq!((answer.body.as_slice(), answer.cut), (body.as_bytes(), cut), "{bytes_max}");
    }
    assert!(peer.requests().iter().all(|it| it.starts_with("GET /hook HTTP/1.1\r\n")));
}

#[tokio::test]
async fn slow_response_times_out() {
    let peer = PeerServer::doing(|mut stream| async move {
        stream.request().await;
        stream.say(b"HTTP/1.1 200 OK\r\n\r\n").await;
        let mut drops = tokio::time::interval(Duration::from_millis(20));
        while stream.say(b"x").await {
            drops.tick().await;
        }
    })
    .await;
    assert_eq!(why(in_time(&impatient(), &peer.url()).await), FailureCode::TimedOut);
}

#[tokio::test]
async fn silent_server_times_out() {
    let silent = PeerServer::doing(|mut stream| async move { stream.wait().await }).await;
    for scheme in ["http", "https"] {
        let url = format!("{scheme}://{}/", silent.address);
        assert_eq!(why(in_time(&impatient(), &url).await), FailureCode::TimedOut, "{scheme}");
    }
}

#[tokio::test]
async fn silent_resolver_times_out() {
    let silent: DnsResolver = Arc::new(|_| Box::pin(std::future::pending()));
    let settings = HttpClientSettings { timeout: Duration::from_millis(300), ..settings(&["127.0.0.1"]) };
    let outgoing = outgoing_by(silent, settings);
    assert_eq!(why(in_time(&outgoing, "http://hooks.example/").await), FailureCode::TimedOut);
}

#[tokio::test]
async fn invalid_response_is_reported_as_broken() {
    let many: String = (0..=ANSWER_HEADERS_MAX).map(|it| format!("x-{it}: y\r\n")).collect();
    for answer in [
        "SSH-2.0-OpenSSH_9.6\r\n\r\n".to_owned(),
        "HTTP/1.1 200 OK\r\ncontent-length: 5\r\nconnection: close\r\n\r\nok".to_owned(),
        "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nok".to_owned(),
        format!("HTTP/1.1 200 OK\r\n{many}content-length: 0\r\n\r\n"),
        String::new(),
    ] {
        let peer = PeerServer::doing(move |mut stream| {
            let answer = answer.clone();
            async move {
                stream.request().await;
                stream.say(answer.as_bytes()).await;
            }
        })
        .await;
        assert_eq!(why(here().post(&parcel(&peer.url())).await), FailureCode::Broken);
    }
}

#[tokio::test]
async fn a_head_without_an_end_is_broken() {
    let peer = PeerServer::doing(|mut stream| async move {
        stream.request().await;
        stream.say(b"HTTP/1.1 200 OK\r\nx: ").await;
        while stream.say(&[b'y'; 1000]).await {}
    })
    .await;
    assert_eq!(why(here().post(&parcel(&peer.url())).await), FailureCode::Broken);
}

#[tokio::test]
async fn compressed_response_is_not_decompressed() {
    let answer = b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 4\r\n\r\n\x1f\x8b\x08\x00";
    let peer = PeerServer::saying(&answer[..]).await;
    assert_eq!(answered(here().post(&parcel(&peer.url())).await).body, b"\x1f\x8b\x08\x00");
}

#[tokio::test]
async fn unreachable_hosts_have_distinct_codes() {
    // The port is bound so that no other process listens on it, and nothing accepts connections.
    let bound = tokio::net::TcpSocket::new_v4().unwrap();
    bound.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let closed = bound.local_addr().unwrap();
    for scheme in ["http", "https"] {
        assert_eq!(why(here().post(&parcel(&format!("{scheme}://{closed}/"))).await), FailureCode::Unreachable);
        assert_eq!(why(here().post(&parcel(&format!("{scheme}://nobody.example/"))).await), FailureCode::NotFound);
    }
    let (empty, _) = names(&[&[]]);
    let outgoing = outgoing_by(empty, settings(&["127.0.0.1"]));
    assert_eq!(why(outgoing.post(&parcel("https://nobody.example/")).await), FailureCode::NotFound);
}

#[tokio::test]
async fn a_certificate_must_be_trusted_and_for_that_name() {
    let (peer, trusted) = (with_certificate(), reqwest::Certificate::from_pem(AUTHORITY).unwrap());
    let post = async |authorities: &[reqwest::Certificate], name: &str| {
        let (look_up, _) = names(&[&["127.0.0.1"]]);
        let edges = ClientOverrides { look_up, authorities: authorities.to_vec(), idle_max: AMPLE };
        let outgoing = HttpClient::between(edges, settings(&["127.0.0.1"])).unwrap();
        outgoing.post(&parcel(&format!("https://{name}:{}/", peer.port()))).await
    };
    let trusted = [trusted];
    assert_eq!(answered(post(&trusted, "localhost").await).status, 204);
    assert_eq!(why(post(&trusted, "hooks.example").await), FailureCode::Tls);
    assert_eq!(why(post(&trusted, "127.0.0.1").await), FailureCode::Tls);
    assert_eq!(why(post(&[], "localhost").await), FailureCode::Tls);
}

#[tokio::test]
async fn server_without_tls_receives_nothing() {
    let peer = PeerServer::doing(|mut stream| async move {
        stream.say(OK.as_bytes()).await;
        stream.wait().await;
    })
    .await;
    assert_eq!(why(here().post(&parcel(&format!("https://{}/", peer.address))).await), FailureCode::Tls);
    let leaving = PeerServer::doing(|stream| async move { drop(stream) }).await;
    assert_eq!(why(here().post(&parcel(&format!("https://{}/", leaving.address))).await), FailureCode::Tls);
    assert!(peer.requests().is_empty());
}

#[tokio::test]
async fn invalid_header_is_not_sent() {
    let peer = PeerServer::saying(OK).await;
    for (name, value) in [("Host", "inside.example"), ("x", "a\r\nHost: b"), ("", "x")] {
        let mut parcel = parcel(&peer.url());
        parcel.headers.push((name.to_owned(), Secret::new(value.to_owned())));
        assert_eq!(why(here().post(&parcel).await), FailureCode::Unsendable, "{name}");
    }
    assert_eq!(peer.connections(), 0);
}

#[tokio::test]
async fn retry_after_is_read() {
    let hour = Some(Duration::from_secs(3600));
    let day = Some(Duration::from_secs(24 * 3600));
    for (text, after) in [
        ("3600", hour),
        (" 0 ", Some(Duration::ZERO)),
        ("99999999", day),
        ("99999999999999999999999999", day),
        ("Sun, 06 Nov 1994 08:49:37 GMT", Some(Duration::ZERO)),
        ("Fri, 31 Dec 9999 23:59:59 GMT", day),
        ("soon", None),
        ("-1", None),
        ("1.5", None),
        ("", None),
    ] {
        let peer =
            PeerServer::saying(format!("HTTP/1.1 503 X\r\nretry-after: {text}\r\ncontent-length: 0\r\n\r\n")).await;
        assert_eq!(answered(here().post(&parcel(&peer.url())).await).retry_after, after, "{text:?}");
    }
}
