//! The same schema, for listing what is wrong: it refuses the same values, and makes fewer errors.

use serde_json::{Map, Value, json};

use super::keywords::{KeywordShape, shape};

/// Returns the schema with each form of `anyOf` and `oneOf` rewritten as a condition, if it has such forms.
///
/// A value that matches no form has one violation at one path. The validator would list in full why each form does
/// not match: an event of twenty kinds costs twenty lists that are not read. A condition is only decided. Its
/// evaluated members still count for `unevaluatedProperties`, which a double negation would lose.
pub(super) fn with_forms_decided(schema: &Value) -> Option<Value> {
    let mut rewriting = SchemaRewriter { forms: 0, refers_into_forms: false };
    let rewritten = rewriting.schema(schema);
    (rewriting.forms > 0 && !rewriting.refers_into_forms).then_some(rewritten)
}

struct SchemaRewriter {
    forms: usize,
    /// A pointer into a form would lead elsewhere.
    refers_into_forms: bool,
}

impl SchemaRewriter {
    /// The depth is bounded by the parsers.
    fn schema(&mut self, schema: &Value) -> Value {
        let Value::Object(members) = schema else { return schema.clone() };
        let rewritten = members.iter().map(|(keyword, value)| (keyword.clone(), self.keyword(keyword, value)));
        Value::Object(rewritten.collect())
    }

    fn keyword(&mut self, keyword: &str, value: &Value) -> Value {
        match (shape(keyword), value) {
            (Some(KeywordShape::List), Value::Array(forms)) if matches!(keyword, "anyOf" | "oneOf") => {
                self.forms += forms.len();
                forms.iter().map(|form| self.form(form)).collect()
            }
            (Some(KeywordShape::List), Value::Array(items)) => items.iter().map(|item| self.schema(item)).collect(),
            (Some(KeywordShape::Map), Value::Object(named)) => {
                let named: Map<_, _> = named.iter().map(|(name, it)| (name.clone(), self.schema(it))).collect();
                Value::Object(named)
            }
            (Some(KeywordShape::Schema), value) => self.schema(value),
            (Some(KeywordShape::Reference), Value::String(target)) => {
                // A form moves below `if`, so this reference would name another place.
                self.refers_into_forms |= ["/anyOf/", "/oneOf/"].iter().any(|it| target.contains(it));
                value.clone()
            }
            _ => value.clone(),
        }
    }

    /// Forms within a form are decided with it.
    fn form(&mut self, form: &Value) -> Value {
        // This walk only looks for references, because the form itself stays as it is.
        let mut inner = Self { forms: 0, refers_into_forms: false };
        inner.schema(form);
        self.refers_into_forms |= inner.refers_into_forms;
        json!({"if": form, "else": false})
    }
}
