use super::*;
use crate::episode::artefacts::Timeline;
use crate::episode::samples::{event, gateway, happened, paused};
use crate::json::canonical::canonical;

#[test]
fn state_follows_from_the_events() {
    let state = state(&happened("ok"));
    assert_eq!(state["episode"]["id"], "order-17");
    assert_eq!(state["episode"]["started_at"], "2026-11-22T08:00:01.000Z");
    assert_eq!(state["episode"]["intuition_mode"], "advisory");
    assert_eq!(state["goal"], json!({"task": "Refund order 17", "type": "task"}));
    assert_eq!(state["beliefs"].as_array().unwrap().len(), 1, "one has no number for its confidence");
    assert_eq!(state["beliefs"][0]["provenance"], json!({"source": "orders"}));
    let facts: Vec<_> = state["memory"]["facts"].as_array().unwrap().iter().map(|it| &it["value"]).collect();
    assert_eq!(facts, [&json!("EUR"), &json!(40)], "each as it was said last, in the order of the first");
    assert_eq!(state["memory"]["scratchpad"], "ask finance");
    let outcomes = &state["outcomes"];
    assert_eq!((&outcomes["status"], &outcomes["summary"]), (&json!("ok"), &json!("Refunded.")));
    assert_eq!(outcomes["actions"].as_array().unwrap().len(), 1, "one act is synthetic");
    assert_eq!(outcomes["actions"][0]["result_artifacts"], json!([{"type": "row", "uri": "users:42"}]));
    assert_eq!(outcomes["artifacts"], json!([{"type": "row", "uri": "users:42"}]));
    let metrics = json!({"task_score": 0.75, "steps_total": 2, "steps_completed": 2, "duration_ms": 14_000});
    assert_eq!(outcomes["metrics"], metrics);
    assert_eq!(outcomes["x-gateway"]["transition.committed"], 1);
}

#[test]
fn pending_run_has_fewer_links_and_files() {
    let (waiting, finished) = (Timeline::of(paused()), Timeline::of(happened("vetoed")));
    let links = |it: &Timeline| {
        let keys = state(it.events())["links"].as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        (keys, it.files().len(), it.manifest(|it| it).is_some())
    };
    assert_eq!(links(&waiting), (vec!["events".to_owned(), "learn".to_owned()], 3, false));
    let all = ["events", "learn", "manifest", "summary"].map(str::to_owned).to_vec();
    assert_eq!(links(&finished), (all, 5, true));
}

#[test]
fn export_at_a_pause_is_a_prefix_of_later_exports() {
    let (early, late) = (Timeline::of(paused()), Timeline::of(happened("ok")));
    let (early, late) = (early.bytes(Artefact::Events).unwrap(), late.bytes(Artefact::Events).unwrap());
    assert!(late.starts_with(&early));
    assert!(late.len() > early.len());
}

#[test]
fn every_written_state_has_a_projection_event() {
    let timeline = Timeline::of(happened("ok"));
    let told: Vec<_> = timeline.events().iter().filter(|it| it.is_projection()).collect();
    let statuses: Vec<_> = told.iter().map(|it| it.payload["outcomes"]["status"].clone()).collect();
    assert_eq!(statuses, ["pending", "ok"]);
    let last = canonical(&told[1].payload["outcomes"]);
    assert_eq!(last, canonical(&state(timeline.events())["outcomes"]));
}

#[test]
fn long_outcomes_are_hashed_at_a_pause_and_whole_at_the_end() {
    let act = |at: usize| event(at, "act", json!({"tool": "t", "outcome": "ok", "input_excerpt": "x".repeat(1_000)}));
    let mut long = vec![event(0, "start", json!({"task": "x"}))];
    long.extend((1..100).map(act));
    long.push(gateway(100, "transition.held"));
    let waiting = Timeline::of(long.clone());
    long.push(event(101, "terminate", json!({"status": "ok"})));
    let over = Timeline::of(long);
    let told: Vec<_> = over.events().iter().filter(|it| it.is_projection()).collect();
    assert!(told[0].payload.get("outcomes").is_none() && told[0].payload["outcomes_sha256"].is_string());
    assert_eq!(canonical(&told[1].payload["outcomes"]), canonical(&state(over.events())["outcomes"]));
    let lines = |it: &Timeline| it.bytes(Artefact::Events).unwrap();
    assert!(lines(&over).starts_with(&lines(&waiting)), "the pause's own export is the beginning");
}

