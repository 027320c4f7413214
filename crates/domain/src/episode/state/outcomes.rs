//! `outcomes`: the status of an episode, its actions, and their results.

use serde_json::{Map, Value, json};

use super::deduplicate::LatestByName;
use super::{RunStatus, plan_as_it_stands};
use crate::episode::event_line::{EventRecord, millis_between, phase};

const ACT: &str = "act";
/// Events that close and reopen a thread.
const CLOSED: &str = "thread.closed";
const REOPENED: &str = "thread.reopened";

pub(super) struct RunOutcomes<'r> {
    terminate: Option<&'r EventRecord>,
    closed: bool,
}

impl<'r> RunOutcomes<'r> {
    pub(super) fn of(events: &'r [EventRecord]) -> Self {
        let terminate = events.iter().rev().find(|it| it.is(phase::TERMINATE));
        let doors = events.iter().filter(|it| it.is(phase::RUNTIME));
        let last = doors.filter_map(|it| it.event_type.as_deref()).rfind(|it| [CLOSED, REOPENED].contains(it));
        Self { terminate, closed: last == Some(CLOSED) }
    }

    pub(super) fn status(&self) -> RunStatus {
        let said = self.terminate.and_then(|it| it.text("status")).and_then(RunStatus::named);
        match (said, self.closed) {
            // A reported end counts even if the thread was closed later.
            (Some(status), _) => status,
            // The thread was closed before the agent reported an end.
            (None, true) => RunStatus::Aborted,
            (None, false) => RunStatus::Pending,
        }
    }

    pub(super) fn value(&self, events: &[EventRecord]) -> Value {
        let mut outcomes = json!({
            "status": self.status(),
            "actions": actions(events),
            "metrics": self.metrics(events),
            "artifacts": artifacts(events),
        });
        if let Some(message) = self.terminate.and_then(|it| it.text("message")) {
            outcomes["summary"] = message.into();
        }
        let gateway = counted(events);
        if !gateway.is_empty() {
            outcomes["x-gateway"] = json!(gateway);
        }
        outcomes
    }

    /// Returns the episode's own metrics, with those of its plan and its times.
    fn metrics(&self, events: &[EventRecord]) -> Map<String, Value> {
        let insights = events.iter().filter(|it| it.is(phase::INSIGHT));
        let said = insights.filter_map(|it| it.payload.get("metrics")?.as_object());
        let mut metrics: Map<String, Value> = said.flat_map(Clone::clone).collect();
        if let Some(plan) = plan_as_it_stands(events) {
            // These values follow from the plan, so they replace what an agent reported under the same names.
            metrics.insert("steps_total".to_owned(), plan.steps.len().into());
            metrics.insert("steps_completed".to_owned(), plan.done().into());
        }
        if let Some(millis) = self.terminate.and_then(|it| millis_between(&events.first()?.timestamp, &it.timestamp)) {
            metrics.insert("duration_ms".to_owned(), millis.into());
        }
        metrics
    }
}

/// Counts the gateway's actions by their names. Absent names did not happen.
pub(super) fn counted(events: &[EventRecord]) -> std::collections::BTreeMap<&str, usize> {
    let mut counted = std::collections::BTreeMap::new();
    let told = events.iter().filter(|it| it.is(phase::RUNTIME) && !it.is_projection());
    for name in told.filter_map(|it| it.event_type.as_deref()) {
        *counted.entry(name).or_default() += 1;
    }
    counted
}

fn actions(events: &[EventRecord]) -> Vec<Value> {
    let done = events.iter().filter(|it| it.is(phase::ACT));
    // An event that only repeats others is no action of its own.
    let done = done.filter(|it| it.payload.get("synthetic") != Some(&json!(true)));
    done.enumerate().map(|(at, it)| action(at, it)).collect()
}

fn action(at: usize, event: &EventRecord) -> Value {
    let result = event.text("result_status").or(event.text("outcome")).and_then(RunStatus::named);
    let mut action = json!({
        "id": format!("act-{}", at + 1),
        "kind": event.text("kind").unwrap_or(ACT),
        "tool": event.text("tool").unwrap_or(&event.agent_id),
        "input_excerpt": event.text("input_excerpt").unwrap_or_default(),
        "result_status": result.unwrap_or(RunStatus::Pending),
        "timestamp": event.timestamp,
    });
    if let Some(step) = event.text("step_id") {
        action["step_id"] = step.into();
    }
    let artifacts = result_artifacts(event);
    if !artifacts.is_empty() {
        action["result_artifacts"] = artifacts.into();
    }
    // The schema allows extensions only with this prefix.
    for (name, value) in event.payload.iter().filter(|(name, _)| name.starts_with("x-")) {
        action[name] = value.clone();
    }
    action
}

/// Returns the artifacts of an act, with the members that the schema defines.
fn result_artifacts(event: &EventRecord) -> Vec<Value> {
    let said = event.payload.get("result_artifacts").and_then(Value::as_array).into_iter().flatten();
    let read = said.filter_map(|it| {
        let text = |name: &str| it.get(name).and_then(Value::as_str);
        let mut artifact = json!({"type": text("type")?, "uri": text("uri")?});
        if let Some(hash) = text("sha256") {
            artifact["sha256"] = hash.into();
        }
        Some(artifact)
    });
    read.collect()
}

fn artifacts(events: &[EventRecord]) -> Vec<Value> {
    let mut all = LatestByName::default();
    for artifact in events.iter().filter(|it| it.is(phase::ACT)).flat_map(result_artifacts) {
        all.put(artifact["uri"].as_str().unwrap_or_default().to_owned(), artifact);
    }
    all.into_all()
}
