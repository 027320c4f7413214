//! Decides whether a value that matches a schema can have a part at a path.
//!
//! The answer is only for the author of a policy, and it never forbids too much: [`SchemaReach::Never`] is returned only
//! if no matching value can have the path. Keywords that this module does not follow count as open.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::Schema;
use super::keywords::{self, SchemasByPointer};
use super::pattern::RegexPattern;
use super::references;
use crate::json::pattern::PatternSegment;

/// Maximum number of schemas that are read for all paths of a policy. Beyond it, every path counts as open.
const STEPS_MAX: u32 = 300_000;

/// A pattern for names is compiled for each lookup, which takes as long as reading this many schemas.
const PATTERN_STEPS: usize = 100;

/// Whether a value that matches a schema can have a path.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum SchemaReach {
    /// The schema names the path.
    Named,
    /// The schema neither names nor forbids the segment at this index.
    Open(PathMiss),
    /// No matching value has the segment at this index.
    Never(PathMiss),
}

/// The first segment of a path that a schema does not name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct PathMiss {
    /// The index of the segment.
    pub(crate) at: usize,
    /// The names that the schema has there.
    pub(crate) names: BTreeSet<String>,
}

/// A schema whose paths are looked up.
pub(crate) struct SchemaPaths<'s> {
    root: &'s Value,
    places: SchemasByPointer<'s>,
    anchors: BTreeMap<String, String>,
    steps: u32,
}

/// The schemas that all judge one value.
#[derive(Clone, Default)]
struct Judges<'s> {
    all: Vec<&'s Map<String, Value>>,
    /// Lists of which one schema must match.
    choices: Vec<&'s Vec<Value>>,
    /// No value matches.
    is_empty: bool,
    /// A reference that is resolved only with a value may name or forbid anything.
    is_unknown: bool,
}

/// A path with the index of its next segment.
#[derive(Clone, Copy)]
struct PathRest<'p> {
    segments: &'p [PatternSegment],
    at: usize,
}

impl Schema {
    /// Returns the paths of the schema.
    pub(crate) fn paths(&self) -> SchemaPaths<'_> {
        let root = &self.0.document;
        // The compiled schema passed the same check.
        let places = keywords::check(root).unwrap_or_default();
        let anchors = references::anchors(&places).into_iter().map(|(name, at)| (name.to_owned(), at.to_owned()));
        let anchors = anchors.collect();
        SchemaPaths { root, places, anchors, steps: 0 }
    }
}

impl<'s> SchemaPaths<'s> {
    /// Returns whether a matching value can have this path.
    pub(crate) fn reach(&mut self, segments: &[PatternSegment]) -> SchemaReach {
        let mut judges = Judges::default();
        self.add(self.root, &mut judges);
        self.any_choice(judges, PathRest { segments, at: 0 })
    }

    /// Adds a schema and the schemas that judge the same value with it.
    fn add(&mut self, schema: &'s Value, judges: &mut Judges<'s>) {
        self.steps = self.steps.saturating_add(1);
        let members = match schema {
            Value::Bool(false) => return judges.is_empty = true,
            Value::Object(members) if self.steps < STEPS_MAX => members,
            _ => return,
        };
        judges.is_unknown |= members.contains_key("$dynamicRef");
        judges.all.push(members);
        if let Some(target) = self.target(members) {
            self.add(target, judges);
        }
        if let Some(Value::Array(all)) = members.get("allOf") {
            all.iter().for_each(|it| self.add(it, judges));
        }
        let choices = ["anyOf", "oneOf"].iter().filter_map(|it| members.get(*it)?.as_array());
        judges.choices.extend(choices);
    }

