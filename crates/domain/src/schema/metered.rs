//! Metered JSON for the validator. Every visited part, every text and every error costs steps.

use std::borrow::Cow;
use std::collections::HashSet;

use jsonschema::JsonType;
use jsonschema::json::{Array, Json, Node, NodeIdentity, Object, SerdeJson};
use serde_json::{Map, Number, Value};

use super::meter::{matching, reading, spend};
use crate::json::canonical::canonical;

/// JSON representation that counts steps.
pub(super) struct MeteredJson;

/// Cost of checks by a schema.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct CheckCosts {
    /// Steps for each visited part.
    pub(super) part: u64,
    /// Steps for each error, without the text that it copies from the value.
    pub(super) error: u64,
    /// Maximum number of patterns for the name of a member, and the number of states of the largest.
    pub(super) names: (u64, u64),
}

/// The names of members are visited together with the members, which paid for both.
static OF_NAMES: CheckCosts = CheckCosts { part: 0, error: 0, names: (0, 0) };

/// Steps for a name. Names are short, and most of them match or fail at their first bytes.
const NAMES_PER_WORST: u64 = 4;

impl CheckCosts {
    fn of_name(&self, name: &str) -> u64 {
        let (patterns, states) = self.names;
        patterns.saturating_mul(matching(name.len(), states)) / NAMES_PER_WORST
    }
}

#[derive(Clone, Copy)]
pub(super) struct MeteredValue<'a> {
    value: &'a Value,
    prices: &'a CheckCosts,
    /// Length of the pointer to the value, which every error copies.
    pointer_bytes: usize,
}

impl<'a> MeteredValue<'a> {
    pub(super) const fn whole(value: &'a Value, prices: &'a CheckCosts) -> Self {
        Self { value, prices, pointer_bytes: 0 }
    }

    const fn child(self, value: &'a Value, token_bytes: usize) -> Self {
        Self { value, pointer_bytes: self.pointer_bytes + 1 + token_bytes, ..self }
    }
}

impl Json for MeteredJson {
    type Node<'a> = MeteredValue<'a>;
    type PreparedKey = String;
    type StringBuffer = Value;

    // The same as in `SerdeJson`, whose maps are used.
    const KEYS_PER_LOOKUP: usize = SerdeJson::KEYS_PER_LOOKUP;

    fn prepare_key(key: &str) -> String {
        key.to_owned()
    }

    fn with_string_node<T>(buffer: &mut Value, string: &str, f: impl FnOnce(MeteredValue<'_>) -> T) -> T {
        spend(reading(string.len()));
        *buffer = Value::from(string);
        f(MeteredValue::whole(buffer, &OF_NAMES))
    }
}

impl<'a> Node<'a, MeteredJson> for MeteredValue<'a> {
    type Object = MeteredMembers<'a>;
    type Array = MeteredItems<'a>;
    type Number = &'a Number;

    fn as_object(&self) -> Option<MeteredMembers<'a>> {
        spend(1);
        self.value.as_object().map(|members| MeteredMembers { of: *self, members })
    }

    fn as_array(&self) -> Option<MeteredItems<'a>> {
        spend(1);
        self.value.as_array().map(|items| MeteredItems { of: *self, items })
    }

    fn as_string(&self) -> Option<Cow<'a, str>> {
        // The validator asks for a text only to read it, so its length is paid here.
        let text = self.value.as_str();
        spend(reading(text.map_or(0, str::len)));
        text.map(Cow::Borrowed)
    }

    fn as_number(&self) -> Option<&'a Number> {
        spend(1);
        self.value.as_number()
    }

    fn as_boolean(&self) -> Option<bool> {
        spend(1);
        self.value.as_bool()
    }

    fn is_null(&self) -> bool {
        spend(1);
        self.value.is_null()
    }

    fn json_type(&self) -> JsonType {
        spend(1);
        Node::<SerdeJson>::json_type(&self.value)
    }

    fn string_length(&self) -> Option<u64> {
        spend(reading(self.value.as_str().map_or(0, str::len)));
        Node::<SerdeJson>::string_length(&self.value)
    }

    fn equals_value(&self, expected: &Value) -> bool {
        // Paid before the comparison, which cannot be stopped.
        pay_for_comparing(self.value, expected);
        Node::<SerdeJson>::equals_value(&self.value, expected)
    }

    /// The validator calls this for an error. It does not use the value of an error, except the name of a forbidden
    /// member. An error therefore contains no copy of the value. An error of `anyOf` would contain a copy for each
    /// error of each form.
    fn to_value(&self) -> Cow<'a, Value> {
        let text = self.value.as_str().map_or(0, str::len);
        spend(self.prices.error + reading(self.pointer_bytes + text));
        match self.value {
            Value::String(_) => Cow::Borrowed(self.value),
            _ => Cow::Owned(Value::Null),
        }
    }

    fn identity(&self) -> Option<NodeIdentity> {
        Node::<SerdeJson>::identity(&self.value)
    }

    fn container_identity(&self) -> Option<NodeIdentity> {
        Node::<SerdeJson>::container_identity(&self.value)
    }
}

