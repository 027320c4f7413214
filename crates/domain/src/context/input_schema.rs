//! Schema of what a node may receive. A node has a separate schema for what it sends.

use serde_json::Value;

use crate::json::pointer::Pointer;
use crate::schema::{Openness, Schema, SchemaSource};

/// Maximum number of violations in one answer. After fixing these, the caller asks again.
const MISFITS_MAX: usize = 100;

/// Schema of what a node receives.
#[derive(Clone, Debug)]
pub struct InputSchema(Schema);

/// A path of a payload that does not fit. The text contains no value.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct InputMismatch {
    pub pointer: Pointer,
    pub detail: &'static str,
}

impl InputSchema {
    /// Reads a schema from a file. Like a node's schema, it is closed at the top unless it says otherwise.
    pub fn read(name: &str, text: &str) -> Result<Self, String> {
        let schema = SchemaSource::file(name, text).and_then(|it| it.compile(Openness::Closed));
        schema.map(Self).map_err(|why| why.to_string())
    }

    /// Uses a schema of the policy.
    pub(crate) const fn of(schema: Schema) -> Self {
        Self(schema)
    }

    /// Returns where the payload does not fit, in the order of the paths.
    pub fn misfits(&self, payload: &Value) -> Vec<InputMismatch> {
        let told = |pointer, detail| InputMismatch { pointer, detail };
        let faults = self.0.faults(payload).into_iter();
        let mut misfits: Vec<InputMismatch> = faults.map(|it| told(it.pointer, it.kind.detail())).collect();
        misfits.sort();
        // Several rules of a schema may report the same path.
        misfits.dedup();
        misfits.truncate(MISFITS_MAX);
        misfits
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const SCHEMA: &str = r#"{"type": "object", "properties": {"question": {"type": "string", "minLength": 1}},
        "required": ["question"]}"#;

    fn places(payload: &Value) -> Vec<(String, &'static str)> {
        let misfits = InputSchema::read("brief", SCHEMA).unwrap().misfits(payload);
        misfits.into_iter().map(|it| (it.pointer.to_string(), it.detail)).collect()
    }

    #[test]
    fn mismatch_names_the_path_and_never_the_value() {
        assert_eq!(places(&json!({"question": "Who owns the harbour?"})), []);
        let missing = "a member that the schema asks for is missing";
        assert_eq!(places(&json!({})), [("/question".to_owned(), missing)]);
        let of_type = "the value is not of the type that the schema asks for";
        assert_eq!(places(&json!({"question": 4111})), [("/question".to_owned(), of_type)]);
    }

    #[test]
    fn member_unknown_to_the_schema_is_a_mismatch() {
        let unknown = "the schema does not know this member";
        assert_eq!(places(&json!({"question": "Who?", "notes": "more"})), [("/notes".to_owned(), unknown)]);
        let open = SCHEMA.replacen('{', r#"{"additionalProperties": true, "#, 1);
        let open = InputSchema::read("brief", &open).unwrap();
        assert_eq!(open.misfits(&json!({"question": "Who?", "notes": "more"})), []);
    }

    #[test]
    fn mismatches_are_limited_to_a_hundred() {
        let payload: serde_json::Map<_, _> = (0..200).map(|it| (format!("extra{it}"), json!(it))).collect();
        assert_eq!(places(&Value::Object(payload)).len(), MISFITS_MAX);
    }

    #[test]
    fn invalid_schema_is_refused_with_a_message() {
        assert!(InputSchema::read("brief", "{").unwrap_err().contains("brief"));
        InputSchema::read("brief", r#"{"type": "text"}"#).unwrap_err();
    }
}
