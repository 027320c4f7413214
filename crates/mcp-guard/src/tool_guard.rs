//! Decides about tool calls of one caller at one server.

use std::sync::Arc;
use std::time::Duration;

use countersign_adapters::clock::{Clock as _, SystemClock};
use countersign_domain::chain::hash::Digest;
use countersign_domain::json::canonical::canonical;
use countersign_domain::primitives::id::ToolName;
use serde_json::{Map, Value, json};
use tokio::sync::Notify;

use crate::approvals::{Approval, ApprovalFailure, ApprovalStatus, Approvals, AskedCall, UsedApproval};
use crate::continuations::Continuations;
use crate::message::ToolRequest;
use crate::open_calls::ForwardedCall;
use crate::open_requests::{ClaimedKey, OpenRequests};
use crate::server_message::{self, CallResult};
use crate::tool_list::{ToolList, ToolPins};

/// The time that an instance asks reviewers to decide in. The policy's own time is the limit.
const TIMEOUT: &str = "24h";

const EXPIRED: &str = "The approval expired before the call could run, so it was not run.";
const NOT_CONTINUED: &str = "The server did not ask for this input, or the call is not known any more, so it was not run. Call the tool \
    again without `inputResponses` and `requestState`.";
const CHANGED: &str =
    "The server has changed the description of this tool since it was first seen, so the call was not run.";
const UNAVAILABLE: &str = "The approval gateway cannot be reached, so the call was not run. Tell your user.";
const PENDING: &str = "This call waits for the approval of a reviewer and was not run. Call the same tool again with exactly \
    the same arguments to wait for the decision.";

/// The decision on a call.
#[derive(Debug)]
pub enum CallVerdict {
    /// The call may run now, once, with the arguments of the used approval.
    Run { sent: ForwardedCall, arguments: Map<String, Value> },
    /// The call does not run. The model reads the reason.
    NotRun(String),
    /// The client does not want the call any more. Its request is cancelled.
    Withdrawn,
}

