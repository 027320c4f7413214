//! Checks whether the state and the other projections follow from the events.

use std::collections::HashMap;

use serde_json::Value;

use super::files::is_plain_name;
use super::implied::{self, ImpliedState};
use super::parts::{CheckExtent, RunSection};
use super::{Folder, RunFindings, RunFolder};
use crate::episode::Artefact;
use crate::episode::event_line::{EventRecord, phase};
use crate::episode::finding::{Code, Note, RunFinding, RunNote};
use crate::episode::plan::{self, EpisodePlan, PlanStep, ProjectedPlan, known_status};
use crate::episode::state::{self, PROJECTOR, RunStatus, links};
use crate::json::canonical::canonical;

const FILE: &str = Artefact::State.file();

pub(super) fn check(folder: &Folder, run: &RunFolder, found: &mut RunFindings) {
    let Some(state) = &run.state else { return };
    let events: Vec<EventRecord> = run.lines.iter().map(|it| it.record.clone()).collect();
    if state["episode"]["id"].as_str() != run.episode_id.as_deref() {
        found.add(RunFinding::of(Code::Episode, FILE));
    }
    let last = events.iter().rfind(|it| it.is_projection());
    checked_plan(state, &events, last.is_some(), found);
    checked_links(state, run, last, found);
    // Only this projector's rules are known, so only its states can be rebuilt.
    let ours = last.is_some_and(|it| it.text("projector") == Some(PROJECTOR));
    if !ours {
        ImpliedState { state, events: &events, projection: last }.check(found);
        implied::derived(folder, run.episode_id.as_deref(), found);
    }
    let Some(last) = last else {
        found.note(Note::NoProjection, Artefact::Events.file());
        return;
    };
    if !state::has_outcomes(last, &state["outcomes"]) {
        found.add(RunFinding::of(Code::Outcomes, FILE));
    }
    if last.payload.get("links") != Some(&state["links"]) {
        found.add(RunFinding::of(Code::Links, FILE));
    }
    let start = events.iter().find(|it| it.is(phase::START));
    if start.is_some_and(|it| state["episode"]["started_at"] != it.timestamp.as_str()) {
        found.add(RunFinding::of(Code::StartedAt, FILE));
    }
    if ours {
        made_again(folder, state, &events, found);
    }
}

/// Rebuilds everything in our own episodes, where everything is a projection.
fn made_again(folder: &Folder, told: &Value, events: &[EventRecord], found: &mut RunFindings) {
    if canonical(&state::state(events)) != canonical(told) {
        found.add(RunFinding::of(Code::State, FILE));
    }
    RunSection::OF_STATE.into_iter().for_each(|it| found.part(it, CheckExtent::Checked));
    let lines = |values: Vec<Value>| values.iter().map(|it| canonical(it) + "\n").collect::<String>();
    let mut files = vec![(Artefact::Learn, RunSection::Learn, lines(state::learn(events)))];
    if state::status(events).is_final() {
        files.push((Artefact::Summary, RunSection::Summary, lines(vec![state::summary(events)])));
        files.push((Artefact::Final, RunSection::Final, lines(vec![state::final_marker(events)])));
    }
    for (artefact, part, made) in files {
        // The check of the manifest reports absent files.
        let Some(bytes) = folder.bytes(artefact) else { continue };
        found.part(part, CheckExtent::Checked);
        // The files are compared by bytes, because the manifest has their hash.
        if bytes != made.as_bytes() {
            found.add(RunFinding::of(Code::Derived, artefact.file()));
        }
    }
}

