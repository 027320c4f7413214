//! Chooses the dialect of a schema and checks states with it.
//!
//! The text itself decides: a schema with `$schema` at its top is JSON Schema 2020-12, and one without is in the
//! guard's own dialect. So one text has one meaning, however it is passed in. A JSON Schema without its `$schema` is
//! refused or is stricter, never looser, because the own dialect knows fewer keywords and closes objects.

use serde_json::Value;

use super::code::GuardReporter;
use super::{GuardConfigCode, GuardConfigError, LIMITS, basic_schema};
use crate::json::parse::{JsonCode, parse};
use crate::json::pointer::Pointer;
use crate::primitives::named_enum::named_enum;
use crate::schema::{BYTES_MAX, Openness, Schema as JsonSchema, SchemaError, SchemaSource, SchemaViolation};

named_enum! {
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum SchemaDialect {
        /// The guard's own: `type`, `enum`, `properties`, `required`, `additionalProperties`, `items`.
        Guard = "guard",
        /// JSON Schema 2020-12.
        JsonSchema = "json-schema-2020-12",
    }
}

#[derive(Clone, Debug)]
pub(super) enum GuardSchema {
    Small(basic_schema::BasicSchema),
    JsonSchema(JsonSchema),
}

impl GuardSchema {
    pub(super) fn read(text: &[u8]) -> Result<Self, GuardConfigError> {
        // The compiled schema stays in memory, so its text is limited before it is read.
        if text.len() > BYTES_MAX {
            return Err(GuardConfigCode::Schema.at(&Pointer::root(), JsonCode::TooLarge.detail()));
        }
        match parse(text, &LIMITS) {
            Ok(schema) if !names_dialect(&schema) => basic_schema::BasicSchema::read(&schema).map(Self::Small),
            Ok(_) => json_schema(text).map(Self::JsonSchema),
            // A JSON Schema may contain numbers that no state can, such as a 64-bit maximum.
            Err(error) if error.code == JsonCode::NumberNotExact => match source(text) {
                Ok(source) if names_dialect(source.value()) => json_schema(text).map(Self::JsonSchema),
                _ => Err(GuardConfigCode::Schema.at(&error.pointer, error.code.detail())),
            },
            Err(error) => Err(GuardConfigCode::Schema.at(&error.pointer, error.code.detail())),
        }
    }

    pub(super) const fn dialect(&self) -> SchemaDialect {
        match self {
            Self::Small(_) => SchemaDialect::Guard,
            Self::JsonSchema(_) => SchemaDialect::JsonSchema,
        }
    }

    /// Reports every violation, in a fixed order.
    pub(super) fn check(&self, value: &Value, found: &mut GuardReporter<'_>) {
        match self {
            Self::Small(schema) => schema.check(value, found),
            Self::JsonSchema(schema) => {
                let mut faults = schema.faults(value);
                // The validator lists violations in no fixed order, and equal inputs need equal answers.
                faults.sort_by(|a, b| (&a.pointer, a.kind).cmp(&(&b.pointer, b.kind)));
                // Several parts of a schema can report the same violation.
                faults.dedup();
                faults.iter().for_each(|SchemaViolation { pointer, kind }| found(*kind, &|| pointer.clone()));
            }
        }
    }
}

fn names_dialect(schema: &Value) -> bool {
    schema.get("$schema").is_some()
}

fn json_schema(text: &[u8]) -> Result<JsonSchema, GuardConfigError> {
    source(text).and_then(|it| it.compile(Openness::AsWritten)).map_err(|error| match error {
        SchemaError::At { at, why } => {
            GuardConfigCode::Schema.at(&Pointer::try_from(at).unwrap_or_else(|_| Pointer::root()), why)
        }
        SchemaError::Text { .. } | SchemaError::NotJson { .. } => {
            GuardConfigCode::Schema.at(&Pointer::root(), error.to_string())
        }
    })
}

fn source(text: &[u8]) -> Result<SchemaSource, SchemaError> {
    const NAME: &str = "given";
    match std::str::from_utf8(text) {
        Ok(text) => SchemaSource::file(NAME, text),
        Err(error) => Err(SchemaError::Text { name: NAME.to_owned(), why: error.to_string() }),
    }
}
