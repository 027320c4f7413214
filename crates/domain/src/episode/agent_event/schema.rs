//! Required shape of a payload, by its phase. Unknown members are stored and mean nothing.

use serde_json::{Map, Value};

use super::{EVIDENCE_MAX, PAYLOAD_BYTES_MAX, Phase};
use crate::episode::plan::{KINDS, STATUSES};
use crate::episode::state::{FACT_TYPES, RunStatus};
use crate::json::canonical::canonical;
use crate::json::pointer::Pointer;
use crate::threads::usage::InvalidUsage;

/// Maximum number of steps, beliefs, facts or artifacts in one event.
const ITEMS_MAX: usize = 100;
/// Maximum length of the name of a step, a tool or a fact.
const WORD_CHARS_MAX: usize = 200;
/// Maximum length of a text that people read.
const TEXT_CHARS_MAX: usize = 4_000;

const A_WORD: &str = "a text of 1 to 200 characters";
const A_TEXT: &str = "a text of at most 4,000 characters";

/// An object of a payload, with its path.
struct PayloadObject<'v> {
    at: Pointer,
    members: &'v Map<String, Value>,
}

type PayloadResult = Result<(), InvalidUsage>;

fn wrong(pointer: Pointer, detail: &'static str) -> InvalidUsage {
    InvalidUsage { pointer, detail }
}

impl<'v> PayloadObject<'v> {
    fn text(&self, name: &str) -> PayloadResult {
        let fits = |it: &Value| it.as_str().is_some_and(|it| it.chars().count() <= TEXT_CHARS_MAX);
        self.optional(name, fits, A_TEXT)
    }

    fn word(&self, name: &str) -> PayloadResult {
        self.optional(name, is_word, A_WORD)
    }

    fn one_of(&self, name: &str, words: &[&str], detail: &'static str) -> PayloadResult {
        self.optional(name, |it| it.as_str().is_some_and(|it| words.contains(&it)), detail)
    }

    fn object(&self, name: &str) -> PayloadResult {
        self.optional(name, Value::is_object, "an object")
    }

    fn optional(&self, name: &str, fits: impl Fn(&Value) -> bool, detail: &'static str) -> PayloadResult {
        match self.members.get(name) {
            Some(value) if !fits(value) => Err(wrong(self.at.child(name), detail)),
            _ => Ok(()),
        }
    }

    fn needs(&self, name: &str) -> PayloadResult {
        match self.members.contains_key(name) {
            true => Ok(()),
            false => Err(wrong(self.at.child(name), "this member is required")),
        }
    }

    /// Returns the items of a list of objects, if it is present.
    fn parts(&self, name: &str) -> Result<Vec<PayloadObject<'v>>, InvalidUsage> {
        let at = self.at.child(name);
        let Some(value) = self.members.get(name) else { return Ok(Vec::new()) };
        // A page shows every item.
        let items = value.as_array().filter(|it| it.len() <= ITEMS_MAX);
        let items = items.ok_or_else(|| wrong(at.clone(), "a list of at most 100 items"))?;
        let part = |(index, item): (usize, &'v Value)| match item {
            Value::Object(members) => Ok(PayloadObject { at: at.index(index), members }),
            _ => Err(wrong(at.index(index), "an object")),
        };
        items.iter().enumerate().map(part).collect()
    }
}

fn is_word(value: &Value) -> bool {
    value.as_str().is_some_and(|it| !it.is_empty() && it.chars().count() <= WORD_CHARS_MAX)
}

/// Checks whether an event can be accepted.
pub fn check(phase: Phase, payload: &Map<String, Value>, evidence_ids: &[String]) -> PayloadResult {
    let root = Pointer::root();
    if canonical(&Value::Object(payload.clone())).len() > PAYLOAD_BYTES_MAX {
        return Err(wrong(root.child("payload"), "the payload is longer than 16 KiB of canonical JSON"));
    }
    let long = |it: &String| it.is_empty() || it.chars().count() > WORD_CHARS_MAX;
    if evidence_ids.len() > EVIDENCE_MAX || evidence_ids.iter().any(long) {
        return Err(wrong(root.child("evidence_ids"), "at most 20 names, each of 1 to 200 characters"));
    }
    let part = PayloadObject { at: root.child("payload"), members: payload };
    match phase {
        Phase::Plan => plan(&part),
        Phase::Act => act(&part),
        Phase::Interpret => part.parts("beliefs")?.iter().try_for_each(belief),
        Phase::Memory => {
            part.text("scratchpad")?;
            part.parts("facts")?.iter().try_for_each(fact)
        }
        Phase::Insight => part.object("metrics"),
        Phase::Terminate => terminate(&part),
        Phase::Observe | Phase::Intuition | Phase::Direction | Phase::Reflect | Phase::Learn => Ok(()),
    }
}

