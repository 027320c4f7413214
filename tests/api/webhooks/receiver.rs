//! A webhook receiver that answers as its test sets it, and stores the requests.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

#[derive(Clone, Debug)]
pub struct WebhookRequest {
    pub method: String,
    pub path: String,
    pub headers: BTreeMap<String, String>,
    pub body: String,
}

impl WebhookRequest {
    pub fn id(&self) -> &str {
        &self.headers["webhook-id"]
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap()
    }

    pub fn kind(&self) -> String {
        self.json()["type"].as_str().unwrap().to_owned()
    }
}

#[derive(Clone, Debug)]
pub enum ReceiverReply {
    /// Answers with this status line and headers.
    Says(&'static str),
    /// Answers 400 with this text.
    Quotes(&'static str),
    /// Answers 400 with the whole request after this many other bytes.
    Repeats(usize),
    /// Waits until the test sets another reply.
    Hangs,
    /// Closes the connection without an answer.
    HangsUp,
}

pub const FINE: ReceiverReply = ReceiverReply::Says("200 OK");
pub const BROKEN: ReceiverReply = ReceiverReply::Says("500 Internal Server Error");

pub struct WebhookReceiver {
    pub url: String,
    got: Arc<Mutex<Vec<WebhookRequest>>>,
    reply: watch::Sender<ReceiverReply>,
}

impl WebhookReceiver {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://127.0.0.1:{}/hook", listener.local_addr().unwrap().port());
        let (reply, told) = watch::channel(FINE);
        let got = Arc::new(Mutex::new(Vec::new()));
        let keeps = Arc::clone(&got);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(converse(stream, Arc::clone(&keeps), told.clone()));
            }
        });
        Self { url, got, reply }
    }

    pub fn now(&self, reply: ReceiverReply) {
        self.reply.send_replace(reply);
    }

    /// Returns all requests in the order of their arrival.
    pub fn got(&self) -> Vec<WebhookRequest> {
        self.got.lock().unwrap().clone()
    }

    /// Returns all requests in the log's order, since concurrent ones arrive in any order.
    pub fn sorted(&self) -> Vec<WebhookRequest> {
        let mut got = self.got();
        got.sort_by_key(|it| it.json()["data"]["index"].as_u64());
        got
    }

    /// Returns the event types of all requests, in the log's order.
    pub fn kinds(&self) -> Vec<String> {
        self.sorted().iter().map(WebhookRequest::kind).collect()
    }

    /// Waits until this many requests have arrived.
    pub async fn until(&self, count: usize) {
        while self.got().len() < count {
            tokio::task::yield_now().await;
        }
    }
}

async fn converse(stream: TcpStream, got: Arc<Mutex<Vec<WebhookRequest>>>, mut told: watch::Receiver<ReceiverReply>) {
    let mut stream = BufReader::new(stream);
    while let Some(request) = read(&mut stream).await {
        let repeated = format!("{} {:?}", request.path, request.headers);
        got.lock().unwrap().push(request);
        let said = told.wait_for(|it| !matches!(it, ReceiverReply::Hangs)).await.map(|it| it.clone());
        let (status, body) = match said {
            Ok(ReceiverReply::Says(status)) => (status, "so?".to_owned()),
            Ok(ReceiverReply::Quotes(words)) => ("400 Bad Request", words.to_owned()),
            Ok(ReceiverReply::Repeats(after)) => ("400 Bad Request", format!("{}{repeated}", "x".repeat(after))),
            Ok(ReceiverReply::Hangs | ReceiverReply::HangsUp) | Err(_) => return,
        };
        let answer = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
        if stream.get_mut().write_all(answer.as_bytes()).await.is_err() {
            return;
        }
    }
}

pub async fn read(stream: &mut BufReader<TcpStream>) -> Option<WebhookRequest> {
    let mut headers = BTreeMap::new();
    let mut line = String::new();
    stream.read_line(&mut line).await.ok().filter(|it| *it > 0)?;
    let mut words = line.split(' ').map(str::to_owned);
    let (method, path) = (words.next()?, words.next()?);
    loop {
        line.clear();
        stream.read_line(&mut line).await.ok()?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        headers.insert(name.to_ascii_lowercase(), value.to_owned());
    }
    let length = headers.get("content-length").map_or(0, |it| it.parse().unwrap());
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    Some(WebhookRequest { method, path, headers, body: String::from_utf8(body).unwrap() })
}
