//! Tests the tasks of calls that wait for reviewers: a call runs once, after its approval, for its own instance.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use countersign_domain::identity::account::MachineRole;
use countersign_domain::reviews::VoteVerdict;
use serde_json::{Value, json};

use crate::gateway::{TestGateway, outgoing, spawn_with_policy, token};
use crate::guarded::{GuardedClient, blocking, decides, outcomes, threads};
use crate::mcp_conformance::inspect;
use crate::mcp_faults::FaultScenario;
use crate::mcp_upstreams::{UpstreamScenario, serve_before};
use crate::rules::ApiScenario;
use crate::scripted_mcp_server::ScriptedServer;

on_both! {
    in TaskScenario;
    held_call_is_a_task_that_runs_once_after_its_approval,
    denied_or_expired_call_is_a_task_that_did_not_run,
    cancelled_task_never_runs,
    task_of_another_instance_looks_like_an_unknown_one,
    task_of_another_server_runs_nothing,
    task_is_found_at_another_gateway_and_runs_once,
    lost_result_is_unknown_and_its_call_is_not_sent_again,
    tool_that_changes_after_its_review_does_not_run,
    request_that_the_guard_would_not_send_does_not_run,
    halted_task_runs_after_the_halt,
    outcome_of_a_running_call_is_not_the_agents,
}

on_both_in_full! {
    in TaskScenario;
    only_a_client_with_the_extension_has_tasks,
    tasks_of_the_server_pass_unchanged,
    user_is_asked_to_open_the_review_before_the_call_is_a_task,
    server_that_refuses_its_call_fails_the_task,
}

/// A flow whose agent may use each tool, and must ask for some.
fn policy() -> String {
    r#"
flow = "payments"

[nodes.agent]
reads = []
writes = []
writer = true

[tools]
allow = ["every:*", "files:*"]
changed = "hold"

[[rules]]
name = "held"
tools = ["every:held", "every:changing", "every:nothing", "every:locked", "every:slow", "files:quick", "files:slow", "files:remove", "files:mark"]
when = "true"
then = "hold"
reason = "A person approves each of these calls."

[approval]
[[approval.stages]]
groups = ["reviewers"]
"#
    .to_owned()
}

const EXTENSION: &str = "io.modelcontextprotocol/tasks";

fn tasks() -> Value {
    json!({"extensions": {EXTENSION: {}, "a/b": {}}})
}

/// Returns a request of a client of version 2026-07-28 with these capabilities.
fn request(method: &str, mut params: Value, capabilities: &Value) -> Value {
    params["_meta"] = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": capabilities});
    json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params})
}

fn call(tool: &str) -> Value {
    request("tools/call", json!({"name": tool, "arguments": {"n": 1}}), &tasks())
}

fn about(method: &str, task: &str) -> Value {
    request(method, json!({"taskId": task}), &tasks())
}

fn parsed(told: &str) -> Value {
    serde_json::from_str(told).expect(told)
}

/// A gateway with a scripted server behind it.
struct TaskScenario {
    it: UpstreamScenario,
    server: ScriptedServer,
}

impl TaskScenario {
    async fn on_sqlite(policy: &str) -> Self {
        Self::on(ApiScenario::on_sqlite(policy).await).await
    }

    async fn on_postgres(policy: &str) -> Self {
        Self::on(ApiScenario::on_postgres(policy).await).await
    }

    async fn on(scenario: ApiScenario) -> Self {
        let server = ScriptedServer::start();
        let it = UpstreamScenario::on(scenario.gateway, &server.url, &outgoing()).await;
        Self { it, server }
    }

    /// Sends a message as the instance, and returns the answer.
    async fn sends(&self, message: &Value) -> Value {
        self.sends_as(&self.it.token, message).await
    }

    async fn sends_as(&self, token: &str, message: &Value) -> Value {
        let named = message["params"]["taskId"].as_str().or(message["params"]["name"].as_str()).unwrap_or_default();
        let method = message["method"].as_str().unwrap();
        let headers = [("mcp-protocol-version", "2026-07-28"), ("mcp-method", method), ("mcp-name", named)];
        let headers = if named.is_empty() { &headers[..2] } else { &headers[..] };
        parsed(&self.it.post(token, headers, &message.to_string()).await.1)
    }

