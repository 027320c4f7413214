//! Tests of the events of an episode and their projections.

use super::*;

/// Builds the folder with other events, and makes everything else match.
fn with_lines(change: impl FnOnce(&mut Vec<String>)) -> Folder {
    let mut folder = folder(happened("ok"));
    let events = bytes(&mut folder, "events.jsonl");
    let mut lines: Vec<String> = std::str::from_utf8(events).unwrap().lines().map(str::to_owned).collect();
    change(&mut lines);
    *events = lines.iter().map(|it| it.to_owned() + "\n").collect::<String>().into_bytes();
    covered_up(&mut folder);
    folder
}

fn changed(line: &mut String, change: impl FnOnce(&mut EventRecord)) {
    let mut record: EventRecord = serde_json::from_str(line).unwrap();
    change(&mut record);
    *line = record.line();
}

#[test]
fn inconsistent_events_are_found_even_with_a_valid_manifest() {
    let removed = with_lines(|it| drop(it.remove(3)));
    assert!(codes(&removed).contains(&"event_previous"));
    let swapped = with_lines(|it| it.swap(3, 4));
    assert!(codes(&swapped).contains(&"event_previous"));
    let unlinked = with_lines(|it| changed(&mut it[3], |it| it.previous = None));
    assert!(codes(&unlinked).contains(&"event_previous"));
    let beheaded = with_lines(|it| drop(it.remove(0)));
    assert!(codes(&beheaded).contains(&"event_start"));
    let twice = with_lines(|it| changed(&mut it[3], |it| it.id = Some("e1".to_owned())));
    assert!(codes(&twice).contains(&"event_id"));
    let uncaused = with_lines(|it| changed(&mut it[3], |it| it.caused_by = Some("e5".to_owned())));
    assert!(codes(&uncaused).contains(&"event_cause"));
    let other = with_lines(|it| changed(&mut it[3], |it| it.episode_id = "order-18".to_owned()));
    assert!(codes(&other).contains(&"episode"));
    for bad in ["", "{}", "[]", "{\"phase\":1}"] {
        assert!(codes(&with_lines(|it| it[3] = bad.to_owned())).contains(&"event_malformed"), "{bad:?}");
    }
    let undated = with_lines(|it| changed(&mut it[3], |it| it.timestamp = "yesterday".to_owned()));
    assert!(codes(&undated).contains(&"event_malformed"));
    let mut open = folder(happened("ok"));
    bytes(&mut open, "events.jsonl").pop();
    covered_up(&mut open);
    assert_eq!(codes(&open), ["events_truncated"]);
}

#[test]
fn inconsistent_state_is_found_even_with_a_valid_manifest() {
    let stated = |change: fn(&mut Value)| {
        let mut folder = folder(happened("ok"));
        edit(&mut folder, "state.json", change);
        covered_up(&mut folder);
        codes(&folder)
    };
    assert_eq!(
        stated(|it| it["plan"]["steps"][1]["status"] = "failed".into()),
        ["projection_status", "projection_state"]
    );
    assert_eq!(stated(|it| it["plan"]["steps"][1]["kind"] = "verify".into()), ["projection_plan", "projection_state"]);
    assert_eq!(stated(|it| it["plan"]["updated_at"] = "2026-11-22T08:00:00.000Z".into())[0], "projection_plan");
    assert_eq!(stated(|it| it["outcomes"]["actions"][0]["tool"] = "other".into())[0], "projection_outcomes");
    assert_eq!(stated(|it| drop(it["links"].as_object_mut().unwrap().remove("summary")))[0], "projection_links");
    assert!(
        stated(|it| it["episode"]["started_at"] = "2026-11-22T07:00:00.000Z".into()).contains(&"projection_started_at")
    );
    assert!(stated(|it| it["episode"]["id"] = "order-18".into()).contains(&"episode"));
    assert_eq!(stated(|it| it["beliefs"] = json!([])), ["projection_state"]);
    assert_eq!(stated(|it| it["version"] = "2.0".into()), ["state_malformed"]);
    assert_eq!(stated(|it| it["outcomes"]["status"] = "fine".into()), ["state_malformed"]);
    assert_eq!(stated(|it| it["plan"]["steps"][0]["kind"] = "ponder".into()), ["state_malformed"]);
}

