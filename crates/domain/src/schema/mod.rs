//! JSON Schema 2020-12. An unknown keyword is an error, because a constraint that is not enforced would be
//! misleading.

mod fault;
mod keywords;
mod listing;
mod meter;
mod metered;
mod pattern;
mod reach;
mod references;
mod text;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use jsonschema::{Draft, PatternOptions, ValidationError, Validator};
use serde_json::{Value, json};
use toml::de::DeTable;

pub(super) use fault::SchemaViolation;
pub use fault::SchemaViolationKind;
use keywords::SchemasByPointer;
use metered::{CheckCosts, MeteredJson, MeteredValue};
use pattern::RegexPattern;
pub(crate) use reach::{PathMiss, SchemaPaths, SchemaReach};
use references::Recursion;

/// Compiled schemas stay in memory as long as their policy or guard, so their size is bounded.
pub(super) const BYTES_MAX: usize = 256 * 1024;

/// A compiled schema. Clones are cheap.
#[derive(Clone, Debug)]
pub(super) struct Schema(Arc<Compiled>);

#[derive(Debug)]
struct Compiled {
    /// The schema itself, for the author of a policy.
    document: Value,
    decides: Validator<MeteredJson>,
    /// Lists the violations. Without `anyOf` and `oneOf`, the deciding validator does this itself.
    lists: Option<Validator<MeteredJson>>,
    recursion: Recursion,
    prices: CheckCosts,
    per_part: u64,
}

/// A schema before it is compiled.
pub(super) struct SchemaSource(Value);

/// Default for unknown members in a schema that does not mention them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Openness {
    /// They are allowed, as in JSON Schema.
    AsWritten,
    /// They are rejected at the top level, because nodes must name what they send and receive.
    Closed,
}

/// Why a schema is invalid. `at` is a pointer into the schema.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub(super) enum SchemaError {
    #[error("schema {name:?} is not JSON: {why}")]
    Text { name: String, why: String },
    #[error("a schema cannot contain {what}")]
    NotJson { what: &'static str },
    #[error("at {at:?} of the schema: {why}")]
    At { at: String, why: String },
}

impl SchemaSource {
    /// Compiles a schema file.
    pub(super) fn file(name: &str, text: &str) -> Result<Self, SchemaError> {
        text::from_json(text).map(Self).map_err(|why| SchemaError::Text { name: name.to_owned(), why })
    }

    /// Compiles a schema in the policy itself.
    pub(super) fn inline(table: &DeTable<'_>) -> Result<Self, SchemaError> {
        text::from_toml(table).map(Self)
    }

    /// Returns the source of the schema.
    pub(super) const fn value(&self) -> &Value {
        &self.0
    }

    pub(super) fn compile(mut self, openness: Openness) -> Result<Schema, SchemaError> {
        // The validator accepts unknown keywords and references that multiply, so both checks come first.
        let places = keywords::check(&self.0)?;
        let extents = references::check(&places)?;
        let per_part = extents.per_part as u64;
        let prices = CheckCosts {
            part: per_part / IDLE_PER_STEP,
            error: ERROR_STEPS + longest_copied(&places) as u64 / COPIED_BYTES_PER_STEP,
            names: patterns_of_names(&places),
        };
        if let (Openness::Closed, Value::Object(members)) = (openness, &mut self.0)
            && !["additionalProperties", "unevaluatedProperties"].iter().any(|key| members.contains_key(*key))
        {
            // `unevaluated` rather than `additional`: it sees through `$ref` and `allOf`.
            members.insert("unevaluatedProperties".to_owned(), json!(false));
        }
        let decides = validator(&self.0).map_err(|error| SchemaError::At {
            at: error.instance_path().as_str().to_owned(),
            why: error.to_string(),
        })?;
        // A rewriting that does not compile is dropped, because the deciding validator can list, too.
        let lists = listing::with_forms_decided(&self.0).and_then(|it| validator(&it).ok());
        let recursion = extents.recursion;
        Ok(Schema(Arc::new(Compiled { document: self.0, decides, lists, recursion, prices, per_part })))
    }
}

fn validator(schema: &Value) -> Result<Validator<MeteredJson>, ValidationError<'static>> {
    jsonschema::options_for::<MeteredJson>()
        .with_draft(Draft::Draft202012)
        // No schema may make the gateway fetch a document.
        .offline()
        // Formats are only annotations by default in this draft.
        .should_validate_formats(true)
        .should_ignore_unknown_formats(false)
        // Matching is linear in the text, so that a pattern of a policy cannot block the gateway on an agent's value.
        .with_pattern_options(PatternOptions::regex().size_limit(REGEX_BYTES_MAX).dfa_size_limit(REGEX_BYTES_MAX))
        .with_keyword(pattern::KEYWORD, |_, value, _| pattern::keyword(value))
        .build(schema)
}

