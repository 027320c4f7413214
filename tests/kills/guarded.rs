//! Kills a gateway with an MCP server behind it at each step of a tool call: one approval runs one call at most, and
//! no outcome is wrong.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use countersign_adapters::clock::SystemClock;
use countersign_adapters::keyring::Keyring;
use countersign_domain::identity::account::{Account, MachineRole};
use countersign_domain::primitives::id::PrincipalId;
use countersign_domain::reviews::VoteVerdict;
use countersign_domain::threads::approval_request::CallStatus;
use countersign_domain::threads::thread::Thread;
use countersign_mcp_guard::upstream::{McpUpstreams, UpstreamSettings};
use countersign_service::Service;
use countersign_store::record::RecordReader;
use countersign_store::sqlite::{SqliteOptions, SqliteStore};
use countersign_web::server::serve;
use countersign_web::state::{AppState, EdgeConfig};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::child::probe;
use super::gateway;
use super::left;
use super::parent::settings;

/// The variable with the orders of the gateway that is killed.
const ORDERS: &str = "GUARDED_ORDERS";

/// A flow whose agent may read at once, and must ask before it writes.
const POLICY: &str = r#"
flow = "payments"

[nodes.agent]
reads = []
writes = []
writer = true

[tools]
allow = ["files:*"]

[[rules]]
name = "writes"
tools = ["files:write"]
when = "true"
then = "hold"
reason = "A person approves each change."

[approval]
[[approval.stages]]
groups = ["reviewers"]
"#;

/// The steps of a commit at which the gateway is killed.
const POINTS: [&str; 3] = ["locked", "written", "committed"];

/// More commits than a call has.
const COMMITS_MAX: u64 = 30;

#[derive(Clone, Debug, Serialize, Deserialize)]
struct GuardedOrders {
    database: String,
    keyring: String,
    /// The URL of the MCP server.
    server: String,
    /// The commit at which it is killed, if it is.
    point: Option<(String, u64)>,
}

/// The gateway that is killed. Without orders it has nothing to do.
#[test]
fn a_guarded_gateway_with_orders_serves_until_it_is_killed() {
    let Ok(orders) = std::env::var(ORDERS) else { return };
    std::io::stdout().write_all(b"\n").unwrap();
    let orders: GuardedOrders = serde_json::from_str(&orders).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let options = SqliteOptions { probe: probe(orders.point.as_ref()), ..SqliteOptions::default() };
        let service = service(&orders, options).await;
        let settings = UpstreamSettings { name: "files".to_owned(), url: orders.server.parse().unwrap(), secret: None };
        let folder = std::path::Path::new(&orders.database).with_file_name("mcp");
        let upstreams = McpUpstreams::new(&[settings], &gateway::outgoing(), &folder).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        // A call that waits is answered at once.
        let edge = EdgeConfig { upstreams, wait_max: Duration::ZERO, ..gateway::edge(&url, Default::default()) };
        let serving = serve(AppState::new(service, Arc::new(edge)), listener, 2, Duration::from_secs(1)).unwrap();
        std::io::stdout().write_all(format!("{url}\n").as_bytes()).unwrap();
        serving.await.unwrap();
    });
}

async fn service(orders: &GuardedOrders, options: SqliteOptions) -> Arc<Service> {
    let store = Arc::new(SqliteStore::open(&orders.database, options).unwrap());
    let keyring = Keyring::open(orders.keyring.as_ref(), None).unwrap();
    Arc::new(Service::open(store, keyring, Arc::new(SystemClock), settings()).await.unwrap())
}

/// An MCP server that notes the arguments of each call, and answers it.
struct NotingServer {
    url: String,
    calls: Arc<Mutex<Vec<u64>>>,
}

impl NotingServer {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let calls: Arc<Mutex<Vec<u64>>> = Arc::default();
        let noted = Arc::clone(&calls);
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let noted = Arc::clone(&noted);
                std::thread::spawn(move || answer(client.unwrap(), &noted));
            }
        });
        Self { url, calls }
    }

    fn calls_of(&self, n: u64) -> usize {
        self.calls.lock().unwrap().iter().filter(|it| **it == n).count()
    }
}

