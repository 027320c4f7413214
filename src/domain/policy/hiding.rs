//! What is hidden of some states: what the policy names, and what its detectors find there.

use std::collections::BTreeSet;

use serde_json::Value;

use super::detect::Detectors;
use super::model::Policy;
use super::patterns::Patterns;
use crate::domain::json::diff::{Change, leaves};
use crate::domain::json::pointer::Pointer;

/// What is hidden of some states. Everything that shows parts of the same states must ask the same one, or one
/// part tells what the other hides.
#[derive(Debug)]
pub struct Hiding<'p> {
    named: &'p Patterns,
    detectors: &'p Detectors,
    /// Leaves in which something was found, and containers with a key in which something was: a container's keys
    /// are shown together or not at all.
    found: BTreeSet<Pointer>,
}

impl<'p> Hiding<'p> {
    /// Of what the policy names, and of names in which something is found.
    pub(super) fn by_name(policy: &'p Policy) -> Self {
        Self { named: &policy.hidden, detectors: &policy.detectors, found: BTreeSet::new() }
    }

    /// Of these states together.
    pub fn of_states<'v>(policy: &'p Policy, states: impl IntoIterator<Item = &'v Value>) -> Self {
        Self::by_name(policy).having_looked_at(states)
    }

    /// Of what a tool is called with.
    pub(super) fn of_arguments(policy: &'p Policy, arguments: &Value) -> Self {
        Self { named: &policy.tools.hidden, ..Self::by_name(policy) }.having_looked_at([arguments])
    }

    fn having_looked_at<'v>(mut self, values: impl IntoIterator<Item = &'v Value>) -> Self {
        if !self.detectors.is_empty() {
            for value in values {
                leaves(value).iter().for_each(|(pointer, leaf)| self.look(pointer, leaf));
            }
        }
        self
    }

    /// Of both sides of these changes.
    pub fn of_changes(policy: &'p Policy, changes: &[Change]) -> Self {
        let mut hiding = Self::by_name(policy);
        if !policy.detectors.is_empty() {
            for change in changes {
                let sides = [&change.before, &change.after];
                sides.into_iter().flatten().for_each(|leaf| hiding.look(&change.pointer, leaf));
            }
        }
        hiding
    }

    fn look(&mut self, pointer: &Pointer, leaf: &Value) {
        if self.detectors.find_in(leaf) {
            self.found.insert(pointer.clone());
        }
        let mut prefix = Pointer::root();
        for token in pointer.tokens() {
            if self.detectors.find(&token) {
                self.found.insert(prefix);
                return;
            }
            prefix = prefix.child(&token);
        }
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
            if hidden_here(&prefix) || self.detectors.find(&token) {
                return Some(prefix);
            }
            prefix = prefix.child(&token);
        }
        hidden_here(&prefix).then_some(prefix)
    }
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

    /// Words as they may be shown: the kind stands in the place of what the detectors find.
    pub fn masked<'t>(&self, words: &'t str) -> std::borrow::Cow<'t, str> {
        self.detectors.masked(words)
    }
}

#[cfg(test)]
mod tests;
