//! Runs the public suites for approvals of tool calls against a gateway: AgentBarrier's scenarios, and AgentAck's rules on
//! traces of attacks. The scripts are in `tests/approval_suites`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use countersign_domain::operations::halt::Halt;
use countersign_domain::reviews::VoteVerdict;
use countersign_service::operations::halt::HaltScope;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, Command};

use crate::approval_requests::{Instance, decides, policy, presented};
use crate::gateway::TestGateway;
use crate::rules::ApiScenario;

/// The time within which a suite ends on a busy machine.
const PATIENCE: Duration = Duration::from_secs(240);

/// All scenarios of AgentBarrier 1.1.0.
const SCENARIOS: [&str; 11] = [
    "approval_hold",
    "rejection",
    "argument_binding",
    "replay",
    "outcome_ambiguity",
    "outcome_reconciliation",
    "cancellation",
    "timeout",
    "parallel_barrier",
    "delegation",
    "audit_receipts",
];

#[tokio::test]
async fn agentbarrier_scenarios_pass_with_a_barrier_for_each_action() {
    verify("per_action", "per-action").await;
}

#[tokio::test]
async fn agentbarrier_scenarios_pass_with_a_barrier_for_the_run() {
    verify("run_wide", "run-wide").await;
}

/// Runs `agentbarrier verify` with every scenario.
async fn verify(adapter: &str, profile: &str) {
    let scene = scene(r#""gated:sentinel_write", "open:sentinel_write""#, "gated:sentinel_write").await;
    let g = &scene.gateway;
    let it = Instance::new(g, "bot").await;
    let evidence = g.folder.path().join("evidence.json");
    let mut suite = python("agentbarrier").await;
    suite.arg("verify").arg(format!("with_agentbarrier:{adapter}")).args(["--approval-profile", profile]);
    suite.args(["--strict-skips", "--operation-timeout", "30", "--json"]).arg(&evidence);
    let printed = tokio::time::timeout(PATIENCE, attended(g, suite.env("AAP_TOKEN", &it.token))).await.unwrap();
    let report: Value = serde_json::from_slice(&std::fs::read(&evidence).unwrap()).unwrap();
    let results = report["results"].as_array().unwrap();
    let results = results.iter().map(|it| (it["id"].as_str().unwrap(), it["status"].as_str().unwrap()));
    assert_eq!(results.collect::<Vec<_>>(), SCENARIOS.map(|it| (it, "passed")), "{}", printed.join("\n"));
    scene.passes_an_audit().await;
}

/// The findings of AgentAck if a runtime ignores the gateway's refusals, with the codes of these refusals.
const ATTACKS: [(&str, &[&str], &str); 9] = [
    ("ACK001", &["ACK001"], "not_found"),
    ("ACK002", &["ACK002"], "not_approved"),
    ("ACK003", &["ACK003"], "idempotency_conflict"),
    ("ACK004", &["ACK004"], "already_consumed"),
    ("ACK005", &["ACK005"], "approval_expired"),
    ("ACK006", &["ACK006"], "not_approved"),
    ("ACK007", &["ACK002", "ACK007"], "not_approved"),
    ("ACK008", &["ACK008"], "halted"),
    ("ACK009", &["ACK009"], "not_found"),
];

#[tokio::test]
async fn agentack_rules_hold_in_each_attack_that_the_gateway_refuses() {
    let scene = scene(r#""crm:*""#, "crm:*").await;
    let g = &scene.gateway;
    let (it, other) = (Instance::new(g, "bot").await, Instance::new(g, "other").await);
    let mut script = python("").await;
    script.arg("with_agentack.py").arg(g.folder.path());
    script.env("AAP_TOKEN", &it.token).env("AAP_OTHER_TOKEN", &other.token);
    let printed = tokio::time::timeout(PATIENCE, attended(g, &mut script)).await.unwrap();
    let results = printed.iter().map(|line| serde_json::from_str(line).expect(line));
    let results: BTreeMap<String, Value> =
        results.map(|it: Value| (it["rule"].as_str().unwrap().to_owned(), it)).collect();
    let expected = ATTACKS.map(|(rule, broken, refused)| {
        let status = if rule == "ACK009" { "INCOMPLETE" } else { "FAIL" };
        let careless = json!({status: broken});
        (rule.to_owned(), json!({"rule": rule, "careful": {"PASS": []}, "careless": careless, "refused": [refused]}))
    });
    assert_eq!(results, BTreeMap::from(expected));
    scene.passes_an_audit().await;
}

/// A gateway that allows these tools, and holds some of them. The suites ask for the same call more often than policies
/// allow by default.
async fn scene(allowed: &str, held: &str) -> ApiScenario {
    let policy = policy().replace(r#""search", "refund", "crm:*""#, allowed);
    let policy = policy.replace("[approval]\n", "[approval]\nattempts = 100\n");
    ApiScenario::on_sqlite(&policy.replace(r#""refund", "crm:refund""#, &format!("{held:?}"))).await
}

/// Returns a command of Python with the packages of the suites, which runs this module or, without a name, a script.
async fn python(module: &str) -> Command {
    // The packages may have to be installed first.
    let python = tokio::task::spawn_blocking(|| crate::python::with("approval_suites")).await.unwrap();
    let mut command = Command::new(python);
    if !module.is_empty() {
        command.args(["-m", module]);
    }
    command.current_dir(scripts()).env("PYTHONDONTWRITEBYTECODE", "1");
    command
}

fn scripts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/approval_suites")
}

/// Runs a suite, does what it asks of reviewers and administrators, and returns the other lines of its output.
async fn attended(g: &TestGateway, suite: &mut Command) -> Vec<String> {
    let suite = suite.env("AAP_URL", format!("{}/aap", g.url)).kill_on_drop(true);
    let mut child: Child = suite.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let (mut lines, mut printed) = (BufReader::new(output).lines(), Vec::new());
    while let Some(line) = lines.next_line().await.unwrap() {
        let question = serde_json::from_str(&line).unwrap_or_default();
        match answer(g, &question).await {
            Some(answer) => input.write_all(format!("{answer}\n").as_bytes()).await.unwrap(),
            None => printed.push(line),
        }
    }
    let status = child.wait().await.unwrap();
    assert!(status.success(), "{status}: {}", printed.join("\n"));
    printed
}

/// Answers one question of `reviewers.py`.
async fn answer(g: &TestGateway, question: &Value) -> Option<Value> {
    if let Some(id) = question.get("decide") {
        let verdict = if question["status"] == "approved" { VoteVerdict::Approve } else { VoteVerdict::Deny };
        decides(g, &json!({"id": id}), verdict, question["note"].as_str()).await;
    } else if let Some(id) = question.get("look") {
        return Some(presented(g, &json!({"id": id})).await);
    } else if let Some(seconds) = question["pass"].as_u64() {
        g.pass(Duration::from_secs(seconds));
        return Some(json!({"passed": seconds}));
    } else {
        let halt = Halt { proposing: false, verifying: question["halt"].as_bool()?, reason: "an attack".to_owned() };
        let scope = HaltScope::Flow("payments".try_into().unwrap());
        g.service.operations.set_halt(&"tests".try_into().unwrap(), &scope, &halt).await.unwrap();
    }
    Some(json!({}))
}
