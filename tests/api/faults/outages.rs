//! Tests a database that cannot be used. Every call returns one code and a time for the next attempt. Readiness follows
//! within two seconds in both directions. The server log has one line per second. A repeated request is carried out
//! once.

use countersign_adapters::clock::{Clock as _, SystemClock};
use reqwest::{Client, Response};
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;

use super::{FaultyGateway, LOOK_AGAIN, POLICY, WITHIN, faulty};
use crate::own_cluster::OwnCluster;
use crate::program::PROGRAM;

/// Calls in an outage. There are more of them than the gateway may log.
const CALLS: usize = 200;

/// The minimum duration of an outage, longer than the interval between its log lines.
const LASTS: Duration = Duration::from_millis(1_500);

const DISK_FULL: i32 = 28;
const READ_ONLY_FILES: i32 = 30;
const INPUT_OUTPUT: i32 = 5;

/// The part of a database that works during an outage.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OutageScope {
    Reads,
    Nothing,
}

struct OutageCaller {
    gateway: FaultyGateway,
    http: Client,
    host: String,
    agent: String,
}

impl OutageCaller {
    fn new(data: &Path, environment: &[(&str, &str)]) -> Self {
        let told = |arguments: &[&str]| {
            let mut command = std::process::Command::new(PROGRAM);
            command.arg("--data").arg(data).args(arguments);
            command.envs(environment.iter().filter(|it| it.0 == "COUNTERSIGN_DATABASE").copied());
            let done = command.output().unwrap();
            assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
            String::from_utf8(done.stdout).unwrap().trim().to_owned()
        };
        let gateway = FaultyGateway::start(data, environment);
        told(&["policy", "activate", POLICY]);
        let token = |role: &str, more: &[&str]| {
            told(
                &[
                    &["token", "add", role, "--role", role, "--owner", "platform", "--new-group", "--flow", "payments"],
                    more,
                ]
                .concat(),
            )
        };
        let (host, agent) = (token("host", &[]), token("agent", &["--node", "planner"]));
        countersign_adapters::tls::ready();
        // A connection may end with the outage.
        let http = Client::builder().pool_max_idle_per_host(0).build().unwrap();
        Self { gateway, http, host, agent }
    }

    async fn make(&self, thread: &str) -> Response {
        let state = json!({"raw_text": "x", "requested_action": "none", "target_user_id": 17,
            "payment": {"amount": 40, "currency": "EUR"}});
        let request = self.http.post(format!("{}/v1/threads", self.gateway.url)).bearer_auth(&self.host);
        let request = request.header("idempotency-key", thread);
        request.json(&json!({"flow": "payments", "thread": thread, "state": state})).send().await.unwrap()
    }

    async fn get(&self, path: &str) -> Response {
        self.http.get(format!("{}{path}", self.gateway.url)).bearer_auth(&self.host).send().await.unwrap()
    }

