//! Tests the log export: every event is one line, in the log's order, at least once, wherever the export stops.

use std::io::{self, BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;

use countersign_domain::reviews::VoteVerdict;

use countersign::worker::export_log;
use countersign_adapters::log_sink::LogExportTarget;
use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::gateway::TestGateway;
use crate::rules::ApiScenario;

on_both! {
    every_event_is_a_line_in_the_logs_order(crate::gateway::POLICY),
    failed_export_is_repeated(crate::gateway::POLICY),
    several_gateways_write_each_line_once(crate::gateway::POLICY),
}

const PROGRAM: &str = env!("CARGO_BIN_EXE_countersign");

async fn sequence(g: &TestGateway) -> u64 {
    while g.service.log.sequence().await.unwrap() > 0 {}
    g.service.log.log_length().await.unwrap()
}

/// Three hundred events, more than one batch, with a text in them that acts on terminals.
async fn lived(g: &TestGateway) -> u64 {
    let thread = g.thread().await;
    for number in 0..130 {
        let patch = json!({"is_admin": number});
        g.propose(&thread["thread"], &thread["transition"], (&g.planner, "planner"), patch).await.expect(422);
        g.thread().await;
    }
    let path = format!("/v1/threads/{}/closing", thread["thread"].as_str().unwrap());
    g.post(&path, &g.admin, json!({"reason": "\u{1b}[2Jgone\nand \u{202e}back"})).await.expect(200);
    sequence(g).await
}

fn lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    assert!(text.ends_with('\n') && !text.contains(['\u{1b}', '\u{202e}']));
    text.lines().map(|it| serde_json::from_str(it).unwrap()).collect()
}

fn indexes(lines: &[Value]) -> Vec<u64> {
    lines.iter().map(|it| it["index"].as_u64().unwrap()).collect()
}

async fn every_event_is_a_line_in_the_logs_order(scene: ApiScenario) {
    let g = &scene.gateway;
    let length = lived(g).await;
    let path = g.folder.path().join("log.jsonl");
    let to = LogExportTarget::File(path.clone());
    assert_eq!(export_log::run_once(&g.service, &to).await.unwrap() as u64, length);
    assert_eq!(export_log::run_once(&g.service, &to).await.unwrap(), 0);
    let copied = lines(&path);
    let mut told: Vec<Value> = Vec::new();
    while (told.len() as u64) < length {
        let page = g.get(&format!("/v1/events?limit=500&after={}", told.len()), &g.auditor).await.expect(200);
        told.extend(page["events"].as_array().unwrap().iter().cloned());
    }
    assert_eq!(copied, told, "what an auditor's token reads");
    assert_eq!(copied.last().unwrap()["data"]["reason"], "\u{1b}[2Jgone\nand \u{202e}back");

    // The file is moved away, so later events are in a new file.
    let moved = g.folder.path().join("log.jsonl.1");
    std::fs::rename(&path, &moved).unwrap();
    let held = g.held(&g.thread().await).await;
    g.vote(&g.alice, &held, VoteVerdict::Deny).await.unwrap();
    let now = sequence(g).await;
    export_log::run_once(&g.service, &to).await.unwrap();
    assert_eq!(indexes(&lines(&moved)), (1..=length).collect::<Vec<_>>());
    assert_eq!(indexes(&lines(&path)), (length + 1..=now).collect::<Vec<_>>());
    scene.passes_an_audit().await;
}

/// However it ends: before writing, or after it and before that is noted, as by a crash.
async fn failed_export_is_repeated(scene: ApiScenario) {
    let g = &scene.gateway;
    let length = lived(g).await;
    let written = Mutex::new(Vec::new());
    let write = async |ends: Option<io::ErrorKind>| {
        let kept = |lines: String| {
            written.lock().unwrap().extend(lines.lines().map(|it| serde_json::from_str(it).unwrap()));
            async move { ends.map_or(Ok(()), |kind| Err(io::Error::from(kind))) }
        };
        g.service.log.copy_log(kept).await
    };
    assert!(write(Some(io::ErrorKind::StorageFull)).await.is_err());
    let first = std::mem::take(&mut *written.lock().unwrap());
    while write(None).await.unwrap() > 0 {}
    let all: Vec<Value> = std::mem::take(&mut *written.lock().unwrap());
    assert_eq!(all[..first.len()], first, "the same lines once more");
    assert_eq!(indexes(&all), (1..=length).collect::<Vec<_>>());
}

async fn several_gateways_write_each_line_once(scene: ApiScenario) {
    let g = &scene.gateway;
    let length = lived(g).await;
    let others = [scene.another().await, scene.another().await];
    let to = LogExportTarget::File(g.folder.path().join("log.jsonl"));
    let runs = [&*g.service, &others[0], &others[1]].map(|it| export_log::run_once(it, &to));
    let copied: usize = join_all(runs).await.into_iter().map(Result::unwrap).sum();
    assert!(copied > 0);
    while export_log::run_once(&g.service, &to).await.unwrap() > 0 {}
    assert_eq!(indexes(&lines(&g.folder.path().join("log.jsonl"))), (1..=length).collect::<Vec<_>>());
}

/// A program that is killed when the test ends.
struct SinkProcess(Child);

impl Drop for SinkProcess {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns the lines that a gateway writes to standard output until it has exported this log position and is killed.
fn told_until(data: &Path, index: u64) -> Vec<Value> {
    let mut command = Command::new(PROGRAM);
    command.arg("--data").arg(data).args(["serve", "--listen", "127.0.0.1:0"]);
    command.env("COUNTERSIGN_SIEM_OUTPUT", "-").env("COUNTERSIGN_WORKERS_INTERVAL_MS", "20");
    let mut running = SinkProcess(command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap());
    let mut told: Vec<Value> = Vec::new();
    let mut lines = BufReader::new(running.0.stdout.take().unwrap()).lines();
    while told.last().is_none_or(|it| it["index"] != index) {
        told.push(serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap());
    }
    told
}

/// Standard output has nothing else, above all not the link for the first account.
#[test]
fn export_to_standard_output_continues_after_a_crash() {
    let folder = tempfile::tempdir().unwrap();
    let first = told_until(folder.path(), 1);
    assert_eq!((first.len(), &first[0]["type"]), (1, &json!("access.setup_link_made")));
    // It was killed right after that, perhaps before it was noted. Each start makes a link.
    let second = indexes(&told_until(folder.path(), 2));
    assert!(second == [2] || second == [1, 2], "{second:?}");
    let third = indexes(&told_until(folder.path(), 3));
    // The lines of the second start may appear twice as well.
    let twice = second == [1, 2] && third == [1, 2, 3];
    assert!(third == [3] || third == [2, 3] || twice, "{third:?} after {second:?}");
}
