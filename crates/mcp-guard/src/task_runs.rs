//! The calls of tasks: those that the server has, and their results for the next requests of the client.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Map, Value};

use crate::continuations::ContinuedCall;
use crate::json_rpc;
use crate::server_message::CallResult;

/// The most results in memory. The oldest ones are removed first.
const STORED_MAX: usize = 1_000;

/// The most bytes of results in memory, except for the newest result.
const STORED_BYTES_MAX: usize = 64 * 1024 * 1024;

const OTHER_ANSWER: &str =
    "The server answered in a form that the guard does not know. The outcome of the call is unknown.";

/// The calls of tasks, by the id of their approval request.
#[derive(Default)]
pub struct TaskRuns(Mutex<StoredRuns>);

#[derive(Default)]
struct StoredRuns {
    runs: BTreeMap<String, TaskRun>,
    /// The calls that do not run, with the bytes of their results. The oldest one is first.
    stored: VecDeque<(String, usize)>,
}

/// The call of a task, once the server has it.
#[derive(Clone, Debug)]
pub enum TaskRun {
    /// The call runs, after that many questions of the server.
    Running {
        questions: u32,
    },
    /// The server asks the client for input.
    Asking(ServerQuestion),
    Ended(Arc<TaskEnd>),
}

/// The response of the server, as text. Parsed values can take a hundred times as much memory.
#[derive(Debug)]
pub enum TaskEnd {
    Result(String),
    Error(String),
}

/// A question of the server to its client.
#[derive(Clone, Debug)]
pub struct ServerQuestion {
    number: u32,
    /// The requests to the client, as text. Their names differ from those of other questions of the call.
    requests: String,
    responses: Map<String, Value>,
    state: Option<String>,
}

impl ServerQuestion {
    fn of(number: u32, result: &Value, state: Option<&String>) -> Self {
        let requests = result["inputRequests"].as_object().into_iter().flatten();
        let requests: Map<_, _> =
            requests.map(|(name, request)| (format!("{number}.{name}"), request.clone())).collect();
        Self { number, requests: Value::Object(requests).to_string(), responses: Map::new(), state: state.cloned() }
    }

    /// Returns the requests to the client.
    pub fn requests(&self) -> Map<String, Value> {
        serde_json::from_str(&self.requests).unwrap_or_default()
    }
}

impl TaskRuns {
    pub fn get(&self, request: &str) -> Option<TaskRun> {
        self.stored().runs.get(request).cloned()
    }

    /// Notes that the server gets the call of a task.
    pub fn begin(&self, request: &str) {
        self.stored().put(request, TaskRun::Running { questions: 0 });
    }

    /// Stores the response of the server if it belongs to a task. Returns whether it does.
    pub fn record(&self, request: &str, message: &Value, result: &CallResult) -> bool {
        let mut stored = self.stored();
        let Some(TaskRun::Running { questions }) = stored.runs.get(request) else { return false };
        let run = match (result, message.get("result")) {
            (CallResult::Ended { .. }, Some(result)) => ended(TaskEnd::Result(result.to_string())),
            (CallResult::Ended { .. }, None) => ended(TaskEnd::Error(message["error"].to_string())),
            (CallResult::InputRequired { state }, result) => {
                let result = result.unwrap_or(&Value::Null);
                TaskRun::Asking(ServerQuestion::of(questions + 1, result, state.as_ref()))
            }
            (CallResult::Unknown, _) => ended(error_of(OTHER_ANSWER)),
        };
        stored.put(request, run);
        true
    }

    /// Returns how many questions the server has asked in the call of a task.
    pub fn questions(&self, request: &str) -> u32 {
        match self.stored().runs.get(request) {
            Some(TaskRun::Running { questions }) => *questions,
            Some(TaskRun::Asking(ServerQuestion { number, .. })) => *number,
            Some(TaskRun::Ended(_)) | None => 0,
        }
    }

    /// Ends the call of a task without a response of the server. Returns whether the call belongs to a task.
    pub fn fail(&self, request: &str, why: &str) -> bool {
        let questions = self.questions(request);
        self.end(request, questions, error_of(why))
    }

    /// Ends the call of a task with the response of the guard, if it has not ended and the server has asked no more
    /// questions.
    pub fn end_with(&self, request: &str, questions: u32, response: &[u8]) {
        let message: Value = serde_json::from_slice(response).unwrap_or_default();
        let end = match (message.get("result"), message.get("error")) {
            (Some(result), _) => TaskEnd::Result(result.to_string()),
            (None, Some(error)) => TaskEnd::Error(error.to_string()),
            (None, None) => error_of("The response of the server ended early. The outcome of the call is unknown."),
        };
        self.end(request, questions, end);
    }

    fn end(&self, request: &str, so_far: u32, end: TaskEnd) -> bool {
        let mut stored = self.stored();
        let runs = matches!(stored.runs.get(request), Some(TaskRun::Running { questions }) if *questions == so_far);
        if runs {
            stored.put(request, ended(end));
        }
        runs
    }

