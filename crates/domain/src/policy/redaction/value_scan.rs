//! Finds the values of redacted paths wherever else they appear.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::Arc;

use aho_corasick::automaton::{Automaton as _, StateID};
use aho_corasick::nfa::contiguous::NFA;
use aho_corasick::{Anchored, Input};
use serde_json::Value;

use super::detectors::masked;
use crate::json::canonical::canonical;
use crate::json::diff::is_leaf;
use crate::policy::model::Policy;

/// Shorter texts and numbers are not searched for, and neither are true, false and null. They appear everywhere, so
/// redacting all of them would reveal where they are.
pub const HIDDEN_CHARS_MIN: usize = 6;

/// Number of characters of a long value that are searched for. Every text that begins the same is redacted, too. The
/// limit keeps the matcher for ten thousand values small.
pub const HIDDEN_CHARS_LOOKED_FOR: usize = 64;

/// Replaces a redacted value in a text.
const HIDDEN: &str = "hidden";

/// Redacted values, which are searched for all at once in time that grows only with the text. Clones share the
/// matcher.
#[derive(Clone, Debug, Default)]
pub struct RedactedValues {
    /// `None` if no value is redacted.
    built: Option<Arc<ValueMatcher>>,
}

#[derive(Debug)]
struct ValueMatcher {
    finder: NFA,
    /// One for each text that is searched for.
    extents: Vec<MatchExtent>,
}

/// Part of a value that is searched for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum MatchExtent {
    Whole,
    Beginning,
}

/// Collects the values to search for. Their number and length are bounded by the limits of states.
#[derive(Default)]
#[cfg_attr(test, derive(PartialEq, Debug))]
pub(in crate::policy) struct RedactedValueSet(BTreeMap<String, MatchExtent>);

impl RedactedValueSet {
    /// Adds every text and number at or below a redacted path.
    pub(in crate::policy) fn add(&mut self, value: &Value) {
        match value {
            Value::Object(members) if !is_leaf(value) => members.values().for_each(|it| self.add(it)),
            Value::Array(items) if !is_leaf(value) => items.iter().for_each(|it| self.add(it)),
            Value::String(text) => self.add_text(text),
            // A number may also be written inside a text.
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
        // A text may contain JSON, in which the value is escaped.
        for form in [part, &escaped[1..escaped.len() - 1]] {
            let known = self.0.entry(form.to_owned()).or_insert(extent);
            // A short value may equal the beginning of a long one. `Beginning` is the greater one, because it redacts
            // more.
            *known = extent.max(*known);
        }
    }

    pub(in crate::policy) fn built(self) -> RedactedValues {
        if self.0.is_empty() {
            return RedactedValues::default();
        }
        let (texts, extents): (Vec<String>, Vec<MatchExtent>) = self.0.into_iter().unzip();
        // A table of all transitions would be faster to search and far slower to build. Most matchers are used once.
        let finder =
            NFA::new(texts).expect("a few states have far fewer bytes than there are numbers for an automaton's nodes");
        RedactedValues { built: Some(Arc::new(ValueMatcher { finder, extents })) }
    }
}

impl RedactedValues {
    pub(in crate::policy) const fn is_empty(&self) -> bool {
        self.built.is_none()
    }

    /// Returns whether a text contains one of the values.
    pub(in crate::policy) fn find(&self, text: &str) -> bool {
        self.built.as_ref().is_some_and(|it| it.stands_in(text))
    }

    /// Returns whether a leaf contains one of the values. A number is compared as it is written.
    pub(in crate::policy) fn find_in(&self, leaf: &Value) -> bool {
        match leaf {
            Value::String(text) => self.find(text),
            Value::Number(_) => !self.is_empty() && self.find(&canonical(leaf)),
            _ => false,
        }
    }

    /// Returns a text with redaction applied. `[hidden]` replaces each of the values, and the name of a detector
    /// replaces its matches. After the beginning of a long value, the rest of the text is removed, too.
    pub fn masked<'t>(&self, policy: &Policy, words: &'t str) -> Cow<'t, str> {
        let mut found = policy.detectors.find_all(words);
        if let Some(built) = &self.built {
            found.extend(built.places(words).into_iter().map(|it| (it, HIDDEN)));
        }
        masked(words, found)
    }
}

/// Longest matches that end at one position, in bytes. 0 means no match.
#[derive(Clone, Copy, Default)]
struct MatchLengths {
    whole: usize,
    beginning: usize,
}

impl ValueMatcher {
    fn stands_in(&self, text: &str) -> bool {
        // The search fails only for options that the matcher was not built for.
        self.finder.try_find(&Input::new(text).earliest(true)).is_ok_and(|it| it.is_some())
    }

    /// Returns the positions of the values, or of their beginnings. The longest match at a position covers all
    /// others. A text can be built in which a hundred values end at every position, so only the longest is returned.
    fn places(&self, text: &str) -> Vec<Range<usize>> {
        let mut places = Vec::new();
        let mut endings: HashMap<StateID, MatchLengths> = HashMap::new();
        // As above, this fails only for options that the matcher was not built for.
        let Ok(mut state) = self.finder.start_state(Anchored::No) else { return places };
        for (at, byte) in text.bytes().enumerate() {
            state = self.finder.next_state(Anchored::No, state, byte);
            if !self.finder.is_match(state) {
                continue;
            }
            // Many positions share a state, so the matches of each state are computed once.
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
                // Each pattern has an extent. Without one, redacting too much is the safe choice.
                Some(MatchExtent::Beginning) | None => ending.beginning = ending.beginning.max(bytes),
            }
        }
        ending
    }
}

#[cfg(test)]
mod tests;