    async fn call_tool(&self, name: &str, arguments: Value) -> Response {
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}});
        self.http.post(format!("{}/mcp", self.gateway.url)).bearer_auth(&self.agent).json(&call).send().await.unwrap()
    }

    /// Waits until readiness has this status, and checks that this is in time.
    async fn turns(&self, status: u16) {
        let begun = SystemClock.instant();
        loop {
            let answer = self.get("/readyz").await;
            if answer.status().as_u16() == status {
                break;
            }
            assert!(begun.elapsed() < WITHIN, "readiness stays {}: {}", answer.status(), self.gateway.log());
            tokio::time::sleep(LOOK_AGAIN).await;
        }
        assert!(begun.elapsed() < WITHIN);
        assert_eq!(self.get("/livez").await.status().as_u16(), 200);
    }

    async fn refused_with_word_and_time(&self, answer: Response) {
        let (status, again) = (answer.status().as_u16(), answer.headers().get("retry-after").cloned());
        let body: Value = answer.json().await.unwrap();
        assert_eq!((status, &body["code"]), (503, &json!("store_unavailable")), "{body:#}");
        assert!(again.unwrap().to_str().unwrap().parse::<u32>().unwrap() > 0);
        let detail = body["detail"].as_str().unwrap();
        assert!(detail.contains("may or may not") && !detail.contains("Nothing was changed"), "{detail}");
    }

    /// Runs one outage from its beginning to its end.
    async fn lives_through(&self, (name, left): (&str, OutageScope), begin: impl FnOnce(), end: impl FnOnce()) {
        self.turns(200).await;
        let begun = SystemClock.instant();
        begin();
        self.turns(503).await;
        self.refused_with_word_and_time(self.get("/readyz").await).await;
        let mut calls = 0;
        while calls < CALLS || begun.elapsed() < LASTS {
            self.refused_with_word_and_time(self.make(name).await).await;
            calls += 1;
        }
        let tool = self.call_tool("read_view", json!({"thread": "before", "node": "planner"})).await;
        let page = self.get("/set-up/cs_no_such_link").await;
        match left {
            OutageScope::Reads => {
                assert_eq!(self.get("/v1/threads/before").await.status().as_u16(), 200);
                assert_eq!((tool.status().as_u16(), page.status().as_u16()), (200, 404));
                let parent = self.get("/v1/threads/before").await.json::<Value>().await.unwrap();
                let change = json!({"thread": "before", "node": "planner", "parent": parent["transition"],
                    "patch": {"raw_text": name}});
                let told = self.call_tool("propose", change).await.text().await.unwrap();
                assert!(told.contains("store_unavailable") && told.contains("call the tool again"), "{told}");
            }
            OutageScope::Nothing => {
                self.refused_with_word_and_time(tool).await;
                assert_eq!(page.status().as_u16(), 503);
                let page = page.text().await.unwrap();
                assert!(page.contains("database is unavailable") && !page.contains("Nothing was changed"), "{page}");
            }
        }
        end();
        self.turns(200).await;
        let made = self.make(name).await;
        assert_eq!(made.status().as_u16(), 201, "{}", made.text().await.unwrap());
        let secs = usize::try_from(begun.elapsed().as_secs()).unwrap();
        self.has_logged_a_line_a_second(secs);
    }

    fn has_logged_a_line_a_second(&self, secs: usize) {
        let log = self.gateway.log();
        assert!(!log.contains("request failed"), "{log}");
        let lines: Vec<&str> = log.lines().filter(|it| it.contains(" ERROR ") || it.contains(" WARN ")).collect();
        let refused: Vec<&&str> = lines.iter().filter(|it| it.contains("the database refused calls")).collect();
        assert!(!refused.is_empty() && refused.len() <= secs + 2, "{} lines in {secs} s: {log}", refused.len());
        let counted = |line: &str| line.split_once("calls=")?.1.split(' ').next()?.parse::<usize>().ok();
        let all: Vec<&str> = log.lines().filter(|it| it.contains("calls=")).collect();
        assert!(all.iter().filter_map(|it| counted(it)).sum::<usize>() >= CALLS, "{log}");
        // The keeper, the listener and the workers write a few lines each, however long the outage takes.
        assert!(lines.len() - refused.len() <= 20, "{log}");
        std::fs::File::options().write(true).open(&self.gateway.stderr).unwrap().set_len(0).unwrap();
    }
}

#[tokio::test]
async fn full_or_failing_disk_stops_only_commits() {
    let folder = tempfile::tempdir().unwrap();
    let (data, faults) = (folder.path().join("data"), folder.path().join("faults"));
    let library = faulty();
    let caller = OutageCaller::new(&data, &[("LD_PRELOAD", &library), ("FAULTS", faults.to_str().unwrap())]);
    assert_eq!(caller.make("before").await.status().as_u16(), 201);
    for (name, errno) in [("full", DISK_FULL), ("read-only", READ_ONLY_FILES), ("failing", INPUT_OUTPUT)] {
        let begin = || std::fs::write(&faults, errno.to_string()).unwrap();
        let end = || std::fs::remove_file(&faults).unwrap();
        caller.lives_through((name, OutageScope::Reads), begin, end).await;
    }
}

#[tokio::test]
async fn gateway_recovers_from_a_stopped_or_read_only_postgresql() {
    let folder = tempfile::tempdir().unwrap();
    let cluster = OwnCluster::start();
    let caller = OutageCaller::new(&folder.path().join("data"), &[("COUNTERSIGN_DATABASE", &cluster.url())]);
    assert_eq!(caller.make("before").await.status().as_u16(), 201);
    let stopped = || cluster.stop();
    caller.lives_through(("stopped", OutageScope::Nothing), stopped, || cluster.start_again()).await;
    // Sessions that began during the outage stay read-only until they end.
    let read_only = || {
        cluster.run("ALTER DATABASE postgres SET default_transaction_read_only = on");
        cluster.run("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'countersign'");
    };
    let writable = || cluster.run("ALTER DATABASE postgres RESET default_transaction_read_only");
    caller.lives_through(("read-only", OutageScope::Reads), read_only, writable).await;
}