    /// Calls a tool that is held, and returns the id of the task.
    async fn held(&self, tool: &str) -> String {
        let told = self.sends(&call(tool)).await;
        assert_eq!(told["result"]["resultType"], "task", "{told}");
        told["result"]["taskId"].as_str().unwrap().to_owned()
    }

    async fn get(&self, task: &str) -> Value {
        let told = self.sends(&about("tasks/get", task)).await;
        assert_eq!(
            (&told["result"]["taskId"], &told["result"]["resultType"]),
            (&json!(task), &json!("complete")),
            "{told}"
        );
        told["result"].clone()
    }

    /// Polls a task until it has ended.
    async fn end_of(&self, task: &str) -> Value {
        for _ in 0..200 {
            let told = self.get(task).await;
            if told["status"] != "working" {
                return told;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("the task does not end");
    }
}

async fn held_call_is_a_task_that_runs_once_after_its_approval(s: TaskScenario) {
    let told = s.sends(&call("held")).await;
    let task = &told["result"];
    let (_, review) = threads(&s.it.g).await.remove(0);
    let page = format!("{}/reviews/{}", s.it.g.url, review.unwrap());
    assert!(task["statusMessage"].as_str().unwrap().contains(&page), "{told}");
    assert_eq!(
        (&task["resultType"], &task["status"], &task["ttlMs"]),
        (&json!("task"), &json!("working"), &Value::Null)
    );
    assert!(task["pollIntervalMs"].is_u64() && task["createdAt"].is_string() && task["lastUpdatedAt"].is_string());
    let task = task["taskId"].as_str().unwrap();
    assert_eq!(s.held("held").await, task, "an equal call has the same task");
    assert_eq!(s.get(task).await["status"], "working");
    assert!(s.server.seen().is_empty(), "the server gets nothing before the approval");
    decides(&s.it.g, VoteVerdict::Approve).await;
    let polls = about("tasks/get", task);
    let (one, two) = tokio::join!(s.sends(&polls), s.sends(&polls));
    assert!(one["result"]["taskId"] == task && two["result"]["taskId"] == task, "{one} {two}");
    let end = s.end_of(task).await;
    assert_eq!((&end["status"], &end["result"]["content"][0]["text"]), (&json!("completed"), &json!("ran")));
    let again = s.get(task).await;
    assert_eq!((&again["status"], &again["result"]), (&end["status"], &end["result"]), "a result can be fetched again");
    let seen = s.server.seen();
    let [only] = &seen[..] else { panic!("{seen:?}") };
    assert_eq!((&only.body["params"]["name"], &only.body["params"]["arguments"]), (&json!("held"), &json!({"n": 1})));
    assert_eq!((only.header("mcp-method"), only.header("mcp-name")), (Some("tools/call"), Some("held")));
    let meta = &only.body["params"]["_meta"];
    let expected = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"extensions": {"a/b": {}}}});
    assert_eq!(meta, &expected, "the server cannot answer with a task");
    assert_eq!(outcomes(&s.it.g).await, ["succeeded"]);
    assert_ne!(s.held("held").await, task, "the next equal call needs another approval");
    assert_eq!(s.server.calls_of("held"), 1);
}

async fn denied_or_expired_call_is_a_task_that_did_not_run(s: TaskScenario) {
    let task = s.held("held").await;
    decides(&s.it.g, VoteVerdict::Deny).await;
    let end = s.get(&task).await;
    let text = end["result"]["content"][0]["text"].as_str().unwrap();
    assert_eq!((&end["status"], &end["result"]["isError"]), (&json!("completed"), &json!(true)));
    assert!(text.contains("denied and was not run: as agreed"), "{end}");
    let task = s.held("changing").await;
    s.it.g.pass(Duration::from_secs(25 * 3600));
    let end = s.get(&task).await;
    assert!(end.to_string().contains("No reviewer decided in time"), "{end}");
    // An approval that is too old.
    let task = s.held("held").await;
    decides(&s.it.g, VoteVerdict::Approve).await;
    s.it.g.pass(Duration::from_secs(25 * 3600));
    let end = s.get(&task).await;
    assert!(end["status"] == "completed" && end.to_string().contains("expired before the call could run"), "{end}");
    assert!(s.server.seen().is_empty());
}

