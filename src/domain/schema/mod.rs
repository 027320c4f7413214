//! JSON Schema 2020-12, of which everything written is enforced: what is not understood is refused.

mod fault;
mod keywords;
mod references;
mod text;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use jsonschema::{Draft, PatternOptions, Validator};
use serde_json::{Value, json};
use toml::de::DeTable;

pub(super) use fault::Fault;
pub use fault::FaultKind;
use references::Recursion;

/// Schemas are compiled into memory and kept as long as what they belong to.
pub(super) const BYTES_MAX: usize = 256 * 1024;

/// Compiled once; cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Schema {
    validator: Arc<Validator>,
    recursion: Recursion,
}

/// A schema before it is compiled.
pub(super) struct SchemaSource(Value);

/// What a schema that does not speak of unknown members means by that.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Openness {
    /// As JSON Schema says: they are admitted.
    AsWritten,
    /// They are refused at the top: what a node sends and receives is for naming.
    Closed,
}

/// Why a schema is not accepted; `at` is a pointer into the schema.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub(super) enum SchemaError {
    #[error("schema {name:?} is not JSON: {why}")]
    Text { name: String, why: String },
    #[error("{what} cannot stand in a schema")]
    NotJson { what: &'static str },
    #[error("at {at:?} of the schema: {why}")]
    At { at: String, why: String },
}

impl SchemaSource {
    /// A schema handed in as a file.
    pub(super) fn file(name: &str, text: &str) -> Result<Self, SchemaError> {
        text::from_json(text).map(Self).map_err(|why| SchemaError::Text { name: name.to_owned(), why })
    }

    /// A schema written in the policy itself.
    pub(super) fn inline(table: &DeTable<'_>) -> Result<Self, SchemaError> {
        text::from_toml(table).map(Self)
    }

    /// The schema as it is written.
    pub(super) const fn value(&self) -> &Value {
        &self.0
    }

    pub(super) fn compile(mut self, openness: Openness) -> Result<Schema, SchemaError> {
        let places = keywords::check(&self.0)?;
        let recursion = references::check(&places)?;
        if let (Openness::Closed, Value::Object(members)) = (openness, &mut self.0)
            && !["additionalProperties", "unevaluatedProperties"].iter().any(|key| members.contains_key(*key))
        {
            // `unevaluated` rather than `additional`: it sees through `$ref` and `allOf`.
            members.insert("unevaluatedProperties".to_owned(), json!(false));
        }
        let validator = jsonschema::options()
            .with_draft(Draft::Draft202012)
            .offline()
            .should_validate_formats(true)
            .should_ignore_unknown_formats(false)
            // Linear in the text: a pattern from a policy must not hang a gateway on a value from an agent.
            .with_pattern_options(PatternOptions::regex().size_limit(REGEX_BYTES_MAX).dfa_size_limit(REGEX_BYTES_MAX))
            .build(&self.0)
            .map_err(|error| SchemaError::At {
                at: error.instance_path().as_str().to_owned(),
                why: error.to_string(),
            })?;
        Ok(Schema { validator: Arc::new(validator), recursion })
    }
}

/// A compiled pattern of a schema; counted repetitions otherwise grow without end.
const REGEX_BYTES_MAX: usize = 1024 * 1024;

/// Faults are listed before they are sorted; beyond this a value is wrong as a whole.
const FAULTS_MAX: usize = 10_000;

/// What the pointers to all places of a value may amount to where faults are listed. A long key stands in each pointer
/// below it: a megabyte of state could otherwise ask for a hundred gigabytes of pointers.
const POINTER_BYTES_MAX: usize = 16 * 1024 * 1024;

impl Schema {
    /// Everything that is wrong with the value, at most `FAULTS_MAX` things, in no particular order.
    pub(super) fn faults(&self, value: &Value) -> Vec<Fault> {
        if self.validator.is_valid(value) {
            return Vec::new();
        }
        if self.recursion == Recursion::InParts {
            // Listing what is wrong costs twice as much for each level of the value where a schema descends twice
            // into one part; deciding does not, the validator remembers. So a tree's faults are not listed.
            return vec![Fault::unexplained()];
        }
        let mut room = POINTER_BYTES_MAX;
        if !places_fit(value, 0, &mut room) {
            // The validator makes a pointer for each thing that is wrong before it tells the first.
            return vec![Fault::unexplained()];
        }
        let faults = self.validator.iter_errors(value).flat_map(|error| Fault::all_of(&error));
        let faults: Vec<_> = faults.take(FAULTS_MAX).collect();
        // The two paths of the validator must agree; should they not, the stricter one counts.
        if faults.is_empty() { vec![Fault::unexplained()] } else { faults }
    }
}

/// Whether there is room for a pointer to every place of the value. The depth is bounded by the parsers.
fn places_fit(value: &Value, above: usize, room: &mut usize) -> bool {
    let Some(left) = room.checked_sub(above) else { return false };
    *room = left;
    match value {
        Value::Array(items) => {
            let step = items.len().checked_ilog10().unwrap_or(0) as usize + 2;
            items.iter().all(|it| places_fit(it, above + step, room))
        }
        Value::Object(members) => members.iter().all(|(name, it)| places_fit(it, above + name.len() + 1, room)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    }
}
