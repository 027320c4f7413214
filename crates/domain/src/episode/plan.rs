//! Plan, from the events alone.
//!
//! The contract: take the latest plan event. Take its `step_records`, else its older `steps`, labels of the form
//! `kind:description`. Then apply, in order, each later act event that has both `step_id` and `step_status`. A step
//! whose status no event gives keeps its status. An unknown kind is `plan`, and an unknown status is `pending`.

use std::collections::{BTreeSet, HashMap};

use serde::Serialize;
use serde_json::{Map, Value};

use super::event_line::{EventRecord, phase};
use super::projector::ProjectionRules;

pub const KINDS: [&str; 6] = ["detect", "analyze", "plan", "act", "verify", "review"];
pub const STATUSES: [&str; 6] = ["pending", "running", "done", "skipped", "failed", "vetoed"];

const PENDING: &str = "pending";
const DONE: &str = "done";
/// Kind of a step whose event names no known kind, and its value before our rules had a version.
const KIND: &str = "plan";
const FIRST_KIND: &str = "act";
/// Source of a plan whose event names none.
const SYSTEM: &str = "system";

/// Status outside the vocabulary. The contract's own tools write it into the state of an episode that a policy stopped.
const BLOCKED: &str = "blocked";

/// Returns whether a state that is read may have this status. Our own states have one of [`STATUSES`].
pub fn is_read_status(status: &str) -> bool {
    status == BLOCKED || STATUSES.contains(&status)
}

/// Returns the published word for a status.
pub fn known_status(status: &str) -> &str {
    if STATUSES.contains(&status) { status } else { PENDING }
}

#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct PlanStep {
    pub id: String,
    pub kind: String,
    pub description: String,
    pub status: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rationale: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inputs: Option<Map<String, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outputs: Option<Map<String, Value>>,
    /// Steps that must come before it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<String>,
}

#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct EpisodePlan {
    pub steps: Vec<PlanStep>,
    pub source: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rationale: Option<String>,
    pub updated_at: String,
}

/// A plan, with the steps whose status an event gives.
#[derive(Clone, PartialEq, Debug)]
pub struct ProjectedPlan {
    pub plan: EpisodePlan,
    /// Ids of the steps whose status an event gives.
    pub evidence: BTreeSet<String>,
}

impl EpisodePlan {
    /// Counts the steps that are done.
    pub fn done(&self) -> usize {
        self.steps.iter().filter(|it| it.status == DONE).count()
    }
}

/// Projects the plan from the events. `status_before` returns the earlier status of a step whose status no event gives.
pub fn project<'r>(
    events: impl DoubleEndedIterator<Item = &'r EventRecord> + Clone,
    status_before: impl Fn(&str) -> Option<String>,
) -> Option<ProjectedPlan> {
    let plans = events.clone().rev().position(|it| it.is(phase::PLAN))?;
    let at = events.clone().count() - 1 - plans;
    let event = events.clone().nth(at)?;
    let mut evidence = BTreeSet::new();
    let mut steps = steps_of(event, ProjectionRules::of(events.clone()), &mut evidence);
    for step in steps.iter_mut().filter(|it| !evidence.contains(&it.id)) {
        if let Some(status) = status_before(&step.id) {
            step.status = status;
        }
    }
    let mut places: HashMap<String, usize> = HashMap::new();
    for (place, step) in steps.iter().enumerate() {
        // An id that occurs twice means its first step.
        places.entry(step.id.clone()).or_insert(place);
    }
    for act in events.skip(at + 1).filter(|it| it.is(phase::ACT)) {
        let (Some(id), Some(status)) = (word(act, "step_id"), word(act, "step_status")) else { continue };
        if let Some(place) = places.get(id) {
            // Agents may send any word, but the state has only the published ones.
            known_status(status).clone_into(&mut steps[*place].status);
            evidence.insert(id.to_owned());
        }
    }
    let agent = Some(event.agent_id.as_str()).filter(|it| !it.is_empty());
    let source = word(event, "source").or(agent).unwrap_or(SYSTEM).to_owned();
    let rationale = event.text("rationale").map(str::to_owned);
    Some(ProjectedPlan {
        plan: EpisodePlan { steps, source, rationale, updated_at: event.timestamp.clone() },
        evidence,
    })
}

/// Returns a text of an event if it is not empty.
fn word<'r>(event: &'r EventRecord, name: &str) -> Option<&'r str> {
    event.text(name).filter(|it| !it.is_empty())
}

fn steps_of(event: &EventRecord, rules: ProjectionRules, evidence: &mut BTreeSet<String>) -> Vec<PlanStep> {
    if let Some(Value::Array(records)) = event.payload.get("step_records") {
        let read = |(at, it): (usize, &Value)| Some(of_record(at, it.as_object()?, rules, evidence));
        return records.iter().enumerate().filter_map(read).collect();
    }
    let labels = event.payload.get("steps").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    labels.iter().enumerate().filter_map(|(at, it)| Some(of_label(at, it.as_str()?, rules))).collect()
}

const fn kind_by(rules: ProjectionRules) -> &'static str {
    // A folder is checked by the rules of its own time, so its hashes stay valid.
    match rules {
        ProjectionRules::First => FIRST_KIND,
        ProjectionRules::Published => KIND,
    }
}

fn of_record(
    at: usize,
    record: &Map<String, Value>,
    rules: ProjectionRules,
    evidence: &mut BTreeSet<String>,
) -> PlanStep {
    let text = |name: &str| record.get(name).and_then(Value::as_str);
    let object = |name: &str| record.get(name).and_then(Value::as_object).cloned();
    let id = text("id").filter(|it| !it.is_empty()).map_or_else(|| numbered(at), str::to_owned);
    let status = text("status").filter(|it| STATUSES.contains(it));
    if status.is_some() {
        evidence.insert(id.clone());
    }
    let depends_on = record.get("depends_on").and_then(Value::as_array).into_iter().flatten();
    PlanStep {
        kind: text("kind").filter(|it| KINDS.contains(it)).unwrap_or(kind_by(rules)).to_owned(),
        description: text("description").unwrap_or_default().to_owned(),
        status: status.unwrap_or(PENDING).to_owned(),
        rationale: text("rationale").map(str::to_owned),
        inputs: object("inputs"),
        outputs: object("outputs"),
        depends_on: depends_on.filter_map(Value::as_str).map(str::to_owned).collect(),
        id,
    }
}

fn of_label(at: usize, label: &str, rules: ProjectionRules) -> PlanStep {
    let parts = label.split_once(':');
    let known = parts.filter(|(kind, _)| KINDS.contains(kind));
    let (kind, description) = match (rules, known, parts) {
        (_, Some(known), _) => known,
        (ProjectionRules::Published, None, Some((_, description))) => (KIND, description),
        (ProjectionRules::Published, None, None) => (KIND, label),
        (ProjectionRules::First, None, _) => (FIRST_KIND, label),
    };
    PlanStep {
        id: numbered(at),
        kind: kind.to_owned(),
        description: description.to_owned(),
        status: PENDING.to_owned(),
        rationale: None,
        inputs: None,
        outputs: None,
        depends_on: Vec::new(),
    }
}

fn numbered(at: usize) -> String {
    format!("step-{}", at + 1)
}

#[cfg(test)]
mod tests;
