//! Tests the guard when a process is killed or a message is lost: a call runs at most once, and its outcome is known or
//! said to be unknown.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use countersign_domain::identity::account::MachineRole;
use countersign_domain::reviews::VoteVerdict;
use serde_json::json;

use crate::gateway::{TestGateway, spawn_with_policy, token};
use crate::guarded::{GuardedClient, blocking, decides, outcomes, threads};
use crate::scripted_mcp_server::ScriptedServer;

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
pub struct FaultScenario {
    pub g: TestGateway,
    token: String,
}

impl FaultScenario {
    async fn new() -> Self {
        Self::with(POLICY).await
    }

    pub async fn with(policy: &str) -> Self {
        let g = spawn_with_policy(policy).await;
        let token = token(&g.service, "bot", MachineRole::Instance, &["agent"]).await;
        Self { g, token }
    }

    /// The guard, before that server.
    pub fn guard(&self, gateway: &str) -> GuardedClient {
        let mut command = Command::new(env!("CARGO_BIN_EXE_countersign"));
        command.args(["mcp", "guard", "--gateway", gateway, "--name", "files", "--wait", "1"]);
        command.arg("--state").arg(self.g.folder.path().join("guard"));
        command.args(["--", "python3", "-c", SERVER]).arg(self.g.folder.path().join("calls"));
        command.env("COUNTERSIGN_TOKEN", &self.token).stderr(Stdio::null());
        GuardedClient::start(command)
    }

    /// Calls a tool through a guard, and returns the answer.
    async fn calls_once(&self, mut guard: GuardedClient, tool: &'static str) -> String {
        blocking(move || {
            writeln!(guard.asks, "{}", call(1, tool)).unwrap();
            let told = guard.line();
            guard.close();
            told
        })
        .await
    }