#[test]
fn a_run_begins_once_however_often_it_is_paused() {
    let mut long = paused();
    long.extend([gateway(20, "transition.approved"), gateway(21, "transition.held"), gateway(22, "thread.reopened")]);
    assert_eq!(state(&long)["episode"]["started_at"], state(&paused())["episode"]["started_at"]);
}

#[test]
fn a_closed_thread_is_an_aborted_run_until_it_is_reopened() {
    let mut events = paused();
    assert_eq!(status(&events), RunStatus::Pending);
    events.push(gateway(20, "thread.closed"));
    assert_eq!(status(&events), RunStatus::Aborted);
    events.push(gateway(21, "thread.reopened"));
    assert_eq!(status(&events), RunStatus::Pending);
    events.push(event(22, "terminate", json!({"status": "partial"})));
    events.push(gateway(23, "thread.closed"));
    assert_eq!(status(&events), RunStatus::Partial, "what was said of the end stays");
}

#[test]
fn only_gateway_events_decide_the_verification() {
    let marker = |events: &[EventRecord]| final_marker(events)["verification_status"].clone();
    let mut events = vec![event(1, "start", json!({})), event(2, "act", json!({"event_type": "write.confirmed"}))];
    assert_eq!(marker(&events), "not_applicable");
    events.push(gateway(3, "transition.committed"));
    assert_eq!(marker(&events), "unverified");
    events.push(gateway(4, "write.confirmed"));
    assert_eq!(marker(&events), "verified");
    events.push(gateway(5, "write.lapsed"));
    assert_eq!(marker(&events), "unverified", "of one write nobody knows");
    events.push(gateway(6, "write.resolved"));
    assert_eq!(marker(&events), "verified");
}

#[test]
fn a_summary_follows_1_3_0() {
    let confirmed = [gateway(3, "transition.committed"), gateway(4, "write.confirmed")];
    let run = |status: &str, gateway: &[EventRecord]| {
        let mut events = vec![event(1, "start", json!({"task": "x"}))];
        events.extend_from_slice(gateway);
        events.push(event(9, "terminate", json!({"status": status})));
        let summary = summary(Timeline::of(events).events());
        assert_eq!((&summary["schema_version"], &summary["task"]), (&json!("1.3.0"), &json!("x")));
        for name in ["episode_id", "started_at", "metrics", "adapter_result", "outcome", "verification"] {
            assert!(summary.get(name).is_some_and(|it| !it.is_null()), "{name}");
        }
        for name in ["provided", "passed", "assertions", "workspace_diff", "snapshots", "policy"] {
            assert!(summary["verification"].get(name).is_some(), "{name}");
        }
        let word = |name: &str| summary[name].as_str().unwrap().to_owned();
        (word("adapter_result"), word("outcome"), summary["verification"]["passed"].clone())
    };
    let expected = |result: &str, outcome: &str, passed: Value| (result.to_owned(), outcome.to_owned(), passed);
    assert_eq!(run("ok", &confirmed), expected("success", "success", json!(true)));
    assert_eq!(run("ok", &confirmed[..1]), expected("success", "success_unverified", json!(false)));
    assert_eq!(run("ok", &[]), expected("success", "success_unverified", json!(null)));
    assert_eq!(run("partial", &confirmed), expected("success", "goal_not_achieved", json!(true)));
    assert_eq!(run("vetoed", &[]), expected("skipped", "goal_not_achieved", json!(null)));
    assert_eq!(run("error", &[]), expected("error", "error", json!(null)));
}

#[test]
fn a_state_without_a_plan_has_an_empty_one() {
    let state = state(&[event(1, "start", json!({"task": "x"}))]);
    let expected = json!({"steps": [], "source": "none", "updated_at": "2026-11-22T08:00:01.000Z"});
    assert_eq!(state["plan"], expected);
    assert_eq!(state["goal"]["type"], "task");
}

