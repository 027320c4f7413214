//! W3C Trace Context: the `traceparent` header.

use std::ops::Range;

use serde::{Deserialize, Serialize};

/// A `traceparent` without the parts that later versions of the standard may append.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct TraceParent(String);

/// An invalid `traceparent`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("not a valid traceparent")]
pub struct InvalidTraceParent;

/// The length of version, trace, parent and flags with their separators.
const CHARS: usize = 55;

const TRACE: Range<usize> = 3..35;
const PARENT: Range<usize> = 36..52;
const FLAGS: Range<usize> = 53..CHARS;

impl TraceParent {
    /// Parses a header. An invalid one returns `None`. A later version may append parts. They are dropped, and the
    /// header is passed on as version `00`.
    pub fn read(text: &str) -> Option<Self> {
        let said = text.get(..CHARS)?;
        let mut parts = said.split('-');
        let (version, trace, parent, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let hex = |it: &str, digits: usize| {
            it.len() == digits && it.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
        };
        // The standard forbids ids of zeros.
        let named = |it: &str| it.bytes().any(|byte| byte != b'0');
        let shaped = hex(version, 2) && hex(trace, 32) && hex(parent, 16) && hex(flags, 2) && parts.next().is_none();
        let more = text.get(CHARS..).unwrap_or_default();
        // Version `00` has a fixed length. Only later versions may append parts.
        let ends = more.is_empty() || (version != "00" && more.starts_with('-'));
        let good = shaped && ends && version != "ff" && named(trace) && named(parent);
        good.then(|| Self(format!("00-{trace}-{parent}-{flags}")))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the caller's span id.
    pub fn parent_id(&self) -> &str {
        &self.0[PARENT]
    }

    /// Checks the sampled flag.
    pub fn is_sampled(&self) -> bool {
        u8::from_str_radix(&self.0[FLAGS], 16).is_ok_and(|it| it & 1 == 1)
    }

    /// Returns the trace id: 32 hexadecimal digits.
    pub fn trace_id(&self) -> &str {
        &self.0[TRACE]
    }
}

impl From<TraceParent> for String {
    fn from(it: TraceParent) -> Self {
        it.0
    }
}

impl TryFrom<String> for TraceParent {
    type Error = InvalidTraceParent;
    fn try_from(text: String) -> Result<Self, InvalidTraceParent> {
        Self::read(&text).ok_or(InvalidTraceParent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_is_read_as_the_standard_writes_it_and_nothing_else_is_one() {
        let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
        for good in ["00-T-00f067aa0ba902b7-01", "00-T-00f067aa0ba902b7-00", "cc-T-00f067aa0ba902b7-01-what-will-be"] {
            let read = TraceParent::read(&good.replace('T', trace)).unwrap();
            assert_eq!(read.trace_id(), trace, "{good}");
            assert!(read.as_str().starts_with("00-") && read.as_str().len() == CHARS, "{good}: {read:?}");
        }
        for bad in [
            "",
            "T",
            "00-T-00f067aa0ba902b7",
            "00-T-00f067aa0ba902b7-01-more",
            "ff-T-00f067aa0ba902b7-01",
            "00-T-0000000000000000-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-T-00f067aa0ba902b7-0g",
            " 00-T-00f067aa0ba902b7-01",
            "cc-T-00f067aa0ba902b7-01more",
            "00_T_00f067aa0ba902b7_01",
            "00-T-00f067aa0ba902b7-01\n",
            "é0-T-00f067aa0ba902b7-01",
        ] {
            assert_eq!(TraceParent::read(&bad.replace('T', trace)), None, "{bad:?}");
        }
    }
}
