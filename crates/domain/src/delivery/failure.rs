//! Reasons why a request got no response: a code for rows and a sentence for people. Messages of libraries are not
//! stored, because they may quote secret addresses.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The reason why there is no response.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum FailureCode {
    /// The address is not allowed. This protects against SSRF.
    Refused,
    /// The request cannot be sent by HTTP.
    Unsendable,
    /// The name does not resolve.
    NotFound,
    /// No connection was accepted.
    Unreachable,
    /// The server has no valid certificate, or does not support TLS.
    Tls,
    /// The request timed out.
    TimedOut,
    /// The connection closed before the response was complete, or the response is not HTTP.
    Broken,
}

impl FailureCode {
    pub const ALL: [Self; 7] =
        [Self::Refused, Self::Unsendable, Self::NotFound, Self::Unreachable, Self::Tls, Self::TimedOut, Self::Broken];

    /// Returns the code for rows and responses.
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

    /// Returns the sentence that people read.
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::Refused => "Nothing was sent: the address is in a network that the gateway may not send to.",
            Self::Unsendable => "Nothing was sent: the content cannot be read, or is invalid in a request.",
            Self::NotFound => "Nothing was sent: the host name does not resolve.",
            Self::Unreachable => "Nothing was sent: the connection was refused or not answered.",
            Self::Tls => "Nothing was sent: the server's certificate is not signed by a trusted CA.",
            Self::TimedOut => "The response did not arrive in time.",
            Self::Broken => "The connection closed before a response arrived, or the response is not HTTP.",
        }
    }
}

impl fmt::Display for FailureCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
