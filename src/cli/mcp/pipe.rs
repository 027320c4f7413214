//! Posts lines to the gateway and writes its responses as lines.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use countersign_adapters::tls;
use countersign_domain::primitives::sanitize;
use countersign_domain::primitives::secret::Secret;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Client, Response, redirect};
use serde_json::Value;
use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::{AbortHandle, JoinSet};
use url::Url;

use super::message::{self, McpMessage};
use crate::cli::CliError;

/// The limit on a message. By default a gateway accepts one megabyte.
const LINE_BYTES_MAX: usize = 8 * 1024 * 1024;

/// The limit on a response: the longest state with its metadata, as JSON and again as text.
const ANSWER_BYTES_MAX: usize = 4 * LINE_BYTES_MAX;

/// The time limit for a response. It is longer than the longest wait for a decision.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(150);

/// The time limit for connecting.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(10);

/// The limit on concurrent requests: an agent's tool calls, and some that wait for reviewers. Others queue.
const AT_ONCE_MAX: usize = 32;

pub struct McpPipe {
    client: Client,
    address: Url,
    /// The protocol version from `initialize`.
    version: Mutex<Option<String>>,
    permits: Semaphore,
}

/// Returns true for localhost.
pub fn is_here(url: &Url) -> bool {
    matches!(url.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"))
}

/// Returns a client that sends the token to the gateway only.
pub fn client_of(address: &Url, token: &Secret<String>) -> Result<Client, CliError> {
    tls::ready();
    let given = |problem: &str| CliError::Given(problem.to_owned());
    let mut bearer = HeaderValue::from_str(&format!("Bearer {}", token.expose()))
        .map_err(|_| given("the token has characters that no token has"))?;
    // A sensitive header is not printed in debug output, so the token cannot reach a log.
    bearer.set_sensitive(true);
    let mut headers = HeaderMap::new();
    headers.insert(AUTHORIZATION, bearer);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
    // A redirect would send the token to another host.
    let mut client = Client::builder().default_headers(headers).redirect(redirect::Policy::none());
    if is_here(address) {
        // A proxy of the environment must not receive requests to localhost.
        client = client.no_proxy();
    }
    let client = client.timeout(ANSWER_TIME_MAX).connect_timeout(CONNECT_TIME_MAX).build();
    client.map_err(|_| given("the HTTP client cannot be set up: the system has no trusted CA certificates"))
}

impl McpPipe {
    pub fn new(address: Url, token: &Secret<String>) -> Result<Self, CliError> {
        let client = client_of(&address, token)?;
        Ok(Self { client, address, version: Mutex::new(None), permits: Semaphore::new(AT_ONCE_MAX) })
    }

    /// Forwards lines until the input ends, and waits for the open requests.
    pub async fn run(self, mut from: impl AsyncBufRead + Unpin, mut to: impl AsyncWrite + Unpin) -> io::Result<()> {
        let pipe = Arc::new(self);
        let (answers, mut told) = mpsc::channel::<Vec<u8>>(AT_ONCE_MAX);
        let reading = async move {
            let (mut asked, mut under_way) = (JoinSet::new(), HashMap::<String, AbortHandle>::new());
            while let Some(line) = next_line(&mut from, LINE_BYTES_MAX).await? {
                // Requests that have ended are removed here, so that the map does not grow during a long session.
                while let Some(done) = asked.try_join_next_with_id() {
                    let ended = done.map_or_else(|error| error.id(), |(id, ())| id);
                    under_way.retain(|_, it| it.id() != ended);
                }
                let Some(message) = read(&line, &answers).await else { continue };
                if let Some(unwanted) = message.cancels().and_then(|it| under_way.remove(&it.to_string())) {
                    // The end of the connection also ends a wait for a decision at the gateway.
                    unwanted.abort();
                }
                let id = message.id.as_ref().map(Value::to_string);
                let begins = message.begins();
                let carried = Arc::clone(&pipe).carry(line, message, answers.clone());
                if begins {
                    // Later messages need the protocol version that this one negotiates.
                    carried.await;
                } else {
                    let task = asked.spawn(carried);
                    under_way.extend(id.map(|it| (it, task)));
                }
            }
            // The client can close its input and still wait for responses.
            while asked.join_next().await.is_some() {}
            io::Result::Ok(())
        };
        let writing = async {
            while let Some(answer) = told.recv().await {
                to.write_all(&answer).await?;
                to.write_all(b"\n").await?;
                // The client waits for each line, so none may stay in a buffer.
                to.flush().await?;
            }
            io::Result::Ok(())
        };
        tokio::try_join!(reading, writing)?;
        Ok(())
    }

    /// Posts a message and forwards the response.
    async fn carry(self: Arc<Self>, line: Vec<u8>, message: McpMessage, answers: mpsc::Sender<Vec<u8>>) {
        let _permit = self.permits.acquire().await;
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
                // A notification has no ID that an error could name.
                None => return,
            },
        };
        // An error means that the client has closed standard output.
        let _ = answers.send(answer).await;
    }

    async fn post(&self, line: Vec<u8>, message: &McpMessage) -> Result<Option<Vec<u8>>, PipeError> {
        // A panic cannot leave the version half written, so a poisoned lock is still usable.
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
            // The gateway accepts notifications without a response message.
            202 => Ok(None),
            _ if message::is_message(&body) => Ok(Some(on_one_line(body))),
            _ => Err(PipeError::refused(status, &body)),
        }
    }
}

