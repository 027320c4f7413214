//! Redaction: removes the paths that a policy names, and the matches of its detectors, from states and texts.

pub(crate) mod detectors;
pub(crate) mod diff;
pub(crate) mod excerpt;
mod host_text;
mod request_values;
pub(crate) mod state_text;
pub(crate) mod value_kind;
pub(crate) mod value_scan;

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde_json::Value;

use super::judgement::{JudgedWarning, Violation};
use super::model::Policy;
use super::pattern_set::Patterns;
use crate::json::diff::{is_leaf, leaves};
use crate::json::patch::PatchFormat;
use crate::json::pointer::Pointer;
use crate::primitives::id::NodeId;
use crate::threads::tool_call::Tool;
use request_values::{moved_by, put_by, readable};
use state_text::{StateText, StateTextKind};
use value_scan::{RedactedValueSet, RedactedValues};

/// Redacts some states: the paths that the policy names, the same values in other paths, and the matches of
/// detectors. Every view of the same states must use the same redactor. Otherwise one view shows a value that another
/// one redacts.
#[derive(Debug)]
pub struct Redactor<'p> {
    policy: &'p Policy,
    named: &'p Patterns,
    values: RedactedValues,
    /// Leaves with a match, and containers that have a key with a match. The keys of a container are shown together
    /// or not at all.
    found: BTreeSet<Pointer>,
    /// Members whose names the reader chose. These names are not compared with redacted values.
    spared_names: BTreeSet<Pointer>,
    /// Paths in which the reader chose every name.
    spared_paths: Vec<Pointer>,
}

/// The findings of a redactor without its policy.
#[derive(Debug)]
pub struct RedactorFindings {
    values: RedactedValues,
    found: BTreeSet<Pointer>,
    spared_names: BTreeSet<Pointer>,
}

/// The redacted values that a text is compared with. A comparison answers a guess. A reader who could have chosen the
/// text must not see the result of a comparison with a value that the author of the text could not read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ComparedValues<'n> {
    /// All of them: the reader could not have chosen the text.
    WithEvery,
    /// The values that one of these nodes could read. The author can act as these nodes. Without a node, there are
    /// none.
    WithReadable(&'n BTreeSet<NodeId>),
}

/// A state, and the texts of it that the reader could have chosen.
#[derive(Clone, Copy, Debug)]
pub struct ScannedState<'v> {
    pub state: &'v Value,
    /// These are compared with no redacted value.
    pub spared: &'v BTreeSet<StateText>,
}

pub static NO_TEXTS: BTreeSet<StateText> = BTreeSet::new();

#[derive(Clone, Copy)]
enum ValuePathStep<'v> {
    Key(&'v str),
    Index(usize),
}

impl<'p> Redactor<'p> {
    /// Redacts only the paths that the policy names, and names in which a detector finds something.
    pub(super) fn by_name(policy: &'p Policy) -> Self {
        let (values, found, spared_names, spared_paths) = Default::default();
        Self { policy, named: &policy.hidden, values, found, spared_names, spared_paths }
    }