/// Builds the published schema of that name.
fn schema(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

fn faults(schema: &Value, value: &Value) -> Vec<String> {
    let schema = jsonschema::options().should_validate_formats(true).build(schema).unwrap();
    // Read as a reader would, with numbers in their written form.
    let value: Value = serde_json::from_str(&canonical(value)).unwrap();
    schema.iter_errors(&value).map(|it| format!("{} {it}", it.instance_path())).collect()
}

const STATE: &str = include_str!("../../../../../tests/episode/schemas/state_1.0.0.json");
const FINAL: &str = include_str!("../../../../../tests/episode/schemas/final_2.0.0.json");
const LEARN: &str = include_str!("../../../../../tests/episode/schemas/learn_1.0.0.json");
const MANIFEST: &str = include_str!("../../../../../tests/episode/schemas/manifest_1.0.0.json");

#[test]
fn written_files_validate_against_the_published_schemas() {
    let mut plain = happened("ok");
    drop(plain[0].payload.remove("intuition_mode"));
    for events in [paused(), plain, happened("vetoed")] {
        let timeline = Timeline::of(events);
        let state = state(timeline.events());
        let mut published = schema(STATE);
        // The two members that only the published text defines. docs/specs/episodes.md explains them.
        let text = json!({"type": "string"});
        published["properties"]["links"]["properties"]["manifest"] = text.clone();
        published["$defs"]["episode"]["properties"]["intuition_mode"] = text;
        assert_eq!(faults(&published, &state), [""; 0]);
        for learned in learn(timeline.events()) {
            assert_eq!(faults(&schema(LEARN), &learned), [""; 0]);
        }
        if timeline.is_finished() {
            assert_eq!(faults(&schema(FINAL), &final_marker(timeline.events())), [""; 0]);
            let manifest = timeline.manifest(|it| it).unwrap();
            assert_eq!(faults(&schema(MANIFEST), &serde_json::from_slice(&manifest).unwrap()), [""; 0]);
        }
    }
}

#[test]
fn the_published_schema_refuses_exactly_those_two_members() {
    let timeline = Timeline::of(happened("ok"));
    let mut bare = state(timeline.events());
    assert_eq!(faults(&schema(STATE), &bare).len(), 2);
    drop(bare["links"].as_object_mut().unwrap().remove("manifest"));
    drop(bare["episode"].as_object_mut().unwrap().remove("intuition_mode"));
    assert_eq!(faults(&schema(STATE), &bare), [""; 0]);
}

#[test]
fn state_stays_valid_for_any_agent_event() {
    let odd = json!({"step_records": [{}, {"id": 7, "kind": "ponder", "status": "fine", "depends_on": [1]}, 3],
        "beliefs": [{"statement": 1, "confidence": 2}, 4], "facts": [{"key": 1}, {"key": "a", "value": null, "type": "x",
        "provenance": {"source": "b", "policy_id": 9, "evidence_ids": [1, "c"], "more": true}, "ttl_sec": -1}, 5],
        "tool": 7, "outcome": "splendid", "result_artifacts": [{}, 6], "metrics": 8, "message": 9, "status": "done"});
    let phases = ["start", "observe", "interpret", "memory", "plan", "act", "insight", "learn", "terminate", "runtime"];
    let events: Vec<EventRecord> = phases.iter().enumerate().map(|(at, phase)| event(at, phase, odd.clone())).collect();
    assert_eq!(faults(&schema(STATE), &state(Timeline::of(events).events())), [""; 0]);
}

/// An agent may report a hundred thousand facts and artifacts. A search through all of them for each would not end.
#[test]
fn all_facts_and_artifacts_are_projected() {
    let many = 100_000;
    let fact = |it: usize| json!({"key": format!("k{it}"), "value": it});
    let facts = event(1, "memory", json!({"facts": (0..many).chain(0..2).map(fact).collect::<Vec<_>>()}));
    let made = |it: usize| json!({"type": "row", "uri": format!("row:{it}")});
    let act = event(2, "act", json!({"result_artifacts": (0..many).chain(0..2).map(made).collect::<Vec<_>>()}));
    let state = state(&[facts, act]);
    assert_eq!(state["memory"]["facts"].as_array().unwrap().len(), many);
    assert_eq!(state["outcomes"]["artifacts"].as_array().unwrap().len(), many);
}
