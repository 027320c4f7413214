//! Tests the hooks of Claude Code over HTTP: `allow` is answered once for each approval, and never without one.

use std::collections::BTreeSet;
use std::time::Duration;

use countersign_domain::identity::account::{Account, MachineRole};
use countersign_domain::primitives::id::ThreadId;
use countersign_domain::reviews::{Ballot, VoteVerdict};
use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::gateway::{ApiResponse, TestGateway, ballot, token};
use crate::rules::ApiScenario;

on_both! {
    approval_is_used_before_the_answer_and_the_outcome_recorded,
    failed_call_is_recorded,
    repeated_call_finds_its_review_and_one_call_uses_the_approval,
    hook_waits_for_the_decision,
    denied_call_stays_denied_until_its_deadline,
    policy_denies_with_its_reason,
    another_session_folder_or_input_shares_no_request,
    one_of_many_equal_calls_uses_an_approval,
    equal_allowed_calls_at_once_all_run,
    call_is_allowed_only_within_its_lease,
    expired_approval_is_not_used,
    mcp_tools_are_named_as_in_policies,
    every_error_denies_the_call,
    altered_arguments_are_recorded_as_failed,
    large_write_is_held_and_runs_as_approved,
    instances_share_nothing,
    malformed_hook_is_refused,
}

/// A flow in which the agent may read, must ask for commands and refunds, and may not fetch pages.
pub fn policy() -> String {
    r#"
flow = "payments"

[nodes.agent]
reads = []
writes = []
writer = true

[tools]
allow = ["Read", "Bash", "crm:*"]
hide = ["card"]

[[rules]]
name = "commands"
tools = ["Bash", "crm:issue_refund"]
when = "true"
then = "hold"
reason = "A person approves each command."

[[rules]]
name = "secrets"
tools = ["Read"]
when = 'tool.arguments.file_path.contains("secret")'
then = "deny"
reason = "Secrets are not read."

[approval]
ttl = "1h"
receipt_ttl = "5m"
write_lease = "1m"

[[approval.stages]]
groups = ["reviewers"]
need = 1
"#
    .to_owned()
}

/// An agent's program with its token.
struct Program<'g> {
    g: &'g TestGateway,
    token: String,
}

impl<'g> Program<'g> {
    async fn new(g: &'g TestGateway, name: &str) -> Self {
        Self { g, token: token(&g.service, name, MachineRole::Instance, &["agent"]).await }
    }

    async fn hook(&self, query: &str, body: &Value) -> ApiResponse {
        let url = format!("{}/v1/hooks/claude-code{query}", self.g.url);
        let sent = self.g.http.post(url).bearer_auth(&self.token).json(body).send().await.unwrap();
        let kind = sent.headers().get("content-type").map(|it| it.to_str().unwrap().to_owned()).unwrap_or_default();
        let answer = ApiResponse::of(sent).await;
        crate::description::check("POST", "/v1/hooks/claude-code", (answer.status, &kind, &answer.body));
        answer
    }

    /// Asks before a call, and returns the decision.
    async fn before(&self, body: &Value) -> HookAnswer {
        HookAnswer(self.hook("", body).await.expect(200))
    }

    async fn after(&self, call: &Value, event: &str) -> ApiResponse {
        let mut body = call.clone();
        body["hook_event_name"] = json!(event);
        // A command can change the folder.
        body["cwd"] = json!("/repo/elsewhere");
        body["tool_response"] = json!({"stdout": "done"});
        self.hook("", &body).await
    }
}

struct HookAnswer(Value);

impl HookAnswer {
    fn decision(&self) -> &str {
        self.0["hookSpecificOutput"]["permissionDecision"].as_str().unwrap()
    }

    fn reason(&self) -> &str {
        self.0["hookSpecificOutput"]["permissionDecisionReason"].as_str().unwrap()
    }

    /// The page of the review that the call waits for.
    fn page(&self) -> &str {
        assert_eq!(self.decision(), "deny");
        self.0["systemMessage"].as_str().unwrap().rsplit(' ').next().unwrap()
    }

    #[track_caller]
    fn is(&self, decision: &str, reason: &str) {
        assert!(self.decision() == decision && self.reason().contains(reason), "{:#}", self.0);
    }
}