/// Answers one request of HTTP.
fn answer(mut client: TcpStream, noted: &Mutex<Vec<u64>>) {
    let (mut sent, mut piece) = (Vec::new(), [0; 4096]);
    let body = loop {
        let Ok(count @ 1..) = client.read(&mut piece) else { return };
        sent.extend_from_slice(&piece[..count]);
        let Some(end) = sent.windows(4).position(|it| it == b"\r\n\r\n") else { continue };
        if let Ok(body) = serde_json::from_slice::<Value>(&sent[end + 4..]) {
            break body;
        }
    };
    noted.lock().unwrap().push(body["params"]["arguments"]["n"].as_u64().unwrap());
    let result = json!({"jsonrpc": "2.0", "id": body["id"], "result": {"content": [{"type": "text", "text": "ran"}]}});
    let result = result.to_string();
    let head = format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n", result.len());
    let _ = client.write_all(format!("{head}connection: close\r\n\r\n{result}").as_bytes());
}

/// A gateway in a process of its own.
struct GatewayProcess {
    child: Child,
    lines: UnboundedReceiver<String>,
    url: String,
}

impl GatewayProcess {
    /// Starts the gateway. Returns `None` if it reached the point before it served.
    async fn start(orders: &GuardedOrders) -> Option<Self> {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["a_guarded_gateway_with_orders_serves_until_it_is_killed", "--nocapture", "--test-threads=1"]);
        command.env(ORDERS, serde_json::to_string(orders).unwrap());
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (told, lines) = unbounded_channel();
        std::thread::spawn(move || {
            for line in output.lines() {
                let _ = told.send(line.unwrap());
            }
        });
        let mut it = Self { child, lines, url: String::new() };
        loop {
            let line = it.lines.recv().await.expect("the gateway serves");
            if line.contains("at_point") {
                it.kill();
                return None;
            }
            if line.starts_with("http") {
                it.url = line;
                return Some(it);
            }
        }
    }

    /// Waits until the gateway is at the point at which it is killed.
    async fn is_at_point(&mut self) {
        while !self.lines.recv().await.expect("the gateway lives").contains("at_point") {}
    }

    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

struct GuardedScenario {
    _folder: tempfile::TempDir,
    orders: GuardedOrders,
    server: NotingServer,
    token: String,
    reviewer: Account,
}

