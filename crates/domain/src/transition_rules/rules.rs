//! Compiled transition rules.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::json::canonical::canonical;
use crate::json::pointer::Pointer;

/// A rule about one path. It names members of objects and no index.
#[derive(Clone, PartialEq, Debug)]
pub struct TransitionRule {
    pub at: Pointer,
    pub kind: TransitionRuleKind,
}

/// Restriction of a value's change. Rules are judged in this order.
#[derive(Clone, PartialEq, Debug)]
pub enum TransitionRuleKind {
    Immutable,
    /// An integer that may grow.
    Monotonic,
    /// The value moves forward in its order.
    Ordered(ValueOrder),
    /// Items may be appended, and listed booleans of existing items may become true.
    Keyed(KeyedListRule),
}

/// Values in their order.
#[derive(Clone, PartialEq, Debug)]
pub struct ValueOrder(Vec<Value>);

/// A list of objects that a key identifies.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeyedListRule {
    pub(super) key: String,
    pub(super) booleans: BTreeSet<String>,
    pub(super) new_items: NewItems,
}

/// Whether items may be appended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NewItems {
    Allowed,
    Refused,
}

impl TransitionRuleKind {
    /// Returns the position of this kind among the others.
    const fn rank(&self) -> u8 {
        match self {
            Self::Immutable => 0,
            Self::Monotonic => 1,
            Self::Ordered(_) => 2,
            Self::Keyed(_) => 3,
        }
    }
}

/// Sorts rules into the order in which they are judged: by kind, then as written.
pub fn in_order(mut rules: Vec<TransitionRule>) -> Vec<TransitionRule> {
    // The sort is stable, so rules of one kind keep their order.
    rules.sort_by_key(|it| it.kind.rank());
    rules
}

impl ValueOrder {
    /// Reads at least two unique scalars, or returns the reason why they are invalid.
    pub fn new(values: Vec<Value>) -> Result<Self, &'static str> {
        if values.len() < 2 {
            return Err("an order has at least two values");
        }
        if values.iter().any(|it| it.is_array() || it.is_object()) {
            return Err("an order has texts, numbers, booleans and null");
        }
        let mut seen = BTreeSet::new();
        if !values.iter().all(|it| seen.insert(canonical(it))) {
            return Err("the order has a value twice");
        }
        Ok(Self(values))
    }

    pub(super) fn values(&self) -> &[Value] {
        &self.0
    }
}

impl KeyedListRule {
    /// Reads the names of the key and of the listed booleans, or returns the reason why they are invalid.
    pub fn new(key: String, booleans: BTreeSet<String>, new_items: NewItems) -> Result<Self, &'static str> {
        if booleans.contains(&key) {
            return Err("the key never changes");
        }
        Ok(Self { key, booleans, new_items })
    }

    /// Returns the field that identifies items.
    pub fn key(&self) -> &str {
        &self.key
    }
}
