//! Tests `mcp guard` between the official Python client and real MCP servers: a call runs once, after its approval, or
//! not at all.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use countersign_domain::identity::account::MachineRole;
use countersign_domain::reviews::VoteVerdict;
use serde_json::{Value, json};

use crate::gateway::{TestGateway, spawn_with_policy, token};
use crate::guarded::{GuardedClient, blocking, decides, outcomes, threads};

/// A flow in which the agent may read files, must ask to write them, and may not move them.
const POLICY: &str = r#"
flow = "payments"

[nodes.agent]
reads = []
writes = []
writer = true

[tools]
allow = ["files:*"]
deny = ["files:move_file", "files:get-env"]

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

/// A gateway, a folder of files, and the token of an instance.
struct GuardScenario {
    g: TestGateway,
    files: tempfile::TempDir,
    token: String,
}

impl GuardScenario {
    async fn new() -> Self {
        Self::with(POLICY).await
    }

    async fn with(policy: &str) -> Self {
        let g = spawn_with_policy(policy).await;
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
        let server = crate::npm::modules("mcp_servers").join("@modelcontextprotocol/server-filesystem/dist/index.js");
        let mut command = self.official_client(wait);
        command.arg("--state").arg(self.state()).args(["--", "node"]).arg(server).arg(self.files.path());
        GuardedClient::start(command)
    }

    /// The official client, which starts the guard.
    fn official_client(&self, wait: u64) -> Command {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mcp/client.py");
        let mut command = Command::new(crate::python::with("mcp"));
        command.arg(script).args(["auto", "stdio", env!("CARGO_BIN_EXE_countersign"), "mcp", "guard"]);
        command.args(["--gateway", &self.g.url, "--name", "files", "--wait", &wait.to_string()]);
        command.env("COUNTERSIGN_TOKEN", &self.token);
        command
    }

    /// The path of a server that is a Python program.
    fn program(&self, name: &str) -> PathBuf {
        crate::python::with("mcp_python_servers").with_file_name(name)
    }

