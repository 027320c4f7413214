//! The values that stand where a policy hides by name, to be found wherever else they stand.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::Arc;

use aho_corasick::automaton::{Automaton as _, StateID};
use aho_corasick::nfa::contiguous::NFA;
use aho_corasick::{Anchored, Input};
use serde_json::Value;

use super::detectors::masked;
use crate::domain::json::canonical::canonical;
use crate::domain::json::diff::is_leaf;
use crate::domain::policy::model::Policy;

/// Shorter texts and numbers are not looked for, and true, false and null never: they stand everywhere, and hiding all
/// of them would say where they stand.
pub const HIDDEN_CHARS_MIN: usize = 6;

/// How much of a long value is looked for. Whatever begins like it is hidden too, and what is built to look for
/// ten thousand values stays small.
pub const HIDDEN_CHARS_LOOKED_FOR: usize = 64;

/// What stands in words in the place of a hidden value.
const HIDDEN: &str = "hidden";

/// Hidden values, looked for all at once in time that grows with the text alone. Cloning shares what was built.
#[derive(Clone, Debug, Default)]
pub struct RedactedValues {
    /// Nothing, where nothing is hidden.
    built: Option<Arc<ValueMatcher>>,
}

#[derive(Debug)]
struct ValueMatcher {
    finder: NFA,
    /// Of each text that is looked for.
    extents: Vec<MatchExtent>,
}

/// How much of a value is looked for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum MatchExtent {
    Whole,
    Beginning,
}

/// Values on the way to being looked for. As many and as long as states have them, and limits bound those.
#[derive(Default)]
pub(in crate::domain::policy) struct RedactedValueSet(BTreeMap<String, MatchExtent>);

impl RedactedValueSet {
    /// Every text and number at or below something hidden.
    pub(in crate::domain::policy) fn add(&mut self, value: &Value) {
        match value {
            Value::Object(members) if !is_leaf(value) => members.values().for_each(|it| self.add(it)),
            Value::Array(items) if !is_leaf(value) => items.iter().for_each(|it| self.add(it)),
            Value::String(text) => self.add_text(text),
            Value::Number(_) => self.add_text(&canonical(value)),
            _ => {}
        }
    }

    fn add_text(&mut self, text: &str) {
        if text.chars().nth(HIDDEN_CHARS_MIN - 1).is_none() {
            return;
        }
        let (part, extent) = match text.char_indices().nth(HIDDEN_CHARS_LOOKED_FOR) {
            Some((end, _)) => (&text[..end], MatchExtent::Beginning),
            None => (text, MatchExtent::Whole),
        };
        let escaped = canonical(&Value::from(part));
        // A text in which JSON is written has it as JSON writes it.
        for form in [part, &escaped[1..escaped.len() - 1]] {
            let known = self.0.entry(form.to_owned()).or_insert(extent);
            *known = extent.max(*known);
        }
    }

    pub(in crate::domain::policy) fn built(self) -> RedactedValues {
        if self.0.is_empty() {
            return RedactedValues::default();
        }
        let (texts, extents): (Vec<String>, Vec<MatchExtent>) = self.0.into_iter().unzip();
        // A table of all transitions would be faster to ask and far slower to build; most are asked once.
        let finder =
            NFA::new(texts).expect("a few states have far fewer bytes than there are numbers for an automaton's nodes");
        RedactedValues { built: Some(Arc::new(ValueMatcher { finder, extents })) }
    }
}

impl RedactedValues {
    pub(in crate::domain::policy) const fn is_empty(&self) -> bool {
        self.built.is_none()
    }

    /// Whether one stands anywhere in a text.
    pub(in crate::domain::policy) fn find(&self, text: &str) -> bool {
        self.built.as_ref().is_some_and(|it| it.stands_in(text))
    }

    /// Whether one stands anywhere in a leaf. A number is looked at as it is written.
    pub(in crate::domain::policy) fn find_in(&self, leaf: &Value) -> bool {
        match leaf {
            Value::String(text) => self.find(text),
            Value::Number(_) => !self.is_empty() && self.find(&canonical(leaf)),
            _ => false,
        }
    }

    /// Words as people may read them: `[hidden]` stands in the place of each of these values, and the kind in the place
    /// of what the policy's detectors find. Where the beginning of a long value stands, the rest of the words goes too.
    pub fn masked<'t>(&self, policy: &Policy, words: &'t str) -> Cow<'t, str> {
        let mut found = policy.detectors.find_all(words);
        if let Some(built) = &self.built {
            found.extend(built.places(words).into_iter().map(|it| (it, HIDDEN)));
        }
        masked(words, found)
    }
}

/// The longest of the texts that end at one place of a text, in bytes; 0 where none does.
#[derive(Clone, Copy, Default)]
struct MatchLengths {
    whole: usize,
    beginning: usize,
}

impl ValueMatcher {
    fn stands_in(&self, text: &str) -> bool {
        // It fails where it is asked for what it was not built for, and only there.
        self.finder.try_find(&Input::new(text).earliest(true)).is_ok_and(|it| it.is_some())
    }

    /// Where the values stand, or begin. Of those that end at one place the longest covers all the others: texts can be
    /// made in which a hundred end at every place.
    fn places(&self, text: &str) -> Vec<Range<usize>> {
        let mut places = Vec::new();
        let mut endings: HashMap<StateID, MatchLengths> = HashMap::new();
        let Ok(mut state) = self.finder.start_state(Anchored::No) else { return places };
        for (at, byte) in text.bytes().enumerate() {
            state = self.finder.next_state(Anchored::No, state, byte);
            if !self.finder.is_match(state) {
                continue;
            }
            let MatchLengths { whole, beginning } = *endings.entry(state).or_insert_with(|| self.ending(state));
            let end = at + 1;
            if whole > 0 {
                places.push(end - whole..end);
            }
            if beginning > 0 {
                places.push(end - beginning..text.len());
            }
        }
        places
    }

    fn ending(&self, state: StateID) -> MatchLengths {
        let mut ending = MatchLengths::default();
        for index in 0..self.finder.match_len(state) {
            let pattern = self.finder.match_pattern(state, index);
            let bytes = self.finder.pattern_len(pattern);
            match self.extents.get(pattern.as_usize()) {
                Some(MatchExtent::Whole) => ending.whole = ending.whole.max(bytes),
                Some(MatchExtent::Beginning) | None => ending.beginning = ending.beginning.max(bytes),
            }
        }
        ending
    }
}

#[cfg(test)]
mod tests;