/// Returns how many patterns names are held against, and the states of the largest.
fn patterns_of_names(places: &SchemasByPointer<'_>) -> (u64, u64) {
    let named = |schema: &Value| schema.get("patternProperties")?.as_object().map(|it| it.keys().cloned().collect());
    let patterns = places.values().filter_map(|it| named(it)).flat_map(|it: Vec<String>| it);
    let states = patterns.filter_map(|it| RegexPattern::compile(&it)).map(|it| it.states());
    states.fold((0, 0), |(count, largest), states| (count + 1, largest.max(states)))
}

/// Longest part of the schema that the validator copies into an error.
fn longest_copied(places: &SchemasByPointer<'_>) -> usize {
    let text = |value: &Value| value.as_str().map_or(0, str::len);
    let copied = |schema: &Value| {
        let excluded = schema.get("not").map_or(0, |it| it.to_string().len());
        let required = schema.get("required").and_then(Value::as_array).into_iter().flatten().map(text).max();
        let texts = ["pattern", "contentEncoding", "contentMediaType"].iter().filter_map(|it| schema.get(it)).map(text);
        texts.chain(required).fold(excluded, usize::max)
    };
    places.values().map(|schema| copied(schema)).max().unwrap_or(0)
}

/// Maximum size of a compiled pattern. Counted repetitions would otherwise grow without limit.
const REGEX_BYTES_MAX: usize = 1024 * 1024;

/// Maximum steps for deciding whether a value matches. A step is a part of the value that one schema visits, or a few
/// bytes of text. The largest state has 10,000 leaves, and each may be visited a thousand times. A check that uses
/// all steps takes some tenths of a second.
const DECIDING_STEPS_MAX: u64 = 10_000_000;

/// Maximum steps for listing violations, with `ERROR_STEPS` for each error. The limit also bounds the memory.
const LISTING_STEPS_MAX: u64 = 1_000_000;

/// Maximum steps of one check.
pub(super) const STEPS_MAX: u64 = DECIDING_STEPS_MAX + LISTING_STEPS_MAX;

/// An error takes as long as visiting this many parts.
const ERROR_STEPS: u64 = 50;

/// An error that copies more text or more of its schema costs accordingly more.
const COPIED_BYTES_PER_STEP: u64 = 4;

/// Schemas without a constraint for a part, such as `{}`, cost little but are not counted by the meter. Every visit
/// therefore pays for the maximum number of them at one part.
const IDLE_PER_STEP: u64 = 64;

/// Maximum number of listed violations, which are then sorted. Beyond it, the value is invalid as a whole.
const FAULTS_MAX: usize = 10_000;

/// Total length of the pointers in a list of violations. A long key is part of each pointer below it: without a
/// limit, a megabyte of state could need a hundred gigabytes of pointers.
const POINTER_BYTES_MAX: usize = 16 * 1024 * 1024;

impl Schema {
    /// Returns the violations of the value, at most `FAULTS_MAX`, in no particular order. A value whose check takes
    /// too many steps does not match.
    pub(super) fn faults(&self, value: &Value) -> Vec<SchemaViolation> {
        let whole = MeteredValue::whole(value, &self.0.prices);
        // A value that fits needs no list, so the cheaper decision comes first.
        match meter::within(DECIDING_STEPS_MAX, || self.0.decides.is_valid(whole)) {
            Some(true) => Vec::new(),
            // The value stays invalid even if its violations cannot be listed.
            Some(false) => self.listed(whole).unwrap_or_else(|| vec![SchemaViolation::unexplained()]),
            // An undecided value is rejected, because the schema may forbid it.
            None => vec![SchemaViolation::too_costly()],
        }
    }

    /// Returns the violations of a value that does not match, unless listing them costs too much.
    fn listed(&self, whole: MeteredValue<'_>) -> Option<Vec<SchemaViolation>> {
        if self.0.recursion == Recursion::InParts {
            // If a schema descends twice into one part, listing violations costs twice as much for each level of the
            // value. Deciding does not, because the validator caches results. Violations of such a tree are therefore
            // not listed.
            return None;
        }
        let lists = self.0.lists.as_ref().unwrap_or(&self.0.decides);
        meter::within(LISTING_STEPS_MAX, || {
            let (mut faults, mut bytes) = (Vec::new(), 0);
            for error in lists.iter_errors(whole) {
                for fault in SchemaViolation::all_of(&error).take(FAULTS_MAX - faults.len()) {
                    bytes += fault.pointer.as_str().len();
                    if bytes > POINTER_BYTES_MAX {
                        return None;
                    }
                    faults.push(fault);
                }
            }
            // Both results must agree. If they do not, the stricter one applies.
            (!faults.is_empty()).then_some(faults)
        })
        .flatten()
    }

    /// Returns the maximum number of schemas that judge one part of a value.
    pub(super) fn per_part(&self) -> u64 {
        self.0.per_part
    }
}
