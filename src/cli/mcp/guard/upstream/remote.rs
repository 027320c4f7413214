//! A remote MCP server, by streamable HTTP.
//!
//! Each message of the client is a POST. Its response is one message, or a stream of messages that ends with the
//! response. In versions of the protocol with sessions, a GET stream has the messages that belong to no request.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use countersign_adapters::http_client::{HttpClient, HttpClientSettings, HttpRequest, Method, ResponseStream};
use countersign_adapters::network::Network;
use countersign_domain::delivery::failure::FailureCode;
use countersign_domain::primitives::secret::Secret;
use countersign_mcp_guard::sse::{EVENT_BYTES_MAX, SseReader};
use countersign_mcp_guard::tool_list::ToolPins;
use countersign_mcp_guard::{json_rpc, mirrored, server_message};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};
use url::Url;

use super::{QUEUED_MAX, ServerLine, Upstream};
use crate::cli::CliError;
use crate::cli::mcp::message::{McpMessage, agreed_version};
use crate::cli::mcp::pipe::on_one_line;

/// The time limit for one response. A stream without requests begins again after it.
const RESPONSE_TIME_MAX: Duration = Duration::from_secs(3600);

/// The pause before a stream begins again, unless the server asks for another one.
const RECONNECT_PAUSE: Duration = Duration::from_secs(1);

/// The longest pause that a server can ask for.
const RECONNECT_PAUSE_MAX: Duration = Duration::from_secs(60);

/// The failures in a row after which a stream is given up.
const RECONNECTS_MAX: u32 = 5;

/// The header with the id of a session.
const SESSION: &str = "mcp-session-id";

/// The header with the version of the protocol.
const VERSION: &str = "mcp-protocol-version";

/// The first version of the protocol without sessions.
const WITHOUT_SESSIONS: &str = "2026";

const TOO_LONG: &str = "It sent a message of more than 64 MiB.";
const ENDED_EARLY: &str = "Its response ended early.";

struct RemoteServer {
    client: HttpClient,
    url: Url,
    secret: Option<Secret<String>>,
    session: Mutex<HttpSession>,
    /// The tools of the server, of which some mirror arguments into headers.
    pins: Arc<ToolPins>,
    told: mpsc::Sender<ServerLine>,
}

#[derive(Clone, Default)]
struct HttpSession {
    id: Option<String>,
    version: Option<String>,
}

/// Connects to a server. `secret` is its bearer token.
pub fn start(url: Url, secret: Option<Secret<String>>, pins: Arc<ToolPins>) -> Result<Upstream, CliError> {
    // The operator names the server, so every address is allowed.
    let allowed = ["0.0.0.0/1", "128.0.0.0/1", "::/1", "8000::/1"].into_iter().filter_map(Network::parse).collect();
    let settings = HttpClientSettings { allowed, plain_http: true, timeout: RESPONSE_TIME_MAX };
    let client = HttpClient::new(settings).map_err(|error| CliError::Given(error.to_string()))?;
    let (to_server, lines) = mpsc::channel(QUEUED_MAX);
    let (told, from_server) = mpsc::channel(QUEUED_MAX);
    let server = Arc::new(RemoteServer { client, url, secret, session: Mutex::default(), pins, told });
    Ok(Upstream { to_server, from_server, running: tokio::spawn(server.run(lines)) })
}

impl RemoteServer {
    async fn run(self: Arc<Self>, mut lines: mpsc::Receiver<Vec<u8>>) -> io::Result<()> {
        let (mut posts, mut open, mut listening) = (JoinSet::new(), HashMap::<String, AbortHandle>::new(), None);
        while let Some(line) = lines.recv().await {
            while let Some(done) = posts.try_join_next_with_id() {
                let ended = done.map_or_else(|error| error.id(), |(id, ())| id);
                open.retain(|_, it| it.id() != ended);
            }
            let Some(message) = McpMessage::read(&line) else { continue };
            if let Some(id) = message.id.as_ref().filter(|_| message.method.is_some() && !message.begins()) {
                let id = id.to_string();
                open.insert(id, posts.spawn(Arc::clone(&self).post(line, message)));
                continue;
            }
            // Without a session, the end of the connection is the cancellation.
            if let Some(post) =
                message.cancels().filter(|_| !self.has_sessions()).and_then(|it| open.get(&it.to_string()))
            {
                post.abort();
                continue;
            }
            // Later messages need the session, and notifications keep their order.
            let is_ready = message.method.as_deref() == Some("notifications/initialized");
            Arc::clone(&self).post(line, message).await;
            if is_ready && listening.is_none() && self.has_sessions() {
                listening = Some(tokio::spawn(Arc::clone(&self).listen()));
            }
        }
        // The client can close its input and still wait for responses.
        while posts.join_next().await.is_some() {}
        if let Some(listening) = listening {
            listening.abort();
        }
        if self.session().id.is_some() {
            // The server ends the session by itself if this request is lost.
            let _ = self.send(Method::DELETE, None, &[]).await;
        }
        Ok(())
    }

