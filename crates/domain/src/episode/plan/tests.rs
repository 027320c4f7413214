use super::*;
use crate::episode::samples::event;
use serde_json::json;

fn statuses(events: &[EventRecord], before: &str) -> Vec<String> {
    let projected = project(events.iter(), |_| Some(before.to_owned())).unwrap();
    projected.plan.steps.iter().map(|it| it.status.clone()).collect()
}

#[test]
fn only_acts_after_the_latest_plan_count() {
    let steps = |word: &str| json!({"step_records": [{"id": "a", "kind": "act", "description": word}]});
    let done = json!({"step_id": "a", "step_status": "done"});
    let events = [event(1, "plan", steps("old")), event(2, "act", done), event(3, "plan", steps("new"))];
    let projected = project(events.iter(), |_| None).unwrap();
    assert_eq!(projected.plan.steps[0].description, "new");
    assert_eq!(projected.plan.steps[0].status, "pending");
    assert_eq!(projected.plan.updated_at, events[2].timestamp);
    assert!(projected.evidence.is_empty());
}

#[test]
fn step_records_take_precedence_over_labels() {
    let both =
        json!({"steps": ["detect:label"], "step_records": [{"id": "a", "kind": "review", "description": "record"}]});
    let projected = project([event(1, "plan", both)].iter(), |_| None).unwrap();
    assert_eq!((projected.plan.steps[0].id.as_str(), projected.plan.steps[0].kind.as_str()), ("a", "review"));
    let labels = json!({"steps": ["detect:Read: the mail", "no kind", "other:kind", 7]});
    let projected = project([event(1, "plan", labels)].iter(), |_| None).unwrap();
    let told: Vec<_> = projected.plan.steps.iter().map(|it| (&*it.id, &*it.kind, &*it.description)).collect();
    let expected = [("step-1", "detect", "Read: the mail"), ("step-2", "plan", "no kind"), ("step-3", "plan", "kind")];
    assert_eq!(told, expected);
}

#[test]
fn later_acts_with_step_and_status_apply_in_order() {
    let plan = json!({"steps": ["detect:a", "act:b", "verify:c"]});
    let act = |at, id: &str, status: &str| event(at, "act", json!({"step_id": id, "step_status": status}));
    let mut events = vec![event(1, "plan", plan), act(2, "step-1", "running"), act(3, "step-1", "failed")];
    assert_eq!(statuses(&events, "done"), ["failed", "done", "done"]);
    // No status, an empty status, an unknown step, and an event that is no act.
    events.push(event(4, "act", json!({"step_id": "step-2"})));
    events.push(act(5, "step-2", ""));
    events.push(act(6, "step-9", "done"));
    events.push(event(7, "reflect", json!({"step_id": "step-2", "step_status": "failed"})));
    assert_eq!(statuses(&events, "skipped"), ["failed", "skipped", "skipped"]);
    events.push(act(8, "step-2", "splendid"));
    assert_eq!(statuses(&events, "skipped"), ["failed", "pending", "skipped"]);
}

#[test]
fn unknown_kinds_and_statuses_fall_back_as_published() {
    let plan = json!({"source": "", "step_records": [
        {"kind": "ponder", "status": "splendid"}, {"id": "", "kind": "review"}, 3, {"id": "a"}, {"id": "a"}]});
    let events = [event(1, "plan", plan), event(2, "act", json!({"step_id": "a", "step_status": "done"}))];
    let projected = project(events.iter(), |_| None).unwrap();
    let told: Vec<_> = projected.plan.steps.iter().map(|it| (&*it.id, &*it.kind, &*it.status)).collect();
    let expected = [
        ("step-1", "plan", "pending"),
        ("step-2", "review", "pending"),
        ("a", "plan", "done"),
        ("a", "plan", "pending"),
    ];
    assert_eq!(told, expected, "of two steps with one id, the first has the status");
    assert_eq!(projected.plan.source, "planner", "an empty source is none");
    assert_eq!(projected.evidence.into_iter().collect::<Vec<_>>(), ["a"]);
}

#[test]
fn status_without_an_event_stays_unchanged() {
    let plan = json!({"step_records": [{"id": "a", "status": "vetoed"}, {"id": "b"}]});
    assert_eq!(statuses(&[event(1, "plan", plan)], "done"), ["vetoed", "done"]);
}

#[test]
fn plan_source_is_the_named_one_or_the_default() {
    let plan = |payload| project([event(1, "plan", payload)].iter(), |_| None).unwrap().plan.source;
    assert_eq!(plan(json!({"source": "planner.resume", "steps": []})), "planner.resume");
    assert_eq!(plan(json!({"steps": []})), "planner");
    assert!(project([event(1, "act", json!({}))].iter(), |_| None).is_none());
}
