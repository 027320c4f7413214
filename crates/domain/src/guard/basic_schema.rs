//! The guard's own dialect: `type`, `enum`, `properties`, `required`, `additionalProperties`, `items`.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use serde_json::{Map, Value};

use super::code::GuardReporter;
use super::{GuardConfigCode, GuardConfigError, SchemaViolationKind};
use crate::json::canonical::canonical;
use crate::json::pointer::Pointer;
use crate::transition_rules::is_integer;

/// Maximum number of levels of a value that a schema may describe, scalars included.
const VALUE_LEVELS_MAX: usize = 64;
/// Maximum number of levels of a schema. The innermost array may be empty, and its schema still has one more level for
/// the items.
const SCHEMA_LEVELS_MAX: usize = VALUE_LEVELS_MAX + 1;

#[derive(Clone, Debug)]
pub(super) struct BasicSchema {
    kind: BasicSchemaKind,
    /// Canonical JSON of each value, so that a long list is as fast as a short one.
    listed: Option<HashSet<String>>,
}

#[derive(Clone, Debug)]
enum BasicSchemaKind {
    Object { properties: BTreeMap<String, BasicSchema>, required: Vec<String>, others: UnknownMembers },
    Array(Box<BasicSchema>),
    Text,
    Integer,
    Number,
    Boolean,
    Null,
}

/// Members that no property names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum UnknownMembers {
    Refused,
    Admitted,
}

impl BasicSchema {
    pub(super) fn read(schema: &Value) -> Result<Self, GuardConfigError> {
        read(schema, &Pointer::root(), 1)
    }

    /// Reports every violation: missing members in the schema's order, unknown ones, then those inside.
    pub(super) fn check(&self, value: &Value, found: &mut GuardReporter<'_>) {
        self.check_at(value, &ValuePath::Root, 1, found);
    }

    fn check_at(&self, value: &Value, at: &ValuePath<'_>, level: usize, found: &mut GuardReporter<'_>) {
        if level > VALUE_LEVELS_MAX {
            return found(SchemaViolationKind::TooManyLevels, &|| at.pointer());
        }
        match (&self.kind, value) {
            (BasicSchemaKind::Object { properties, required, others }, Value::Object(members)) => {
                for name in required.iter().filter(|it| !members.contains_key(*it)) {
                    found(SchemaViolationKind::MemberMissing, &|| at.pointer().child(name));
                }
                if *others == UnknownMembers::Refused {
                    for name in members.keys().filter(|it| !properties.contains_key(*it)) {
                        found(SchemaViolationKind::MemberUnknown, &|| at.pointer().child(name));
                    }
                }
                for (name, schema) in properties {
                    if let Some(member) = members.get(name) {
                        schema.check_at(member, &ValuePath::Member(at, name), level + 1, found);
                    }
                }
            }
            (BasicSchemaKind::Array(schema), Value::Array(items)) => {
                for (index, item) in items.iter().enumerate() {
                    schema.check_at(item, &ValuePath::Item(at, index), level + 1, found);
                }
            }
            (BasicSchemaKind::Text, Value::String(_))
            | (BasicSchemaKind::Boolean, Value::Bool(_))
            | (BasicSchemaKind::Null, Value::Null)
            | (BasicSchemaKind::Number, Value::Number(_)) => {}
            (BasicSchemaKind::Integer, Value::Number(number)) if is_integer(number) => {}
            _ => return found(SchemaViolationKind::WrongType, &|| at.pointer()),
        }
        // An enum lists only scalars, so a container is refused without writing its text.
        if self.listed.as_ref().is_some_and(|it| !is_scalar(value) || !it.contains(&canonical(value))) {
            found(SchemaViolationKind::NotListed, &|| at.pointer());
        }
    }
}

/// Path to a value. It becomes a pointer only for a violation.
enum ValuePath<'t> {
    Root,
    Member(&'t ValuePath<'t>, &'t str),
    Item(&'t ValuePath<'t>, usize),
}

impl ValuePath<'_> {
    fn pointer(&self) -> Pointer {
        match self {
            Self::Root => Pointer::root(),
            Self::Member(above, name) => above.pointer().child(name),
            Self::Item(above, index) => above.pointer().index(*index),
        }
    }
}

