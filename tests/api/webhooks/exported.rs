//! Tests traces with an OpenTelemetry collector. A request and the deliveries that it caused are in one trace.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use super::receiver::WebhookReceiver;
use crate::program::{ChildProcess, PROGRAM, told};
use crate::python;

const KNOWN_BY: &str = "Bearer collector-s3cret";
const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const MADE_UP: &str = "WROTE-THIS";
const PARENT: &str = "00f067aa0ba902b7";

/// A process that ends with the test, and its output.
struct TracingProcess {
    process: ChildProcess,
    said: BufReader<ChildStdout>,
}

impl TracingProcess {
    fn start(command: &mut Command) -> Self {
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let said = BufReader::new(process.stdout.take().unwrap());
        Self { process: ChildProcess(process), said }
    }

    fn line(&mut self) -> Value {
        let mut line = String::new();
        self.said.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }

    fn url(&mut self) -> String {
        self.line()["listening"].as_str().unwrap().to_owned()
    }
}

fn token(data: &Path, role: &str, more: &[&str]) -> String {
    told(data, &[&["token", "add", role, "--role", role, "--owner", "ops", "--new-group"], more].concat())
}

fn gateway(data: &Path, collector: u64, authorization: &str) -> TracingProcess {
    let mut command = Command::new(PROGRAM);
    command.arg("--data").arg(data).args(["serve", "--json", "--listen", "127.0.0.1:0"]);
    command.env("COUNTERSIGN_TRACES_URL", format!("http://127.0.0.1:{collector}/v1/traces"));
    command.env("COUNTERSIGN_TRACES_AUTHORIZATION", authorization);
    command.env("COUNTERSIGN_WEBHOOKS_ALLOW_NETWORKS", "127.0.0.0/8").env("COUNTERSIGN_WORKERS_INTERVAL_MS", "20");
    TracingProcess::start(&mut command)
}

/// Creates a thread, waits for its delivery to an endpoint, and ends the gateway in order.
async fn lived(gateway: &mut TracingProcess, url: &str, (host, admin): (&str, &str), receiver: &WebhookReceiver) {
    countersign_adapters::tls::ready();
    let before = receiver.got().len();
    let client = reqwest::Client::new();
    let endpoint = json!({"name": "ops", "url": receiver.url, "events": ["thread.created"]});
    let added = client.post(format!("{url}/v1/endpoints")).bearer_auth(admin).json(&endpoint).send().await.unwrap();
    assert_eq!(added.status(), 201);
    let payment = json!({"amount": 10, "currency": "EUR", "card": "4111111111111111"});
    let state = json!({"raw_text": "Hello.", "requested_action": "none", "target_user_id": 17, "payment": payment});
    let request = client.post(format!("{url}/v1/threads")).bearer_auth(host);
    let request = request.header("traceparent", format!("00-{TRACE}-{PARENT}-01"));
    let made = request.json(&json!({"flow": "payments", "state": state})).send().await.unwrap();
    assert_eq!(made.status(), 201);
    while receiver.got().len() <= before {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    // A client may make up a method.
    let made_up = reqwest::Method::from_bytes(MADE_UP.as_bytes()).unwrap();
    client.request(made_up, format!("{url}/{MADE_UP}")).send().await.unwrap();
    let pid = gateway.process.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    assert!(gateway.process.wait().unwrap().success());
}

#[tokio::test(flavor = "multi_thread")]
async fn request_and_its_delivery_are_exported_in_one_trace() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path();
    let policy = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/payments/policy.toml");
    let mut collector = Command::new(python::python());
    collector.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/oracle/collector.py")).arg(KNOWN_BY);
    let mut collector = TracingProcess::start(&mut collector);
    let port = collector.line()["port"].as_u64().unwrap();
    let receiver = WebhookReceiver::start().await;
    // A gateway that the collector does not accept loses its traces and nothing else.
    let mut unknown = gateway(data, port, "Bearer another");
    let url = unknown.url();
    told(data, &["policy", "activate", policy]);
    let (host, admin) = (token(data, "host", &["--flow", "payments"]), token(data, "admin", &[]));
    lived(&mut unknown, &url, (&host, &admin), &receiver).await;
    let mut known = gateway(data, port, KNOWN_BY);
    let url = known.url();
    lived(&mut known, &url, (&host, &admin), &receiver).await;

    let mut spans: BTreeMap<String, Value> = BTreeMap::new();
    while !["POST /v1/endpoints", "POST /v1/threads", "thread.created", "other unmatched"]
        .iter()
        .all(|it| spans.contains_key(*it))
    {
        let span = collector.line();
        let text = span.to_string();
        assert!(![&host, &admin, "4111111111111111", MADE_UP].iter().any(|it| text.contains(*it)), "{text}");
        spans.insert(span["name"].as_str().unwrap().to_owned(), span);
    }
    let request = &spans["POST /v1/threads"];
    assert_eq!(
        (&request["service"], &request["kind"], &request["trace"], &request["parent"], &request["failed"]),
        (&json!("countersign"), &json!("SPAN_KIND_SERVER"), &json!(TRACE), &json!(PARENT), &json!(false))
    );
    assert_eq!(request["attributes"]["http.response.status_code"], "201");
    let delivery = &spans["thread.created"];
    assert_eq!((&delivery["kind"], &delivery["trace"]), (&json!("SPAN_KIND_CLIENT"), &json!(TRACE)));
    assert_eq!(delivery["parent"], request["id"], "what came of it stands below");
    let got = receiver.got();
    let places: Vec<&str> = got.iter().map(|it| it.headers["traceparent"].as_str()).collect();
    assert!(places.contains(&format!("00-{TRACE}-{}-01", delivery["id"].as_str().unwrap()).as_str()), "{places:?}");
    let own = &spans["POST /v1/endpoints"];
    assert!(own["parent"] == "" && own["trace"] != TRACE, "a trace of its own: {own}");
}
