//! Tests `mcp guard` between the official Python client and real MCP servers: a call runs once, after its approval, or
//! not at all.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use countersign_domain::identity::account::MachineRole;
use countersign_domain::primitives::id::ThreadId;
use countersign_domain::reviews::VoteVerdict;
use serde_json::{Value, json};

use crate::gateway::{TestGateway, ballot, spawn_with_policy, token};

/// A flow in which the agent may read files, must ask to write them, and may not move them.
const POLICY: &str = r#"
flow = "payments"

[nodes.agent]
reads = []
writes = []
writer = true

[tools]
allow = ["files:*"]
deny = ["files:move_file"]

[[rules]]
name = "writes"
tools = ["files:write_file"]
when = "true"
then = "hold"
reason = "A person approves each change of a file."

[approval]
[[approval.stages]]
groups = ["reviewers"]
"#;

/// A client with its guard and the server behind it.
struct GuardedClient {
    child: Child,
    asks: ChildStdin,
    told: BufReader<ChildStdout>,
}

/// A gateway, a folder of files, and the token of an instance.
struct GuardScenario {
    g: TestGateway,
    files: tempfile::TempDir,
    token: String,
}

impl GuardScenario {
    async fn new() -> Self {
        let g = spawn_with_policy(POLICY).await;
        let token = token(&g.service, "bot", MachineRole::Instance, &["agent"]).await;
        let files = tempfile::tempdir().unwrap();
        fs::write(files.path().join("note.txt"), "Nordwind").unwrap();
        // The packages may have to be installed first.
        tokio::task::spawn_blocking(|| (crate::python::with("mcp"), crate::npm::modules("mcp_servers"))).await.unwrap();
        Self { g, files, token }
    }

    fn path(&self, name: &str) -> String {
        self.files.path().join(name).display().to_string()
    }

    fn client(&self, wait: u64) -> GuardedClient {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mcp/client.py");
        let server = crate::npm::modules("mcp_servers").join("@modelcontextprotocol/server-filesystem/dist/index.js");
        let mut command = Command::new(crate::python::with("mcp"));
        command.arg(script).args(["auto", "stdio", env!("CARGO_BIN_EXE_countersign"), "mcp", "guard"]);
        command.args(["--gateway", &self.g.url, "--name", "files", "--wait", &wait.to_string()]);
        command.arg("--state").arg(self.state()).args(["--", "node"]).arg(server).arg(self.files.path());
        command.env("COUNTERSIGN_TOKEN", &self.token).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (asks, told) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        GuardedClient { child, asks, told }
    }

    fn state(&self) -> PathBuf {
        self.g.folder.path().join("guard")
    }

    /// Waits for the only held call, and decides it.
    async fn decides(&self, verdict: VoteVerdict) {
        let g = &self.g;
        for _ in 0..200 {
            if let Some((thread, review)) = self.held().await {
                let facts = g.service.reviews.review(&review, &g.alice).await.unwrap();
                let held = json!({"transition": facts.hold.transition, "thread": thread});
                let ballot = countersign_domain::reviews::Ballot {
                    comment: Some("as agreed".to_owned()),
                    ..ballot(&held, verdict)
                };
                g.service.reviews.vote(&g.alice.id, &review, &ballot, None).await.unwrap();
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("no call is held");
    }

    async fn held(&self) -> Option<(ThreadId, countersign_domain::primitives::id::ReviewId)> {
        let all = self.threads().await;
        all.into_iter().find_map(|(thread, hold)| Some((thread, hold?)))
    }

    /// The threads of all requests, with their pending reviews.
    async fn threads(&self) -> Vec<(ThreadId, Option<countersign_domain::primitives::id::ReviewId>)> {
        while self.g.service.log.sequence().await.unwrap() > 0 {}
        let events = self.g.get("/v1/events?limit=500", &self.g.auditor).await.expect(200);
        let mut found = Vec::new();
        for event in events["events"].as_array().unwrap().iter().filter(|it| it["type"] == "thread.created") {
            let thread: ThreadId = event["thread"].as_str().unwrap().try_into().unwrap();
            let overview = self.g.service.threads.overview(&thread).await.unwrap();
            found.push((thread, overview.review));
        }
        found
    }

    /// The outcomes of all calls, as the gateway recorded them.
    async fn outcomes(&self) -> Vec<&'static str> {
        let mut outcomes = Vec::new();
        for (thread, _) in self.threads().await {
            let overview = self.g.service.threads.overview(&thread).await.unwrap();
            let outcome = overview.thread.request.and_then(|it| it.outcome);
            outcomes.extend(outcome.map(|it| it.status.as_str()));
        }
        outcomes
    }
}

impl GuardedClient {
    fn ask(&mut self, ask: &Value) -> Value {
        writeln!(self.asks, "{ask}").unwrap();
        let mut line = String::new();
        self.told.read_line(&mut line).unwrap();
        serde_json::from_str(&line).expect("the client answers")
    }

