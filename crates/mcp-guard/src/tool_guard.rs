//! Decides about tool calls of one caller at one server.

use std::sync::Arc;
use std::time::{Duration, Instant};

use countersign_adapters::clock::{Clock as _, SystemClock};
use countersign_adapters::random;
use countersign_domain::chain::hash::Digest;
use countersign_domain::json::canonical::canonical;
use countersign_domain::primitives::id::ToolName;
use serde_json::{Map, Value, json};
use tokio::sync::Notify;

use crate::approvals::{AllowedTools, Approval, ApprovalFailure, ApprovalStatus, Approvals, AskedCall, UsedApproval};
use crate::continuations::Continuations;
use crate::message::ToolRequest;
use crate::not_run::{self, CANCELLED, CHANGED, UNAVAILABLE, UNDECIDED, denial};
use crate::open_calls::ForwardedCall;
use crate::server_message::{self, CallResult};
use crate::task_runs::TaskRuns;
use crate::tool_list::{ToolList, ToolPins};

/// The time that an instance asks reviewers to decide in. The policy's own time is the limit.
const TIMEOUT: &str = "24h";

/// How often a call asks again because an equal call was faster to use the approval.
const LOST_MAX: usize = 10;

const EXPIRED: &str = "The approval expired before the call could run, so it was not run.";
const NOT_CONTINUED: &str = "The server did not ask for this input, or the call is not known any more, so it was not run. Call the tool \
    again without `inputResponses` and `requestState`.";
const UNNAMED: &str = "Policies take the text before `:` in a tool's name as the name of its server, and this guard has none, so the call was not run. \
    Tell your user to start the guard with `--name`.";
const RESTARTS: &str = " and starts the guard again.";

/// The decision on a call.
#[derive(Debug)]
pub enum CallVerdict {
    /// The call may run now, once, with the arguments of the used approval.
    Run { sent: ForwardedCall, arguments: Map<String, Value> },
    /// The call does not run. The response to the client says why.
    NotRun(Vec<u8>),
    /// The client does not want the call any more. Its request is cancelled.
    Withdrawn,
}

/// A message of the server as the client gets it.
pub struct ShownMessage {
    pub line: Vec<u8>,
    /// A mistake in the policy that an operator should know of.
    pub warning: Option<String>,
}

/// The guard of the calls of one caller at one server.
pub struct ToolGuard<A> {
    pub approvals: A,
    pub pins: Arc<ToolPins>,
    pub continuations: Arc<Continuations>,
    pub tasks: Arc<TaskRuns>,
    /// The name of the server, before the names of its tools in policies.
    pub server: Option<String>,
    /// Keeps the calls of one caller apart from those of others.
    pub caller: String,
    /// The time for which a call waits for a decision.
    pub wait: Duration,
}

impl<A: Approvals> ToolGuard<A> {
    /// Gets the approval of a call and uses it, unless the client stops the call before.
    pub async fn decide(&self, request: &ToolRequest, stop: &Notify) -> CallVerdict {
        let name = self.call_name(request);
        if let Some(continued) = &request.continued {
            let sent = self.continuations.take(&name, continued.state.as_deref());
            return match sent.filter(|it| it.change == self.pins.change(&request.name)) {
                Some(sent) => CallVerdict::Run { sent, arguments: request.arguments.clone() },
                None => CallVerdict::NotRun(request.not_run(NOT_CONTINUED)),
            };
        }
        if !self.is_own(&request.name) {
            return CallVerdict::NotRun(request.not_run(UNNAMED));
        }
        let call = AskedCall {
            tool: request.name.clone(),
            server: self.server.clone(),
            arguments: request.arguments.clone(),
            timeout: TIMEOUT,
            change: self.pins.change(&request.name),
        };
        let until = SystemClock.instant() + self.wait;
        for _ in 0..LOST_MAX {
            let key = random::uuid_v4().to_string();
            let approved = tokio::select! {
                approved = self.approved(&key, &call, request, until) => approved,
                () = stop.notified() => {
                    self.withdraw(&key, &call).await;
                    return CallVerdict::Withdrawn;
                }
            };
            // The use is not stopped half-way, so that its outcome is known.
            let used = match approved {
                Ok(_) if self.pins.change(&request.name) != call.change => Err(NoApproval::Because(CHANGED.to_owned())),
                Ok(approval) => self.used(&approval).await,
                Err(why) => Err(why),
            };
            match used {
                Ok(UsedApproval { approval, .. }) if is_stopped(stop).await => {
                    self.report_failure(&approval.id, CANCELLED).await;
                    return CallVerdict::Withdrawn;
                }
                Ok(UsedApproval { approval, lease }) => {
                    let until = SystemClock.instant() + lease;
                    let sent = ForwardedCall { request: approval.id, call: name, change: call.change.clone(), until };
                    return CallVerdict::Run { sent, arguments: approval.arguments };
                }
                Err(NoApproval::Used) => {}
                Err(NoApproval::Pending(asked)) => return CallVerdict::NotRun(request.pending(&asked)),
                Err(NoApproval::NotNow(why) | NoApproval::Because(why)) => {
                    return CallVerdict::NotRun(request.not_run(&why));
                }
                Err(NoApproval::Unreachable) => return CallVerdict::NotRun(request.not_run(UNAVAILABLE)),
            }
        }
        CallVerdict::NotRun(request.not_run(EXPIRED))
    }

