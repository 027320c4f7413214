//! Decides about requests for tasks of one caller at one server: a call that waited for reviewers runs once, after its
//! approval.

use std::time::Duration;

use countersign_adapters::clock::{Clock as _, SystemClock};
use countersign_adapters::random;
use serde_json::{Map, Value};
use tokio::sync::Notify;

use crate::approvals::{Approval, ApprovalFailure, ApprovalStatus, ApprovalUse, Approvals};
use crate::continuations::ContinuedCall;
use crate::message::{self, ToolRequest};
use crate::not_run::{self, CANCELLED, CHANGED, UNAVAILABLE};
use crate::open_calls::ForwardedCall;
use crate::task_request::{NOT_NOW, TaskMethod, TaskRequest, UNKNOWN_TASK};
use crate::task_state::TaskState;
use crate::tool_guard::{CallVerdict, NoApproval, ToolGuard};

const NO_SUCH_TASK: &str = "There is no task with this id.";
const TWINS: &str =
    "Two names in the arguments differ only in case, and servers can read them as one. The call was not run.";

/// The decision on a request about a task.
#[derive(Debug)]
pub enum TaskVerdict {
    /// The response to the client, with its HTTP status.
    Answer(u16, Vec<u8>),
    /// A call may run now, once, after this response to the client.
    Run { response: Vec<u8>, call: Box<TaskCall> },
}

/// The approved call of a task.
#[derive(Debug)]
pub struct TaskCall {
    pub request: ToolRequest,
    pub sent: ForwardedCall,
    /// The approved arguments.
    pub arguments: Map<String, Value>,
}

impl<A: Approvals> ToolGuard<A> {
    /// Decides about a request for a task.
    pub async fn task(&self, request: &TaskRequest) -> TaskVerdict {
        if let Some((status, response)) = request.refusal() {
            return TaskVerdict::Answer(status, response);
        }
        let decided = match self.own_task(request).await {
            Ok(asked) => match &request.method {
                TaskMethod::Get => self.polled(request, &asked).await,
                TaskMethod::Update(responses) => Ok(self.go_on(request, &asked, responses, request.accepted()).await),
                TaskMethod::Cancel => self.cancelled(request, asked).await.map(TaskVerdict::of),
                TaskMethod::Other => Ok(TaskVerdict::of(request.accepted())),
            },
            Err(error) => Err(error),
        };
        decided.unwrap_or_else(TaskVerdict::of)
    }

    /// Returns the approval request of a task, or the error for the client. A request of another instance or of a call at
    /// another server looks like a missing one.
    async fn own_task(&self, request: &TaskRequest) -> Result<Approval, Vec<u8>> {
        let missing = || request.error(UNKNOWN_TASK, NO_SUCH_TASK);
        let id = request.asked.as_ref().ok_or_else(missing)?;
        match self.approvals.read(id, Duration::ZERO).await {
            Ok(asked) if asked.server == self.server && asked.id == *id => Ok(asked),
            Ok(_) => Err(missing()),
            Err(ApprovalFailure::Refused { code, .. }) if code == "not_found" => Err(missing()),
            Err(failure) => Err(request.error(NOT_NOW, &not_run::failure(&failure))),
        }
    }

    /// Returns the state of a task. If its call is approved, it runs now.
    async fn polled(&self, request: &TaskRequest, asked: &Approval) -> Result<TaskVerdict, Vec<u8>> {
        let run = self.tasks.get(&asked.id);
        let state = TaskState::of(asked, run.as_ref());
        match state {
            // The server asks to be called again, and needs no answers.
            Some(TaskState::InputRequired(requests)) if requests.is_empty() => {
                let running = request.state(asked, &TaskState::Running);
                Ok(self.go_on(request, asked, &requests, running).await)
            }
            Some(state) => Ok(TaskVerdict::of(request.state(asked, &state))),
            None => self.run(request, asked).await,
        }
    }

