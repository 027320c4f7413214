//! Lists whose items have keys: the index of each key in each list.

use std::collections::{BTreeSet, HashMap};

use serde_json::Value;

use crate::transition_rules::key_identity;

/// The keys of one list and their indexes.
struct KeyPositions {
    order: Vec<String>,
    by_key: HashMap<String, usize>,
}

/// The keys of the list in the base and in each branch.
pub(super) struct ListKeys {
    before: KeyPositions,
    sides: Vec<KeyPositions>,
}

impl ListKeys {
    /// Returns `None` if an item has no unique key, or if a branch reordered existing items.
    pub(super) fn of(key: &str, base: Option<&Value>, sides: &[Option<&Value>]) -> Option<Self> {
        let before = KeyPositions::of(key, base)?;
        let sides: Vec<KeyPositions> = sides.iter().map(|it| KeyPositions::of(key, *it)).collect::<Option<_>>()?;
        let in_order = |side: &KeyPositions| {
            let kept: Vec<usize> = side.order.iter().filter_map(|it| before.by_key.get(it).copied()).collect();
            // New items may come between existing ones, but existing ones must keep their order.
            kept.is_sorted()
        };
        sides.iter().all(in_order).then_some(Self { before, sides })
    }

    /// Returns all keys: existing keys in their order, then new keys by branch name, each branch in its own order.
    pub(super) fn in_order(&self, by_name: &[usize]) -> Vec<String> {
        let mut seen: BTreeSet<&String> = self.before.order.iter().collect();
        let mut order = self.before.order.clone();
        for side in by_name.iter().map(|it| &self.sides[*it]) {
            order.extend(side.order.iter().filter(|it| seen.insert(it)).cloned());
        }
        order
    }

    pub(super) fn item(&self, side: usize, key: &str) -> Option<usize> {
        self.sides[side].by_key.get(key).copied()
    }

    pub(super) fn item_before(&self, key: &str) -> Option<usize> {
        self.before.by_key.get(key).copied()
    }
}

impl KeyPositions {
    fn of(key: &str, list: Option<&Value>) -> Option<Self> {
        let mut places = Self { order: Vec::new(), by_key: HashMap::new() };
        // A missing list counts as an empty one.
        let Some(list) = list else { return Some(places) };
        for (index, item) in list.as_array()?.iter().enumerate() {
            let key = key_identity(item.as_object()?.get(key)?)?;
            // A repeated key is ambiguous, so the list is merged as one value.
            if places.by_key.insert(key.clone(), index).is_some() {
                return None;
            }
            places.order.push(key);
        }
        Some(places)
    }
}
