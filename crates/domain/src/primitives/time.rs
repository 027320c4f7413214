//! Timestamps in the format of the protocol: RFC 3339, UTC, milliseconds.

use std::fmt;
use std::time::Duration;

use chrono::{DateTime, SecondsFormat, Utc};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

#[cfg(feature = "openapi")]
use super::openapi_schema::StringFormat;
use super::openapi_schema::has_form;

/// A timestamp in milliseconds since 1970, UTC.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Timestamp(i64);

impl Timestamp {
    /// Returns the timestamp at these milliseconds after 1970.
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    /// Returns the milliseconds since 1970.
    pub const fn millis(self) -> i64 {
        self.0
    }

    /// Returns the seconds since 1970, rounded down, as in the NumericDate of a JWT.
    pub const fn seconds(self) -> i64 {
        // Plain division would round times before 1970 up.
        self.0.div_euclid(1000)
    }

    /// Returns the timestamp `duration` later. It saturates, so that arithmetic on times cannot panic.
    #[must_use]
    pub fn plus(self, duration: Duration) -> Self {
        let millis = i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
        Self(self.0.saturating_add(millis))
    }

    /// Returns the timestamp `duration` earlier. It saturates, too.
    #[must_use]
    pub fn minus(self, duration: Duration) -> Self {
        let millis = i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
        Self(self.0.saturating_sub(millis))
    }

    /// Returns how long from `self` to `later`; zero if that has passed.
    pub fn until(self, later: Self) -> Duration {
        let millis = later.0.saturating_sub(self.0).max(0);
        Duration::from_millis(millis.unsigned_abs())
    }

    /// Reads the one spelling: UTC, with milliseconds.
    pub fn parse(text: &str) -> Option<Self> {
        let parsed = DateTime::parse_from_rfc3339(text).ok()?;
        let moment = Self(parsed.timestamp_millis());
        // Signed and hashed texts contain times, so a time must have only one spelling.
        (moment.to_string() == text).then_some(moment)
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A time outside the calendar has no text, and printing must not panic.
        let moment = DateTime::<Utc>::from_timestamp_millis(self.0).unwrap_or_default();
        f.write_str(&moment.to_rfc3339_opts(SecondsFormat::Millis, true))
    }
}

has_form!(
    Timestamp,
    StringFormat {
        what: "a moment in UTC with milliseconds (RFC 3339)",
        pattern: r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z$",
        chars: (24, 24),
        example: "2026-11-21T10:00:00.000Z",
    }
);

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| serde::de::Error::custom("not a moment in UTC with milliseconds"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_reads_back_as_it_was_written() {
        let moment = Timestamp::from_millis(1_795_225_000_123);
        let text = serde_json::to_string(&moment).unwrap();
        assert_eq!(text, "\"2026-11-21T01:36:40.123Z\"");
        assert_eq!(serde_json::from_str::<Timestamp>(&text).unwrap(), moment);
    }

    #[test]
    fn only_one_spelling_of_a_moment_is_read() {
        for other in ["2026-11-21T01:36:40Z", "2026-11-21T02:36:40.123+01:00", "2026-11-21"] {
            assert!(serde_json::from_value::<Timestamp>(other.into()).is_err(), "{other}");
        }
    }
}
