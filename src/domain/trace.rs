//! The trace that a request belongs to, as W3C's Trace Context writes it.

/// The name of a trace: 32 hexadecimal digits, not all of them 0.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TraceId(String);

/// Version, trace, parent and flags, with what parts them.
const CHARS: usize = 55;

impl TraceId {
    /// Of a `traceparent`. What is not written as the standard says belongs to no trace; a later version may say more
    /// behind what this one says.
    pub fn of_traceparent(text: &str) -> Option<Self> {
        let said = text.get(..CHARS)?;
        let mut parts = said.split('-');
        let (version, trace, parent, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let hex = |it: &str, digits: usize| {
            it.len() == digits && it.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
        };
        let named = |it: &str| it.bytes().any(|byte| byte != b'0');
        let shaped = hex(version, 2) && hex(trace, 32) && hex(parent, 16) && hex(flags, 2) && parts.next().is_none();
        let more = text.get(CHARS..).unwrap_or_default();
        let ends = more.is_empty() || (version != "00" && more.starts_with('-'));
        (shaped && ends && version != "ff" && named(trace) && named(parent)).then(|| Self(trace.to_owned()))
    }

    /// As text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_is_read_as_the_standard_writes_it_and_nothing_else_is_one() {
        let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
        for good in ["00-T-00f067aa0ba902b7-01", "00-T-00f067aa0ba902b7-00", "cc-T-00f067aa0ba902b7-01-what-will-be"] {
            let read = TraceId::of_traceparent(&good.replace('T', trace));
            assert_eq!(read.as_ref().map(TraceId::as_str), Some(trace), "{good}");
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
            assert_eq!(TraceId::of_traceparent(&bad.replace('T', trace)), None, "{bad:?}");
        }
    }
}
