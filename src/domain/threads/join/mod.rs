//! What several branches made of one state, as one. Pure, and the same to the byte whatever order they finished in:
//! only their names, their states and, where a strategy asks for it, the order in which they are named count.
//!
//! Each branch is compared with the state that all began with. Where it has what stood there, it has no say.

mod conflicts;
mod keyed_lists;
mod resolutions;

use std::collections::BTreeSet;

use serde_json::{Map, Value};

pub use resolutions::{InvalidResolution, Resolutions};

use super::branch::Strategy;
use crate::domain::json::diff::diff;
use crate::domain::json::pointer::{Pointer, PointerBuilder};
use crate::domain::policy::Policy;
use crate::domain::primitives::id::BranchName;
use conflicts::BranchValue;
use keyed_lists::ListKeys;

#[derive(Clone, Copy, Debug)]
pub struct BranchState<'v> {
    /// What the branch is called.
    pub name: &'v BranchName,
    pub state: &'v Value,
    /// How sure it is, in millionths; counts only where that is asked.
    pub confidence: u32,
}

#[derive(Clone, Copy)]
pub struct JoinOptions<'a> {
    /// What becomes of conflicts.
    pub strategy: Strategy,
    /// The lists whose items have keys, by their places.
    pub policy: &'a Policy,
    /// What the request says of conflicts.
    pub resolutions: &'a Resolutions,
}

/// Why branches are not joined.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum JoinRejected {
    /// Several of them have several values at these places, in order.
    Conflicts(Vec<Pointer>),
    /// The request settles something that is no conflict.
    NoConflict(Pointer),
}

/// Every place that a branch changed, once and in order. That a container was empty is no value of its own where members
/// came or went.
pub fn changed<'v>(base: &Value, states: impl Iterator<Item = &'v Value>) -> Vec<Pointer> {
    let of = |state: &'v Value| {
        let changes = diff(base, state).into_iter().filter(|it| !it.is_filling(base, state));
        changes.map(|it| it.pointer).collect::<Vec<_>>()
    };
    states.flat_map(of).collect::<BTreeSet<_>>().into_iter().collect()
}

/// The state that comes of all of them, given in the order in which the request names them.
pub fn join(base: &Value, sides: &[BranchState<'_>], how: JoinOptions<'_>) -> Result<Value, JoinRejected> {
    let mut by_name: Vec<usize> = (0..sides.len()).collect();
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
    match how.resolutions.places().find(|it| !settled.contains(it)) {
        Some(idle) => Err(JoinRejected::NoConflict(idle.clone())),
        None => Ok(joined),
    }
}

struct BranchMerge<'a> {
    how: JoinOptions<'a>,
    sides: &'a [BranchState<'a>],
    /// The places of the branches in `sides`, by name.
    by_name: Vec<usize>,
    trail: PointerBuilder,
    unsettled: Vec<Pointer>,
    settled: Vec<Pointer>,
}

impl BranchMerge<'_> {
    /// What becomes of one place. Nothing, where nothing stands there afterwards.
    fn merged(&mut self, base: Option<&Value>, sides: &[Option<&Value>]) -> Option<Value> {
        // Parts first: so each leaf is compared once for each branch, however deep it lies.
        if let Some(whole) = self.of_parts(base, sides) {
            return Some(whole);
        }
        let claims = conflicts::claims(base, sides);
        match claims.as_slice() {
            [] => base.cloned(),
            // One alone changed it, or all who did agree.
            [only] => only.value.cloned(),
            _ => match self.within(base, sides) {
                Some(value) => Some(value),
                None => self.settle(&claims).unwrap_or_else(|| base.cloned()),
            },
        }
    }

    /// An object that is one everywhere, or everywhere where there is a new one, or a list without keys that is as long everywhere:
    /// what comes of it is what comes of its parts, whoever changed it.
    fn of_parts(&mut self, base: Option<&Value>, sides: &[Option<&Value>]) -> Option<Value> {
        let all = || [base].into_iter().chain(sides.iter().copied());
        let is_object = |it: Option<&Value>| matches!(it, Some(Value::Object(_)));
        // Where nothing stood, those that put nothing there have no say.
        let mut put = sides.iter().copied().filter(Option::is_some).peekable();
        let is_new = base.is_none() && put.peek().is_some() && put.all(is_object);
        if is_new || all().all(is_object) {
            return Some(Value::Object(self.members(base, sides)));
        }
        let length = base?.as_array()?.len();
        let same = all().all(|it| it.and_then(Value::as_array).map(Vec::len) == Some(length));
        let keyed = self.how.policy.key_of_list(&self.trail.pointer()).is_some();
        (same && !keyed).then(|| Value::Array(self.items(base, sides, length)))
    }

    /// The parts merged one by one, if the places of all who changed them are of one kind that has parts.
    fn within(&mut self, base: Option<&Value>, sides: &[Option<&Value>]) -> Option<Value> {
        let changed = || sides.iter().copied().filter(|it| *it != base);
        let objects = |it: Option<&Value>| matches!(it, Some(Value::Object(_)));
        if (base.is_none() || objects(base)) && changed().all(objects) {
            return Some(Value::Object(self.members(base, sides)));
        }
        let list = |it: Option<&'_ Value>| it.and_then(Value::as_array).map(Vec::len);
        let length = list(base);
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

    /// Items of a list whose length nobody changed.
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

    /// Items that have keys: those that were there in their order, then new ones by the names of their branches.
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

    /// What a strategy makes of a conflict: a value, or nothing there; or it stays one.
    fn settle(&mut self, claims: &[BranchValue<'_>]) -> Option<Option<Value>> {
        let chosen = match self.how.strategy {
            Strategy::Union => None,
            Strategy::Explicit => {
                let place = self.trail.pointer();
                let said = self.how.resolutions.at(&place).cloned();
                self.settled.extend(said.is_some().then_some(place));
                said
            }
            Strategy::LastWrite => conflicts::last(claims),
            Strategy::Vote => conflicts::heaviest(claims, |_| 1),
            Strategy::Confidence => conflicts::heaviest(claims, |side| u64::from(self.sides[side].confidence)),
        };
        if chosen.is_none() {
            self.unsettled.push(self.trail.pointer());
        }
        chosen
    }
}

#[cfg(test)]
mod tests;