    /// Uses the approval of a call, and lets it run.
    async fn run(&self, request: &TaskRequest, asked: &Approval) -> Result<TaskVerdict, Vec<u8>> {
        let state = |it: &TaskState| Ok(TaskVerdict::of(request.state(asked, it)));
        // The instance can have sent the request itself, with a call that the guard refuses.
        if message::has_twins(&asked.arguments) {
            return state(&TaskState::not_run(TWINS));
        }
        let change = self.pins.change(&asked.tool);
        // Reviewers decided about another definition.
        if change.as_ref() != asked.change() {
            return state(&TaskState::not_run(CHANGED));
        }
        match self.used(asked).await {
            Ok(used) => {
                let call = self.tool_request(request, asked, None);
                let until = SystemClock.instant() + used.lease;
                let sent = ForwardedCall { request: asked.id.clone(), call: self.call_name(&call), change, until };
                self.tasks.begin(&asked.id);
                let call = TaskCall { request: call, sent, arguments: used.approval.arguments };
                Ok(TaskVerdict::Run { response: request.state(asked, &TaskState::Running), call: Box::new(call) })
            }
            // Another request was faster.
            Err(NoApproval::Used | NoApproval::Pending(_)) => state(&TaskState::Running),
            Err(NoApproval::Because(why)) => state(&TaskState::not_run(&why)),
            Err(NoApproval::NotNow(why)) => Err(request.error(NOT_NOW, &why)),
            Err(NoApproval::Unreachable) => Err(request.error(NOT_NOW, UNAVAILABLE)),
        }
    }

    /// Takes answers to a question of the server. Once there are all of them, the call goes on.
    async fn go_on(
        &self,
        request: &TaskRequest,
        asked: &Approval,
        answers: &Map<String, Value>,
        response: Vec<u8>,
    ) -> TaskVerdict {
        let Some(continued) = self.tasks.answer(&asked.id, answers) else { return TaskVerdict::of(response) };
        let call = self.tool_request(request, asked, Some(continued));
        match self.decide(&call, &Notify::new()).await {
            CallVerdict::Run { sent, arguments } => {
                let call = TaskCall { request: call, sent, arguments };
                TaskVerdict::Run { response, call: Box::new(call) }
            }
            CallVerdict::NotRun(end) => {
                self.tasks.end_with(&asked.id, self.tasks.questions(&asked.id), &end);
                TaskVerdict::of(response)
            }
            CallVerdict::Withdrawn => TaskVerdict::of(response),
        }
    }

    /// Cancels a call that has not run. A call that runs is not stopped.
    async fn cancelled(&self, request: &TaskRequest, mut asked: Approval) -> Result<Vec<u8>, Vec<u8>> {
        let failed = |it: &ApprovalFailure| request.error(NOT_NOW, &not_run::failure(it));
        if asked.status == ApprovalStatus::Pending {
            match self.approvals.cancel(&asked.id).await {
                // Reviewers were faster.
                Err(ApprovalFailure::Refused { code, .. }) if code == "already_terminal" => {
                    asked = self.own_task(request).await?;
                }
                Err(failure) => return Err(failed(&failure)),
                Ok(()) => return Ok(request.accepted()),
            }
        }
        if asked.status == ApprovalStatus::Approved && asked.usage == ApprovalUse::Unused {
            // A used approval runs no call.
            match self.used(&asked).await {
                Ok(_) => self.report_failure(&asked.id, CANCELLED).await,
                Err(NoApproval::NotNow(why)) => return Err(request.error(NOT_NOW, &why)),
                Err(NoApproval::Unreachable) => return Err(failed(&ApprovalFailure::Unavailable)),
                Err(NoApproval::Used | NoApproval::Pending(_) | NoApproval::Because(_)) => {}
            }
        }
        Ok(request.accepted())
    }

    /// Returns the call of a task as the server gets it. Its id is unique in each session.
    fn tool_request(&self, request: &TaskRequest, asked: &Approval, continued: Option<ContinuedCall>) -> ToolRequest {
        let id = Value::String(random::uuid_v4().to_string());
        ToolRequest::of_task(id, request, asked, continued)
    }
}

impl TaskVerdict {
    fn of(response: Vec<u8>) -> Self {
        Self::Answer(200, response)
    }
}
