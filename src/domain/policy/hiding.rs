//! What is hidden of some states: what the policy names, and what its detectors find there.

mod told;

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::hidden_values::{Gathered, HiddenValues};
use super::model::Policy;
use super::patterns::Patterns;
use super::verdict::{Violation, Warning};
use crate::domain::json::diff::is_leaf;
use crate::domain::json::patch::Format;
use crate::domain::json::pointer::Pointer;
use crate::domain::tool::Tool;

/// What is hidden of some states: what stands where the policy hides by name, that same value wherever else it stands,
/// and what detectors find. Everything that shows parts of the same states must ask the same one, or one part tells
/// what the other hides.
#[derive(Debug)]
pub struct Hiding<'p> {
    policy: &'p Policy,
    named: &'p Patterns,
    values: HiddenValues,
    /// Leaves in which something was found, and containers with a key in which something was: a container's keys
    /// are shown together or not at all.
    found: BTreeSet<Pointer>,
}

/// A step of a walk.
#[derive(Clone, Copy)]
enum Step<'v> {
    Key(&'v str),
    Index(usize),
}

impl<'p> Hiding<'p> {
    /// Of what the policy names, and of names in which something is found.
    pub(super) fn by_name(policy: &'p Policy) -> Self {
        Self { policy, named: &policy.hidden, values: HiddenValues::default(), found: BTreeSet::new() }
    }

    /// Of these states together, and of the tool that is called along with them.
    pub fn of<'v>(policy: &'p Policy, states: impl IntoIterator<Item = &'v Value>, tool: Option<&Tool>) -> Self {
        let states: Vec<&Value> = states.into_iter().collect();
        let values = values_of(policy, &states, tool);
        Self { values, ..Self::by_name(policy) }.having_looked_at(&states)
    }

    /// Of a request for a state. Where the request's own parts are is not looked at: it may have no places.
    pub fn of_request(
        policy: &'p Policy,
        state: &Value,
        (format, request): (Format, &Value),
        tool: Option<&Tool>,
    ) -> Self {
        if policy.hidden.is_empty() && policy.tools.hidden.is_empty() {
            return Self::of(policy, [state], None);
        }
        let put = put_by(format, request);
        let all: Vec<&Value> = std::iter::once(state).chain(&put).collect();
        Self { values: values_of(policy, &all, tool), ..Self::by_name(policy) }.having_looked_at(&[state])
    }

    /// Of what a host says of a change: what it says to stand at a place is hidden as what stands there.
    pub fn of_told(policy: &'p Policy, told: &Value) -> Self {
        let by_name = Self::by_name(policy);
        let placed = told::placed(told, &|it| by_name.begins(it));
        let mut gathered = Gathered::default();
        placed.iter().filter_map(|it| it.value).for_each(|it| gathered.add(it));
        let found = placed.into_iter().map(|it| it.at).collect();
        Self { values: gathered.built(), found, ..by_name }.having_looked_at(&[told])
    }

    /// Of what a tool is called with, beside these states.
    pub(super) fn of_arguments(&self, arguments: &Value) -> Self {
        let named = &self.policy.tools.hidden;
        Self { named, values: self.values.clone(), ..Self::by_name(self.policy) }.having_looked_at(&[arguments])
    }

    fn having_looked_at(mut self, states: &[&Value]) -> Self {
        if !self.policy.detectors.is_empty() || !self.values.is_empty() {
            states.iter().for_each(|it| self.look(it, &mut Vec::new()));
        }
        self
    }

    fn look<'v>(&mut self, value: &'v Value, at: &mut Vec<Step<'v>>) {
        match value {
            Value::Object(members) if members.keys().any(|it| self.finds(it)) => self.keep(at),
            Value::Object(members) => {
                for (key, value) in members {
                    at.push(Step::Key(key));
                    self.look(value, at);
                    at.pop();
                }
            }
            Value::Array(items) => {
                for (index, value) in items.iter().enumerate() {
                    at.push(Step::Index(index));
                    self.look(value, at);
                    at.pop();
                }
            }
            leaf if self.finds_in(leaf) => self.keep(at),
            _ => {}
        }
    }

    fn keep(&mut self, at: &[Step<'_>]) {
        let step = |above: Pointer, step: &Step<'_>| match step {
            Step::Key(key) => above.child(key),
            Step::Index(index) => above.index(*index),
        };
        let pointer = at.iter().fold(Pointer::root(), step);
        if !self.named.covers(&pointer) {
            self.found.insert(pointer);
        }
    }

    fn finds(&self, text: &str) -> bool {
        self.policy.detectors.find(text) || self.values.find(text)
    }

    fn finds_in(&self, leaf: &Value) -> bool {
        self.policy.detectors.find_in(leaf) || self.values.find_in(leaf)
    }

    /// Whether a value that would stand at the pointer is to be hidden: for where it is, or for what it or one of
    /// its keys is.
    pub(super) fn hides_there(&self, value: &Value, at: &Pointer) -> bool {
        let found = match value {
            Value::Object(members) => members.keys().any(|it| self.finds(it)),
            leaf => is_leaf(leaf) && self.finds_in(leaf),
        };
        found || self.hides(at)
    }

    /// What stands where the policy hides by name.
    pub const fn values(&self) -> &HiddenValues {
        &self.values
    }

    /// Words as people may read them.
    pub fn masked<'t>(&self, words: &'t str) -> Cow<'t, str> {
        self.values.masked(self.policy, words)
    }

    /// Warnings as people may read them.
    #[must_use]
    pub fn warnings(&self, warnings: &[Warning]) -> Vec<Warning> {
        let cut = |it: &Warning| Warning { pointer: self.cut(&it.pointer), ..it.clone() };
        warnings.iter().map(cut).collect()
    }

    /// Violations as people may read them. How many there are below something hidden is not told either.
    #[must_use]
    pub fn violations(&self, violations: Vec<Violation>) -> Vec<Violation> {
        let mut told: Vec<Violation> = Vec::with_capacity(violations.len());
        for it in violations {
            let cut = Violation { pointer: self.cut(&it.pointer), ..it };
            if !told.contains(&cut) {
                told.push(cut);
            }
        }
        told
    }

    /// Whether the pointer is at or below something hidden.
    pub fn hides(&self, pointer: &Pointer) -> bool {
        self.begins(pointer).is_some()
    }

    /// The pointer, or where the hidden part of it begins. The last name shown is the one that the pattern's last
    /// segment matches: the trees of an opening end there too.
    #[must_use]
    pub fn cut(&self, pointer: &Pointer) -> Pointer {
        self.begins(pointer).unwrap_or_else(|| pointer.clone())
    }

    fn begins(&self, pointer: &Pointer) -> Option<Pointer> {
        let hidden_here = |at: &Pointer| self.named.covers(at) || self.found.contains(at);
        let mut prefix = Pointer::root();
        for token in pointer.tokens() {
            if hidden_here(&prefix) || self.finds(&token) {
                return Some(prefix);
            }
            prefix = prefix.child(&token);
        }
        hidden_here(&prefix).then_some(prefix)
    }
}