    /// The calls that the server got.
    pub fn calls(&self) -> Vec<String> {
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
    let told = it.calls_once(it.guard(&it.g.url), "quick").await;
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
async fn guard_that_is_killed_at_any_step_runs_a_call_once_at_most() {
    for (path, fault, ran, is_unknown) in [
        ("/requests?share=true ", Fault::WithheldRequest, 0, false),
        ("/requests?share=true ", Fault::WithheldResponse, 0, false),
        ("/consume ", Fault::WithheldRequest, 0, false),
        // The approval is used, and the call is not forwarded.
        ("/consume ", Fault::WithheldResponse, 0, true),
        // The call is forwarded, and its outcome is not reported.
        ("/outcome ", Fault::WithheldRequest, 1, true),
        ("/outcome ", Fault::WithheldResponse, 1, false),
    ] {
        let it = FaultScenario::new().await;
        let proxy = faulty_proxy(&it.g.url, path, fault);
        let mut guard = it.guard(&proxy.url);
        writeln!(guard.asks, "{}", call(1, "quick")).unwrap();
        proxy.is_reached().await;
        guard.child.kill().unwrap();
        blocking(move || guard.close()).await;
        let reported = outcomes(&it.g).await.len();
        assert_eq!(it.calls().len(), ran, "{path} {fault:?}");
        assert_eq!(reported == 1, ran == 1 && !is_unknown, "{path} {fault:?}: no outcome is invented");
        let told = it.calls_once(it.guard(&it.g.url), "quick").await;
        assert!(told.contains("done"), "{path} {fault:?}: {told}");
        assert_eq!(it.calls().len(), ran + 1, "{path} {fault:?}: an equal call has an approval of its own");
        assert_eq!(outcomes(&it.g).await.len(), reported + 1);
        it.g.pass(Duration::from_secs(3600));
        let (first, _) = threads(&it.g).await.remove(0);
        let overview = it.g.service.threads.overview(&first).await.unwrap();
        assert_eq!(overview.thread.outcome_unknown(it.g.service.core.now()), is_unknown, "{path} {fault:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn guard_that_is_killed_while_its_call_waits_runs_it_once_after_the_approval() {
    let held = "[[rules]]\nname = \"held\"\ntools = [\"files:quick\"]\nwhen = \"true\"\nthen = \"hold\"\nreason = \"r\"\n\n[approval]";
    let it = FaultScenario::with(&POLICY.replace("[approval]", held)).await;
    let proxy = faulty_proxy(&it.g.url, "?wait=", Fault::WithheldRequest);
    let mut guard = it.guard(&proxy.url);
    writeln!(guard.asks, "{}", call(1, "quick")).unwrap();
    proxy.is_reached().await;
    guard.child.kill().unwrap();
    blocking(move || guard.close()).await;
    decides(&it.g, VoteVerdict::Approve).await;
    assert!(it.calls().is_empty(), "a guard that is killed sends nothing later");
    let told = it.calls_once(it.guard(&it.g.url), "quick").await;
    assert!(told.contains("done") && it.calls().len() == 1, "{told}");
    let told = it.calls_once(it.guard(&it.g.url), "quick").await;
    assert!(told.contains("waits for the approval") && it.calls().len() == 1, "{told}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn call_runs_once_if_a_message_to_the_gateway_or_its_answer_is_lost() {
    let it = FaultScenario::new().await;
    let mut count = 0;
    for path in ["/requests?share=true ", "/consume ", "/outcome "] {
        for fault in [Fault::LostRequest, Fault::LostResponse] {
            let told = it.calls_once(it.guard(&faulty_proxy(&it.g.url, path, fault).url), "quick").await;
            count += 1;
            assert!(told.contains("done"), "{path} {fault:?}: {told}");
            assert_eq!(it.calls().len(), count, "{path} {fault:?}");
        }
    }
    assert_eq!(outcomes(&it.g).await, ["succeeded"; 6]);
    assert_eq!(threads(&it.g).await.len(), 6, "a repeated request asks for nothing new");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn approval_that_arrives_late_is_not_used() {
    let it = FaultScenario::with(&POLICY.replace("[approval]\n", "[approval]\nwrite_lease = \"2s\"\n")).await;
    let late = Fault::LateResponse(Duration::from_millis(1_500));
    let told = it.calls_once(it.guard(&faulty_proxy(&it.g.url, "/consume ", late).url), "quick").await;
    assert!(told.contains("expired before the call could run"), "{told}");
    assert!(it.calls().is_empty());
    assert_eq!(outcomes(&it.g).await, ["failed"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn outcome_is_unknown_if_a_remote_server_does_not_tell_it() {
    let (server, it) = (ScriptedServer::start(), FaultScenario::new().await);
    let mut command = Command::new(env!("CARGO_BIN_EXE_countersign"));
    command.args(["mcp", "guard", "--gateway", &it.g.url, "--name", "files", "--upstream", &server.url]);
    command.env("COUNTERSIGN_TOKEN", &it.token).stderr(Stdio::null());
    let told = it.calls_once(GuardedClient::start(command), "late").await;
    assert!(told.contains("did not answer this request"), "{told}");
    assert_eq!(server.calls_of("late"), 1);
    assert!(outcomes(&it.g).await.is_empty(), "the call may have run");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn guard_warns_at_its_start_if_no_call_can_run() {
    let it = FaultScenario::new().await;
    let warning = async |gateway: &str, token: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_countersign"));
        command.args(["mcp", "guard", "--gateway", gateway, "--", "cat"]);
        command.env("COUNTERSIGN_TOKEN", token).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut guard = command.spawn().unwrap();
        let warning = blocking(move || {
            let mut line = String::new();
            BufReader::new(guard.stderr.take().unwrap()).read_line(&mut line).unwrap();
            let is_running = guard.try_wait().unwrap().is_none();
            drop(guard.stdin.take());
            guard.wait().unwrap();
            (line, is_running)
        });
        warning.await
    };
    let nowhere = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (line, is_running) = warning(&format!("http://{nowhere}"), &it.token).await;
    assert!(line.contains("it cannot be reached") && is_running, "{line}");
    let (line, is_running) = warning(&it.g.url, "cs_nobody").await;
    assert!(line.contains("token") && is_running, "{line}");
    let told = it.calls_once(it.guard(&format!("http://{nowhere}")), "quick").await;
    assert!(told.contains("cannot be reached") && it.calls().is_empty(), "{told}");
}

/// The fault of a proxy, in the first request to a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    LostRequest,
    LostResponse,
    LateResponse(Duration),
    /// The gateway never gets the request, and the connection stays open.
    WithheldRequest,
    /// The guard never gets the response, and the connection stays open.
    WithheldResponse,
}

struct FaultyProxy {
    url: String,
    /// Whether the fault has happened.
    is_reached: Arc<AtomicBool>,
}

impl FaultyProxy {
    async fn is_reached(&self) {
        for _ in 0..400 {
            if self.is_reached.load(Ordering::SeqCst) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
        panic!("the guard does not get so far");
    }
}

/// A proxy before the gateway with one fault.
#[expect(clippy::disallowed_methods, reason = "the delay itself is tested")]
fn faulty_proxy(gateway: &str, path: &'static str, fault: Fault) -> FaultyProxy {
    let gateway = gateway.strip_prefix("http://").unwrap().to_owned();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://localhost:{}", listener.local_addr().unwrap().port());
    let (lost, is_reached) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let reached = Arc::clone(&is_reached);
    thread::spawn(move || {
        for client in listener.incoming() {
            let (mut client, mut server) = (client.unwrap(), TcpStream::connect(&gateway).unwrap());
            let (mut to_client, mut from_server) = (client.try_clone().unwrap(), server.try_clone().unwrap());
            let (lost, broken) = (Arc::clone(&lost), Arc::new(AtomicBool::new(false)));
            let (breaks, reached, withheld) = (Arc::clone(&broken), Arc::clone(&reached), Arc::clone(&reached));
            thread::spawn(move || {
                let mut piece = [0; 16 * 1024];
                while let Ok(count @ 1..) = client.read(&mut piece) {
                    let named = piece[..count].windows(path.len()).any(|it| it == path.as_bytes());
                    if named && !lost.swap(true, Ordering::SeqCst) {
                        breaks.store(true, Ordering::SeqCst);
                        if fault == Fault::LostRequest {
                            let _ = client.shutdown(std::net::Shutdown::Both);
                            return;
                        }
                        if fault == Fault::WithheldRequest {
                            reached.store(true, Ordering::SeqCst);
                            continue;
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
                    let is_broken = broken.swap(false, Ordering::SeqCst);
                    if let (true, Fault::LateResponse(delay)) = (is_broken, fault) {
                        thread::sleep(delay);
                    }
                    if is_broken && fault == Fault::WithheldResponse {
                        withheld.store(true, Ordering::SeqCst);
                        continue;
                    }
                    let is_lost = is_broken && fault == Fault::LostResponse;
                    if is_lost || to_client.write_all(&piece[..count]).is_err() {
                        let _ = to_client.shutdown(std::net::Shutdown::Both);
                        return;
                    }
                }
            });
        }
    });
    FaultyProxy { url, is_reached }
}