async fn cancelled_task_never_runs(s: TaskScenario) {
    let task = s.held("held").await;
    let told = s.sends(&about("tasks/cancel", &task)).await;
    assert_eq!(told["result"], json!({"resultType": "complete"}), "{told}");
    assert_eq!(s.get(&task).await["status"], "cancelled");
    assert!(threads(&s.it.g).await.iter().all(|it| it.1.is_none()), "the review has ended");
    let task = s.held("held").await;
    decides(&s.it.g, VoteVerdict::Approve).await;
    let told = s.sends(&about("tasks/cancel", &task)).await;
    assert_eq!(told["result"], json!({"resultType": "complete"}), "{told}");
    assert_eq!(s.get(&task).await["status"], "cancelled", "an approved call that has not run is cancelled too");
    assert_eq!(s.sends(&about("tasks/cancel", &task)).await["result"]["resultType"], "complete");
    assert_eq!((s.server.calls_of("held"), outcomes(&s.it.g).await), (0, vec!["failed"]));
}

async fn task_of_another_instance_looks_like_an_unknown_one(s: TaskScenario) {
    let task = s.held("held").await;
    decides(&s.it.g, VoteVerdict::Approve).await;
    let unknown = "countersign-0d4f7c7e-58c1-8f0a-9b52-9a3c6d1f2e47";
    let mut answers = Vec::new();
    for task in [&task, unknown, "countersign-../../v1/halts", "countersign-"] {
        for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
            answers.push(s.sends_as(&s.it.other, &about(method, task)).await);
        }
    }
    assert_eq!(answers[0]["error"]["code"], -32602, "{answers:?}");
    assert!(answers.iter().all(|it| *it == answers[0]), "{answers:?}");
    assert!(s.server.seen().is_empty(), "neither the call nor a guard's id reaches the server");
    // The other instance has its own request for an equal call.
    assert_eq!(s.sends(&about("tasks/get", unknown)).await, answers[0]);
    assert_eq!(s.end_of(&task).await["status"], "completed");
    let told = s.sends_as(&s.it.other, &about("tasks/get", &task)).await;
    assert_eq!(told, answers[0], "a stored result belongs to its instance");
}

async fn task_of_another_server_runs_nothing(s: TaskScenario) {
    let submission = json!({"tool": "quick", "server": "files", "arguments": {"n": 1}, "timeout": "10m"});
    let asked = s.it.g.http.post(format!("{}/aap/v1/requests", s.it.g.url)).bearer_auth(&s.it.token);
    let asked = asked.header("idempotency-key", "k1").json(&submission).send().await.unwrap();
    let asked: Value = asked.json().await.unwrap();
    decides(&s.it.g, VoteVerdict::Approve).await;
    let task = format!("countersign-{}", asked["id"].as_str().unwrap());
    for method in ["tasks/get", "tasks/cancel"] {
        assert_eq!(s.sends(&about(method, &task)).await["error"]["code"], -32602);
    }
    assert!(s.server.seen().is_empty());
    let read =
        s.it.g.get(&format!("/aap/v1/requests/{}", asked["id"].as_str().unwrap()), &s.it.token).await.expect(200);
    assert!(read["consumption"].is_null(), "{read}");
}

