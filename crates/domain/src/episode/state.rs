//! Projects `state.json`, `learn.jsonl`, `summary.json` and `final.json` from the events.

mod deduplicate;
mod outcomes;
mod summary;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::event_line::{EventRecord, STATE_PROJECTION, phase};
use super::plan::{self, EpisodePlan};
pub use super::projector::PROJECTOR;
use super::projector::{VERSION as PROJECTOR_VERSION, VERSION_MEMBER};
use super::{Artefact, STATE_SCHEMA_VERSION, VERSION};
use crate::chain::hash::Digest;
use crate::json::canonical::canonical;
use crate::primitives::named_enum::named_json_enum;
use deduplicate::LatestByName;
use outcomes::RunOutcomes;

pub use summary::{final_marker, summary};

/// Member of a projection with the hash of the outcomes, instead of `outcomes`.
const OUTCOMES_HASH: &str = "outcomes_sha256";
/// Maximum size of outcomes that every pause may repeat. A hundred of them are some megabytes.
const REPEATED_BYTES_MAX: usize = 64 * 1024;
/// Source of a state without a plan.
pub const NO_PLAN: &str = "none";
const TASK: &str = "task";
/// Schema name in a learn record.
const LEARN_SCHEMA: &str = "learn/1.0";

named_json_enum! {
    /// Status of an episode, in the published words.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
    pub enum RunStatus {
        Ok = "ok",
        Error = "error",
        Vetoed = "vetoed",
        Aborted = "aborted",
        Partial = "partial",
        Pending = "pending",
    }
}

impl RunStatus {
    /// Returns the status of a word.
    pub fn named(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.as_str() == text)
    }

    /// Returns whether the episode is over.
    pub const fn is_final(self) -> bool {
        !matches!(self, Self::Pending)
    }
}

pub fn status(events: &[EventRecord]) -> RunStatus {
    RunOutcomes::of(events).status()
}

/// Projects `state.json`.
pub fn state(events: &[EventRecord]) -> Value {
    let start = events.iter().find(|it| it.is(phase::START));
    let outcomes = RunOutcomes::of(events);
    let mut state = json!({
        "version": VERSION,
        "state_schema_version": STATE_SCHEMA_VERSION,
        "episode": episode(events, start),
        "goal": goal(start),
        "beliefs": beliefs(events),
        "plan": plan_of(events, start),
        "memory": memory(events),
        "outcomes": outcomes.value(events),
        "links": links(outcomes.status()),
    });
    if let Some(process) = start.and_then(|it| it.payload.get("process")).filter(|it| it.is_object()) {
        state["process"] = process.clone();
    }
    state
}

/// How much of the outcomes a projection repeats.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OutcomeDetail {
    Whole,
    /// Only their hash if they are long. Otherwise a timeline would repeat the same actions once per pause.
    Short,
}

/// Builds the event with the content of `state.json` after these events.
pub fn projection(events: &[EventRecord], evidence: OutcomeDetail) -> Map<String, Value> {
    let outcomes = RunOutcomes::of(events);
    let mut said = json!({
        "links": links(outcomes.status()), "projector": PROJECTOR, "state_path": Artefact::State.file(),
    });
    said[VERSION_MEMBER] = PROJECTOR_VERSION.into();
    let value = outcomes.value(events);
    // The hash still lets the check detect a changed state.
    let long = evidence == OutcomeDetail::Short && canonical(&value).len() > REPEATED_BYTES_MAX;
    match long {
        true => said[OUTCOMES_HASH] = json!(outcomes_hash(&value)),
        false => said["outcomes"] = value,
    }
    let Value::Object(said) = said else { unreachable!("it is written as an object") };
    said
}

/// Returns whether a projection has the outcomes of a state, in full or as their hash. Other systems project only some
/// members, and a null member may be absent from the state.
pub fn has_outcomes(projection: &EventRecord, outcomes: &Value) -> bool {
    let ours = projection.text("projector") == Some(PROJECTOR);
    match (projection.payload.get("outcomes"), projection.payload.get(OUTCOMES_HASH)) {
        (Some(Value::Object(told)), _) if !ours => told.iter().all(|(name, value)| outcomes[name] == *value),
        (Some(told), _) => told == outcomes,
        (None, Some(hash)) => *hash == json!(outcomes_hash(outcomes)),
        (None, None) => false,
    }
}

/// Returns the plain SHA-256 of their canonical JSON.
fn outcomes_hash(outcomes: &Value) -> Digest {
    Digest::of_file(canonical(outcomes).as_bytes())
}

/// Returns the type of the projection's event.
pub const fn projection_type() -> &'static str {
    STATE_PROJECTION
}

/// Projects `learn.jsonl`, line by line.
pub fn learn(events: &[EventRecord]) -> Vec<Value> {
    let learned = events.iter().filter(|it| it.is(phase::LEARN));
    // Some events of older systems have no id.
    let line = |(at, it): (usize, &EventRecord)| {
        json!({
            "schema_version": LEARN_SCHEMA,
            "id": it.id.clone().unwrap_or_else(|| format!("learn-{}", at + 1)),
            "episode_id": it.episode_id, "agent_id": it.agent_id, "timestamp": it.timestamp, "payload": it.payload,
        })
    };
    learned.enumerate().map(line).collect()
}

