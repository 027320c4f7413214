//! Projects `summary.json` and `final.json`: a finished episode in numbers, and its end.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::outcomes::{RunOutcomes, counted};
use super::{RunStatus, plan_as_it_stands};
use crate::episode::Artefact;
use crate::episode::event_line::{EventRecord, millis_between, phase};
use crate::episode::projector::ProjectionRules;

/// Schema version of a summary, and its value before our rules had a version.
const SUMMARY_SCHEMA: &str = "1.3.0";
const FIRST_SUMMARY_SCHEMA: &str = "1.2.0";
/// Schema version of its metrics.
const METRICS_SCHEMA: &str = "1.0.0";
/// Schema version of a final marker.
const FINAL_SCHEMA: &str = "final/2.0.0";
const MILLIS: f64 = 1000.0;
/// Every allowed write is confirmed. `not_applicable` means that there was no write.
const VERIFIED: &str = "verified";
const NOT_APPLICABLE: &str = "not_applicable";

/// Builds `summary.json` of a finished episode.
pub fn summary(events: &[EventRecord]) -> Value {
    let start = events.iter().find(|it| it.is(phase::START));
    let said = |name: &str| start.and_then(|it| it.payload.get(name)).cloned().unwrap_or_default();
    let (first, last) = (start.or(events.first()), ending(events));
    let millis = first.zip(last).and_then(|(first, last)| millis_between(&first.timestamp, &last.timestamp));
    let intuition = said("intuition_mode");
    let mut summary = json!({
        "schema_version": FIRST_SUMMARY_SCHEMA,
        "episode_id": first.map(|it| it.episode_id.clone()),
        "task": said("task"), "seed": said("seed"), "tags": said("tags"),
        "started_at": first.map(|it| it.timestamp.clone()),
        "duration_sec": whole_or_not(millis.unwrap_or(0)),
        "flags": {"using": said("using"), "intuition": !intuition.is_null(), "mode": intuition},
        "manifest": {"path": Artefact::Manifest.file()},
        "metrics": metrics(events),
    });
    // Older runs keep their bytes, because their manifests have the hash.
    if ProjectionRules::of(events.iter()) == ProjectionRules::Published {
        summary["schema_version"] = SUMMARY_SCHEMA.into();
        let task = start.and_then(|it| it.text("task")).unwrap_or_default();
        summary["task"] = task.into();
        let status = RunOutcomes::of(events).status();
        let verified = verification(&counted(events));
        summary["adapter_result"] = adapter_result(status).into();
        summary["outcome"] = summed_up(status, verified).into();
        summary["verification"] = evidence(verified);
    }
    summary
}

/// Returns whether the adapter finished its work.
const fn adapter_result(status: RunStatus) -> &'static str {
    match status {
        RunStatus::Ok | RunStatus::Partial => "success",
        RunStatus::Error => "error",
        RunStatus::Vetoed | RunStatus::Aborted | RunStatus::Pending => "skipped",
    }
}

/// Returns whether the goal was achieved, as far as the gateway's own events show.
fn summed_up(status: RunStatus, verified: &str) -> &'static str {
    match status {
        // An agent's own claim of success is not enough.
        RunStatus::Ok if verified == VERIFIED => "success",
        RunStatus::Ok => "success_unverified",
        RunStatus::Error => "error",
        RunStatus::Partial | RunStatus::Vetoed | RunStatus::Aborted | RunStatus::Pending => "goal_not_achieved",
    }
}

/// Returns the verification of a summary: one assertion, about the writes. The gateway takes no snapshot of a
/// workspace.
fn evidence(verified: &str) -> Value {
    let provided = verified != NOT_APPLICABLE;
    let passed = provided.then_some(verified == VERIFIED);
    let assertion = |passed: bool| json!({"name": "writes_confirmed", "passed": passed, "reason": null});
    json!({
        "provided": provided, "passed": passed, "assertions": passed.map(assertion).into_iter().collect::<Vec<_>>(),
        "workspace_diff": null, "snapshots": null, "policy": {"ignore": [], "symlinks": "not_followed"},
    })
}

