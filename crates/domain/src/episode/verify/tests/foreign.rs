//! Tests of episodes without our projection: contradictions of their events, and parts that nothing confirms.

use super::*;
use crate::episode::state;

/// Builds a timeline, whose events are all linked or not at all.
fn lines(events: &[EventRecord], linked: bool) -> Vec<u8> {
    let mut before = Value::Null;
    let line = |it: &EventRecord| {
        let previous = linked.then(|| before.clone());
        let line = EventRecord { previous, ..it.clone() }.line();
        before = Digest::of_file(line.as_bytes()).to_string().into();
        line + "\n"
    };
    events.iter().map(line).collect::<String>().into_bytes()
}

/// Builds a finished episode without projections, as an older system leaves it, with a changed state.
fn older(change: &dyn Fn(&mut Value)) -> (RunFolder, RunReport) {
    let mut folder = folder(happened("ok"));
    *bytes(&mut folder, "events.jsonl") = lines(&happened("ok"), false);
    edit(&mut folder, "state.json", change);
    covered_up(&mut folder);
    verify(&folder, SignatureRequirement::Unchecked)
}

/// Returns the findings: each code with its subject.
fn wrong(change: &dyn Fn(&mut Value)) -> Vec<(&'static str, String)> {
    let (_, report) = older(change);
    report.findings.iter().map(|it| (it.code.as_str(), it.about.clone().unwrap_or_default())).collect()
}

#[test]
fn run_without_projections_is_compared_with_its_events() {
    assert_eq!(wrong(&|_| {}), []);
    for (place, value, code) in [
        ("/outcomes/status", json!("error"), "projection_outcomes"),
        ("/outcomes/actions", json!([]), "projection_outcomes"),
        ("/outcomes/actions/0/tool", json!("other"), "projection_outcomes"),
        ("/outcomes/actions/0/input_excerpt", json!("refund 4000"), "projection_outcomes"),
        ("/outcomes/actions/0/result_status", json!("error"), "projection_outcomes"),
        ("/outcomes/actions/0/step_id", json!("read"), "projection_outcomes"),
        ("/outcomes/metrics/task_score", json!(1), "projection_outcomes"),
        ("/goal/task", json!("Refund order 18"), "projection_state"),
        ("/goal/type", json!("other"), "projection_state"),
        ("/episode/seed", json!(8), "projection_state"),
        ("/episode/tags", json!({}), "projection_state"),
        ("/episode/using", json!("other"), "projection_state"),
        ("/episode/intuition_mode", json!("hybrid"), "projection_state"),
        ("/beliefs", json!([]), "projection_state"),
        ("/memory/facts", json!([]), "projection_state"),
        ("/memory/scratchpad", json!("other"), "projection_state"),
    ] {
        let found = wrong(&|it| *it.pointer_mut(place).unwrap() = value.clone());
        assert_eq!(found, [(code, place.to_owned())]);
    }
    let renamed = wrong(&|it| it["beliefs"][0]["statement"] = "other".into());
    assert_eq!(renamed, [("projection_state", "/beliefs".to_owned())]);
    assert_eq!(wrong(&|it| it["episode"]["using"] = "adapter:graph".into()), [], "older systems name it so");
}

#[test]
fn links_name_the_fixed_files_of_a_run() {
    let other = wrong(&|it| it["links"]["learn"] = "summary.json".into());
    assert_eq!(other, [("projection_links", String::new())]);
    for outside in ["../learn.jsonl", "/etc/passwd", "a/learn.jsonl", ".."] {
        let found = wrong(&|it| it["links"]["learn"] = outside.into());
        assert_eq!(found, [("projection_links", String::new()), ("name", "/links/learn".to_owned())], "{outside}");
    }
}

