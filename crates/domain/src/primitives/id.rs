//! Names and ids. Each one is checked once, where it enters the gateway, and from then on its type states its kind.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use serde::{Deserialize, Serialize, Serializer};

#[cfg(feature = "openapi")]
use super::openapi_schema::StringFormat;
use super::openapi_schema::has_form;

/// Why a text is not a name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{kind} must be {must}")]
pub struct IdError {
    kind: &'static str,
    must: &'static str,
}

/// Maximum length of a name. Names appear in URLs, logs and pages, so any id scheme must fit, and a name must fit
/// into a line.
pub const ID_CHARS_MAX: usize = 128;

/// Maximum length of a short name. Pages list several of them in one line.
const SHORT_NAME_CHARS_MAX: usize = 64;

fn is_name(text: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b':' | b'-');
    text.len() <= ID_CHARS_MAX
        && text.bytes().all(plain)
        && text.bytes().next().is_some_and(|b| b.is_ascii_alphanumeric())
}

/// Returns whether a text is a valid short name. Names of branches are short, because pages show several of them in
/// one line.
fn is_short_name(text: &str) -> bool {
    text.len() <= SHORT_NAME_CHARS_MAX && is_name(text)
}

/// Fingerprints are base64url, which may begin with `-` or `_`.
fn is_token_text(text: &str) -> bool {
    (1..=ID_CHARS_MAX).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'))
}

fn is_128_bits(text: &str) -> bool {
    // The decoder refuses surplus bits in the last character, so an id has only one spelling.
    URL_SAFE_NO_PAD.decode(text).is_ok_and(|it| it.len() == 16)
}

/// Returns whether a text is a credential id of an authenticator: 16 to 1023 bytes, in base64url.
fn is_credential(text: &str) -> bool {
    // WebAuthn sets both limits.
    URL_SAFE_NO_PAD.decode(text).is_ok_and(|it| (16..=1023).contains(&it.len()))
}

#[cfg(feature = "openapi")]
const fn name(what: &'static str) -> StringFormat {
    StringFormat { what, pattern: "^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$", chars: (1, ID_CHARS_MAX), example: "order-17" }
}

/// Returns the format of a short name.
#[cfg(feature = "openapi")]
const fn short_name(what: &'static str) -> StringFormat {
    StringFormat {
        what,
        pattern: "^[A-Za-z0-9][A-Za-z0-9._:-]{0,63}$",
        chars: (1, SHORT_NAME_CHARS_MAX),
        example: "left",
    }
}

/// Returns the format of a fingerprint.
#[cfg(feature = "openapi")]
const fn fingerprint(what: &'static str) -> StringFormat {
    StringFormat { what, pattern: "^[A-Za-z0-9_-]{1,128}$", chars: (1, ID_CHARS_MAX), example: "Zm9v" }
}

/// Returns the format of 16 random bytes. Only two bits of the last character are used.
#[cfg(feature = "openapi")]
const fn random(what: &'static str) -> StringFormat {
    StringFormat { what, pattern: "^[A-Za-z0-9_-]{21}[AQgw]$", chars: (22, 22), example: "Y4VS9rTdkmAx2ZFv0b5w3Q" }
}

/// Returns the format of a credential id.
#[cfg(feature = "openapi")]
const fn credential(what: &'static str) -> StringFormat {
    StringFormat { what, pattern: "^[A-Za-z0-9_-]{22,1364}$", chars: (22, 1364), example: "Y4VS9rTdkmAx2ZFv0b5w3Q" }
}

/// Error text for each format.
macro_rules! must {
    (name) => {
        "1 to 128 characters from A-Z a-z 0-9 . _ : - and start with a letter or digit"
    };
    (short_name) => {
        "1 to 64 characters from A-Z a-z 0-9 . _ : - and start with a letter or digit"
    };
    (fingerprint) => {
        "1 to 128 characters of base64url"
    };
    (random) => {
        "the 22 characters of base64url that it was made with"
    };
    (credential) => {
        "base64url of 16 to 1023 bytes"
    };
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident, $kind:literal, $check:ident, $form:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Deserialize)]
        #[serde(try_from = "String")]
        pub struct $name(String);

        has_form!($name, $form($kind));

        impl $name {
            /// Returns the name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $name {
            type Error = IdError;
            fn try_from(text: String) -> Result<Self, IdError> {
                if $check(&text) { Ok(Self(text)) } else { Err(IdError { kind: $kind, must: must!($form) }) }
            }
        }

        impl TryFrom<&str> for $name {
            type Error = IdError;
            fn try_from(text: &str) -> Result<Self, IdError> {
                Self::try_from(text.to_owned())
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> String {
                id.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl std::str::FromStr for $name {
            type Err = IdError;
            fn from_str(text: &str) -> Result<Self, IdError> {
                Self::try_from(text)
            }
        }
    )*};
}

ids! {
    /// A flow: a policy and the threads under it.
    FlowId, "a flow", is_name, name;
    /// A thread: one state and its chain. The host may name it.
    ThreadId, "a thread", is_name, name;
    /// A branch, among those of one head.
    BranchName, "a branch's name", is_short_name, short_name;
    /// A node of the agent graph.
    NodeId, "a node", is_name, name;
    /// A step of an agent's run, as its agent names it.
    StepKey, "a step", is_name, name;
    /// A tool that agents call.
    ToolName, "a tool", is_name, name;
    /// The immutable id of a token or an account, which records who did something.
    PrincipalId, "a principal", is_name, name;
    /// A person's account.
    AccountId, "an account", is_name, name;
    /// The public part of a token.
    TokenId, "a token", is_name, name;
    /// A group of people.
    GroupName, "a group", is_name, name;
    /// A proposal: the random id that salts the leaves it sets.
    ProposalId, "a proposal", is_name, name;
    /// The review of a held transition.
    ReviewId, "a review", is_name, name;
    /// A policy change request.
    AmendmentId, "a policy change request", is_name, name;
    /// An interrupt from a host application.
    InterruptId, "an interrupt", is_name, name;
    /// A delegation of one reviewer's vote to another.
    DelegationId, "a delegation", is_name, name;
    /// A write, as its writer names it.
    WriteId, "a write", is_name, name;
    /// An event.
    EventId, "an event", is_name, name;
    /// A webhook endpoint.
    EndpointId, "an endpoint", is_name, name;
    /// A browser session.
    SessionId, "a session", is_token_text, fingerprint;
    /// A passkey, as its authenticator names it.
    PasskeyId, "a passkey", is_credential, credential;
    /// A receipt: 128 random bits.
    Jti, "a receipt id", is_128_bits, random;
}

impl From<&TokenId> for PrincipalId {
    fn from(token: &TokenId) -> Self {
        Self(token.0.clone())
    }
}

impl From<&AccountId> for PrincipalId {
    fn from(account: &AccountId) -> Self {
        Self(account.0.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stays_within_its_alphabet() {
        for good in ["payments", "a", "t-1:2.3_4", "0199-x"] {
            assert!(FlowId::try_from(good).is_ok(), "{good}");
        }
        let long = "x".repeat(ID_CHARS_MAX + 1);
        for bad in ["", "-a", ".a", "a/b", "a b", "ä", "a\n", long.as_str()] {
            assert!(FlowId::try_from(bad).is_err(), "{bad:?}");
        }
    }
}