/// Checks the plan by the published contract: the state must have everything that the events give.
fn checked_plan(told: &Value, events: &[EventRecord], projected: bool, found: &mut RunFindings) {
    let steps = told["plan"]["steps"].as_array().map(Vec::as_slice).unwrap_or_default();
    found.part(RunSection::Plan, CheckExtent::Unchecked);
    for (index, _) in steps.iter().enumerate().filter(|(_, it)| is_of_no_vocabulary(&it["status"])) {
        let place = format!("/plan/steps/{index}/status");
        found.untold.push(RunNote::about(Note::UnknownStatus, FILE, &place));
    }
    let mut statuses: HashMap<&str, &Value> = HashMap::new();
    for step in steps {
        if let Some(id) = step["id"].as_str() {
            // The first step wins if an id occurs twice, as in the projection.
            statuses.entry(id).or_insert(&step["status"]);
        }
    }
    let status = |id: &str| statuses.get(id)?.as_str().map(str::to_owned);
    let Some(made) = plan::project(events.iter(), status) else {
        if !steps.is_empty() {
            found.note(Note::NoPlan, FILE);
        }
        return;
    };
    let EpisodePlan { steps: ours, source, rationale, updated_at } = &made.plan;
    found.part(RunSection::Plan, plan_extent(&made, projected));
    // A state of the published text may leave these out.
    let agrees = |name: &str, made: &str| told["plan"].get(name).is_none_or(|it| it == made);
    let same = ours.len() == steps.len()
        && ours.iter().zip(steps).all(|(one, other)| is_same_step(one, other))
        && agrees("source", source)
        && rationale.as_ref().is_none_or(|it| told["plan"]["rationale"] == it.as_str())
        // Episodes without a projection have the moment when the state was written instead.
        && (!projected || agrees("updated_at", updated_at));
    if !same {
        found.add(RunFinding::of(Code::Plan, FILE));
        return;
    }
    for (one, other) in ours.iter().zip(steps) {
        if !made.evidence.contains(&one.id) {
            found.untold.push(RunNote::about(Note::NoStepStatus, FILE, &one.id));
        } else if other["status"].as_str().map(known_status) != Some(one.status.as_str()) {
            found.add(RunFinding::about(Code::StepStatus, FILE, &one.id));
        }
    }
}

/// Returns the extent of the plan. Events confirm its steps, and its moment only if a projection gives the time of
/// writing.
fn plan_extent(made: &ProjectedPlan, projected: bool) -> CheckExtent {
    let told = made.plan.steps.iter().filter(|it| made.evidence.contains(&it.id)).count();
    if projected && told == made.plan.steps.len() { CheckExtent::Checked } else { CheckExtent::Partly }
}

fn is_of_no_vocabulary(status: &Value) -> bool {
    status.as_str().is_some_and(|it| known_status(it) != it)
}

fn is_same_step(one: &PlanStep, other: &Value) -> bool {
    other["id"] == one.id.as_str()
        && other["kind"] == one.kind.as_str()
        && other["description"] == one.description.as_str()
}

/// Checks the links. Only a finished episode links to the files of a finished episode. Each link is the fixed name of
/// its file.
fn checked_links(told: &Value, run: &RunFolder, last: Option<&EventRecord>, found: &mut RunFindings) {
    let status = told["outcomes"]["status"].as_str().and_then(RunStatus::named).unwrap_or(RunStatus::Pending);
    found.part(RunSection::Links, CheckExtent::Unchecked);
    let Some(linked) = told["links"].as_object() else { return };
    found.part(RunSection::Links, CheckExtent::Checked);
    let expected = links(status);
    let more = linked.keys().any(|it| expected.get(it).is_none());
    let less = last.is_some() && expected.as_object().is_some_and(|it| it.keys().any(|it| !linked.contains_key(it)));
    // The comparison with the projection reports links that differ from it.
    let agreed = last.is_none_or(|it| it.payload.get("links") == Some(&told["links"]));
    let other = agreed && linked.iter().any(|(name, file)| expected.get(name).is_some_and(|it| it != file));
    if more || less || other {
        found.add(RunFinding::of(Code::Links, FILE));
    }
    for (name, _) in linked.iter().filter(|(_, file)| !file.as_str().is_some_and(is_plain_name)) {
        found.add(RunFinding::about(Code::Name, FILE, &format!("/links/{name}")));
    }
    let Some(manifest) = &run.manifest else { return };
    let names = linked.values().filter_map(Value::as_str).filter(|it| *it != Artefact::Manifest.file());
    for name in names.filter(|name| !manifest.files.iter().any(|it| it.name == *name)) {
        // A missing target proves no change of the state, so this is only a note.
        found.untold.push(RunNote::about(Note::LinkUnkept, FILE, name));
    }
}