    /// Takes answers to a question of the server. Returns the answers once there are all of them. The call runs again then.
    pub fn answer(&self, request: &str, responses: &Map<String, Value>) -> Option<ContinuedCall> {
        let mut stored = self.stored();
        let Some(TaskRun::Asking(question)) = stored.runs.get_mut(request) else { return None };
        let requests = question.requests();
        for (name, response) in responses.iter().filter(|it| requests.contains_key(it.0)) {
            // The first answer counts.
            question.responses.entry(name.clone()).or_insert_with(|| response.clone());
        }
        if question.responses.len() < requests.len() {
            return None;
        }
        let ServerQuestion { number, responses, state, .. } = question.clone();
        let prefix = format!("{number}.");
        let named = |(name, response): (String, Value)| {
            let name = name.strip_prefix(&prefix).unwrap_or(&name).to_owned();
            (name, response)
        };
        let responses: Map<String, Value> = responses.into_iter().map(named).collect();
        stored.put(request, TaskRun::Running { questions: number });
        Some(ContinuedCall { responses: (!responses.is_empty()).then_some(Value::Object(responses)), state })
    }

    fn stored(&self) -> MutexGuard<'_, StoredRuns> {
        // A panic cannot leave the map half changed, so a poisoned lock is still usable.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StoredRuns {
    fn put(&mut self, request: &str, run: TaskRun) {
        let bytes = match &run {
            TaskRun::Running { .. } => 0,
            TaskRun::Asking(question) => question.requests.len() + question.state.as_ref().map_or(0, String::len),
            TaskRun::Ended(end) => match &**end {
                TaskEnd::Result(text) | TaskEnd::Error(text) => text.len(),
            },
        };
        self.stored.retain(|it| it.0 != request);
        if !matches!(run, TaskRun::Running { .. }) {
            self.stored.push_back((request.to_owned(), bytes));
        }
        self.runs.insert(request.to_owned(), run);
        while self.stored.len() > STORED_MAX
            || self.stored.len() > 1 && self.stored.iter().map(|it| it.1).sum::<usize>() > STORED_BYTES_MAX
        {
            let Some((oldest, _)) = self.stored.pop_front() else { break };
            self.runs.remove(&oldest);
        }
    }
}

fn ended(end: TaskEnd) -> TaskRun {
    TaskRun::Ended(Arc::new(end))
}

fn error_of(why: &str) -> TaskEnd {
    TaskEnd::Error(json_rpc::error_value(why).to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::server_message::response;

    fn record(runs: &TaskRuns, request: &str, message: &Value) -> bool {
        runs.record(request, message, &response(message).unwrap().result)
    }

    #[test]
    fn question_is_answered_once_and_under_a_name_of_its_own() {
        let (runs, nothing) = (TaskRuns::default(), Map::new());
        let asks = |state: &str| {
            let requests = json!({"sure": {"method": "elicitation/create"}, "why": {"method": "elicitation/create"}});
            json!({"id": 1, "result": {"resultType": "input_required", "requestState": state, "inputRequests": requests}})
        };
        assert!(!record(&runs, "a", &asks("s")), "no task has this call");
        runs.begin("a");
        assert!(record(&runs, "a", &asks("s")));
        let object = |it: Value| it.as_object().unwrap().clone();
        assert!(runs.answer("a", &nothing).is_none());
        assert!(runs.answer("a", &object(json!({"1.sure": 1, "sure": 2, "2.why": 3}))).is_none());
        let answered = runs.answer("a", &object(json!({"1.sure": 9, "1.why": 4}))).unwrap();
        assert_eq!((answered.responses, answered.state.as_deref()), (Some(json!({"sure": 1, "why": 4})), Some("s")));
        assert!(runs.answer("a", &object(json!({"1.sure": 1, "1.why": 4}))).is_none(), "the call runs");
        assert!(record(&runs, "a", &asks("t")));
        assert!(matches!(runs.get("a"), Some(TaskRun::Asking(it)) if it.requests().contains_key("2.sure")));
        // A server can ask to be called again.
        runs.begin("b");
        record(&runs, "b", &json!({"id": 1, "result": {"resultType": "input_required", "requestState": "u"}}));
        let again = runs.answer("b", &nothing).unwrap();
        assert_eq!((again.responses, again.state.as_deref()), (None, Some("u")));
    }

    #[test]
    fn oldest_results_are_removed_and_running_calls_are_not() {
        let runs = TaskRuns::default();
        runs.begin("running");
        for n in 0..=STORED_MAX {
            runs.begin(&n.to_string());
            assert!(record(&runs, &n.to_string(), &json!({"id": 1, "result": {}})));
        }
        assert!(runs.get("0").is_none() && runs.get("1").is_some());
        assert!(matches!(runs.get("running"), Some(TaskRun::Running { .. })));
        runs.begin("large");
        let large = json!({"id": 1, "result": {"text": "x".repeat(STORED_BYTES_MAX)}});
        assert!(record(&runs, "large", &large) && runs.get("1").is_none() && runs.get("large").is_some());
    }
}