/// A hook before a call.
fn call(id: &str, tool: &str, input: Value) -> Value {
    json!({
        "session_id": "s-1", "transcript_path": "/x.jsonl", "cwd": "/repo", "permission_mode": "default",
        "hook_event_name": "PreToolUse", "tool_name": tool, "tool_input": input, "tool_use_id": id,
    })
}

fn reads(id: &str) -> Value {
    call(id, "Read", json!({"file_path": "/repo/a.txt"}))
}

fn command(id: &str) -> Value {
    call(id, "Bash", json!({"command": "make release", "description": "Release"}))
}

/// The threads of all requests.
async fn threads(g: &TestGateway) -> Vec<ThreadId> {
    while g.service.log.sequence().await.unwrap() > 0 {}
    let events = g.get("/v1/events?limit=500", &g.auditor).await.expect(200);
    let created = events["events"].as_array().unwrap().iter().filter(|it| it["type"] == "thread.created").cloned();
    created.map(|it| it["thread"].as_str().unwrap().try_into().unwrap()).collect()
}

/// The outcomes of all calls with their notes.
async fn outcomes(g: &TestGateway) -> Vec<(&'static str, String)> {
    let mut all = Vec::new();
    for thread in threads(g).await {
        let request = g.service.threads.overview(&thread).await.unwrap().thread.request;
        all.extend(request.and_then(|it| it.outcome).map(|it| (it.status.as_str(), it.note.unwrap_or_default())));
    }
    all
}

async fn decides(g: &TestGateway, who: &Account, page: &str, verdict: VoteVerdict, comment: &str) {
    let review = page.rsplit('/').next().unwrap().try_into().unwrap();
    let facts = g.service.reviews.review(&review, who).await.unwrap();
    let ballot = ballot(&json!({"transition": facts.hold.transition}), verdict);
    let ballot = Ballot { comment: Some(comment.to_owned()), ..ballot };
    g.service.reviews.vote(&who.id, &review, &ballot, None).await.unwrap();
}

async fn approval_is_used_before_the_answer_and_the_outcome_recorded(scene: ApiScenario) {
    let g = &scene.gateway;
    let it = Program::new(g, "bot").await;
    let first = it.before(&reads("t1")).await;
    first.is("allow", "Approved by the policy");
    let thread = &threads(g).await[0];
    assert_eq!(g.service.threads.overview(thread).await.unwrap().thread.fence, 1, "the approval is used");
    assert_eq!(it.before(&reads("t1")).await.0, first.0, "the same hook again");
    assert_eq!(it.after(&reads("t1"), "PostToolUse").await.expect(200), json!({}));
    let [(status, note)] = &outcomes(g).await[..] else { panic!("one outcome") };
    assert!(*status == "succeeded" && note.starts_with("result sha256:"), "{note}");
    assert_eq!(it.after(&reads("t1"), "PostToolUse").await.expect(200), json!({}));
    assert_eq!(it.after(&reads("t1"), "PostToolUseFailure").await.code(), "outcome_conflict");
    it.before(&reads("t1")).await.is("deny", "used already");
    assert_eq!(threads(g).await.len(), 1);
    assert_eq!(it.after(&reads("t2"), "PostToolUse").await.code(), "not_consumed");
    scene.passes_an_audit().await;
}

async fn failed_call_is_recorded(scene: ApiScenario) {
    let g = &scene.gateway;
    let it = Program::new(g, "bot").await;
    it.before(&reads("t1")).await.is("allow", "");
    let mut failed = reads("t1");
    failed["error"] = json!("Exit code 1\nthe password is Nordwind");
    it.after(&failed, "PostToolUseFailure").await.expect(200);
    let [(status, note)] = &outcomes(g).await[..] else { panic!("one outcome") };
    assert!(*status == "failed" && note.starts_with("error sha256:") && !note.contains("Nordwind"), "{note}");
    scene.passes_an_audit().await;
}