#[test]
fn report_has_the_extent_of_each_part() {
    let (_, report) = older(&|it| it["outcomes"]["summary"] = "Done.".into());
    assert_eq!(report.verdict(), RunVerification::Verified, "{report:?}");
    let expected = [
        (RunSection::Files, CheckExtent::Checked),
        (RunSection::Signature, CheckExtent::Unchecked),
        (RunSection::Events, CheckExtent::Partly),
        (RunSection::Goal, CheckExtent::Checked),
        (RunSection::Status, CheckExtent::Checked),
        (RunSection::Actions, CheckExtent::Partly),
        (RunSection::Message, CheckExtent::Unchecked),
        (RunSection::Metrics, CheckExtent::Partly),
        (RunSection::Learn, CheckExtent::Unchecked),
    ];
    for (part, extent) in expected {
        assert_eq!(report.parts.of(part), Some(extent), "{part:?}");
    }
    let (_, ours) = verify(&folder(happened("ok")), SignatureRequirement::Unchecked);
    for part in RunSection::ALL.into_iter().filter(|it| *it != RunSection::Signature) {
        assert_eq!(ours.parts.of(part), Some(CheckExtent::Checked), "{part:?}");
    }
    let (_, waiting) = verify(&folder(paused()), SignatureRequirement::Unchecked);
    assert_eq!(waiting.parts.of(RunSection::Files), Some(CheckExtent::Unchecked));
    assert_eq!(waiting.parts.of(RunSection::Final), None);
}

#[test]
fn state_needs_the_members_of_every_published_form() {
    for place in [
        "/episode/started_at",
        "/goal/task",
        "/beliefs/0/statement",
        "/beliefs/0/confidence",
        "/beliefs/0/provenance",
        "/memory/facts/1/key",
        "/memory/facts/1/value",
        "/outcomes/actions/0/id",
        "/plan/steps/0/kind",
    ] {
        let (above, name) = place.rsplit_once('/').unwrap();
        let without = |it: &mut Value| drop(it.pointer_mut(above).unwrap().as_object_mut().unwrap().remove(name));
        assert_eq!(wrong(&without), [("state_malformed", place.to_owned())]);
    }
    for (place, value) in [
        ("/beliefs/0/confidence", json!(2)),
        ("/beliefs/0/provenance", json!({})),
        ("/episode/started_at", json!("yesterday")),
        ("/episode/tags", json!({"a": []})),
        ("/memory/facts/0", json!(3)),
        ("/memory/facts/0/type", json!("rumour")),
        ("/outcomes/actions/0/result_status", json!("fine")),
        ("/outcomes/artifacts", json!([{"type": "row"}])),
        ("/links", json!({"events": 1})),
    ] {
        let found = wrong(&|it| *it.pointer_mut(place).unwrap() = value.clone());
        assert_eq!(found, [("state_malformed", place.to_owned())]);
    }
}

#[test]
fn state_may_omit_members_that_the_published_text_omits() {
    let found = wrong(&|it| {
        for (above, name) in [
            ("/plan", "source"),
            ("/plan", "updated_at"),
            ("/episode", "seed"),
            ("/episode", "tags"),
            ("/beliefs/0", "timestamp"),
            ("/memory/facts/0", "type"),
            ("/outcomes/actions/0", "kind"),
        ] {
            drop(it.pointer_mut(above).unwrap().as_object_mut().unwrap().remove(name));
        }
        it["beliefs"][0]["provenance"] = "orders".into();
        it["outcomes"]["artifacts"] = json!(["users:42"]);
        it["outcomes"]["error"] = Value::Null;
    });
    assert_eq!(found, []);
}

