//! Why something that was sent to somebody was not answered. A word for a row, a sentence for people, and nothing
//! that a library said: that may quote addresses, which may be secret.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The reason why there is no response.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum FailureCode {
    /// Nothing may be sent there.
    Refused,
    /// It cannot be put into HTTP.
    Unsendable,
    /// The name leads nowhere.
    NotFound,
    /// Nobody takes a connection.
    Unreachable,
    /// Whoever takes it cannot show who they are, or speaks no TLS.
    Tls,
    /// It was not over in time.
    TimedOut,
    /// It ended before an answer did, or what came is no HTTP.
    Broken,
}

impl FailureCode {
    pub const ALL: [Self; 7] =
        [Self::Refused, Self::Unsendable, Self::NotFound, Self::Unreachable, Self::Tls, Self::TimedOut, Self::Broken];

    /// The word that stands in rows and answers.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::Unsendable => "unsendable",
            Self::NotFound => "not_found",
            Self::Unreachable => "unreachable",
            Self::Tls => "tls",
            Self::TimedOut => "timed_out",
            Self::Broken => "broken",
        }
    }

    /// What happened, for people.
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::Refused => "Nothing was sent: the name or address leads to a network that nothing may be sent to.",
            Self::Unsendable => {
                "Nothing was sent: what would be told cannot be read here, or cannot stand in a request."
            }
            Self::NotFound => "Nothing was sent: the name was not found.",
            Self::Unreachable => "Nothing was sent: nobody took the connection.",
            Self::Tls => {
                "Nothing was sent: whoever took the connection did not show a certificate that is trusted here."
            }
            Self::TimedOut => "It was not answered in time.",
            Self::Broken => "The connection ended before there was an answer, or what came back was no HTTP.",
        }
    }
}

impl fmt::Display for FailureCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
