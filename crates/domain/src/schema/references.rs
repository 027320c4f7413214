//! Checks references: each one names a schema of the document, ends, and does not multiply the work.

use std::collections::BTreeMap;

use serde_json::Value;

use super::SchemaError;
use super::keywords::{SchemasByPointer, child};

/// Maximum number of nested schemas that judge one value through references and combinations. The validator recurses
/// that often for each level of the value.
const WITHIN_MAX: usize = 32;

/// Maximum number of schemas with all references expanded. A schema that refers twice to one that refers twice
/// doubles at each step. A normal document has some hundreds.
const WRITTEN_OUT_MAX: usize = 20_000;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Recursion {
    /// The expanded document is finite.
    None,
    /// A schema refers to itself for a part of its value, as in a tree.
    InParts,
}

/// Result of following a document's references.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct ReferenceWeights {
    /// Whether the expanded document is finite.
    pub(super) recursion: Recursion,
    /// Maximum number of schemas that judge one part of a value. Each counts as often as it is referred to.
    pub(super) per_part: usize,
}

/// Maximum number of open schemas during the walk. No normal document nests so deep.
const OPEN_MAX: usize = 512;

/// Rejects references to missing schemas or to data, endless circles, and references that multiply.
pub(super) fn check(places: &SchemasByPointer<'_>) -> Result<ReferenceWeights, SchemaError> {
    let anchors = anchors(places);
    let mut same_value =
        ReferenceWalk { places, anchors: &anchors, follows: WalkScope::SameValue, visits: BTreeMap::new(), open: 0 };
    let mut everything =
        ReferenceWalk { places, anchors: &anchors, follows: WalkScope::Everything, visits: BTreeMap::new(), open: 0 };
    let mut extents = ReferenceWeights { recursion: Recursion::None, per_part: 1 };
    for pointer in places.keys() {
        let refuse = |why: &str| Err(SchemaError::At { at: pointer.to_owned(), why: why.to_owned() });
        let within = same_value.visit(pointer)?;
        // A circle through parts ends with the value, but a circle for the same value never ends.
        if within.circular {
            return refuse("this schema refers to itself for the same value and would never end");
        }
        if within.longest > WITHIN_MAX {
            return refuse("too many schemas judge one value here, one within another");
        }
        extents.per_part = extents.per_part.max(within.sum);
        let written_out = everything.visit(pointer)?;
        if written_out.sum > WRITTEN_OUT_MAX {
            return refuse("written out, these references repeat the same schemas too often");
        }
        if written_out.circular {
            extents.recursion = Recursion::InParts;
        }
    }
    Ok(extents)
}

/// Returns the pointers of the schemas with an anchor, by its name.
pub(super) fn anchors<'p>(places: &'p SchemasByPointer<'_>) -> BTreeMap<&'p str, &'p str> {
    let mut anchors = BTreeMap::new();
    for (pointer, schema) in places {
        for keyword in ["$anchor", "$dynamicAnchor"] {
            if let Some(name) = schema.get(keyword).and_then(Value::as_str) {
                anchors.insert(name, pointer.as_str());
            }
        }
    }
    anchors
}

struct ReferenceWalk<'w, 's> {
    places: &'w SchemasByPointer<'s>,
    anchors: &'w BTreeMap<&'w str, &'w str>,
    follows: WalkScope,
    /// `None` while it is open.
    visits: BTreeMap<String, Option<ReferenceWeight>>,
    open: usize,
}

/// References that a walk follows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WalkScope {
    /// References to schemas that judge the same value.
    SameValue,
    Everything,
}

/// Schemas that a schema refers to.
#[derive(Clone, Copy)]
struct ReferenceWeight {
    /// Number of schemas. Each counts as often as it is referred to.
    sum: usize,
    /// Number of nested schemas.
    longest: usize,
    /// Whether one of them leads back to itself.
    circular: bool,
}

/// A schema that another leads to.
enum SchemaReference {
    Same(String),
    Part(String),
}

