//! What is hidden of some states: what the policy names, and what its detectors find there.

pub(crate) mod detectors;
pub(crate) mod diff;
pub(crate) mod excerpt;
mod host_text;
pub(crate) mod value_kind;
pub(crate) mod value_scan;

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::judgement::{JudgedWarning, Violation};
use super::model::Policy;
use super::pattern_set::Patterns;
use super::view::project;
use crate::domain::json::diff::{is_leaf, leaves};
use crate::domain::json::patch::{Patch, PatchFormat};
use crate::domain::json::pointer::Pointer;
use crate::domain::json::size::StateLimits;
use crate::domain::primitives::id::NodeId;
use crate::domain::threads::tool_call::Tool;
use value_scan::{RedactedValueSet, RedactedValues};

/// What is hidden of some states: what stands where the policy hides by name, that same value wherever else it stands,
/// and what detectors find. Everything that shows parts of the same states must ask the same one, or one part tells
/// what the other hides.
#[derive(Debug)]
pub struct Redactor<'p> {
    policy: &'p Policy,
    named: &'p Patterns,
    values: RedactedValues,
    /// Leaves in which something was found, and containers with a key in which something was: a container's keys
    /// are shown together or not at all.
    found: BTreeSet<Pointer>,
    /// Places whose names the reader chose: their names are not compared with redacted values.
    spared: BTreeSet<Pointer>,
}

/// Which redacted values a text is compared with. A comparison answers a guess, so whoever could have chosen the text
/// must not see the result of one with a value that its author could not read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ComparedValues<'n> {
    /// All of them: the reader could not have chosen the text.
    WithEvery,
    /// Those that one of these nodes could read, as which its author can act; none if it can act as none.
    WithReadable(&'n BTreeSet<NodeId>),
}

/// A state, and the leaves of it that the reader could have chosen.
#[derive(Clone, Copy, Debug)]
pub struct ScannedState<'v> {
    pub state: &'v Value,
    /// These are compared with no redacted value.
    pub spared: &'v BTreeSet<Pointer>,
}

pub static NO_LEAVES: BTreeSet<Pointer> = BTreeSet::new();

#[derive(Clone, Copy)]
enum ValuePathStep<'v> {
    Key(&'v str),
    Index(usize),
}

impl<'p> Redactor<'p> {
    /// Of what the policy names, and of names in which something is found.
    pub(super) fn by_name(policy: &'p Policy) -> Self {
        let (values, found, spared) = Default::default();
        Self { policy, named: &policy.hidden, values, found, spared }
    }

