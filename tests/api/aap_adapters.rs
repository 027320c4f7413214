//! Tests the Agent Approval Protocol with its Python package and the package's adapters for agent frameworks. The
//! scripts in `tests/aap` run the adapters with a scripted model.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{ChildStdin, Command, Stdio};
use std::time::Duration;

use countersign_domain::reviews::VoteVerdict;
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::approval_requests::{Instance, decides, policy};
use crate::gateway::TestGateway;
use crate::program::ChildProcess;
use crate::rules::ApiScenario;

/// The time within which a script answers on a busy machine.
const PATIENCE: Duration = Duration::from_secs(90);

#[tokio::test]
async fn package_has_the_same_results_as_with_its_own_provider() {
    let scene = scene().await;
    let it = Instance::new(&scene.gateway, "bot").await;
    let mut script = Script::start("plain.py", &it, Path::new("")).await;
    let results = loop {
        let event = script.next().await.expect("the script ends with its results");
        if let Some(id) = event.get("decide") {
            let verdict = if event["status"] == "approved" { VoteVerdict::Approve } else { VoteVerdict::Deny };
            decides(&scene.gateway, &json!({"id": id}), verdict, event["note"].as_str()).await;
        } else if event.get("expire").is_some() {
            scene.gateway.pass(Duration::from_secs(5 * 60 + 1));
        } else {
            break event;
        }
        script.send(&json!({}));
    };
    assert_eq!(results["different"], json!({}), "{results:#}");
    assert!(results["same"].as_u64().unwrap() > 90, "{results:#}");
    scene.passes_an_audit().await;
}

#[tokio::test]
async fn langgraph_adapter() {
    Stories::tell("with_langgraph.py").await;
}

#[tokio::test]
async fn deep_agents_adapter() {
    Stories::tell("with_deep_agents.py").await;
}

#[tokio::test]
async fn pydantic_ai_adapter() {
    Stories::tell("with_pydantic_ai.py").await;
}

#[tokio::test]
async fn openai_agents_adapter() {
    Stories::tell("with_openai_agents.py").await;
}

#[tokio::test]
async fn adk_adapter() {
    Stories::tell("with_adk.py").await;
}

#[tokio::test]
async fn claude_agent_sdk_adapter() {
    Stories::tell("with_claude_agent_sdk.py").await;
}

