//! JSON Schema 2020-12, of which everything written is enforced: what is not understood is refused.

mod fault;
mod keywords;
mod listing;
mod meter;
mod metered;
mod pattern;
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
use references::Recursion;

/// Schemas are compiled into memory and kept as long as what they belong to.
pub(super) const BYTES_MAX: usize = 256 * 1024;

/// Compiled once; cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Schema(Arc<Compiled>);

#[derive(Debug)]
struct Compiled {
    decides: Validator<MeteredJson>,
    /// Lists what is wrong. The validator that decides does so where the schema offers no forms.
    lists: Option<Validator<MeteredJson>>,
    recursion: Recursion,
    prices: CheckCosts,
    per_part: u64,
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
        let lists = listing::with_forms_decided(&self.0).and_then(|it| validator(&it).ok());
        let recursion = extents.recursion;
        Ok(Schema(Arc::new(Compiled { decides, lists, recursion, prices, per_part })))
    }
}

fn validator(schema: &Value) -> Result<Validator<MeteredJson>, ValidationError<'static>> {
    jsonschema::options_for::<MeteredJson>()
        .with_draft(Draft::Draft202012)
        .offline()
        .should_validate_formats(true)
        .should_ignore_unknown_formats(false)
        // Linear in the text: a pattern from a policy must not hang a gateway on a value from an agent.
        .with_pattern_options(PatternOptions::regex().size_limit(REGEX_BYTES_MAX).dfa_size_limit(REGEX_BYTES_MAX))
        .with_keyword(pattern::KEYWORD, |_, value, _| pattern::keyword(value))
        .build(schema)
}

/// How many patterns names are held against, and the states of the largest.
fn patterns_of_names(places: &SchemasByPointer<'_>) -> (u64, u64) {
    let named = |schema: &Value| schema.get("patternProperties")?.as_object().map(|it| it.keys().cloned().collect());
    let patterns = places.values().filter_map(|it| named(it)).flat_map(|it: Vec<String>| it);
    let states = patterns.filter_map(|it| RegexPattern::compile(&it)).map(|it| it.states());
    states.fold((0, 0), |(count, largest), states| (count + 1, largest.max(states)))
}

/// The longest part of the schema that the validator copies into an error.
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

/// A compiled pattern of a schema; counted repetitions otherwise grow without end.
const REGEX_BYTES_MAX: usize = 1024 * 1024;

/// The steps that deciding whether a value fits may take. A step is a part of the value that one schema visits, or a
/// few bytes of text. The largest state has 10,000 leaves, and each may be visited a thousand times. A check that uses all
/// of its steps takes some tenths of a second.
const DECIDING_STEPS_MAX: u64 = 10_000_000;

/// The steps that listing what is wrong may take, with `ERROR_STEPS` for each error: it bounds the memory as well.
const LISTING_STEPS_MAX: u64 = 1_000_000;

/// The steps that one check may take.
pub(super) const STEPS_MAX: u64 = DECIDING_STEPS_MAX + LISTING_STEPS_MAX;

/// Making an error takes as long as visiting so many parts.
const ERROR_STEPS: u64 = 50;

/// An error that copies more text or more of its schema costs as much more.
const COPIED_BYTES_PER_STEP: u64 = 4;

/// Schemas that say nothing of a part, such as `{}`, take little, and touch nothing that is counted. So every visit pays for
/// as many as there may be at one part.
const IDLE_PER_STEP: u64 = 64;

/// Faults are listed before they are sorted; beyond this a value is wrong as a whole.
const FAULTS_MAX: usize = 10_000;

/// What the pointers of listed faults may amount to. A long key stands in each pointer below it: a megabyte of state could
/// otherwise ask for a hundred gigabytes of pointers.
const POINTER_BYTES_MAX: usize = 16 * 1024 * 1024;

impl Schema {
    /// Everything that is wrong with the value, at most `FAULTS_MAX` things, in no particular order. A value that takes too
    /// many steps to check does not fit.
    pub(super) fn faults(&self, value: &Value) -> Vec<SchemaViolation> {
        let whole = MeteredValue::whole(value, &self.0.prices);
        match meter::within(DECIDING_STEPS_MAX, || self.0.decides.is_valid(whole)) {
            Some(true) => Vec::new(),
            Some(false) => self.listed(whole).unwrap_or_else(|| vec![SchemaViolation::unexplained()]),
            None => vec![SchemaViolation::too_costly()],
        }
    }

    /// What is wrong with a value that does not fit, unless listing it takes too much.
    fn listed(&self, whole: MeteredValue<'_>) -> Option<Vec<SchemaViolation>> {
        if self.0.recursion == Recursion::InParts {
            // Listing what is wrong costs twice as much for each level of the value where a schema descends twice
            // into one part; deciding does not, the validator remembers. So a tree's faults are not listed.
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
            // The two ways must agree; should they not, the stricter one counts.
            (!faults.is_empty()).then_some(faults)
        })
        .flatten()
    }

    /// How many schemas judge one part of a value at most.
    pub(super) fn per_part(&self) -> u64 {
        self.0.per_part
    }
}