async fn repeated_call_finds_its_review_and_one_call_uses_the_approval(scene: ApiScenario) {
    let g = &scene.gateway;
    let it = Program::new(g, "bot").await;
    let waits = it.before(&command("t1")).await;
    waits.is("deny", "waits for the approval of a reviewer");
    assert!(waits.page().starts_with(&format!("{}/reviews/", g.url)) && waits.reason().contains(waits.page()));
    for id in ["t1", "t2"] {
        assert_eq!(it.before(&command(id)).await.page(), waits.page(), "the same review");
    }
    decides(g, &g.alice, waits.page(), VoteVerdict::Approve, "after six").await;
    let allowed = it.before(&command("t3")).await;
    allowed.is("allow", "Approved by reviewers");
    assert_eq!(allowed.0["hookSpecificOutput"]["additionalContext"], "Note of the reviewer who approved: after six");
    assert_eq!(it.before(&command("t3")).await.0, allowed.0, "the same hook again");
    it.before(&command("t1")).await.is("deny", "used already");
    assert_ne!(it.before(&command("t4")).await.page(), waits.page(), "another call needs another approval");
    it.after(&command("t3"), "PostToolUse").await.expect(200);
    assert_eq!(outcomes(g).await.len(), 1);
    let mut other = command("t3");
    other["tool_input"]["command"] = json!("make clean");
    it.before(&other).await.is("deny", "another approval request");
    scene.passes_an_audit().await;
}

async fn hook_waits_for_the_decision(scene: ApiScenario) {
    let g = &scene.gateway;
    let it = Program::new(g, "bot").await;
    let page = it.before(&command("t1")).await.page().to_owned();
    let sent = command("t1");
    let (answer, ()) =
        tokio::join!(it.hook("?wait=50s", &sent), decides(g, &g.alice, &page, VoteVerdict::Approve, "as agreed"));
    HookAnswer(answer.expect(200)).is("allow", "Approved by reviewers");
    let page = it.before(&command("t2")).await.page().to_owned();
    let sent = command("t2");
    let (answer, ()) =
        tokio::join!(it.hook("?wait=50s", &sent), decides(g, &g.alice, &page, VoteVerdict::Deny, "not on a Friday"));
    HookAnswer(answer.expect(200)).is("deny", "A reviewer denied this call. Reason: not on a Friday");
}

async fn denied_call_stays_denied_until_its_deadline(scene: ApiScenario) {
    let g = &scene.gateway;
    let it = Program::new(g, "bot").await;
    let page = it.before(&command("t1")).await.page().to_owned();
    decides(g, &g.alice, &page, VoteVerdict::Deny, "not on a Friday").await;
    for id in ["t1", "t2", "t3"] {
        it.before(&command(id)).await.is("deny", "not on a Friday");
    }
    assert_eq!(threads(g).await.len(), 1, "a denied call opens no second review");
    g.pass(Duration::from_secs(3601));
    it.before(&command("t1")).await.is("deny", "not on a Friday");
    let again = it.before(&command("t4")).await;
    assert_ne!(again.page(), page);
    g.pass(Duration::from_secs(3601));
    it.before(&command("t4")).await.is("deny", "No reviewer decided in time");
    assert_ne!(it.before(&command("t5")).await.page(), again.page());
    scene.passes_an_audit().await;
}

async fn policy_denies_with_its_reason(scene: ApiScenario) {
    let g = &scene.gateway;
    let it = Program::new(g, "bot").await;
    it.before(&call("t1", "WebFetch", json!({"card": "4000 0000"}))).await.is("deny", "The policy denied this call");
    it.before(&call("t1", "WebFetch", json!({"card": "4000 0000"}))).await.is("deny", "The policy denied this call");
    it.before(&call("t2", "Read", json!({"file_path": "/secret"}))).await.is("deny", "Secrets are not read.");
    it.before(&call("t3", "Read", json!({"file_path": "/secret"}))).await.is("deny", "Secrets are not read.");
    assert!(outcomes(g).await.is_empty());
    assert_eq!(
        it.after(&call("t2", "Read", json!({"file_path": "/secret"})), "PostToolUse").await.code(),
        "not_consumed"
    );
    scene.passes_an_audit().await;
}

async fn large_write_is_held_and_runs_as_approved(scene: ApiScenario) {
    let g = &scene.gateway;
    let it = Program::new(g, "bot").await;
    let file = |middle: char| {
        let half = "x".repeat(250 * 1024);
        json!({"command": format!("{half}{middle}{half}")})
    };
    let asked = it.before(&call("t1", "Bash", file('a'))).await;
    decides(g, &g.alice, asked.page(), VoteVerdict::Approve, "read").await;
    it.before(&call("t2", "Bash", file('b'))).await.is("deny", "waits for the approval");
    it.before(&call("t3", "Bash", file('a'))).await.is("allow", "");
    let answer = it.after(&call("t3", "Bash", file('b')), "PostToolUse").await.expect(200);
    assert!(answer["systemMessage"].as_str().unwrap().contains("other arguments"));
    scene.passes_an_audit().await;
}

