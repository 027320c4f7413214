//! Tests which tools of a server a model sees and calls: those that the policy names, as they were described first.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use countersign_domain::reviews::VoteVerdict;
use serde_json::json;

use crate::gateway::outgoing;
use crate::guarded::{GuardedClient, blocking, decides, threads};
use crate::mcp_upstreams::{POLICY, UpstreamScenario, call};
use crate::scripted_mcp_server::ScriptedServer;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changed_description_is_neither_listed_nor_called() {
    let server = ScriptedServer::start();
    let it = UpstreamScenario::before(&server.url, &outgoing()).await;
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).to_string();
    let (_, first) = it.post(&it.token, &[], &list).await;
    assert!(first.contains("kept") && first.contains("changing"), "{first}");
    let (_, second) = it.post(&it.token, &[], &list).await;
    assert!(second.contains("kept") && !second.contains("changing"), "{second}");
    let (_, told) = it.call(2, "changing", &json!({})).await;
    assert!(told.contains("denied") && told.contains("changed the definition"), "{told}");
    assert_eq!(server.calls_of("changing"), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reviewers_decide_about_a_changed_tool_if_the_policy_holds_it() {
    let server = ScriptedServer::start();
    let policy = POLICY.replace("[[rules]]", "changed = \"hold\"\n\n[[rules]]");
    let it = UpstreamScenario::with(&policy, &server.url, &outgoing()).await;
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).to_string();
    let (_, first) = it.post(&it.token, &[], &list).await;
    let (_, second) = it.post(&it.token, &[], &list).await;
    assert_eq!(second, first, "a model sees the first definition");
    for (id, verdict) in [(2, VoteVerdict::Deny), (3, VoteVerdict::Approve)] {
        let arguments = json!({"n": id});
        let called = it.call(id, "changing", &arguments);
        let (told, ()) = tokio::join!(called, async {
            for _ in 0..200 {
                if threads(&it.g).await.iter().any(|it| it.1.is_some()) {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            let (_, review) = threads(&it.g).await.pop().unwrap();
            let facts = it.g.service.reviews.review(&review.unwrap(), &it.g.alice).await.unwrap();
            assert_eq!(facts.hold.reasons[0].code, "tool_changed");
            let note = facts.transition.rationale.unwrap();
            assert!(note.contains("before:\nreads 1\n") && note.contains("now:\nreads 2\n"), "{note}");
            assert!(note.contains("not verified"), "{note}");
            decides(&it.g, verdict).await;
        });
        assert_eq!(told.1.contains("ran"), verdict == VoteVerdict::Approve, "{told:?}");
    }
    assert_eq!(server.calls_of("changing"), 1);
    // An approval pins nothing: the next call needs one too.
    let again = json!({"n": 4});
    let (told, ()) = tokio::join!(it.call(4, "changing", &again), decides(&it.g, VoteVerdict::Deny));
    assert!(told.1.contains("denied") && server.calls_of("changing") == 1, "{told:?}");
    let (_, told) = it.call(5, "kept", &json!({})).await;
    assert!(told.contains("ran"), "{told}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tool_that_changes_while_its_call_waits_does_not_run() {
    let server = ScriptedServer::start();
    let policy = POLICY.replace("[[rules]]", "changed = \"hold\"\n\n[[rules]]");
    let policy = policy.replace("\"every:held\"", "\"every:held\", \"every:changing\"");
    let it = UpstreamScenario::with(&policy, &server.url, &outgoing()).await;
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).to_string();
    it.post(&it.token, &[], &list).await;
    let arguments = json!({"n": 1});
    let (told, ()) = tokio::join!(it.call(2, "changing", &arguments), async {
        while threads(&it.g).await.iter().all(|it| it.1.is_none()) {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        it.post(&it.token, &[], &list).await;
        decides(&it.g, VoteVerdict::Approve).await;
    });
    assert!(told.1.contains("since the review"), "{told:?}");
    assert_eq!(server.calls_of("changing"), 0);
}

/// Starts the command before a server, lists the tools and calls one. Returns the list, the answer, and standard error.
async fn told_by_the_command(
    it: &UpstreamScenario,
    server: &str,
    name: &[&str],
    tool: &str,
) -> (String, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_countersign"));
    command.args(["mcp", "guard", "--gateway", &it.g.url, "--upstream", server]).args(name);
    command.env("COUNTERSIGN_TOKEN", &it.token).stderr(Stdio::piped());
    let (list, asked) = (json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}), call(2, tool, &json!({})));
    let mut guard = GuardedClient::start(command);
    blocking(move || {
        writeln!(guard.asks, "{list}").unwrap();
        let listed = guard.line();
        writeln!(guard.asks, "{asked}").unwrap();
        let told = guard.line();
        let mut stderr = guard.child.stderr.take().unwrap();
        guard.close();
        let warned = std::io::read_to_string(&mut stderr).unwrap();
        (listed, told, warned)
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn guard_without_a_name_calls_no_tool_of_a_named_server() {
    let server = ScriptedServer::start();
    let it = UpstreamScenario::before(&server.url, &outgoing()).await;
    let (listed, told, warned) = told_by_the_command(&it, &server.url, &[], "every:free").await;
    assert!(!listed.contains("every:free") && told.contains("--name"), "{listed} {told}");
    assert!(warned.contains("the policy allows no tool of this server, such as `kept`"), "{warned}");
    assert_eq!(server.calls_of("every:free"), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn misspelt_tool_of_the_policy_is_reported() {
    let server = ScriptedServer::start();
    let policy = POLICY.replace("every:get-sum\", \"every:held", "every:kep").replace("every:get-env", "every:kept");
    let it = UpstreamScenario::with(&policy, &server.url, &outgoing()).await;
    let (_, _, warned) = told_by_the_command(&it, &server.url, &["--name", "every"], "kept").await;
    assert!(warned.contains("the policy names `every:kep`, and the server has no such tool"), "{warned}");
}
