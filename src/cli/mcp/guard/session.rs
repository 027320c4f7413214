//! One session: forwards messages between client and server, and each call once it is approved.

use std::collections::BTreeSet;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use countersign_adapters::clock::{Clock as _, SystemClock};
use countersign_domain::primitives::id::ToolName;
use serde_json::{Value, json};
use tokio::io::{AsyncBufRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;

use super::approvals::{Approval, ApprovalFailure, Approvals};
use super::call::{self, ClientMessage, MESSAGE_BYTES_MAX, ToolRequest};
use super::open_calls::{CallEnd, CallProgress, OpenCalls};
use super::open_requests::{ClaimedKey, OpenRequests};
use super::tool_list::{ToolList, ToolPins};
use super::upstream::{self, Upstream};
use crate::cli::CommandExit;
use crate::cli::mcp::pipe::next_line;

/// Messages that may wait for a slow reader.
const QUEUED_MAX: usize = 64;

/// The limit on a message of the server.
const RESULT_BYTES_MAX: usize = 64 * 1024 * 1024;

/// The time that an instance asks reviewers to decide in. The policy's own time is the limit.
const TIMEOUT: &str = "24h";

/// The longest time for the use of an approval. It is far below the lease of a write.
const CONSUME_TIME_MAX: Duration = Duration::from_secs(5);

/// The status of a request without a decision.
const PENDING_STATUS: &str = "pending";

const EXPIRED: &str = "The approval expired before the call could run, so it was not run.";
const CHANGED: &str =
    "The server has changed the description of this tool since it was first seen, so the call was not run.";
const UNAVAILABLE: &str = "The approval gateway cannot be reached, so the call was not run. Tell your user.";
const PENDING: &str = "This call waits for the approval of a reviewer and was not run. Call the same tool again with exactly \
    the same arguments to wait for the decision.";

/// The parts of a session that decide about calls.
pub struct GuardSession {
    approvals: Approvals,
    open: OpenRequests,
    pins: ToolPins,
    /// The requests for lists of tools that the server has not answered.
    lists: Mutex<BTreeSet<String>>,
    /// The name of the server, before the names of its tools in policies.
    server: Option<String>,
    /// The time for which a call waits for a decision.
    wait: Duration,
    calls: OpenCalls,
}

/// The two directions of a session.
#[derive(Clone)]
struct Lines {
    to_client: mpsc::Sender<Vec<u8>>,
    to_server: mpsc::Sender<Vec<u8>>,
}

impl GuardSession {
    pub fn new(
        approvals: Approvals,
        open: OpenRequests,
        pins: ToolPins,
        server: Option<String>,
        wait: Duration,
    ) -> Self {
        Self { approvals, open, pins, lists: Mutex::default(), server, wait, calls: OpenCalls::default() }
    }

    /// Runs until the client or the server ends.
    pub async fn run(self, upstream: Upstream) -> io::Result<CommandExit> {
        let Upstream { process, input, output } = upstream;
        let session = Arc::new(self);
        let (to_client, client_lines) = mpsc::channel(QUEUED_MAX);
        let (to_server, server_lines) = mpsc::channel(QUEUED_MAX);
        let lines = Lines { to_client, to_server };
        let writing_client = tokio::spawn(write_lines(tokio::io::stdout(), client_lines));
        let writing_server = tokio::spawn(write_lines(input, server_lines));
        let asking = Arc::clone(&session).listen_to_client(BufReader::new(tokio::io::stdin()), lines.clone());
        let answering = Arc::clone(&session).listen_to_server(BufReader::new(output), lines.clone());
        let mut answering = tokio::spawn(answering);
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
        // Closes the server's input, so that it ends.
        drop(lines);
        let _ = writing_server.await;
        upstream::end(process).await?;
        if exit == CommandExit::Yes {
            // The server's last responses and their outcomes.
            let _ = answering.await;
        }
        drop(session);
        let _ = writing_client.await;
        Ok(exit)
    }

    async fn listen_to_client(self: Arc<Self>, mut from: impl AsyncBufRead + Unpin, lines: Lines) -> io::Result<()> {
        let mut tasks = JoinSet::new();
        while let Some(line) = next_line(&mut from, MESSAGE_BYTES_MAX).await? {
            if line.trim_ascii().is_empty() {
                continue;
            }
            while tasks.try_join_next().is_some() {}
            let message = call::read(&line);
            let line = call::rewritten(&line).unwrap_or_default();
            match message {
                Ok(ClientMessage::Call(request)) => {
                    let name = request.id.to_string();
                    match self.calls.begin(&name) {
                        Some(stop) => drop(tasks.spawn(Arc::clone(&self).decide(request, stop, lines.clone()))),
                        None => {
                            let why = "another call with this id is not finished";
                            let refused = call::RefusedMessage { id: Some(name), why };
                            let _ = lines.to_client.send(call::refusal(&refused)).await;
                        }
                    }
                }
                Ok(ClientMessage::ListTools(id)) => {
                    self.lists().insert(id.to_string());
                    let _ = lines.to_server.send(line).await;
                }
                Ok(ClientMessage::Cancel(id)) if self.calls.stop(&id.to_string()) => {}
                Ok(ClientMessage::Cancel(_) | ClientMessage::Other) => {
                    let _ = lines.to_server.send(line).await;
                }
                Err(refused) => {
                    let _ = lines.to_client.send(call::refusal(&refused)).await;
                }
            }
        }
        // The client can close its input and still wait for responses.
        while tasks.join_next().await.is_some() {}
        Ok(())
    }

    async fn listen_to_server(self: Arc<Self>, mut from: impl AsyncBufRead + Unpin, lines: Lines) -> io::Result<()> {
        let Lines { to_client, to_server } = lines;
        // Otherwise the server's input would never be closed.
        drop(to_server);
        let mut reports = JoinSet::new();
        while let Some(line) = next_line(&mut from, RESULT_BYTES_MAX).await? {
            // A part of a message would be another message. Without it the client would wait forever.
            if line.len() > RESULT_BYTES_MAX {
                return Err(io::Error::other("the server sent a message of more than 64 MiB"));
            }
            let response = call::response(&line);
            let is_list = response.as_ref().is_some_and(|it| self.lists().remove(&it.id.to_string()));
            let line = if is_list { self.listed(line).await } else { line };
            let ended = response.as_ref().map(|it| self.calls.end(&it.id.to_string()));
            match (ended, response) {
                // The server has not got this call.
                (Some(CallEnd::NotSent), _) => continue,
                (Some(CallEnd::Sent(request)), Some(response)) => {
                    let session = Arc::clone(&self);
                    reports.spawn(async move {
                        let note = format!("result {}", response.digest);
                        // Without the report, the gateway records the outcome as unknown after the lease.
                        let _ = session.approvals.report(&request, response.succeeded, &note).await;
                    });
                }
                _ => {}
            }
            let _ = to_client.send(line).await;
        }
        while reports.join_next().await.is_some() {}
        Ok(())
    }

    /// Gets the approval of a call and forwards the call, or returns the reason why it does not run to the client.
    async fn decide(self: Arc<Self>, request: ToolRequest, stop: Arc<Notify>, lines: Lines) {
        let name = request.id.to_string();
        let body = self.submission(&request);
        let mut claimed = self.open.claim(&request.name, &request.arguments);
        let decided = tokio::select! {
            decided = self.approved(&request, &body, &mut claimed) => Some(decided),
            () = stop.notified() => None,
        };
        match decided {
            Some(Ok(approval)) => {
                self.calls.sent(name, approval.id.clone());
                let _ = lines.to_server.send(request.with(&approval.arguments)).await;
            }
            Some(Err(why)) => {
                self.calls.remove(&name);
                let _ = lines.to_client.send(request.not_run(&why)).await;
            }
            None => {
                self.calls.remove(&name);
                claimed.delete();
                self.withdraw(&claimed.key, &body).await;
            }
        }
    }

    /// Returns a response to `tools/list` with the tools that the policy allows.
    async fn listed(&self, line: Vec<u8>) -> Vec<u8> {
        let Some(list) = ToolList::read(&line) else { return line };
        let mut names = list.unchanged(&self.pins);
        // No policy can name other tools, so no call of them is allowed.
        names.retain(|it| ToolName::try_from(self.full_name(it)).is_ok());
        let full: Vec<String> = names.iter().map(|it| self.full_name(it)).collect();
        match self.approvals.callable(&full).await {
            Ok(callable) => {
                let allowed = names.into_iter().zip(full).filter(|(_, full)| callable.contains(full));
                list.only(&allowed.map(|(name, _)| name).collect())
            }
            Err(failure) => list.refused(&words(&failure)),
        }
    }

    /// Returns the name of a tool in policies.
    fn full_name(&self, tool: &str) -> String {
        self.server.as_ref().map_or_else(|| tool.to_owned(), |server| format!("{server}:{tool}"))
    }

    fn lists(&self) -> MutexGuard<'_, BTreeSet<String>> {
        // A panic cannot leave the set half changed, so a poisoned lock is still usable.
        self.lists.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn submission(&self, request: &ToolRequest) -> Value {
        let mut body = json!({"tool": request.name, "arguments": request.arguments, "timeout": TIMEOUT});
        if let Some(server) = &self.server {
            body["server"] = json!(server);
        }
        body
    }

    /// Cancels the request of a call that the client does not want any more. The call has not run.
    async fn withdraw(&self, key: &str, body: &Value) {
        let Ok(asked) = self.approvals.ask(key, body).await else { return };
        if self.approvals.cancel(&asked.id).await.is_err() {
            // The approval may be in use already.
            let _ = self.approvals.report(&asked.id, false, "cancelled by the client before the call ran").await;
        }
    }

    /// Returns the used approval of a call, or the reason for the model why there is none.
    async fn approved(
        &self,
        request: &ToolRequest,
        body: &Value,
        claimed: &mut ClaimedKey<'_>,
    ) -> Result<Approval, String> {
        if self.pins.is_changed(&request.name) {
            let file = self.pins.file().map_or_else(String::new, |it| format!(" from {}", it.display()));
            return Err(format!("{CHANGED} To accept it, an operator removes the tool{file} and starts again."));
        }
        loop {
            let asked = self.approvals.ask(&claimed.key, body).await.map_err(|it| words(&it))?;
            // The gateway returns what it was sent. Anything else would be another call.
            if asked.arguments != request.arguments {
                return Err(UNAVAILABLE.to_owned());
            }
            match self.used(claimed, asked).await {
                // An earlier call used the approval, or it expired. This call asks again.
                Err(NoApproval::Stale) if claimed.is_again => claimed.renew(),
                Err(NoApproval::Stale) => return Err(EXPIRED.to_owned()),
                Err(NoApproval::Because(why)) => return Err(why),
                Ok(approval) => return Ok(approval),
            }
        }
    }

    /// Waits for the decision and uses the approval.
    async fn used(&self, claimed: &ClaimedKey<'_>, asked: Approval) -> Result<Approval, NoApproval> {
        let failed = |it: ApprovalFailure| NoApproval::Because(words(&it));
        let (begun, mut approval) = (SystemClock.instant(), asked);
        if approval.status == PENDING_STATUS {
            // Stored before the wait, so that a restart finds the request.
            claimed.keep();
        }
        while approval.status == PENDING_STATUS && begun.elapsed() < self.wait {
            let left = self.wait.saturating_sub(begun.elapsed());
            approval = self.approvals.read(&approval.id, left).await.map_err(failed)?;
        }
        if approval.status == PENDING_STATUS {
            return Err(NoApproval::Because(PENDING.to_owned()));
        }
        // The request is decided, so no later call waits for it.
        claimed.delete();
        if let Some(why) = refused(&approval) {
            return Err(why);
        }
        let begun = SystemClock.instant();
        match self.approvals.consume(&approval.id).await {
            // The lease may be over, and the outcome is then for an administrator to find out.
            Ok(used) if begun.elapsed() > CONSUME_TIME_MAX => {
                let _ = self.approvals.report(&used.id, false, "the approval arrived too late to run the call").await;
                Err(NoApproval::Because(EXPIRED.to_owned()))
            }
            Ok(used) if used.consumption.is_some() && used.arguments == approval.arguments => Ok(used),
            Ok(_) => Err(NoApproval::Because(UNAVAILABLE.to_owned())),
            Err(ApprovalFailure::Refused { code, .. }) if is_stale(&code) => Err(NoApproval::Stale),
            Err(other) => Err(failed(other)),
        }
    }

    /// Answers the calls that the server has not answered before it ended.
    async fn end_calls(&self, lines: &Lines) {
        for (name, progress) in self.calls.take() {
            let why = match progress {
                CallProgress::Waiting { .. } => "the server has ended; the call was not run",
                CallProgress::Sent { .. } => "the server ended before it answered; whether the call ran is unknown",
            };
            let id = serde_json::from_str::<Value>(&name).unwrap_or_default();
            let error = json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32000, "message": why}});
            let _ = lines.to_client.send(error.to_string().into_bytes()).await;
        }
    }
}

