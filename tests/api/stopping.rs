//! Tests the shutdown of a gateway. Requests in progress are answered, new ones are refused, and the process ends in
//! order.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::program::{ChildProcess, PROGRAM, told};

const POLICY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/payments/policy.toml");

/// A gateway that ends with the test.
struct ShutdownGateway {
    process: ChildProcess,
    at: String,
}

impl ShutdownGateway {
    fn start(data: &Path) -> Self {
        let mut command = Command::new(PROGRAM);
        command.arg("--data").arg(data).args(["serve", "--json", "--listen", "127.0.0.1:0"]);
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let said: Value = serde_json::from_str(&line).unwrap();
        let at = said["listening"].as_str().unwrap().replace("http://localhost", "127.0.0.1");
        Self { process: ChildProcess(process), at }
    }

    /// Sends the headers of a request. The gateway has confirmed that it reads on.
    fn begin(&self, request: &str, token: &str, body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.at).unwrap();
        let length = body.len();
        write!(
            stream,
            "{request} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n\
             Content-Length: {length}\r\nPrefer: wait=30\r\nConnection: close\r\nExpect: 100-continue\r\n\r\n",
            self.at
        )
        .unwrap();
        let mut on = [0; 25];
        stream.read_exact(&mut on).unwrap();
        assert_eq!(&on, b"HTTP/1.1 100 Continue\r\n\r\n");
        stream
    }
}

/// Returns the whole response until the gateway closes the connection, and the body as JSON.
fn answer(mut stream: TcpStream) -> (String, Value) {
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{text:?}"));
    (head.lines().next().unwrap().to_owned(), serde_json::from_str(body).unwrap())
}

#[test]
fn shutdown_answers_open_requests_and_refuses_new_ones() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path();
    let mut gateway = ShutdownGateway::start(data);
    told(data, &["policy", "activate", POLICY]);
    let mut user = Command::new(PROGRAM);
    user.arg("--data").arg(data).args(["user", "add", "ada", "--role", "reviewer", "--group", "finance"]);
    let user = user.arg("--password-stdin").stdin(Stdio::piped()).stdout(Stdio::null()).spawn();
    let mut user = user.unwrap();
    user.stdin.take().unwrap().write_all(b"correct horse battery staple\n").unwrap();
    assert!(user.wait().unwrap().success());
    let token = |name: &str, more: &[&str]| {
        let of = ["token", "add", name, "--role", name, "--owner", "platform", "--new-group", "--flow", "payments"];
        told(data, &[&of[..], more].concat())
    };
    let (host, agent) = (token("host", &[]), token("agent", &["--node", "planner"]));
    let payment = json!({"amount": 40, "currency": "EUR"});
    let state = json!({"raw_text": "x", "requested_action": "none", "target_user_id": 17, "payment": payment});
    let make = |name: &str| json!({"flow": "payments", "thread": name, "state": state}).to_string();
    let send = |request: &str, token: &str, body: &str| {
        let mut stream = gateway.begin(request, token, body);
        stream.write_all(body.as_bytes()).unwrap();
        answer(stream)
    };
    let (status, made) = send("POST /v1/threads", &host, &make("order-1"));
    assert_eq!(status, "HTTP/1.1 201 Created", "{made}");
    let patch = json!({"node": "planner", "parent": made["transition"], "patch": {"target_user_id": 42}}).to_string();
    let (status, held) = send("POST /v1/threads/order-1/transitions", &agent, &patch);
    assert_eq!(status, "HTTP/1.1 202 Accepted", "{held}");

    // One request waits for a decision, and one has sent only a part of its body.
    let decision = format!("GET /v1/transitions/{}/decision", held["transition"].as_str().unwrap());
    let waiting = gateway.begin(&decision, &agent, "");
    let body = make("order-2");
    let mut begun = gateway.begin("POST /v1/threads", &host, &body);
    let pid = gateway.process.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    while TcpStream::connect(&gateway.at).is_ok() {
        std::thread::yield_now();
    }
    begun.write_all(body.as_bytes()).unwrap();
    let (status, made) = answer(begun);
    assert_eq!((status.as_str(), &made["thread"]), ("HTTP/1.1 201 Created", &json!("order-2")));
    let (status, still) = answer(waiting);
    assert_eq!((status.as_str(), &still["status"]), ("HTTP/1.1 202 Accepted", &json!("held")));
    assert!(gateway.process.wait().unwrap().success(), "it ends in order");
    told(data, &["audit"]);
    assert!(told(data, &["--json", "audit"]).contains("\"threads\":2"), "what was answered is there");
}