async fn task_is_found_at_another_gateway_and_runs_once(s: TaskScenario) {
    // Another gateway on the same database remembers nothing of the first one, as after a restart.
    let task = s.held("held").await;
    let first_url = s.it.url.clone();
    let url = serve_before(&s.it.g, "every", &s.server.url, &outgoing());
    let s = TaskScenario { it: UpstreamScenario { url: format!("{url}/mcp/upstreams/every"), ..s.it }, ..s };
    assert_eq!(s.get(&task).await["status"], "working");
    decides(&s.it.g, VoteVerdict::Approve).await;
    let end = s.end_of(&task).await;
    assert_eq!(end["result"]["content"][0]["text"], "ran");
    let s = TaskScenario { it: UpstreamScenario { url: first_url, ..s.it }, ..s };
    let end = s.end_of(&task).await;
    assert!(end["status"] == "completed" && end["result"]["isError"] == true, "{end}");
    assert!(end.to_string().contains("has run and succeeded. This guard does not have its result"), "{end}");
    assert_eq!(s.server.calls_of("held"), 1);
}

async fn lost_result_is_unknown_and_its_call_is_not_sent_again(s: TaskScenario) {
    let task = s.held("nothing").await;
    decides(&s.it.g, VoteVerdict::Approve).await;
    let end = s.end_of(&task).await;
    assert!(end["status"] == "failed" && end["error"]["message"].as_str().unwrap().contains("unknown"), "{end}");
    // A gateway that was restarted.
    let url = serve_before(&s.it.g, "every", &s.server.url, &outgoing());
    let s = TaskScenario { it: UpstreamScenario { url: format!("{url}/mcp/upstreams/every"), ..s.it }, ..s };
    assert_eq!(s.get(&task).await["status"], "working", "another process can have the call");
    s.it.g.pass(Duration::from_secs(3600));
    let end = s.get(&task).await;
    assert!(end["status"] == "completed" && end.to_string().contains("unknown. It is not sent again"), "{end}");
    assert_eq!((s.server.calls_of("nothing"), outcomes(&s.it.g).await.len()), (1, 0));
}

async fn tool_that_changes_after_its_review_does_not_run(s: TaskScenario) {
    let list = request("tools/list", json!({}), &tasks());
    s.sends(&list).await;
    let task = s.held("changing").await;
    decides(&s.it.g, VoteVerdict::Approve).await;
    s.sends(&list).await;
    let end = s.get(&task).await;
    assert!(end["status"] == "completed" && end.to_string().contains("since the review"), "{end}");
    assert_eq!(s.server.calls_of("changing"), 0);
    // Reviewers see the change of the next call.
    let task = s.held("changing").await;
    decides(&s.it.g, VoteVerdict::Approve).await;
    assert_eq!(s.end_of(&task).await["result"]["content"][0]["text"], "ran");
}

/// Asks for a call by the requests API, as the instance itself. Returns the task of the request.
async fn asked_directly(s: &TaskScenario, key: &str, request: &Value) -> String {
    let asked = s.it.g.http.post(format!("{}/aap/v1/requests", s.it.g.url)).bearer_auth(&s.it.token);
    let asked = asked.header("idempotency-key", key).json(request).send().await.unwrap();
    let asked: Value = asked.json().await.unwrap();
    assert_eq!(asked["status"], "approved", "{asked}");
    format!("countersign-{}", asked["id"].as_str().unwrap())
}

async fn request_that_the_guard_would_not_send_does_not_run(s: TaskScenario) {
    let submission = |tool: &str, arguments: Value| json!({"tool": tool, "server": "every", "arguments": arguments, "timeout": "10m"});
    let task = asked_directly(&s, "k1", &submission("free", json!({"path": "a", "PATH": "b"}))).await;
    let told = s.get(&task).await;
    assert!(told["status"] == "completed" && told.to_string().contains("differ only in case"), "{told}");
    // The words of the guard about a changed tool, without the mark that makes reviewers decide.
    let list = request("tools/list", json!({}), &tasks());
    for _ in 0..2 {
        s.sends(&list).await;
    }
    s.held("drifting").await;
    let (_, review) = threads(&s.it.g).await.pop().unwrap();
    let facts = s.it.g.service.reviews.review(&review.unwrap(), &s.it.g.alice).await.unwrap();
    let mut copied = submission("drifting", json!({"n": 2}));
    copied["agent_reasoning"] = json!(facts.transition.rationale.unwrap());
    let task = asked_directly(&s, "k2", &copied).await;
    let told = s.get(&task).await;
    assert!(told["status"] == "completed" && told.to_string().contains("since the review"), "{told}");
    assert_eq!((s.server.calls_of("free"), s.server.calls_of("drifting")), (0, 0));
}

