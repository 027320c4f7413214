//! Why a policy text is not a policy, told to the person who wrote it.

use std::fmt;
use std::ops::Range;

/// What kind of mistake it is, for programs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PolicyCode {
    Syntax,
    /// A key that no version of the format has.
    UnknownKey,
    /// A key that must be there is not.
    Missing,
    /// A value of another type than the key takes.
    WrongType,
    /// A value of the right type that means nothing here.
    BadValue,
    /// More or longer than a bound allows.
    TooLarge,
    /// A file name that was not handed in with the policy.
    UnknownSchema,
    /// A schema that is not JSON, not JSON Schema, or uses what is not accepted.
    BadSchema,
    /// A rule's condition that is not CEL, or asks for what rules do not have.
    BadRule,
    /// Parts of the policy that contradict each other.
    Contradiction,
}

impl PolicyCode {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Syntax => "syntax",
            Self::UnknownKey => "unknown_key",
            Self::Missing => "missing",
            Self::WrongType => "wrong_type",
            Self::BadValue => "bad_value",
            Self::TooLarge => "too_large",
            Self::UnknownSchema => "unknown_schema",
            Self::BadSchema => "bad_schema",
            Self::BadRule => "bad_rule",
            Self::Contradiction => "contradiction",
        }
    }
}

impl fmt::Display for PolicyCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The first mistake in a policy: where it is and what to do about it.
///
/// The message may quote the policy and its schemas: whoever reads it wrote them.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("line {line}, column {column}: {message}")]
pub struct PolicyError {
    /// What kind of mistake it is.
    pub code: PolicyCode,
    /// The line in the policy text, from 1.
    pub line: u32,
    /// The column in that line, in characters, from 1.
    pub column: u32,
    /// What is wrong and what to do.
    pub message: String,
}

/// A stretch of the policy text that a message is about.
#[derive(Clone, Copy)]
pub(super) struct PolicyTextSpan<'t> {
    text: &'t str,
    offset: usize,
}

impl<'t> PolicyTextSpan<'t> {
    pub(super) fn new(text: &'t str, span: &Range<usize>) -> Self {
        Self { text, offset: span.start }
    }

    /// Where it begins, in bytes.
    pub(super) const fn offset(self) -> usize {
        self.offset
    }

    pub(super) fn error(self, code: PolicyCode, message: impl Into<String>) -> PolicyError {
        // A span may end inside nothing, never inside a character; the guard costs little and cannot panic.
        let before = self.text.get(..self.offset.min(self.text.len())).unwrap_or(self.text);
        let line = before.matches('\n').count();
        let column = before.rsplit('\n').next().map_or(0, |last| last.chars().count());
        let count = |n: usize| u32::try_from(n + 1).unwrap_or(u32::MAX);
        PolicyError { code, line: count(line), column: count(column), message: message.into() }
    }
}
