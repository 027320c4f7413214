//! Email notifications: addresses, pace and retries.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::log::event::EventType;
use crate::primitives::id::{AccountId, EndpointId, EventId, InterruptId, ReviewId};
use crate::primitives::time::Timestamp;

/// An email address without characters that could end a header or an SMTP command. This prevents header injection.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct MailAddress(String);

#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("not a valid email address; use the form name@example.org")]
pub struct InvalidMailAddress;

/// The limits of SMTP for the address and for the part before the `@`.
const ADDRESS_CHARS_MAX: usize = 254;
const LOCAL_CHARS_MAX: usize = 64;

/// How often a person gets email.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MailPace {
    #[default]
    Each,
    /// One email for everything since the last one.
    Digest,
}

/// A person's address and pace.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MailContact {
    pub account: AccountId,
    pub mail: MailAddress,
    pub pace: MailPace,
    pub at: Timestamp,
}

/// A pending email notification to one person. It is deleted after it is sent or when its topic is over.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MailNotification {
    pub account: AccountId,
    pub about: MailTopic,
    /// The event. With the account it identifies the email, even if it is sent repeatedly.
    pub event: EventId,
    pub due: Timestamp,
    /// The number of failed attempts.
    pub tries: u32,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum MailTopic {
    Review(ReviewId),
    Interrupt(InterruptId),
    /// A disabled endpoint.
    EndpointDisabled(EndpointId),
    /// An endpoint that works again.
    EndpointRecovered(EndpointId),
}

impl MailTopic {
    /// Returns the topic of an event, or `None` if the event sends no email.
    pub fn of(kind: EventType, data: &serde_json::Value) -> Option<Self> {
        let review = || ReviewId::try_from(data.get("review")?.as_str()?).ok();
        let interrupt = || InterruptId::try_from(data.get("interrupt")?.as_str()?).ok();
        let endpoint = || EndpointId::try_from(data.get("endpoint")?.as_str()?).ok();
        match kind {
            EventType::TransitionHeld | EventType::ReviewReminded | EventType::ReviewEscalated => {
                review().map(Self::Review)
            }
            EventType::InterruptReceived => interrupt().map(Self::Interrupt),
            EventType::EndpointDisabled => endpoint().map(Self::EndpointDisabled),
            EventType::EndpointRecovered => endpoint().map(Self::EndpointRecovered),
            _ => None,
        }
    }

    /// Returns the subject of the topic. A person has at most one pending notification per subject.
    pub fn thing(&self) -> (&'static str, &str) {
        match self {
            Self::Review(review) => ("review", review.as_str()),
            Self::Interrupt(interrupt) => ("interrupt", interrupt.as_str()),
            Self::EndpointDisabled(endpoint) | Self::EndpointRecovered(endpoint) => ("endpoint", endpoint.as_str()),
        }
    }
}

/// The delay before the first email. A review that is decided earlier had a reviewer who was already looking.
pub const PATIENCE: Duration = Duration::from_secs(15);

/// The delays after failed attempts. After the last one the notification is dropped, because most reviews are over by
/// then.
const DELAYS: [Duration; 8] = [
    Duration::from_secs(30),
    Duration::from_secs(2 * 60),
    Duration::from_secs(10 * 60),
    Duration::from_secs(30 * 60),
    Duration::from_secs(2 * 3600),
    Duration::from_secs(6 * 3600),
    Duration::from_secs(12 * 3600),
    Duration::from_secs(24 * 3600),
];