async fn halted_task_runs_after_the_halt(s: TaskScenario) {
    let task = s.held("held").await;
    decides(&s.it.g, VoteVerdict::Approve).await;
    let halt = |halted: bool| json!({"proposing": halted, "verifying": halted, "reason": "an incident"});
    let put = async |halted: bool| {
        s.it.g.send(reqwest::Method::PUT, "/v1/halts/payments", &s.it.g.admin, Some(halt(halted))).await.expect(200)
    };
    put(true).await;
    let told = s.sends(&about("tasks/get", &task)).await;
    assert!(told["error"]["message"].as_str().is_some_and(|it| it.contains("halt")), "a task ends once: {told}");
    put(false).await;
    assert_eq!(s.end_of(&task).await["result"]["content"][0]["text"], "ran");
}

async fn outcome_of_a_running_call_is_not_the_agents(s: TaskScenario) {
    let task = s.held("slow").await;
    decides(&s.it.g, VoteVerdict::Approve).await;
    assert_eq!(s.get(&task).await["status"], "working");
    assert_eq!(s.get(&task).await["status"], "working", "the first response does not wait for the end of the call");
    let url = format!("{}/aap/v1/requests/{}/outcome", s.it.g.url, task.strip_prefix("countersign-").unwrap());
    let forged = json!({"status": "failed", "note": "cancelled by the client before the call ran"});
    let told = s.it.g.http.post(url).bearer_auth(&s.it.token).json(&forged).send().await.unwrap();
    assert_eq!(
        (told.status(), told.text().await.unwrap().contains("not_consumed")),
        (reqwest::StatusCode::CONFLICT, true)
    );
    assert_eq!(s.end_of(&task).await["result"]["content"][0]["text"], "done");
    assert_eq!(outcomes(&s.it.g).await, ["succeeded"]);
}

async fn only_a_client_with_the_extension_has_tasks(s: TaskScenario) {
    let discover = |capabilities: &Value| request("server/discover", json!({}), capabilities);
    let told = s.sends(&discover(&tasks())).await;
    let offered = json!({"tools": {}, "extensions": {EXTENSION: {}, "a/b": {}}});
    assert_eq!(told["result"]["capabilities"], offered);
    let told = s.sends(&discover(&json!({}))).await;
    assert_eq!(told["result"]["capabilities"], json!({"tools": {}, "extensions": {"a/b": {}}}), "nothing changes");
    let mut old = call("held");
    old["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2025-11-25");
    let without = request("tools/call", json!({"name": "held", "arguments": {"n": 1}}), &json!({}));
    for call in [old, without] {
        let (told, ()) = tokio::join!(s.sends(&call), decides(&s.it.g, VoteVerdict::Approve));
        assert_eq!(told["result"]["content"][0]["text"], "ran", "such a call waits: {told}");
    }
    let task = s.held("held").await;
    for (message, status, code) in [
        (request("tasks/get", json!({"taskId": task}), &json!({})), 400, -32021),
        (about("tasks/result", &task), 404, -32601),
    ] {
        let (answered, told) = s.it.post(&s.it.token, &[], &message.to_string()).await;
        assert_eq!((answered, &parsed(&told)["error"]["code"]), (status, &json!(code)), "{told}");
    }
}