/// The guard of the calls of one caller at one server.
pub struct ToolGuard<A> {
    pub approvals: A,
    pub open: Arc<OpenRequests>,
    pub pins: Arc<ToolPins>,
    pub continuations: Arc<Continuations>,
    /// The name of the server, before the names of its tools in policies.
    pub server: Option<String>,
    /// Keeps the open requests of one caller apart from those of others.
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
            return match sent.filter(|_| !self.pins.is_changed(&request.name)) {
                Some(sent) => CallVerdict::Run { sent, arguments: request.arguments.clone() },
                None => CallVerdict::NotRun(NOT_CONTINUED.to_owned()),
            };
        }
        let call = AskedCall {
            tool: request.name.clone(),
            server: self.server.clone(),
            arguments: request.arguments.clone(),
            timeout: TIMEOUT,
        };
        let mut claimed = self.open.claim(&self.caller, &request.name, &request.arguments);
        let approved = tokio::select! {
            approved = self.approved(&call, &mut claimed) => Some(approved),
            () = stop.notified() => None,
        };
        match approved {
            Some(Ok(UsedApproval { approval, lease })) => {
                let sent = ForwardedCall { request: approval.id, call: name, until: SystemClock.instant() + lease };
                CallVerdict::Run { sent, arguments: approval.arguments }
            }
            Some(Err(why)) => CallVerdict::NotRun(why),
            None => {
                claimed.delete();
                self.withdraw(&claimed.key, &call).await;
                CallVerdict::Withdrawn
            }
        }
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
    pub async fn shown(&self, message: Value) -> Vec<u8> {
        let list = match ToolList::of(message) {
            Ok(list) => list,
            Err(other) => return server_message::line_of(&other),
        };
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

    /// Returns the name of a call. Equal calls of one caller have equal names.
    fn call_name(&self, request: &ToolRequest) -> String {
        let call = json!([self.caller, request.name, request.arguments]);
        Digest::of_file(canonical(&call).as_bytes()).to_string()
    }

    /// Returns the name of a tool in policies.
    fn full_name(&self, tool: &str) -> String {
        self.server.as_ref().map_or_else(|| tool.to_owned(), |server| format!("{server}:{tool}"))
    }

    /// Cancels the request of a call that the client does not want any more. The call has not run.
    async fn withdraw(&self, key: &str, call: &AskedCall) {
        let Ok(asked) = self.approvals.ask(key, call).await else { return };
        if self.approvals.cancel(&asked.id).await.is_err() {
            // The approval may be in use already.
            self.report_failure(&asked.id, "cancelled by the client before the call ran").await;
        }
    }

    /// Returns the used approval of a call, or the reason for the model why there is none.
    async fn approved(&self, call: &AskedCall, claimed: &mut ClaimedKey<'_>) -> Result<UsedApproval, String> {
        if self.pins.is_changed(&call.tool) {
            let file = self.pins.file().map_or_else(String::new, |it| format!(" from {}", it.display()));
            return Err(format!("{CHANGED} To accept it, an operator removes the tool{file} and starts again."));
        }
        loop {
            let asked = self.approvals.ask(&claimed.key, call).await.map_err(|it| words(&it))?;
            // The gateway returns what it was sent. Anything else would be another call.
            if asked.arguments != call.arguments {
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
    async fn used(&self, claimed: &ClaimedKey<'_>, asked: Approval) -> Result<UsedApproval, NoApproval> {
        let approval = self.decided(claimed, asked).await?;
        if let Some(why) = refused(&approval) {
            // The request is decided, so no later call waits for it.
            claimed.delete();
            return Err(why);
        }
        let begun = SystemClock.instant();
        let used = self.approvals.consume(&approval.id).await;
        match used {
            // The approval can still be there, so the same call again finds it. It can be in use as well: then nothing
            // ran, and the report says so.
            Err(ApprovalFailure::Unavailable) => {
                self.report_failure(
                    &approval.id,
                    "the answer to the use of the approval was lost; the call did not run",
                )
                .await;
                return Err(NoApproval::Because(UNAVAILABLE.to_owned()));
            }
            _ => claimed.delete(),
        }
        match used {
            // The call needs the rest of the lease. After it, an administrator must find out the outcome.
            Ok(used) if begun.elapsed() > used.lease / 2 => {
                self.report_failure(&approval.id, "the approval arrived too late to run the call").await;
                Err(NoApproval::Because(EXPIRED.to_owned()))
            }
            Ok(used) if used.approval.consumed && used.approval.arguments == approval.arguments => Ok(used),
            Ok(_) => Err(NoApproval::Because(UNAVAILABLE.to_owned())),
            Err(ApprovalFailure::Refused { code, .. }) if is_stale(&code) => Err(NoApproval::Stale),
            Err(other) => Err(NoApproval::Because(words(&other))),
        }
    }

    /// Waits until a request is decided, or until the wait is over.
    async fn decided(&self, claimed: &ClaimedKey<'_>, mut approval: Approval) -> Result<Approval, NoApproval> {
        let begun = SystemClock.instant();
        if approval.status == ApprovalStatus::Pending {
            // Stored before the wait, so that a restart finds the request.
            claimed.keep();
        }
        while approval.status == ApprovalStatus::Pending {
            let left = self.wait.saturating_sub(begun.elapsed());
            if left.is_zero() {
                return Err(NoApproval::Because(PENDING.to_owned()));
            }
            let read = self.approvals.read(&approval.id, left).await;
            approval = read.map_err(|it| NoApproval::Because(words(&it)))?;
        }
        Ok(approval)
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
    Some(match (approval.status, approval.note.as_deref()) {
        (ApprovalStatus::Approved, _) if !approval.consumed => return None,
        (ApprovalStatus::Approved | ApprovalStatus::Expired, _) => NoApproval::Stale,
        (ApprovalStatus::Denied, Some(note)) => {
            NoApproval::Because(format!("This call was denied and was not run: {note}"))
        }
        (ApprovalStatus::Denied, None) => NoApproval::Because("This call was denied and was not run.".to_owned()),
        (ApprovalStatus::Cancelled | ApprovalStatus::Pending, _) => {
            NoApproval::Because("The request was cancelled, so the call was not run.".to_owned())
        }
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
