//! Deduplicates entries that an episode repeats under one name.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use serde_json::Value;

/// Entries by name: each with its last value, in the order of their first appearance. An episode may have a hundred
/// thousand.
#[derive(Default)]
pub(super) struct LatestByName {
    all: Vec<Value>,
    places: HashMap<String, usize>,
}

impl LatestByName {
    pub(super) fn put(&mut self, name: String, thing: Value) {
        match self.places.entry(name) {
            Entry::Occupied(place) => self.all[*place.get()] = thing,
            Entry::Vacant(place) => {
                place.insert(self.all.len());
                self.all.push(thing);
            }
        }
    }

    pub(super) fn into_all(self) -> Vec<Value> {
        self.all
    }
}