/// Builds an episode that a policy stopped, as the contract's own tool leaves it: its step is `blocked`.
fn vetoed(more: Option<EventRecord>) -> Folder {
    let mut events = vec![
        event(1, "start", json!({"task": "Delete all orders"})),
        event(2, "plan", json!({"rationale": "one step", "steps": ["act:Delete them"]})),
        event(3, "governance", json!({"decision": "veto", "enforced": true})),
    ];
    events.extend(more);
    events.push(event(9, "terminate", json!({"status": "vetoed", "message": "Stopped by policy"})));
    let mut state = state::state(&events);
    state["plan"]["steps"][0]["status"] = "blocked".into();
    state["outcomes"]["summary"] = "Stopped by policy.".into();
    let named = [(Artefact::Events, lines(&events, false)), (Artefact::State, canonical(&state).into_bytes())];
    let borrowed: Vec<(Artefact, &[u8])> = named.iter().map(|(it, bytes)| (*it, bytes.as_slice())).collect();
    let manifest = canonical(&manifest::make("order-17", "2026-11-22T08:00:09.000Z", &borrowed)).into_bytes();
    let files = named.iter().cloned().chain([(Artefact::Manifest, manifest)]);
    Folder { entries: files.map(|(it, bytes)| (it.file().to_owned(), FileContent::Bytes(bytes))).collect() }
}

#[test]
fn blocked_step_is_read_and_noted_with_its_path() {
    let (run, report) = verify(&vetoed(None), SignatureRequirement::Unchecked);
    assert_eq!(report.verdict(), RunVerification::Verified, "{report:?}");
    assert_eq!(run.state.unwrap()["plan"]["steps"][0]["status"], "blocked");
    let noted = report.notes.iter().find(|it| it.code == Note::UnknownStatus).unwrap();
    assert_eq!(noted.about.as_deref(), Some("/plan/steps/0/status"));
    let done = event(4, "act", json!({"step_id": "step-1", "step_status": "done", "tool": "orders", "outcome": "ok"}));
    assert!(codes(&vetoed(Some(done))).contains(&"projection_status"), "an event says that it was done");
}

#[test]
fn own_folder_is_checked_by_the_rules_of_its_version() {
    let mut happened = happened("ok");
    happened[5].payload = json!({"steps": ["no kind"]}).as_object().unwrap().clone();
    let mut events = Timeline::of(happened).events().to_vec();
    let written = |events: &[EventRecord]| {
        let mut folder = folder(super::happened("ok"));
        let one = |value: &Value| (canonical(value) + "\n").into_bytes();
        *bytes(&mut folder, "events.jsonl") = lines(events, true);
        *bytes(&mut folder, "state.json") = one(&state::state(events));
        *bytes(&mut folder, "summary.json") = one(&state::summary(events));
        covered_up(&mut folder);
        folder
    };
    assert_eq!(codes(&written(&events)), [""; 0]);
    assert_eq!(state::state(&events)["plan"]["steps"][0]["kind"], "plan");
    events.iter_mut().for_each(|it| drop(it.payload.remove("projector_version")));
    assert_eq!(state::state(&events)["plan"]["steps"][0]["kind"], "act");
    assert_eq!(state::summary(&events)["schema_version"], "1.2.0");
    let mut before = written(&events);
    assert_eq!(codes(&before), [""; 0]);
    edit(&mut before, "summary.json", |it| it["schema_version"] = "1.3.0".into());
    covered_up(&mut before);
    assert_eq!(codes(&before), ["projection_derived"]);
}

#[test]
fn foreign_projection_may_have_fewer_members_than_the_state() {
    let projected = |outcomes: Value| {
        let mut events = happened("ok");
        let links = state::links(state::RunStatus::Ok);
        events.push(EventRecord {
            event_type: Some("run.state_projection".to_owned()),
            ..event(16, "runtime", json!({"status": "ok", "outcomes": outcomes, "links": links}))
        });
        let mut folder = folder(happened("ok"));
        *bytes(&mut folder, "events.jsonl") = lines(&events, false);
        covered_up(&mut folder);
        codes(&folder)
    };
    assert_eq!(projected(json!({"status": "ok", "summary": "Refunded."})), [""; 0]);
    assert_eq!(projected(json!({"status": "ok", "summary": "Not refunded."})), ["projection_outcomes"]);
}