/// What stands where the policy hides by name, in states and in the arguments of a tool.
fn values_of(policy: &Policy, states: &[&Value], tool: Option<&Tool>) -> HiddenValues {
    let mut gathered = Gathered::default();
    for state in states {
        policy.hidden.iter().flat_map(|it| it.named(state)).for_each(|it| gathered.add(it));
    }
    if let Some(tool) = tool.filter(|_| !policy.tools.hidden.is_empty()) {
        let arguments = Value::Object(tool.arguments.clone());
        policy.tools.hidden.iter().flat_map(|it| it.named(&arguments)).for_each(|it| gathered.add(it));
    }
    gathered.built()
}

/// What a request would put somewhere, each as a state with nothing else in it.
fn put_by(format: Format, request: &Value) -> Vec<Value> {
    let Format::JsonPatch = format else { return vec![request.clone()] };
    let put = |step: &Value| {
        let path = Pointer::try_from(step.get("path")?.as_str()?).ok()?;
        let tokens: Vec<String> = path.tokens().map(Cow::into_owned).collect();
        let around = |value: Value, key: String| Value::Object(Map::from_iter([(key, value)]));
        Some(tokens.into_iter().rev().fold(step.get("value")?.clone(), around))
    };
    request.as_array().map(|steps| steps.iter().filter_map(put).collect()).unwrap_or_default()
}

impl Policy {
    /// Whether the pointer alone tells that something there is hidden.
    pub fn hides(&self, pointer: &Pointer) -> bool {
        Hiding::by_name(self).hides(pointer)
    }

    /// The pointer as it may be shown, as far as it alone can tell.
    #[must_use]
    pub fn cut(&self, pointer: &Pointer) -> Pointer {
        Hiding::by_name(self).cut(pointer)
    }
}

#[cfg(test)]
mod tests;
