//! Runs the writer, `writer.py`, as its own process beside the tests. One process serves all tests, since it can
//! attempt many writes at once, each at the given gateway and into the given table.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{LazyLock, Mutex};

use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::gateway::{ApiResponse, TestGateway};

static WRITER: LazyLock<WriterProcess> = LazyLock::new(WriterProcess::start);

struct WriterProcess {
    orders: Mutex<ChildStdin>,
    told: Mutex<HashMap<u64, oneshot::Sender<Value>>>,
    next: AtomicU64,
}

impl WriterProcess {
    fn start() -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/api/attacks/writer.py");
        let process = Command::new("python3").arg(script).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut process = process.expect("python3 is installed by ./test");
        let (orders, answers) = (process.stdin.take().unwrap(), process.stdout.take().unwrap());
        std::thread::spawn(move || {
            listen(answers);
            process.wait()
        });
        Self { orders: Mutex::new(orders), told: Mutex::default(), next: AtomicU64::new(0) }
    }

    fn order(&self, mut order: Value) -> oneshot::Receiver<Value> {
        let number = self.next.fetch_add(1, Ordering::SeqCst);
        order["order"] = json!(number);
        let (tell, told) = oneshot::channel();
        self.told.lock().unwrap().insert(number, tell);
        writeln!(self.orders.lock().unwrap(), "{order}").unwrap();
        told
    }
}

/// Passes on the writer's answers until the writer has ended. Dropped senders then wake the tests that still wait.
fn listen(answers: ChildStdout) {
    for line in BufReader::new(answers).lines() {
        let told: Value = serde_json::from_str(&line.unwrap()).unwrap();
        if let Some(tell) = WRITER.told.lock().unwrap().remove(&told["order"].as_u64().unwrap()) {
            let _ = tell.send(told);
        }
    }
    WRITER.told.lock().unwrap().clear();
}

/// Has the writer attempt a write into a table. Returns the gateway's response.
pub async fn tries(g: &TestGateway, token: &str, ask: &Value, target: &Path) -> ApiResponse {
    let order = json!({"gateway": g.url, "token": token, "ask": ask, "target": target});
    let told = WRITER.order(order).await.expect("the writer lives");
    assert!(told.get("failed").is_none(), "the writer: {}", told["failed"]);
    let (status, text) = (told["status"].as_u64().unwrap() as u16, told["text"].as_str().unwrap());
    let answer = ApiResponse { status, body: serde_json::from_str(text).unwrap_or_else(|_| text.into()) };
    crate::description::check("POST", "/v1/verify", (status, told["kind"].as_str().unwrap(), &answer.body));
    answer
}