async fn scene() -> ApiScenario {
    let tools = r#""search", "refund", "collapse", "crm:search", "crm:refund", "crm:collapse""#;
    ApiScenario::on_sqlite(&policy().replace(r#""search", "refund", "crm:*""#, tools)).await
}

/// A script of `tests/aap` that runs.
pub struct Script {
    _process: ChildProcess,
    input: ChildStdin,
    events: UnboundedReceiver<Value>,
}

impl Script {
    pub async fn start(name: &str, it: &Instance<'_>, folder: &Path) -> Self {
        // The Python packages may have to be installed first.
        let python = tokio::task::spawn_blocking(|| crate::python::with("aap")).await.unwrap();
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/aap").join(name);
        let mut process = Command::new(python)
            .arg(script)
            .arg(folder)
            .env("AAP_URL", format!("{}/aap", it.g.url))
            .env("AAP_TOKEN", &it.token)
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .env("PYTHONWARNINGS", "ignore")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (input, output) = (process.stdin.take().unwrap(), BufReader::new(process.stdout.take().unwrap()));
        let (sender, events) = unbounded_channel();
        std::thread::spawn(move || {
            let lines = output.lines().map_while(Result::ok);
            // Sending fails if the test has ended.
            lines.for_each(|line| drop(sender.send(serde_json::from_str(&line).expect(&line))));
        });
        Self { _process: ChildProcess(process), input, events }
    }

    pub fn send(&mut self, command: &Value) {
        writeln!(self.input, "{command}").unwrap();
    }

    /// Returns the next event, or `None` if the process has ended.
    pub async fn next(&mut self) -> Option<Value> {
        let event = tokio::time::timeout(PATIENCE, self.events.recv()).await.expect("the script answers in time")?;
        assert!(event.get("failed").is_none(), "{}", event["failed"].as_str().unwrap_or_default());
        Some(event)
    }

    /// Returns the next event with this member.
    pub async fn event(&mut self, member: &str) -> Value {
        loop {
            let event = self.next().await.unwrap_or_else(|| panic!("no `{member}` before the end of the script"));
            if event.get(member).is_some() {
                return event;
            }
        }
    }

    /// Starts a run of an agent, and returns the request for its call.
    async fn asks(&mut self, (run, mode): (&str, &str), tool: &str, arguments: &Value) -> Value {
        self.send(&json!({"run": run, "mode": mode, "calls": [{"tool": tool, "arguments": arguments}]}));
        json!({"id": self.event("created").await["created"]})
    }

    /// Returns the last words of a run.
    async fn ends(&mut self, run: &str) -> String {
        let event = self.event("run").await;
        assert_eq!((&event["run"], &event["paused"]), (&json!(run), &Value::Null), "{event}");
        event["said"].as_str().unwrap().to_owned()
    }

    async fn pauses(&mut self, run: &str) {
        let event = self.event("run").await;
        assert_eq!(event, json!({"run": run, "paused": true}));
    }

    /// Wakes a run, as a webhook would.
    async fn wakes(&mut self, run: &str, request: &Value) {
        self.send(&json!({"wake": request["id"], "run": run}));
        assert_eq!(self.event("woke").await, json!({"woke": request["id"], "resumed": true}), "{run}");
    }

    /// Continues a run of a process that ended, and checks that it has the same request.
    async fn continues(&mut self, run: &str, request: &Value) -> String {
        self.send(&json!({"continue": run, "mode": "sync"}));
        let event = self.event("created").await;
        assert_eq!(event, json!({"created": request["id"], "status": 200}), "{run}");
        self.ends(run).await
    }
}

/// The stories that every adapter passes.
struct Stories<'g> {
    name: &'g str,
    g: &'g TestGateway,
    it: Instance<'g>,
    folder: &'g Path,
    script: Script,
}

impl Stories<'_> {
    async fn tell(name: &str) {
        let scene = scene().await;
        let g = &scene.gateway;
        let folder = tempfile::tempdir().unwrap();
        let it = Instance::new(g, "bot").await;
        let script = Script::start(name, &it, folder.path()).await;
        let mut stories = Stories { name, g, it, folder: folder.path(), script };
        stories.calls_run_after_their_approval_only().await;
        let unfinished = stories.process_dies().await;
        stories.script = Script::start(name, &stories.it, folder.path()).await;
        stories.new_process_continues(&unfinished).await;
        stories.calls_of_one_turn_are_decided_alone().await;
        stories.requests_expire().await;
        scene.passes_an_audit().await;
    }

    async fn calls_run_after_their_approval_only(&mut self) {
        for (run, mode) in [("allowed", "sync"), ("allowed at once", "async")] {
            let allowed = self.script.asks((run, mode), "search", &json!({"q": run})).await;
            assert_eq!(self.script.ends(run).await, "search is done");
            self.ran_once(run, &allowed).await;
        }
        let approved = self.asks(("approved", "sync")).await;
        decides(self.g, &approved, VoteVerdict::Approve, Some("call them first")).await;
        assert_eq!(self.script.ends("approved").await, "refund is done");
        self.ran_once("approved", &approved).await;

        let denied = self.asks(("denied", "sync")).await;
        decides(self.g, &denied, VoteVerdict::Deny, Some("not this week")).await;
        assert!(self.script.ends("denied").await.contains("not this week"));
        self.did_not_run("denied", &denied, "denied").await;

        let cancelled = self.asks(("cancelled", "sync")).await;
        self.it.cancel(&cancelled).await.expect(200);
        assert!(self.script.ends("cancelled").await.contains("cancelled"));
        self.did_not_run("cancelled", &cancelled, "cancelled").await;

        let rejected = self.script.asks(("rejected", "async"), "delete", &json!({"order": "rejected"})).await;
        assert!(!self.script.ends("rejected").await.is_empty());
        self.did_not_run("rejected", &rejected, "denied").await;
    }

    /// Leaves runs that pause, wait and have used their approval, and kills the process.
    async fn process_dies(&mut self) -> Unfinished {
        let mut paused = Vec::new();
        for run in ["paused", "paused and denied"] {
            paused.push(self.asks((run, "async")).await);
            self.script.pauses(run).await;
        }
        let waiting = self.asks(("waiting", "sync")).await;
        let used = self.script.asks(("used", "sync"), "collapse", &json!({"reason": "used"})).await;
        while self.script.next().await.is_some() {}
        let [approved, denied] = paused.try_into().unwrap();
        Unfinished { approved, denied, waiting, used }
    }

    async fn new_process_continues(&mut self, unfinished: &Unfinished) {
        let Unfinished { approved, denied, waiting, used } = unfinished;
        // ADK 2.13 ends an agent that pauses again, so it ignores the next wake. ADK 2.11 does not.
        if self.name != "with_adk.py" {
            self.script.wakes("paused", approved).await;
            self.script.pauses("paused").await;
            assert_eq!(self.calls("paused"), Vec::<Value>::new(), "a wake is not an approval");
        }
        decides(self.g, approved, VoteVerdict::Approve, None).await;
        for _ in 0..2 {
            self.script.wakes("paused", approved).await;
            assert_eq!(self.script.ends("paused").await, "refund is done");
            self.ran_once("paused", approved).await;
        }

        decides(self.g, denied, VoteVerdict::Deny, Some("not this week")).await;
        self.script.wakes("paused and denied", denied).await;
        assert!(self.script.ends("paused and denied").await.contains("not this week"));
        self.did_not_run("paused and denied", denied, "denied").await;

        decides(self.g, waiting, VoteVerdict::Approve, None).await;
        assert_eq!(self.script.continues("waiting", waiting).await, "refund is done");
        self.ran_once("waiting", waiting).await;

        assert!(self.script.continues("used", used).await.contains("already attempted"));
        assert_eq!(self.calls("used").len(), 1);
    }

    async fn calls_of_one_turn_are_decided_alone(&mut self) {
        // The CLI of Claude keeps only one deferred call of a turn, so the adapter lets the second one wait.
        if self.name == "with_claude_agent_sdk.py" {
            return;
        }
        let calls = ["first of two", "second of two"].map(|it| json!({"tool": "refund", "arguments": refund(it)}));
        self.script.send(&json!({"run": "two calls", "mode": "async", "calls": calls}));
        let mut requests = Vec::new();
        for _ in &calls {
            let request = json!({"id": self.script.event("created").await["created"]});
            let stored = self.it.read(&request).await.expect(200);
            requests.push((stored["arguments"]["order"].as_str().unwrap().to_owned(), request));
        }
        requests.sort_by(|one, other| one.0.cmp(&other.0));
        let [(first, denied), (second, approved)] = requests.try_into().unwrap();
        self.script.pauses("two calls").await;
        decides(self.g, &approved, VoteVerdict::Approve, None).await;
        self.script.wakes("two calls", &approved).await;
        self.script.pauses("two calls").await;
        self.ran_once(&second, &approved).await;
        decides(self.g, &denied, VoteVerdict::Deny, Some("not this week")).await;
        self.script.wakes("two calls", &denied).await;
        let said = self.script.ends("two calls").await;
        assert!(said.contains("not this week") && said.contains("refund is done"), "{said}");
        self.ran_once(&second, &approved).await;
        self.did_not_run(&first, &denied, "denied").await;
    }

    async fn requests_expire(&mut self) {
        let paused = self.asks(("paused and expired", "async")).await;
        self.script.pauses("paused and expired").await;
        let expired = self.asks(("expired", "sync")).await;
        self.g.pass(Duration::from_secs(61 * 60));
        assert!(self.script.ends("expired").await.contains("expired"));
        self.did_not_run("expired", &expired, "expired").await;
        self.script.wakes("paused and expired", &paused).await;
        assert!(self.script.ends("paused and expired").await.contains("expired"));
        self.did_not_run("paused and expired", &paused, "expired").await;
    }

    /// Starts a run with a call that the policy holds.
    async fn asks(&mut self, (run, mode): (&str, &str)) -> Value {
        let arguments = refund(run);
        let request = self.script.asks((run, mode), "refund", &arguments).await;
        let stored = self.it.read(&request).await.expect(200);
        assert_eq!((&stored["status"], &stored["arguments"]), (&json!("pending"), &arguments), "{stored}");
        request
    }

    /// Returns the calls of the tools in a run. Each call has the name of its run as its first argument.
    fn calls(&self, run: &str) -> Vec<Value> {
        let calls = std::fs::read_to_string(self.folder.join("calls.jsonl")).unwrap_or_default();
        let calls = calls.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        calls.filter(|it| it["arguments"].as_object().unwrap().values().any(|it| it == run)).collect()
    }

    /// Checks that the tool ran once with the arguments of the request, and that the outcome was reported.
    async fn ran_once(&self, run: &str, request: &Value) {
        let stored = self.it.read(request).await.expect(200);
        assert_eq!(self.calls(run), [json!({"tool": stored["tool"], "arguments": stored["arguments"]})]);
        assert_eq!(stored["consumption"]["outcome"]["status"], "succeeded", "{stored}");
    }

    async fn did_not_run(&self, run: &str, request: &Value, status: &str) {
        let stored = self.it.read(request).await.expect(200);
        assert_eq!((&stored["status"], &stored["consumption"]), (&json!(status), &Value::Null), "{stored}");
        assert_eq!(self.calls(run), Vec::<Value>::new());
    }
}

fn refund(order: &str) -> Value {
    json!({"order": order, "amount": 40.5, "lines": [{"sku": "“ü”", "number": 2, "gift": false}]})
}

/// The requests of a process that ended.
struct Unfinished {
    approved: Value,
    denied: Value,
    waiting: Value,
    used: Value,
}