    /// Reports the outcome of a call. Without it, the gateway records the outcome as unknown after the lease.
    pub async fn report(&self, sent: &ForwardedCall, result: &CallResult) {
        match result {
            CallResult::Ended { succeeded, digest } => {
                let note = format!("result {digest}");
                let _ = self.approvals.report(&sent.request, *succeeded, &note).await;
            }
            CallResult::InputRequired { state } => {
                self.continuations.put(sent, state.as_deref());
            }
            CallResult::Unknown => {}
        }
    }

    /// Reports that a call failed. It may have had a part of its effect.
    pub async fn report_failure(&self, request: &str, why: &str) {
        let _ = self.approvals.report(request, false, why).await;
    }

    /// Returns a message of the server as it is passed on. A list of tools has only those that the policy allows.
    pub async fn shown(&self, message: Value) -> ShownMessage {
        let list = match ToolList::of(message) {
            Ok(list) => list,
            Err(other) => return ShownMessage { line: server_message::line_of(&other), warning: None },
        };
        let mut names = list.pinned(&self.pins);
        // No policy can name other tools, so no call of them is allowed.
        names.retain(|it| self.is_own(it) && ToolName::try_from(self.full_name(it)).is_ok());
        let full: Vec<String> = names.iter().map(|it| self.full_name(it)).collect();
        match self.approvals.callable(&full).await {
            Ok(allowed) => {
                let is_shown = |name: &str| allowed.holds_changed || !self.pins.is_changed(name);
                let shown =
                    names.into_iter().zip(full).filter(|(name, full)| allowed.names.contains(full) && is_shown(name));
                let warning = self.warning(&allowed, &list);
                let line = list.only(&shown.map(|(name, _)| name).collect(), &self.pins);
                ShownMessage { line, warning }
            }
            Err(failure) => ShownMessage { line: list.refused(&not_run::failure(&failure)), warning: None },
        }
    }

    /// Returns what an operator should check about the names of tools in the policy. A misspelt name holds no call.
    fn warning(&self, allowed: &AllowedTools, list: &ToolList) -> Option<String> {
        if let (true, Some(first)) = (allowed.names.is_empty(), list.first()) {
            let first = self.full_name(first);
            return Some(format!(
                "the policy allows no tool of this server, such as `{first}`. Compare `--name` with the names in `[tools]`"
            ));
        }
        let server = self.server.as_ref().map_or_else(String::new, |it| format!("{it}:"));
        let is_unknown = |it: &&String| !self.pins.is_known(it.strip_prefix(&server).unwrap_or(it));
        let unknown: Vec<_> = allowed.missing.iter().filter(is_unknown).map(|it| format!("`{it}`")).collect();
        let is_told = list.is_last() && !unknown.is_empty();
        is_told.then(|| {
            let names = unknown.join(", ");
            format!(
                "the policy names {names}, and the server has no such tool. A rule with a misspelt name holds no call"
            )
        })
    }

    /// Returns the name of a call. Equal calls of one caller have equal names.
    pub(crate) fn call_name(&self, request: &ToolRequest) -> String {
        let call = json!([self.caller, request.name, request.arguments]);
        Digest::of_file(canonical(&call).as_bytes()).to_string()
    }

    /// Returns whether a tool belongs to this server. Without a name, a server could choose the names of another server's
    /// tools.
    fn is_own(&self, tool: &str) -> bool {
        self.server.is_some() || !tool.contains(':')
    }

    /// Returns the name of a tool in policies.
    fn full_name(&self, tool: &str) -> String {
        self.server.as_ref().map_or_else(|| tool.to_owned(), |server| format!("{server}:{tool}"))
    }

