//! Tests MCP servers behind the gateway: calls run once, after their approval, with the server's own credentials.

use std::io::Write as _;
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use countersign_adapters::http_client::{HttpClient, HttpClientSettings};
use countersign_domain::identity::account::MachineRole;
use countersign_domain::primitives::secret::Secret;
use countersign_domain::reviews::VoteVerdict;
use countersign_mcp_guard::upstream::{McpUpstreams, UpstreamSettings};
use countersign_web::server::serve;
use countersign_web::state::{AppState, EdgeConfig};
use futures_util::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};

use crate::gateway::{TestGateway, edge, outgoing, spawn_with_policy, token};
use crate::guarded::{GuardedClient, blocking, decides, outcomes, threads};
use crate::scripted_mcp_server::ScriptedServer;

/// A flow whose agent may use a server, must ask for sums, and may not read the environment.
pub const POLICY: &str = r#"
flow = "payments"

[nodes.agent]
reads = []
writes = []
writer = true

[tools]
allow = ["every:*"]
deny = ["every:get-env"]

[[rules]]
name = "sums"
tools = ["every:get-sum", "every:held"]
when = "true"
then = "hold"
reason = "A person approves each sum."

[approval]
[[approval.stages]]
groups = ["reviewers"]
"#;

/// The bearer token of the server.
const SECRET: &str = "the-servers-own";

/// A gateway with one server behind it, and the tokens of two instances.
pub struct UpstreamScenario {
    pub g: TestGateway,
    pub url: String,
    pub token: String,
    pub other: String,
}

/// Serves a gateway with this server behind it. Returns the URL of the gateway.
pub fn serve_before(g: &TestGateway, name: &str, server: &str, client: &HttpClient) -> String {
    let secret = Some(Secret::new(SECRET.to_owned()));
    let settings = UpstreamSettings { name: name.to_owned(), url: server.parse().unwrap(), secret };
    let upstreams = McpUpstreams::new(&[settings], client, &g.folder.path().join("mcp")).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://localhost:{}", listener.local_addr().unwrap().port());
    let edge = EdgeConfig { upstreams, ..edge(&url, Default::default()) };
    let app = AppState::new(Arc::clone(&g.service), Arc::new(edge));
    tokio::spawn(serve(app, listener, 2, Duration::from_secs(1)).unwrap());
    url
}

impl UpstreamScenario {
    pub async fn before(server: &str, client: &HttpClient) -> Self {
        Self::with(POLICY, server, client).await
    }

    pub async fn with(policy: &str, server: &str, client: &HttpClient) -> Self {
        Self::on(spawn_with_policy(policy).await, server, client).await
    }

    /// Puts a server behind a gateway.
    pub async fn on(g: TestGateway, server: &str, client: &HttpClient) -> Self {
        let url = serve_before(&g, "every", server, client);
        let token_of = async |name: &str| token(&g.service, name, MachineRole::Instance, &["agent"]).await;
        let (token, other) = (token_of("bot").await, token_of("other").await);
        Self { url: format!("{url}/mcp/upstreams/every"), token, other, g }
    }

    /// Posts a message with these headers. Returns the status and the body.
    pub async fn post(&self, token: &str, headers: &[(&str, &str)], body: &str) -> (u16, String) {
        let mut request = self.g.http.post(&self.url).bearer_auth(token).header("content-type", "application/json");
        request = request.header("accept", "application/json, text/event-stream");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let answer = request.body(body.to_owned()).send().await.unwrap();
        (answer.status().as_u16(), answer.text().await.unwrap())
    }

    pub async fn call(&self, id: u64, tool: &str, arguments: &Value) -> (u16, String) {
        self.post(&self.token, &[], &call(id, tool, arguments)).await
    }
}