    fn state(&self) -> PathBuf {
        self.g.folder.path().join("guard")
    }
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
    // Most files that an agent writes are longer than a page shows.
    let content = "approved é\n".repeat(50_000);
    let approved = content.clone();
    let writing = blocking(move || {
        let told = client.call("write_file", json!({"path": new, "content": content}));
        (told, client)
    });
    let ((ran, text), mut client) = tokio::join!(writing, decides(&it.g, VoteVerdict::Approve)).0;
    assert!(ran, "{text}");
    assert!(fs::read_to_string(&written).unwrap() == approved);
    let denied = it.path("denied.txt");
    let unwritten = denied.clone();
    let writing = blocking(move || {
        let told = client.call("write_file", json!({"path": denied, "content": "x"}));
        (told, client)
    });
    let ((ran, text), client) = tokio::join!(writing, decides(&it.g, VoteVerdict::Deny)).0;
    assert!(!ran && text.contains("as agreed"), "{text}");
    assert!(!fs::exists(&unwritten).unwrap());
    blocking(move || client.close()).await;
    assert_eq!(outcomes(&it.g).await, ["succeeded", "succeeded"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiting_call_is_found_again_after_a_restart_and_runs_once() {
    let it = GuardScenario::new().await;
    let new = it.path("new.txt");
    let arguments = json!({"path": new, "content": "once"});
    let (mut client, asked) = (it.client(0), arguments.clone());
    let (ran, text) = blocking(move || {
        let told = client.call("write_file", asked);
        client.child.kill().unwrap();
        client.close();
        told
    })
    .await;
    assert!(!ran && text.contains("exactly the same arguments"), "{text}");
    assert!(!fs::exists(&new).unwrap());
    decides(&it.g, VoteVerdict::Approve).await;
    let (mut client, asked) = (it.client(0), arguments.clone());
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
    assert_eq!(threads(&it.g).await.len(), 3);
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn server_gets_one_message_in_one_line() {
    let it = GuardScenario::new().await;
    let mut command = Command::new(env!("CARGO_BIN_EXE_countersign"));
    command.args(["mcp", "guard", "--gateway", &it.g.url, "--name", "files", "--", "cat"]);
    command.env("COUNTERSIGN_TOKEN", &it.token).stderr(Stdio::null());
    let mut client = GuardedClient::start(command);
    let told = blocking(move || {
        // Some readers of lines end a line at a carriage return.
        let hidden = b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\",\"params\":\r{\"id\":7,\"method\":\"tools/call\"}\r}\n";
        client.asks.write_all(hidden).unwrap();
        let told = client.line();
        client.close();
        told
    })
    .await;
    assert!(told.contains("notifications/x") && !told.trim_end().contains('\r'), "{told:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn remote_server_is_guarded_like_a_local_one() {
    let server = crate::mcp_conformance::HttpServer::everything().await;
    let it = GuardScenario::new().await;
    let mut command = it.official_client(30);
    command.args(["--upstream", &server.url]);
    let mut client = GuardedClient::start(command);
    let ((ran, text), refused) = blocking(move || {
        let told = client.call("echo", json!({"message": "Nordwind"}));
        let refused = client.call("get-env", json!({}));
        client.close();
        (told, refused)
    })
    .await;
    assert!(ran && text.contains("Nordwind"), "{text}");
    assert!(!refused.0 && refused.1.contains("denied"), "{refused:?}");
    assert_eq!(outcomes(&it.g).await, ["succeeded"]);
}

/// A flow in which the agent may read a database and a repository, and must ask to change them.
const READS: &str = r#"
flow = "payments"

[nodes.agent]
reads = []
writes = []
writer = true

[tools]
allow = ["files:read_query", "files:write_query", "files:create_table", "files:git_status", "files:git_commit"]

[[rules]]
name = "changes"
tools = ["files:write_query", "files:create_table", "files:git_commit"]
when = "true"
then = "hold"
reason = "A person approves each change."

[approval]
[[approval.stages]]
groups = ["reviewers"]
"#;

/// Calls a tool that is held, and approves it.
async fn approved_call(
    it: &GuardScenario,
    mut client: GuardedClient,
    call: (&'static str, Value),
) -> ((bool, String), GuardedClient) {
    let calling = blocking(move || {
        let told = client.call(call.0, call.1);
        (told, client)
    });
    tokio::join!(calling, decides(&it.g, VoteVerdict::Approve)).0
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn database_server_is_guarded() {
    let it = GuardScenario::with(READS).await;
    let mut command = it.official_client(30);
    command.arg("--").arg(it.program("mcp-server-sqlite")).args(["--db-path", &it.path("books.db")]);
    let client = GuardedClient::start(command);
    let table = json!({"query": "CREATE TABLE books (title TEXT)"});
    let ((ran, text), client) = approved_call(&it, client, ("create_table", table)).await;
    assert!(ran, "{text}");
    let insert = json!({"query": "INSERT INTO books VALUES ('Nordwind')"});
    let ((ran, text), mut client) = approved_call(&it, client, ("write_query", insert)).await;
    assert!(ran, "{text}");
    let (read, refused) = blocking(move || {
        let read = client.call("read_query", json!({"query": "SELECT title FROM books"}));
        let refused = client.call("append_insight", json!({"insight": "x"}));
        client.close();
        (read, refused)
    })
    .await;
    assert!(read.0 && read.1.contains("Nordwind"), "{read:?}");
    assert!(!refused.0 && refused.1.contains("denied"), "{refused:?}");
    assert_eq!(outcomes(&it.g).await, ["succeeded"; 3]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn repository_server_is_guarded() {
    let it = GuardScenario::with(READS).await;
    let repository = it.files.path().to_owned();
    let git = |arguments: &[&str]| {
        let done = Command::new("git").arg("-C").arg(&repository).args(arguments).output().unwrap();
        String::from_utf8(done.stdout).unwrap()
    };
    git(&["init", "--quiet"]);
    git(&["config", "user.email", "agent@example.com"]);
    git(&["config", "user.name", "agent"]);
    git(&["add", "note.txt"]);
    let mut command = it.official_client(30);
    command.arg("--").arg(it.program("mcp-server-git")).arg("--repository").arg(&repository);
    let mut client = GuardedClient::start(command);
    let path = repository.display().to_string();
    let status = json!({"repo_path": path});
    let ((ran, text), client) = blocking(move || (client.call("git_status", status), client)).await;
    assert!(ran && text.contains("note.txt"), "{text}");
    let commit = json!({"repo_path": path, "message": "Add a note"});
    let ((ran, text), client) = approved_call(&it, client, ("git_commit", commit)).await;
    assert!(ran, "{text}");
    blocking(move || client.close()).await;
    assert_eq!(git(&["log", "--format=%s"]).trim(), "Add a note");
    assert_eq!(outcomes(&it.g).await, ["succeeded"; 2]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn server_that_asks_its_client_for_input_gets_one_approved_call() {
    let it = GuardScenario::with(&POLICY.replace("files:write_file", "files:remove")).await;
    // Before version 2026-07-28, the server asks in a request of its own. Since then, the client sends the call again.
    for mode in ["legacy", "auto"] {
        let script = |name| Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mcp").join(name);
        let python = crate::python::with("mcp");
        let mut command = Command::new(&python);
        command.arg(script("client.py")).args([mode, "stdio", env!("CARGO_BIN_EXE_countersign"), "mcp", "guard"]);
        command.args(["--gateway", &it.g.url, "--name", "files", "--wait", "30", "--"]).arg(python);
        command.arg(script("asking_server.py")).arg(it.path("removed")).env("COUNTERSIGN_TOKEN", &it.token);
        let client = GuardedClient::start(command);
        let ((ran, text), client) = approved_call(&it, client, ("remove", json!({"name": mode}))).await;
        assert!(ran && text.contains("is removed"), "{mode}: {text}");
        blocking(move || client.close()).await;
    }
    assert_eq!(fs::read_to_string(it.path("removed")).unwrap(), "legacy\nauto\n");
    assert_eq!(threads(&it.g).await.len(), 2, "the answer to the server needs no second approval");
    assert_eq!(outcomes(&it.g).await, ["succeeded"; 2]);
}