    fn call(&mut self, tool: &str, arguments: Value) -> (bool, String) {
        let told = self.ask(&json!({"tool": tool, "arguments": arguments}));
        (told["is_error"] == false, told["text"][0].as_str().unwrap_or_default().to_owned())
    }

    /// Closes the client, which ends the guard and its server.
    fn close(self) {
        let Self { mut child, asks, told } = self;
        drop((asks, told));
        child.wait().unwrap();
    }
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(work).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn call_runs_by_policy_by_approval_or_not_at_all() {
    let it = GuardScenario::new().await;
    let (note, new, moved) = (it.path("note.txt"), it.path("new.txt"), it.path("moved.txt"));
    let mut client = it.client(30);
    let (listed, client_back) = blocking(move || {
        let tools = client.ask(&json!({"ask": "tools"}));
        let read = client.call("read_text_file", json!({"path": note}));
        assert!(read.0 && read.1.contains("Nordwind"), "{read:?}");
        let refused = client.call("move_file", json!({"source": note, "destination": moved}));
        assert!(!refused.0 && refused.1.contains("denied") && refused.1.contains("tool"), "{refused:?}");
        assert!(fs::exists(&note).unwrap() && !fs::exists(&moved).unwrap());
        (tools, client)
    })
    .await;
    let listed: Vec<&str> = listed["tools"].as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap()).collect();
    assert!(listed.contains(&"write_file") && !listed.contains(&"move_file"), "{listed:?}");
    let (mut client, written) = (client_back, new.clone());
    let writing = blocking(move || {
        let told = client.call("write_file", json!({"path": new, "content": "approved"}));
        (told, client)
    });
    let ((ran, text), mut client) = tokio::join!(writing, it.decides(VoteVerdict::Approve)).0;
    assert!(ran, "{text}");
    assert_eq!(fs::read_to_string(&written).unwrap(), "approved");
    let denied = it.path("denied.txt");
    let unwritten = denied.clone();
    let writing = blocking(move || {
        let told = client.call("write_file", json!({"path": denied, "content": "x"}));
        (told, client)
    });
    let ((ran, text), client) = tokio::join!(writing, it.decides(VoteVerdict::Deny)).0;
    assert!(!ran && text.contains("as agreed"), "{text}");
    assert!(!fs::exists(&unwritten).unwrap());
    blocking(move || client.close()).await;
    assert_eq!(it.outcomes().await, ["succeeded", "succeeded"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiting_call_is_found_again_after_a_restart_and_runs_once() {
    let it = GuardScenario::new().await;
    let new = it.path("new.txt");
    let arguments = json!({"path": new, "content": "once"});
    let (mut client, asked) = (it.client(1), arguments.clone());
    let (ran, text) = blocking(move || {
        let told = client.call("write_file", asked);
        client.child.kill().unwrap();
        client.close();
        told
    })
    .await;
    assert!(!ran && text.contains("exactly the same arguments"), "{text}");
    assert!(!fs::exists(&new).unwrap());
    it.decides(VoteVerdict::Approve).await;
    let (mut client, asked) = (it.client(1), arguments.clone());
    let ((ran, text), mut client) = blocking(move || {
        let told = client.call("write_file", asked);
        (told, client)
    })
    .await;
    assert!(ran, "{text}");
    assert_eq!(fs::read_to_string(&new).unwrap(), "once");
    fs::remove_file(&new).unwrap();
    let other = json!({"path": new, "content": "twice"});
    let (again, altered) = blocking(move || {
        let told = (client.call("write_file", arguments), client.call("write_file", other));
        client.close();
        told
    })
    .await;
    assert!(!again.0 && !altered.0, "another call needs another approval: {again:?}");
    assert!(!fs::exists(&new).unwrap());
    assert_eq!(it.threads().await.len(), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_call_runs_without_the_gateway() {
    let it = GuardScenario::new().await;
    let stranger = GuardScenario { token: "cs_nobody".to_owned(), ..it };
    let note = stranger.path("note.txt");
    let mut client = stranger.client(1);
    let (ran, text) = blocking(move || {
        let told = client.call("read_text_file", json!({"path": note}));
        client.close();
        told
    })
    .await;
    assert!(!ran && text.contains("not run"), "{text}");
}
