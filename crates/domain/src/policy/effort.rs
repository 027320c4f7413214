//! How much work a judgement may be, estimated before it is judged: from the policy and the size of what it is about.

use serde_json::Value;

use super::bounds;
use super::model::Policy;
use crate::primitives::id::NodeId;
use crate::schema::{self, Schema};

/// Work in steps. A step takes some ten nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Effort(u64);

/// Up to here a judgement is done at once: it takes a few milliseconds.
const LIGHT_MAX: Effort = Effort(300_000);

/// Cost of each part of a state and of a patch, which is read, copied, compared and written.
const PART_STEPS: u64 = 20;

/// Cost of a schema for each part that it checks.
const SCHEMA_STEPS: u64 = 4;

/// Cost of a rule for each part, as long as all rules together stay within their own limit.
const RULE_STEPS: u64 = 10;

impl Policy {
    /// The work of judging a request of a node that is about so many parts, the state's and its own.
    pub fn effort(&self, node: Option<&NodeId>, parts: u64) -> Effort {
        let node = node.and_then(|it| self.nodes.get(it));
        let own = node.and_then(|it| it.schema.as_ref());
        let schemas = self.schema.iter().chain(own).map(|it| of_schema(it, parts)).sum::<u64>();
        // The evaluation of all rules ends at this limit, so the estimate ends there, too.
        let rules = parts.saturating_mul(RULE_STEPS * self.rules.len() as u64).min(bounds::RULE_STEPS_MAX as u64);
        let patterns = self.protected.len() + node.map_or(0, |it| it.reads.len() + it.writes.len() + it.deny.len());
        let others = PART_STEPS + (self.transitions.len() + patterns) as u64;
        // An overflow would make the largest work look light.
        Effort(parts.saturating_mul(others).saturating_add(schemas + rules))
    }
}

impl Effort {
    /// Returns whether it is so little that nothing waits for it.
    pub fn is_light(self) -> bool {
        self <= LIGHT_MAX
    }

    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    pub const fn of(steps: u64) -> Self {
        Self(steps)
    }
}

fn of_schema(schema: &Schema, parts: u64) -> u64 {
    parts.saturating_mul(SCHEMA_STEPS).saturating_mul(schema.per_part()).min(schema::STEPS_MAX)
}

/// The parts of a value, with its texts by their length. The depth is bounded by the parsers.
pub fn parts(value: &Value) -> u64 {
    match value {
        Value::Array(items) => 1 + items.iter().map(parts).sum::<u64>(),
        Value::Object(members) => 1 + members.values().map(parts).sum::<u64>(),
        Value::String(text) => 1 + text.len() as u64 / BYTES_PER_PART,
        Value::Null | Value::Bool(_) | Value::Number(_) => 1,
    }
}

/// A long text costs as much as several parts.
const BYTES_PER_PART: u64 = 256;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::policy::PolicySource;

    fn policy(schema: &Value) -> Policy {
        let text = "flow = \"f\"\nschema = \"s\"\n[nodes.a]\nreads = [\"*\"]\nwrites = [\"*\"]\n".to_owned();
        Policy::compile(&PolicySource { text, schemas: [("s".to_owned(), schema.to_string())].into() }).unwrap()
    }

    fn object(members: usize) -> Value {
        (0..members).map(|it| (format!("k{it}"), json!(it))).collect::<serde_json::Map<_, _>>().into()
    }

    #[test]
    fn an_ordinary_request_is_light_and_a_large_state_or_schema_is_not() {
        let ordinary =
            policy(&json!({"anyOf": [{"required": ["a"]}, {"required": ["b"]}], "additionalProperties": true}));
        let effort = |policy: &Policy, members| policy.effort(None, parts(&object(members)));
        assert!(effort(&ordinary, 1_000).is_light());
        assert!(!effort(&ordinary, 10_000).is_light());
        let wide = policy(&json!({"anyOf": vec![json!({"additionalProperties": {"type": "string"}}); 1_200]}));
        assert!(!effort(&wide, 100).is_light());
        assert!(effort(&wide, 3).is_light());
    }

    #[test]
    fn the_estimate_grows_no_further_than_a_check_may_take() {
        let wide = policy(&json!({"anyOf": vec![json!({"type": "string"}); 9_000]}));
        let of = |members| wide.effort(None, parts(&object(members))).0;
        assert!(of(10_000) < of(1_000) + 10_000 * 100 && of(10_000) >= schema::STEPS_MAX);
    }
}
