//! Checks the keywords of a schema. An unknown keyword is an error, because a misspelled one would allow what its
//! author meant to forbid.

use std::collections::BTreeMap;

use serde_json::Value;

use super::SchemaError;

/// Form of a keyword's value.
pub(super) enum KeywordShape {
    Schema,
    List,
    Map,
    Data,
    /// A reference, which must stay in the document.
    Reference,
    Format,
    Dialect,
}

const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

/// The formats that are checked. Another format would only be an annotation, which rejects nothing.
pub(super) const FORMATS: &[&str] = &[
    "date",
    "date-time",
    "duration",
    "email",
    "hostname",
    "ipv4",
    "ipv6",
    "iri",
    "iri-reference",
    "json-pointer",
    "regex",
    "relative-json-pointer",
    "time",
    "uri",
    "uri-reference",
    "uri-template",
    "uuid",
];

pub(super) fn shape(keyword: &str) -> Option<KeywordShape> {
    Some(match keyword {
        "$schema" => KeywordShape::Dialect,
        "$ref" | "$dynamicRef" => KeywordShape::Reference,
        "format" => KeywordShape::Format,
        "$defs" | "definitions" | "properties" | "patternProperties" | "dependentSchemas" => KeywordShape::Map,
        "allOf" | "anyOf" | "oneOf" | "prefixItems" => KeywordShape::List,
        "not"
        | "if"
        | "then"
        | "else"
        | "items"
        | "contains"
        | "additionalProperties"
        | "propertyNames"
        | "unevaluatedItems"
        | "unevaluatedProperties"
        | "contentSchema" => KeywordShape::Schema,
        "$id" | "$anchor" | "$dynamicAnchor" | "$comment" | "type" | "enum" | "const" | "multipleOf" | "maximum"
        | "exclusiveMaximum" | "minimum" | "exclusiveMinimum" | "maxLength" | "minLength" | "pattern" | "maxItems"
        | "minItems" | "uniqueItems" | "maxContains" | "minContains" | "maxProperties" | "minProperties"
        | "required" | "dependentRequired" | "title" | "description" | "default" | "deprecated" | "readOnly"
        | "writeOnly" | "examples" | "contentEncoding" | "contentMediaType" => KeywordShape::Data,
        // The prefix marks a note of the author, so it cannot be a misspelled constraint.
        _ if keyword.starts_with("x-") => KeywordShape::Data,
        _ => return None,
    })
}

/// Every schema of the document by its pointer. A reference must name one of them.
pub(super) type SchemasByPointer<'s> = BTreeMap<String, &'s Value>;

/// Walks the whole document. The parsers limit the depth.
pub(super) fn check(schema: &Value) -> Result<SchemasByPointer<'_>, SchemaError> {
    let mut places = SchemasByPointer::new();
    if !schema.is_object() {
        return Err(at("", "a schema is an object with keywords".to_owned()));
    }
    walk(schema, String::new(), &mut places)?;
    Ok(places)
}

fn at(pointer: &str, why: String) -> SchemaError {
    SchemaError::At { at: pointer.to_owned(), why }
}

fn walk<'s>(schema: &'s Value, pointer: String, places: &mut SchemasByPointer<'s>) -> Result<(), SchemaError> {
    places.insert(pointer.clone(), schema);
    // `true`, `false`, and values that the metaschema rejects with a better message.
    let Value::Object(members) = schema else { return Ok(()) };
    for (keyword, value) in members {
        let here = child(&pointer, keyword);
        let shape = shape(keyword).ok_or_else(|| {
            at(&here, format!("unknown keyword {keyword:?}: correct it, or start it with x- if it is only a note"))
        })?;
        match (shape, value) {
            (KeywordShape::Schema, value) => walk(value, here, places)?,
            (KeywordShape::List, Value::Array(items)) => {
                for (index, item) in items.iter().enumerate() {
                    walk(item, child(&here, &index.to_string()), places)?;
                }
            }
            (KeywordShape::Map, Value::Object(named)) => {
                for (name, item) in named {
                    walk(item, child(&here, name), places)?;
                }
            }
            (shape, value) => check_value(&shape, keyword, value, &pointer, &here)?,
        }
    }
    Ok(())
}

fn check_value(
    shape: &KeywordShape,
    keyword: &str,
    value: &Value,
    parent: &str,
    here: &str,
) -> Result<(), SchemaError> {
    let text = value.as_str();
    match shape {
        // An empty fragment names the same dialect.
        KeywordShape::Dialect if text.map(|it| it.trim_end_matches('#')) != Some(DIALECT) => {
            Err(at(here, format!("only {DIALECT} is read: write that, or leave $schema out")))
        }
        KeywordShape::Reference if !text.is_some_and(|it| it.starts_with('#')) => {
            Err(at(here, "references stay within the document (\"#/$defs/name\"); nothing is fetched".to_owned()))
        }
        KeywordShape::Format if !text.is_some_and(|it| FORMATS.contains(&it)) => {
            Err(at(here, format!("this format is not checked; known are {}", FORMATS.join(", "))))
        }
        // A nested `$id` changes the base of references, so they could lead elsewhere than this check follows.
        KeywordShape::Data if keyword == "$id" && !parent.is_empty() => {
            Err(at(here, "$id is allowed only at the top: remove it, references stay within the document".to_owned()))
        }
        _ => Ok(()),
    }
}

/// Returns a JSON Pointer one level down.
pub(super) fn child(pointer: &str, token: &str) -> String {
    format!("{pointer}/{}", token.replace('~', "~0").replace('/', "~1"))
}
