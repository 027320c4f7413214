use super::*;
use crate::primitives::id::{EventId, FlowId, ThreadId};
use serde_json::json;

fn event(kind: EventType, data: Value) -> Event {
    Event {
        id: EventId::try_from("e-1").unwrap(),
        kind,
        at: Timestamp::from_millis(1_795_225_000_123),
        flow: Some(FlowId::try_from("payments").unwrap()),
        thread: Some(ThreadId::try_from("order-17").unwrap()),
        seq: Some(1),
        previous: None,
        data,
    }
}

fn mask(text: &str) -> String {
    text.replace("secret", "[hidden]")
}

#[test]
fn review_pauses_the_run_and_each_outcome_resumes_it() {
    let run = |kind: EventType| done(&event(kind, json!({})), "order-17").unwrap().payload.get("run").cloned();
    assert_eq!(run(EventType::TransitionHeld), Some(json!("paused")));
    for end in [
        EventType::TransitionApproved,
        EventType::TransitionDenied,
        EventType::TransitionExpired,
        EventType::TransitionCancelled,
        EventType::TransitionSuperseded,
    ] {
        assert_eq!(run(end), Some(json!("resumed")), "{end:?}");
    }
    assert_eq!(run(EventType::WriteConfirmed), None);
}

#[test]
fn gateway_events_contain_names_and_numbers_but_no_free_text() {
    let data = json!({"transition": "sha256:1", "review": "r", "reasons": ["secret"], "reason": "secret", "by": "ada",
        "warnings": ["secret"], "write_id": "w", "fence": 1});
    let told = done(&event(EventType::TransitionHeld, data), "order-17").unwrap();
    let expected = json!({"transition": "sha256:1", "review": "r", "write_id": "w", "fence": 1, "run": "paused"});
    assert_eq!(Value::Object(told.payload), expected);
    assert_eq!((told.phase.as_str(), told.event_type.as_deref()), ("runtime", Some("transition.held")));
    assert_eq!(told.timestamp, "2026-11-21T01:36:40.123Z");
}

#[test]
fn events_about_people_are_not_part_of_the_run() {
    for kind in [EventType::ReviewVote, EventType::ReviewCommented, EventType::ReviewRevealed, EventType::ReceiptIssued]
    {
        assert_eq!(done(&event(kind, json!({})), "order-17"), None, "{kind:?}");
    }
}

#[test]
fn redaction_masks_texts_names_numbers_and_evidence() {
    let payload = json!({"a": "a secret", "secret 1": {"b": ["secret", true, null]}, "n": 12});
    let Value::Object(payload) = payload else { panic!("it is an object") };
    let shown = Value::Object(masked_payload(phase::OBSERVE, &payload, &mask));
    assert_eq!(shown, json!({"a": "a [hidden]", "[hidden] 1": {"b": ["[hidden]", true, null]}, "n": 12}));
    let number = Value::Object(masked_payload(phase::OBSERVE, &payload, &|it: &str| it.replace("12", "[hidden]")));
    assert_eq!(number["n"], "[hidden]");
}

#[test]
fn names_that_become_equal_by_masking_both_stay() {
    let Value::Object(payload) = json!({"secret": 1, "[hidden]": 2}) else { panic!("it is an object") };
    let shown = masked_payload(phase::OBSERVE, &payload, &mask);
    assert_eq!(shown.len(), 2);
    assert!(shown.keys().all(|it| !it.contains("secret")));
}

#[test]
fn status_of_a_run_is_never_redacted() {
    let Value::Object(payload) = json!({"status": "vetoed", "message": "vetoed"}) else { panic!("it is an object") };
    let hide = |it: &str| it.replace("vetoed", "[hidden]");
    let ended = masked_payload(phase::TERMINATE, &payload, &hide);
    assert_eq!((&ended["status"], &ended["message"]), (&json!("vetoed"), &json!("[hidden]")));
    assert_eq!(masked_payload(phase::OBSERVE, &payload, &hide)["status"], "[hidden]");
}

#[test]
fn branch_names_are_masked_by_the_author_of_each_branch() {
    let branch = |thread: &str| json!({"name": "secret", "thread": thread, "transition": "sha256:1"});
    let by_thread = |thread: &str, name: &str| if thread == "b1" { name.to_owned() } else { mask(name) };
    for (kind, data) in [
        (EventType::ThreadForked, json!({"branches": [branch("b1"), branch("b2")]})),
        (EventType::TransitionCommitted, json!({"join": {"branches": [branch("b1"), branch("b2")]}})),
    ] {
        let shown = masked_record(done(&event(kind, data), "order-17").unwrap(), &mask, &by_thread);
        assert_eq!(branches_named(&shown), ["secret", "[hidden]"], "{kind:?}");
    }
}
