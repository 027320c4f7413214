//! LangGraph's server: which interrupt of a thread waits for a decision, and the run that resumes it.
//!
//! Such a server answers 200 to a second resume, and hands it to whatever the same node stopped at next. So it is
//! resumed only after a look that shows this very interrupt, waiting for this very digest, with no run under way; and
//! with `multitask_strategy: "reject"`, so that of two that were begun at once one is refused.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value, json};
use url::Url;

use super::decision_payload::DecisionPayload;
use super::preflight::PreflightResult;

/// What people wait for may be in several branches of a graph; more than these are not one decision's.
const WAITING_MAX: usize = 64;

/// An interrupt is called by 32 hexadecimal digits. Another key is not taken for a name there, but for the answer to
/// whatever waits.
const NAME_CHARS: usize = 32;

/// A thread as the server tells it; there is more in it.
#[derive(Deserialize)]
struct LangGraphThread {
    thread_id: String,
    status: String,
    /// By the task that stopped.
    #[serde(default)]
    interrupts: BTreeMap<String, Vec<LangGraphInterrupt>>,
}

#[derive(Deserialize)]
struct LangGraphInterrupt {
    id: String,
    value: Value,
}

/// The thread of a decision, if it has one that such a server can have: they are called by UUIDs.
pub fn thread_of(decided: &DecisionPayload) -> Option<&str> {
    decided.thread.as_deref().filter(|it| is_uuid(it))
}

/// Whether a text is a UUID as it is written.
pub fn is_uuid(text: &str) -> bool {
    let dash = |at: usize| matches!(at, 8 | 13 | 18 | 23);
    text.len() == 36
        && text.bytes().enumerate().all(|(at, it)| if dash(at) { it == b'-' } else { it.is_ascii_hexdigit() })
}

/// An address below the server's.
pub fn below(base: &Url, path: &[&str]) -> Option<Url> {
    let mut url = base.clone();
    url.path_segments_mut().ok()?.pop_if_empty().extend(path);
    Some(url)
}

/// The names of the interrupts that wait for this decision, or why nothing is sent.
pub fn waiting(answer: &[u8], decided: &DecisionPayload) -> Result<Vec<String>, PreflightResult> {
    let thread: LangGraphThread = serde_json::from_slice(answer).map_err(|_| PreflightResult::Unclear)?;
    if !thread_of(decided).is_some_and(|it| it.eq_ignore_ascii_case(&thread.thread_id)) {
        return Err(PreflightResult::Unclear);
    }
    match thread.status.as_str() {
        "interrupted" => (),
        "busy" => return Err(PreflightResult::Busy),
        "idle" | "error" => return Err(PreflightResult::NotWaiting),
        _ => return Err(PreflightResult::Unclear),
    }
    let named = |it: &LangGraphInterrupt| decided.interrupt.as_ref().is_none_or(|name| *name == it.id);
    let waiting: Vec<LangGraphInterrupt> = thread.interrupts.into_values().flatten().filter(named).collect();
    let by_name = decided.interrupt.is_some() && !waiting.is_empty();
    let says = |it: &LangGraphInterrupt| it.value.get("transition_digest").and_then(Value::as_str).map(str::to_owned);
    if by_name && waiting.iter().any(|it| says(it).is_none()) {
        return Err(PreflightResult::NoDigest);
    }
    let ours: Vec<String> =
        waiting.into_iter().filter(|it| says(it).as_ref() == Some(&decided.digest)).map(|it| it.id).collect();
    match ours.len() {
        0 if by_name => Err(PreflightResult::Another),
        0 => Err(PreflightResult::NotWaiting),
        1..=WAITING_MAX if ours.iter().all(|it| is_name(it)) => Ok(ours),
        _ => Err(PreflightResult::Unclear),
    }
}

fn is_name(text: &str) -> bool {
    text.len() == NAME_CHARS && text.bytes().all(|it| it.is_ascii_hexdigit())
}

/// The run that resumes them.
pub fn run(assistant: &str, interrupts: &[String], decided: &DecisionPayload) -> Value {
    let resume: Map<String, Value> = interrupts.iter().map(|it| (it.clone(), decided.answer.clone())).collect();
    json!({"assistant_id": assistant, "command": {"resume": resume}, "multitask_strategy": "reject"})
}

/// What is asked to try a server out: whether it has such an assistant.
pub fn search(assistant: &str) -> Value {
    match is_uuid(assistant) {
        true => json!({"limit": 1}),
        false => json!({"graph_id": assistant, "limit": 1}),
    }
}

/// What the beginning of the answer to that says.
pub fn found(answer: &[u8]) -> PreflightResult {
    let text = String::from_utf8_lossy(answer);
    match text.split_whitespace().collect::<String>().as_str() {
        "[]" => PreflightResult::NoAssistant,
        list if list.starts_with("[{") && list.contains("\"assistant_id\"") => PreflightResult::There,
        _ => PreflightResult::Unclear,
    }
}

#[cfg(test)]
mod tests;
