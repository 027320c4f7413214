//! What a transition rule says, once it is understood.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::domain::json::canonical::canonical;
use crate::domain::json::pointer::Pointer;

/// A rule about one place. It names members of objects; an index is none.
#[derive(Clone, PartialEq, Debug)]
pub struct TransitionRule {
    pub at: Pointer,
    pub kind: TransitionRuleKind,
}

/// What may become of a value, in the order in which rules are judged.
#[derive(Clone, PartialEq, Debug)]
pub enum TransitionRuleKind {
    Immutable,
    /// An integer that may grow.
    Monotonic,
    /// It goes forward in its order.
    Ordered(ValueOrder),
    /// Items are appended, and what is listed of the others becomes true.
    Keyed(KeyedListRule),
}

/// Values that come one after another.
#[derive(Clone, PartialEq, Debug)]
pub struct ValueOrder(Vec<Value>);

/// A list of objects that are told apart by a key.
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
    /// Where rules of this kind stand among the others.
    const fn rank(&self) -> u8 {
        match self {
            Self::Immutable => 0,
            Self::Monotonic => 1,
            Self::Ordered(_) => 2,
            Self::Keyed(_) => 3,
        }
    }
}

/// Puts rules into the order in which they are judged: by kind, and as they were written.
pub fn in_order(mut rules: Vec<TransitionRule>) -> Vec<TransitionRule> {
    rules.sort_by_key(|it| it.kind.rank());
    rules
}

impl ValueOrder {
    /// At least two scalars, each once; or why not.
    pub fn new(values: Vec<Value>) -> Result<Self, &'static str> {
        if values.len() < 2 {
            return Err("an order has at least two values");
        }
        if values.iter().any(|it| it.is_array() || it.is_object()) {
            return Err("an order has texts, numbers, booleans and null");
        }
        let mut seen = BTreeSet::new();
        if !values.iter().all(|it| seen.insert(canonical(it))) {
            return Err("a value stands twice in the order");
        }
        Ok(Self(values))
    }

    pub(super) fn values(&self) -> &[Value] {
        &self.0
    }
}

impl KeyedListRule {
    /// The key and the listed booleans are names of fields; or why not.
    pub fn new(key: String, booleans: BTreeSet<String>, new_items: NewItems) -> Result<Self, &'static str> {
        if booleans.contains(&key) {
            return Err("the key never changes");
        }
        Ok(Self { key, booleans, new_items })
    }

    /// The field by which items are told apart.
    pub fn key(&self) -> &str {
        &self.key
    }
}