    /// Cancels the request of a call that the client does not want any more. An equal call that waits for it asks again.
    async fn withdraw(&self, key: &str, call: &AskedCall) {
        if let Ok(asked) = self.approvals.ask(key, call).await {
            // An approval that came first is left for an equal call, and expires without one.
            let _ = self.approvals.cancel(&asked.id).await;
        }
    }

    /// Asks for the approval of a call, and waits for it.
    async fn approved(
        &self,
        key: &str,
        call: &AskedCall,
        request: &ToolRequest,
        until: Instant,
    ) -> Result<Approval, NoApproval> {
        let mut approval = self.approvals.ask(key, call).await.map_err(|it| because(&it))?;
        while approval.status == ApprovalStatus::Pending {
            let left = until.saturating_duration_since(SystemClock.instant());
            if left.is_zero() || request.has_tasks || request.link.asks_first(&approval) {
                return Err(NoApproval::Pending(Box::new(approval)));
            }
            approval = self.approvals.read(&approval.id, left).await.map_err(|it| because(&it))?;
        }
        // The gateway returns what it was sent. Anything else would be another call.
        if approval.arguments != call.arguments || approval.tool != call.tool || approval.server != call.server {
            return Err(NoApproval::Unreachable);
        }
        match refused(&approval) {
            Some(NoApproval::Because(why)) if call.change.is_some() => {
                let file = self.pins.file().map_or_else(String::new, |it| format!(" from {}", it.display()));
                Err(NoApproval::Because(format!(
                    "{why}. To accept the definition, an operator removes the tool{file}{RESTARTS}"
                )))
            }
            Some(why) => Err(why),
            None => Ok(approval),
        }
    }

    /// Uses an approval.
    pub(crate) async fn used(&self, approval: &Approval) -> Result<UsedApproval, NoApproval> {
        let begun = SystemClock.instant();
        match self.approvals.consume(approval).await {
            // The call needs the rest of the lease. After it, an administrator must find out the outcome.
            Ok(used) if begun.elapsed() > used.lease / 2 => {
                self.report_failure(&approval.id, "the approval arrived too late to run the call").await;
                Err(NoApproval::Because(EXPIRED.to_owned()))
            }
            Ok(used) if used.approval.is_used() && used.approval.arguments == approval.arguments => Ok(used),
            Ok(_) => Err(NoApproval::Unreachable),
            Err(ApprovalFailure::Refused { code, .. }) if code == "already_consumed" => Err(NoApproval::Used),
            Err(ApprovalFailure::Refused { code, .. }) if code == "approval_expired" => {
                Err(NoApproval::Because(EXPIRED.to_owned()))
            }
            Err(halted @ ApprovalFailure::Refused { .. }) if halted.code() == Some("halted") => {
                Err(NoApproval::NotNow(not_run::failure(&halted)))
            }
            // If the answer was lost, the approval can be in use, by this call or by an equal one. Its outcome is then
            // unknown after the lease.
            Err(other) => Err(because(&other)),
        }
    }
}

/// Why a call has no approval that can be used.
pub(crate) enum NoApproval {
    /// An equal call was faster, so this call asks again.
    Used,
    /// Reviewers have not decided yet.
    Pending(Box<Approval>),
    /// The reason for the model.
    Because(String),
    /// The reason for the model. The approval stays valid and can be used later.
    NotNow(String),
    /// The gateway cannot be reached. The approval may have been used.
    Unreachable,
}

/// Returns why a decided request cannot be used.
fn refused(approval: &Approval) -> Option<NoApproval> {
    let because = |why: &str| Some(NoApproval::Because(why.to_owned()));
    match (approval.status, approval.note.as_deref()) {
        (ApprovalStatus::Approved, _) if !approval.is_used() => None,
        // The client of an equal call cancelled the request.
        (ApprovalStatus::Approved | ApprovalStatus::Cancelled, _) => Some(NoApproval::Used),
        (ApprovalStatus::Denied, note) => because(&denial(note)),
        (ApprovalStatus::Expired, _) => because(UNDECIDED),
        (ApprovalStatus::Pending, _) => Some(NoApproval::Pending(Box::new(approval.clone()))),
    }
}

/// Returns whether the client has cancelled the call.
async fn is_stopped(stop: &Notify) -> bool {
    tokio::select! {
        biased;
        () = stop.notified() => true,
        () = std::future::ready(()) => false,
    }
}

fn because(failure: &ApprovalFailure) -> NoApproval {
    match failure {
        ApprovalFailure::Refused { .. } => NoApproval::Because(not_run::failure(failure)),
        ApprovalFailure::Unavailable => NoApproval::Unreachable,
    }
}