/// Why a call has no approval that can be used.
enum NoApproval {
    /// The approval was used before, or has expired.
    Stale,
    /// The reason for the model.
    Because(String),
}

/// Returns why a decided request cannot be used.
fn refused(approval: &Approval) -> Option<NoApproval> {
    let note = approval.decision.as_ref().and_then(|it| it.note.as_deref());
    Some(match (approval.status.as_str(), note) {
        ("approved", _) if approval.consumption.is_none() => return None,
        ("approved" | "expired", _) => NoApproval::Stale,
        ("denied", Some(note)) => NoApproval::Because(format!("This call was denied and was not run: {note}")),
        ("denied", None) => NoApproval::Because("This call was denied and was not run.".to_owned()),
        _ => NoApproval::Because("The request was cancelled, so the call was not run.".to_owned()),
    })
}

fn is_stale(code: &str) -> bool {
    matches!(code, "approval_expired" | "already_consumed")
}

fn words(failure: &ApprovalFailure) -> String {
    match failure {
        ApprovalFailure::Refused { message, .. } => {
            format!("The approval gateway refused this call, so it was not run: {message}")
        }
        ApprovalFailure::Unavailable => UNAVAILABLE.to_owned(),
    }
}

async fn write_lines(mut to: impl AsyncWrite + Unpin, mut lines: mpsc::Receiver<Vec<u8>>) -> io::Result<()> {
    while let Some(mut line) = lines.recv().await {
        line.push(b'\n');
        to.write_all(&line).await?;
        // The reader waits for each line, so none may stay in a buffer.
        to.flush().await?;
    }
    Ok(())
}