/// Returns seconds without an empty fraction: `5`, not `5.0`, as in the canonical form.
fn whole_or_not(millis: i64) -> Value {
    if millis % 1000 == 0 {
        return json!(millis / 1000);
    }
    #[expect(
        clippy::cast_precision_loss,
        reason = "a run is far shorter than the 285,000 years that a double counts in ms"
    )]
    let secs = millis as f64 / MILLIS;
    json!(secs)
}

fn ending(events: &[EventRecord]) -> Option<&EventRecord> {
    // A projection only repeats the events before it.
    events.iter().rev().find(|it| it.is(phase::TERMINATE)).or(events.iter().rfind(|it| !it.is_projection()))
}

fn metrics(events: &[EventRecord]) -> Value {
    let of = |phase: &str| events.iter().filter(|it| it.is(phase)).count();
    let plan = plan_as_it_stands(events);
    let status = RunOutcomes::of(events).status();
    let gateway = counted(events);
    json!({
        "schema_version": METRICS_SCHEMA,
        "act_count": of(phase::ACT), "interpret_count": of(phase::INTERPRET), "reflect_count": of(phase::REFLECT),
        "plan_count": of(phase::PLAN), "plan_revisions": of(phase::PLAN).saturating_sub(1),
        "plan_total": plan.as_ref().map_or(0, |it| it.steps.len()),
        "steps": plan.as_ref().map_or(0, |it| it.done()),
        "intuition_events": of(phase::INTUITION), "direction_events": of(phase::DIRECTION),
        "learn_proposals": of(phase::LEARN),
        "success": status == RunStatus::Ok,
        "veto_count": vetoes(&gateway),
    })
}

/// Counts the gateway's rejections and the reviewers' denials.
fn vetoes(gateway: &BTreeMap<&str, usize>) -> usize {
    ["transition.rejected", "transition.denied"].iter().filter_map(|it| gateway.get(it)).sum()
}

/// Builds `final.json` of a finished episode.
pub fn final_marker(events: &[EventRecord]) -> Value {
    let start = events.iter().find(|it| it.is(phase::START));
    let process = start.and_then(|it| it.payload.get("process"));
    let episode = events.first().map(|it| it.episode_id.clone()).unwrap_or_default();
    let process_id = process.and_then(|it| it["id"].as_str()).unwrap_or(&episode).to_owned();
    json!({
        "schema_version": FINAL_SCHEMA,
        "episode_id": episode,
        "process_id": process_id,
        "run_index": process.and_then(|it| it["run_index"].as_u64()).unwrap_or(1),
        "finalized_at": ending(events).map(|it| it.timestamp.clone()),
        "outcome": outcome(RunOutcomes::of(events).status()),
        "verification_status": verification(&counted(events)),
    })
}

/// Returns the final marker's own word for a status.
const fn outcome(status: RunStatus) -> &'static str {
    match status {
        RunStatus::Ok => "success",
        RunStatus::Error | RunStatus::Partial => "failed",
        RunStatus::Vetoed => "vetoed",
        RunStatus::Aborted => "cancelled",
        RunStatus::Pending => "interrupted",
    }
}

/// Returns whether all writes were allowed and confirmed, by the gateway's own events alone and never by agents'
/// claims.
fn verification(gateway: &BTreeMap<&str, usize>) -> &'static str {
    let count = |name: &str| gateway.get(name).copied().unwrap_or(0);
    // A write with an unknown outcome prevents any claim about the writes.
    let open = count("write.lapsed") > count("write.resolved");
    match (count("write.confirmed"), count("transition.committed")) {
        (1.., _) if !open => VERIFIED,
        (0, 0) if !open => NOT_APPLICABLE,
        _ => "unverified",
    }
}
