//! Checks whether the state and the other projections follow from the events.

use std::collections::HashMap;

use serde_json::Value;

use super::files::is_plain_name;
use super::implied::{self, Implied};
use super::parts::{Extent, Part};
use super::{Findings, Folder, Run};
use crate::domain::episode::Artefact;
use crate::domain::episode::event_line::{Record, phase};
use crate::domain::episode::finding::{Code, Finding, Note, Noted};
use crate::domain::episode::plan::{self, Plan, Projected, Step, known_status};
use crate::domain::episode::state::{self, PROJECTOR, Status, links};
use crate::domain::json::canonical::canonical;

const FILE: &str = Artefact::State.file();

pub(super) fn check(folder: &Folder, run: &Run, found: &mut Findings) {
    let Some(state) = &run.state else { return };
    let events: Vec<Record> = run.lines.iter().map(|it| it.record.clone()).collect();
    if state["episode"]["id"].as_str() != run.episode_id.as_deref() {
        found.add(Finding::of(Code::Episode, FILE));
    }
    let last = events.iter().rfind(|it| it.is_projection());
    checked_plan(state, &events, last.is_some(), found);
    checked_links(state, run, last, found);
    let ours = last.is_some_and(|it| it.text("projector") == Some(PROJECTOR));
    if !ours {
        Implied { state, events: &events, projection: last }.check(found);
        implied::derived(folder, run.episode_id.as_deref(), found);
    }
    let Some(last) = last else {
        found.note(Note::NoProjection, Artefact::Events.file());
        return;
    };
    if !state::has_outcomes(last, &state["outcomes"]) {
        found.add(Finding::of(Code::Outcomes, FILE));
    }
    if last.payload.get("links") != Some(&state["links"]) {
        found.add(Finding::of(Code::Links, FILE));
    }
    let start = events.iter().find(|it| it.is(phase::START));
    if start.is_some_and(|it| state["episode"]["started_at"] != it.timestamp.as_str()) {
        found.add(Finding::of(Code::StartedAt, FILE));
    }
    if ours {
        made_again(folder, state, &events, found);
    }
}

/// Rebuilds everything in our own episodes, where everything is a projection.
fn made_again(folder: &Folder, told: &Value, events: &[Record], found: &mut Findings) {
    if canonical(&state::state(events)) != canonical(told) {
        found.add(Finding::of(Code::State, FILE));
    }
    Part::OF_STATE.into_iter().for_each(|it| found.part(it, Extent::Checked));
    let lines = |values: Vec<Value>| values.iter().map(|it| canonical(it) + "\n").collect::<String>();
    let mut files = vec![(Artefact::Learn, Part::Learn, lines(state::learn(events)))];
    if state::status(events).is_final() {
        files.push((Artefact::Summary, Part::Summary, lines(vec![state::summary(events)])));
        files.push((Artefact::Final, Part::Final, lines(vec![state::final_marker(events)])));
    }
    for (artefact, part, made) in files {
        // The check of the manifest reports absent files.
        let Some(bytes) = folder.bytes(artefact) else { continue };
        found.part(part, Extent::Checked);
        if bytes != made.as_bytes() {
            found.add(Finding::of(Code::Derived, artefact.file()));
        }
    }
}

/// Checks the plan by the published contract: the state must have everything that the events give.
fn checked_plan(told: &Value, events: &[Record], projected: bool, found: &mut Findings) {
    let steps = told["plan"]["steps"].as_array().map(Vec::as_slice).unwrap_or_default();
    found.part(Part::Plan, Extent::Unchecked);
    for (index, _) in steps.iter().enumerate().filter(|(_, it)| is_of_no_vocabulary(&it["status"])) {
        let place = format!("/plan/steps/{index}/status");
        found.untold.push(Noted::about(Note::UnknownStatus, FILE, &place));
    }
    let mut statuses: HashMap<&str, &Value> = HashMap::new();
    for step in steps {
        if let Some(id) = step["id"].as_str() {
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
    let Plan { steps: ours, source, rationale, updated_at } = &made.plan;
    found.part(Part::Plan, plan_extent(&made, projected));
    // A state of the published text may leave these out.
    let agrees = |name: &str, made: &str| told["plan"].get(name).is_none_or(|it| it == made);
    let same = ours.len() == steps.len()
        && ours.iter().zip(steps).all(|(one, other)| is_same_step(one, other))
        && agrees("source", source)
        && rationale.as_ref().is_none_or(|it| told["plan"]["rationale"] == it.as_str())
        // Episodes without a projection have the moment when the state was written instead.
        && (!projected || agrees("updated_at", updated_at));
    if !same {
        found.add(Finding::of(Code::Plan, FILE));
        return;
    }
    for (one, other) in ours.iter().zip(steps) {
        if !made.evidence.contains(&one.id) {
            found.untold.push(Noted::about(Note::NoStepStatus, FILE, &one.id));
        } else if other["status"].as_str().map(known_status) != Some(one.status.as_str()) {
            found.add(Finding::about(Code::StepStatus, FILE, &one.id));
        }
    }
}

/// Returns the extent of the plan. Events confirm its steps, and its moment only if a projection gives the time of
/// writing.
fn plan_extent(made: &Projected, projected: bool) -> Extent {
    let told = made.plan.steps.iter().filter(|it| made.evidence.contains(&it.id)).count();
    if projected && told == made.plan.steps.len() { Extent::Checked } else { Extent::Partly }
}

fn is_of_no_vocabulary(status: &Value) -> bool {
    status.as_str().is_some_and(|it| known_status(it) != it)
}

fn is_same_step(one: &Step, other: &Value) -> bool {
    other["id"] == one.id.as_str()
        && other["kind"] == one.kind.as_str()
        && other["description"] == one.description.as_str()
}

/// Checks the links. Only a finished episode links to the files of a finished episode. Each link is the fixed name of
/// its file.
fn checked_links(told: &Value, run: &Run, last: Option<&Record>, found: &mut Findings) {
    let status = told["outcomes"]["status"].as_str().and_then(Status::named).unwrap_or(Status::Pending);
    found.part(Part::Links, Extent::Unchecked);
    let Some(linked) = told["links"].as_object() else { return };
    found.part(Part::Links, Extent::Checked);
    let expected = links(status);
    let more = linked.keys().any(|it| expected.get(it).is_none());
    let less = last.is_some() && expected.as_object().is_some_and(|it| it.keys().any(|it| !linked.contains_key(it)));
    // The comparison with the projection reports links that differ from it.
    let agreed = last.is_none_or(|it| it.payload.get("links") == Some(&told["links"]));
    let other = agreed && linked.iter().any(|(name, file)| expected.get(name).is_some_and(|it| it != file));
    if more || less || other {
        found.add(Finding::of(Code::Links, FILE));
    }
    for (name, _) in linked.iter().filter(|(_, file)| !file.as_str().is_some_and(is_plain_name)) {
        found.add(Finding::about(Code::Name, FILE, &format!("/links/{name}")));
    }
    let Some(manifest) = &run.manifest else { return };
    let names = linked.values().filter_map(Value::as_str).filter(|it| *it != Artefact::Manifest.file());
    for name in names.filter(|name| !manifest.files.iter().any(|it| it.name == *name)) {
        found.untold.push(Noted::about(Note::LinkUnkept, FILE, name));
    }
}