async fn another_session_folder_or_input_shares_no_request(scene: ApiScenario) {
    let g = &scene.gateway;
    let it = Program::new(g, "bot").await;
    let page = it.before(&command("t1")).await.page().to_owned();
    decides(g, &g.alice, &page, VoteVerdict::Approve, "yes").await;
    let others = [
        ("session_id", json!("s-2")),
        ("cwd", json!("/")),
        ("tool_input", json!({"command": "make release ", "description": "Release"})),
        ("tool_input", json!({"command": "make release"})),
        ("tool_name", json!("mcp__crm__issue_refund")),
    ];
    for (index, (member, value)) in others.into_iter().enumerate() {
        let mut other = command(&format!("other-{index}"));
        other[member] = value;
        let waits = it.before(&other).await;
        assert_ne!(waits.page(), page, "{member}");
    }
    it.before(&command("t3")).await.is("allow", "");
}

async fn one_of_many_equal_calls_uses_an_approval(scene: ApiScenario) {
    let g = &scene.gateway;
    let it = Program::new(g, "bot").await;
    let page = it.before(&command("t0")).await.page().to_owned();
    decides(g, &g.alice, &page, VoteVerdict::Approve, "yes").await;
    let calls: Vec<Value> = (0..12).map(|it| command(&format!("t{it}"))).collect();
    let answers = join_all(calls.iter().map(|call| it.before(call))).await;
    assert_eq!(answers.iter().filter(|it| it.decision() == "allow").count(), 1);
    scene.passes_an_audit().await;
}

async fn equal_allowed_calls_at_once_all_run(scene: ApiScenario) {
    let it = Program::new(&scene.gateway, "bot").await;
    let calls: Vec<Value> = (0..8).map(|it| reads(&format!("t{it}"))).collect();
    for answer in join_all(calls.iter().map(|call| it.before(call))).await {
        answer.is("allow", "");
    }
    let same = reads("t9");
    let together = join_all((0..8).map(|_| it.before(&same))).await;
    let different: BTreeSet<String> = together.iter().map(|it| it.0.to_string()).collect();
    assert_eq!(different.len(), 1, "{different:?}");
    assert_eq!(threads(&scene.gateway).await.len(), 9);
}

async fn call_is_allowed_only_within_its_lease(scene: ApiScenario) {
    let g = &scene.gateway;
    let it = Program::new(g, "bot").await;
    it.before(&reads("t1")).await.is("allow", "");
    g.pass(Duration::from_secs(61));
    it.before(&reads("t1")).await.is("deny", "used already");
    it.after(&reads("t1"), "PostToolUse").await.expect(200);
    assert_eq!(outcomes(g).await.len(), 1, "a late outcome is recorded");
    scene.passes_an_audit().await;
}

async fn expired_approval_is_not_used(scene: ApiScenario) {
    let g = &scene.gateway;
    let it = Program::new(g, "bot").await;
    let page = it.before(&command("t1")).await.page().to_owned();
    decides(g, &g.alice, &page, VoteVerdict::Approve, "yes").await;
    g.pass(Duration::from_secs(301));
    it.before(&command("t1")).await.is("deny", "has expired");
    assert_ne!(it.before(&command("t2")).await.page(), page);
}

async fn mcp_tools_are_named_as_in_policies(scene: ApiScenario) {
    let g = &scene.gateway;
    let it = Program::new(g, "bot").await;
    it.before(&call("t1", "mcp__crm__look_up", json!({"q": 1}))).await.is("allow", "");
    it.before(&call("t2", "mcp__crm__issue_refund", json!({}))).await.is("deny", "waits for the approval");
    it.before(&call("t3", "mcp__erp__look_up", json!({}))).await.is("deny", "The policy denied");
    let before = threads(g).await.len();
    for ambiguous in ["mcp__crm__look__up", "mcp__crm___up", "mcp__crm", "crm:look_up", "mcp__crm:x__y"] {
        it.before(&call("t4", ambiguous, json!({}))).await.is("deny", "Countersign: /tool_name: ");
    }
    assert_eq!(threads(g).await.len(), before);
}

