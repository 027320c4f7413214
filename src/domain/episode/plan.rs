//! The plan, from the events alone.
//!
//! The contract: the latest plan event; its `step_records`, else its older `steps`, labels of the form
//! `kind:description`; then, in order, each later act event that says both `step_id` and `step_status`. Where nothing
//! says a step's status, it stays what it was. A kind that is none of the published words is `plan`, and such a status is
//! `pending`.

use std::collections::{BTreeSet, HashMap};

use serde::Serialize;
use serde_json::{Map, Value};

use super::event_line::{Record, phase};
use super::projector::Rules;

/// What a step is for.
pub const KINDS: [&str; 6] = ["detect", "analyze", "plan", "act", "verify", "review"];
/// How far it is.
pub const STATUSES: [&str; 6] = ["pending", "running", "done", "skipped", "failed", "vetoed"];

const PENDING: &str = "pending";
const DONE: &str = "done";
/// The kind of a step whose event has none that is known, and what it was before our rules had a version.
const KIND: &str = "plan";
const FIRST_KIND: &str = "act";
/// Who a plan is from, where its event says nobody.
const SYSTEM: &str = "system";

/// A status beyond the vocabulary that the contract's own tools write into the state of a run that a policy stopped.
const BLOCKED: &str = "blocked";

/// Whether a state that is read may have this status. What is written has one of [`STATUSES`].
pub fn is_read_status(status: &str) -> bool {
    status == BLOCKED || STATUSES.contains(&status)
}

/// The published word for a status.
pub fn known_status(status: &str) -> &str {
    if STATUSES.contains(&status) { status } else { PENDING }
}

/// A step.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Step {
    /// Its name.
    pub id: String,
    /// What it is for.
    pub kind: String,
    /// In words.
    pub description: String,
    /// How far it is.
    pub status: String,
    /// Why it is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rationale: Option<String>,
    /// What it is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inputs: Option<Map<String, Value>>,
    /// What it gave.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outputs: Option<Map<String, Value>>,
    /// What has to come before it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<String>,
}

/// A plan.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Plan {
    /// Its steps, in order.
    pub steps: Vec<Step>,
    /// Who made it.
    pub source: String,
    /// Why it is so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rationale: Option<String>,
    /// When it was said.
    pub updated_at: String,
}

/// A plan, and of which steps the events say the status.
#[derive(Clone, PartialEq, Debug)]
pub struct Projected {
    /// The plan.
    pub plan: Plan,
    /// The ids of those steps whose status some event says.
    pub evidence: BTreeSet<String>,
}

impl Plan {
    /// How many steps are done.
    pub fn done(&self) -> usize {
        self.steps.iter().filter(|it| it.status == DONE).count()
    }
}

/// The plan that follows from the events. `status_before` is the status that a step had, where nothing says another.
pub fn project<'r>(
    events: impl DoubleEndedIterator<Item = &'r Record> + Clone,
    status_before: impl Fn(&str) -> Option<String>,
) -> Option<Projected> {
    let plans = events.clone().rev().position(|it| it.is(phase::PLAN))?;
    let at = events.clone().count() - 1 - plans;
    let event = events.clone().nth(at)?;
    let mut evidence = BTreeSet::new();
    let mut steps = steps_of(event, Rules::of(events.clone()), &mut evidence);
    for step in steps.iter_mut().filter(|it| !evidence.contains(&it.id)) {
        if let Some(status) = status_before(&step.id) {
            step.status = status;
        }
    }
    let mut places: HashMap<String, usize> = HashMap::new();
    for (place, step) in steps.iter().enumerate() {
        places.entry(step.id.clone()).or_insert(place);
    }
    for act in events.skip(at + 1).filter(|it| it.is(phase::ACT)) {
        let (Some(id), Some(status)) = (word(act, "step_id"), word(act, "step_status")) else { continue };
        if let Some(place) = places.get(id) {
            known_status(status).clone_into(&mut steps[*place].status);
            evidence.insert(id.to_owned());
        }
    }
    let agent = Some(event.agent_id.as_str()).filter(|it| !it.is_empty());
    let source = word(event, "source").or(agent).unwrap_or(SYSTEM).to_owned();
    let rationale = event.text("rationale").map(str::to_owned);
    Some(Projected { plan: Plan { steps, source, rationale, updated_at: event.timestamp.clone() }, evidence })
}

/// A text that an event says and that is not empty.
fn word<'r>(event: &'r Record, name: &str) -> Option<&'r str> {
    event.text(name).filter(|it| !it.is_empty())
}

fn steps_of(event: &Record, rules: Rules, evidence: &mut BTreeSet<String>) -> Vec<Step> {
    if let Some(Value::Array(records)) = event.payload.get("step_records") {
        let read = |(at, it): (usize, &Value)| Some(of_record(at, it.as_object()?, rules, evidence));
        return records.iter().enumerate().filter_map(read).collect();
    }
    let labels = event.payload.get("steps").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    labels.iter().enumerate().filter_map(|(at, it)| Some(of_label(at, it.as_str()?, rules))).collect()
}

const fn kind_by(rules: Rules) -> &'static str {
    match rules {
        Rules::First => FIRST_KIND,
        Rules::Published => KIND,
    }
}

fn of_record(at: usize, record: &Map<String, Value>, rules: Rules, evidence: &mut BTreeSet<String>) -> Step {
    let text = |name: &str| record.get(name).and_then(Value::as_str);
    let object = |name: &str| record.get(name).and_then(Value::as_object).cloned();
    let id = text("id").filter(|it| !it.is_empty()).map_or_else(|| numbered(at), str::to_owned);
    let status = text("status").filter(|it| STATUSES.contains(it));
    if status.is_some() {
        evidence.insert(id.clone());
    }
    let depends_on = record.get("depends_on").and_then(Value::as_array).into_iter().flatten();
    Step {
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

fn of_label(at: usize, label: &str, rules: Rules) -> Step {
    let parts = label.split_once(':');
    let known = parts.filter(|(kind, _)| KINDS.contains(kind));
    let (kind, description) = match (rules, known, parts) {
        (_, Some(known), _) => known,
        (Rules::Published, None, Some((_, description))) => (KIND, description),
        (Rules::Published, None, None) => (KIND, label),
        (Rules::First, None, _) => (FIRST_KIND, label),
    };
    Step {
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
