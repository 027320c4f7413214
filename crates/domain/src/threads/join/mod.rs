//! Merges the states of several branches that started from one state.
//!
//! The result depends only on the names and states of the branches and, for some strategies, on their order in the
//! request. It does not depend on the order in which the branches finished. Each branch is compared with the base. A
//! branch has no effect on a path that it did not change.

mod conflicts;
mod keyed_lists;
mod resolutions;

use std::collections::BTreeSet;

use serde_json::{Map, Value};

pub use resolutions::{InvalidResolution, Resolutions};

use super::branch::Strategy;
use crate::json::diff::diff;
use crate::json::pointer::{Pointer, PointerBuilder};
use crate::policy::Policy;
use crate::primitives::id::BranchName;
use conflicts::BranchValue;
use keyed_lists::ListKeys;

#[derive(Clone, Copy, Debug)]
pub struct BranchState<'v> {
    pub name: &'v BranchName,
    pub state: &'v Value,
    /// The confidence in millionths. Only [`Strategy::Confidence`] reads it.
    pub confidence: u32,
}

#[derive(Clone, Copy)]
pub struct JoinOptions<'a> {
    /// The strategy that settles conflicts.
    pub strategy: Strategy,
    /// The policy that declares lists with keyed items.
    pub policy: &'a Policy,
    /// The values that the request chooses for conflicts.
    pub resolutions: &'a Resolutions,
}

/// The reason why branches cannot be joined.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum JoinRejected {
    /// The branches have different values at these sorted paths.
    Conflicts(Vec<Pointer>),
    /// The request settles a path without a conflict.
    NoConflict(Pointer),
}

/// Returns the sorted paths that at least one branch changed. A container that only became empty or stopped being empty
/// is not a change of its own, because its members are listed.
pub fn changed<'v>(base: &Value, states: impl Iterator<Item = &'v Value>) -> Vec<Pointer> {
    let of = |state: &'v Value| {
        let changes = diff(base, state).into_iter().filter(|it| !it.is_filling(base, state));
        changes.map(|it| it.pointer).collect::<Vec<_>>()
    };
    states.flat_map(of).collect::<BTreeSet<_>>().into_iter().collect()
}

/// Merges the branches, given in the order of the request.
pub fn join(base: &Value, sides: &[BranchState<'_>], how: JoinOptions<'_>) -> Result<Value, JoinRejected> {
    let mut by_name: Vec<usize> = (0..sides.len()).collect();
    // Sorting by name makes the result independent of the order in the request.
    by_name.sort_by_key(|it| sides[*it].name);
    let mut merge = BranchMerge {
        how,
        sides,
        by_name,
        trail: PointerBuilder::default(),
        unsettled: Vec::new(),
        settled: Vec::new(),
    };
    let values: Vec<Option<&Value>> = sides.iter().map(|it| Some(it.state)).collect();
    let joined = merge.merged(Some(base), &values).unwrap_or_else(|| Value::Object(Map::new()));
    let BranchMerge { mut unsettled, settled, .. } = merge;
    if !unsettled.is_empty() {
        unsettled.sort();
        return Err(JoinRejected::Conflicts(unsettled));
    }
    // A resolution without a conflict is an error: the client expects a conflict that does not exist.
    match how.resolutions.places().find(|it| !settled.contains(it)) {
        Some(idle) => Err(JoinRejected::NoConflict(idle.clone())),
        None => Ok(joined),
    }
}

struct BranchMerge<'a> {
    how: JoinOptions<'a>,
    sides: &'a [BranchState<'a>],
    /// Indexes into `sides`, sorted by branch name.
    by_name: Vec<usize>,
    trail: PointerBuilder,
    unsettled: Vec<Pointer>,
    settled: Vec<Pointer>,
}

