//! Checks the members of a state and their forms: those that both the published schema and the published text require.
//! A member that one of them leaves out may be absent, and is checked if present.

use serde_json::Value;

use crate::episode::event_line::is_moment;
use crate::episode::plan::{KINDS, is_read_status};
use crate::episode::state::{FACT_TYPES, RunStatus};
use crate::episode::{STATE_SCHEMA_VERSION, VERSION};
use crate::json::pointer::Pointer;

type FormCheck = fn(&Value) -> bool;
/// A member: its name, whether it is required, and its form.
type StateMember = (&'static str, MemberPresence, FormCheck);

#[derive(Clone, Copy, PartialEq, Eq)]
enum MemberPresence {
    Yes,
    No,
}

use MemberPresence::{No, Yes};

const ROOT: &[StateMember] = &[
    ("version", Yes, |it| it == VERSION),
    ("state_schema_version", Yes, |it| it == STATE_SCHEMA_VERSION),
    ("episode", Yes, Value::is_object),
    ("goal", Yes, Value::is_object),
    ("beliefs", Yes, Value::is_array),
    ("plan", Yes, Value::is_object),
    ("memory", Yes, Value::is_object),
    ("outcomes", Yes, Value::is_object),
    ("links", No, |it| it.as_object().is_some_and(|it| it.values().all(Value::is_string))),
    ("process", No, Value::is_object),
];
const EPISODE: &[StateMember] = &[
    ("id", Yes, Value::is_string),
    ("started_at", Yes, is_time),
    ("seed", No, Value::is_number),
    ("tags", No, |it| it.as_object().is_some_and(|it| it.values().all(is_scalar))),
    ("using", No, Value::is_string),
    ("intuition_mode", No, |it| is_one_of(it, &["advisory", "interventive", "hybrid"])),
];
const GOAL: &[StateMember] = &[("task", Yes, Value::is_string), ("type", No, Value::is_string)];
const BELIEF: &[StateMember] = &[
    ("statement", Yes, Value::is_string),
    ("confidence", Yes, |it| it.as_f64().is_some_and(|it| (0.0..=1.0).contains(&it))),
    ("provenance", Yes, is_provenance),
    ("timestamp", No, is_time),
];
const PLAN: &[StateMember] = &[
    ("steps", Yes, Value::is_array),
    ("source", No, Value::is_string),
    ("updated_at", No, is_time),
    ("rationale", No, Value::is_string),
];
const STEP: &[StateMember] = &[
    ("id", Yes, Value::is_string),
    ("kind", Yes, |it| is_one_of(it, &KINDS)),
    ("description", Yes, Value::is_string),
    ("status", Yes, |it| it.as_str().is_some_and(is_read_status)),
    ("rationale", No, Value::is_string),
    ("inputs", No, Value::is_object),
    ("outputs", No, Value::is_object),
    ("depends_on", No, |it| it.as_array().is_some_and(|it| it.iter().all(Value::is_string))),
];
const MEMORY: &[StateMember] = &[("facts", No, Value::is_array), ("scratchpad", No, Value::is_string)];
const FACT: &[StateMember] = &[
    ("key", Yes, Value::is_string),
    ("value", Yes, |_| true),
    ("type", No, |it| is_one_of(it, &FACT_TYPES)),
    ("timestamp", No, is_time),
    ("provenance", No, is_provenance),
    ("ttl_sec", No, Value::is_u64),
];
const OUTCOMES: &[StateMember] = &[
    ("status", Yes, is_outcome),
    ("actions", No, Value::is_array),
    ("metrics", No, Value::is_object),
    ("artifacts", No, |it| it.as_array().is_some_and(|it| it.iter().all(is_artifact))),
    ("summary", No, |it| it.is_string() || it.is_null()),
];
const ACTION: &[StateMember] = &[
    ("id", Yes, Value::is_string),
    ("kind", No, Value::is_string),
    ("tool", No, Value::is_string),
    ("input_excerpt", No, Value::is_string),
    ("result_status", No, is_outcome),
    ("timestamp", No, is_time),
    ("step_id", No, Value::is_string),
];

fn is_time(value: &Value) -> bool {
    value.as_str().is_some_and(is_moment)
}

fn is_scalar(value: &Value) -> bool {
    value.is_string() || value.is_number() || value.is_boolean()
}

fn is_one_of(value: &Value, words: &[&str]) -> bool {
    value.as_str().is_some_and(|it| words.contains(&it))
}

fn is_outcome(value: &Value) -> bool {
    value.as_str().and_then(RunStatus::named).is_some()
}

fn is_provenance(value: &Value) -> bool {
    value.is_string() || value["source"].is_string()
}

fn is_artifact(value: &Value) -> bool {
    value.is_string() || (value["type"].is_string() && value["uri"].is_string())
}

/// Returns the paths at which a state breaks the contract.
pub(super) fn wrong(state: &Value) -> Vec<Pointer> {
    let mut wrong = Vec::new();
    let root = Pointer::root();
    object(&root, state, ROOT, &mut wrong);
    for (name, members) in
        [("episode", EPISODE), ("goal", GOAL), ("plan", PLAN), ("memory", MEMORY), ("outcomes", OUTCOMES)]
    {
        // A member of the wrong type is reported once, as a member of the root.
        if state[name].is_object() {
            object(&root.child(name), &state[name], members, &mut wrong);
        }
    }
    list(&root.child("beliefs"), &state["beliefs"], BELIEF, &mut wrong);
    list(&root.child("plan").child("steps"), &state["plan"]["steps"], STEP, &mut wrong);
    list(&root.child("memory").child("facts"), &state["memory"]["facts"], FACT, &mut wrong);
    list(&root.child("outcomes").child("actions"), &state["outcomes"]["actions"], ACTION, &mut wrong);
    wrong
}

fn object(at: &Pointer, value: &Value, members: &[StateMember], wrong: &mut Vec<Pointer>) {
    for (name, needed, fits) in members {
        if !value.get(*name).map_or(*needed == No, fits) {
            wrong.push(at.child(name));
        }
    }
}

fn list(at: &Pointer, value: &Value, members: &[StateMember], wrong: &mut Vec<Pointer>) {
    for (index, item) in value.as_array().into_iter().flatten().enumerate() {
        let at = at.index(index);
        if item.is_object() { object(&at, item, members, wrong) } else { wrong.push(at) }
    }
}