#[test]
fn other_projected_files_are_rebuilt() {
    for file in ["summary.json", "final.json", "learn.jsonl"] {
        let mut other = folder(happened("ok"));
        bytes(&mut other, file).extend_from_slice(b" ");
        covered_up(&mut other);
        assert_eq!(codes(&other), ["projection_derived"], "{file}");
    }
}

#[test]
fn pending_run_must_not_link_to_files_of_a_finished_one() {
    let mut early = folder(paused());
    edit(&mut early, "state.json", |it| it["links"]["manifest"] = "manifest.json".into());
    assert!(codes(&early).contains(&"projection_links"));
}

#[test]
fn report_notes_missing_evidence_of_foreign_runs() {
    let mut lines: Vec<EventRecord> = vec![
        event(1, "start", json!({"task": "x"})),
        event(2, "plan", json!({"steps": ["detect:a", "act:b"]})),
        event(3, "act", json!({"step_id": "step-1", "step_status": "done"})),
    ];
    lines[2].caused_by = Some("e2".to_owned());
    let mut state = crate::episode::state::state(&lines);
    state["plan"]["steps"][1]["status"] = "done".into();
    let events: String = lines.iter().map(|it| it.line() + "\n").collect();
    let entries = [("events.jsonl", events.into_bytes()), ("state.json", canonical(&state).into_bytes())];
    let entries = entries.map(|(name, bytes)| (name.to_owned(), FileContent::Bytes(bytes))).to_vec();
    let (_, report) = verify(&Folder { entries }, SignatureRequirement::Unchecked);
    assert!(report.findings.is_empty(), "{report:?}");
    let notes: Vec<_> = report.notes.iter().map(|it| (it.code, it.about.as_deref())).collect();
    let expected = [
        (Note::NotFinished, None),
        (Note::NoEventLinks, None),
        (Note::NoStepStatus, Some("step-2")),
        (Note::NoProjection, None),
    ];
    assert_eq!(notes, expected);
}

/// Builds an episode of this many events, held every second time.
fn held_often(events: usize) -> Vec<EventRecord> {
    let mut happened = vec![event(0, "start", json!({"task": "x"}))];
    let held = |at: usize| if at % 2 == 1 { "transition.held" } else { "transition.denied" };
    happened.extend((1..events).map(|at| EventRecord {
        timestamp: "2026-11-22T08:00:00.000Z".to_owned(),
        ..crate::episode::samples::gateway(at, held(at))
    }));
    happened
}

#[test]
fn run_with_the_maximum_of_events_is_read() {
    let most = usize::try_from(crate::episode::from_thread::TOLD_MAX).unwrap();
    let mut happened = held_often(most - 1);
    happened.push(EventRecord {
        timestamp: "2026-11-22T09:00:00.000Z".to_owned(),
        ..event(most, "terminate", json!({"status": "ok"}))
    });
    assert_eq!(happened.len(), most);
    let folder = folder(happened);
    let lines = folder.bytes(Artefact::Events).unwrap();
    assert!(lines.len() < 32 * 1024 * 1024, "room is left for what agents say: {}", lines.len());
    let (run, report) = verify(&folder, SignatureRequirement::Unchecked);
    assert_eq!(report.verdict(), RunVerification::Verified, "{:?}", &report.findings);
    assert_eq!(run.lines.iter().filter(|it| it.record.is_projection()).count(), PAUSES_TOLD_MAX + 1);
}

#[test]
fn too_many_events_are_found() {
    let line = event(1, "observe", json!({})).line() + "\n";
    let (lines, found) = event_line::read(line.repeat(EVENTS_MAX).as_bytes(), "events.jsonl");
    assert_eq!((lines.len(), found.len()), (EVENTS_MAX, 0));
    let (lines, found) = event_line::read(line.repeat(EVENTS_MAX + 2).as_bytes(), "events.jsonl");
    assert_eq!((lines.len(), found[0].code, found.len()), (EVENTS_MAX, Code::EventsTooMany, 1));
}

