//! LangGraph servers: finding the interrupt that waits for a decision, and the run that resumes it.
//!
//! The server answers 200 to a second resume and passes it to the next interrupt of the same node. So the gateway
//! resumes only after a preflight request that shows this interrupt with this digest and no active run. It also sends
//! `multitask_strategy: "reject"`, so of two concurrent resumes the server refuses one.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value, json};
use url::Url;

use super::decision_payload::DecisionPayload;
use super::preflight::PreflightResult;

/// The limit of interrupts that wait for one decision. Several branches of a graph may wait for the same decision.
const WAITING_MAX: usize = 64;

/// The length of an interrupt's id: 32 hexadecimal digits. The server takes any other key as the answer to every
/// waiting interrupt.
const NAME_CHARS: usize = 32;

/// The parts of the server's thread that the gateway reads.
#[derive(Deserialize)]
struct LangGraphThread {
    thread_id: String,
    status: String,
    /// Interrupts by the task that waits.
    #[serde(default)]
    interrupts: BTreeMap<String, Vec<LangGraphInterrupt>>,
}

#[derive(Deserialize)]
struct LangGraphInterrupt {
    id: String,
    value: Value,
}

/// Returns the thread of a decision, if its id is a UUID as such a server requires.
pub fn thread_of(decided: &DecisionPayload) -> Option<&str> {
    decided.thread.as_deref().filter(|it| is_uuid(it))
}

/// Checks the form of a UUID.
pub fn is_uuid(text: &str) -> bool {
    let dash = |at: usize| matches!(at, 8 | 13 | 18 | 23);
    text.len() == 36
        && text.bytes().enumerate().all(|(at, it)| if dash(at) { it == b'-' } else { it.is_ascii_hexdigit() })
}

/// Returns a URL below the server's base.
pub fn below(base: &Url, path: &[&str]) -> Option<Url> {
    let mut url = base.clone();
    // The segments are percent-encoded here, so an id cannot change the path.
    url.path_segments_mut().ok()?.pop_if_empty().extend(path);
    Some(url)
}

/// Returns the ids of the interrupts that wait for this decision, or the reason why nothing is sent.
pub fn waiting(answer: &[u8], decided: &DecisionPayload) -> Result<Vec<String>, PreflightResult> {
    let thread: LangGraphThread = serde_json::from_slice(answer).map_err(|_| PreflightResult::Unclear)?;
    // A proxy or a wrong address could answer for another thread.
    if !thread_of(decided).is_some_and(|it| it.eq_ignore_ascii_case(&thread.thread_id)) {
        return Err(PreflightResult::Unclear);
    }
    match thread.status.as_str() {
        "interrupted" => (),
        // Resuming now could reach the next interrupt of the active run.
        "busy" => return Err(PreflightResult::Busy),
        "idle" | "error" => return Err(PreflightResult::NotWaiting),
        _ => return Err(PreflightResult::Unclear),
    }
    let named = |it: &LangGraphInterrupt| decided.interrupt.as_ref().is_none_or(|name| *name == it.id);
    let waiting: Vec<LangGraphInterrupt> = thread.interrupts.into_values().flatten().filter(named).collect();
    let by_name = decided.interrupt.is_some() && !waiting.is_empty();
    let says = |it: &LangGraphInterrupt| it.value.get("transition_digest").and_then(Value::as_str).map(str::to_owned);
    // Without a digest it is unknown whether the interrupt waits for this decision.
    if by_name && waiting.iter().any(|it| says(it).is_none()) {
        return Err(PreflightResult::NoDigest);
    }
    let ours: Vec<String> =
        waiting.into_iter().filter(|it| says(it).as_ref() == Some(&decided.digest)).map(|it| it.id).collect();
    match ours.len() {
        0 if by_name => Err(PreflightResult::Another),
        0 => Err(PreflightResult::NotWaiting),
        // A key of another form would resume every waiting interrupt.
        1..=WAITING_MAX if ours.iter().all(|it| is_name(it)) => Ok(ours),
        _ => Err(PreflightResult::Unclear),
    }
}

fn is_name(text: &str) -> bool {
    text.len() == NAME_CHARS && text.bytes().all(|it| it.is_ascii_hexdigit())
}

/// Returns the request for a run that resumes the interrupts.
pub fn run(assistant: &str, interrupts: &[String], decided: &DecisionPayload) -> Value {
    // Each answer has the id of its interrupt, because the server gives any other answer to every waiting interrupt.
    let resume: Map<String, Value> = interrupts.iter().map(|it| (it.clone(), decided.answer.clone())).collect();
    json!({"assistant_id": assistant, "command": {"resume": resume}, "multitask_strategy": "reject"})
}

/// Returns the query that tests a server: it searches for the assistant.
pub fn search(assistant: &str) -> Value {
    match is_uuid(assistant) {
        true => json!({"limit": 1}),
        false => json!({"graph_id": assistant, "limit": 1}),
    }
}

/// Evaluates the start of the response to that query.
pub fn found(answer: &[u8]) -> PreflightResult {
    // Only the start of the response is read, so it cannot be parsed as JSON.
    let text = String::from_utf8_lossy(answer);
    match text.split_whitespace().collect::<String>().as_str() {
        "[]" => PreflightResult::NoAssistant,
        list if list.starts_with("[{") && list.contains("\"assistant_id\"") => PreflightResult::There,
        _ => PreflightResult::Unclear,
    }
}

#[cfg(test)]
mod tests;