fn plan(part: &PayloadObject<'_>) -> PayloadResult {
    part.word("source")?;
    part.text("rationale")?;
    let labels = |it: &Value| it.as_array().is_some_and(|it| it.len() <= ITEMS_MAX && it.iter().all(Value::is_string));
    part.optional("steps", labels, "a list of at most 100 labels: kind:description")?;
    let steps = part.parts("step_records")?;
    for (index, step) in steps.iter().enumerate() {
        for name in ["id", "kind", "description"] {
            step.needs(name)?;
        }
        step.word("id")?;
        step.text("description")?;
        step.text("rationale")?;
        step.one_of("kind", &KINDS, "detect, analyze, plan, act, verify or review")?;
        step.one_of("status", &STATUSES, STATUS_WORDS)?;
        step.object("inputs")?;
        step.object("outputs")?;
        let words = |it: &Value| it.as_array().is_some_and(|it| it.len() <= ITEMS_MAX && it.iter().all(is_word));
        step.optional("depends_on", words, "a list of at most 100 ids of steps")?;
        // Other events refer to a step by its id.
        if steps[..index].iter().any(|it| it.members["id"] == step.members["id"]) {
            return Err(wrong(step.at.child("id"), "an earlier step has the same id"));
        }
    }
    Ok(())
}

const STATUS_WORDS: &str = "pending, running, done, skipped, failed or vetoed";
const RESULT_WORDS: &str = "ok, error, vetoed, aborted, partial or pending";

fn act(part: &PayloadObject<'_>) -> PayloadResult {
    let results = RunStatus::ALL.map(RunStatus::as_str);
    for name in ["tool", "kind", "step_id"] {
        part.word(name)?;
    }
    part.text("input_excerpt")?;
    part.one_of("outcome", &results, RESULT_WORDS)?;
    part.one_of("result_status", &results, RESULT_WORDS)?;
    part.one_of("step_status", &STATUSES, STATUS_WORDS)?;
    for artifact in part.parts("result_artifacts")? {
        for name in ["type", "uri"] {
            artifact.needs(name)?;
        }
        artifact.word("type")?;
        artifact.text("uri")?;
        artifact.word("sha256")?;
    }
    Ok(())
}

fn belief(part: &PayloadObject<'_>) -> PayloadResult {
    for name in ["statement", "confidence"] {
        part.needs(name)?;
    }
    part.text("statement")?;
    let share = |it: &Value| it.as_f64().is_some_and(|it| (0.0..=1.0).contains(&it));
    part.optional("confidence", share, "a number from 0 to 1")?;
    provenance(part)
}

fn fact(part: &PayloadObject<'_>) -> PayloadResult {
    for name in ["key", "value"] {
        part.needs(name)?;
    }
    part.word("key")?;
    part.one_of("type", &FACT_TYPES, "metric, alert, doc, note or signal")?;
    part.optional("ttl_sec", |it| it.as_u64().is_some(), "seconds, from 0 on")?;
    provenance(part)
}

fn provenance(part: &PayloadObject<'_>) -> PayloadResult {
    let fits = |it: &Value| is_word(it) || it.get("source").is_some_and(is_word);
    part.optional("provenance", fits, "a word, or an object with its source")
}

fn terminate(part: &PayloadObject<'_>) -> PayloadResult {
    part.needs("status")?;
    let ends: Vec<&str> = RunStatus::ALL.into_iter().filter(|it| it.is_final()).map(RunStatus::as_str).collect();
    part.one_of("status", &ends, "ok, error, vetoed, aborted or partial")?;
    part.text("message")
}

#[cfg(test)]
mod tests;