    /// Redacts these states together with the tool call that belongs to them.
    pub fn of<'v>(policy: &'p Policy, states: impl IntoIterator<Item = &'v Value>, tool: Option<&Tool>) -> Self {
        let side = |state| ScannedState { state, spared: &NO_TEXTS };
        Self::of_sides(policy, &states.into_iter().map(side).collect::<Vec<_>>(), tool)
    }

    /// Does the same if the reader could have chosen some of the texts.
    pub fn of_sides(policy: &'p Policy, sides: &[ScannedState<'_>], tool: Option<&Tool>) -> Self {
        let states: Vec<&Value> = sides.iter().map(|it| it.state).collect();
        let values = values_of(policy, &states, tool);
        let names = sides.iter().flat_map(|it| it.spared).filter(|it| it.kind == StateTextKind::Name);
        let spared_names = names.map(|it| it.at.clone()).collect();
        Self { values, spared_names, ..Self::by_name(policy) }.having_looked_at(sides)
    }

    /// Redacts texts that belong to these states. The texts are compared only with the values of these states.
    pub fn beside(policy: &'p Policy, states: &[&Value], tool: Option<&Tool>) -> Self {
        Self { values: values_of(policy, states, tool), ..Self::by_name(policy) }
    }

    /// Does the same with values that another redaction of these states has collected.
    pub fn with_values(policy: &'p Policy, values: RedactedValues) -> Self {
        Self { values, ..Self::by_name(policy) }
    }

    /// Redacts the states again that the findings come from.
    pub fn with_findings(policy: &'p Policy, findings: RedactorFindings) -> Self {
        let RedactorFindings { values, found, spared_names } = findings;
        Self { values, found, spared_names, ..Self::by_name(policy) }
    }

    /// Returns the findings in the states, which another thread can own.
    pub fn into_findings(self) -> RedactorFindings {
        RedactorFindings { values: self.values, found: self.found, spared_names: self.spared_names }
    }

    /// Redacts a request for readers who could not have chosen it.
    pub fn of_request(
        policy: &'p Policy,
        state: &Value,
        format: PatchFormat,
        request: &Value,
        tool: Option<&Tool>,
    ) -> Self {
        Self::of_request_compared(policy, ComparedValues::WithEvery, state, format, request, tool)
    }

    /// Redacts a request. Paths within the request are not checked, because a request may have no valid paths.
    pub fn of_request_compared(
        policy: &'p Policy,
        compared: ComparedValues<'_>,
        state: &Value,
        format: PatchFormat,
        request: &Value,
        tool: Option<&Tool>,
    ) -> Self {
        let side = ScannedState { state, spared: &NO_TEXTS };
        // Without redacted paths there are no values to compare with, so the request is not read.
        if policy.hidden.is_empty() && policy.tools.hidden.is_empty() {
            return Self::by_name(policy).having_looked_at(&[side]);
        }
        // The author of the request knows the values that it sets.
        let put = put_by(format, request);
        let (known, tool) = readable(policy, compared, state, tool);
        // A move or copy can put a value at a redacted path without naming the value.
        let moved = moved_by(policy, compared, state, format, request);
        let all: Vec<&Value> = [known.as_ref()].into_iter().chain(&put).chain(&moved).collect();
        Self { values: values_of(policy, &all, tool), ..Self::by_name(policy) }.having_looked_at(&[side])
    }

    /// Exempts names in these paths, because the reader chose them.
    #[must_use]
    pub fn sparing(mut self, places: impl IntoIterator<Item = Pointer>) -> Self {
        self.spared_paths.extend(places);
        self
    }

    /// Redacts a host's description of a change. A value that the description places at a redacted path is redacted
    /// everywhere.
    pub fn for_host_text(policy: &'p Policy, told: &Value) -> Self {
        let by_name = Self::by_name(policy);
        let placed = host_text::placed(told, &|it| by_name.begins(it));
        let mut gathered = RedactedValueSet::default();
        placed.iter().filter_map(|it| it.value).for_each(|it| gathered.add(it));
        let found = placed.into_iter().map(|it| it.at).collect();
        let side = ScannedState { state: told, spared: &NO_TEXTS };
        Self { values: gathered.built(), found, ..by_name }.having_looked_at(&[side])
    }

    /// Redacts the arguments of a tool call that belongs to these states.
    pub(super) fn of_arguments(&self, arguments: &Value) -> Self {
        let named = &self.policy.tools.hidden;
        let side = ScannedState { state: arguments, spared: &NO_TEXTS };
        // An agent can copy a redacted value of the state into an argument.
        Self { named, values: self.values.clone(), ..Self::by_name(self.policy) }.having_looked_at(&[side])
    }

    fn having_looked_at(mut self, sides: &[ScannedState<'_>]) -> Self {
        // The walk over a large state is slow, so it is left out if nothing can match.
        if !self.policy.detectors.is_empty() || !self.values.is_empty() {
            sides.iter().for_each(|it| self.look(it.state, &mut Vec::new(), it.spared));
        }
        self
    }

    fn look<'v>(&mut self, value: &'v Value, at: &mut Vec<ValuePathStep<'v>>, spared: &BTreeSet<StateText>) {
        // A path that the policy names gets no entry, so it is not searched. Most redacted values are there.
        let is_container = matches!(value, Value::Object(_) | Value::Array(_)) && !self.named.is_empty();
        let container = is_container.then(|| pointer_of(at));
        if container.as_ref().is_some_and(|it| self.named.covers(it)) {
            return;
        }
        match value {
            Value::Object(members) if members.keys().any(|it| self.finds_key(it, at, spared)) => self.keep(at),
            _ if container.is_some_and(|it| self.named.covers_every_member(&it)) => {}
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
            // Detectors apply even to texts of the reader, because they do not depend on redacted values.
            leaf if self.policy.detectors.find_in(leaf) => self.keep(at),
            leaf if self.values.find_in(leaf) && !spared.contains(&StateText::value(pointer_of(at))) => self.keep(at),
            _ => {}
        }
    }

    /// Returns whether a key that the reader did not choose matches. Everything below such a key is redacted with it.
    fn finds_key(&self, key: &str, at: &[ValuePathStep<'_>], spared: &BTreeSet<StateText>) -> bool {
        let is_spared = || spared.contains(&StateText::name(pointer_of(at).child(key)));
        self.policy.detectors.find(key) || self.values.find(key) && !is_spared()
    }

    fn keep(&mut self, at: &[ValuePathStep<'_>]) {
        let pointer = pointer_of(at);
        // A path that the policy names is redacted anyway and needs no entry.
        if !self.named.covers(&pointer) {
            self.found.insert(pointer);
        }
    }

    /// Returns the texts of a state that are redacted only because they equal a redacted value.
    pub fn found_by_comparison(&self, state: &Value) -> BTreeSet<StateText> {
        let mut texts = BTreeSet::new();
        // Without values or matches no text can be exempt.
        if self.values.is_empty() || self.found.is_empty() {
            return texts;
        }
        for (at, leaf) in leaves(state) {
            let mut above = Pointer::root();
            for token in at.tokens() {
                above = above.child(&token);
                if self.values.find(&token) {
                    texts.insert(StateText::name(above.clone()));
                }
            }
            if self.values.find_in(leaf) {
                texts.insert(StateText::value(at));
            }
        }
        // A text at a redacted path stays redacted, even if the reader wrote it.
        texts.retain(|it| !self.named.covers(&it.at));
        texts
    }

    /// Returns whether a text of a state contains a redacted value.
    pub fn equals_redacted(&self, text: &StateText, state: &Value) -> bool {
        text.resolve(state).is_some_and(|it| self.values.find_in(&it))
    }

    fn finds(&self, text: &str) -> bool {
        self.policy.detectors.find(text) || self.values.find(text)
    }

    fn finds_in(&self, leaf: &Value) -> bool {
        self.policy.detectors.find_in(leaf) || self.values.find_in(leaf)
    }

    /// Returns whether a value at the pointer is redacted, because of its path, its content or one of its keys.
    pub(super) fn hides_there(&self, value: &Value, at: &Pointer) -> bool {
        // The value may come from a request and not from a scanned state, so its content is checked here.
        let found = match value {
            Value::Object(members) => members.keys().any(|it| self.finds(it)),
            leaf => is_leaf(leaf) && self.finds_in(leaf),
        };
        found || self.hides(at)
    }

    /// Returns the values at the paths that the policy redacts.
    pub const fn values(&self) -> &RedactedValues {
        &self.values
    }

    /// Returns a text with redaction applied.
    pub fn masked<'t>(&self, words: &'t str) -> Cow<'t, str> {
        self.values.masked(self.policy, words)
    }

    /// Returns warnings with redaction applied to their paths.
    #[must_use]
    pub fn warnings(&self, warnings: &[JudgedWarning]) -> Vec<JudgedWarning> {
        let cut = |it: &JudgedWarning| JudgedWarning { pointer: self.cut(&it.pointer), ..it.clone() };
        warnings.iter().map(cut).collect()
    }

    /// Returns violations with redaction applied to their paths. Violations below the same redacted path become one,
    /// so that their number reveals nothing.
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

    /// Returns whether the pointer is at or below a redacted path.
    pub fn hides(&self, pointer: &Pointer) -> bool {
        self.begins(pointer).is_some()
    }

    /// Returns the pointer, cut where its redacted part begins. The last name that is shown is the one that the last
    /// segment of the pattern matches. The trees of an opening end there, too.
    #[must_use]
    pub fn cut(&self, pointer: &Pointer) -> Pointer {
        self.begins(pointer).unwrap_or_else(|| pointer.clone())
    }

    fn begins(&self, pointer: &Pointer) -> Option<Pointer> {
        let hidden_here = |at: &Pointer| self.named.covers(at) || self.found.contains(at);
        let mut prefix = Pointer::root();
        for token in pointer.tokens() {
            let below = prefix.child(&token);
            let is_spared = || self.spared_names.contains(&below) || self.spares(pointer);
            let names = self.policy.detectors.find(&token) || self.values.find(&token) && !is_spared();
            // The name itself could be a redacted value, so the path ends before it.
            if hidden_here(&prefix) || names {
                return Some(prefix);
            }
            prefix = below;
        }
        hidden_here(&prefix).then_some(prefix)
    }

    /// Returns whether the reader chose every name of a path.
    fn spares(&self, pointer: &Pointer) -> bool {
        self.spared_paths.iter().any(|it| it.covers(pointer) || pointer.covers(it))
    }
}

