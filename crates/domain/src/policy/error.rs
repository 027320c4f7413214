//! Errors of a policy text, for its author.

use std::fmt;
use std::ops::Range;

use crate::primitives::named_enum::named_enum;

named_enum! {
    /// Kind of mistake, for programs.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum PolicyCode {
        Syntax = "syntax",
        /// A key that no version of the format has.
        UnknownKey = "unknown_key",
        /// A required key is missing.
        Missing = "missing",
        /// A value of the wrong type.
        WrongType = "wrong_type",
        /// A value of the right type that is not allowed here.
        BadValue = "bad_value",
        /// A value or list beyond its limit.
        TooLarge = "too_large",
        /// A file that was not passed with the policy.
        UnknownSchema = "unknown_schema",
        /// A schema that is not JSON, is not JSON Schema, or uses an unsupported keyword.
        BadSchema = "bad_schema",
        /// A condition that is not CEL, or uses unsupported expressions.
        BadRule = "bad_rule",
        /// Parts of the policy that contradict each other.
        Contradiction = "contradiction",
        /// A path or tool that restricts nothing, because it can never match.
        NeverMatches = "never_matches",
    }
}

impl fmt::Display for PolicyCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The first mistake in a policy, with its position and the correction.
///
/// The message may quote the policy and its schemas, because its reader is their author.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("line {line}, column {column}: {message}")]
pub struct PolicyError {
    pub code: PolicyCode,
    /// The line in the policy text, from 1.
    pub line: u32,
    /// The column in that line, in characters, from 1.
    pub column: u32,
    /// The mistake and its correction.
    pub message: String,
}

/// The part of the policy text that a message refers to.
#[derive(Clone, Copy)]
pub(super) struct PolicyTextSpan<'t> {
    text: &'t str,
    offset: usize,
}

impl<'t> PolicyTextSpan<'t> {
    pub(super) fn new(text: &'t str, span: &Range<usize>) -> Self {
        Self { text, offset: span.start }
    }

    /// Returns the start position in bytes.
    pub(super) const fn offset(self) -> usize {
        self.offset
    }

    pub(super) fn error(self, code: PolicyCode, message: impl Into<String>) -> PolicyError {
        // A span never ends inside a character. The check costs little and cannot panic.
        let before = self.text.get(..self.offset.min(self.text.len())).unwrap_or(self.text);
        let line = before.matches('\n').count();
        // Editors count columns in characters and not in bytes.
        let column = before.rsplit('\n').next().map_or(0, |last| last.chars().count());
        // `POLICY_BYTES_MAX` limits a position to far less than this.
        let count = |n: usize| u32::try_from(n + 1).unwrap_or(u32::MAX);
        PolicyError { code, line: count(line), column: count(column), message: message.into() }
    }
}
