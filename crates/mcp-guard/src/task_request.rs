//! The messages of the extension for tasks (`io.modelcontextprotocol/tasks`), and their responses. Nothing here has an
//! effect.
//!
//! The task of a call that waits for reviewers is its approval request. So it outlives each process, and belongs to the
//! instance that asked.

use countersign_domain::threads::approval_request;
use serde_json::{Map, Value, json};

use crate::approvals::Approval;
use crate::json_rpc::response;
use crate::metadata::{self, TASKS, declares_tasks};
use crate::task_state::TaskState;

/// The code for an unknown task.
pub const UNKNOWN_TASK: i64 = -32602;

/// The code for a failure that can pass.
pub const NOT_NOW: i64 = -32603;

const UNKNOWN_METHOD: i64 = -32601;
const NOT_DECLARED: i64 = -32021;

/// The beginning of the ids of tasks. Tasks with other ids are those of the server.
const PREFIX: &str = "countersign-";

/// A request about a task of the guard.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskRequest {
    pub id: Value,
    /// The id of the approval request, or `None` if it has another form.
    pub asked: Option<String>,
    pub method: TaskMethod,
    /// The metadata that reaches the server with an approved call.
    pub meta: Map<String, Value>,
    is_declared: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub enum TaskMethod {
    Get,
    /// Answers to questions of the server.
    Update(Map<String, Value>),
    Cancel,
    /// Any other method. The extension does not have it.
    Other,
}

/// Returns whether a message is about a task of the guard.
pub fn is_own(method: &str, params: Option<&Value>) -> bool {
    let task = params.and_then(|it| it.get("taskId")).and_then(Value::as_str);
    method.starts_with("tasks/") && task.is_some_and(|it| it.starts_with(PREFIX))
}

/// Returns whether a client that supports tasks asks for the capabilities of the server.
pub fn is_discovery(message: &Value) -> bool {
    message["method"] == "server/discover" && message["params"].as_object().is_some_and(declares_tasks)
}

/// Returns the response to a call that waits for reviewers. The client polls its task.
pub fn created(id: &Value, asked: &Approval) -> Vec<u8> {
    let mut task = TaskState::waiting(asked).task(&task_id(asked), asked);
    task["resultType"] = json!("task");
    response(id, "result", task)
}

impl TaskRequest {
    pub fn of(id: Value, method: &str, params: &Value) -> Self {
        let task = params["taskId"].as_str().and_then(|it| it.strip_prefix(PREFIX));
        let method = match method {
            "tasks/get" => TaskMethod::Get,
            "tasks/update" => TaskMethod::Update(params["inputResponses"].as_object().cloned().unwrap_or_default()),
            "tasks/cancel" => TaskMethod::Cancel,
            _ => TaskMethod::Other,
        };
        let mut meta = metadata::forwarded(params.get("_meta"));
        // The progress of a task is its state.
        meta.remove("progressToken");
        Self {
            id,
            // The id becomes a part of a path.
            asked: task.filter(|it| approval_request::thread_of(it).is_some()).map(str::to_owned),
            method,
            meta,
            is_declared: params.as_object().is_some_and(declares_tasks),
        }
    }

    /// Returns the error for a request that no server with this extension answers, with its HTTP status.
    pub fn refusal(&self) -> Option<(u16, Vec<u8>)> {
        if !self.is_declared {
            let data = json!({"requiredCapabilities": {"extensions": {TASKS: {}}}});
            let message = format!("Declare the extension `{TASKS}` in the capabilities of the request.");
            let error = json!({"code": NOT_DECLARED, "message": message, "data": data});
            return Some((400, response(&self.id, "error", error)));
        }
        (self.method == TaskMethod::Other).then(|| {
            let why = "Tasks have the methods `tasks/get`, `tasks/update` and `tasks/cancel`.";
            (404, self.error(UNKNOWN_METHOD, why))
        })
    }

    /// Returns the state of the task.
    pub fn state(&self, asked: &Approval, state: &TaskState) -> Vec<u8> {
        let mut task = state.task(&task_id(asked), asked);
        task["resultType"] = json!("complete");
        response(&self.id, "result", task)
    }

    /// Returns the response to a request that needs no other one.
    pub fn accepted(&self) -> Vec<u8> {
        response(&self.id, "result", json!({"resultType": "complete"}))
    }

    pub fn error(&self, code: i64, why: &str) -> Vec<u8> {
        response(&self.id, "error", json!({"code": code, "message": why}))
    }
}

fn task_id(asked: &Approval) -> String {
    format!("{PREFIX}{}", asked.id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{ClientMessage, read};

    const ID: &str = "0d4f7c7e-58c1-8f0a-9b52-9a3c6d1f2e47";

    fn meta(version: &str, capabilities: &Value) -> Value {
        json!({"io.modelcontextprotocol/protocolVersion": version, "progressToken": 1,
            "io.modelcontextprotocol/clientCapabilities": capabilities})
    }

    fn sent(method: &str, task: &str) -> ClientMessage {
        let meta = meta("2026-07-28", &json!({"extensions": {TASKS: {}}}));
        let params = json!({"taskId": task, "_meta": meta});
        read(json!({"id": 1, "method": method, "params": params}).to_string().as_bytes()).unwrap()
    }

    #[test]
    fn tasks_of_the_server_are_not_those_of_the_guard() {
        for (method, task) in [("tasks/get", ID), ("tasks/get", "Countersign-1"), ("x/get", "countersign-1")] {
            assert_eq!(sent(method, task), ClientMessage::Other, "{method} {task}");
        }
        for (id, asked) in [(ID, Some(ID)), ("../../v1/halts", None), ("", None)] {
            let ClientMessage::Task(own) = sent("tasks/get", &format!("countersign-{id}")) else { panic!("{id}") };
            assert_eq!((own.asked.as_deref(), own.refusal().is_none()), (asked, true), "{id}");
            assert!(!own.meta.contains_key("progressToken"));
        }
        let ClientMessage::Task(old) = sent("tasks/result", &format!("countersign-{ID}")) else { panic!() };
        assert_eq!(old.refusal().map(|it| it.0), Some(404));
        let without_id = json!({"method": "tasks/get", "params": {"taskId": format!("countersign-{ID}")}});
        assert!(read(without_id.to_string().as_bytes()).is_err());
    }
}