#[test]
fn changed_long_outcomes_are_found_by_their_hash() {
    let act = |at: usize| event(at, "act", json!({"tool": "t", "outcome": "ok", "input_excerpt": "x".repeat(1_000)}));
    let mut long = vec![event(0, "start", json!({"task": "x"}))];
    long.extend((1..100).map(act));
    long.push(crate::episode::samples::gateway(100, "transition.held"));
    let mut waiting = folder(long);
    assert_eq!(codes(&waiting), [""; 0]);
    edit(&mut waiting, "state.json", |it| it["outcomes"]["actions"][0]["tool"] = "other".into());
    assert!(codes(&waiting).contains(&"projection_outcomes"));
}

#[test]
fn every_member_of_plan_and_state_is_compared_with_the_events() {
    let stated = |change: &dyn Fn(&mut Value)| {
        let mut folder = folder(happened("ok"));
        edit(&mut folder, "state.json", change);
        covered_up(&mut folder);
        codes(&folder)
    };
    for (place, value) in [
        ("/plan/source", json!("other")),
        ("/plan/rationale", json!("other")),
        ("/plan/updated_at", json!("2026-11-22T08:00:00.000Z")),
        ("/plan/steps/0/id", json!("other")),
        ("/plan/steps/0/kind", json!("verify")),
        ("/plan/steps/0/description", json!("other")),
    ] {
        let found = stated(&|it| *it.pointer_mut(place).unwrap() = value.clone());
        assert!(found.contains(&"projection_plan"), "{place}: {found:?}");
    }
    assert!(stated(&|it| drop(it["plan"]["steps"].as_array_mut().unwrap().pop())).contains(&"projection_plan"));
    for (place, value) in [
        ("/version", json!("2.0")),
        ("/state_schema_version", json!("2.0.0")),
        ("/memory", json!([])),
        ("/goal", json!("x")),
        ("/episode/id", json!(7)),
        ("/beliefs", json!({})),
        ("/outcomes/status", json!("fine")),
        ("/plan/steps", json!({})),
        ("/plan/steps/0/id", json!(7)),
        ("/plan/steps/0/description", json!(7)),
        ("/plan/steps/0/kind", json!("ponder")),
        ("/plan/steps/0/status", json!("fine")),
    ] {
        let found = stated(&|it| *it.pointer_mut(place).unwrap() = value.clone());
        assert_eq!(found, ["state_malformed"], "{place}");
    }
    // A malformed state is compared with nothing. If its projection is another system's, only that one's members are
    // compared.
    let foreign = |change: &dyn Fn(&mut Value)| {
        let mut folder = with_lines(|it| {
            let last = it.len() - 1;
            changed(&mut it[last], |it| drop(it.payload.remove("projector")));
        });
        edit(&mut folder, "state.json", change);
        covered_up(&mut folder);
        codes(&folder)
    };
    assert_eq!(foreign(&|_| {}), [""; 0]);
    assert_eq!(foreign(&|it| it["links"]["learn"] = "other.jsonl".into()), ["projection_links"]);
    assert_eq!(foreign(&|it| it["links"]["more"] = "more.json".into()), ["projection_links", "projection_links"]);
    assert_eq!(foreign(&|it| it["outcomes"]["summary"] = "other".into()), ["projection_outcomes"]);
    assert_eq!(foreign(&|it| it["plan"]["steps"][1]["status"] = "failed".into()), ["projection_status"]);
    assert_eq!(
        foreign(&|it| it["episode"]["started_at"] = "2026-11-22T07:00:00.000Z".into()),
        ["projection_started_at"]
    );
}

#[test]
fn missing_links_of_a_finished_run_are_found_even_if_projected() {
    let less = |links: &mut Value| drop(links.as_object_mut().unwrap().remove("summary"));
    let mut folder = with_lines(|it| {
        let last = it.len() - 1;
        changed(&mut it[last], |it| {
            drop(it.payload.remove("projector"));
            less(it.payload.get_mut("links").unwrap());
        });
    });
    edit(&mut folder, "state.json", |it| less(&mut it["links"]));
    covered_up(&mut folder);
    assert_eq!(codes(&folder), ["projection_links"]);
}
