//! A list of patterns with combined lookups.

use crate::json::pattern::Pattern;
use crate::json::pointer::Pointer;

/// Patterns in the order they were written. An empty list covers nothing.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Patterns(Vec<Pattern>);

/// A key that no policy can contain, so only `*` matches it. Policies reject control characters.
const ANY_KEY: &str = "\u{0}";

impl Patterns {
    /// Returns whether some pattern names the pointer or something above it.
    pub fn covers(&self, pointer: &Pointer) -> bool {
        self.0.iter().any(|pattern| pattern.covers(pointer))
    }

    /// Returns whether some pattern names something at, above or below the pointer.
    pub fn touches(&self, pointer: &Pointer) -> bool {
        self.0.iter().any(|pattern| pattern.touches(pointer))
    }

    /// Returns whether every member that an object or array at the pointer could have is covered, whatever its key.
    pub(super) fn covers_every_member(&self, pointer: &Pointer) -> bool {
        self.covers(&pointer.child(ANY_KEY))
    }

    /// Returns the patterns in their order.
    pub fn iter(&self) -> std::slice::Iter<'_, Pattern> {
        self.0.iter()
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether the list names nothing.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl From<Vec<Pattern>> for Patterns {
    fn from(patterns: Vec<Pattern>) -> Self {
        Self(patterns)
    }
}

impl<'a> IntoIterator for &'a Patterns {
    type Item = &'a Pattern;
    type IntoIter = std::slice::Iter<'a, Pattern>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}
