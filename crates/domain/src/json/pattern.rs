//! Path patterns of policies.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::pointer::Pointer;

#[cfg(test)]
mod tests;

/// A path pattern: `a.b`, `$.a.b` or `a.*`. `*` is exactly one segment, and a pattern covers everything below its
/// matches. `$` alone is the whole state.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Pattern {
    written: String,
    segments: Vec<PatternSegment>,
}

/// One step of a pattern.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum PatternSegment {
    Key(String),
    /// `*`: one member or item with any name.
    Any,
}

/// Why a text is not a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    #[error("a pattern is a path such as a.b, $.a.b or a.*; this one is empty")]
    Empty,
    /// Two dots in a row, or a dot at an end. This is a mistake rather than an empty key.
    #[error("a pattern has a key between any two dots")]
    EmptySegment,
    /// Only spaces between two dots. A reader could not see such a key.
    #[error("a key must not consist of spaces only; name the path above it")]
    Blank,
    /// Policies have their own syntax. A JSON Pointer would silently match one unusual key.
    #[error("a pattern is written a.b, not as a JSON Pointer")]
    Pointer,
    /// `a*` would look like a prefix, which patterns do not have.
    #[error("* matches one whole segment; it cannot be part of a key")]
    PartialStar,
    /// `$` is the whole state, so it must be the first segment.
    #[error("$ is the whole state; it can only be the first segment")]
    Dollar,
    /// Brackets would look like an index or a filter, which patterns do not have.
    #[error("an array's item is written items.0 or items.*, without brackets")]
    Bracket,
}

impl Pattern {
    /// Returns whether the pointer is what this names, or below it.
    pub fn covers(&self, pointer: &Pointer) -> bool {
        let mut tokens = pointer.tokens();
        self.segments.iter().all(|segment| tokens.next().is_some_and(|token| segment.is(&token)))
    }

    /// Returns whether the pointer is what this names, above it or below it.
    pub fn touches(&self, pointer: &Pointer) -> bool {
        // The shorter path ends the comparison, so a path above the pattern matches, too.
        self.segments.iter().zip(pointer.tokens()).all(|(segment, token)| segment.is(&token))
    }

    /// Returns the parts of a value that the pattern matches.
    pub fn named<'v>(&self, value: &'v Value) -> Vec<&'v Value> {
        let step =
            |found: Vec<&'v Value>, segment: &PatternSegment| found.into_iter().flat_map(|it| segment.of(it)).collect();
        self.segments.iter().fold(vec![value], step)
    }

    /// Returns the text in the policy.
    pub fn as_str(&self) -> &str {
        &self.written
    }

    /// Returns the steps from the whole state. `$` has none.
    pub fn segments(&self) -> &[PatternSegment] {
        &self.segments
    }

    /// Returns the only path that the pattern matches, or `None` if it contains a `*`.
    pub fn pointer(&self) -> Option<Pointer> {
        self.segments.iter().try_fold(Pointer::root(), |above, segment| match segment {
            PatternSegment::Key(key) => Some(above.child(key)),
            PatternSegment::Any => None,
        })
    }
}

impl PatternSegment {
    /// Returns the text in the policy.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Key(key) => key,
            Self::Any => "*",
        }
    }

    pub fn is(&self, token: &str) -> bool {
        match self {
            Self::Key(key) => key == token,
            Self::Any => true,
        }
    }

    /// Returns the members of a value that the segment matches.
    pub fn of<'v>(&self, value: &'v Value) -> Vec<&'v Value> {
        match (self, value) {
            (Self::Key(key), Value::Object(members)) => members.get(key).into_iter().collect(),
            (Self::Any, Value::Object(members)) => members.values().collect(),
            (Self::Key(key), Value::Array(items)) => {
                // An index has one spelling, as in JSON Pointers, so `01` names no item.
                let index = key.parse::<usize>().ok().filter(|it| it.to_string() == *key);
                index.and_then(|it| items.get(it)).into_iter().collect()
            }
            (Self::Any, Value::Array(items)) => items.iter().collect(),
            _ => Vec::new(),
        }
    }
}

impl TryFrom<String> for Pattern {
    type Error = PatternError;

    fn try_from(written: String) -> Result<Self, PatternError> {
        let path = match written.strip_prefix('$') {
            Some("") => return Ok(Self { written, segments: Vec::new() }),
            Some(rest) => rest.strip_prefix('.').ok_or(PatternError::Dollar)?,
            None => &written,
        };
        if path.is_empty() {
            return Err(if written.is_empty() { PatternError::Empty } else { PatternError::EmptySegment });
        }
        if path.starts_with('/') {
            return Err(PatternError::Pointer);
        }
        let segments = path.split('.').map(read_segment).collect::<Result<_, _>>()?;
        Ok(Self { written, segments })
    }
}

fn read_segment(text: &str) -> Result<PatternSegment, PatternError> {
    match text {
        "" => Err(PatternError::EmptySegment),
        "*" => Ok(PatternSegment::Any),
        "$" => Err(PatternError::Dollar),
        _ if text.trim().is_empty() => Err(PatternError::Blank),
        _ if text.contains('*') => Err(PatternError::PartialStar),
        _ if text.contains(['[', ']']) => Err(PatternError::Bracket),
        _ => Ok(PatternSegment::Key(text.to_owned())),
    }
}

impl TryFrom<&str> for Pattern {
    type Error = PatternError;

    fn try_from(text: &str) -> Result<Self, PatternError> {
        Self::try_from(text.to_owned())
    }
}

impl From<Pattern> for String {
    fn from(pattern: Pattern) -> Self {
        pattern.written
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.written)
    }
}