/// The members of an object.
#[derive(Clone, Copy)]
pub(super) struct MeteredMembers<'a> {
    of: MeteredValue<'a>,
    members: &'a Map<String, Value>,
}

pub(super) struct MeteredMemberIter<'a> {
    of: MeteredValue<'a>,
    members: serde_json::map::Iter<'a>,
}

impl<'a> Iterator for MeteredMemberIter<'a> {
    type Item = (&'a str, MeteredValue<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let (name, value) = self.members.next()?;
        // The validator can match each name against every pattern of `patternProperties`.
        spend(self.of.prices.part + reading(name.len()) + self.of.prices.of_name(name));
        Some((name, self.of.child(value, name.len())))
    }
}

impl<'a> Object<'a, MeteredJson> for MeteredMembers<'a> {
    type Node = MeteredValue<'a>;
    type MemberName = &'a str;
    type MembersIter = MeteredMemberIter<'a>;

    fn len(&self) -> usize {
        spend(1);
        self.members.len()
    }

    fn get(&self, key: &String) -> Option<MeteredValue<'a>> {
        spend(reading(key.len()));
        let value = self.members.get(key)?;
        spend(self.of.prices.part);
        Some(self.of.child(value, key.len()))
    }

    fn members(&self) -> MeteredMemberIter<'a> {
        MeteredMemberIter { of: self.of, members: self.members.iter() }
    }
}

/// The items of a list.
#[derive(Clone, Copy)]
pub(super) struct MeteredItems<'a> {
    of: MeteredValue<'a>,
    items: &'a [Value],
}

/// Visits items.
pub(super) struct MeteredIter<'a> {
    of: MeteredValue<'a>,
    items: std::iter::Enumerate<std::slice::Iter<'a, Value>>,
}

impl<'a> Iterator for MeteredIter<'a> {
    type Item = MeteredValue<'a>;

    fn next(&mut self) -> Option<MeteredValue<'a>> {
        let (index, value) = self.items.next()?;
        spend(self.of.prices.part + 1);
        Some(self.of.child(value, index.checked_ilog10().unwrap_or(0) as usize + 1))
    }
}

impl<'a> Array<'a, MeteredJson> for MeteredItems<'a> {
    type Node = MeteredValue<'a>;
    type ElementsIter = MeteredIter<'a>;

    fn len(&self) -> usize {
        spend(1);
        self.items.len()
    }

    fn elements(&self) -> MeteredIter<'a> {
        MeteredIter { of: self.of, items: self.items.iter().enumerate() }
    }

    /// Hashes the canonical text, because an attacker can make the validator's own hashes of lists collide.
    fn is_unique(&self) -> bool {
        // Paid before the work, so an expensive list ends the check before it is hashed.
        self.items.iter().for_each(pay_for_reading);
        let mut seen = HashSet::with_capacity(self.items.len());
        self.items.iter().all(|item| seen.insert(canonical(item)))
    }
}

/// The parsers limit the depth.
fn pay_for_reading(value: &Value) {
    match value {
        Value::Array(items) => {
            spend(1);
            items.iter().for_each(pay_for_reading);
        }
        Value::Object(members) => members.iter().for_each(|(name, value)| {
            spend(reading(name.len()));
            pay_for_reading(value);
        }),
        Value::String(text) => spend(reading(text.len())),
        Value::Null | Value::Bool(_) | Value::Number(_) => spend(1),
    }
}

/// A comparison ends if the lengths differ.
fn pay_for_comparing(value: &Value, expected: &Value) {
    spend(1);
    match (value, expected) {
        (Value::Array(items), Value::Array(others)) if items.len() == others.len() => {
            items.iter().zip(others).for_each(|(item, other)| pay_for_comparing(item, other));
        }
        (Value::Object(members), Value::Object(others)) if members.len() == others.len() => {
            for ((name, value), (_, other)) in members.iter().zip(others) {
                spend(reading(name.len()));
                pay_for_comparing(value, other);
            }
        }
        (Value::String(text), Value::String(other)) if text.len() == other.len() => spend(reading(text.len())),
        _ => {}
    }
}
