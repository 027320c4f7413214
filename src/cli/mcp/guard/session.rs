//! One session: forwards messages between client and server, and each call once it is approved.

use std::io::{self, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use countersign_mcp_guard::json_rpc;
use countersign_mcp_guard::message::{self, ClientMessage, MESSAGE_BYTES_MAX, RefusedMessage, ToolRequest};
use countersign_mcp_guard::open_calls::{CallEnd, CallProgress, CancelledCall, ForwardedCall, OpenCalls};
use countersign_mcp_guard::review_link::{self, LinkSupport};
use countersign_mcp_guard::server_message::{self, ServerResponse};
use countersign_mcp_guard::task_guard::TaskVerdict;
use countersign_mcp_guard::task_request::{self, TaskRequest};
use countersign_mcp_guard::tool_guard::{CallVerdict, ToolGuard};
use serde_json::Value;
use tokio::io::{AsyncBufRead, BufReader};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;

use super::approvals::GatewayApprovals;
use super::upstream::child::write_lines;
use super::upstream::{QUEUED_MAX, ServerLine, Upstream};
use crate::cli::CommandExit;
use crate::cli::mcp::pipe::next_line;

/// A client with its server.
pub struct GuardSession {
    guard: ToolGuard<GatewayApprovals>,
    calls: OpenCalls,
    /// Whether the client can show links. It says so when the session begins.
    links: AtomicBool,
    /// Whether the client supports tasks. It says so when it asks for the capabilities of the server.
    has_tasks: AtomicBool,
}

/// The two directions of a session.
#[derive(Clone)]
struct Lines {
    to_client: mpsc::Sender<Vec<u8>>,
    to_server: mpsc::Sender<Vec<u8>>,
}

impl GuardSession {
    pub fn new(guard: ToolGuard<GatewayApprovals>) -> Self {
        Self { guard, calls: OpenCalls::default(), links: AtomicBool::default(), has_tasks: AtomicBool::default() }
    }

    /// Runs until the client or the server ends.
    pub async fn run(self, upstream: Upstream) -> io::Result<CommandExit> {
        let Upstream { to_server, from_server, running } = upstream;
        let session = Arc::new(self);
        let (to_client, client_lines) = mpsc::channel(QUEUED_MAX);
        let writing = tokio::spawn(write_lines(tokio::io::stdout(), client_lines));
        let mut answering = tokio::spawn(Arc::clone(&session).listen_to_server(from_server, to_client.clone()));
        let lines = Lines { to_client, to_server };
        let asking = Arc::clone(&session).listen_to_client(BufReader::new(tokio::io::stdin()), lines.clone());
        let exit = tokio::select! {
            asked = asking => {
                asked?;
                CommandExit::Yes
            }
            _ = &mut answering => {
                session.end_calls(&lines).await;
                CommandExit::No
            }
        };
        // Without senders, the server ends.
        drop(lines);
        running.await.map_err(io::Error::other)??;
        if exit == CommandExit::Yes {
            // The server's last responses and their outcomes.
            let _ = answering.await;
        }
        drop(session);
        let _ = writing.await;
        Ok(exit)
    }

    async fn listen_to_client(self: Arc<Self>, mut from: impl AsyncBufRead + Unpin, lines: Lines) -> io::Result<()> {
        let mut tasks = JoinSet::new();
        while let Some(line) = next_line(&mut from, MESSAGE_BYTES_MAX).await? {
            if line.trim_ascii().is_empty() {
                continue;
            }
            while tasks.try_join_next().is_some() {}
            let message = message::read(&line);
            let line = message::rewritten(&line).unwrap_or_default();
            match message {
                Ok(ClientMessage::Call(mut request)) => {
                    if request.link == LinkSupport::No && self.links.load(Ordering::Relaxed) {
                        request.link = LinkSupport::Error;
                    }
                    let name = request.id.to_string();
                    match self.calls.begin(&name) {
                        Some(stop) => drop(tasks.spawn(Arc::clone(&self).decide(request, stop, lines.clone()))),
                        None => {
                            let why = "another call with this id is not finished";
                            let _ =
                                lines.to_client.send(message::refusal(&RefusedMessage { id: Some(name), why })).await;
                        }
                    }
                }
                Ok(ClientMessage::Cancel(id)) => match self.calls.cancel(&id.to_string()) {
                    CancelledCall::Waiting => {}
                    CancelledCall::NoCall => drop(lines.to_server.send(line).await),
                    CancelledCall::Sent(sent) => {
                        let _ = lines.to_server.send(line).await;
                        let session = Arc::clone(&self);
                        tasks.spawn(async move {
                            session
                                .guard
                                .report_failure(&sent.request, "cancelled by the client while the call ran")
                                .await;
                        });
                    }
                },
                Ok(ClientMessage::Task(request)) => {
                    drop(tasks.spawn(Arc::clone(&self).answer_task(request, lines.clone())));
                }
                Ok(ClientMessage::Other) => {
                    self.note_capabilities(&line);
                    let _ = lines.to_server.send(line).await;
                }
                Err(refused) => drop(lines.to_client.send(message::refusal(&refused)).await),
            }
        }
        // The client can close its input and still wait for responses.
        while tasks.join_next().await.is_some() {}
        Ok(())
    }

    /// Notes how the client can be answered while a call waits.
    fn note_capabilities(&self, line: &[u8]) {
        let message: Value = serde_json::from_slice(line).unwrap_or_default();
        self.links.fetch_or(review_link::begins_with_links(&message), Ordering::Relaxed);
        self.has_tasks.fetch_or(task_request::is_discovery(&message), Ordering::Relaxed);
    }

    async fn listen_to_server(self: Arc<Self>, mut from: mpsc::Receiver<ServerLine>, to_client: mpsc::Sender<Vec<u8>>) {
        let mut reports = JoinSet::new();
        while let Some(line) = from.recv().await {
            while reports.try_join_next().is_some() {}
            let line = match line {
                ServerLine::Message(line) => line,
                ServerLine::Lost { id, why } => {
                    // Without a report, the gateway records the outcome as unknown after the lease.
                    let end = self.calls.end(&id.to_string());
                    if !matches!(end, CallEnd::Sent(sent) if self.guard.tasks.fail(&sent.request, &why)) {
                        let _ = to_client.send(json_rpc::error(&id, &why)).await;
                    }
                    continue;
                }
            };
            let Some(mut message) = server_message::from_server(&line) else {
                // Some servers print other lines too.
                continue;
            };
            if let Some(response) = server_message::response(&message) {
                match self.calls.end(&response.id.to_string()) {
                    // The server has not got this call.
                    CallEnd::NotSent => continue,
                    CallEnd::Sent(sent) => {
                        let asked = sent.request.clone();
                        if !response.result.is_final() {
                            // The client can continue the call at once.
                            self.guard.report(&sent, &response.result).await;
                        }
                        let is_of_task = self.guard.tasks.record(&asked, &message, &response.result);
                        if response.result.is_final() {
                            drop(reports.spawn(Arc::clone(&self).report(sent, response)));
                        }
                        if is_of_task {
                            continue;
                        }
                    }
                    CallEnd::NoCall => {}
                }
            }
            if self.has_tasks.load(Ordering::Relaxed) {
                server_message::offer_tasks(&mut message);
            }
            let shown = self.guard.shown(message).await;
            if let Some(warning) = shown.warning {
                let _ = writeln!(io::stderr(), "countersign: {warning}");
            }
            let _ = to_client.send(shown.line).await;
        }
        while reports.join_next().await.is_some() {}
    }

    async fn report(self: Arc<Self>, sent: ForwardedCall, response: ServerResponse) {
        self.guard.report(&sent, &response.result).await;
    }

    /// Gets the approval of a call and forwards the call, or returns the reason why it does not run to the client.
    async fn decide(self: Arc<Self>, request: ToolRequest, stop: Arc<Notify>, lines: Lines) {
        let name = request.id.to_string();
        match self.guard.decide(&request, &stop).await {
            CallVerdict::Run { sent, arguments } => {
                self.calls.sent(name, sent);
                let _ = lines.to_server.send(request.with(&arguments)).await;
            }
            CallVerdict::NotRun(response) => {
                self.calls.remove(&name);
                let _ = lines.to_client.send(response).await;
            }
            CallVerdict::Withdrawn => self.calls.remove(&name),
        }
    }

    /// Answers a request about a task. If its call may run, forwards the call afterwards.
    async fn answer_task(self: Arc<Self>, request: TaskRequest, lines: Lines) {
        match self.guard.task(&request).await {
            TaskVerdict::Answer(_, response) => drop(lines.to_client.send(response).await),
            TaskVerdict::Run { response, call } => {
                let _ = lines.to_client.send(response).await;
                self.calls.sent(call.request.id.to_string(), call.sent);
                let _ = lines.to_server.send(call.request.with(&call.arguments)).await;
            }
        }
    }

    /// Answers the calls that the server has not answered before it ended.
    async fn end_calls(&self, lines: &Lines) {
        for (name, progress) in self.calls.take() {
            let why = match progress {
                CallProgress::Waiting { .. } => "the server has ended; the call was not run",
                CallProgress::Sent(_) => "the server ended before it answered; whether the call ran is unknown",
            };
            let id = serde_json::from_str::<Value>(&name).unwrap_or_default();
            let _ = lines.to_client.send(json_rpc::error(&id, why)).await;
        }
    }
}