    fn target(&self, members: &Map<String, Value>) -> Option<&'s Value> {
        let anchor = |name: &str| self.anchors.get(name).map(String::as_str);
        let pointer = references::target(&self.places, anchor, members.get("$ref")?.as_str()?)?;
        self.places.get(&pointer).copied()
    }

    /// Follows a path for each combination of choices, and returns the best answer.
    fn any_choice(&mut self, mut judges: Judges<'s>, rest: PathRest<'_>) -> SchemaReach {
        let Some(forms) = judges.choices.pop() else { return self.decide(&judges, rest) };
        let mut best = never(rest.at, BTreeSet::new());
        for form in forms {
            if self.steps >= STEPS_MAX {
                return open(rest.at, BTreeSet::new());
            }
            let mut chosen = judges.clone();
            self.add(form, &mut chosen);
            best = better(best, self.any_choice(chosen, rest));
        }
        best
    }

    fn decide(&mut self, judges: &Judges<'s>, rest: PathRest<'_>) -> SchemaReach {
        if judges.is_empty {
            return never(rest.at, BTreeSet::new());
        }
        let Some(segment) = rest.segments.get(rest.at) else { return SchemaReach::Named };
        if judges.is_unknown || self.steps >= STEPS_MAX {
            return open(rest.at, BTreeSet::new());
        }
        let names = names(judges);
        // A value with a fixed list of alternatives has no other members.
        if let Some(values) = judges.all.iter().find_map(|it| fixed(it)) {
            let found = values.iter().any(|it| has(it, &rest.segments[rest.at..]));
            return if found { SchemaReach::Named } else { never(rest.at, names) };
        }
        let may_be = |kind: &str| judges.all.iter().all(|it| allows_type(it, kind));
        let mut best = never(rest.at, names.clone());
        if may_be("object") {
            let through = match segment {
                PatternSegment::Key(key) => self.member(judges, key, rest),
                PatternSegment::Any => self.any_member(judges, rest),
            };
            best = better(best, through);
        }
        let index = match segment {
            PatternSegment::Key(key) => key.parse::<usize>().ok().filter(|it| it.to_string() == *key).map(Some),
            PatternSegment::Any => Some(None),
        };
        match index {
            Some(index) if may_be("array") => better(best, self.item(judges, index, rest)),
            _ => best,
        }
    }

    /// Follows a path into the member of an object.
    fn member(&mut self, judges: &Judges<'s>, key: &str, rest: PathRest<'_>) -> SchemaReach {
        let names = names(judges);
        let patterned = judges.all.iter().flat_map(|it| patterns(it)).count();
        let read = names.len().saturating_add(patterned.saturating_mul(PATTERN_STEPS));
        self.steps = self.steps.saturating_add(u32::try_from(read).unwrap_or(u32::MAX));
        let mut below = Judges::default();
        let mut is_named = names.contains(key);
        for schema in &judges.all {
            match schema.get("propertyNames") {
                Some(Value::Bool(false)) => return never(rest.at, names),
                Some(Value::Object(it)) if key != OTHER_KEY => match fixed(it) {
                    Some(listed) if listed.iter().any(|it| it == key) => is_named = true,
                    Some(_) => return never(rest.at, names),
                    None => (),
                },
                _ => (),
            }
            let mut is_judged = false;
            if let Some(it) = child(schema, "properties", key) {
                (is_judged, is_named) = (true, true);
                self.add(it, &mut below);
            }
            for it in patterns(schema).filter(|(pattern, _)| matches(pattern, key)).map(|(_, it)| it) {
                (is_judged, is_named) = (true, true);
                self.add(it, &mut below);
            }
            let additional = schema.get("additionalProperties").filter(|_| !is_judged);
            let others = match (additional, schema.get("unevaluatedProperties")) {
                (Some(it), _) => Some(it),
                (None, Some(it)) if !is_judged && !self.may_evaluate(schema, key) => Some(it),
                _ => None,
            };
            if let Some(it) = others {
                // A schema for all other members, such as that of a map, expects names that it does not list.
                is_named |= it.as_object().is_some_and(|it| !it.is_empty());
                self.add(it, &mut below);
            }
        }
        if below.is_empty {
            // A member with the schema `false` is named and forbidden.
            let names = names.into_iter().filter(|it| it != key).collect();
            return never(rest.at, names);
        }
        let further = self.any_choice(below, PathRest { at: rest.at + 1, ..rest });
        match further {
            SchemaReach::Named | SchemaReach::Open(_) if !is_named => open(rest.at, names),
            further => further,
        }
    }

    /// Follows a path into any member of an object: a named one, one that a pattern matches, or another one.
    fn any_member(&mut self, judges: &Judges<'s>, rest: PathRest<'_>) -> SchemaReach {
        let mut best = match self.member(judges, OTHER_KEY, rest) {
            // A `*` has no name that could be misspelled.
            SchemaReach::Open(_) if rest.at + 1 == rest.segments.len() => SchemaReach::Named,
            other => other,
        };
        for name in names(judges) {
            best = better(best, self.member(judges, &name, rest));
        }
        for schema in judges.all.iter().flat_map(|it| patterns(it)).map(|(_, it)| it) {
            let mut below = Judges::default();
            self.add(schema, &mut below);
            best = better(best, self.any_choice(below, PathRest { at: rest.at + 1, ..rest }));
        }
        best
    }

    /// Follows a path into an item of a list. Without an index, any item will do.
    fn item(&mut self, judges: &Judges<'s>, index: Option<usize>, rest: PathRest<'_>) -> SchemaReach {
        let listed = |it: &Map<String, Value>| it.get("prefixItems").and_then(Value::as_array).map_or(0, Vec::len);
        let longest = judges.all.iter().map(|it| listed(it)).max().unwrap_or(0);
        let mut best = never(rest.at, BTreeSet::new());
        for index in index.map_or(0..=longest, |it| it..=it) {
            let mut below = Judges::default();
            for schema in &judges.all {
                let prefix = schema.get("prefixItems").and_then(Value::as_array);
                let at_index = prefix.and_then(|it| it.get(index)).or_else(|| schema.get("items"));
                let is_last = schema.get("maxItems").and_then(Value::as_u64).is_some_and(|max| index as u64 >= max);
                below.is_empty |= is_last;
                if let Some(it) = at_index {
                    self.add(it, &mut below);
                }
            }
            best = better(best, self.any_choice(below, PathRest { at: rest.at + 1, ..rest }));
        }
        best
    }

    /// Returns whether a schema, or one that judges the same value through it, may evaluate a member. Then
    /// `unevaluatedProperties` does not forbid it.
    fn may_evaluate(&mut self, schema: &'s Map<String, Value>, key: &str) -> bool {
        self.steps = self.steps.saturating_add(1);
        if self.steps >= STEPS_MAX || schema.contains_key("$dynamicRef") {
            return true;
        }
        let here = child(schema, "properties", key).is_some() || patterns(schema).any(|(it, _)| matches(it, key));
        if here || schema.contains_key("additionalProperties") {
            return true;
        }
        self.within(schema).into_iter().any(|it| {
            // A part with its own `unevaluatedProperties` evaluates every member that it admits.
            it.contains_key("unevaluatedProperties") || self.may_evaluate(it, key)
        })
    }

    /// Returns the schemas that judge the same value through a schema.
    fn within(&self, schema: &'s Map<String, Value>) -> Vec<&'s Map<String, Value>> {
        let one = ["if", "then", "else"].iter().filter_map(|it| schema.get(*it));
        let lists = ["allOf", "anyOf", "oneOf"].iter().filter_map(|it| schema.get(*it)?.as_array()).flatten();
        let dependent =
            schema.get("dependentSchemas").and_then(Value::as_object).into_iter().flat_map(|it| it.values());
        one.chain(lists).chain(dependent).chain(self.target(schema)).filter_map(Value::as_object).collect()
    }
}

