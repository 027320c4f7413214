//! Lines to posts, and answers to lines.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Client, Response, redirect};
use serde_json::Value;
use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::{AbortHandle, JoinSet};
use url::Url;

use super::message::{self, McpMessage};
use crate::cli::CliError;
use crate::domain::primitives::sanitize;
use crate::domain::primitives::secret::Secret;
use crate::tls;

/// A message; a gateway takes a megabyte unless it is told otherwise.
const LINE_BYTES_MAX: usize = 8 * 1024 * 1024;

/// An answer: as much as the longest state with what is around it, and once more as text.
const ANSWER_BYTES_MAX: usize = 4 * LINE_BYTES_MAX;

/// Longer than a gateway lets anybody wait for a decision.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(150);

/// Somebody who is not there is not waited for.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(10);

/// What is asked at once: an agent's tools, and some that wait for people. More than that wait for their turn.
const AT_ONCE_MAX: usize = 32;

pub struct McpPipe {
    client: Client,
    address: Url,
    /// What both sides agreed on when they began.
    version: Mutex<Option<String>>,
    room: Semaphore,
}

/// True for a host that is this machine, whoever asks.
pub fn is_here(url: &Url) -> bool {
    matches!(url.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"))
}

impl McpPipe {
    pub fn new(address: Url, token: &Secret<String>) -> Result<Self, CliError> {
        tls::ready();
        let given = |problem: &str| CliError::Given(problem.to_owned());
        let mut bearer = HeaderValue::from_str(&format!("Bearer {}", token.expose()))
            .map_err(|_| given("the token has characters that no token has"))?;
        bearer.set_sensitive(true);
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, bearer);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        // Whoever redirects would get the token.
        let mut client = Client::builder().default_headers(headers).redirect(redirect::Policy::none());
        if is_here(&address) {
            client = client.no_proxy();
        }
        let client = client.timeout(ANSWER_TIME_MAX).connect_timeout(CONNECT_TIME_MAX).build();
        let client =
            client.map_err(|_| given("HTTP cannot be spoken on this machine: no certificates are trusted here"))?;
        Ok(Self { client, address, version: Mutex::new(None), room: Semaphore::new(AT_ONCE_MAX) })
    }

    /// Carries lines until there are none; what was asked by then is answered.
    pub async fn run(self, mut from: impl AsyncBufRead + Unpin, mut to: impl AsyncWrite + Unpin) -> io::Result<()> {
        let pipe = Arc::new(self);
        let (answers, mut told) = mpsc::channel::<Vec<u8>>(AT_ONCE_MAX);
        let reading = async move {
            let (mut asked, mut under_way) = (JoinSet::new(), HashMap::<String, AbortHandle>::new());
            while let Some(line) = next_line(&mut from).await? {
                while let Some(done) = asked.try_join_next_with_id() {
                    let ended = done.map_or_else(|error| error.id(), |(id, ())| id);
                    under_way.retain(|_, it| it.id() != ended);
                }
                let Some(message) = read(&line, &answers).await else { continue };
                if let Some(unwanted) = message.cancels().and_then(|it| under_way.remove(&it.to_string())) {
                    unwanted.abort();
                }
                let id = message.id.as_ref().map(Value::to_string);
                let begins = message.begins();
                let carried = Arc::clone(&pipe).carry(line, message, answers.clone());
                if begins {
                    // What comes after it needs what it brings.
                    carried.await;
                } else {
                    let task = asked.spawn(carried);
                    under_way.extend(id.map(|it| (it, task)));
                }
            }
            while asked.join_next().await.is_some() {}
            io::Result::Ok(())
        };
        let writing = async {
            while let Some(answer) = told.recv().await {
                to.write_all(&answer).await?;
                to.write_all(b"\n").await?;
                to.flush().await?;
            }
            io::Result::Ok(())
        };
        tokio::try_join!(reading, writing)?;
        Ok(())
    }

    /// Posts a message and hands its answer on.
    async fn carry(self: Arc<Self>, line: Vec<u8>, message: McpMessage, answers: mpsc::Sender<Vec<u8>>) {
        let _room = self.room.acquire().await;
        let answer = match self.post(line, &message).await {
            Ok(None) => return,
            Ok(Some(answer)) => {
                if message.begins() {
                    *self.version.lock().unwrap_or_else(PoisonError::into_inner) = message::agreed_version(&answer);
                }
                answer
            }
            Err(problem) => match &message.id {
                Some(id) => message::not_asked(id, &problem.text, problem.code.as_deref()).into_bytes(),
                None => return,
            },
        };
        // Nobody reads any more, and then nobody is told.
        let _ = answers.send(answer).await;
    }

    async fn post(&self, line: Vec<u8>, message: &McpMessage) -> Result<Option<Vec<u8>>, PipeError> {
        let agreed = self.version.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let version = message.version().map(str::to_owned).or(agreed);
        let headers = [
            ("mcp-protocol-version", version.as_deref()),
            ("mcp-method", message.method.as_deref()),
            ("mcp-name", message.name()),
        ];
        let mut post = self.client.post(self.address.clone());
        for (name, value) in headers {
            if let Some(value) = value.and_then(|it| HeaderValue::from_str(it).ok()) {
                post = post.header(name, value);
            }
        }
        let answer = post.body(line).send().await.map_err(|error| PipeError::away(&error))?;
        let status = answer.status().as_u16();
        let body = read_answer(answer).await?;
        match status {
            202 => Ok(None),
            _ if message::is_message(&body) => Ok(Some(on_one_line(body))),
            _ => Err(PipeError::refused(status, &body)),
        }
    }
}