async fn every_error_denies_the_call(scene: ApiScenario) {
    let g = &scene.gateway;
    let it = Program::new(g, "bot").await;
    it.before(&call("t1", "Read", json!({"content": "x".repeat(1024 * 1024)}))).await.is("deny", "1 MiB");
    it.before(&call("t2", "Read\n", json!({}))).await.is("deny", "must be 1 to 128 characters");
    HookAnswer(it.hook("?wait=soon", &reads("t3")).await.expect(200)).is("deny", "/wait");
    let no_writer = policy().replace("writer = true\n", "");
    let by = "tests".try_into().unwrap();
    let source = crate::gateway::source;
    g.service.policy_changes.activate_policy(&by, None, source(&no_writer), Default::default()).await.unwrap();
    it.before(&reads("t4")).await.is("deny", "writer = true");
    g.service.policy_changes.activate_policy(&by, None, source(&policy()), Default::default()).await.unwrap();
    it.before(&reads("t4")).await.is("allow", "");
    let halt = json!({"proposing": true, "verifying": true, "reason": "an incident"});
    g.send(reqwest::Method::PUT, "/v1/halts/payments", &g.admin, Some(halt)).await.expect(200);
    it.before(&reads("t5")).await.is("deny", "halt");
}

async fn altered_arguments_are_recorded_as_failed(scene: ApiScenario) {
    let g = &scene.gateway;
    let it = Program::new(g, "bot").await;
    it.before(&reads("t1")).await.is("allow", "");
    let answer = it.after(&call("t1", "Read", json!({"file_path": "/repo/b.txt"})), "PostToolUse").await.expect(200);
    assert!(answer["systemMessage"].as_str().unwrap().contains("other arguments"));
    let [(status, note)] = &outcomes(g).await[..] else { panic!("one outcome") };
    assert!(*status == "failed" && note.contains("other arguments"), "{note}");
    scene.passes_an_audit().await;
}

async fn instances_share_nothing(scene: ApiScenario) {
    let g = &scene.gateway;
    let (it, other) = (Program::new(g, "bot").await, Program::new(g, "other").await);
    let page = it.before(&command("t1")).await.page().to_owned();
    assert_ne!(other.before(&command("t1")).await.page(), page);
    decides(g, &g.alice, &page, VoteVerdict::Approve, "yes").await;
    other.before(&command("t1")).await.is("deny", "waits for the approval");
    it.before(&command("t1")).await.is("allow", "");
    assert_eq!(other.after(&command("t1"), "PostToolUse").await.code(), "not_consumed");
}

async fn malformed_hook_is_refused(scene: ApiScenario) {
    let it = Program::new(&scene.gateway, "bot").await;
    for member in ["session_id", "hook_event_name", "tool_name", "tool_input", "tool_use_id"] {
        let mut body = reads("t1");
        body.as_object_mut().unwrap().remove(member);
        it.before(&body).await.is("deny", "");
        body[member] = json!(["x"]);
        it.before(&body).await.is("deny", "");
    }
    let mut body = reads("t1");
    body["hook_event_name"] = json!("Stop");
    assert_eq!(it.hook("", &body).await.status, 400);
    // The model chooses the input.
    let twice = r#"{"hook_event_name": "PreToolUse", "session_id": "s", "tool_use_id": "t", "tool_name": "Read",
        "tool_input": {"file_path": "/a", "file_path": "/secret"}}"#;
    let url = format!("{}/v1/hooks/claude-code", it.g.url);
    let sent = it.g.http.post(url).bearer_auth(&it.token).header("content-type", "application/json").body(twice);
    HookAnswer(ApiResponse::of(sent.send().await.unwrap()).await.expect(200)).is("deny", "");
    it.before(&call("", "Read", json!({}))).await.is("deny", "/tool_use_id");
}

/// Claude Code itself, with the settings that the program prints and a scripted model.
mod claude_code_in_full {
    use std::io::{BufRead as _, BufReader};
    use std::path::Path;
    use std::process::{Command, Stdio};

    use super::*;
    use crate::program::{ChildProcess, PROGRAM};