fn pointer_of(at: &[ValuePathStep<'_>]) -> Pointer {
    at.iter().fold(Pointer::root(), |above, step| match step {
        ValuePathStep::Key(key) => above.child(key),
        ValuePathStep::Index(index) => above.index(*index),
    })
}

/// Collects the values at the redacted paths of states and of a tool's arguments.
fn values_of(policy: &Policy, states: &[&Value], tool: Option<&Tool>) -> RedactedValues {
    let mut gathered = RedactedValueSet::default();
    for state in states {
        policy.hidden.iter().flat_map(|it| it.named(state)).for_each(|it| gathered.add(it));
    }
    // Arguments can be large, so they are copied only if one of their paths is redacted.
    if let Some(tool) = tool.filter(|_| !policy.tools.hidden.is_empty()) {
        let arguments = Value::Object(tool.arguments.clone());
        policy.tools.hidden.iter().flat_map(|it| it.named(&arguments)).for_each(|it| gathered.add(it));
    }
    gathered.built()
}

impl Policy {
    /// Returns whether the pointer alone is at or below a redacted path.
    pub fn hides(&self, pointer: &Pointer) -> bool {
        Redactor::by_name(self).hides(pointer)
    }

    /// Returns the pointer, cut where the pointer alone shows a redacted path.
    #[must_use]
    pub fn cut(&self, pointer: &Pointer) -> Pointer {
        Redactor::by_name(self).cut(pointer)
    }
}

#[cfg(test)]
mod tests;
