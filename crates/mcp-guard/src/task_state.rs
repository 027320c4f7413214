//! The state of a task, which is computed from its approval request and from the run of its call.

use serde_json::{Map, Value, json};

use crate::approvals::{Approval, ApprovalStatus, ApprovalUse};
use crate::json_rpc;
use crate::not_run::{CANCELLED, UNDECIDED, denial};
use crate::task_runs::{TaskEnd, TaskRun};

/// The interval in milliseconds at which a client asks for a decision of reviewers.
const POLL_MILLIS: u64 = 5_000;

/// The interval in milliseconds at which a client asks for the result of a call that runs.
const RUN_POLL_MILLIS: u64 = 500;

const RUNS: &str = "The call was approved and runs.";
const ELSEWHERE: &str =
    "This guard does not have its result. Find out the effect of the call before you call the tool again.";
const UNKNOWN: &str = "The call was approved and sent, and its outcome is unknown. It is not sent again. Find out the effect of the \
    call before you call the tool again.";

/// The state of a task.
#[derive(Clone, Debug, PartialEq)]
pub enum TaskState {
    /// The call waits for reviewers.
    Waiting {
        message: String,
    },
    /// The server has the call.
    Running,
    /// The server asks the client for input.
    InputRequired(Map<String, Value>),
    /// The call has this result.
    Completed(Value),
    /// The call has this error.
    Failed(Value),
    Cancelled,
}

impl TaskState {
    /// Returns the state of a task, or `None` if its call is approved and has to run.
    pub fn of(asked: &Approval, run: Option<&TaskRun>) -> Option<Self> {
        match run {
            Some(TaskRun::Ended(end)) => return Some(Self::ended(end)),
            Some(TaskRun::Running { .. }) => return Some(Self::Running),
            // After the lease, the call cannot go on.
            Some(TaskRun::Asking(question)) if asked.usage == ApprovalUse::Used => {
                return Some(Self::InputRequired(question.requests()));
            }
            Some(TaskRun::Asking(_)) | None => {}
        }
        Some(match (asked.status, &asked.usage) {
            (ApprovalStatus::Pending, _) => Self::waiting(asked),
            (ApprovalStatus::Denied, _) => Self::not_run(&denial(asked.note.as_deref())),
            (ApprovalStatus::Expired, _) => Self::not_run(UNDECIDED),
            (ApprovalStatus::Cancelled, _) => Self::Cancelled,
            (ApprovalStatus::Approved, ApprovalUse::Unused) => return None,
            // Another process has the call.
            (ApprovalStatus::Approved, ApprovalUse::Used) => Self::Running,
            (ApprovalStatus::Approved, ApprovalUse::Unknown) => Self::not_run(UNKNOWN),
            (ApprovalStatus::Approved, ApprovalUse::Ended { succeeded: false, note }) => match note.as_deref() {
                Some(CANCELLED) => Self::Cancelled,
                note => {
                    let why = note.map_or_else(String::new, |it| format!(" ({it})"));
                    Self::not_run(&format!(
                        "The call has failed{why}. It may have had a part of its effect. {ELSEWHERE}"
                    ))
                }
            },
            (ApprovalStatus::Approved, ApprovalUse::Ended { succeeded: true, .. }) => {
                Self::not_run(&format!("The call has run and succeeded. {ELSEWHERE}"))
            }
        })
    }

    /// Returns the state of a call that waits for reviewers.
    pub fn waiting(asked: &Approval) -> Self {
        let at = asked.page.as_ref().map_or_else(String::new, |it| format!(" at {it}"));
        Self::Waiting { message: format!("The call waits for the approval of a reviewer{at}.") }
    }

    /// Returns the state of a call without a result of the server.
    pub fn not_run(why: &str) -> Self {
        Self::Completed(json_rpc::not_run(why))
    }

    fn ended(end: &TaskEnd) -> Self {
        match end {
            TaskEnd::Result(result) => Self::Completed(serde_json::from_str(result).unwrap_or_default()),
            TaskEnd::Error(error) => Self::Failed(serde_json::from_str(error).unwrap_or_default()),
        }
    }

    /// Returns the task as clients read it.
    pub fn task(&self, id: &str, asked: &Approval) -> Value {
        // The request is stored for as long as the history of its flow.
        let mut task = json!({"taskId": id, "status": self.status(), "createdAt": asked.created_at,
            "lastUpdatedAt": asked.updated_at, "ttlMs": null});
        let (member, value) = match self {
            Self::Waiting { message } => ("statusMessage", json!(message)),
            Self::Running => ("statusMessage", json!(RUNS)),
            Self::InputRequired(requests) => ("inputRequests", json!(requests)),
            Self::Completed(result) => ("result", result.clone()),
            Self::Failed(error) => ("error", error.clone()),
            Self::Cancelled => ("statusMessage", json!("The call was cancelled and was not run.")),
        };
        task[member] = value;
        match self {
            Self::Waiting { .. } => task["pollIntervalMs"] = json!(POLL_MILLIS),
            Self::Running | Self::InputRequired(_) => task["pollIntervalMs"] = json!(RUN_POLL_MILLIS),
            Self::Completed(_) | Self::Failed(_) | Self::Cancelled => {}
        }
        task
    }

    const fn status(&self) -> &'static str {
        match self {
            Self::Waiting { .. } | Self::Running => "working",
            Self::InputRequired(_) => "input_required",
            Self::Completed(_) => "completed",
            Self::Failed(_) => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(status: ApprovalStatus, usage: ApprovalUse) -> Approval {
        Approval {
            id: "id".to_owned(),
            tool: "tool".to_owned(),
            server: None,
            status,
            arguments: Map::new(),
            tool_has_changed: false,
            reasoning: None,
            note: Some("too much".to_owned()),
            usage,
            is_new: false,
            page: Some("https://gate.example/reviews/1".to_owned()),
            created_at: "2026-11-27T00:00:00.000Z".to_owned(),
            updated_at: "2026-11-27T00:00:00.000Z".to_owned(),
        }
    }

    #[test]
    fn only_an_unused_approval_lets_the_call_run() {
        use ApprovalStatus::{Approved, Cancelled, Denied, Expired, Pending};
        let ended = |note: &str| ApprovalUse::Ended { succeeded: false, note: Some(note.to_owned()) };
        for (status, usage, expected, text) in [
            (Pending, ApprovalUse::Unused, "working", "https://gate.example/reviews/1"),
            (Denied, ApprovalUse::Unused, "completed", "denied and was not run: too much"),
            (Expired, ApprovalUse::Unused, "completed", "No reviewer decided in time"),
            (Cancelled, ApprovalUse::Unused, "cancelled", "not run"),
            (Approved, ApprovalUse::Used, "working", "runs"),
            (Approved, ApprovalUse::Unknown, "completed", "unknown. It is not sent again"),
            (Approved, ended(CANCELLED), "cancelled", "not run"),
            (Approved, ended("x"), "completed", "failed (x)"),
            (Approved, ApprovalUse::Ended { succeeded: true, note: None }, "completed", "does not have its result"),
        ] {
            let asked = asked(status, usage);
            let task = TaskState::of(&asked, None).unwrap().task("t", &asked);
            assert_eq!(task["status"], expected, "{task}");
            assert!(task.to_string().contains(text), "{task}");
            assert_eq!(task["result"]["isError"] == true, expected == "completed", "{task}");
        }
        assert_eq!(TaskState::of(&asked(Approved, ApprovalUse::Unused), None), None);
    }
}