    /// Of these states together, and of the tool that is called along with them.
    pub fn of<'v>(policy: &'p Policy, states: impl IntoIterator<Item = &'v Value>, tool: Option<&Tool>) -> Self {
        let side = |state| ScannedState { state, spared: &NO_LEAVES };
        Self::of_sides(policy, &states.into_iter().map(side).collect::<Vec<_>>(), tool)
    }

    /// The same, where the reader could have chosen some leaves.
    pub fn of_sides(policy: &'p Policy, sides: &[ScannedState<'_>], tool: Option<&Tool>) -> Self {
        let states: Vec<&Value> = sides.iter().map(|it| it.state).collect();
        let values = values_of(policy, &states, tool);
        let spared = sides.iter().flat_map(|it| it.spared).cloned().collect();
        Self { values, spared, ..Self::by_name(policy) }.having_looked_at(sides)
    }

    /// Of texts that stand beside these states: they are compared with the values of these alone.
    pub fn beside(policy: &'p Policy, states: &[&Value], tool: Option<&Tool>) -> Self {
        Self { values: values_of(policy, states, tool), ..Self::by_name(policy) }
    }

    /// Of a request for a state, as readers are shown it who could not have chosen it.
    pub fn of_request(policy: &'p Policy, state: &Value, request: (PatchFormat, &Value), tool: Option<&Tool>) -> Self {
        Self::of_request_compared(policy, ComparedValues::WithEvery, state, request, tool)
    }

    /// Of a request for a state. Where the request's own parts are is not looked at: it may have no places.
    pub fn of_request_compared(
        policy: &'p Policy,
        compared: ComparedValues<'_>,
        state: &Value,
        (format, request): (PatchFormat, &Value),
        tool: Option<&Tool>,
    ) -> Self {
        let side = ScannedState { state, spared: &NO_LEAVES };
        if policy.hidden.is_empty() && policy.tools.hidden.is_empty() {
            return Self::by_name(policy).having_looked_at(&[side]);
        }
        // Whoever made the request knows what it puts somewhere.
        let put = put_by(format, request);
        let (known, tool) = readable(policy, compared, &[state], tool);
        let moved = moved_by(format, request, &known);
        let all: Vec<&Value> = known.iter().map(AsRef::as_ref).chain(&put).chain(&moved).collect();
        Self { values: values_of(policy, &all, tool), ..Self::by_name(policy) }.having_looked_at(&[side])
    }

    /// The same, but that names in these places are the reader's own.
    #[must_use]
    pub fn sparing(mut self, places: impl IntoIterator<Item = Pointer>) -> Self {
        self.spared.extend(places);
        self
    }

    /// Of what a host says of a change: what it says to stand at a place is hidden as what stands there.
    pub fn for_host_text(policy: &'p Policy, told: &Value) -> Self {
        let by_name = Self::by_name(policy);
        let placed = host_text::placed(told, &|it| by_name.begins(it));
        let mut gathered = RedactedValueSet::default();
        placed.iter().filter_map(|it| it.value).for_each(|it| gathered.add(it));
        let found = placed.into_iter().map(|it| it.at).collect();
        let side = ScannedState { state: told, spared: &NO_LEAVES };
        Self { values: gathered.built(), found, ..by_name }.having_looked_at(&[side])
    }

    /// Of what a tool is called with, beside these states.
    pub(super) fn of_arguments(&self, arguments: &Value) -> Self {
        let named = &self.policy.tools.hidden;
        let side = ScannedState { state: arguments, spared: &NO_LEAVES };
        Self { named, values: self.values.clone(), ..Self::by_name(self.policy) }.having_looked_at(&[side])
    }

    fn having_looked_at(mut self, sides: &[ScannedState<'_>]) -> Self {
        if !self.policy.detectors.is_empty() || !self.values.is_empty() {
            sides.iter().for_each(|it| self.look(it.state, &mut Vec::new(), it.spared));
        }
        self
    }

    fn look<'v>(&mut self, value: &'v Value, at: &mut Vec<ValuePathStep<'v>>, spared: &BTreeSet<Pointer>) {
        match value {
            Value::Object(members) if members.iter().any(|it| self.finds_key(it, at, spared)) => self.keep(at),
            Value::Object(members) => {
                for (key, value) in members {
                    at.push(ValuePathStep::Key(key));
                    self.look(value, at, spared);
                    at.pop();
                }
            }
            Value::Array(items) => {
                for (index, value) in items.iter().enumerate() {
                    at.push(ValuePathStep::Index(index));
                    self.look(value, at, spared);
                    at.pop();
                }
            }
            leaf if self.policy.detectors.find_in(leaf) => self.keep(at),
            leaf if self.values.find_in(leaf) && !spared.contains(&pointer_of(at)) => self.keep(at),
            _ => {}
        }
    }

    /// Whether something is found in a key that the reader did not choose: with all that stands below it.
    fn finds_key(&self, (key, value): (&String, &Value), at: &[ValuePathStep<'_>], spared: &BTreeSet<Pointer>) -> bool {
        if self.policy.detectors.find(key) {
            return true;
        }
        let at = || pointer_of(at).child(key);
        self.values.find(key) && !leaves_at(&at(), value).iter().all(|it| spared.contains(it))
    }

    fn keep(&mut self, at: &[ValuePathStep<'_>]) {
        let pointer = pointer_of(at);
        if !self.named.covers(&pointer) {
            self.found.insert(pointer);
        }
    }

    /// The leaves of a state that a comparison with redacted values alone redacts: for what they or their names are.
    pub fn found_by_comparison(&self, state: &Value) -> Vec<Pointer> {
        if self.values.is_empty() || self.found.is_empty() {
            return Vec::new();
        }
        let elsewhere = leaves(state).into_iter().map(|it| it.0).filter(|at| !self.named.covers(at));
        elsewhere.filter(|at| self.equals_redacted(at, state)).collect()
    }

    /// Whether a redacted value stands in what a state has at a place, or in a name on the way there.
    pub fn equals_redacted(&self, at: &Pointer, state: &Value) -> bool {
        let leaf = at.resolve(state).is_some_and(|it| self.values.find_in(it));
        leaf || at.tokens().any(|token| self.values.find(&token))
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
    pub const fn values(&self) -> &RedactedValues {
        &self.values
    }

    /// Words as people may read them.
    pub fn masked<'t>(&self, words: &'t str) -> Cow<'t, str> {
        self.values.masked(self.policy, words)
    }

    /// Warnings as people may read them.
    #[must_use]
    pub fn warnings(&self, warnings: &[JudgedWarning]) -> Vec<JudgedWarning> {
        let cut = |it: &JudgedWarning| JudgedWarning { pointer: self.cut(&it.pointer), ..it.clone() };
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
            let names = self.policy.detectors.find(&token) || self.values.find(&token) && !self.spares(pointer);
            if hidden_here(&prefix) || names {
                return Some(prefix);
            }
            prefix = prefix.child(&token);
        }
        hidden_here(&prefix).then_some(prefix)
    }

    /// Whether the names of a place are the reader's own.
    fn spares(&self, pointer: &Pointer) -> bool {
        self.spared.iter().any(|it| it.covers(pointer) || pointer.covers(it))
    }
}

