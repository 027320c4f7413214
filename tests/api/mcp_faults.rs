//! Tests the guard when a process is killed or a message is lost: a call runs at most once, and its outcome is known or
//! said to be unknown.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use countersign_domain::identity::account::MachineRole;
use serde_json::json;

use crate::gateway::{TestGateway, spawn_with_policy, token};
use crate::guarded::{GuardedClient, blocking, outcomes, threads};

/// A flow whose agent may call each tool of the server.
const POLICY: &str = r#"
flow = "payments"

[nodes.agent]
reads = []
writes = []
writer = true

[tools]
allow = ["files:*"]

[approval]
[[approval.stages]]
groups = ["reviewers"]
"#;

/// A server that appends each call to a file. It answers the tool `quick` and never the tool `slow`.
const SERVER: &str = r#"
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    with open(sys.argv[1], "a") as calls:
        calls.write(message["params"]["name"] + "\n")
    if message["params"]["name"] == "quick":
        result = {"content": [{"type": "text", "text": "done"}]}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"#;

/// A gateway, an instance, and the file in which the server notes its calls.
struct FaultScenario {
    g: TestGateway,
    token: String,
}

impl FaultScenario {
    async fn new() -> Self {
        let g = spawn_with_policy(POLICY).await;
        let token = token(&g.service, "bot", MachineRole::Instance, &["agent"]).await;
        Self { g, token }
    }

    /// The guard, before that server.
    fn guard(&self, gateway: &str) -> GuardedClient {
        let mut command = Command::new(env!("CARGO_BIN_EXE_countersign"));
        command.args(["mcp", "guard", "--gateway", gateway, "--name", "files", "--wait", "1"]);
        command.arg("--state").arg(self.g.folder.path().join("guard"));
        command.args(["--", "python3", "-c", SERVER]).arg(self.g.folder.path().join("calls"));
        command.env("COUNTERSIGN_TOKEN", &self.token).stderr(Stdio::null());
        GuardedClient::start(command)
    }

    /// The calls that the server got.
    fn calls(&self) -> Vec<String> {
        let text = fs::read_to_string(self.g.folder.path().join("calls")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }
}

fn call(id: u64, tool: &str) -> String {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool, "arguments": {"n": 1}}})
        .to_string()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn call_of_a_killed_guard_is_not_sent_again_and_its_outcome_is_unknown() {
    let it = FaultScenario::new().await;
    let mut guard = it.guard(&it.g.url);
    writeln!(guard.asks, "{}", call(1, "slow")).unwrap();
    for _ in 0..400 {
        if !it.calls().is_empty() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    guard.child.kill().unwrap();
    blocking(move || guard.close()).await;
    // A new guard sends nothing by itself.
    let mut guard = it.guard(&it.g.url);
    let told = blocking(move || {
        writeln!(guard.asks, "{}", call(2, "quick")).unwrap();
        let told = guard.line();
        guard.close();
        told
    })
    .await;
    assert!(told.contains("done"), "{told}");
    assert_eq!(it.calls(), ["slow", "quick"]);
    it.g.pass(Duration::from_secs(3600));
    let (first, _) = threads(&it.g).await.remove(0);
    let overview = it.g.service.threads.overview(&first).await.unwrap();
    let now = it.g.service.core.now();
    assert!(overview.thread.outcome_unknown(now), "nobody knows whether the call of the killed guard ran");
    assert_eq!(outcomes(&it.g).await, ["succeeded"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn call_runs_once_if_a_message_to_the_gateway_or_its_answer_is_lost() {
    let it = FaultScenario::new().await;
    let mut count = 0;
    for path in ["/aap/v1/requests ", "/consume ", "/outcome "] {
        for loss in [Loss::Request, Loss::Response] {
            let mut guard = it.guard(&lossy_proxy(&it.g.url, path, loss));
            let told = blocking(move || {
                writeln!(guard.asks, "{}", call(1, "quick")).unwrap();
                let told = guard.line();
                guard.close();
                told
            })
            .await;
            count += 1;
            assert!(told.contains("done"), "{path} {loss:?}: {told}");
            assert_eq!(it.calls().len(), count, "{path} {loss:?}");
        }
    }
    assert_eq!(outcomes(&it.g).await, ["succeeded"; 6]);
    assert_eq!(threads(&it.g).await.len(), 6, "a repeated request asks for nothing new");
}

/// The message that a proxy loses, once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Loss {
    Request,
    Response,
}

/// A proxy before the gateway that breaks the connection of the first request to this path.
fn lossy_proxy(gateway: &str, path: &'static str, loss: Loss) -> String {
    let gateway = gateway.strip_prefix("http://").unwrap().to_owned();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://localhost:{}", listener.local_addr().unwrap().port());
    let lost = Arc::new(AtomicBool::new(false));
    thread::spawn(move || {
        for client in listener.incoming() {
            let (mut client, mut server) = (client.unwrap(), TcpStream::connect(&gateway).unwrap());
            let (mut to_client, mut from_server) = (client.try_clone().unwrap(), server.try_clone().unwrap());
            let (lost, broken) = (Arc::clone(&lost), Arc::new(AtomicBool::new(false)));
            let breaks = Arc::clone(&broken);
            thread::spawn(move || {
                let mut piece = [0; 16 * 1024];
                while let Ok(count @ 1..) = client.read(&mut piece) {
                    let named = piece[..count].windows(path.len()).any(|it| it == path.as_bytes());
                    if named && !lost.swap(true, Ordering::SeqCst) {
                        breaks.store(true, Ordering::SeqCst);
                        if loss == Loss::Request {
                            let _ = client.shutdown(std::net::Shutdown::Both);
                            return;
                        }
                    }
                    if server.write_all(&piece[..count]).is_err() {
                        return;
                    }
                }
            });
            thread::spawn(move || {
                let mut piece = [0; 16 * 1024];
                while let Ok(count @ 1..) = from_server.read(&mut piece) {
                    if broken.load(Ordering::SeqCst) || to_client.write_all(&piece[..count]).is_err() {
                        let _ = to_client.shutdown(std::net::Shutdown::Both);
                        return;
                    }
                }
            });
        }
    });
    url
}