/// A message, or `None` after it was told that it is none.
async fn read(line: &[u8], answers: &mpsc::Sender<Vec<u8>>) -> Option<McpMessage> {
    if line.len() > LINE_BYTES_MAX {
        let _ = answers.send(message::not_read("the line is too long").into_bytes()).await;
        return None;
    }
    let message = McpMessage::read(line);
    if message.is_none() && !line.trim_ascii().is_empty() {
        let _ = answers.send(message::not_read("the line is no message in JSON").into_bytes()).await;
    }
    message
}

/// The next line without its end; of one that is too long only so much that it can be told.
async fn next_line(from: &mut (impl AsyncBufRead + Unpin)) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    let mut bounded = from.take(LINE_BYTES_MAX as u64 + 1);
    if bounded.read_until(b'\n', &mut line).await? == 0 {
        return Ok(None);
    }
    if line.last() == Some(&b'\n') {
        line.pop();
        return Ok(Some(line));
    }
    // Its rest is let go a piece at a time.
    while line.len() > LINE_BYTES_MAX {
        let mut rest = Vec::new();
        let mut bounded = from.take(LINE_BYTES_MAX as u64);
        if bounded.read_until(b'\n', &mut rest).await? == 0 || rest.last() == Some(&b'\n') {
            break;
        }
    }
    Ok(Some(line))
}

async fn read_answer(mut answer: Response) -> Result<Vec<u8>, PipeError> {
    let mut body = Vec::new();
    while let Some(piece) = answer.chunk().await.map_err(|error| PipeError::away(&error))? {
        if body.len() + piece.len() > ANSWER_BYTES_MAX {
            return Err(PipeError { text: "the gateway's answer is too long".to_owned(), code: None });
        }
        body.extend_from_slice(&piece);
    }
    Ok(body)
}

/// Between the parts of JSON a new line is a space; within a text there is none.
fn on_one_line(mut body: Vec<u8>) -> Vec<u8> {
    for byte in &mut body {
        if matches!(byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
    body
}

/// Why there is no answer. The gateway's own words, or ours; never an address, which may hold what is not said.
struct PipeError {
    text: String,
    code: Option<String>,
}

impl PipeError {
    fn away(error: &reqwest::Error) -> Self {
        let text = if error.is_timeout() {
            "the gateway did not answer in time; ask again"
        } else if error.is_connect() {
            "the gateway cannot be reached; is it running, and is --gateway its address?"
        } else {
            "the connection to the gateway broke; ask again"
        };
        Self { text: text.to_owned(), code: None }
    }

    /// An answer that is no message: a problem of the gateway's, or a page of something else.
    fn refused(status: u16, body: &[u8]) -> Self {
        let problem: Value = serde_json::from_slice(body).unwrap_or_default();
        let said = |name: &str| problem.get(name).and_then(Value::as_str).map(sanitize::printed);
        let text = said("detail").map_or_else(
            || format!("what answers at --gateway is no gateway that speaks this protocol (status {status})"),
            |detail| format!("the gateway refused it: {detail}"),
        );
        Self { text, code: said("code").map(|it| it.to_string()) }
    }
}

#[cfg(test)]
mod tests;
