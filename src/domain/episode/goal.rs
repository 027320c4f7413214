//! What a host says of a run when it begins.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Number, Value, json};

use super::state::Status;
use crate::domain::chain::hash::{Digest, Tag};
use crate::domain::json::canonical::canonical;
use crate::domain::json::pointer::Pointer;
use crate::domain::time::Timestamp;
use crate::domain::usage::Malformed;

/// A task is a paragraph at the head of a page.
const TASK_CHARS_MAX: usize = 2_000;
/// Types, adapters, and the names and values of tags are words.
const WORD_CHARS_MAX: usize = 200;
/// Tags that a page has room for.
const TAGS_MAX: usize = 20;
/// Integers that every reader of JSON reads alike.
const SEED_MAX: i64 = 9_007_199_254_740_991;

/// The goal of an episode.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Goal {
    /// The task, in words.
    #[schema(min_length = 1, max_length = 2000)]
    pub task: String,
    /// The kind of goal.
    #[serde(rename = "type", default = "task")]
    #[schema(min_length = 1, max_length = 200)]
    pub kind: String,
}

fn task() -> String {
    "task".to_owned()
}

/// The degree to which the agents follow advice.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum IntuitionMode {
    /// It is heard.
    Advisory,
    /// It can step in.
    Interventive,
    /// Both.
    Hybrid,
}

/// The value of a tag.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(untagged)]
pub enum TagValue {
    /// A text.
    Text(String),
    /// A number.
    #[schema(value_type = f64)]
    Number(Number),
    /// A boolean.
    Flag(bool),
}

/// The parameters that make a thread an episode.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Terms {
    /// The goal.
    pub goal: Goal,
    /// The seed of the episode's randomness: 0 by default.
    #[serde(default)]
    #[schema(minimum = -9007199254740991i64, maximum = 9007199254740991i64)]
    pub seed: i64,
    /// The host's tags, by name.
    #[serde(default)]
    pub tags: BTreeMap<String, TagValue>,
    /// The adapter that runs the episode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 200)]
    pub using: Option<String>,
    /// The degree to which the agents follow advice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intuition_mode: Option<IntuitionMode>,
}

impl Terms {
    /// Whether it can be kept, and told on a page.
    pub fn check(&self) -> Result<(), Malformed> {
        let wrong = |at: &[&str], detail| {
            let pointer = at.iter().fold(Pointer::root(), |above, it| above.child(it));
            Err(Malformed { pointer, detail })
        };
        let fits = |text: &str, most: usize| !text.trim().is_empty() && text.chars().count() <= most;
        if !fits(&self.goal.task, TASK_CHARS_MAX) {
            return wrong(&["goal", "task"], "a task is 1 to 2,000 characters");
        }
        if !fits(&self.goal.kind, WORD_CHARS_MAX) {
            return wrong(&["goal", "type"], "a type is 1 to 200 characters");
        }
        if self.using.as_ref().is_some_and(|it| !fits(it, WORD_CHARS_MAX)) {
            return wrong(&["using"], "an adapter's label is 1 to 200 characters");
        }
        if !(-SEED_MAX..=SEED_MAX).contains(&self.seed) {
            return wrong(&["seed"], "a seed is an integer that a double can say");
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

    /// What the log says of it.
    pub fn digest(&self) -> Digest {
        Digest::of(Tag::EpisodeTerms, &[canonical(&json!(self)).as_bytes()])
    }

    /// What the start event says, before anything in it is masked.
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

/// An episode as its thread's row has it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Episode {
    /// What it was begun with.
    pub terms: Terms,
    /// How many events agents have added.
    pub events: u64,
    /// How it ended, once an agent said so; no event comes after that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Ended>,
}

/// That a run ended.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ended {
    /// How.
    pub status: Status,
    /// The time.
    pub at: Timestamp,
    /// The number of the thread's event that says so: the run is what happened up to there.
    pub seq: u64,
}

impl Episode {
    /// One that begins.
    pub const fn new(terms: Terms) -> Self {
        Self { terms, events: 0, ended: None }
    }
}

#[cfg(test)]
mod tests;