impl GuardedScenario {
    async fn new() -> Self {
        countersign_adapters::tls::ready();
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).display().to_string();
        let server = NotingServer::start();
        let (database, keyring) = (path("countersign.db"), path("keyring.json"));
        Keyring::open_or_create(keyring.as_ref(), Some("urn:test:guarded"), &SystemClock).unwrap();
        let orders = GuardedOrders { database, keyring, server: server.url.clone(), point: None };
        let service = service(&orders, SqliteOptions::default()).await;
        let by = PrincipalId::try_from("tests").unwrap();
        let activated = service.policy_changes.activate_policy(&by, None, gateway::source(POLICY), BTreeSet::new());
        activated.await.unwrap();
        let token = gateway::token(&service, "bot", MachineRole::Instance, &["agent"]).await;
        let reviewer = gateway::person(&service, "alice", &["reviewers"]).await;
        Self { _folder: folder, orders, server, token, reviewer }
    }

    /// Calls a tool at a gateway that is killed at this point. Returns `false` if the call ended before.
    async fn killed_call(&self, tool: &str, n: u64, point: (&str, u64)) -> bool {
        let orders = GuardedOrders { point: Some((point.0.to_owned(), point.1)), ..self.orders.clone() };
        let Some(mut gateway) = GatewayProcess::start(&orders).await else { return true };
        let url = gateway.url.clone();
        let is_killed = tokio::select! {
            () = gateway.is_at_point() => true,
            told = self.call_at(&url, tool, n) => {
                assert!(told.is_some(), "the gateway answers");
                false
            }
        };
        gateway.kill();
        is_killed
    }

    /// Calls a tool at a gateway that stays alive.
    async fn call(&self, tool: &str, n: u64) -> String {
        let gateway = GatewayProcess::start(&self.orders).await.expect("the gateway serves");
        let told = self.call_at(&gateway.url, tool, n).await.expect("the gateway answers");
        gateway.kill();
        told
    }

    async fn call_at(&self, url: &str, tool: &str, n: u64) -> Option<String> {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {"name": tool, "arguments": {"n": n}}});
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let request = client.post(format!("{url}/mcp/upstreams/files")).bearer_auth(&self.token).json(&body);
        request.send().await.ok()?.text().await.ok()
    }

    /// Approves the call that waits.
    async fn approve(&self) {
        let service = service(&self.orders, SqliteOptions::default()).await;
        let held = self.threads().await.into_iter().find_map(|it| it.hold).expect("a call waits");
        let facts = service.reviews.review(&held, &self.reviewer).await.unwrap();
        let ballot = gateway::ballot(&json!({"transition": facts.hold.transition}), VoteVerdict::Approve);
        service.reviews.vote(&self.reviewer.id, &held, &ballot, None).await.unwrap();
    }

    async fn threads(&self) -> Vec<Thread> {
        let store = SqliteStore::open(&self.orders.database, SqliteOptions::default()).unwrap();
        let keys = Keyring::open(self.orders.keyring.as_ref(), None).unwrap().current().unwrap();
        left::all::<Thread>(RecordReader { store: &store, key: keys.row() }).await.into_values().collect()
    }

    /// Checks that each run had an approval of its own, that no outcome is invented, and that all rows agree.
    async fn check(&self, what: &str) {
        let store = SqliteStore::open(&self.orders.database, SqliteOptions::default()).unwrap();
        let keys = Keyring::open(self.orders.keyring.as_ref(), None).unwrap().current().unwrap();
        let wrong = left::look(&store, &keys, &[]).await;
        assert!(wrong.is_empty(), "{what}:\n{}", wrong.join("\n"));
        let threads = self.threads().await;
        let runs = self.server.calls.lock().unwrap().len();
        let used = threads.iter().filter(|it| it.fence > 0).count();
        let outcomes = threads.iter().filter_map(|it| it.request.as_ref()?.outcome.as_ref());
        let outcomes: Vec<CallStatus> = outcomes.map(|it| it.status).collect();
        assert!(runs <= used, "{what}: {runs} runs of {used} used approvals");
        assert!(outcomes.len() <= runs, "{what}: {outcomes:?} of {runs} runs");
        assert!(outcomes.iter().all(|it| *it == CallStatus::Succeeded), "{what}: {outcomes:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn allowed_call_runs_once_at_most_if_the_gateway_is_killed() {
    let it = GuardedScenario::new().await;
    let mut n = 0;
    for point in POINTS {
        for count in 1..COMMITS_MAX {
            n += 1;
            let is_killed = it.killed_call("read", n, (point, count)).await;
            let before = it.server.calls_of(n);
            assert!(before <= 1, "{point} {count}");
            if !is_killed {
                assert!(count > 3, "a call has a commit for its request, its use and its outcome");
                break;
            }
            let told = it.call("read", n).await;
            assert!(told.contains("ran") && it.server.calls_of(n) == before + 1, "{point} {count}: {told}");
            it.check(&format!("{point} {count}")).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn approved_call_runs_once_at_most_if_the_gateway_is_killed() {
    let it = GuardedScenario::new().await;
    let mut n = 0;
    for point in POINTS {
        for count in 1..COMMITS_MAX {
            n += 1;
            // The gateway is killed while the call waits, and it finds its review again.
            let told = it.call("write", n).await;
            assert!(told.contains("waits for the approval"), "{told}");
            assert_eq!(it.call("write", n).await, told, "the same review");
            it.approve().await;
            let is_killed = it.killed_call("write", n, (point, count)).await;
            let before = it.server.calls_of(n);
            assert!(before <= 1, "{point} {count}");
            if !is_killed {
                assert!(count > 2, "a call has a commit for its use and its outcome");
                break;
            }
            let told = it.call("write", n).await;
            // The approval either ran one call, or is used up, or runs this one.
            let ran = it.server.calls_of(n);
            assert!(
                ran <= 1 && (told.contains("ran") || told.contains("waits for the approval")),
                "{point} {count}: {told}"
            );
            it.check(&format!("{point} {count}")).await;
            if told.contains("waits for the approval") {
                it.approve().await;
                assert!(it.call("write", n).await.contains("ran"), "{point} {count}");
                assert_eq!(it.server.calls_of(n), before + 1, "{point} {count}");
            }
        }
    }
}