async fn tasks_of_the_server_pass_unchanged(s: TaskScenario) {
    for method in ["tasks/get", "tasks/update", "tasks/cancel", "tasks/result", "tasks/list"] {
        let message = about(method, "786512e2-9e0d-44bd-8f29-789f320fe840");
        let name = message["params"]["taskId"].as_str().unwrap();
        let headers = [("mcp-method", method), ("mcp-name", name)];
        let headers = if method == "tasks/list" || method == "tasks/result" { &headers[..1] } else { &headers[..] };
        let (status, told) = s.it.post(&s.it.token, headers, &message.to_string()).await;
        assert!((200..300).contains(&status), "{method}: {status} {told}");
        let seen = s.server.seen().pop().unwrap();
        assert_eq!((&seen.body, seen.header("mcp-method")), (&message, Some(method)));
    }
    let told = s.sends(&about("tasks/get", "t")).await;
    assert_eq!(told["result"], json!({"taskId": "t", "status": "working"}));
    let other = [("mcp-method", "tasks/get"), ("mcp-name", "another")];
    let (status, told) = s.it.post(&s.it.token, &other, &about("tasks/get", "t").to_string()).await;
    assert!(status == 400 && told.contains("-32020"), "a header names the task of the message: {told}");
}

async fn user_is_asked_to_open_the_review_before_the_call_is_a_task(s: TaskScenario) {
    let mut both = tasks();
    both["elicitation"] = json!({"url": {}});
    let mut params = json!({"name": "held", "arguments": {"n": 1}});
    let first = s.sends(&request("tools/call", params.clone(), &both)).await;
    assert_eq!(first["result"]["resultType"], "input_required", "{first}");
    params["requestState"] = first["result"]["requestState"].clone();
    for action in ["accept", "decline"] {
        params["inputResponses"] = json!({"review": {"action": action}});
        let told = s.sends(&request("tools/call", params.clone(), &both)).await;
        assert_eq!(told["result"]["resultType"], "task", "{action}: {told}");
    }
    assert_eq!(threads(&s.it.g).await.len(), 1);
}

async fn server_that_refuses_its_call_fails_the_task(s: TaskScenario) {
    let task = s.held("locked").await;
    decides(&s.it.g, VoteVerdict::Approve).await;
    let end = s.end_of(&task).await;
    assert_eq!((&end["status"], &end["error"]["code"]), (&json!("failed"), &json!(-32000)), "{end}");
    assert_eq!(outcomes(&s.it.g).await, ["failed"]);
}

/// Sends a message through a command, and returns the answer.
async fn asks(mut guard: GuardedClient, message: Value) -> (Value, GuardedClient) {
    blocking(move || (guard.ask(&message), guard)).await
}