    /// Posts a message, and passes on the messages of the response.
    async fn post(self: Arc<Self>, line: Vec<u8>, message: McpMessage) {
        let named =
            [("mcp-method", message.method.as_deref()), ("mcp-name", message.name()), (VERSION, message.version())];
        let mut headers: Vec<(String, String)> =
            named.into_iter().filter_map(|(name, value)| Some((name.to_owned(), mirrored::encoded(value?)))).collect();
        if let (Some(tool), Some(arguments)) = (message.name(), message.arguments()) {
            let mirrored = self.pins.mirrored(tool);
            headers.extend(mirrored.iter().filter_map(|it| Some((it.header.clone(), it.value(arguments)?))));
        }
        let id = message.id.as_ref().filter(|_| message.method.is_some());
        let lost = match self.send(Method::POST, Some(line), &headers).await {
            Ok(response) => {
                if message.begins() {
                    self.session().id = response.header(SESSION).map(str::to_owned);
                }
                match self.pass_on(response, id, message.begins()).await {
                    Ok(()) => return,
                    Err(why) => id.map(|id| ServerLine::Lost { id: id.clone(), why }),
                }
            }
            Err(code) => id.map(|id| {
                let why = failed(code.sentence());
                match code.may_have_arrived() {
                    true => ServerLine::Lost { id: id.clone(), why },
                    false => ServerLine::Message(json_rpc::error(id, &why)),
                }
            }),
        };
        if let Some(lost) = lost {
            let _ = self.told.send(lost).await;
        }
    }

    /// Passes on the messages of a response to a request, until its result. Fails with the reason if there is none.
    async fn pass_on(
        &self,
        response: ResponseStream,
        id: Option<&serde_json::Value>,
        begins: bool,
    ) -> Result<(), String> {
        let status = response.status();
        let is_stream =
            response.header("content-type").is_some_and(|it| it.to_ascii_lowercase().starts_with("text/event-stream"));
        if is_stream && status == 200 {
            return self.follow(response, id, begins).await;
        }
        let body = response.whole(EVENT_BYTES_MAX).await.map_err(|it| failed(it.sentence()))?;
        let body = body.ok_or_else(|| failed(TOO_LONG))?;
        match (status, McpMessage::read(&body)) {
            (200..=499, Some(_)) => {
                self.tell(body, begins).await;
                Ok(())
            }
            (202, None) => Ok(()),
            _ => Err(failed(&format!("Its response has the status {status}."))),
        }
    }

    /// Passes on the messages of a stream. A stream that ends early is continued at its last event.
    async fn follow(
        &self,
        mut response: ResponseStream,
        id: Option<&serde_json::Value>,
        begins: bool,
    ) -> Result<(), String> {
        let (mut last, mut pause, mut failures) = (None, RECONNECT_PAUSE, 0);
        loop {
            let mut reader = SseReader::default();
            while let Ok(Some(piece)) = response.chunk().await {
                for event in reader.push(&piece).map_err(|_| failed(TOO_LONG))? {
                    last = event.id.clone().or(last);
                    pause = event.retry.map_or(pause, Duration::from_millis).min(RECONNECT_PAUSE_MAX);
                    let Some(data) = event.data.filter(|it| !it.is_empty()) else { continue };
                    failures = 0;
                    let answered =
                        server_message::from_server(&data).and_then(|it| server_message::response(&it)).map(|it| it.id);
                    self.tell(data, begins).await;
                    if answered.is_some() && answered.as_ref() == id {
                        return Ok(());
                    }
                }
            }
            let Some(event) = last.clone() else { return Err(failed(ENDED_EARLY)) };
            response = loop {
                failures += 1;
                if failures > RECONNECTS_MAX {
                    return Err(failed(ENDED_EARLY));
                }
                tokio::time::sleep(pause).await;
                let continued = self.send(Method::GET, None, &[("last-event-id".to_owned(), event.clone())]).await;
                if let Ok(response) = continued
                    && response.status() == 200
                {
                    break response;
                }
            };
        }
    }

    /// Passes on the messages that belong to no request, until the session ends.
    async fn listen(self: Arc<Self>) {
        let mut failures = 0;
        while failures < RECONNECTS_MAX {
            failures += 1;
            match self.send(Method::GET, None, &[]).await {
                // Without an id, such a stream ends only by a failure.
                Ok(response) if response.status() == 200 => {
                    failures = 0;
                    let _ = self.follow(response, None, false).await;
                }
                // The server has no such stream.
                Ok(response) if response.status() < 500 => return,
                _ => {}
            }
            tokio::time::sleep(RECONNECT_PAUSE).await;
        }
    }

    async fn send(
        &self,
        method: Method,
        body: Option<Vec<u8>>,
        extra: &[(String, String)],
    ) -> Result<ResponseStream, FailureCode> {
        let HttpSession { id, version } = self.session().clone();
        let mut headers: Vec<(String, Secret<String>)> = Vec::new();
        let mut put = |name: &str, value: String| headers.push((name.to_owned(), Secret::new(value)));
        put(
            "accept",
            if method == Method::GET { "text/event-stream" } else { "application/json, text/event-stream" }.to_owned(),
        );
        if body.is_some() {
            put("content-type", "application/json".to_owned());
        }
        let version = version.filter(|_| extra.iter().all(|it| it.0 != VERSION));
        for (name, value) in [(SESSION, id), (VERSION, version)] {
            if let Some(value) = value {
                put(name, value);
            }
        }
        for (name, value) in extra {
            put(name, value.clone());
        }
        if let Some(secret) = &self.secret {
            put("authorization", format!("Bearer {}", secret.expose()));
        }
        let request = HttpRequest { method, url: &self.url, headers: &headers, body };
        self.client.stream(request, RESPONSE_TIME_MAX).await
    }

    async fn tell(&self, message: Vec<u8>, begins: bool) {
        if begins && let Some(version) = agreed_version(&message) {
            self.session().version = Some(version);
        }
        // Without a receiver the session is over.
        let _ = self.told.send(ServerLine::Message(on_one_line(message))).await;
    }

    fn has_sessions(&self) -> bool {
        self.session().version.as_deref().is_some_and(|it| it < WITHOUT_SESSIONS)
    }

    fn session(&self) -> MutexGuard<'_, HttpSession> {
        // A panic cannot leave the session half written, so a poisoned lock is still usable.
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn failed(why: &str) -> String {
    format!("The MCP server did not answer this request. {why}")
}