/// Returns the files that an episode in this status links to.
pub fn links(status: RunStatus) -> Value {
    let mut links = json!({"events": Artefact::Events.file(), "learn": Artefact::Learn.file()});
    if status.is_final() {
        links["summary"] = Artefact::Summary.file().into();
        links["manifest"] = Artefact::Manifest.file().into();
    }
    links
}

/// Projects the current plan, if there is one.
pub fn plan_as_it_stands(events: &[EventRecord]) -> Option<EpisodePlan> {
    plan::project(events.iter(), |_| None).map(|it| it.plan)
}

fn started_at(events: &[EventRecord], start: Option<&EventRecord>) -> String {
    start.or(events.first()).map(|it| it.timestamp.clone()).unwrap_or_default()
}

fn episode(events: &[EventRecord], start: Option<&EventRecord>) -> Value {
    let said = |name: &str| start.and_then(|it| it.payload.get(name)).cloned();
    // Members of another type are left out, because they would make the whole state invalid.
    let mut episode = json!({
        "id": events.first().map(|it| it.episode_id.clone()).unwrap_or_default(),
        "seed": said("seed").filter(Value::is_i64).unwrap_or(json!(0)),
        "started_at": started_at(events, start),
        "tags": said("tags").filter(Value::is_object).unwrap_or(json!({})),
    });
    for name in ["using", "intuition_mode"] {
        if let Some(text) = said(name).filter(Value::is_string) {
            episode[name] = text;
        }
    }
    episode
}

fn goal(start: Option<&EventRecord>) -> Value {
    let text = |name: &str| start.and_then(|it| it.text(name));
    json!({"task": text("task").unwrap_or_default(), "type": text("type").unwrap_or(TASK)})
}

fn plan_of(events: &[EventRecord], start: Option<&EventRecord>) -> Value {
    plan_as_it_stands(events).map_or_else(
        || json!({"steps": [], "source": NO_PLAN, "updated_at": started_at(events, start)}),
        |it| json!(it),
    )
}

fn beliefs(events: &[EventRecord]) -> Vec<Value> {
    let said = events.iter().filter(|it| it.is(phase::INTERPRET)).flat_map(|event| {
        let beliefs = event.payload.get("beliefs").and_then(Value::as_array).into_iter().flatten();
        beliefs.filter_map(move |it| belief(event, it.as_object()?))
    });
    said.collect()
}

fn belief(event: &EventRecord, said: &Map<String, Value>) -> Option<Value> {
    let statement = said.get("statement")?.as_str()?;
    // Agents send any JSON. A belief outside the schema's range would make the whole state invalid.
    let confidence = said.get("confidence")?.as_f64().filter(|it| (0.0..=1.0).contains(it))?;
    Some(json!({
        "statement": statement, "confidence": confidence, "timestamp": event.timestamp,
        "provenance": provenance(event, said),
    }))
}

/// Returns the origin of a value. The published text has a word and the schema an object, so a word becomes the
/// object's source.
fn provenance(event: &EventRecord, said: &Map<String, Value>) -> Value {
    match said.get("provenance") {
        Some(Value::String(source)) => json!({"source": source}),
        Some(Value::Object(from)) if from.get("source").is_some_and(Value::is_string) => {
            let text = |name: &&str| from.get(*name).is_some_and(Value::is_string);
            let mut kept = Map::new();
            for name in ["source", "policy_id", "adapter_id"].iter().filter(|it| text(it)) {
                kept.insert((*name).to_owned(), from[*name].clone());
            }
            if let Some(Value::Array(ids)) = from.get("evidence_ids") {
                kept.insert("evidence_ids".to_owned(), ids.iter().filter(|it| it.is_string()).cloned().collect());
            }
            Value::Object(kept)
        }
        _ => json!({"source": event.agent_id}),
    }
}

pub const FACT_TYPES: [&str; 5] = ["metric", "alert", "doc", "note", "signal"];
const NOTE: &str = "note";

/// Projects the facts by key, each with its last value, in the order of their first appearance.
fn memory(events: &[EventRecord]) -> Value {
    let mut facts = LatestByName::default();
    let mut scratchpad = "";
    for event in events.iter().filter(|it| it.is(phase::MEMORY)) {
        let said = event.payload.get("facts").and_then(Value::as_array).into_iter().flatten();
        for (key, fact) in said.filter_map(|it| fact(event, it.as_object()?)) {
            facts.put(key, fact);
        }
        // The last note replaces the earlier ones.
        scratchpad = event.text("scratchpad").unwrap_or(scratchpad);
    }
    json!({"facts": facts.into_all(), "scratchpad": scratchpad})
}

fn fact(event: &EventRecord, said: &Map<String, Value>) -> Option<(String, Value)> {
    let (key, value) = (said.get("key")?.as_str()?, said.get("value")?);
    let kind = said.get("type").and_then(Value::as_str).filter(|it| FACT_TYPES.contains(it)).unwrap_or(NOTE);
    let mut fact = json!({
        "type": kind, "key": key, "value": value, "timestamp": event.timestamp, "provenance": provenance(event, said),
    });
    if let Some(secs) = said.get("ttl_sec").filter(|it| it.as_u64().is_some()) {
        fact["ttl_sec"] = secs.clone();
    }
    Some((key.to_owned(), fact))
}

#[cfg(test)]
mod tests;