    struct CodingSession<'g> {
        it: Program<'g>,
        gateway: String,
        folder: tempfile::TempDir,
    }

    impl<'g> CodingSession<'g> {
        async fn new(g: &'g TestGateway) -> Self {
            let it = Program::new(g, "bot").await;
            // The package may have to be installed first.
            tokio::task::spawn_blocking(|| crate::npm::modules("claude_code")).await.unwrap();
            Self { it, gateway: g.url.clone(), folder: tempfile::tempdir().unwrap() }
        }

        fn settings(&self) -> String {
            let told = Command::new(PROGRAM)
                .args(["hooks", "claude-code", "--wait", "60", "--gateway", &self.gateway])
                .output()
                .unwrap();
            assert!(told.status.success());
            String::from_utf8(told.stdout).unwrap()
        }

        /// Lets the model call a tool, and returns the result that it gets.
        async fn call(&self, tool: &str, input: Value) -> String {
            let calls = json!([[tool, input]]).to_string();
            let (settings, folder) = (self.settings(), self.folder.path().to_owned());
            let token = self.it.token.clone();
            let run = move || run(&calls, &settings, &token, &folder);
            tokio::task::spawn_blocking(run).await.unwrap()
        }

        fn made(&self, name: &str) -> bool {
            self.folder.path().join(name).exists()
        }

        /// Decides the only call that waits.
        async fn decides(&self, verdict: VoteVerdict) {
            let g = self.it.g;
            for _ in 0..600 {
                for thread in threads(g).await {
                    if let Some(review) = g.service.threads.overview(&thread).await.unwrap().review {
                        return decides(g, &g.alice, review.as_str(), verdict, "as agreed").await;
                    }
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            panic!("no call is held");
        }
    }

    fn run(calls: &str, settings: &str, token: &str, folder: &Path) -> String {
        let cli = crate::npm::modules("claude_code").join("@anthropic-ai/claude-code-linux-x64/claude");
        let ours = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/claude_code");
        let model = Command::new("python3").arg(ours.join("model.py")).arg(calls).stdout(Stdio::piped()).spawn();
        let mut model = ChildProcess(model.unwrap());
        let mut lines = BufReader::new(model.stdout.take().unwrap()).lines().map(Result::unwrap);
        let port = lines.next().unwrap();
        let servers = json!({"mcpServers": {"crm": {"command": "python3", "args": [ours.join("server.py")]}}});
        let done = Command::new(cli)
            .args(["-p", "Go.", "--output-format", "json", "--setting-sources", "user"])
            .args(["--settings", settings, "--mcp-config", &servers.to_string()])
            .current_dir(folder)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", folder.join("home"))
            .env("ANTHROPIC_BASE_URL", format!("http://127.0.0.1:{port}"))
            .env("ANTHROPIC_API_KEY", "none")
            .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
            .env("COUNTERSIGN_TOKEN", token)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let told = String::from_utf8_lossy(&done.stdout);
        assert!(done.status.success(), "{told}");
        // Otherwise a missing result would be waited for.
        model.kill().unwrap();
        lines.next().unwrap_or_else(|| panic!("the model got no result: {told}"))
    }

    #[tokio::test]
    async fn claude_code_runs_what_was_approved_and_nothing_else() {
        let scene = ApiScenario::on_sqlite(&policy()).await;
        let g = &scene.gateway;
        let mut session = CodingSession::new(g).await;
        let make = |name: &str| json!({"command": format!("echo hi > {name}"), "description": "Make a file"});

        let (result, ()) = tokio::join!(session.call("Bash", make("approved")), session.decides(VoteVerdict::Approve));
        assert!(session.made("approved"), "{result}");
        let (result, ()) = tokio::join!(session.call("Bash", make("denied")), session.decides(VoteVerdict::Deny));
        assert!(
            !session.made("denied") && result.contains("A reviewer denied this call. Reason: as agreed"),
            "{result}"
        );

        let failing = json!({"command": "exit 3", "description": "Fail"});
        let (result, ()) = tokio::join!(session.call("Bash", failing), session.decides(VoteVerdict::Approve));
        assert!(result.contains("Exit code 3"), "{result}");
        let result = session.call("mcp__crm__look_up", json!({"order": 17})).await;
        assert!(result.contains("Nordwind"), "{result}");
        let result = session.call("Write", json!({"file_path": "written", "content": "x"})).await;
        assert!(!session.made("written") && result.contains("The policy denied this call"), "{result}");

        let recorded: Vec<&str> = outcomes(g).await.into_iter().map(|it| it.0).collect();
        assert_eq!(recorded, ["succeeded", "failed", "succeeded"]);
        scene.passes_an_audit().await;

        // A gateway that cannot be reached.
        session.gateway = "http://127.0.0.1:9".to_owned();
        let result = session.call("mcp__crm__look_up", json!({"order": 17})).await;
        assert!(!result.contains("Nordwind") && result.contains("blocking because onFailure"), "{result}");
    }
}