pub fn call(id: u64, tool: &str, arguments: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool, "arguments": arguments}})
        .to_string()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn denied_tool_is_in_no_form_of_a_list() {
    let server = ScriptedServer::start();
    let it = UpstreamScenario::before(&server.url, &outgoing()).await;
    for form in ["content", "array", "twins", "members", "mark", "surrogate", "number", "hidden", "marks", "case"] {
        let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"cursor": form}}).to_string();
        let (_, told) = it.post(&it.token, &[], &list).await;
        assert!(!told.contains("get-env"), "{form}: {told}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn outcome_is_unknown_if_the_server_does_not_tell_it() {
    let server = ScriptedServer::start();
    let it = UpstreamScenario::before(&server.url, &outgoing()).await;
    for tool in ["nothing", "late"] {
        let (_, told) = it.call(1, tool, &json!({})).await;
        assert!(!told.contains("ran"), "{told}");
    }
    assert!(outcomes(&it.g).await.is_empty(), "the calls may have run");
    // Programs in JavaScript can send half a character.
    let (_, told) = it.call(2, "cut", &json!({})).await;
    assert!(told.contains("ran \u{fffd}"), "{told}");
    assert_eq!(outcomes(&it.g).await, ["succeeded"]);
    it.g.pass(Duration::from_secs(3600));
    let now = it.g.service.core.now();
    for (thread, _) in &threads(&it.g).await[..2] {
        assert!(it.g.service.threads.overview(thread).await.unwrap().thread.outcome_unknown(now));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn official_client_calls_a_real_server_through_the_gateway() {
    let server = crate::mcp_conformance::HttpServer::everything().await;
    let it = UpstreamScenario::before(&server.url, &outgoing()).await;
    let python = blocking(|| crate::python::with("mcp")).await;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mcp/client.py");
    for mode in ["legacy", "auto"] {
        let mut command = Command::new(&python);
        command.arg(&script).args([mode, "http", &it.url]).env("COUNTERSIGN_TOKEN", &it.token);
        let mut client = GuardedClient::start(command);
        let mut client = blocking(move || {
            let tools = client.ask(&json!({"ask": "tools"}));
            let names: Vec<&str> =
                tools["tools"].as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap()).collect();
            assert!(names.contains(&"echo") && !names.contains(&"get-env"), "{names:?}");
            let echoed = client.call("echo", json!({"message": "Nordwind"}));
            assert!(echoed.0 && echoed.1.contains("Nordwind"), "{echoed:?}");
            let refused = client.call("get-env", json!({}));
            assert!(!refused.0 && refused.1.contains("denied"), "{refused:?}");
            client
        })
        .await;
        let summing = blocking(move || {
            let told = client.ask(&json!({"tool": "get-sum", "arguments": {"a": 2, "b": 40}}));
            client.close();
            told
        });
        let (told, ()) = tokio::join!(summing, decides(&it.g, VoteVerdict::Approve));
        assert!(told["is_error"] == false && told["text"][0].as_str().unwrap().contains("42"), "{told}");
        let page = told["pages"][0].as_str().expect("the user is asked to open the review");
        assert!(page.starts_with(&format!("{}/reviews/", it.g.url)), "{page}");
    }
    assert_eq!(outcomes(&it.g).await, ["succeeded"; 4]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn server_gets_its_own_credentials_and_only_the_approved_call() {
    let server = ScriptedServer::start();
    let it = UpstreamScenario::before(&server.url, &outgoing()).await;
    let held = call(7, "held", &json!({"b": 1, "a": [1.0]}));
    let asking = it.post(&it.token, &[("x-evil", "1"), ("cookie", "a=b")], &held);
    let (told, ()) = tokio::join!(asking, async {
        decides(&it.g, VoteVerdict::Approve).await;
        assert_eq!(server.calls_of("held"), 0, "the server gets nothing before the approval");
    });
    assert!(told.0 == 200 && told.1.contains("ran"), "{told:?}");
    let seen = server.seen();
    let [only] = &seen[..] else { panic!("{seen:?}") };
    assert_eq!(only.body["params"], json!({"name": "held", "arguments": {"a": [1], "b": 1}}));
    assert_eq!(only.header("authorization"), Some(format!("Bearer {SECRET}").as_str()));
    assert!(!format!("{seen:?}").contains(&it.token), "the instance's token is never sent on");
    assert!(only.header("x-evil").is_none() && only.header("cookie").is_none());
    assert_eq!(outcomes(&it.g).await, ["succeeded"]);
    // The same call again needs another approval.
    let again = it.post(&it.token, &[], &held);
    let (told, ()) = tokio::join!(again, decides(&it.g, VoteVerdict::Deny));
    assert!(told.1.contains("denied") && server.calls_of("held") == 1, "{told:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn message_that_can_be_read_in_two_ways_reaches_no_server() {
    let server = ScriptedServer::start();
    let it = UpstreamScenario::before(&server.url, &outgoing()).await;
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}).to_string();
    let echo = call(1, "echo", &json!({}));
    let resource =
        json!({"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": {"uri": "a://b"}}).to_string();
    for (headers, body) in [
        (&[("mcp-method", "tools/call")][..], ping.as_str()),
        (&[("mcp-method", "tools/call"), ("mcp-name", "held")][..], echo.as_str()),
        (&[("mcp-name", "held")][..], ping.as_str()),
        (&[("mcp-name", "c://d")][..], resource.as_str()),
        (&[][..], r#"[{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"held"}}]"#),
        (&[][..], r#"{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call","params":{"name":"held"}}"#),
        (&[][..], r#"{"jsonrpc":"2.0","id":1,"METHOD":"tools/call","params":{"name":"held"}}"#),
        (
            &[][..],
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"to":1,"TO":2}}}"#,
        ),
        (&[("mcp-session-id", "session-1")][..], ping.as_str()),
        (&[("origin", "https://evil.example")][..], ping.as_str()),
    ] {
        let (status, told) = it.post(&it.token, headers, body).await;
        assert!((400..=404).contains(&status), "{status} {told} for {headers:?} {body}");
    }
    assert!(server.seen().is_empty(), "{:?}", server.seen());
    let (status, _) = it.post(&it.token, &[("mcp-method", "resources/read"), ("mcp-name", "a://b")], &resource).await;
    assert_eq!(status, 202);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn session_belongs_to_the_instance_that_began_it() {
    let server = ScriptedServer::start();
    let it = UpstreamScenario::before(&server.url, &outgoing()).await;
    let begin = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {}}).to_string();
    let answer = it.g.http.post(&it.url).bearer_auth(&it.token).header("content-type", "application/json").body(begin);
    let answer = answer.send().await.unwrap();
    let session = answer.headers()["mcp-session-id"].to_str().unwrap().to_owned();
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}).to_string();
    let count = server.seen().len();
    let (status, told) = it.post(&it.other, &[("mcp-session-id", &session)], &ping).await;
    assert_eq!((status, server.seen().len()), (404, count), "{told}");
    for method in [Method::GET, Method::DELETE] {
        let request = it.g.http.request(method, &it.url).bearer_auth(&it.other).header("mcp-session-id", &session);
        assert_eq!(request.send().await.unwrap().status(), 404);
    }
    assert_eq!(server.seen().len(), count);
    let (status, _) = it.post(&it.token, &[("mcp-session-id", &session)], &ping).await;
    assert_eq!(status, 202);
    let ended = it.g.http.delete(&it.url).bearer_auth(&it.token).header("mcp-session-id", &session);
    assert_eq!(ended.send().await.unwrap().status(), 202);
    let seen = server.seen();
    assert!(seen[count..].iter().all(|it| it.header("mcp-session-id") == Some("session-1")), "{seen:?}");
    assert_eq!(seen.last().unwrap().method, "DELETE");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn outcome_is_recorded_whatever_the_server_answers() {
    let server = ScriptedServer::start();
    let it = UpstreamScenario::before(&server.url, &outgoing()).await;
    let twice = it.call(1, "twice", &json!({})).await;
    assert!(twice.1.contains("first") && twice.1.contains("second"), "{twice:?}");
    let injected = it.call(2, "injected", &json!({})).await;
    assert!(injected.1.contains("tools/call"), "messages of the server pass unchanged: {injected:?}");
    assert_eq!(threads(&it.g).await.len(), 2, "a message of the server asks for nothing");
    for tool in ["elsewhere", "locked"] {
        let (status, told) = it.call(3, tool, &json!({})).await;
        assert_eq!((status, told.contains("\"id\":3")), (502, true), "{told}");
    }
    assert_eq!(outcomes(&it.g).await, ["succeeded", "succeeded", "failed", "failed"]);
    // The client disconnects before the result. The call goes on, and its outcome is recorded.
    let nothing = json!({});
    let slow = it.call(4, "slow", &nothing);
    assert!(tokio::time::timeout(Duration::from_millis(400), slow).await.is_err());
    for _ in 0..200 {
        if outcomes(&it.g).await.len() == 5 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(outcomes(&it.g).await[4], "succeeded");
    assert_eq!(server.calls_of("slow"), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn private_address_is_refused_and_nothing_ran() {
    let server = ScriptedServer::start();
    let settings = HttpClientSettings { allowed: Vec::new(), plain_http: true, timeout: Duration::from_secs(5) };
    let it = UpstreamScenario::before(&server.url, &HttpClient::new(settings).unwrap()).await;
    let (status, told) = it.call(1, "echo", &json!({})).await;
    assert!(status == 502 && told.contains("Nothing was sent"), "{status} {told}");
    assert!(server.seen().is_empty());
    assert_eq!(outcomes(&it.g).await, ["failed"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hundred_calls_at_once_run_once_each() {
    let server = ScriptedServer::start();
    let it = UpstreamScenario::before(&server.url, &outgoing()).await;
    let arguments: Vec<Value> = (0..100).map(|it| json!({"n": it})).collect();
    let told = join_all(arguments.iter().zip(1..).map(|(arguments, id)| it.call(id, "echo", arguments))).await;
    assert!(told.iter().all(|it| it.0 == 200 && it.1.contains("ran")), "{told:?}");
    let mut ran: Vec<u64> =
        server.seen().iter().map(|it| it.body["params"]["arguments"]["n"].as_u64().unwrap()).collect();
    ran.sort_unstable();
    assert_eq!(ran, (0..100).collect::<Vec<u64>>());
    assert_eq!(outcomes(&it.g).await, ["succeeded"; 100]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn equal_calls_at_two_gateways_and_a_command_share_one_review() {
    let server = ScriptedServer::start();
    let it = UpstreamScenario::before(&server.url, &outgoing()).await;
    // Another gateway on the same database remembers nothing of the first one.
    let (first_url, second) = (it.url.clone(), serve_before(&it.g, "every", &server.url, &outgoing()));
    let second = UpstreamScenario { url: format!("{second}/mcp/upstreams/every"), ..it };
    let mut command = Command::new(env!("CARGO_BIN_EXE_countersign"));
    command.args(["mcp", "guard", "--gateway", &second.g.url, "--name", "every", "--upstream", &server.url]);
    command.args(["--wait", "30"]).env("COUNTERSIGN_TOKEN", &second.token);
    let held = call(7, "held", &json!({"n": 1}));
    let mut guard = GuardedClient::start(command);
    let asked = held.clone();
    let guarded = blocking(move || {
        writeln!(guard.asks, "{asked}").unwrap();
        let told = guard.line();
        guard.close();
        told
    });
    let first = second.g.http.post(first_url).bearer_auth(&second.token).header("content-type", "application/json");
    let ran = |told: String| assert!(told.contains("ran"), "{told}");
    tokio::join!(
        async { ran(guarded.await) },
        async { ran(first.body(held.clone()).send().await.unwrap().text().await.unwrap()) },
        async { ran(second.post(&second.token, &[], &held).await.1) },
        async {
            for before in 0..3 {
                decides(&second.g, VoteVerdict::Approve).await;
                for _ in 0..200 {
                    if outcomes(&second.g).await.len() > before {
                        break;
                    }
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
                let open = threads(&second.g).await.into_iter().filter(|it| it.1.is_some()).count();
                assert!(server.calls_of("held") == before + 1 && open <= 1, "an approval runs one call");
            }
        }
    );
    assert_eq!(threads(&second.g).await.len(), 3);
}

/// A call of a client that speaks version 2026-07-28 and can show links.
fn new_call(id: u64, tool: &str, more: &Value) -> String {
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"url": {}}}});
    let mut params = json!({"name": tool, "arguments": {"n": 1}, "_meta": meta});
    params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).to_string()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn client_that_can_show_links_is_asked_to_open_the_review() {
    let server = ScriptedServer::start();
    let it = UpstreamScenario::before(&server.url, &outgoing()).await;
    let result = |told: &str| serde_json::from_str::<Value>(told).unwrap()["result"].clone();
    let (_, first) = it.post(&it.token, &[], &new_call(1, "held", &json!({}))).await;
    let first = result(&first);
    let link = &first["inputRequests"]["review"];
    let (_, review) = threads(&it.g).await.remove(0);
    assert_eq!(link["params"]["url"], format!("{}/reviews/{}", it.g.url, review.unwrap()));
    assert_eq!((&first["resultType"], &link["params"]["mode"]), (&json!("input_required"), &json!("url")));
    let state = &first["requestState"];
    let declined = json!({"requestState": state, "inputResponses": {"review": {"action": "decline"}}});
    let (_, told) = it.post(&it.token, &[], &new_call(2, "held", &declined)).await;
    assert!(told.contains("exactly the same arguments"), "a user who declines is not asked again: {told}");
    // The state has no authority: another call needs another approval.
    let stolen = json!({"requestState": state, "arguments": {"n": 2}});
    let (_, told) = it.post(&it.token, &[], &new_call(3, "held", &stolen)).await;
    assert!(!told.contains("ran"), "{told}");
    assert_eq!((threads(&it.g).await.len(), server.calls_of("held")), (2, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn session_of_a_client_that_can_show_links_gets_an_error_with_the_review() {
    let server = ScriptedServer::start();
    let it = UpstreamScenario::before(&server.url, &outgoing()).await;
    for (links, expected) in [(json!({"url": {}}), true), (json!({}), false)] {
        let begin = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize",
            "params": {"capabilities": {"elicitation": links}}});
        let answer = it.g.http.post(&it.url).bearer_auth(&it.token).json(&begin).send().await.unwrap();
        let session = answer.headers()["mcp-session-id"].to_str().unwrap().to_owned();
        assert_eq!(session.ends_with("~links"), expected, "{session}");
    }
    let begin = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize",
        "params": {"capabilities": {"elicitation": {"url": {}}}}});
    let answer = it.g.http.post(&it.url).bearer_auth(&it.token).json(&begin).send().await.unwrap();
    let session = answer.headers()["mcp-session-id"].to_str().unwrap().to_owned();
    let held = call(1, "held", &json!({"n": 1}));
    let (_, told) = it.post(&it.token, &[("mcp-session-id", &session)], &held).await;
    let told: Value = serde_json::from_str(&told).unwrap();
    assert_eq!(told["error"]["code"], -32042, "{told}");
    let link = &told["error"]["data"]["elicitations"][0];
    assert!(link["url"].as_str().unwrap().starts_with(&format!("{}/reviews/", it.g.url)), "{link}");
    let headers = [("mcp-session-id", session.as_str())];
    let (_, (status, told)) = tokio::join!(decides(&it.g, VoteVerdict::Approve), it.post(&it.token, &headers, &held));
    assert!(status == 200 && told.contains("ran"), "{told}");
    let (status, _) = it.post(&it.other, &headers, &held).await;
    assert_eq!(status, 404, "a session belongs to its instance");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn header_with_an_argument_has_the_approved_value() {
    let server = ScriptedServer::start();
    let it = UpstreamScenario::before(&server.url, &outgoing()).await;
    let regional = call(1, "regional", &json!({"region": "\u{c5}land", "secret": "x"}));
    let version = ("mcp-protocol-version", "2026-07-28");
    let right = [version, ("mcp-param-region", "=?base64?w4VsYW5k?=")];
    // Without a list, the gateway knows no headers of the tool. The client lists the tools then.
    let (status, told) = it.post(&it.token, &right, &regional).await;
    assert!(status == 400 && told.contains("-32020"), "{told}");
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).to_string();
    it.post(&it.token, &[("mcp-param-region", "anything")], &list).await;
    assert!(server.seen().iter().all(|it| it.header("mcp-param-region").is_none()));
    for wrong in [("mcp-param-region", "Berlin"), ("mcp-param-region", "x"), ("mcp-param-other", "x")] {
        let (status, told) = it.post(&it.token, &[version, wrong], &regional).await;
        assert!(status == 400 && told.contains("-32020"), "{wrong:?}: {told}");
    }
    assert_eq!(server.calls_of("regional"), 0);
    for headers in [&right[..], &right[..1]] {
        let (status, _) = it.post(&it.token, headers, &regional).await;
        assert_eq!(status, 200);
        let sent = server.seen().pop().unwrap();
        assert_eq!(sent.header("mcp-param-region"), Some("=?base64?w4VsYW5k?="));
    }
}