impl MailAddress {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for MailAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<MailAddress> for String {
    fn from(address: MailAddress) -> Self {
        address.0
    }
}

impl TryFrom<String> for MailAddress {
    type Error = InvalidMailAddress;
    fn try_from(text: String) -> Result<Self, InvalidMailAddress> {
        // The last `@` separates the host. An earlier one fails the check of the local part.
        let (local, host) = text.rsplit_once('@').ok_or(InvalidMailAddress)?;
        // Quoted local parts are refused, because they can contain spaces and other signs with a meaning in SMTP.
        let atom = |it: u8| it.is_ascii_alphanumeric() || b"!#$%&'*+/=?^_`{|}~-".contains(&it);
        let atoms = local.len() <= LOCAL_CHARS_MAX && local.split('.').all(|it| !it.is_empty() && it.bytes().all(atom));
        // The rules of host names. They exclude every character with a meaning in SMTP.
        let label = |it: &str| {
            let plain = it.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
            plain && !it.is_empty() && it.len() <= 63 && !it.starts_with('-') && !it.ends_with('-')
        };
        let fits = atoms && host.split('.').all(label) && text.len() <= ADDRESS_CHARS_MAX;
        if fits { Ok(Self(text)) } else { Err(InvalidMailAddress) }
    }
}

impl MailContact {
    /// Returns the time at which an email for something at `at` is due. `digests` is the interval of digests.
    pub fn told_at(&self, at: Timestamp, digests: Duration) -> Timestamp {
        // A digest includes events until its own time, so the delay counts first.
        let patient = at.plus(PATIENCE);
        match self.pace {
            MailPace::Each => patient,
            MailPace::Digest => {
                // At least one millisecond, because the interval divides below.
                let apart = i64::try_from(digests.as_millis()).unwrap_or(i64::MAX).max(1);
                // Digests are due at multiples of the interval, so all gateways agree without stored state.
                Timestamp::from_millis((patient.millis().div_euclid(apart) + 1).saturating_mul(apart))
            }
        }
    }
}

impl MailNotification {
    /// Returns the notification after a failed attempt, or `None` after the last one.
    pub fn again(&self, now: Timestamp) -> Option<Self> {
        // No further delay means that the notification is dropped.
        let delay = DELAYS.get(self.tries as usize)?;
        Some(Self { due: now.plus(*delay), tries: self.tries + 1, ..self.clone() })
    }

    /// Returns the notification for a later time, because its review cannot be decided now.
    #[must_use]
    pub fn later(&self, now: Timestamp) -> Self {
        // The wait is not a failed attempt, so the count of attempts stays.
        Self { due: now.plus(DELAYS[0]), ..self.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_cannot_inject_a_header_or_a_command() {
        for good in ["a@b", "anna.berg+gate@mail.example.org", "o'neill@example.org", "x@127-0-0-1.example"] {
            assert!(MailAddress::try_from(good.to_owned()).is_ok(), "{good}");
        }
        let long = format!("{}@example.org", "a".repeat(LOCAL_CHARS_MAX + 1));
        let bad = [
            "",
            "a",
            "@b",
            "a@",
            "a b@c",
            "a@b\r\nBcc: x@y",
            "a\n@b",
            "<a@b>",
            "a@b>",
            "\"a\"@b",
            "a@[127.0.0.1]",
            "a@b..c",
            ".a@b",
            "a@-b",
            "a@b, c@d",
            "ä@b",
            "a@bä",
            "a@b c",
            "a;b@c",
            "a@b\0",
            long.as_str(),
        ];
        for bad in bad {
            assert!(MailAddress::try_from(bad.to_owned()).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn digests_of_all_people_are_due_at_the_same_times() {
        let mail = MailAddress::try_from("a@b".to_owned()).unwrap();
        let account = AccountId::try_from("anna".to_owned()).unwrap();
        let contact = MailContact { account, mail, pace: MailPace::Digest, at: Timestamp::from_millis(0) };
        let hour = Duration::from_secs(3600);
        let told = |millis| contact.told_at(Timestamp::from_millis(millis), hour).millis();
        assert_eq!([told(0), told(3_000_000), told(3_584_999)], [3_600_000; 3]);
        assert_eq!(told(3_585_000), 7_200_000, "what came within the patience of a digest waits for the next");
    }

    #[test]
    fn notification_is_dropped_after_a_bounded_number_of_attempts() {
        let (account, due) = (AccountId::try_from("anna").unwrap(), Timestamp::from_millis(0));
        let (about, event) = (MailTopic::Review(ReviewId::try_from("r").unwrap()), EventId::try_from("e").unwrap());
        let mut letter = Some(MailNotification { account, about, event, due, tries: 0 });
        let mut tries = 0;
        while let Some(it) = letter {
            letter = it.again(it.due);
            tries += 1;
        }
        assert_eq!(tries, DELAYS.len() + 1);
    }
}
