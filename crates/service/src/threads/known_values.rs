//! Texts that a reviewer knows from earlier versions of a changed key, so that the page can mark look-alikes.

use std::collections::BTreeMap;

use countersign_domain::json::pointer::Pointer;
use countersign_domain::policy::{RedactedChange, RedactedLeaf, Redactor, shown_leaves};
use countersign_domain::primitives::confusable::KnownTexts;
use serde_json::Value;

/// The amount of text that one review compares, about 50 milliseconds at most.
const BYTES_MAX: usize = 512 * 1024;

/// Known texts by key: the last name of a pointer that is not an index.
///
/// They come from the same key anywhere in the state before and in the last written state, which a review
/// loads in any case. Redacted texts are left out, so that a mark reveals nothing about them.
#[derive(Debug, Default)]
pub struct KnownValues(BTreeMap<String, KnownTexts>);

impl KnownValues {
    pub(crate) fn of(hidings: &[Redactor<'_>], states: [&Value; 2], changes: &[RedactedChange]) -> Self {
        let mut known: BTreeMap<String, KnownTexts> = changes.iter().filter_map(changed_text).map(empty).collect();
        if known.is_empty() {
            return Self(known);
        }
        let mut left = BYTES_MAX;
        for leaf in states.into_iter().flat_map(|it| shown_leaves(hidings, it)) {
            let RedactedLeaf::Shown { pointer, value: Value::String(text) } = leaf else { continue };
            if let Some(known) = key_of(&pointer).and_then(|it| known.get_mut(&it)) {
                left = left.saturating_sub(text.len());
                if left == 0 {
                    break;
                }
                known.learn(&text);
            }
        }
        Self(known)
    }

    /// Returns the texts that are known at the key of a pointer.
    pub fn at(&self, pointer: &Pointer) -> Option<&KnownTexts> {
        self.0.get(&key_of(pointer)?)
    }
}

fn empty(key: String) -> (String, KnownTexts) {
    (key, KnownTexts::default())
}

/// Returns the key of a change that sets a text.
fn changed_text(change: &RedactedChange) -> Option<String> {
    match change {
        RedactedChange::Shown { pointer, after: Some(Value::String(_)), .. } => key_of(pointer),
        RedactedChange::Shown { .. } | RedactedChange::Hidden { .. } => None,
    }
}

fn key_of(pointer: &Pointer) -> Option<String> {
    let names: Vec<_> = pointer.tokens().collect();
    // An index has no meaning of its own, so items of a list share the key of the list.
    names.into_iter().rev().find(|it| !it.bytes().all(|it| it.is_ascii_digit())).map(Into::into)
}