fn pointer_of(at: &[ValuePathStep<'_>]) -> Pointer {
    at.iter().fold(Pointer::root(), |above, step| match step {
        ValuePathStep::Key(key) => above.child(key),
        ValuePathStep::Index(index) => above.index(*index),
    })
}

/// The leaves of a value that stands at a place.
fn leaves_at(at: &Pointer, value: &Value) -> Vec<Pointer> {
    let below = |it: Pointer| it.tokens().fold(at.clone(), |above, token| above.child(&token));
    leaves(value).into_iter().map(|it| below(it.0)).collect()
}

/// What the author of a text knows of these states and of the tool's arguments.
fn readable<'s, 't>(
    policy: &Policy,
    compared: ComparedValues<'_>,
    states: &[&'s Value],
    tool: Option<&'t Tool>,
) -> (Vec<Cow<'s, Value>>, Option<&'t Tool>) {
    match compared {
        ComparedValues::WithEvery => (states.iter().map(|it| Cow::Borrowed(*it)).collect(), tool),
        ComparedValues::WithReadable(nodes) => {
            let read = states.iter().flat_map(|state| nodes.iter().map(|node| project(policy, node, state)));
            (read.map(Cow::Owned).collect(), tool.filter(|_| !nodes.is_empty()))
        }
    }
}

/// What stands where the policy hides by name, in states and in the arguments of a tool.
fn values_of(policy: &Policy, states: &[&Value], tool: Option<&Tool>) -> RedactedValues {
    let mut gathered = RedactedValueSet::default();
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
fn put_by(format: PatchFormat, request: &Value) -> Vec<Value> {
    let PatchFormat::JsonPatch = format else { return vec![request.clone()] };
    let put = |step: &Value| {
        let path = Pointer::try_from(step.get("path")?.as_str()?).ok()?;
        let tokens: Vec<String> = path.tokens().map(Cow::into_owned).collect();
        let around = |value: Value, key: String| Value::Object(Map::from_iter([(key, value)]));
        Some(tokens.into_iter().rev().fold(step.get("value")?.clone(), around))
    };
    request.as_array().map(|steps| steps.iter().filter_map(put).collect()).unwrap_or_default()
}

/// What comes of a request that moves or copies values, on each of the states that its author knows: a value of its own that
/// ends at a redacted place is redacted in its steps. Nothing comes of one that does not fit, or would be too large.
fn moved_by(format: PatchFormat, request: &Value, known: &[Cow<'_, Value>]) -> Vec<Value> {
    if format != PatchFormat::JsonPatch {
        return Vec::new();
    }
    let patch = Patch::read(format, request.clone()).ok().filter(Patch::moves_or_copies);
    let after = |patch: Patch| known.iter().filter_map(move |it| patch.apply(it, &StateLimits::default()).ok());
    patch.into_iter().flat_map(after).collect()
}

impl Policy {
    /// Whether the pointer alone tells that something there is hidden.
    pub fn hides(&self, pointer: &Pointer) -> bool {
        Redactor::by_name(self).hides(pointer)
    }

    /// The pointer as it may be shown, as far as it alone can tell.
    #[must_use]
    pub fn cut(&self, pointer: &Pointer) -> Pointer {
        Redactor::by_name(self).cut(pointer)
    }
}

#[cfg(test)]
mod tests;
