//! Approved, denied and finished tool calls, in words that are true for a call.

use countersign_domain::primitives::time::Timestamp;
use countersign_domain::reviews::HoldState;
use countersign_domain::writes::write::{Write, WriteResolution, WriteState};
use countersign_service::reviews::details::ReviewFacts;

use super::format::clock_time;

/// Returns whether a review is about a tool call and about no change of values.
pub fn is_call_only(facts: &ReviewFacts) -> bool {
    facts.call.is_some() && facts.diff.is_empty()
}

/// Returns the effect of a review that ended without an approval.
pub fn without_approval(state: &HoldState, node: &str) -> String {
    let ends = match state {
        HoldState::Open {} | HoldState::Approved { .. } => return String::new(),
        HoldState::Denied { .. } => "",
        HoldState::Expired { .. } => "No decision was made before the deadline. ",
        HoldState::Cancelled { .. } => "Its requester cancelled it. ",
        HoldState::Superseded { by: Some(_), policy: Some(_), .. } => {
            return "Another policy was activated for the flow. A new review under that policy replaces this one, and \
                    reviewers vote again."
                .to_owned();
        }
        HoldState::Superseded { policy: Some(_), .. } => {
            "Another policy was activated for the flow, and it does not require this approval. "
        }
        HoldState::Superseded { by: Some(_), .. } => "Another request replaced it. ",
        HoldState::Superseded { .. } => "The thread was closed or changed. ",
    };
    let again = match state {
        HoldState::Expired { .. } | HoldState::Superseded { .. } => " It can request the call again.",
        _ => "",
    };
    format!("{ends}{node} may not run this call.{again}")
}

/// The approval of a call that no agent has used.
pub struct UnusedApproval {
    pub revoked: bool,
    pub expires_at: Option<Timestamp>,
}

impl UnusedApproval {
    pub fn words(&self, node: &str, now: Timestamp) -> String {
        match self.expires_at {
            _ if self.revoked => "The approval was revoked before the call ran.".to_owned(),
            Some(at) if at > now => format!(
                "Not run yet. {node} can run this call once, before {}. If {node} no longer waits, it must call again \
                 with the same arguments.",
                clock_time(at, now)
            ),
            Some(_) => format!("Not run. The approval expired before {node} used it."),
            None => "The approval cannot be read.".to_owned(),
        }
    }
}

/// Returns the outcome of a call that was started, as sentences.
pub fn outcome(write: &Write, now: Timestamp) -> String {
    let (node, started) = (&write.node, clock_time(write.reserved_at, now));
    let became = match &write.state {
        WriteState::Reserved {} if write.is_live(now) => "Its outcome is not reported yet.".to_owned(),
        WriteState::Reserved {} => format!("{node} never reported the outcome, so it is unknown."),
        WriteState::Confirmed { .. } => format!("{node} reported that it succeeded."),
        WriteState::Aborted { .. } => {
            format!("{node} reported that it did not run. The approval cannot be used again.")
        }
        WriteState::Failed { .. } => format!("{node} reported that it failed. It may have had a part of its effect."),
        WriteState::Late { .. } => format!("{node} reported too late that it succeeded."),
        WriteState::Resolved { outcome: WriteResolution::Written, .. } => {
            format!("{node} never reported the outcome. An administrator confirmed that it ran.")
        }
        WriteState::Resolved { outcome: WriteResolution::NotWritten, .. } => {
            format!("{node} never reported the outcome. An administrator confirmed that it did not run.")
        }
    };
    format!("The call was started at {started}. {became}")
}

/// Returns the same outcome as a phrase: "the call succeeded".
pub fn outcome_phrase(write: &Write, now: Timestamp) -> &'static str {
    match &write.state {
        WriteState::Reserved {} if write.is_live(now) => "the call was started",
        WriteState::Reserved {} => "the call was started, and its outcome is unknown",
        WriteState::Confirmed { .. } | WriteState::Late { .. } => "the call succeeded",
        WriteState::Aborted { .. } => "the call did not run",
        WriteState::Failed { .. } => "the call failed",
        WriteState::Resolved { outcome: WriteResolution::Written, .. } => {
            "an administrator confirmed that the call ran"
        }
        WriteState::Resolved { outcome: WriteResolution::NotWritten, .. } => {
            "an administrator confirmed that the call did not run"
        }
    }
}
