//! A peer that behaves like a recorded LangGraph server, and answers as its test scripts it.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::io::{AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use super::receiver::{WebhookRequest, read};

/// A thread on the agent server, and its pending interrupt.
pub const THREAD: &str = "01a200c1-1e27-7094-ae0a-fd27b59ac5f3";
pub const INTERRUPT: &str = "ec770f986c3d3a5d53118813570a243e";

/// Returns the server's answer about its thread.
pub fn thread(status: &str, waiting: &[(&str, &Value)]) -> Value {
    let value = |digest: &Value| json!({"kind": "state_transition_review", "transition_digest": digest});
    let waiting: Vec<Value> = waiting.iter().map(|(id, digest)| json!({"id": id, "value": value(digest)})).collect();
    let tasks = if waiting.is_empty() { json!({}) } else { json!({"338c5207-42e5-e2d4-bf58-10b7659e95f5": waiting}) };
    json!({"thread_id": THREAD, "status": status, "values": {"card": "s3cret-in-state"}, "interrupts": tasks})
}

pub struct AgentServer {
    pub url: String,
    got: Arc<Mutex<Vec<WebhookRequest>>>,
    says: Arc<Mutex<String>>,
    hangs: watch::Sender<bool>,
}

impl AgentServer {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://127.0.0.1:{}", listener.local_addr().unwrap().port());
        let (got, says) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new(answer("200 OK", "{}"))));
        let (hangs, hanging) = watch::channel(false);
        let (keeps, say) = (Arc::clone(&got), Arc::clone(&says));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(converse(stream, Arc::clone(&keeps), Arc::clone(&say), hanging.clone()));
            }
        });
        Self { url, got, says, hangs }
    }

    /// Sets the status of the thread for later requests.
    pub fn is(&self, status: &str, waiting: &[(&str, &Value)]) {
        self.says("200 OK", &thread(status, waiting).to_string());
    }

    /// Sets the answer to every read of the thread.
    pub fn says(&self, status: &str, body: &str) {
        *self.says.lock().unwrap() = answer(status, body);
    }

    /// Sets whether the server answers a run.
    pub fn hangs(&self, hangs: bool) {
        self.hangs.send_replace(hangs);
    }

    /// Returns the reads of the thread so far.
    pub fn looks(&self) -> Vec<WebhookRequest> {
        self.got.lock().unwrap().iter().filter(|it| it.method == "GET").cloned().collect()
    }

    pub fn runs(&self) -> Vec<WebhookRequest> {
        self.got.lock().unwrap().iter().filter(|it| it.method == "POST").cloned().collect()
    }

    /// Waits until the server has got this many runs.
    pub async fn until(&self, runs: usize) {
        while self.runs().len() < runs {
            tokio::task::yield_now().await;
        }
    }
}

fn answer(status: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

async fn converse(
    stream: TcpStream,
    got: Arc<Mutex<Vec<WebhookRequest>>>,
    says: Arc<Mutex<String>>,
    mut hanging: watch::Receiver<bool>,
) {
    let mut stream = BufReader::new(stream);
    while let Some(request) = read(&mut stream).await {
        let run = request.method == "POST";
        got.lock().unwrap().push(request);
        let said = match run {
            true if hanging.wait_for(|it| !it).await.is_err() => return,
            // The server answers 200 to every resume, whatever it does with it.
            true => answer("200 OK", "{\"run_id\":\"01a200c1-22ed-74fe-9c20-ad9ce0c6a322\",\"status\":\"pending\"}"),
            false => says.lock().unwrap().clone(),
        };
        if stream.get_mut().write_all(said.as_bytes()).await.is_err() {
            return;
        }
    }
}