impl ReferenceWalk<'_, '_> {
    fn visit(&mut self, pointer: &str) -> Result<ReferenceWeight, SchemaError> {
        match self.visits.get(pointer) {
            Some(Some(extent)) => return Ok(*extent),
            Some(None) => return Ok(ReferenceWeight { sum: 1, longest: 1, circular: true }),
            None => {}
        }
        // The walk recurses, so the limit also protects the stack.
        if self.open == OPEN_MAX {
            let why = "too many references lead through one another here".to_owned();
            return Err(SchemaError::At { at: pointer.to_owned(), why });
        }
        self.open += 1;
        self.visits.insert(pointer.to_owned(), None);
        let mut extent = ReferenceWeight { sum: 1, longest: 1, circular: false };
        for step in self.steps(pointer)? {
            let next = match step {
                SchemaReference::Part(_) if self.follows == WalkScope::SameValue => continue,
                SchemaReference::Same(next) | SchemaReference::Part(next) => self.visit(&next)?,
            };
            // References that double at each step would overflow the sum.
            extent.sum = extent.sum.saturating_add(next.sum);
            extent.longest = extent.longest.max(next.longest + 1);
            extent.circular |= next.circular;
        }
        self.visits.insert(pointer.to_owned(), Some(extent));
        self.open -= 1;
        Ok(extent)
    }

    fn steps(&self, pointer: &str) -> Result<Vec<SchemaReference>, SchemaError> {
        let Some(Value::Object(schema)) = self.places.get(pointer) else { return Ok(Vec::new()) };
        let mut steps = Vec::new();
        for (keyword, value) in schema {
            if matches!(keyword.as_str(), "$ref" | "$dynamicRef") {
                let target = self.target(value.as_str().unwrap_or_default()).ok_or_else(|| SchemaError::At {
                    at: child(pointer, keyword),
                    why: "the reference names no schema of this document".to_owned(),
                })?;
                steps.push(SchemaReference::Same(target));
            }
            below(&child(pointer, keyword), keyword, value, &mut steps);
        }
        Ok(steps)
    }

    fn target(&self, reference: &str) -> Option<String> {
        target(self.places, |name| self.anchors.get(name).copied(), reference)
    }
}

/// Returns the pointer of the schema that a reference names.
pub(super) fn target<'a>(
    places: &SchemasByPointer<'_>,
    anchor: impl Fn(&str) -> Option<&'a str>,
    reference: &str,
) -> Option<String> {
    let fragment = reference.strip_prefix('#')?;
    if fragment.is_empty() || fragment.starts_with('/') {
        // A reference is a URL, so its pointer may be percent-encoded.
        let pointer = percent_decoded(fragment)?;
        // A reference to data would turn a part that no check has seen into a schema.
        return places.contains_key(&pointer).then_some(pointer);
    }
    anchor(fragment).map(str::to_owned)
}

/// Returns the schemas under a keyword. Schemas under `$defs` are reached only by references.
fn below(here: &str, keyword: &str, value: &Value, steps: &mut Vec<SchemaReference>) {
    match (keyword, value) {
        ("not" | "if" | "then" | "else", _) => steps.push(SchemaReference::Same(here.to_owned())),
        ("allOf" | "anyOf" | "oneOf", Value::Array(items)) => {
            steps.extend((0..items.len()).map(|index| SchemaReference::Same(child(here, &index.to_string()))));
        }
        ("dependentSchemas", Value::Object(named)) => {
            steps.extend(named.keys().map(|name| SchemaReference::Same(child(here, name))));
        }
        ("prefixItems", Value::Array(items)) => {
            steps.extend((0..items.len()).map(|index| SchemaReference::Part(child(here, &index.to_string()))));
        }
        ("properties" | "patternProperties", Value::Object(named)) => {
            steps.extend(named.keys().map(|name| SchemaReference::Part(child(here, name))));
        }
        (
            "items"
            | "contains"
            | "additionalProperties"
            | "propertyNames"
            | "unevaluatedItems"
            | "unevaluatedProperties",
            _,
        ) => steps.push(SchemaReference::Part(here.to_owned())),
        _ => {}
    }
}

fn percent_decoded(fragment: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(fragment.len());
    let mut rest = fragment.as_bytes();
    while let [first, tail @ ..] = rest {
        rest = tail;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let [high, low, tail @ ..] = rest else { return None };
        let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|it| u8::try_from(it).ok());
        bytes.push(digit(*high)? << 4 | digit(*low)?);
        rest = tail;
    }
    String::from_utf8(bytes).ok()
}