/// Parses a message. If the line is invalid, it sends an error and returns `None`.
async fn read(line: &[u8], answers: &mpsc::Sender<Vec<u8>>) -> Option<McpMessage> {
    if line.len() > LINE_BYTES_MAX {
        let _ = answers.send(message::not_read("the line is too long").into_bytes()).await;
        return None;
    }
    let message = McpMessage::read(line);
    if message.is_none() && !line.trim_ascii().is_empty() {
        let _ = answers.send(message::not_read("the line is not a JSON message").into_bytes()).await;
    }
    message
}

/// Reads the next line without its end. A line over the limit is cut right after the limit.
pub async fn next_line(from: &mut (impl AsyncBufRead + Unpin), bytes_max: usize) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    let mut bounded = from.take(bytes_max as u64 + 1);
    if bounded.read_until(b'\n', &mut line).await? == 0 {
        return Ok(None);
    }
    if line.last() == Some(&b'\n') {
        line.pop();
        return Ok(Some(line));
    }
    // The rest of the line is discarded in pieces, so that memory stays bounded.
    while line.len() > bytes_max {
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
            return Err(PipeError { text: "the gateway's response is too long".to_owned(), code: None });
        }
        body.extend_from_slice(&piece);
    }
    Ok(body)
}

/// Replaces line breaks by spaces. JSON texts escape theirs, so a raw one is only white space between tokens.
pub fn on_one_line(mut body: Vec<u8>) -> Vec<u8> {
    for byte in &mut body {
        if matches!(byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
    body
}

/// The reason that there is no response. It never contains a URL, which can contain secrets.
struct PipeError {
    text: String,
    code: Option<String>,
}

impl PipeError {
    fn away(error: &reqwest::Error) -> Self {
        let text = if error.is_timeout() {
            "the gateway did not respond in time: repeat the call"
        } else if error.is_connect() {
            "the gateway cannot be reached: check that it runs and that --gateway is its URL"
        } else {
            "the connection to the gateway broke: repeat the call"
        };
        Self { text: text.to_owned(), code: None }
    }

    /// Returns the error for a response that is not an MCP message: a problem of the gateway, or a page of another
    /// server.
    fn refused(status: u16, body: &[u8]) -> Self {
        let problem: Value = serde_json::from_slice(body).unwrap_or_default();
        let said = |name: &str| problem.get(name).and_then(Value::as_str).map(sanitize::printed);
        let text = said("detail").map_or_else(
            || format!("the server at --gateway is no gateway with MCP (status {status}): check the URL"),
            |detail| format!("the gateway refused the request: {detail}"),
        );
        Self { text, code: said("code").map(|it| it.to_string()) }
    }
}

#[cfg(test)]
mod tests;
