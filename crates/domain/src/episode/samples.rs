//! Episodes for the tests.

use serde_json::{Value, json};

use super::Artefact;
use super::artefacts::Timeline;
use super::event_line::EventRecord;
use super::verify::{FileContent, Folder};

/// Builds an event with a number, one second after the one before.
pub fn event(at: usize, phase: &str, payload: Value) -> EventRecord {
    let Value::Object(payload) = payload else { panic!("a payload is an object") };
    EventRecord {
        agent_id: "planner".to_owned(),
        caused_by: None,
        episode_id: "order-17".to_owned(),
        event_type: None,
        evidence_ids: Vec::new(),
        id: Some(format!("e{at}")),
        payload,
        phase: phase.to_owned(),
        timestamp: format!("2026-11-22T08:{:02}:{:02}.000Z", at / 60, at % 60),
        previous: None,
    }
}

/// Builds an event of the gateway.
pub fn gateway(at: usize, event_type: &str) -> EventRecord {
    let agent_id = "countersign".to_owned();
    EventRecord { agent_id, event_type: Some(event_type.to_owned()), ..event(at, "runtime", json!({})) }
}

/// Builds the events of an episode that was held once, written, and ended with this status.
pub fn happened(status: &str) -> Vec<EventRecord> {
    let mut happened = paused();
    happened.extend([
        gateway(9, "transition.approved"),
        gateway(10, "transition.committed"),
        event(
            11,
            "act",
            json!({"step_id": "write", "step_status": "done", "tool": "ledger", "outcome": "ok",
            "input_excerpt": "refund 40", "kind": "tool",
            "result_artifacts": [{"type": "row", "uri": "users:42", "more": 1}]}),
        ),
        gateway(12, "write.confirmed"),
        event(13, "learn", json!({"proposal": [{"ask": "finance first"}], "applied": false})),
        event(14, "insight", json!({"metrics": {"task_score": 0.75}})),
        event(15, "terminate", json!({"status": status, "message": "Refunded."})),
    ]);
    happened
}

/// Builds the same episode up to its pause.
pub fn paused() -> Vec<EventRecord> {
    vec![
        event(
            1,
            "start",
            json!({"task": "Refund order 17", "type": "task", "seed": 7, "using": "graph",
            "tags": {"team": "platform"}, "intuition_mode": "advisory",
            "process": {"id": "payments", "name": "payments", "run_index": 1}}),
        ),
        event(2, "observe", json!({"message": "40 EUR are asked for"})),
        event(
            3,
            "interpret",
            json!({"beliefs": [
            {"statement": "The order is theirs", "confidence": 1, "provenance": "orders"},
            {"statement": "no number", "confidence": "high"}]}),
        ),
        event(
            4,
            "memory",
            json!({"facts": [{"key": "currency", "value": "EUR", "type": "doc"},
            {"key": "amount", "value": 39}], "scratchpad": "ask finance"}),
        ),
        event(5, "memory", json!({"facts": [{"key": "amount", "value": 40, "provenance": {"source": "mail"}}]})),
        event(
            6,
            "plan",
            json!({"rationale": "small", "step_records": [
            {"id": "read", "kind": "detect", "description": "Read the order", "status": "done"},
            {"id": "write", "kind": "act", "description": "Refund it"}]}),
        ),
        event(7, "act", json!({"synthetic": true, "step_id": "write", "step_status": "running"})),
        gateway(8, "transition.held"),
    ]
}

/// Builds the unsigned folder of these events.
pub fn folder(happened: Vec<EventRecord>) -> Folder {
    let timeline = Timeline::of(happened);
    let mut files = timeline.files();
    files.extend(timeline.manifest(|it| it).map(|bytes| (Artefact::Manifest, bytes)));
    let entries = files.into_iter().map(|(it, bytes)| (it.file().to_owned(), FileContent::Bytes(bytes)));
    Folder { entries: entries.collect() }
}