fn read(schema: &Value, at: &Pointer, depth: usize) -> Result<BasicSchema, GuardConfigError> {
    let refuse = |at: &Pointer, why: &str| Err(GuardConfigCode::Schema.at(at, why));
    let Value::Object(members) = schema else { return refuse(at, "a schema is an object") };
    if depth > SCHEMA_LEVELS_MAX {
        return refuse(at, "the schema has too many levels");
    }
    let Some(kind) = members.get("type").and_then(Value::as_str) else {
        return refuse(at, "a schema names one type");
    };
    let own: &[&str] = match kind {
        "object" => &["properties", "required", "additionalProperties"],
        "array" => &["items"],
        _ => &[],
    };
    let known = |it: &str| ["type", "enum"].contains(&it) || own.contains(&it) || it.starts_with("x-");
    if let Some(name) = members.keys().find(|it| !known(it)) {
        let why = "this keyword would not be enforced: take it out, start it with x- if it is only a note, or say \
                   at the top which $schema this is";
        return refuse(&at.child(name), why);
    }
    let kind = match kind {
        "object" => object(members, at, depth)?,
        "array" => {
            let Some(items) = members.get("items") else { return refuse(at, "an array says what its items are") };
            BasicSchemaKind::Array(Box::new(read(items, &at.child("items"), depth + 1)?))
        }
        "string" => BasicSchemaKind::Text,
        "integer" => BasicSchemaKind::Integer,
        "number" => BasicSchemaKind::Number,
        "boolean" => BasicSchemaKind::Boolean,
        "null" => BasicSchemaKind::Null,
        _ => return refuse(&at.child("type"), "no such type"),
    };
    Ok(BasicSchema { kind, listed: listed(members, at)? })
}

fn object(members: &Map<String, Value>, at: &Pointer, depth: usize) -> Result<BasicSchemaKind, GuardConfigError> {
    let refuse = |name: &str, why: &str| Err(GuardConfigCode::Schema.at(&at.child(name), why));
    let Some(Value::Object(named)) = members.get("properties") else {
        return refuse("properties", "an object names its properties");
    };
    let mut properties = BTreeMap::new();
    for (name, schema) in named {
        let here = at.child("properties").child(name);
        if name.is_empty() {
            return Err(GuardConfigCode::Schema.at(&here, "a property has a name"));
        }
        properties.insert(name.clone(), read(schema, &here, depth + 1)?);
    }
    let Some(required) = required(members) else { return refuse("required", "this is a list of names") };
    if let Some(name) = required.iter().find(|it| !properties.contains_key(*it)) {
        return refuse("required", &format!("{name:?} is required, and `properties` lacks it"));
    }
    let others = match members.get("additionalProperties") {
        // Closed by default, because no schema checks an unknown member.
        None | Some(Value::Bool(false)) => UnknownMembers::Refused,
        Some(Value::Bool(true)) => UnknownMembers::Admitted,
        Some(_) => return refuse("additionalProperties", "this is true or false"),
    };
    Ok(BasicSchemaKind::Object { properties, required, others })
}

/// Returns the required names in the order of the list. A repeated name is reported once.
fn required(members: &Map<String, Value>) -> Option<Vec<String>> {
    let Some(list) = members.get("required") else { return Some(Vec::new()) };
    let names: Vec<&str> = list.as_array()?.iter().map(Value::as_str).collect::<Option<_>>()?;
    let mut seen = BTreeSet::new();
    Some(names.into_iter().filter(|it| seen.insert(*it)).map(str::to_owned).collect())
}

fn listed(members: &Map<String, Value>, at: &Pointer) -> Result<Option<HashSet<String>>, GuardConfigError> {
    let refuse = |why: &str| Err(GuardConfigCode::Schema.at(&at.child("enum"), why));
    match members.get("enum") {
        None => Ok(None),
        Some(Value::Array(values)) if values.is_empty() => refuse("an enum lists at least one value"),
        Some(Value::Array(values)) if !values.iter().all(is_scalar) => {
            refuse("an enum lists texts, numbers, booleans and null")
        }
        Some(Value::Array(values)) => Ok(Some(values.iter().map(canonical).collect())),
        Some(_) => refuse("an enum is a list"),
    }
}

fn is_scalar(value: &Value) -> bool {
    !value.is_array() && !value.is_object()
}