/// Polls a task through a command until it no longer waits or runs.
async fn polled(mut guard: GuardedClient, poll: &Value) -> (Value, GuardedClient) {
    for _ in 0..200 {
        let (told, same) = asks(guard, poll.clone()).await;
        guard = same;
        if told["result"]["status"] != "working" {
            return (told["result"].clone(), guard);
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("the task does not end");
}

/// Calls a tool through a command, and returns the id of the task.
async fn begun(guard: GuardedClient, call: Value) -> (String, GuardedClient) {
    let (told, guard) = asks(guard, call).await;
    (told["result"]["taskId"].as_str().expect("a task").to_owned(), guard)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn task_of_a_killed_command_runs_once_at_most() {
    let it = FaultScenario::with(&policy()).await;
    let restarted = async |mut guard: GuardedClient| {
        guard.child.kill().unwrap();
        blocking(move || guard.close()).await;
        it.guard(&it.g.url)
    };
    let (quick, guard) = begun(it.guard(&it.g.url), call("quick")).await;
    let poll = about("tasks/get", &quick);
    let guard = restarted(guard).await;
    decides(&it.g, VoteVerdict::Approve).await;
    assert!(it.calls().is_empty());
    let (end, guard) = polled(guard, &poll).await;
    assert_eq!((&end["status"], &end["result"]["content"][0]["text"]), (&json!("completed"), &json!("done")));
    let (end, guard) = polled(restarted(guard).await, &poll).await;
    assert!(end.to_string().contains("has run and succeeded"), "{end}");
    assert_eq!(it.calls(), ["quick"]);
    // The guard dies between the call and its result.
    let (slow, guard) = begun(guard, call("slow")).await;
    let poll = about("tasks/get", &slow);
    decides(&it.g, VoteVerdict::Approve).await;
    let (told, guard) = asks(guard, poll.clone()).await;
    assert_eq!(told["result"]["status"], "working");
    for _ in 0..400 {
        if it.calls().len() == 2 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    let guard = restarted(guard).await;
    it.g.pass(Duration::from_secs(3600));
    let (end, guard) = polled(guard, &poll).await;
    assert!(end.to_string().contains("unknown. It is not sent again"), "{end}");
    blocking(move || guard.close()).await;
    assert_eq!((it.calls(), outcomes(&it.g).await), (vec!["quick".to_owned(), "slow".to_owned()], vec!["succeeded"]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn question_of_the_server_is_answered_in_the_task() {
    let g = spawn_with_policy(&policy()).await;
    let removed = g.folder.path().join("removed");
    let guard = GuardedClient::start(asking_server(&g, &removed).await);
    let mut both = tasks();
    both["elicitation"] = json!({"form": {}});
    let remove = json!({"name": "remove", "arguments": {"name": "x"}});
    let (task, guard) = begun(guard, request("tools/call", remove, &both)).await;
    decides(&g, VoteVerdict::Approve).await;
    let poll = request("tasks/get", json!({"taskId": task}), &both);
    let (asked, guard) = polled(guard, &poll).await;
    assert_eq!(asked["status"], "input_required", "{asked}");
    let (name, question) = asked["inputRequests"].as_object().unwrap().iter().next().unwrap();
    assert_eq!(question["method"], "elicitation/create");
    let answer = json!({"taskId": task, "inputResponses": {name: {"action": "accept", "content": {"sure": true}}}});
    let (told, guard) = asks(guard, request("tasks/update", answer, &both)).await;
    assert_eq!(told["result"], json!({"resultType": "complete"}));
    let (end, guard) = polled(guard, &poll).await;
    blocking(move || guard.close()).await;
    assert_eq!((&end["status"], &end["result"]["content"][0]["text"]), (&json!("completed"), &json!("x is removed")));
    assert_eq!(std::fs::read_to_string(removed).unwrap(), "x\n");
    assert_eq!((threads(&g).await.len(), outcomes(&g).await), (1, vec!["succeeded"]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn inspector_polls_the_task_of_a_held_call() {
    let g = spawn_with_policy(&policy()).await;
    let marked = g.folder.path().join("marked");
    let command = asking_server(&g, &marked).await;
    let text = |it: &OsStr| it.to_str().unwrap().to_owned();
    let args: Vec<_> = command.get_args().map(text).collect();
    let env: BTreeMap<_, _> = command.get_envs().map(|(name, value)| (text(name), text(value.unwrap()))).collect();
    let server = json!({"command": text(command.get_program()), "args": args, "env": env, "protocolEra": "modern"});
    let config = g.folder.path().join("servers.json");
    std::fs::write(&config, json!({"mcpServers": {"guarded": server}}).to_string()).unwrap();
    let server = ["--config", config.to_str().unwrap(), "--server", "guarded"];
    let mark = ["--method", "tools/call", "--tool-name", "mark", "--tool-arg", "name=x"];
    let (told, ()) = tokio::join!(inspect(&server, &mark), decides(&g, VoteVerdict::Approve));
    assert_eq!(told["content"][0]["text"], "x is marked", "{told}");
    assert_eq!(std::fs::read_to_string(marked).unwrap(), "x\n");
    assert_eq!(outcomes(&g).await, ["succeeded"]);
}

/// Returns the command of a guard before the server that asks its client, which notes in a file what it did. Without a wait,
/// a call of a client without tasks fails.
async fn asking_server(g: &TestGateway, file: &Path) -> Command {
    let token = token(&g.service, "bot", MachineRole::Instance, &["agent"]).await;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mcp/asking_server.py");
    let mut command = Command::new(env!("CARGO_BIN_EXE_countersign"));
    command.args(["mcp", "guard", "--gateway", &g.url, "--name", "files", "--wait", "0", "--"]);
    command.arg(blocking(|| crate::python::with("mcp")).await).arg(script).arg(file).env("COUNTERSIGN_TOKEN", token);
    command
}
