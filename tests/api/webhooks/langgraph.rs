//! Tests the delivery of decisions to a real LangGraph server, and of a decision that arrives twice.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use countersign_domain::reviews::VoteVerdict;
use serde_json::{Value, json};

use super::resuming::{posted, resumes, told, votes};
use super::scene::{WebhookScenario, path};
use crate::program::ChildProcess;

struct LangGraphServer {
    _process: ChildProcess,
    url: String,
    http: reqwest::Client,
}

impl LangGraphServer {
    async fn start() -> Self {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/langgraph/server.py");
        let mut process = Command::new(crate::python::with("langgraph"))
            .arg(script)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut said = BufReader::new(process.stdout.take().unwrap()).lines();
        let port = said.next().unwrap().unwrap();
        // The rest of the output is discarded, so that it does not fill the pipe.
        std::thread::spawn(move || said.for_each(drop));
        let server = Self {
            _process: ChildProcess(process),
            url: format!("http://127.0.0.1:{port}"),
            http: reqwest::Client::new(),
        };
        // The port is bound, and the server answers when it is ready.
        let ready = server.http.get(format!("{}/ok", server.url)).send().await.unwrap();
        assert!(ready.status().is_success());
        server
    }

    async fn get(&self, path: &str) -> Value {
        self.http.get(format!("{}{path}", self.url)).send().await.unwrap().json().await.unwrap()
    }

    async fn post(&self, path: &str, body: &Value) -> Value {
        self.http.post(format!("{}{path}", self.url)).json(body).send().await.unwrap().json().await.unwrap()
    }

    /// A thread that stopped for a decision on the first of these digests.
    async fn stopped(&self, digests: &[&Value]) -> (String, String) {
        let thread = self.post("/threads", &json!({})).await["thread_id"].as_str().unwrap().to_owned();
        let run = json!({"assistant_id": "agent", "input": {"digests": digests}});
        self.post(&format!("/threads/{thread}/runs/wait"), &run).await;
        let name = self.waiting(&thread).await["id"].as_str().unwrap().to_owned();
        (thread, name)
    }

    /// Returns the interrupt that a thread waits for after its runs have ended.
    async fn waiting(&self, thread: &str) -> Value {
        let thread = self.rested(thread).await;
        assert_eq!(thread["status"], "interrupted", "{thread}");
        thread["interrupts"].as_object().unwrap().values().next().unwrap()[0].clone()
    }

    /// Returns a thread after its runs have ended.
    async fn rested(&self, thread: &str) -> Value {
        for run in self.runs(thread).await {
            self.get(&format!("/threads/{thread}/runs/{}/join", run.as_str().unwrap())).await;
        }
        loop {
            let told = self.get(&format!("/threads/{thread}")).await;
            if told["status"] != "busy" {
                return told;
            }
        }
    }

    async fn runs(&self, thread: &str) -> Vec<Value> {
        let runs = self.get(&format!("/threads/{thread}/runs")).await;
        runs.as_array().unwrap().iter().map(|it| it["run_id"].clone()).collect()
    }
}

async fn redelivered(s: &WebhookScenario, endpoint: &Value) -> Value {
    let index = s.deliveries(endpoint).await[0]["delivery"].clone();
    let again = path(endpoint, &format!("/deliveries/{index}/redelivery"));
    s.g.post(&again, &s.g.admin, json!({})).await.expect(202);
    s.send().await;
    s.deliveries(endpoint).await[0]["attempts"].as_array().unwrap().last().unwrap().clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn langgraph_server_resumes_once_with_its_decision() {
    let (s, server) = (WebhookScenario::on_sqlite().await, LangGraphServer::start().await);
    let endpoint = resumes(&s, &server.url).await;
    let tried = s.g.post(&path(&endpoint, "/test"), &s.g.admin, json!({})).await.expect(200);
    assert_eq!((&tried["arrived"], &tried["looked"]), (&json!(true), &json!("there")), "{tried}");

    // A host posts an interrupt, and a reviewer approves it. The node then stops for a second decision in the same run.
    let (first, second) = (json!("d".repeat(64)), json!("e".repeat(64)));
    let (thread, interrupt) = server.stopped(&[&first, &second]).await;
    let ask = json!({"kind": "state_transition_review", "transition_digest": first, "interrupt_id": interrupt,
        "changed_keys": ["target_user_id"], "redacted_diff": {}, "thread_ref": thread});
    let taken = posted(&s, ask).await;
    votes(&s, &s.g.alice, &taken, VoteVerdict::Approve).await;
    s.send().await;
    let next = server.waiting(&thread).await;
    assert_eq!(next["value"]["transition_digest"], second, "it went on to its next stop");
    let again = redelivered(&s, &endpoint).await;
    assert!(again["arrived"] == true && (again["looked"] == "not_waiting" || again["looked"] == "another"), "{again}");
    assert_eq!(server.waiting(&thread).await, next, "the first decision does not answer the second question");
    assert_eq!(server.runs(&thread).await.len(), 2, "the first run, and the one that resumed it");
    // A client that answers the second interrupt by hand sees the answer to the first.
    let by_hand = json!({"assistant_id": "agent", "command": {"resume": {next["id"].as_str().unwrap(): "by hand"}}});
    server.post(&format!("/threads/{thread}/runs/wait"), &by_hand).await;
    let state = server.rested(&thread).await;
    assert_eq!(state["values"]["answers"], json!([told(&s, &taken).await, "by hand"]));

    // A pending review of the gateway itself, in the thread with the same name, is denied.
    let held_digest = json!("later");
    let (thread, _) = server.stopped(&[&held_digest]).await;
    let state = json!({"requested_action": "none", "target_user_id": 17, "payment": {"amount": 10, "card": "4111111111111111"}});
    let ask = json!({"flow": "payments", "thread": thread, "state": state});
    let made = s.g.post("/v1/threads", &s.g.host, ask).await.expect(201);
    let held = s.g.held(&made).await;
    // The agent's node proposed, and waits for the decision.
    let skip = json!({"assistant_id": "agent", "command": {"resume": "go on"}});
    server.post(&format!("/threads/{thread}/runs/wait"), &skip).await;
    let stop = json!({"assistant_id": "agent", "input": {"digests": [held["transition"]]}});
    server.post(&format!("/threads/{thread}/runs/wait"), &stop).await;
    s.g.vote(&s.g.alice, &held, VoteVerdict::Deny).await.unwrap();
    s.send().await;
    let state = server.rested(&thread).await;
    let decision = s.g.decision(&held).await.expect(200);
    assert_eq!((&decision["approved"], &state["values"]["answers"]), (&json!(false), &json!([decision])));
    assert_eq!(redelivered(&s, &endpoint).await["looked"], "not_waiting");
    assert_eq!(server.rested(&thread).await["values"], state["values"]);
}
