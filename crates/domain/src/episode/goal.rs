//! Terms that a host application gives when an episode begins.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Number, Value, json};

use super::state::RunStatus;
use crate::chain::hash::{Digest, Tag};
use crate::json::canonical::canonical;
use crate::json::pointer::Pointer;
use crate::primitives::time::Timestamp;
use crate::threads::usage::InvalidUsage;

/// Maximum length of a task, which is a paragraph at the head of a page.
const TASK_CHARS_MAX: usize = 2_000;
/// Maximum length of types, adapters, and the names and values of tags.
const WORD_CHARS_MAX: usize = 200;
/// Maximum number of tags that a page can show.
const TAGS_MAX: usize = 20;
/// Maximum seed, so that every JSON reader reads the same integer.
const SEED_MAX: i64 = 9_007_199_254_740_991;

/// The goal of a run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Goal {
    /// The description of the task.
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 2000))]
    pub task: String,
    /// The type of the task.
    #[serde(rename = "type", default = "task")]
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 200))]
    pub kind: String,
}

fn task() -> String {
    "task".to_owned()
}

/// The use of advice.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum IntuitionMode {
    /// Advice is read.
    Advisory,
    /// Advice can intervene.
    Interventive,
    /// Both.
    Hybrid,
}

/// The value of a tag.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(untagged)]
pub enum TagValue {
    /// A word.
    Text(String),
    /// A number.
    #[cfg_attr(feature = "openapi", schema(value_type = f64))]
    Number(Number),
    /// Yes or no.
    Flag(bool),
}

/// The members that make a thread an episode.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct EpisodeTerms {
    /// The goal of the run.
    pub goal: Goal,
    /// The seed of the run's random numbers. The default is 0.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(minimum = -9007199254740991i64, maximum = 9007199254740991i64))]
    pub seed: i64,
    /// The host application's labels, by name.
    #[serde(default)]
    pub tags: BTreeMap<String, TagValue>,
    /// The adapter that runs the episode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 200))]
    pub using: Option<String>,
    /// The use of advice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intuition_mode: Option<IntuitionMode>,
}

impl EpisodeTerms {
    /// Checks whether the terms can be stored and shown on a page.
    pub fn check(&self) -> Result<(), InvalidUsage> {
        let wrong = |at: &[&str], detail| {
            let pointer = at.iter().fold(Pointer::root(), |above, it| above.child(it));
            Err(InvalidUsage { pointer, detail })
        };
        // White space alone would be shown as an empty text.
        let fits = |text: &str, most: usize| !text.trim().is_empty() && text.chars().count() <= most;
        if !fits(&self.goal.task, TASK_CHARS_MAX) {
            return wrong(&["goal", "task"], "a task must have 1 to 2,000 characters");
        }
        if !fits(&self.goal.kind, WORD_CHARS_MAX) {
            return wrong(&["goal", "type"], "a type must have 1 to 200 characters");
        }
        if self.using.as_ref().is_some_and(|it| !fits(it, WORD_CHARS_MAX)) {
            return wrong(&["using"], "an adapter's label must have 1 to 200 characters");
        }
        if !(-SEED_MAX..=SEED_MAX).contains(&self.seed) {
            return wrong(&["seed"], "a seed must be an integer from -(2^53 - 1) to 2^53 - 1");
        }
        let long = |(name, value): (&String, &TagValue)| {
            !fits(name, WORD_CHARS_MAX)
                || matches!(value, TagValue::Text(text) if text.chars().count() > WORD_CHARS_MAX)
        };
        if self.tags.len() > TAGS_MAX || self.tags.iter().any(long) {
            return wrong(&["tags"], "at most 20 tags, each name and text of at most 200 characters");
        }
        Ok(())
    }

    /// Returns the digest that the audit log names.
    pub fn digest(&self) -> Digest {
        Digest::of(Tag::EpisodeTerms, &[canonical(&json!(self)).as_bytes()])
    }

    /// Returns the payload of the start event, before redaction.
    pub fn start(&self, flow: &str) -> Map<String, Value> {
        let mut said = json!({
            "task": self.goal.task, "type": self.goal.kind, "seed": self.seed, "tags": self.tags,
            "process": {"id": flow, "name": flow, "run_index": 1},
        });
        if let Some(using) = &self.using {
            said["using"] = using.as_str().into();
        }
        if let Some(mode) = self.intuition_mode {
            said["intuition_mode"] = json!(mode);
        }
        let Value::Object(said) = said else { unreachable!("it is written as an object") };
        said
    }
}

/// An episode as stored in its thread's row.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Episode {
    /// Terms of the episode.
    pub terms: EpisodeTerms,
    /// Number of events that agents have added.
    pub events: u64,
    /// End of the episode, once an agent has set it. No event follows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<EpisodeEnd>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EpisodeEnd {
    pub status: RunStatus,
    pub at: Timestamp,
    /// Number of the thread's event that ended it. The episode covers everything up to that event.
    pub seq: u64,
}

impl Episode {
    pub const fn new(terms: EpisodeTerms) -> Self {
        Self { terms, events: 0, ended: None }
    }
}

#[cfg(test)]
mod tests;