/// A key that no policy can contain.
const OTHER_KEY: &str = "\u{0}";

fn never(at: usize, names: BTreeSet<String>) -> SchemaReach {
    SchemaReach::Never(PathMiss { at, names })
}

fn open(at: usize, names: BTreeSet<String>) -> SchemaReach {
    SchemaReach::Open(PathMiss { at, names })
}

/// Returns the answer that admits more. The later one of two misses says more about the mistake.
fn better(one: SchemaReach, other: SchemaReach) -> SchemaReach {
    match (one, other) {
        (SchemaReach::Named, _) | (_, SchemaReach::Named) => SchemaReach::Named,
        (SchemaReach::Open(one), SchemaReach::Open(other)) => SchemaReach::Open(later(one, other)),
        (SchemaReach::Never(one), SchemaReach::Never(other)) => SchemaReach::Never(later(one, other)),
        (SchemaReach::Open(miss), _) | (_, SchemaReach::Open(miss)) => SchemaReach::Open(miss),
    }
}

fn later(mut one: PathMiss, other: PathMiss) -> PathMiss {
    if one.at == other.at {
        one.names.extend(other.names);
        return one;
    }
    if one.at > other.at { one } else { other }
}

/// Returns the member names that the schemas list. Conditional parts list names too.
fn names(judges: &Judges<'_>) -> BTreeSet<String> {
    let conditional = |it: &Map<String, Value>| {
        let parts = ["then", "else"].iter().filter_map(|part| it.get(*part)?.get("properties")?.as_object());
        parts.flat_map(|it| it.keys().cloned()).collect::<Vec<_>>()
    };
    let required = |it: &Map<String, Value>| {
        let names = it.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
        names.map(str::to_owned).collect::<Vec<_>>()
    };
    let named = |it: &Map<String, Value>| {
        let listed = it.get("propertyNames").and_then(Value::as_object).and_then(fixed).unwrap_or_default();
        listed.iter().filter_map(Value::as_str).map(str::to_owned).collect::<Vec<_>>()
    };
    let listed = |it: &Map<String, Value>| {
        it.get("properties").and_then(Value::as_object).map(|it| it.keys().cloned().collect::<Vec<_>>())
    };
    let all = judges.all.iter().flat_map(|it| {
        listed(it).into_iter().flatten().chain(named(it)).chain(required(it)).chain(conditional(it)).collect::<Vec<_>>()
    });
    all.collect()
}

fn child<'s>(schema: &'s Map<String, Value>, keyword: &str, key: &str) -> Option<&'s Value> {
    schema.get(keyword)?.as_object()?.get(key)
}

fn patterns(schema: &Map<String, Value>) -> impl Iterator<Item = (&String, &Value)> {
    schema.get("patternProperties").and_then(Value::as_object).into_iter().flatten()
}

/// Returns whether a pattern matches a name. A pattern that cannot be compiled may match.
fn matches(pattern: &str, key: &str) -> bool {
    RegexPattern::compile(pattern).is_none_or(|it| it.is_match(key))
}

/// Returns the values of `enum` or `const`.
fn fixed(schema: &Map<String, Value>) -> Option<&[Value]> {
    let listed = schema.get("enum").and_then(Value::as_array).map(Vec::as_slice);
    schema.get("const").map(std::slice::from_ref).or(listed)
}

fn has(value: &Value, segments: &[PatternSegment]) -> bool {
    let Some((first, rest)) = segments.split_first() else { return true };
    first.of(value).into_iter().any(|it| has(it, rest))
}

fn allows_type(schema: &Map<String, Value>, kind: &str) -> bool {
    match schema.get("type") {
        Some(Value::String(one)) => one == kind,
        Some(Value::Array(several)) => several.iter().any(|it| it == kind),
        _ => true,
    }
}