impl BranchMerge<'_> {
    /// Merges one path. Returns `None` if the path does not exist in the result.
    fn merged(&mut self, base: Option<&Value>, sides: &[Option<&Value>]) -> Option<Value> {
        // Members and items are merged before the whole value is compared. Each leaf is then compared once per branch,
        // at any depth.
        if let Some(whole) = self.of_parts(base, sides) {
            return Some(whole);
        }
        let claims = conflicts::claims(base, sides);
        match claims.as_slice() {
            [] => base.cloned(),
            // One branch changed the value, or all branches that changed it agree.
            [only] => only.value.cloned(),
            _ => match self.within(base, sides) {
                Some(value) => Some(value),
                None => self.settle(&claims).unwrap_or_else(|| base.cloned()),
            },
        }
    }

    /// Merges member by member or item by item if all sides have the same kind of container: objects, new objects, or
    /// lists without keys of the same length. The result then does not depend on which branch made the change.
    fn of_parts(&mut self, base: Option<&Value>, sides: &[Option<&Value>]) -> Option<Value> {
        let all = || [base].into_iter().chain(sides.iter().copied());
        let is_object = |it: Option<&Value>| matches!(it, Some(Value::Object(_)));
        // If the base has no value, branches without a value have no effect.
        let mut put = sides.iter().copied().filter(Option::is_some).peekable();
        let is_new = base.is_none() && put.peek().is_some() && put.all(is_object);
        if is_new || all().all(is_object) {
            return Some(Value::Object(self.members(base, sides)));
        }
        let length = base?.as_array()?.len();
        let same = all().all(|it| it.and_then(Value::as_array).map(Vec::len) == Some(length));
        // A list with keys is merged by key, so its items must not be merged by index.
        let keyed = self.how.policy.key_of_list(&self.trail.pointer()).is_some();
        (same && !keyed).then(|| Value::Array(self.items(base, sides, length)))
    }

    /// Merges the parts one by one, if all branches that changed the value have the same kind of container.
    fn within(&mut self, base: Option<&Value>, sides: &[Option<&Value>]) -> Option<Value> {
        let changed = || sides.iter().copied().filter(|it| *it != base);
        let objects = |it: Option<&Value>| matches!(it, Some(Value::Object(_)));
        if (base.is_none() || objects(base)) && changed().all(objects) {
            return Some(Value::Object(self.members(base, sides)));
        }
        let list = |it: Option<&'_ Value>| it.and_then(Value::as_array).map(Vec::len);
        let length = list(base);
        // A branch that replaced the list by another kind of value makes the whole value the conflict.
        if !changed().all(|it| list(it).is_some()) || (base.is_some() && length.is_none()) {
            return None;
        }
        let place = self.trail.pointer();
        if let Some(key) = self.how.policy.key_of_list(&place)
            && let Some(keys) = ListKeys::of(key, base, sides)
        {
            return Some(Value::Array(self.keyed(&keys, base, sides)));
        }
        let same = length.is_some() && changed().all(|it| list(it) == length);
        same.then(|| Value::Array(self.items(base, sides, length.unwrap_or_default())))
    }

    fn members(&mut self, base: Option<&Value>, sides: &[Option<&Value>]) -> Map<String, Value> {
        let all = [base].into_iter().chain(sides.iter().copied()).flatten().filter_map(Value::as_object);
        let mut keys: Vec<&String> = all.flat_map(Map::keys).collect();
        keys.sort();
        // Several branches may have the same member.
        keys.dedup();
        let mut members = Map::new();
        for key in keys {
            let of: Vec<Option<&Value>> = sides.iter().map(|it| it.and_then(|it| it.get(key))).collect();
            let above = self.trail.enter_key(key);
            if let Some(value) = self.merged(base.and_then(|it| it.get(key)), &of) {
                members.insert(key.clone(), value);
            }
            self.trail.leave(above);
        }
        members
    }

    /// Merges the items of a list whose length is the same in all branches.
    fn items(&mut self, base: Option<&Value>, sides: &[Option<&Value>], length: usize) -> Vec<Value> {
        let mut items = Vec::with_capacity(length);
        for index in 0..length {
            let of: Vec<Option<&Value>> = sides.iter().map(|it| it.and_then(|it| it.get(index))).collect();
            let above = self.trail.enter_index(index);
            items.extend(self.merged(base.and_then(|it| it.get(index)), &of));
            self.trail.leave(above);
        }
        items
    }

    /// Merges items with keys: existing items in their order, then new items by branch name.
    fn keyed(&mut self, keys: &ListKeys, base: Option<&Value>, sides: &[Option<&Value>]) -> Vec<Value> {
        let mut items = Vec::new();
        for (index, key) in keys.in_order(&self.by_name).into_iter().enumerate() {
            let of: Vec<Option<&Value>> =
                (0..sides.len()).map(|side| keys.item(side, &key).and_then(|it| sides[side]?.get(it))).collect();
            let was = keys.item_before(&key).and_then(|it| base?.get(it));
            let above = self.trail.enter_index(index);
            items.extend(self.merged(was, &of));
            self.trail.leave(above);
        }
        items
    }

    /// Settles a conflict with the strategy. The outer `None` means that the conflict remains, the inner `None` that
    /// the value is removed.
    fn settle(&mut self, claims: &[BranchValue<'_>]) -> Option<Option<Value>> {
        let chosen = match self.how.strategy {
            Strategy::Union => None,
            Strategy::Explicit => {
                let place = self.trail.pointer();
                let said = self.how.resolutions.at(&place).cloned();
                // Used resolutions are recorded, so unused ones can be reported.
                self.settled.extend(said.is_some().then_some(place));
                said
            }
            Strategy::LastWrite => conflicts::last(claims),
            Strategy::Vote => conflicts::heaviest(claims, |_| 1),
            Strategy::Confidence => conflicts::heaviest(claims, |side| u64::from(self.sides[side].confidence)),
        };
        // All conflicts are collected, so the client sees all of them in one answer.
        if chosen.is_none() {
            self.unsettled.push(self.trail.pointer());
        }
        chosen
    }
}

#[cfg(test)]
mod tests;
